//! Tools of which a node has one each: streams, code, programs.

use std::sync::Arc;

use serde_json::{Value, json};
use strowger::{ActorPath, ActorRef, ActorSystem, ChildSpec, Export, Supervisor, SupervisorRef};
use strowger_tools::code::{Code, CodeMessage, CodeWatch};
use strowger_tools::program::{Programs, ProgramsMessage, ProgramsWatch};
use strowger_tools::stream::{Streams, StreamsMessage, StreamsWatch};

use super::{VerbCounts, expose};
use crate::compose::agents::code;
use crate::compose::agents::sandbox::Realms;
use crate::config::agents::ToolsSection;
use crate::exit::CliResult;

/// The configured ones of these tools.
#[derive(Debug, Default)]
pub(super) struct SingletonTools {
    streams: Option<SingletonTool<StreamsMessage, StreamsWatch>>,
    code: Option<SingletonTool<CodeMessage, CodeWatch>>,
    programs: Option<SingletonTool<ProgramsMessage, ProgramsWatch>>,
    /// The configured limits.
    section: ToolsSection,
}

/// A running tool.
#[derive(Debug)]
struct SingletonTool<M, W> {
    actor: ActorRef<M>,
    path: String,
    watch: W,
}

/// The stats of the tools that will start.
pub(super) struct StartingTools {
    streams: Option<StreamsWatch>,
    code: Option<CodeWatch>,
    programs: Option<ProgramsWatch>,
    section: ToolsSection,
}

/// Keys of the tools.
const STREAMS: &str = "streams";
const CODE: &str = "code";
const PROGRAMS: &str = "programs";

/// Adds the configured tools to their supervisor.
pub(super) fn add(
    mut supervisor: Supervisor,
    section: &ToolsSection,
    realms: Option<&Arc<Realms>>,
) -> (Supervisor, StartingTools) {
    let mut starting = StartingTools {
        streams: None,
        code: None,
        programs: None,
        section: section.clone(),
    };
    if section.streams.enabled {
        let spec = section.streams.spec();
        starting.streams = Some(spec.watch.clone());
        supervisor = supervisor.child(ChildSpec::new::<Streams>(STREAMS, spec));
    }
    if let Some(realms) = realms.filter(|_| section.code.enabled) {
        let spec = code::code_spec(&section.code, realms);
        starting.code = Some(spec.watch.clone());
        supervisor = supervisor.child(ChildSpec::new::<Code>(CODE, spec));
    }
    if let Some(realms) = realms.filter(|_| section.programs.enabled) {
        let spec = code::programs_spec(&section.programs, realms);
        starting.programs = Some(spec.watch.clone());
        supervisor = supervisor.child(ChildSpec::new::<Programs>(PROGRAMS, spec));
    }
    (supervisor, starting)
}

impl StartingTools {
    /// Exposes the tools to clients, once they have started.
    pub(super) fn open(
        self,
        system: &ActorSystem,
        below: &SupervisorRef,
    ) -> CliResult<SingletonTools> {
        let (of_code, of_programs) = (Code::export(system), Programs::export(system));
        Ok(SingletonTools {
            streams: expose_started(system, below, STREAMS, self.streams, Streams::export())?,
            code: expose_started(system, below, CODE, self.code, of_code)?,
            programs: expose_started(system, below, PROGRAMS, self.programs, of_programs)?,
            section: self.section,
        })
    }
}

fn expose_started<M: Send + 'static, W>(
    system: &ActorSystem,
    below: &SupervisorRef,
    key: &str,
    watch: Option<W>,
    door: Export<M>,
) -> CliResult<Option<SingletonTool<M, W>>> {
    let Some(watch) = watch else { return Ok(None) };
    let actor = expose(system, below, key, door)?;
    let path = format!("{}/{key}", below.path());
    Ok(Some(SingletonTool { actor, path, watch }))
}

