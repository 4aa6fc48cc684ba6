//! Files below one directory, as an actor.
//!
//! ```text
//! a path ─▶ place     checked: relative to the root, no NUL, not too long or deep
//!           disk      opened through the root's handle: the kernel refuses what would leave it
//!           account   may so much be added?
//!           read, write, edit, walk, search
//! ```
//!
//! Small work is done on the worker: a thread of its own would take longer to wake up than a page
//! takes to read. Long work is done on threads that may block: what writes holds the actor
//! meanwhile, what only looks (lists, trees, searches) does not.

mod disk;
mod door;
mod edit;
mod error;
mod figures;
mod message;
mod place;
mod read;
mod search;
mod spec;
mod walk;
mod write;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use strowger::{Ask, BoxError, Context, Reply, handlers};

use disk::{Disk, Stop};
pub use door::files_door;
pub use error::{FileError, Rule};
pub use figures::FilesWatch;
use figures::{Called, Figures, Verb};
pub use message::{
    Append, Change, Delete, Edit, Edited, Entry, EntryKind, Found, GetMedia, GetRoot, GetUsage,
    List, ListOrder, Listing, Make, Match, Media, Read, ReadLines, ReadMany, Rename, Root, Search,
    Skipped, SkippedPath, Stat, Tree, TreeEntry, Usage, VerbUsage, Write, WriteMode,
};
pub use place::{file_uri, path_of_file_uri};
pub use spec::{FileLimits, FilesSpec};

/// An actor that reads and writes files below one directory, and nowhere else.
#[derive(Debug)]
pub struct Files {
    disk: Arc<Disk>,
    figures: Figures,
}

/// Octets that are read or written on the worker; more are left to a thread that may block.
const AT_ONCE: u64 = 256 << 10;

/// Entries of a directory that are listed on the worker.
const LISTED_AT_ONCE: usize = 512;

