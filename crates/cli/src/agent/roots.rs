//! Which root a path of an agent is about.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use strowger::{Accepts, ActorRef, Ask, Code, Fault, Request};
use strowger_tools::{FileError, FilesMessage, GetRoot, file_uri, path_of_file_uri};

use crate::compose::tools::Tools;

/// The roots that agents reach. A clone is the same.
#[derive(Clone, Debug)]
pub(crate) struct Roots(Arc<[Root]>);

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(super) name: String,
    pub(super) read_only: bool,
    /// Its absolute path, with links resolved.
    pub(super) path: PathBuf,
    /// The same as it was configured: agents may know it by this name.
    given: PathBuf,
    actor: ActorRef<FilesMessage>,
}

/// A path below a root.
#[derive(Debug)]
pub(super) struct Below<'a> {
    pub(super) root: &'a Root,
    /// Relative to it.
    pub(super) path: String,
}

/// Calls have a deadline of their own, which ends what they ask.
const LONG: Duration = Duration::from_secs(24 * 3600);

impl Roots {
    /// The roots of tools that have started.
    ///
    /// # Errors
    /// When one of them does not answer.
    pub(crate) async fn of(tools: &Tools) -> Result<Self, Fault> {
        let mut roots = Vec::new();
        for root in tools.roots() {
            let told = ask(&root.actor, GetRoot).await?;
            let given = std::path::absolute(&root.given);
            roots.push(Root {
                name: root.name.clone(),
                read_only: told.read_only,
                given: given.unwrap_or_else(|_| root.given.clone()),
                path: PathBuf::from(told.path),
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

    /// Finds the root of a path: an absolute one lies below one of them; a relative one is below
    /// the only one, or begins with the name of one. Whether it stays there is not decided here.
    ///
    /// A `file:` URI is an absolute path, which need not be UTF-8.
    pub(super) fn find(&self, said: &str) -> Result<Below<'_>, Fault> {
        let named = path_of_file_uri(said);
        let path = named.as_deref().unwrap_or_else(|| Path::new(said));
        if path.is_absolute() {
            let ways = self
                .0
                .iter()
                .flat_map(|root| [(root, &root.path), (root, &root.given)]);
            let below = ways.filter_map(|(root, way)| Some((root, path.strip_prefix(way).ok()?)));
            // The nearest of those that lie one in another.
            let nearest = below.min_by_key(|(_, below)| below.components().count());
            return match nearest {
                Some((root, below)) => Ok(Below {
                    root,
                    path: match below.to_str() {
                        Some(below) => below.to_owned(),
                        None => file_uri(&root.path.join(below)),
                    },
                }),
                None => Err(self.refused(said, "is below none of the allowed directories")),
            };
        }
        if let [root] = &*self.0 {
            let path = said.to_owned();
            return Ok(Below { root, path });
        }
        let (name, rest) = said.split_once('/').unwrap_or((said, ""));
        match self.0.iter().find(|root| root.name == name) {
            Some(root) => Ok(Below {
                root,
                path: rest.to_owned(),
            }),
            None => Err(self.refused(said, "does not begin with the name of one of them")),
        }
    }

    fn refused(&self, said: &str, why: &str) -> Fault {
        let known = self.0.iter();
        let known = known.map(|root| format!("{} ({})", root.name, root.path.display()));
        let known: Vec<String> = known.collect();
        let cut = said.floor_char_boundary(200);
        let text = format!(
            "`{}` {why}: {} (rule: absolute)",
            &said[..cut],
            known.join(", ")
        );
        Fault::new(Code::Refused, text)
    }

    /// A path below a root as agents write it.
    pub(super) fn shown(&self, root: &Root, path: &str) -> String {
        match (self.0.len(), path) {
            (1, path) => path.to_owned(),
            (_, "") => root.name.clone(),
            (_, path) => format!("{}/{path}", root.name),
        }
    }
}

impl Below<'_> {
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
    let answer = actor.ask_within(request, LONG).await;
    let answer = answer.map_err(|error| Fault::new(Code::Failed, error.to_string()))?;
    answer.map_err(|error| error.to_fault())
}
