//! The tools of a node: an actor below `/tools` for each directory that is granted, one for
//! streams, one that runs code, and one for programs.
//!
//! `ps`, `tree` and `top` say of each what it was asked, `inspect` has its usage under `details`.

mod figures;
mod single;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use strowger::{
    ActorRef, ActorSystem, ChildSpec, Door, Path, StartError, Strategy, Supervisor, SupervisorRef,
};
use strowger_gateway::Methods;
use strowger_tools::{
    CodeMessage, Files, FilesMessage, FilesWatch, ProgramsMessage, StreamsMessage, Usage,
    VerbUsage, files_door,
};

pub(super) use self::figures::{Later, vitals};
use self::single::Singles;
use super::sandbox::Realms;
use crate::config::{FilesSection, ToolsSection};
use crate::exit::{Done, Failure};

/// The tools of a node. A clone is the same.
#[derive(Clone, Debug)]
pub(crate) struct Tools(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    roots: Vec<Root>,
    singles: Singles,
}

/// A directory that is granted.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) name: String,
    pub(crate) actor: ActorRef<FilesMessage>,
    /// The directory as it was configured.
    pub(crate) given: PathBuf,
    path: String,
    watch: FilesWatch,
}

/// The key of the supervisor that they live below, and the first part of their addresses.
const KEY: &str = "tools";

/// Starts the tools that are configured; no supervisor if there are none. Those that run code need
/// realms.
pub(crate) async fn start(
    system: &ActorSystem,
    section: &ToolsSection,
    realms: Option<Arc<Realms>>,
) -> Done<Tools> {
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
    let (supervisor, watches_of_singles) = single::add(supervisor, section, realms.as_ref());
    let started = system.supervise(KEY, supervisor).await;
    let supervisor = started.map_err(|error| not_started(&error))?;
    let mut roots = Vec::new();
    for (files, watch) in section.files.iter().zip(watches) {
        let actor = opened(system, &supervisor, &files.name, files_door())?;
        roots.push(Root {
            name: files.name.clone(),
            actor,
            given: files.root.clone(),
            path: format!("{}/{}", supervisor.path(), files.name),
            watch,
        });
    }
    let singles = watches_of_singles.open(system, &supervisor)?;
    Ok(Tools(Arc::new(Inner { roots, singles })))
}

/// Lets those outside reach a tool; its actor.
fn opened<M: Send + 'static>(
    system: &ActorSystem,
    supervisor: &SupervisorRef,
    key: &str,
    door: Door<M>,
) -> Done<ActorRef<M>> {
    let outside = |error: String| Failure::outside(format!("the tool {key}: {error}"));
    let actor = supervisor.child::<M>(key);
    let actor = actor.ok_or_else(|| outside("it has ended".to_owned()))?;
    let exposed = system.expose(&actor, door);
    exposed.map_err(|error| outside(error.to_string()))?;
    Ok(actor)
}

/// Says whether the directories are there, and starts nothing; their names.
pub(crate) fn check(section: &ToolsSection) -> Done<Vec<String>> {
    for FilesSection { root, name, .. } in &section.files {
        let wrong = match std::fs::metadata(root) {
            Ok(found) if found.is_dir() => continue,
            Ok(_) => "it is not a directory".to_owned(),
            Err(error) => error.to_string(),
        };
        let text = format!(
            "the root {name:?} of the tools, {}: {wrong}",
            root.display()
        );
        return Err(Failure::input(text).hint("`tools.files` names directories that are there"));
    }
    let names = section.files.iter().map(|files| files.name.clone());
    Ok(names.collect())
}

fn not_started(error: &StartError) -> Failure {
    Failure::outside(format!("tools: {error}"))
}

/// Lets listings say more of tools.
pub(super) fn register(methods: Methods, tools: &Tools) -> Methods {
    let (noted, described) = (tools.clone(), tools.clone());
    methods
        .note(move |path| {
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
            let usage = described.at(&path).map(|root| json!(root.watch.usage()));
            let usage = usage.or_else(|| described.0.singles.usage(&path));
            async move { Some(json!({ "tool": usage? })) }
        })
}

impl Tools {
    /// The directories that are granted.
    pub(crate) fn roots(&self) -> &[Root] {
        &self.0.roots
    }

    /// The actor of streams, if there is one.
    pub(crate) fn streams(&self) -> Option<&ActorRef<StreamsMessage>> {
        self.0.singles.streams()
    }

    /// The actor that runs code, if there is one.
    pub(crate) fn code(&self) -> Option<&ActorRef<CodeMessage>> {
        self.0.singles.code()
    }

    /// The desk of programs, if there is one.
    pub(crate) fn programs(&self) -> Option<&ActorRef<ProgramsMessage>> {
        self.0.singles.programs()
    }

    /// The addresses at which those outside reach them.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = String> {
        let singles = self.0.singles.paths().map(address);
        self.0.roots.iter().map(Root::address).chain(singles)
    }

    fn at(&self, path: &Path) -> Option<&Root> {
        let mut roots = self.0.roots.iter();
        roots.find(|root| root.path == path.as_str())
    }

    /// How much the tool at a path has used of what it is granted: what it is, and how much of how
    /// much.
    fn quota(&self, path: &Path) -> Vec<Value> {
        let row = |(name, used, most): (&str, u64, u64)| {
            let [used, most] = [used, most].map(Value::from);
            json!({ "name": name, "used": used, "most": most })
        };
        match self.at(path).map(|root| root.watch.usage()) {
            Some(usage) => vec![
                row(("octets", usage.octets, usage.octets_limit)),
                row(("entries", usage.entries, usage.entries_limit)),
            ],
            None => self.0.singles.quota(path).into_iter().map(row).collect(),
        }
    }

    /// What the tool at a path was asked.
    fn verbs(&self, path: &Path) -> Option<Verbs> {
        let files = self.at(path).map(|root| root.watch.usage().verbs);
        files.or_else(|| self.0.singles.verbs(path))
    }

    /// What each tool was asked, by name.
    fn all_verbs(&self) -> impl Iterator<Item = (&str, Verbs)> {
        let files = self.0.roots.iter();
        let files = files.map(|root| (root.name.as_str(), root.watch.usage().verbs));
        files.chain(self.0.singles.all_verbs())
    }

    /// How much of each directory's quota is used.
    fn usages(&self) -> impl Iterator<Item = (&str, Usage)> {
        let roots = self.0.roots.iter();
        roots.map(|root| (root.name.as_str(), root.watch.usage()))
    }

    /// How many streams there are.
    fn live_streams(&self) -> usize {
        self.0.singles.live_streams()
    }
}

/// What was asked, by verb.
type Verbs = BTreeMap<&'static str, VerbUsage>;

impl Root {
    /// The address at which those outside reach it.
    pub(crate) fn address(&self) -> String {
        address(&self.path)
    }
}

fn address(path: &str) -> String {
    format!("@({})", path.trim_start_matches('/'))
}
