//! An actor that serves files below one directory.
//!
//! Each request of this module is sent to a [`Files`] actor and answered with a `Result` whose
//! error is a [`FileError`]. Paths are relative to the root, or absolute and below it; a
//! `file:///` URI is accepted in place of a path.
//!
//! ```
//! use strowger::{ActorSystem, BoxError};
//! use strowger_tools::files::{Files, FilesSpec, SearchRequest, WriteRequest};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! # let folder = tempfile::tempdir()?;
//! let system = ActorSystem::new("office")?;
//! let files = system.spawn::<Files>("files", FilesSpec::new(folder.path()))?;
//! files.ask(WriteRequest::new("list.txt", "milk\nbread\n")).await??;
//!
//! let search = SearchRequest {
//!     text: Some("^bread$".into()),
//!     ..SearchRequest::default()
//! };
//! let results = files.ask(search).await??;
//! assert_eq!((&*results.matches[0].path, results.matches[0].line), ("list.txt", Some(2)));
//! # Ok(())
//! # }
//! ```
//!
//! # Implementation
//!
//! ```text
//! a path ─▶ path      checked: relative to the root, no NUL, not too long or deep
//!           disk      opened through the root's handle: the kernel refuses to leave the root
//!           quota     checked before anything is added
//!           read, write, edit, walk, search
//! ```
//!
//! Short operations run on the worker: waking up a blocking thread takes longer than reading a
//! page. Long operations run on blocking threads. The actor waits for those that write, but not for
//! those that only read (lines, lists, trees, searches).

mod disk;
mod edit;
mod error;
mod export;
mod lines;
mod link;
mod message;
mod path;
mod read;
mod replace;
mod search;
mod spec;
mod stats;
mod temp_file;
mod walk;
mod write;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use strowger::{Ask, BoxError, Context, Reply, handlers};

use disk::{Disk, StopCheck};
pub use error::{FileError, FileRule};
pub use message::{
    AppendRequest, BeginWriteRequest, CommitWriteRequest, CreateDirectoryRequest, DeleteRequest,
    EditOutcome, EditRequest, EntryInfo, EntryKind, FilePart, FilesUsage, FilesUsageRequest,
    ListOrder, ListRequest, Listing, MediaFile, ReadLinesRequest, ReadManyRequest,
    ReadMediaRequest, ReadRequest, RenameRequest, RootInfo, RootRequest, SearchMatch,
    SearchRequest, SearchResults, SkipSummary, SkippedPath, StatRequest, TextChange, TreeCut,
    TreeEntry, TreeRequest, VerbUsage, WriteMode, WriteRequest,
};
pub use path::{file_uri, path_of_file_uri, shown_path};
pub use spec::{FileLimits, FilesSpec};
pub use stats::FilesWatch;
use stats::{CallRecord, CallRecorder, Verb};

/// An actor that reads and writes files below one directory, and nowhere else.
#[derive(Debug)]
pub struct Files {
    disk: Arc<Disk>,
    recorder: CallRecorder,
}

/// Maximum number of bytes to read or write on the worker; larger operations run on a blocking
/// thread.
const MAX_INLINE_BYTES: u64 = 256 << 10;

/// Number of directory entries to list on the worker before moving to a blocking thread.
const MAX_INLINE_ENTRIES: usize = 512;

