//! Pipes: long work beside the actor, whose output arrives as a message.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use strowger::testing::TestSystem;
use strowger::{
    Actor, BoxError, ChildSpec, Context, Exit, MailboxSpec, PipeId, Recipient, Signal, Strategy,
    Supervisor,
};

const SECOND: Duration = Duration::from_secs(1);

/// Counts the live values that hold a part of it.
#[derive(Clone)]
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn one(&self) -> Self {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.clone()
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A part of a future, dropped with it.
struct Part(Alive);

impl Drop for Part {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

enum Msg {
    Work(Duration, u32),
    Many(u32),
    Done(u32),
    Break(Duration),
    BreakInto,
    Cancel,
    Busy(Duration),
    Fail,
}

struct Worker {
    to: Recipient<String>,
    alive: Alive,
    last: Option<PipeId>,
}

impl Worker {
    fn tell(&self, text: impl Into<String>) {
        let _told = self.to.try_tell(text.into());
    }

    fn work(&mut self, time: Duration, number: u32, cx: &mut Context<Self>) {
        let part = Part(self.alive.one());
        let work = async move {
            tokio::time::sleep(time).await;
            drop(part);
            number
        };
        match cx.pipe(work, Msg::Done) {
            Ok(pipe) => self.last = Some(pipe),
            Err(error) => self.tell(error.to_string()),
        }
    }
}

impl Actor for Worker {
    type Msg = Msg;
    type Args = (Recipient<String>, Alive);
    type Error = BoxError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(8);
    const PIPES: usize = 4;

    async fn pre_start((to, alive): Self::Args, _: &mut Context<Self>) -> Result<Self, BoxError> {
        let last = None;
        Ok(Self { to, alive, last })
    }

    async fn handle(&mut self, msg: Msg, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match msg {
            Msg::Work(time, number) => self.work(time, number, cx),
            Msg::Many(count) => (0..count).for_each(|one| self.work(Duration::ZERO, one, cx)),
            Msg::Done(number) => self.tell(format!("done {number}, {} left", cx.pipes())),
            Msg::Break(after) => {
                let work = async move {
                    tokio::time::sleep(after).await;
                    std::panic::resume_unwind(Box::new("no line"))
                };
                self.last = Some(cx.pipe(work, Msg::Done)?);
            }
            Msg::BreakInto => {
                let into = |(): ()| std::panic::resume_unwind(Box::new("no message"));
                self.last = Some(cx.pipe(async {}, into)?);
            }
            Msg::Cancel => {
                let last = self.last.ok_or("there is one")?;
                let cancelled = (cx.cancel_pipe(last), cx.cancel_pipe(last));
                self.tell(format!("cancelled {cancelled:?}"));
            }
            Msg::Busy(time) => {
                tokio::time::sleep(time).await;
                self.tell("busy no more");
            }
            Msg::Fail => return Err("as ordered".into()),
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::PipePanicked { pipe, panic } = signal {
            self.tell(format!("{}: {panic}", Some(pipe) == self.last));
        }
        Ok(())
    }

    async fn post_stop(self, _: &Exit, cx: &mut Context<Self>) {
        self.tell(format!("stopped with {} alive", self.alive.count()));
        // A pipe started this late also ends with the incarnation.
        let part = Part(self.alive.one());
        let late = async move { part.0.0.fetch_add(100, Ordering::Relaxed) };
        let _late = cx.pipe(late, |_| Msg::Fail);
    }
}

struct Office {
    system: TestSystem,
    alive: Alive,
}

impl Office {
    fn new(seed: u64) -> Self {
        Self {
            system: TestSystem::new(seed),
            alive: Alive(Arc::default()),
        }
    }
}

#[test]
fn actor_handles_messages_while_pipes_run() {
    let office = Office::new(1);
    let probe = office.system.probe::<String>();
    let args = (probe.recipient(), office.alive.clone());
    let worker = office.system.spawn::<Worker>("w", args);
    for (seconds, number) in [(3, 3), (1, 1), (2, 2)] {
        worker
            .try_tell(Msg::Work(seconds * SECOND, number))
            .unwrap();
    }
    worker.try_tell(Msg::Done(0)).unwrap();
    office.system.run_until_idle();
    assert_eq!(probe.drain(), ["done 0, 3 left"]);
    office.system.advance(3 * SECOND);
    assert_eq!(
        probe.drain(),
        ["done 1, 2 left", "done 2, 1 left", "done 3, 0 left"]
    );
}

#[test]
fn pipe_output_bypasses_mailbox_capacity() {
    let office = Office::new(1);
    let probe = office.system.probe::<String>();
    let args = (probe.recipient(), office.alive.clone());
    let worker = office.system.spawn::<Worker>("w", args);
    worker.try_tell(Msg::Work(SECOND, 7)).unwrap();
    worker.try_tell(Msg::Busy(2 * SECOND)).unwrap();
    office.system.run_until_idle();
    while worker.try_tell(Msg::Done(99)).is_ok() {}
    office.system.advance(2 * SECOND);
    let story = probe.drain();
    assert_eq!(story[..2], ["busy no more", "done 7, 0 left"]);
    assert_eq!(story.len(), 2 + 8);
}

#[test]
fn pipe_is_in_flight_until_its_message_is_taken() {
    let office = Office::new(1);
    let probe = office.system.probe::<String>();
    let args = (probe.recipient(), office.alive.clone());
    let worker = office.system.spawn::<Worker>("w", args);
    worker.try_tell(Msg::Many(3)).unwrap();
    office.system.run_until_idle();
    assert_eq!(probe.drain().len(), 3);
    worker.try_tell(Msg::Many(5)).unwrap();
    office.system.run_until_idle();
    let refused = "the limit of 4 pipes in flight (`Actor::PIPES`) is reached";
    let mut story = probe.drain();
    assert_eq!(story.remove(0), refused);
    assert_eq!(story.len(), 4);
    assert_eq!(office.alive.count(), 0);
}

#[test]
fn panic_in_a_pipe_is_signalled() {
    let office = Office::new(1);
    let probe = office.system.probe::<String>();
    let args = (probe.recipient(), office.alive.clone());
    let worker = office.system.spawn::<Worker>("w", args);
    worker.try_tell(Msg::Break(SECOND)).unwrap();
    office.system.advance(SECOND);
    worker.try_tell(Msg::BreakInto).unwrap();
    office.system.run_until_idle();
    assert_eq!(probe.drain(), ["true: no line", "true: no message"]);
    assert!(worker.is_alive());
}

#[test]
fn cancelled_pipe_delivers_nothing() {
    let office = Office::new(1);
    let probe = office.system.probe::<String>();
    let args = (probe.recipient(), office.alive.clone());
    let worker = office.system.spawn::<Worker>("w", args);
    worker.try_tell(Msg::Work(SECOND, 1)).unwrap();
    worker.try_tell(Msg::Cancel).unwrap();
    office.system.run_until_idle();
    assert_eq!(office.alive.count(), 0, "its future is dropped");
    worker.try_tell(Msg::Break(SECOND)).unwrap();
    worker.try_tell(Msg::Cancel).unwrap();
    office.system.advance(2 * SECOND);
    assert_eq!(probe.drain(), ["cancelled (true, false)"; 2]);
}

#[test]
fn pipes_end_with_their_incarnation() {
    TestSystem::check(0..20, |system| {
        let alive = Alive(Arc::default());
        let probe = system.probe::<String>();
        let child = ChildSpec::new::<Worker>("w", (probe.recipient(), alive.clone()));
        let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
        let supervisor = system.supervise("s", supervisor);
        let worker = supervisor.child::<Msg>("w").unwrap();
        worker.try_tell(Msg::Work(SECOND, 1)).unwrap();
        worker.try_tell(Msg::Work(2 * SECOND, 2)).unwrap();
        worker.try_tell(Msg::Fail).unwrap();
        worker.try_tell(Msg::Work(SECOND, 3)).unwrap();
        system.advance(5 * SECOND);
        assert_eq!(probe.drain(), ["stopped with 0 alive", "done 3, 0 left"]);
        assert_eq!(alive.count() % 100, 0);
    });
}
