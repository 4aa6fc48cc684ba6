//! The sources of an actor take turns: signals, outputs of pipes, timers and messages.
//!
//! On virtual time only the order shows; that turns end is tested on the real clock.

use std::time::Duration;

use strowger::testing::{Probe, TestSystem};
use strowger::{Actor, ActorRef, BoxError, Context, Exit, MailboxSpec, Recipient, Signal};

const MS: Duration = Duration::from_millis(1);

/// An item that the actor has handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Signal,
    Output,
    Timer,
    Message,
    Stopped,
}

enum Msg {
    /// Sets up sources of work.
    Begin(Begin),
    /// Occupies the actor for this time.
    Busy(Duration),
    Item(Item),
}

#[derive(Debug, Clone, Copy)]
enum Begin {
    /// Timers that are due once, after a millisecond.
    Timers(u32),
    /// A timer of this period.
    Period(Duration),
    /// A pipe; each output starts the next.
    Pipes,
    /// A task; the end of each starts the next.
    Tasks,
    /// This number of pipes, without successors.
    Outputs(u32),
    /// This number of tasks, without successors.
    Ends(u32),
}

/// Takes a millisecond for each item, and reports it.
struct Juggler {
    to: Recipient<Item>,
    pipes: bool,
    tasks: bool,
}

impl Juggler {
    async fn work(&self, item: Item) {
        tokio::time::sleep(MS).await;
        let _told = self.to.try_tell(item);
    }

    fn pipe(cx: &mut Context<Self>) -> Result<(), BoxError> {
        cx.pipe(async {}, |()| Msg::Item(Item::Output))?;
        Ok(())
    }

    fn begin(&mut self, begin: Begin, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match begin {
            Begin::Timers(count) => {
                for _ in 0..count {
                    cx.send_after(MS, Msg::Item(Item::Timer));
                }
            }
            Begin::Period(period) => {
                cx.send_every(period, || Msg::Item(Item::Timer));
            }
            Begin::Pipes => {
                self.pipes = true;
                Self::pipe(cx)?;
            }
            Begin::Tasks => {
                self.tasks = true;
                cx.task("task", async {});
            }
            Begin::Outputs(count) => (0..count).try_for_each(|_| Self::pipe(cx))?,
            Begin::Ends(count) => (0..count).for_each(|_| cx.task("task", async {})),
        }
        Ok(())
    }
}

impl Actor for Juggler {
    type Msg = Msg;
    type Args = Recipient<Item>;
    type Error = BoxError;
    const MAILBOX: MailboxSpec = MailboxSpec::unbounded();

    async fn pre_start(to: Recipient<Item>, _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self {
            to,
            pipes: false,
            tasks: false,
        })
    }

    async fn handle(&mut self, msg: Msg, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match msg {
            Msg::Begin(begin) => self.begin(begin, cx)?,
            Msg::Busy(time) => tokio::time::sleep(time).await,
            Msg::Item(item) => {
                if item == Item::Output && self.pipes {
                    Self::pipe(cx)?;
                }
                self.work(item).await;
            }
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::TaskEnded { .. } = signal {
            if self.tasks {
                cx.task("task", async {});
            }
            self.work(Item::Signal).await;
        }
        Ok(())
    }

    async fn post_stop(self, _: &Exit, _: &mut Context<Self>) {
        let _told = self.to.try_tell(Item::Stopped);
    }
}

struct Act {
    system: TestSystem,
    probe: Probe<Item>,
    juggler: ActorRef<Msg>,
}

impl Act {
    fn new(seed: u64) -> Self {
        let system = TestSystem::new(seed);
        let probe = system.probe::<Item>();
        let juggler = system.spawn::<Juggler>("juggler", probe.recipient());
        system.run_until_idle();
        Self {
            system,
            probe,
            juggler,
        }
    }

    fn tell(&self, msg: Msg) {
        assert!(self.juggler.try_tell(msg).is_ok(), "there is no bound");
    }

    fn begin(&self, begin: Begin) {
        self.tell(Msg::Begin(begin));
    }

    fn messages(&self, count: u32) {
        (0..count).for_each(|_| self.tell(Msg::Item(Item::Message)));
    }

    /// Returns the items of the next `time`.
    fn pass(&self, time: Duration) -> Vec<Item> {
        self.system.advance(time);
        self.probe.drain()
    }
}

