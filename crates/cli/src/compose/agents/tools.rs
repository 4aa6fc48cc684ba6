//! The tools of a node: an actor below `/tools` for each granted directory, one for streams, one
//! that runs code, and one for programs.
//!
//! `ps`, `tree` and `top` show the calls of each; `inspect` has its usage under `details`.

mod singleton;
mod stats;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use strowger::{
    ActorPath, ActorRef, ActorSystem, ChildSpec, Export, StartError, Strategy, Supervisor,
    SupervisorRef,
};
use strowger_gateway::method::Methods;
use strowger_tools::code::CodeMessage;
use strowger_tools::files::{Files, FilesMessage, FilesUsage, FilesWatch, VerbUsage};
use strowger_tools::program::ProgramsMessage;
use strowger_tools::stream::StreamsMessage;

use self::singleton::SingletonTools;
pub(crate) use self::stats::{LateTools, add_health};
use super::sandbox::Realms;
use crate::config::agents::{FilesSection, ToolsSection};
use crate::exit::{CliResult, Failure};

/// The tools of a node. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Tools(Arc<ToolsInner>);

#[derive(Debug, Default)]
struct ToolsInner {
    roots: Vec<FilesRoot>,
    singletons: SingletonTools,
}

/// A granted directory.
#[derive(Debug)]
pub(crate) struct FilesRoot {
    pub(crate) name: String,
    pub(crate) actor: ActorRef<FilesMessage>,
    /// The directory as configured.
    pub(crate) given: PathBuf,
    path: String,
    watch: FilesWatch,
}

/// The key of the supervisor of all tools, and the first part of their addresses.
const KEY: &str = "tools";

/// Starts the configured tools, without a supervisor if there are none. Tools that run code need
/// realms.
pub(crate) async fn start(
    system: &ActorSystem,
    section: &ToolsSection,
    realms: Option<Arc<Realms>>,
) -> CliResult<Tools> {
    check(section)?;
    if section.files.is_empty() && !section.streams.enabled && realms.is_none() {
        return Ok(Tools(Arc::default()));
    }
    let mut supervisor = Supervisor::new(Strategy::OneForOne);
    let mut watches = Vec::new();
    for files in &section.files {
        let spec = files.spec();
        watches.push(spec.watch.clone());
        supervisor = supervisor.child(ChildSpec::new::<Files>(files.name.as_str(), spec));
    }
    let (supervisor, starting) = singleton::add(supervisor, section, realms.as_ref());
    let started = system.supervise(KEY, supervisor).await;
    let supervisor = started.map_err(|error| start_failure(&error))?;
    let mut roots = Vec::new();
    for (files, watch) in section.files.iter().zip(watches) {
        let actor = expose(system, &supervisor, &files.name, Files::export())?;
        roots.push(FilesRoot {
            name: files.name.clone(),
            actor,
            given: files.root.clone(),
            path: format!("{}/{}", supervisor.path(), files.name),
            watch,
        });
    }
    let singletons = starting.open(system, &supervisor)?;
    Ok(Tools(Arc::new(ToolsInner { roots, singletons })))
}

/// Exposes a tool to clients and returns its actor.
fn expose<M: Send + 'static>(
    system: &ActorSystem,
    supervisor: &SupervisorRef,
    key: &str,
    door: Export<M>,
) -> CliResult<ActorRef<M>> {
    let outside = |error: String| Failure::outside(format!("the tool {key}: {error}"));
    let actor = supervisor.child::<M>(key);
    let actor = actor.ok_or_else(|| outside("it has exited".to_owned()))?;
    let exposed = system.export(&actor, door);
    exposed.map_err(|error| outside(error.to_string()))?;
    Ok(actor)
}

/// Checks that the directories exist, without starting anything, and returns their names.
pub(crate) fn check(section: &ToolsSection) -> CliResult<Vec<String>> {
    for FilesSection { root, name, .. } in &section.files {
        let wrong = match std::fs::metadata(root) {
            Ok(found) if found.is_dir() => continue,
            Ok(_) => "not a directory".to_owned(),
            Err(error) => error.to_string(),
        };
        let text = format!(
            "the root {name:?} of the tools, {}: {wrong}",
            root.display()
        );
        return Err(Failure::input(text).hint("`tools.files` must name existing directories"));
    }
    let names = section.files.iter().map(|files| files.name.clone());
    Ok(names.collect())
}