/// The message that background work sends to the actor when it ends: the record of an answered
/// call, or `None` after the removal of abandoned temporary files.
#[doc(hidden)]
#[derive(Debug)]
pub struct BackgroundDone(Option<CallRecord<'static>>);

#[handlers]
impl strowger::Actor for Files {
    type Args = FilesSpec;
    type Error = BoxError;

    /// Maximum number of concurrent lists, trees and searches; while all are in use, the actor
    /// waits for the next one.
    const PIPES: usize = 8;

    async fn pre_start(spec: FilesSpec, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let (root, watch) = (spec.root.clone(), spec.watch.clone());
        // Opening the root may block on a slow disk.
        let disk = on_blocking_thread(move |_| Disk::open(&spec)).await;
        let disk = disk.map_err(|error| format!("root {}: {error}", root.display()))?;
        let disk = Arc::new(disk);
        let recorder = CallRecorder::new(cx.path().to_string(), watch, &disk);
        Ok(Self { disk, recorder })
    }

    async fn read(&mut self, ask: Ask<ReadRequest>) {
        let Ask { request, reply } = ask;
        let outcome = self.read_file(&request).await;
        self.record_call(Verb::Read, &request.path, &outcome, |bytes| bytes.len());
        reply.send(outcome);
    }

    async fn read_lines(&mut self, ask: Ask<ReadLinesRequest>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let path = request.path.clone();
        let work = move |disk: &Disk, stop: StopCheck<'_>| disk.read_lines(&request, stop);
        let work = (work, Bytes::len as fn(&Bytes) -> usize);
        self.run_in_background(Verb::Read, path, work, reply, cx)
            .await;
    }

    async fn read_many(&mut self, ask: Ask<ReadManyRequest>) {
        let Ask { request, reply } = ask;
        let mut left = self.disk.limits.file;
        let mut outcomes = Vec::new();
        for path in &request.paths {
            let most = ReadRequest {
                path: path.clone(),
                offset: 0,
                length: None,
            };
            let mut outcome = self.read_file(&most).await;
            if let Ok(bytes) = &outcome {
                match left.checked_sub(bytes.len() as u64) {
                    Some(rest) => left = rest,
                    None => {
                        outcome = Err(FileError::Limit {
                            path: path.clone(),
                            rule: FileRule::Size,
                            limit: self.disk.limits.file,
                            used: self.disk.limits.file - left,
                            wanted: bytes.len() as u64,
                        });
                    }
                }
            }
            self.record_call(Verb::Read, path, &outcome, |bytes| bytes.len());
            outcomes.push(outcome);
        }
        reply.send(Ok(outcomes));
    }

    async fn read_media(&mut self, ask: Ask<ReadMediaRequest>) {
        let Ask { request, reply } = ask;
        let outcome = self.read_file(&ReadRequest::new(&request.path)).await;
        self.record_call(Verb::Read, &request.path, &outcome, |bytes| bytes.len());
        let mime = mime_guess::from_path(&request.path).first_or_octet_stream();
        reply.send(outcome.map(|bytes| MediaFile {
            mime: mime.to_string(),
            bytes,
        }));
    }

    async fn write(&mut self, ask: Ask<WriteRequest>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let bytes = request.bytes.len();
        let path = request.path.clone();
        let long = bytes as u64 > MAX_INLINE_BYTES || request.mode == WriteMode::Durable;
        let outcome = self
            .run_change(long, move |disk| disk.write(&request))
            .await;
        self.record_call(Verb::Write, &path, &outcome, |()| bytes);
        reply.send(outcome);
        self.remove_leftovers(cx);
    }

    async fn append(&mut self, ask: Ask<AppendRequest>) {
        let Ask { request, reply } = ask;
        let bytes = request.bytes.len();
        let path = request.path.clone();
        let long = bytes as u64 > MAX_INLINE_BYTES;
        let outcome = self
            .run_change(long, move |disk| disk.append(&request))
            .await;
        self.record_call(Verb::Append, &path, &outcome, |()| bytes);
        reply.send(outcome);
    }

    async fn begin_write(&mut self, ask: Ask<BeginWriteRequest>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let outcome = self.explain(self.disk.begin_write(&request));
        self.record_call(Verb::Write, &request.path, &outcome, |_| 0);
        reply.send(outcome);
        self.remove_leftovers(cx);
    }

    async fn commit_write(&mut self, ask: Ask<CommitWriteRequest>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let path = request.path.clone();
        // May take long: where the file cannot be replaced, it is copied.
        let outcome = self
            .run_change(true, move |disk| disk.commit_write(&request))
            .await;
        self.record_call(Verb::Write, &path, &outcome, |()| 0);
        reply.send(outcome);
        self.remove_leftovers(cx);
    }

    async fn edit(&mut self, ask: Ask<EditRequest>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let path = request.path.clone();
        let outcome = self.run_change(true, move |disk| disk.edit(&request)).await;
        self.record_call(Verb::Edit, &path, &outcome, |edited| edited.diff.len());
        reply.send(outcome);
        self.remove_leftovers(cx);
    }

    async fn create_directory(&mut self, ask: Ask<CreateDirectoryRequest>) {
        let Ask { request, reply } = ask;
        let outcome = self.explain(self.disk.create_directory(&request));
        self.record_call(Verb::Make, &request.path, &outcome, |()| 0);
        reply.send(outcome);
    }

    async fn rename(&mut self, ask: Ask<RenameRequest>) {
        let Ask { request, reply } = ask;
        let path = request.from.clone();
        // May take long: a directory is measured before it moves.
        let outcome = self
            .run_change(true, move |disk| disk.rename(&request))
            .await;
        self.record_call(Verb::Rename, &path, &outcome, |()| 0);
        reply.send(outcome);
    }

    async fn delete(&mut self, ask: Ask<DeleteRequest>) {
        let Ask { request, reply } = ask;
        let path = request.path.clone();
        let long = request.recursive;
        let outcome = self
            .run_change(long, move |disk| disk.delete(&request))
            .await;
        self.record_call(Verb::Delete, &path, &outcome, |()| 0);
        reply.send(outcome);
    }

    async fn stat(&mut self, ask: Ask<StatRequest>) {
        let Ask { request, reply } = ask;
        let outcome = self.explain(self.disk.stat(&request.path));
        self.record_call(Verb::Stat, &request.path, &outcome, |_| 0);
        reply.send(outcome);
    }

    async fn list(&mut self, ask: Ask<ListRequest>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let begun = self.disk.list(&request).and_then(|mut lister| {
            let all = lister.step(MAX_INLINE_ENTRIES)?;
            Ok((lister, all))
        });
        match begun {
            Ok((mut lister, false)) => {
                let path = request.path.clone();
                let work = move |_: &Disk, stop: StopCheck<'_>| {
                    while !lister.step(MAX_INLINE_ENTRIES)? {
                        if stop() {
                            let path = request.path.clone();
                            return Err(FileError::Cancelled { path });
                        }
                    }
                    Ok(lister.finish())
                };
                self.run_in_background(Verb::List, path, (work, no_bytes), reply, cx)
                    .await;
            }
            begun => {
                let outcome = self.explain(begun.map(|(lister, _)| lister.finish()));
                self.record_call(Verb::List, &request.path, &outcome, |_| 0);
                reply.send(outcome);
            }
        }
    }

    async fn tree(&mut self, ask: Ask<TreeRequest>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let path = request.path.clone();
        let work = move |disk: &Disk, stop: StopCheck<'_>| disk.tree(&request, stop);
        self.run_in_background(Verb::Tree, path, (work, no_bytes), reply, cx)
            .await;
    }

    async fn search(&mut self, ask: Ask<SearchRequest>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let path = request.path.clone();
        let work = move |disk: &Disk, stop: StopCheck<'_>| disk.search(&request, stop);
        self.run_in_background(Verb::Search, path, (work, no_bytes), reply, cx)
            .await;
    }

    async fn background_done(
        &mut self,
        BackgroundDone(record): BackgroundDone,
        cx: &mut Context<Self>,
    ) {
        match record {
            Some(record) => self.recorder.record(&record),
            None => self.remove_leftovers(cx),
        }
    }

    async fn root_info(&mut self, ask: Ask<RootRequest>) {
        let name = &self.disk.root_path;
        let (path, uri) = read::display_name(name.as_os_str(), || name);
        ask.reply.send(Ok(RootInfo {
            path,
            uri,
            read_only: self.disk.read_only,
            file: self.disk.limits.file,
        }));
    }

    async fn usage(&mut self, ask: Ask<FilesUsageRequest>) {
        ask.reply.send(self.recorder.usage());
    }
}