/// Work beside the actor has ended, and was answered.
#[doc(hidden)]
#[derive(Debug)]
pub struct Beside(Called<'static>);

#[handlers]
impl strowger::Actor for Files {
    type Args = FilesSpec;
    type Error = BoxError;

    /// Lists, trees and searches that are under way at a time; one more holds the actor.
    const PIPES: usize = 8;

    async fn pre_start(spec: FilesSpec, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let (root, watch) = (spec.root.clone(), spec.watch.clone());
        let disk = aside(move |stop| Disk::open(&spec, stop)).await;
        let disk = disk.map_err(|error| format!("root {}: {error}", root.display()))?;
        let disk = Arc::new(disk);
        let figures = Figures::new(cx.path().to_string(), watch, &disk);
        Ok(Self { disk, figures })
    }

    async fn read(&mut self, ask: Ask<Read>) {
        let Ask { request, reply } = ask;
        let outcome = self.octets(&request).await;
        self.done(Verb::Read, &request.path, &outcome, |octets| octets.len());
        reply.send(outcome);
    }

    async fn read_lines(&mut self, ask: Ask<ReadLines>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let path = request.path.clone();
        let work = move |disk: &Disk, stop: Stop<'_>| disk.read_lines(&request, stop);
        let work = (work, Bytes::len as fn(&Bytes) -> usize);
        self.beside(Verb::Read, path, work, reply, cx).await;
    }

    async fn read_many(&mut self, ask: Ask<ReadMany>) {
        let Ask { request, reply } = ask;
        let mut left = self.disk.limits.file;
        let mut outcomes = Vec::new();
        for path in &request.paths {
            let most = Read {
                path: path.clone(),
                offset: 0,
                length: None,
            };
            let mut outcome = self.octets(&most).await;
            if let Ok(octets) = &outcome {
                match left.checked_sub(octets.len() as u64) {
                    Some(rest) => left = rest,
                    None => {
                        outcome = Err(FileError::Limit {
                            path: path.clone(),
                            rule: Rule::Size,
                            most: self.disk.limits.file,
                            used: self.disk.limits.file - left,
                            wanted: octets.len() as u64,
                        });
                    }
                }
            }
            self.done(Verb::Read, path, &outcome, |octets| octets.len());
            outcomes.push(outcome);
        }
        reply.send(Ok(outcomes));
    }

    async fn media(&mut self, ask: Ask<GetMedia>) {
        let Ask { request, reply } = ask;
        let outcome = self.octets(&Read::new(&request.path)).await;
        self.done(Verb::Read, &request.path, &outcome, |octets| octets.len());
        let mime = mime_guess::from_path(&request.path).first_or_octet_stream();
        reply.send(outcome.map(|octets| Media {
            mime: mime.to_string(),
            octets,
        }));
    }

    async fn write(&mut self, ask: Ask<Write>) {
        let Ask { request, reply } = ask;
        let octets = request.octets.len();
        let path = request.path.clone();
        let long = octets as u64 > AT_ONCE || request.mode == WriteMode::Durable;
        let outcome = self.change(long, move |disk| disk.write(&request)).await;
        self.done(Verb::Write, &path, &outcome, |()| octets);
        reply.send(outcome);
    }

    async fn append(&mut self, ask: Ask<Append>) {
        let Ask { request, reply } = ask;
        let octets = request.octets.len();
        let path = request.path.clone();
        let long = octets as u64 > AT_ONCE;
        let outcome = self.change(long, move |disk| disk.append(&request)).await;
        self.done(Verb::Append, &path, &outcome, |()| octets);
        reply.send(outcome);
    }

    async fn edit(&mut self, ask: Ask<Edit>) {
        let Ask { request, reply } = ask;
        let path = request.path.clone();
        let outcome = self.change(true, move |disk| disk.edit(&request)).await;
        self.done(Verb::Edit, &path, &outcome, |edited| edited.diff.len());
        reply.send(outcome);
    }

    async fn make(&mut self, ask: Ask<Make>) {
        let Ask { request, reply } = ask;
        let outcome = self.disk.make(&request);
        self.done(Verb::Make, &request.path, &outcome, |()| 0);
        reply.send(outcome);
    }

    async fn rename(&mut self, ask: Ask<Rename>) {
        let Ask { request, reply } = ask;
        let path = request.from.clone();
        // A directory is weighed before it moves.
        let outcome = self.change(true, move |disk| disk.rename(&request)).await;
        self.done(Verb::Rename, &path, &outcome, |()| 0);
        reply.send(outcome);
    }

    async fn delete(&mut self, ask: Ask<Delete>) {
        let Ask { request, reply } = ask;
        let path = request.path.clone();
        let long = request.recursive;
        let outcome = self.change(long, move |disk| disk.delete(&request)).await;
        self.done(Verb::Delete, &path, &outcome, |()| 0);
        reply.send(outcome);
    }

    async fn stat(&mut self, ask: Ask<Stat>) {
        let Ask { request, reply } = ask;
        let outcome = self.disk.stat(&request.path);
        self.done(Verb::Stat, &request.path, &outcome, |_| 0);
        reply.send(outcome);
    }

    async fn list(&mut self, ask: Ask<List>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let begun = self.disk.list(&request).and_then(|mut lister| {
            let all = lister.step(LISTED_AT_ONCE)?;
            Ok((lister, all))
        });
        match begun {
            Ok((mut lister, false)) => {
                let path = request.path.clone();
                let work = move |_: &Disk, stop: Stop<'_>| {
                    while !lister.step(LISTED_AT_ONCE)? {
                        if stop() {
                            let path = request.path.clone();
                            return Err(FileError::Cancelled { path });
                        }
                    }
                    Ok(lister.finish())
                };
                self.beside(Verb::List, path, (work, nothing), reply, cx)
                    .await;
            }
            begun => {
                let outcome = begun.map(|(lister, _)| lister.finish());
                self.done(Verb::List, &request.path, &outcome, |_| 0);
                reply.send(outcome);
            }
        }
    }

    async fn tree(&mut self, ask: Ask<Tree>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let path = request.path.clone();
        let work = move |disk: &Disk, stop: Stop<'_>| disk.tree(&request, stop);
        self.beside(Verb::Tree, path, (work, nothing), reply, cx)
            .await;
    }

    async fn search(&mut self, ask: Ask<Search>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let path = request.path.clone();
        let work = move |disk: &Disk, stop: Stop<'_>| disk.search(&request, stop);
        self.beside(Verb::Search, path, (work, nothing), reply, cx)
            .await;
    }

    async fn worked(&mut self, Beside(called): Beside) {
        self.figures.enter(&called);
    }

    async fn root(&mut self, ask: Ask<GetRoot>) {
        ask.reply.send(Ok(Root {
            path: self.disk.name.to_string_lossy().into_owned(),
            read_only: self.disk.read_only,
        }));
    }

    async fn usage(&mut self, ask: Ask<GetUsage>) {
        ask.reply.send(self.figures.usage());
    }
}