impl<M, W> SingletonTool<M, W> {
    fn at(&self, path: &ActorPath) -> Option<&W> {
        (self.path == path.as_str()).then_some(&self.watch)
    }
}

impl SingletonTools {
    pub(super) fn streams(&self) -> Option<&ActorRef<StreamsMessage>> {
        self.streams.as_ref().map(|streams| &streams.actor)
    }

    pub(super) fn code(&self) -> Option<&ActorRef<CodeMessage>> {
        self.code.as_ref().map(|code| &code.actor)
    }

    pub(super) fn programs(&self) -> Option<&ActorRef<ProgramsMessage>> {
        self.programs.as_ref().map(|programs| &programs.actor)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        let streams = self.streams.iter().map(|streams| &*streams.path);
        let code = self.code.iter().map(|code| &*code.path);
        let programs = self.programs.iter().map(|programs| &*programs.path);
        streams.chain(code).chain(programs)
    }

    fn streams_at(&self, path: &ActorPath) -> Option<&StreamsWatch> {
        self.streams.as_ref()?.at(path)
    }

    fn code_at(&self, path: &ActorPath) -> Option<&CodeWatch> {
        self.code.as_ref()?.at(path)
    }

    fn programs_at(&self, path: &ActorPath) -> Option<&ProgramsWatch> {
        self.programs.as_ref()?.at(path)
    }

    /// Returns the usage of the tool at a path.
    pub(super) fn usage(&self, path: &ActorPath) -> Option<Value> {
        let streams = self.streams_at(path);
        let streams =
            streams.map(|watch| json!({ "streams": watch.streams(), "verbs": watch.verbs() }));
        let code = || self.code_at(path).map(|watch| json!(watch.usage()));
        let programs = || self.programs_at(path).map(|watch| json!(watch.usage()));
        streams.or_else(code).or_else(programs)
    }

    /// Returns the quota of the tool at a path: rows of name, usage and limit.
    pub(super) fn quota(&self, path: &ActorPath) -> Vec<(&'static str, u64, u64)> {
        let row = |name, used: usize, most: usize| (name, used as u64, most as u64);
        let granted = &self.section;
        if let Some(watch) = self.streams_at(path) {
            return vec![row("streams", watch.streams(), granted.streams.streams)];
        }
        if let Some(usage) = self.code_at(path).map(CodeWatch::usage) {
            return vec![
                row("runs", usage.running, granted.code.runs),
                row("realms", usage.realms, granted.code.realms),
            ];
        }
        let usage = self.programs_at(path).map(ProgramsWatch::usage);
        usage.map_or_else(Vec::new, |usage| {
            vec![
                row("programs", usage.programs, granted.programs.programs),
                row("residents", usage.resident, granted.programs.residents),
            ]
        })
    }

    /// Returns the calls of the tool at a path.
    pub(super) fn verbs(&self, path: &ActorPath) -> Option<VerbCounts> {
        let streams = self.streams_at(path).map(StreamsWatch::verbs);
        let code = || self.code_at(path).map(CodeWatch::verbs);
        let programs = || self.programs_at(path).map(ProgramsWatch::verbs);
        streams.or_else(code).or_else(programs)
    }

    /// Returns the calls of each tool, by name.
    pub(super) fn all_verbs(&self) -> impl Iterator<Item = (&str, VerbCounts)> {
        let streams = self.streams.iter();
        let streams = streams.map(|streams| (STREAMS, streams.watch.verbs()));
        let code = self.code.iter().map(|code| (CODE, code.watch.verbs()));
        let programs = self.programs.iter();
        let programs = programs.map(|programs| (PROGRAMS, programs.watch.verbs()));
        streams.chain(code).chain(programs)
    }

    /// Returns the number of streams.
    pub(super) fn live_streams(&self) -> usize {
        let streams = self.streams.as_ref();
        streams.map_or(0, |streams| streams.watch.streams())
    }
}
