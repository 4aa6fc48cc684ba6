//! Limits of steps and runs, and signals to this program: both end the child processes.

use std::collections::BTreeSet;
use std::io;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::tree;
use crate::duration::parse_duration;
use crate::term;

/// Time between SIGTERM and SIGKILL, and between SIGKILL and giving up.
const GRACE: Duration = Duration::from_secs(5);

/// Interval between two checks of the limits.
const TICK: Duration = Duration::from_millis(50);

/// Time in which the code of a span must return after its children were ended.
const RETURN_TIMEOUT: Duration = Duration::from_secs(60);

static WATCHED: Mutex<Watched> = Mutex::new(Watched {
    next: 0,
    spans: Vec::new(),
    children: Vec::new(),
    is_interrupted: false,
    hook: None,
});

/// The children that run, and the limits that apply.
struct Watched {
    next: u64,
    spans: Vec<Span>,
    children: Vec<WatchedChild>,
    is_interrupted: bool,
    hook: Option<Box<dyn Fn() + Send>>,
}

/// A piece of work with a limit.
struct Span {
    id: u64,
    what: String,
    /// The variable that changes the limit.
    variable: &'static str,
    begun: Instant,
    limit: Duration,
    /// A description of what was ended when the limit was reached.
    ended: Option<String>,
}

struct WatchedChild {
    id: u64,
    group: Pid,
    shown: String,
    begun: Instant,
}

fn watched() -> MutexGuard<'static, Watched> {
    // No code that holds the lock leaves it half changed.
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watched {
    fn take_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Describes the children that were started since.
    fn running_since(&self, id: u64) -> String {
        let children = self.children.iter().filter(|child| child.id > id);
        let shown = children.map(|child| {
            let time = term::format_duration(child.begun.elapsed());
            format!("`{}` (for {time})", child.shown)
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

/// Starts to watch for limits and for signals. Orphaned descendants become children of this
/// process, so that they are found.
pub(crate) fn guard() -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot watch for signals: {error}");
    set_child_subreaper(Some(getpid())).map_err(|error| failed(error.into()))?;
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(failed)?;
    thread::spawn(move || signals.forever().for_each(interrupt));
    thread::spawn(|| {
        loop {
            thread::sleep(TICK);
            expire();
        }
    });
    Ok(())
}

/// Sets a hook that is called before a signal ends the children.
pub(crate) fn on_interrupt(hook: impl Fn() + Send + 'static) {
    watched().hook = Some(Box::new(hook));
}

/// Does not return if this program was interrupted: the signal ends it.
pub(crate) fn hold_if_interrupted() {
    while watched().is_interrupted {
        thread::sleep(TICK);
    }
}

/// Does work under a limit. When the limit is reached, ends all children that the work started, and
/// starts no more of them. `variable` is the environment variable that sets another limit.
///
/// # Errors
/// Returns the error of the work, or a description of the processes that were ended.
pub(crate) fn within<T>(
    what: &str,
    limit: Duration,
    variable: &'static str,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let span = begin_span(what, limit_or(variable, limit), variable);
    let result = work();
    let hung = end_span(span);
    match (hung, result) {
        (None, result) => result,
        (Some(hung), Ok(_)) => Err(hung),
        (Some(hung), Err(error)) => Err(format!("{hung}\n{error}")),
    }
}

/// Returns the limit that an environment variable sets, or another one. `main` refuses a variable
/// that is not a time.
pub(crate) fn limit_or(variable: &str, limit: Duration) -> Duration {
    let given = std::env::var(variable).ok();
    let given = given.and_then(|text| parse_duration(&text).ok());
    given.unwrap_or(limit)
}

fn begin_span(what: &str, limit: Duration, variable: &'static str) -> u64 {
    let mut watched = watched();
    let id = watched.take_id();
    watched.spans.push(Span {
        id,
        what: what.to_owned(),
        variable,
        begun: Instant::now(),
        limit,
        ended: None,
    });
    id
}

/// Ends a span; returns a description of the ended processes if it exceeded its limit.
fn end_span(id: u64) -> Option<String> {
    let mut watched = watched();
    let at = watched.spans.iter().position(|span| span.id == id)?;
    let span = watched.spans.remove(at);
    let ended = span.ended?;
    let (what, time) = (&span.what, term::format_duration(span.limit));
    let variable = span.variable;
    Some(format!(
        "`{what}` hung: not over after {time}; ended: {ended}; more time: {variable}=2h"
    ))
}

/// Starts a child, unless its time is over.
pub(super) fn start(
    shown: &str,
    spawn: impl FnOnce() -> io::Result<Child>,
) -> Result<(Child, u64), String> {
    // Under the lock, so that none is started while the others are ended.
    let mut watched = watched();
    if watched.is_interrupted {
        return Err(format!("interrupted before `{shown}`"));
    }
    if let Some(span) = watched.spans.iter().find(|span| span.ended.is_some()) {
        return Err(format!("`{}` has no time left for `{shown}`", span.what));
    }
    let child = spawn().map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::NotFound => "; is it installed? get proof tools: cargo xtask setup",
            _ => "",
        };
        format!("cannot start `{shown}`: {error}{advice}")
    })?;
    let id = watched.take_id();
    watched.children.push(WatchedChild {
        id,
        group: Pid::from_child(&child),
        shown: shown.to_owned(),
        begun: Instant::now(),
    });
    Ok((child, id))
}