fn count(items: &[Item], item: Item) -> usize {
    items.iter().filter(|one| **one == item).count()
}

#[test]
fn due_timers_and_messages_alternate() {
    for seed in 0..20 {
        let act = Act::new(seed);
        act.begin(Begin::Timers(100));
        act.tell(Msg::Busy(10 * MS));
        act.messages(300);
        let items = act.pass(500 * MS);
        assert_eq!(items.len(), 400);
        for pair in items[..200].chunks(2) {
            assert_eq!(count(pair, Item::Timer), 1, "{items:?}");
        }
        assert_eq!(count(&items[200..], Item::Message), 200);
    }
}

#[test]
fn endless_pipe_outputs_leave_half_the_turns_to_messages() {
    for seed in 0..20 {
        let act = Act::new(seed);
        act.begin(Begin::Pipes);
        act.pass(20 * MS);
        act.messages(50);
        let items = act.pass(110 * MS);
        assert_eq!(count(&items, Item::Message), 50, "{items:?}");
    }
}

#[test]
fn endless_task_signals_leave_half_the_turns_to_messages() {
    for seed in 0..20 {
        let act = Act::new(seed);
        act.begin(Begin::Tasks);
        act.pass(20 * MS);
        act.messages(50);
        let items = act.pass(110 * MS);
        assert_eq!(count(&items, Item::Message), 50, "{items:?}");
    }
}

#[test]
fn four_busy_sources_share_turns_equally() {
    for seed in 0..20 {
        let act = Act::new(seed);
        act.begin(Begin::Pipes);
        act.begin(Begin::Tasks);
        act.begin(Begin::Period(MS));
        act.messages(500);
        let items = act.pass(400 * MS);
        for source in [Item::Signal, Item::Output, Item::Timer, Item::Message] {
            let share = count(&items, source);
            assert!((95..=105).contains(&share), "{source:?}: {share}");
        }
    }
}

/// An actor whose messages cause more work than one item each must not collect it without a bound
/// while its mailbox is full.
#[test]
fn outputs_that_a_message_caused_come_before_the_next_message() {
    let act = Act::new(1);
    act.begin(Begin::Outputs(10));
    act.tell(Msg::Busy(MS));
    act.messages(3);
    let items = act.pass(20 * MS);
    assert_eq!(items[..10], [Item::Output; 10]);
    assert_eq!(items[10..], [Item::Message; 3]);
}

#[test]
fn an_eighth_of_a_large_backlog_precedes_the_next_message() {
    let act = Act::new(1);
    act.begin(Begin::Outputs(800));
    act.tell(Msg::Busy(MS));
    act.messages(3);
    let items = act.pass(2000 * MS);
    let at: Vec<_> = (0..items.len())
        .filter(|&at| items[at] == Item::Message)
        .collect();
    // 100 of 800, then an eighth of the 700 that are left, then of 613.
    assert_eq!(at, [100, 188, 265]);
}

#[test]
fn stop_overtakes_queued_signals() {
    for seed in 0..20 {
        let act = Act::new(seed);
        act.begin(Begin::Ends(1000));
        act.tell(Msg::Busy(10 * MS));
        act.system.advance(5 * MS);
        act.juggler.stop();
        let items = act.pass(6 * MS);
        assert_eq!(items, [Item::Stopped], "one handler is waited for");
    }
}

#[test]
fn stop_is_handled_within_one_item_under_any_load() {
    for seed in 0..20 {
        let act = Act::new(seed);
        act.begin(Begin::Pipes);
        act.begin(Begin::Tasks);
        act.begin(Begin::Ends(100));
        act.begin(Begin::Period(MS));
        act.messages(500);
        act.pass(50 * MS);
        act.juggler.stop();
        let items = act.pass(2 * MS);
        assert!(items.ends_with(&[Item::Stopped]), "{items:?}");
        assert!(items.len() <= 2, "{items:?}");
    }
}

#[test]
fn drain_ends_although_a_timer_is_always_due() {
    for seed in 0..20 {
        let act = Act::new(seed);
        act.begin(Begin::Period(MS));
        act.pass(20 * MS);
        act.messages(20);
        let juggler = act.juggler.clone();
        let left = act.system.run(juggler.drain(100 * MS));
        assert_eq!(left.len(), 0);
        let items = act.probe.drain();
        assert_eq!(count(&items, Item::Message), 20, "{items:?}");
    }
}
