//! The last lines of the log, kept for clients of the running node: `strowger logs`.
//!
//! Each line is attributed to the actor inside whose hook it was written, or to the one that it
//! names as `path`. Writers never wait for readers: a reader that is too slow loses lines, which
//! are counted.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde_json::{Value, json};
use strowger::{ActorPath, PathPattern};
use tokio::time::Sleep;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context as LayerContext, Layer};

/// Returns the log ring of this process.
pub(crate) fn log_ring() -> &'static LogRing {
    static RING: OnceLock<LogRing> = OnceLock::new();
    RING.get_or_init(LogRing::default)
}

/// The last lines of the log.
#[derive(Debug, Default)]
pub(crate) struct LogRing(Mutex<LogRingState>);

#[derive(Debug, Default)]
struct LogRingState {
    lines: VecDeque<LogLine>,
    /// Number of lines written so far.
    written: u64,
    /// Readers that wait for the next line.
    wakers: Vec<Waker>,
}

#[derive(Clone, Debug)]
struct LogLine {
    at: SystemTime,
    level: Level,
    target: &'static str,
    path: Option<ActorPath>,
    text: String,
}

/// Maximum number of lines kept.
const MAX_LINES: usize = 4096;
/// Maximum length of a line, in bytes.
const MAX_LINE_BYTES: usize = 2048;

/// A filter for lines.
#[derive(Clone, Debug)]
pub(crate) struct LogFilter {
    /// The actors whose lines are read; all lines if not set.
    pub(crate) actors: Option<ActorSelection>,
    /// The least severe level.
    pub(crate) level: Level,
    /// Number of past lines that are read first.
    pub(crate) last: usize,
    /// Time for which new lines are followed.
    pub(crate) follow: Duration,
}

/// An actor with all actors below it, or the actors that match a pattern.
#[derive(Clone, Debug)]
pub(crate) enum ActorSelection {
    Below(String),
    Like(PathPattern),
}

impl ActorSelection {
    /// Parses a path or a pattern.
    pub(crate) fn of(text: &str) -> Result<Self, String> {
        if text.starts_with('/') && !text.contains('*') {
            return Ok(Self::Below(text.trim_end_matches('/').to_owned()));
        }
        let pattern = text.parse();
        pattern
            .map(Self::Like)
            .map_err(|error| format!("pattern {text:?}: {error}"))
    }