/// Removes a child that has ended.
pub(super) fn forget(id: u64) {
    watched().children.retain(|child| child.id != id);
}

/// Ends processes: SIGTERM, and SIGKILL for those that still run after a grace period. Processes
/// that were found once are ended even if they are not found again because their parent is gone.
pub(super) fn end(find: impl Fn() -> Vec<Pid>) {
    let mut known = BTreeSet::new();
    for signal in [Signal::TERM, Signal::KILL] {
        let begun = Instant::now();
        let mut told = BTreeSet::new();
        loop {
            known.extend(find().into_iter().map(|pid| pid.as_raw_nonzero()));
            let all = known.iter().filter_map(|raw| Pid::from_raw(raw.get()));
            let left: Vec<Pid> = all.filter(|pid| tree::is_alive(*pid)).collect();
            if left.is_empty() {
                return;
            }
            for pid in left
                .into_iter()
                .filter(|pid| told.insert(pid.as_raw_nonzero()))
            {
                // Processes that have exited need no signal. A stopped process exits once it
                // continues.
                let _ = kill_process(pid, signal);
                let _ = kill_process(pid, Signal::CONT);
            }
            if begun.elapsed() > GRACE {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Ends the children of each span that has reached its limit.
fn expire() {
    let mut groups = Vec::new();
    let mut stuck = None;
    {
        let mut watched = watched();
        for at in 0..watched.spans.len() {
            let span = &watched.spans[at];
            let since = span.begun.elapsed();
            if since > span.limit + RETURN_TIMEOUT {
                stuck = Some(span.what.clone());
            }
            if span.ended.is_some() || since < span.limit {
                continue;
            }
            let (id, what) = (span.id, span.what.clone());
            let running = watched.running_since(id);
            let time = term::format_duration(since);
            term::note(&format!(
                "`{what}` is not over after {time}: ends {running}"
            ));
            let children = watched.children.iter().filter(|child| child.id > id);
            groups.extend(children.map(|child| child.group));
            watched.spans[at].ended = Some(running);
        }
    }
    if !groups.is_empty() {
        end(|| {
            groups
                .iter()
                .flat_map(|group| tree::members(*group))
                .collect()
        });
    }
    if let Some(what) = stuck {
        term::error(&format!("`{what}` hung, and did not end with its children"));
        end(|| tree::descendants(getpid()));
        signal_hook::low_level::exit(1);
    }
}

/// Ends all children, and then this program as the signal would have.
fn interrupt(signal: i32) {
    let hook = watched().hook.take();
    if let Some(hook) = hook {
        hook();
    }
    let (running, at) = {
        let mut watched = watched();
        watched.is_interrupted = true;
        let at: Vec<&str> = watched
            .spans
            .iter()
            .map(|span| span.what.as_str())
            .collect();
        (watched.running_since(0), at.join(" > "))
    };
    if !running.is_empty() {
        term::note(&format!("interrupted in {at}: ends {running}"));
    }
    end(|| tree::descendants(getpid()));
    // It does not return for these signals.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}