impl Files {
    fn explain<T>(&self, outcome: Result<T, FileError>) -> Result<T, FileError> {
        outcome.map_err(|error| self.disk.explained(error))
    }

    /// Reads a file; a long one is read on a blocking thread.
    async fn read_file(&self, read: &ReadRequest) -> Result<Bytes, FileError> {
        let opened = self.explain(self.disk.open_read(read))?;
        if opened.length <= MAX_INLINE_BYTES {
            return opened.read();
        }
        on_blocking_thread(move |_| opened.read()).await
    }

    /// Performs an operation that changes something, while the actor waits.
    async fn run_change<T, F>(&self, long: bool, work: F) -> Result<T, FileError>
    where
        T: Send + 'static,
        F: FnOnce(&Disk) -> Result<T, FileError> + Send + 'static,
    {
        if !long {
            return self.explain(work(&self.disk));
        }
        let disk = Arc::clone(&self.disk);
        self.explain(on_blocking_thread(move |_| work(&disk)).await)
    }

    /// Starts to remove temporary files of killed writers from a directory where a file was
    /// replaced. Runs in the background, after the answer, and only if enough pipes are free for
    /// calls.
    fn remove_leftovers(&self, cx: &mut Context<Self>) {
        if cx.pipes() >= <Self as strowger::Actor>::PIPES / 2 {
            return; // The next write tries again.
        }
        let Some(dir) = self.disk.sweeps.take_due(Instant::now()) else {
            return;
        };
        let disk = Arc::clone(&self.disk);
        let piped = cx.pipe(
            on_blocking_thread(move |stop| disk.remove_abandoned(&dir, stop)),
            |()| BackgroundDone(None),
        );
        debug_assert!(piped.is_ok(), "there was room for it");
    }