    fn contains(&self, path: &ActorPath) -> bool {
        match self {
            Self::Below(top) => {
                let rest = path.as_str().strip_prefix(top.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            Self::Like(pattern) => pattern.matches(path),
        }
    }
}

impl LogFilter {
    fn matches(&self, line: &LogLine) -> bool {
        // In `tracing`, more severe levels compare as less.
        line.level <= self.level
            && self
                .actors
                .as_ref()
                .is_none_or(|actors| line.path.as_ref().is_some_and(|path| actors.contains(path)))
    }
}

impl LogRing {
    fn write(&self, line: LogLine) {
        let wakers = {
            let mut state = self.0.lock();
            if state.lines.len() >= MAX_LINES {
                state.lines.pop_front();
            }
            state.lines.push_back(line);
            state.written += 1;
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Reads the last lines, and then new ones.
    pub(crate) fn read(&'static self, filter: LogFilter) -> LogReader {
        let state = self.0.lock();
        let first = state.written - state.lines.len() as u64;
        let fitting = (first..).zip(&state.lines);
        let fitting: Vec<u64> = fitting
            .filter(|(_, line)| filter.matches(line))
            .map(|(number, _)| number)
            .collect();
        let from = fitting.len().saturating_sub(filter.last);
        let next = fitting.get(from).copied().unwrap_or(state.written);
        drop(state);
        LogReader {
            ring: self,
            next,
            lost: 0,
            over: false,
            until: (!filter.follow.is_zero()).then(|| Box::pin(tokio::time::sleep(filter.follow))),
            filter,
        }
    }
}

/// A reader of the log ring.
#[derive(Debug)]
pub(crate) struct LogReader {
    ring: &'static LogRing,
    filter: LogFilter,
    /// The number of the next line to look at.
    next: u64,
    lost: u64,
    over: bool,
    until: Option<Pin<Box<Sleep>>>,
}

impl LogReader {
    /// Returns the next line; the final one has the number of lost lines.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Value>> {
        if self.over {
            return Poll::Ready(None);
        }
        if let Some(line) = self.next_line(cx) {
            return Poll::Ready(Some(line.to_json()));
        }
        let following = self.until.as_mut();
        if following.is_some_and(|until| until.as_mut().poll(cx).is_pending()) {
            return Poll::Pending;
        }
        self.over = true;
        Poll::Ready(Some(json!({ "end": true, "lost": self.lost })))
    }

    fn next_line(&mut self, cx: &Context<'_>) -> Option<LogLine> {
        let mut state = self.ring.0.lock();
        let first = state.written - state.lines.len() as u64;
        self.lost += first.saturating_sub(self.next);
        self.next = self.next.max(first);
        while self.next < state.written {
            let at = usize::try_from(self.next - first).unwrap_or(usize::MAX);
            self.next += 1;
            if let Some(line) = state.lines.get(at).filter(|line| self.filter.matches(line)) {
                return Some(line.clone());
            }
        }
        if !state.wakers.iter().any(|one| one.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        None
    }
}

impl LogLine {
    fn to_json(&self) -> Value {
        let since = self.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        json!({
            "at_us": u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
            "level": self.level.as_str().to_lowercase(),
            "target": self.target,
            "path": self.path.as_ref().map(ActorPath::as_str),
            "text": self.text,
        })
    }
}

/// A `tracing` layer that writes events into the log ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogRingLayer;

impl<S: Subscriber> Layer<S> for LogRingLayer {
    fn on_event(&self, event: &Event<'_>, _: LayerContext<'_, S>) {
        let mut text = LineText::default();
        event.record(&mut text);
        let named = text.path.take().map(|path| ActorPath::from(path.as_str()));
        log_ring().write(LogLine {
            at: SystemTime::now(),
            level: *event.metadata().level(),
            target: event.metadata().target(),
            path: ActorPath::current().or(named),
            text: text.finish(),
        });
    }
}

/// The message and the fields of a line.
#[derive(Debug, Default)]
struct LineText {
    message: String,
    fields: String,
    path: Option<String>,
}

impl LineText {
    fn finish(mut self) -> String {
        self.message.push_str(&self.fields);
        if self.message.len() > MAX_LINE_BYTES {
            let end = (0..=MAX_LINE_BYTES)
                .rev()
                .find(|&at| self.message.is_char_boundary(at));
            self.message.truncate(end.unwrap_or(0));
            self.message.push_str(" ...");
        }
        self.message
    }
}

impl Visit for LineText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a `String` cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
        if field.name() == "path" {
            let path = format!("{value:?}");
            self.path = path.starts_with('/').then_some(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: usize, path: &str) -> LogLine {
        LogLine {
            at: UNIX_EPOCH,
            level: Level::WARN,
            target: "test",
            path: Some(ActorPath::from(path)),
            text: number.to_string(),
        }
    }

    fn filter(actors: &str, last: usize) -> LogFilter {
        LogFilter {
            actors: Some(ActorSelection::of(actors).expect("it is one")),
            level: Level::INFO,
            last,
            follow: Duration::ZERO,
        }
    }

    /// Returns the texts of the lines, and the number of lost ones.
    fn all(mut reader: LogReader) -> (Vec<String>, u64) {
        let mut cx = Context::from_waker(Waker::noop());
        let mut texts = Vec::new();
        while let Poll::Ready(Some(line)) = reader.poll_next(&mut cx) {
            if line["end"] == true {
                return (texts, line["lost"].as_u64().expect("a number"));
            }
            texts.push(line["text"].as_str().expect("text").to_owned());
        }
        panic!("it does not end");
    }

    fn empty() -> &'static LogRing {
        Box::leak(Box::default())
    }

    #[test]
    fn last_lines_of_a_subtree_are_read() {
        let ring = empty();
        for number in 0..10 {
            ring.write(line(number, ["/a/b", "/a", "/ab"][number % 3]));
        }
        let texts = |actors, last| all(ring.read(filter(actors, last))).0;
        assert_eq!(texts("/a", 100), ["0", "1", "3", "4", "6", "7", "9"]);
        assert_eq!(texts("/a", 2), ["7", "9"]);
        assert_eq!(texts("/a/b", 1), ["9"]);
        assert_eq!(texts("/*b", 100), ["2", "5", "8"]);
        assert_eq!(texts("/c", 100), Vec::<String>::new());
    }

    #[test]
    fn slow_reader_learns_how_many_lines_it_lost() {
        let ring = empty();
        ring.write(line(0, "/a"));
        let reader = ring.read(filter("/a", 10));
        for number in 1..=MAX_LINES + 2 {
            ring.write(line(number, "/a"));
        }
        let (texts, lost) = all(reader);
        assert_eq!((texts.len(), lost), (MAX_LINES, 3));
        assert_eq!(texts[0], "3");
    }
}