impl Files {
    /// Octets of a file; a long one is read by a thread that may block.
    async fn octets(&self, read: &Read) -> Result<Bytes, FileError> {
        let opened = self.disk.open_read(read)?;
        if opened.length <= AT_ONCE {
            return opened.read();
        }
        aside(move |_| opened.read()).await
    }

    /// Does what changes something, while the actor waits.
    async fn change<T, F>(&self, long: bool, work: F) -> Result<T, FileError>
    where
        T: Send + 'static,
        F: FnOnce(&Disk) -> Result<T, FileError> + Send + 'static,
    {
        if !long {
            return work(&self.disk);
        }
        let disk = Arc::clone(&self.disk);
        aside(move |_| work(&disk)).await
    }

    /// Does what only looks, while the actor goes on; it ends when nobody wants its answer.
    #[expect(
        clippy::needless_pass_by_ref_mut,
        reason = "a shared borrow that is held while it waits would ask actors to be Sync"
    )]
    async fn beside<T, F>(
        &mut self,
        verb: Verb,
        path: String,
        (work, octets): (F, fn(&T) -> usize),
        reply: Reply<Result<T, FileError>>,
        cx: &mut Context<Self>,
    ) where
        T: Send + 'static,
        F: FnOnce(&Disk, Stop<'_>) -> Result<T, FileError> + Send + 'static,
    {
        let disk = Arc::clone(&self.disk);
        let job = aside(move |stop| {
            let outcome = work(&disk, &|| stop() || !reply.is_wanted());
            let octets = outcome.as_ref().map_or(0, octets);
            let called = Called::new(verb, path, &outcome, octets);
            reply.send(outcome);
            Beside(called)
        });
        if cx.pipes() < <Self as strowger::Actor>::PIPES {
            let piped = cx.pipe(job, |beside| beside);
            debug_assert!(piped.is_ok(), "there was room for it");
        } else {
            let Beside(called) = job.await;
            self.figures.enter(&called);
        }
    }

    fn done<T>(
        &self,
        verb: Verb,
        path: &str,
        outcome: &Result<T, FileError>,
        octets: impl FnOnce(&T) -> usize,
    ) {
        let octets = outcome.as_ref().map_or(0, octets);
        self.figures
            .enter(&Called::new(verb, path, outcome, octets));
    }
}

/// The bytes of an answer that has none of files.
fn nothing<T>(_: &T) -> usize {
    0
}

/// Works on a thread that may block. If nobody waits any more, the work is told to stop.
async fn aside<T: Send + 'static>(work: impl FnOnce(Stop<'_>) -> T + Send + 'static) -> T {
    struct Raise(Arc<AtomicBool>);
    impl Drop for Raise {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let raise = Raise(Arc::new(AtomicBool::new(false)));
    let stop = Arc::clone(&raise.0);
    let job = tokio::task::spawn_blocking(move || work(&|| stop.load(Ordering::Relaxed)));
    match job.await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends: so does everything that waits here.
            Err(_) => std::future::pending().await,
        },
    }
}
