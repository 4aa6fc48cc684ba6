//! Tools of which a node has one: streams, code, programs.

use std::sync::Arc;

use serde_json::{Value, json};
use strowger::{ActorRef, ActorSystem, ChildSpec, Door, Path, Supervisor, SupervisorRef};
use strowger_tools::{
    Code, CodeMessage, CodeWatch, Programs, ProgramsMessage, ProgramsWatch, Streams,
    StreamsMessage, StreamsWatch, code_door, programs_door, streams_door,
};

use super::{Verbs, opened};
use crate::compose::code;
use crate::compose::sandbox::Realms;
use crate::config::ToolsSection;
use crate::exit::Done;

/// Those that are configured.
#[derive(Debug, Default)]
pub(super) struct Singles {
    streams: Option<Single<StreamsMessage, StreamsWatch>>,
    code: Option<Single<CodeMessage, CodeWatch>>,
    programs: Option<Single<ProgramsMessage, ProgramsWatch>>,
    /// What they are granted.
    section: ToolsSection,
}

/// One of them.
#[derive(Debug)]
struct Single<M, W> {
    actor: ActorRef<M>,
    path: String,
    watch: W,
}

/// The figures of those that will start.
pub(super) struct Watches {
    streams: Option<StreamsWatch>,
    code: Option<CodeWatch>,
    programs: Option<ProgramsWatch>,
    section: ToolsSection,
}

/// Their keys.
const STREAMS: &str = "streams";
const CODE: &str = "code";
const PROGRAMS: &str = "programs";

/// Adds those that are configured to their supervisor.
pub(super) fn add(
    mut supervisor: Supervisor,
    section: &ToolsSection,
    realms: Option<&Arc<Realms>>,
) -> (Supervisor, Watches) {
    let mut watches = Watches {
        streams: None,
        code: None,
        programs: None,
        section: section.clone(),
    };
    if section.streams.enabled {
        let spec = section.streams.spec();
        watches.streams = Some(spec.watch.clone());
        supervisor = supervisor.child(ChildSpec::new::<Streams>(STREAMS, spec));
    }
    if let Some(realms) = realms.filter(|_| section.code.enabled) {
        let spec = code::code(&section.code, realms);
        watches.code = Some(spec.watch.clone());
        supervisor = supervisor.child(ChildSpec::new::<Code>(CODE, spec));
    }
    if let Some(realms) = realms.filter(|_| section.programs.enabled) {
        let spec = code::programs(&section.programs, realms);
        watches.programs = Some(spec.watch.clone());
        supervisor = supervisor.child(ChildSpec::new::<Programs>(PROGRAMS, spec));
    }
    (supervisor, watches)
}

impl Watches {
    /// Lets those outside reach them, once they have started.
    pub(super) fn open(self, system: &ActorSystem, below: &SupervisorRef) -> Done<Singles> {
        let (of_code, of_programs) = (code_door(system), programs_door(system));
        Ok(Singles {
            streams: single(system, below, STREAMS, self.streams, streams_door())?,
            code: single(system, below, CODE, self.code, of_code)?,
            programs: single(system, below, PROGRAMS, self.programs, of_programs)?,
            section: self.section,
        })
    }
}

fn single<M: Send + 'static, W>(
    system: &ActorSystem,
    below: &SupervisorRef,
    key: &str,
    watch: Option<W>,
    door: Door<M>,
) -> Done<Option<Single<M, W>>> {
    let Some(watch) = watch else { return Ok(None) };
    let actor = opened(system, below, key, door)?;
    let path = format!("{}/{key}", below.path());
    Ok(Some(Single { actor, path, watch }))
}

impl<M, W> Single<M, W> {
    fn at(&self, path: &Path) -> Option<&W> {
        (self.path == path.as_str()).then_some(&self.watch)
    }
}

impl Singles {
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

    fn streams_at(&self, path: &Path) -> Option<&StreamsWatch> {
        self.streams.as_ref()?.at(path)
    }

    fn code_at(&self, path: &Path) -> Option<&CodeWatch> {
        self.code.as_ref()?.at(path)
    }

    fn programs_at(&self, path: &Path) -> Option<&ProgramsWatch> {
        self.programs.as_ref()?.at(path)
    }

    /// What the one at a path did.
    pub(super) fn usage(&self, path: &Path) -> Option<Value> {
        let streams = self.streams_at(path);
        let streams =
            streams.map(|watch| json!({ "streams": watch.streams(), "verbs": watch.verbs() }));
        let code = || self.code_at(path).map(|watch| json!(watch.usage()));
        let programs = || self.programs_at(path).map(|watch| json!(watch.usage()));
        streams.or_else(code).or_else(programs)
    }

    /// How much the one at a path has used of what it is granted: a name, used, granted.
    pub(super) fn quota(&self, path: &Path) -> Vec<(&'static str, u64, u64)> {
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

    /// What the one at a path was asked.
    pub(super) fn verbs(&self, path: &Path) -> Option<Verbs> {
        let streams = self.streams_at(path).map(StreamsWatch::verbs);
        let code = || self.code_at(path).map(CodeWatch::verbs);
        let programs = || self.programs_at(path).map(ProgramsWatch::verbs);
        streams.or_else(code).or_else(programs)
    }

    /// What each was asked, by name.
    pub(super) fn all_verbs(&self) -> impl Iterator<Item = (&str, Verbs)> {
        let streams = self.streams.iter();
        let streams = streams.map(|streams| (STREAMS, streams.watch.verbs()));
        let code = self.code.iter().map(|code| (CODE, code.watch.verbs()));
        let programs = self.programs.iter();
        let programs = programs.map(|programs| (PROGRAMS, programs.watch.verbs()));
        streams.chain(code).chain(programs)
    }

    /// How many streams there are.
    pub(super) fn live_streams(&self) -> usize {
        let streams = self.streams.as_ref();
        streams.map_or(0, |streams| streams.watch.streams())
    }
}
