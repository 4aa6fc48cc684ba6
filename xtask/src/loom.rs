//! `cargo xtask loom`: every order in which threads can meet in the small machines of the runtime.
//!
//! The models stand beside the code (`src/**/loom.rs`) and check that very code, through
//! `crate::sync`. So that they are known to look, an ordering is weakened in a copy of the crate,
//! one at a time: each time a model has to fail.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::binaries;
use crate::project::Project;
use crate::{Outcome, step, term};

/// How many times the scheduler may take the processor from a thread that could go on; loom's
/// authors find that two or three find nearly everything.
const PREEMPTIONS: &str = "3";

/// A model that needs longer than this has lost its way.
const LIMIT: Duration = Duration::from_secs(600);

/// An ordering, or a step, that the code cannot do without.
struct Weakening {
    /// What is lost.
    name: &'static str,
    /// Where, below `crates/runtime/src`.
    file: &'static str,
    /// What stands there: it has to occur exactly once.
    from: &'static str,
    to: &'static str,
}

/// One for each ordering on which a model depends.
const WEAKENINGS: &[Weakening] = &[
    Weakening {
        name: "what the last one did is seen",
        file: "schedule/strand/lock.rs",
        from: "let free = self
            .taken
            .compare_exchange(false, true, Ordering::Acquire",
        to: "let free = self
            .taken
            .compare_exchange(false, true, Ordering::Relaxed",
    },
    Weakening {
        name: "what the last one did is seen after a wait",
        file: "schedule/strand/lock.rs",
        from: ".compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()",
        to: ".compare_exchange(false, true, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()",
    },
    Weakening {
        name: "what was done is shown to the next one",
        file: "schedule/strand/lock.rs",
        from: "store(false, Ordering::Release)",
        to: "store(false, Ordering::Relaxed)",
    },
    Weakening {
        name: "a value is shown with the slot that is full",
        file: "schedule/strand/slot.rs",
        from: "slot.state.store(FULL, Ordering::Release)",
        to: "slot.state.store(FULL, Ordering::Relaxed)",
    },
    Weakening {
        name: "who looks for a value sees what was put in",
        file: "schedule/strand/slot.rs",
        from: "self.slot().state.load(Ordering::Acquire) == FULL",
        to: "self.slot().state.load(Ordering::Relaxed) == FULL",
    },
    Weakening {
        name: "who waits for a value is woken",
        file: "schedule/strand/slot.rs",
        from: "if now & WAITS != 0 {",
        to: "if now & WAITS == 8 {",
    },
    Weakening {
        name: "who frees a slot has seen the other leave it",
        file: "schedule/strand/slot.rs",
        from: "compare_exchange(empty, LEFT, Ordering::AcqRel, Ordering::Relaxed)",
        to: "compare_exchange(empty, LEFT, Ordering::Relaxed, Ordering::Relaxed)",
    },
    Weakening {
        name: "whoever found a task queued is seen in its turn",
        file: "schedule/seeded/queued.rs",
        from: "self.0.swap(false, Ordering::AcqRel);",
        to: "self.0.store(false, Ordering::Release);",
    },
    Weakening {
        name: "a phase is shown with what was done before it",
        file: "cell/stand.rs",
        from: "self.0.store(now & !bits | to, Ordering::Release);",
        to: "self.0.store(now & !bits | to, Ordering::Relaxed);",
    },
    Weakening {
        name: "who sees a phase sees what was done before it",
        file: "cell/stand.rs",
        from: "Phase::from_bits(self.0.load(Ordering::Acquire) & PHASE)",
        to: "Phase::from_bits(self.0.load(Ordering::Relaxed) & PHASE)",
    },
    Weakening {
        name: "a mark is set in one step",
        file: "cell/marks.rs",
        from: "self.0.fetch_or(mark, Ordering::Release);",
        to: "let marks = self.0.load(Ordering::Acquire);
        self.0.store(marks | mark, Ordering::Release);",
    },
    Weakening {
        name: "a mark is cleared in one step",
        file: "cell/marks.rs",
        from: "self.0.fetch_and(!mark, Ordering::Release);",
        to: "let marks = self.0.load(Ordering::Acquire);
        self.0.store(marks & !mark, Ordering::Release);",
    },
    Weakening {
        name: "who comes in sees that it was shut before",
        file: "branch/latch.rs",
        from: "marks if marks & USED == 0 => self.state.fetch_or(USED, Ordering::AcqRel),",
        to: "marks if marks & USED == 0 => {
                self.state.fetch_or(USED, Ordering::AcqRel);
                marks
            }",
    },
    Weakening {
        name: "who shuts sees that somebody came in before",
        file: "branch/latch.rs",
        from: "if marks & USED == 0 && shut().is_ok() {",
        to: "let late = || self.state.fetch_or(SHUT, Ordering::AcqRel) > 0;
        if marks & USED == 0 && (shut().is_ok() || late()) {",
    },
    Weakening {
        name: "who is next is shown to who takes it",
        file: "schedule/strand/next.rs",
        from: "self.place.state.store(FULL, Ordering::Release)",
        to: "self.place.state.store(FULL, Ordering::Relaxed)",
    },
    Weakening {
        name: "who takes the next one sees it",
        file: "schedule/strand/next.rs",
        from: "compare_exchange(FULL, HELD, Ordering::Acquire,",
        to: "compare_exchange(FULL, HELD, Ordering::Relaxed,",
    },
    Weakening {
        name: "a place is left as it is shown",
        file: "schedule/strand/next.rs",
        from: "place.state.store(EMPTY, Ordering::Release)",
        to: "place.state.store(EMPTY, Ordering::Relaxed)",
    },
    Weakening {
        name: "who fills a place sees that it was left",
        file: "schedule/strand/next.rs",
        from: "if self.place.state.load(Ordering::Acquire) != EMPTY {",
        to: "if self.place.state.load(Ordering::Relaxed) != EMPTY {",
    },
    Weakening {
        name: "one that is held loses who is next as well",
        file: "schedule/pool/seat.rs",
        from: "let next = if all { victim.next.take() } else { None };",
        to: "let next = None;",
    },
    Weakening {
        name: "a wake during the turn is noted",
        file: "schedule/strand.rs",
        from: "self.0.state = State::Woken",
        to: "self.0.state = State::Running",
    },
    Weakening {
        name: "a wake during the turn leads to another",
        file: "schedule/strand.rs",
        from: "if run.state == State::Woken {",
        to: "if run.state == State::Off {",
    },
    Weakening {
        name: "who finds the actor receiving wakes it",
        file: "mailbox.rs",
        from: "    if lanes.receiving {",
        to: "    if lanes.newcomer {",
    },
    Weakening {
        name: "the actor says that it waits",
        file: "mailbox/receiver.rs",
        from: "self.receiving = rests;",
        to: "self.receiving = false;",
    },
    Weakening {
        name: "what came while the turn ended leads to another",
        file: "mailbox/receiver.rs",
        from: "let rests = self.user.is_empty() && !waits && !self.calls();",
        to: "let rests = !waits && !self.calls();",
    },
    Weakening {
        name: "a signal calls the receiver from its batch",
        file: "mailbox/life.rs",
        from: "    pub(super) fn call(&self, lanes: Held<'_, Lanes<M>>) {
        self.attention.store(true, Ordering::Relaxed);",
        to: "    pub(super) fn call(&self, lanes: Held<'_, Lanes<M>>) {",
    },
    Weakening {
        name: "what is queued wakes the dispatcher",
        file: "schedule/pool/seat.rs",
        from: "        self.note(&queue);
        let parked = self.parked.load(Ordering::Relaxed);",
        to: "        self.note(&queue);
        let parked = false;",
    },
    Weakening {
        name: "a dispatcher looks for an order before it parks",
        file: "schedule/pool/seat.rs",
        from: "if self.order.load(Ordering::Relaxed) != 0 {",
        to: "if self.order.load(Ordering::Relaxed) == usize::MAX {",
    },
    Weakening {
        name: "who is sent to another is called",
        file: "schedule/pool/seat.rs",
        from: "self.order.store(order, Ordering::Relaxed);
        self.call();",
        to: "self.order.store(order, Ordering::Relaxed);",
    },
    Weakening {
        name: "who closes a pool sees the last one end",
        file: "schedule/pool.rs",
        from: "self.live.fetch_add(0, Ordering::AcqRel) == 0",
        to: "self.live.load(Ordering::Acquire) == 0",
    },
    Weakening {
        name: "the last one to end sees that the pool is closed",
        file: "schedule/pool.rs",
        from: "self.live.fetch_sub(1, Ordering::AcqRel) == 1",
        to: "self.live.fetch_sub(1, Ordering::Release) == 1",
    },
    Weakening {
        name: "what is queued when all have left is ended",
        file: "schedule/pool.rs",
        from: "if self.down.load(Ordering::SeqCst) {
            seat.clear();",
        to: "if self.down.load(Ordering::SeqCst) && home > 9 {
            seat.clear();",
    },
    Weakening {
        name: "what waits when all have left is ended",
        file: "schedule/pool.rs",
        from: "            residents.abandon();",
        to: "            drop(residents);",
    },
    Weakening {
        name: "the thread of one actor is called",
        file: "schedule/pool/solo.rs",
        from: "state.ready = Some(ready);
        drop(state);
        self.bell.notify_one();",
        to: "state.ready = Some(ready);
        drop(state);",
    },
    Weakening {
        name: "who begins to work sees that the monitor sleeps",
        file: "schedule/pool/monitor.rs",
        from: "busy.swap(true, Ordering::AcqRel);",
        to: "busy.swap(true, Ordering::Release);",
    },
    Weakening {
        name: "the monitor shows that it sleeps",
        file: "schedule/pool/monitor.rs",
        from: "busy.fetch_or(false, Ordering::AcqRel)",
        to: "busy.fetch_or(false, Ordering::Acquire)",
    },
    Weakening {
        name: "the monitor sees who works",
        file: "schedule/pool/monitor.rs",
        from: "        if !works() {
            park();
        }",
        to: "        let _ = works();
        park();",
    },
];

/// Runs the models; with `--weaken`, also on each weakened copy.
pub(crate) fn run(project: &Project, args: &[String]) -> Outcome {
    let weaken = match args {
        [] => false,
        [one] if one == "--weaken" => true,
        _ => return Err("loom knows no option but --weaken".to_owned()),
    };
    check(project, weaken).map(|said| term::note(&said))
}

/// Runs the models, and says how many hold.
pub(crate) fn check(project: &Project, weaken: bool) -> Result<String, String> {
    let mut models = models(project, project.root(), "loom");
    let output = binaries::output_within(&mut models, LIMIT * 2)?;
    let output = output.ok_or("the models do not end")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        term::note(&String::from_utf8_lossy(&output.stderr));
        term::note(&said);
        return Err(format!(
            "`{}` ended with {}",
            step::shown(&models),
            output.status
        ));
    }
    let count = passed(&said);
    if count == 0 {
        return Err("no model ran: is there one below crates/runtime/src?".to_owned());
    }
    if !weaken {
        return Ok(format!("{count} models hold"));
    }
    for weakening in WEAKENINGS {
        weakened(project, weakening)?;
        term::note(&format!("  {:<44} found", weakening.name));
    }
    let weak = WEAKENINGS.len();
    Ok(format!(
        "{count} models hold, and fail for each of {weak} weakenings"
    ))
}