fn start_failure(error: &StartError) -> Failure {
    Failure::outside(format!("tools: {error}"))
}

/// Adds the calls and the usage of tools to listings.
pub(super) fn register(methods: Methods, tools: &Tools) -> Methods {
    let (noted, described) = (tools.clone(), tools.clone());
    methods
        .annotate(move |path| {
            let verbs = noted.verbs(path)?;
            let sum = verbs
                .values()
                .fold([0; 3], |[calls, refused, failed], verb| {
                    [
                        calls + verb.calls,
                        refused + verb.refused,
                        failed + verb.failed,
                    ]
                });
            let [calls, refused, failed] = sum;
            let quota = noted.quota(path);
            let note = json!({
                "calls": calls, "refused": refused, "failed": failed, "quota": quota,
            });
            Some(Map::from_iter([("tool".to_owned(), note)]))
        })
        .describe(move |path| {
            let usage = described
                .by_path(&path)
                .map(|root| json!(root.watch.usage()));
            let usage = usage.or_else(|| described.0.singletons.usage(&path));
            async move { Some(json!({ "tool": usage? })) }
        })
}

impl Tools {
    /// Returns the granted directories.
    pub(crate) fn roots(&self) -> &[FilesRoot] {
        &self.0.roots
    }

    /// Returns the actor of streams, if there is one.
    pub(crate) fn streams(&self) -> Option<&ActorRef<StreamsMessage>> {
        self.0.singletons.streams()
    }

    /// Returns the actor that runs code, if there is one.
    pub(crate) fn code(&self) -> Option<&ActorRef<CodeMessage>> {
        self.0.singletons.code()
    }

    /// Returns the actor that stores programs, if there is one.
    pub(crate) fn programs(&self) -> Option<&ActorRef<ProgramsMessage>> {
        self.0.singletons.programs()
    }

    /// Returns the addresses at which clients reach the tools.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = String> {
        let singletons = self.0.singletons.paths().map(address);
        self.0
            .roots
            .iter()
            .map(FilesRoot::address)
            .chain(singletons)
    }

    fn by_path(&self, path: &ActorPath) -> Option<&FilesRoot> {
        let mut roots = self.0.roots.iter();
        roots.find(|root| root.path == path.as_str())
    }

    /// Returns the quota of the tool at a path: rows of name, usage and limit.
    fn quota(&self, path: &ActorPath) -> Vec<Value> {
        let row = |(name, used, most): (&str, u64, u64)| {
            let [used, most] = [used, most].map(Value::from);
            json!({ "name": name, "used": used, "most": most })
        };
        match self.by_path(path).map(|root| root.watch.usage()) {
            Some(usage) => vec![
                row(("octets", usage.bytes, usage.bytes_limit)),
                row(("entries", usage.entries, usage.entries_limit)),
            ],
            None => self.0.singletons.quota(path).into_iter().map(row).collect(),
        }
    }

    /// Returns the calls of the tool at a path.
    fn verbs(&self, path: &ActorPath) -> Option<VerbCounts> {
        let files = self.by_path(path).map(|root| root.watch.usage().verbs);
        files.or_else(|| self.0.singletons.verbs(path))
    }

    /// Returns the calls of each tool, by name.
    fn all_verbs(&self) -> impl Iterator<Item = (&str, VerbCounts)> {
        let files = self.0.roots.iter();
        let files = files.map(|root| (root.name.as_str(), root.watch.usage().verbs));
        files.chain(self.0.singletons.all_verbs())
    }

    /// Returns the usage of each directory's quota.
    fn usages(&self) -> impl Iterator<Item = (&str, FilesUsage)> {
        let roots = self.0.roots.iter();
        roots.map(|root| (root.name.as_str(), root.watch.usage()))
    }

    /// Returns the number of streams.
    fn live_streams(&self) -> usize {
        self.0.singletons.live_streams()
    }
}

/// The calls of a tool, by verb.
type VerbCounts = BTreeMap<&'static str, VerbUsage>;

impl FilesRoot {
    /// Returns the address at which clients reach the tool.
    pub(crate) fn address(&self) -> String {
        address(&self.path)
    }
}

fn address(path: &str) -> String {
    format!("@({})", path.trim_start_matches('/'))
}
