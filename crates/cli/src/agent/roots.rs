//! Resolution of an agent's path to the root that contains it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use strowger::{Accepts, ActorRef, Ask, Fault, FaultCode, Request};
use strowger_gateway::access::{Caller, Operation};
use strowger_tools::files::{
    FileError, FilesMessage, RootRequest, file_uri, path_of_file_uri, shown_path,
};

use super::ASK_TIMEOUT;
use crate::compose::agents::Tools;

/// The roots that agents can reach. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Roots(Arc<[Root]>);

/// A directory that agents can reach.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(super) name: String,
    pub(super) read_only: bool,
    /// Maximum number of bytes that one call reads or writes.
    pub(super) file: u64,
    /// The absolute path, with links resolved.
    pub(super) path: PathBuf,
    /// The path as configured, made absolute: agents may know the root by it.
    given: PathBuf,
    actor: ActorRef<FilesMessage>,
}

/// A path below a root.
#[derive(Debug)]
pub(super) struct RootPath<'a> {
    pub(super) root: &'a Root,
    /// The path relative to the root.
    pub(super) path: String,
}

impl Roots {
    /// Collects the roots of tools that have started.
    ///
    /// # Errors
    /// Returns a fault if one of them does not answer.
    pub(crate) async fn of(tools: &Tools) -> Result<Self, Fault> {
        let mut roots = Vec::new();
        for root in tools.roots() {
            let info = ask(&root.actor, RootRequest).await?;
            let given = std::path::absolute(&root.given);
            roots.push(Root {
                name: root.name.clone(),
                read_only: info.read_only,
                given: given.unwrap_or_else(|_| root.given.clone()),
                file: info.file,
                path: info
                    .uri
                    .as_deref()
                    .and_then(path_of_file_uri)
                    .unwrap_or_else(|| PathBuf::from(info.path)),
                actor: root.actor.clone(),
            });
        }
        Ok(Self(roots.into()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Root> {
        self.0.iter()
    }

    /// Returns the roots that a caller may reach.
    ///
    /// # Errors
    /// Returns `forbidden` if the caller may reach none of them.
    pub(super) fn within(&self, caller: &Caller) -> Result<Self, Fault> {
        let address = |root: &Root| format!("/tools/{}", root.name);
        let is_near = |root: &&Root| caller.can_reach(&address(root));
        let near = self.0.iter().filter(is_near).count();
        match (near, self.0.first()) {
            (0, Some(first)) => {
                caller.check_address(&Operation::CALL_TOOL, &address(first))?;
                Ok(self.clone())
            }
            (near, _) if near == self.0.len() => Ok(self.clone()),
            _ => Ok(Self(self.0.iter().filter(is_near).cloned().collect())),
        }
    }

    /// Finds the root of a path. An absolute path lies below one of the roots. A relative path is
    /// below the only root, or begins with the name of one. Whether the path stays inside the root
    /// is not decided here.
    ///
    /// A `file:` URI is an absolute path, which need not be UTF-8.
    pub(super) fn find(&self, requested: &str) -> Result<RootPath<'_>, Fault> {
        let named = path_of_file_uri(requested);
        let path = named.as_deref().unwrap_or_else(|| Path::new(requested));
        if path.is_absolute() {
            let ways = self
                .0
                .iter()
                .flat_map(|root| [(root, &root.path), (root, &root.given)]);
            let below = ways.filter_map(|(root, way)| Some((root, path.strip_prefix(way).ok()?)));
            // If roots are nested, the innermost one.
            let nearest = below.min_by_key(|(_, below)| below.components().count());
            return match nearest {
                Some((root, below)) => Ok(RootPath {
                    root,
                    path: match below.to_str() {
                        Some(below) => below.to_owned(),
                        None => file_uri(&root.path.join(below)),
                    },
                }),
                None => Err(self.refusal(requested, "is not below an allowed directory")),
            };
        }
        if let [root] = &*self.0 {
            let path = requested.to_owned();
            return Ok(RootPath { root, path });
        }
        let (name, rest) = requested.split_once('/').unwrap_or((requested, ""));
        match self.0.iter().find(|root| root.name == name) {
            Some(root) => Ok(RootPath {
                root,
                path: rest.to_owned(),
            }),
            None => Err(self.refusal(
                requested,
                "does not start with the name of an allowed directory",
            )),
        }
    }

    fn refusal(&self, requested: &str, why: &str) -> Fault {
        let known = self.0.iter();
        let known = known.map(|root| format!("{} ({})", root.name, shown_path(&root.path)));
        let known: Vec<String> = known.collect();
        let cut = requested.floor_char_boundary(200);
        let text = format!(
            "`{}` {why}: {} (rule: absolute)",
            &requested[..cut],
            known.join(", ")
        );
        Fault::new(FaultCode::Refused, text)
    }

    /// Formats a path below a root as agents write it.
    pub(super) fn display_path(&self, root: &Root, path: &str) -> String {
        match (self.0.len(), path) {
            (1, path) => path.to_owned(),
            (_, "") => root.name.clone(),
            (_, path) => format!("{}/{path}", root.name),
        }
    }
}

impl RootPath<'_> {
    /// Returns the absolute path.
    pub(super) fn absolute(&self) -> PathBuf {
        let named = path_of_file_uri(&self.path);
        named.unwrap_or_else(|| self.root.path.join(&self.path))
    }

    /// Asks the actor of the root.
    pub(super) async fn ask<R, T>(&self, request: R) -> Result<T, Fault>
    where
        R: Request<Reply = Result<T, FileError>>,
        FilesMessage: Accepts<Ask<R>>,
    {
        ask(&self.root.actor, request).await
    }
}

async fn ask<R, T>(actor: &ActorRef<FilesMessage>, request: R) -> Result<T, Fault>
where
    R: Request<Reply = Result<T, FileError>>,
    FilesMessage: Accepts<Ask<R>>,
{
    let answer = actor.ask_within(request, ASK_TIMEOUT).await;
    let answer = answer.map_err(|error| Fault::new(FaultCode::Failed, error.to_string()))?;
    answer.map_err(|error| error.to_fault())
}