/// The models of the crate in `root`, built in a folder of their own.
fn models(project: &Project, root: &Path, folder: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(root)
        .env("RUSTFLAGS", "--cfg strowger_loom")
        .env("LOOM_MAX_PREEMPTIONS", PREEMPTIONS)
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("RUST_BACKTRACE", "0")
        .env("CARGO_TARGET_DIR", project.target().join(folder));
    cargo.args(["test", "--locked", "-p", "strowger", "--lib", "loom"]);
    cargo
}

/// Applies one weakening to a copy; an error unless a model fails.
fn weakened(project: &Project, weakening: &Weakening) -> Outcome {
    let Weakening {
        name,
        file,
        from,
        to,
    } = weakening;
    let copy = project.copied("loom-copy", |_| false)?;
    let path = copy.join("crates/runtime/src").join(file);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{file}: {error}"))?;
    let count = text.matches(from).count();
    if count != 1 {
        return Err(format!(
            "{name}: `{from}` stands {count} times in {file}, not once"
        ));
    }
    std::fs::write(&path, text.replacen(from, to, 1))
        .map_err(|error| format!("{file}: {error}"))?;
    // To cargo both are the same package: it would take what it built of the copy for the models.
    let mut models = models(project, &copy, "loom-weak");
    // A model that never ends has also seen that something is missing.
    let Some(output) = binaries::output_within(&mut models, LIMIT)? else {
        return Ok(());
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("test result: FAILED") {
        return Ok(());
    }
    if output.status.success() {
        return Err(format!("{name}: every model holds without it"));
    }
    let why = String::from_utf8_lossy(&output.stderr);
    // Loom aborts the process where it cannot unwind.
    if why.contains("SIGABRT") || why.contains("panicked at") {
        return Ok(());
    }
    Err(format!("{name}: the weakened copy does not build\n{why}"))
}

/// How many tests passed.
fn passed(said: &str) -> u64 {
    let counts = said.lines().filter_map(|line| {
        let rest = line.strip_prefix("test result: ok. ")?;
        rest.split(' ').next()?.parse::<u64>().ok()
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_counted() {
        let said = "running 3 tests\ntest result: ok. 3 passed; 0 failed; 0 ignored\n";
        assert_eq!(passed(said), 3);
        assert_eq!(passed("test result: FAILED. 1 passed; 1 failed\n"), 0);
    }
}