    /// Performs a read-only operation in the background, while the actor handles other messages.
    /// The operation is cancelled when its caller stops waiting.
    #[expect(
        clippy::needless_pass_by_ref_mut,
        reason = "a shared borrow that is held while it waits would ask actors to be Sync"
    )]
    async fn run_in_background<T, F>(
        &mut self,
        verb: Verb,
        path: String,
        (work, bytes): (F, fn(&T) -> usize),
        reply: Reply<Result<T, FileError>>,
        cx: &mut Context<Self>,
    ) where
        T: Send + 'static,
        F: FnOnce(&Disk, StopCheck<'_>) -> Result<T, FileError> + Send + 'static,
    {
        let disk = Arc::clone(&self.disk);
        let job = on_blocking_thread(move |stop| {
            let outcome = work(&disk, &|| stop() || !reply.is_waiting());
            let outcome = outcome.map_err(|error| disk.explained(error));
            let bytes = outcome.as_ref().map_or(0, bytes);
            let record = CallRecord::new(verb, path, &outcome, bytes);
            reply.send(outcome);
            BackgroundDone(Some(record))
        });
        if cx.pipes() < <Self as strowger::Actor>::PIPES {
            let piped = cx.pipe(job, |done| done);
            debug_assert!(piped.is_ok(), "there was room for it");
        } else {
            let BackgroundDone(record) = job.await;
            record
                .iter()
                .for_each(|record| self.recorder.record(record));
        }
    }

    fn record_call<T>(
        &self,
        verb: Verb,
        path: &str,
        outcome: &Result<T, FileError>,
        bytes: impl FnOnce(&T) -> usize,
    ) {
        let bytes = outcome.as_ref().map_or(0, bytes);
        self.recorder
            .record(&CallRecord::new(verb, path, outcome, bytes));
    }
}

/// The byte count of a reply without file contents.
fn no_bytes<T>(_: &T) -> usize {
    0
}

/// Runs `work` on a blocking thread. If the returned future is dropped, `work` sees `true` from its
/// stop check.
async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce(StopCheck<'_>) -> T + Send + 'static,
) -> T {
    struct StopOnDrop(Arc<AtomicBool>);
    impl Drop for StopOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop_on_drop = StopOnDrop(Arc::new(AtomicBool::new(false)));
    let stop = Arc::clone(&stop_on_drop.0);
    let job = tokio::task::spawn_blocking(move || work(&|| stop.load(Ordering::Relaxed)));
    match job.await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down, and drops everything that waits here.
            Err(_) => std::future::pending().await,
        },
    }
}
