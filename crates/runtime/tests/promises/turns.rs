//! The sources of an actor take turns, and a turn ends, whatever fills it: a flood of timers,
//! messages, outputs of pipes or signals delays neither `stop` nor an ask nor another task.
//!
//! A broken promise here takes a worker for good, so the tests wait on a thread outside the
//! runtime, and kill the actor in the end.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, BoxError, ChildSpec, Context, Request, Restart,
    Signal, Strategy, Supervisor, SupervisorRef,
};
use tokio::runtime::Runtime;

use crate::support::{MAX_WAIT, compute, exclusive_machine, on_worker, runtime};

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);

/// The longest wait for something that should take milliseconds.
const LIMIT: Duration = Duration::from_secs(3);

/// Work that never runs out, or not for a long time.
#[derive(Debug, Clone, Copy)]
enum Flood {
    /// This number of messages that the actor sends itself again.
    Messages(u32),
    /// This number of timers with a period of 10 ms.
    Timers(u32),
    /// This number of timers that are due at the same time.
    Due(u32),
    /// This number of pipes; each output starts the next pipe.
    Pipes(u32),
    /// This number of tasks; the end of each starts the next.
    Tasks(u32),
    /// This number of monitored children that end at once; each exit starts the next.
    Downs(u32),
}

/// Keeps itself busy, and answers pings.
struct Flooded {
    flood: Flood,
    /// The time that it computes for each item.
    work: Duration,
    children: u64,
}

struct Ping;

impl Request for Ping {
    type Reply = ();
}

enum Item {
    Work,
    Ping(Ask<Ping>),
}

impl Accepts<Ask<Ping>> for Item {
    fn wrap(ask: Ask<Ping>) -> Self {
        Self::Ping(ask)
    }
}

impl Flooded {
    /// Creates one more item of the flood.
    fn feed(&mut self, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match self.flood {
            Flood::Messages(_) => {
                // There is no room while the test keeps the mailbox full.
                let _full = cx.actor_ref().try_tell(Item::Work);
            }
            Flood::Pipes(_) => {
                cx.pipe(async {}, |()| Item::Work)?;
            }
            Flood::Tasks(_) => cx.task("short", async {}),
            Flood::Downs(_) => {
                self.children += 1;
                let child = cx.spawn::<Leaf>(self.children.to_string(), ())?;
                cx.monitor(&child);
            }
            Flood::Timers(_) | Flood::Due(_) => {}
        }
        Ok(())
    }
}

impl Actor for Flooded {
    type Msg = Item;
    type Args = (Flood, Duration);
    type Error = BoxError;

    async fn pre_start(
        (flood, work): Self::Args,
        cx: &mut Context<Self>,
    ) -> Result<Self, BoxError> {
        let mut this = Self {
            flood,
            work,
            children: 0,
        };
        match flood {
            Flood::Timers(count) => {
                for _ in 0..count {
                    cx.send_every(10 * MS, || Item::Work);
                }
            }
            Flood::Due(count) => {
                for _ in 0..count {
                    cx.send_after(200 * MS, Item::Work);
                }
            }
            Flood::Messages(count)
            | Flood::Pipes(count)
            | Flood::Tasks(count)
            | Flood::Downs(count) => {
                for _ in 0..count {
                    this.feed(cx)?;
                }
            }
        }
        Ok(this)
    }

    async fn handle(&mut self, item: Item, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match item {
            Item::Work => {
                compute(self.work);
                if matches!(self.flood, Flood::Messages(_) | Flood::Pipes(_)) {
                    self.feed(cx)?;
                }
            }
            Item::Ping(ask) => ask.reply.send(()),
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::Down { .. } | Signal::TaskEnded { .. } = signal {
            compute(self.work);
            self.feed(cx)?;
        }
        Ok(())
    }
}

/// Ends at once.
struct Leaf;

impl Actor for Leaf {
    type Msg = ();
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), cx: &mut Context<Self>) -> Result<Self, Infallible> {
        cx.stop();
        Ok(Self)
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Spawns a task and returns the receiver of its result.
fn spawned<T: Send + 'static>(
    runtime: &Runtime,
    task: impl Future<Output = T> + Send + 'static,
) -> Receiver<T> {
    let (sender, receiver) = channel();
    runtime.spawn(async move {
        let _gone = sender.send(task.await);
    });
    receiver
}

/// Returns the 99th percentile of the delays of a task, which sleeps for a millisecond at a time.
fn most_delay(runtime: &Runtime) -> Result<Duration, String> {
    let delays = spawned(runtime, async {
        let (begun, mut delays) = (Instant::now(), Vec::new());
        while begun.elapsed() < 500 * MS {
            let set = Instant::now();
            tokio::time::sleep(MS).await;
            delays.push(set.elapsed());
        }
        delays.sort_unstable();
        delays[delays.len() * 99 / 100]
    });
    let most = delays.recv_timeout(LIMIT);
    most.map_err(|_| "another task did not end".to_owned())
}

/// Returns the same beside a task that computes and gives way in turn.
fn control() -> Result<Duration, String> {
    let runtime = runtime(1);
    let computing = runtime.spawn(async {
        loop {
            compute(150 * US);
            tokio::task::yield_now().await;
        }
    });
    let most = most_delay(&runtime);
    computing.abort();
    most
}

/// An actor that is kept busy on a runtime, and is killed in the end.
struct Busy {
    runtime: Runtime,
    system: ActorSystem,
    actor: ActorRef<Item>,
}

impl Busy {
    fn new(flood: Flood, work: Duration) -> Self {
        let runtime = runtime(1);
        let (system, actor) = on_worker(&runtime, async move {
            let system = ActorSystem::new("busy").expect("within tokio");
            let actor = system.spawn::<Flooded>("flooded", (flood, work));
            (system, actor.expect("the name is free"))
        });
        // Past the beginning of every flood.
        thread::sleep(250 * MS);
        Self {
            runtime,
            system,
            actor,
        }
    }

    /// Returns the time that the actor takes to answer an ask.
    fn ask(&self) -> Result<Duration, String> {
        let (begun, actor) = (Instant::now(), self.actor.clone());
        let asked = spawned(&self.runtime, async move {
            actor
                .ask_within(Ping, LIMIT)
                .await
                .map(|()| begun.elapsed())
        });
        match asked.recv_timeout(LIMIT) {
            Ok(answer) => answer.map_err(|error| format!("an ask ended with: {error}")),
            Err(_) => Err("an ask did not end".to_owned()),
        }
    }

    /// Fails if another task is late. The limit is 10 ms, or what the machine allows now if that is
    /// more: other programs delay the task even beside one that gives way after every item.
    fn neighbour(&self) -> Result<(), String> {
        let most = most_delay(&self.runtime)?;
        let limit = match most > 10 * MS {
            true => (3 * control()?).max(10 * MS),
            false => 10 * MS,
        };
        within("another task", most, limit)
    }

    /// Fills the mailbox and stops the actor; returns the time until it has ended.
    fn stop(&self) -> Result<Duration, String> {
        while self.actor.try_tell(Item::Work).is_ok() {}
        let begun = Instant::now();
        self.actor.stop();
        until(|| !self.actor.is_alive()).ok_or("the actor did not stop")?;
        Ok(begun.elapsed())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.actor.kill();
        let system = self.system.clone();
        on_worker(
            &self.runtime,
            async move { system.shutdown(MAX_WAIT).await },
        );
    }
}

/// Waits until something holds; returns `None` if that takes too long.
fn until(holds: impl Fn() -> bool) -> Option<()> {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > LIMIT {
            return None;
        }
        thread::sleep(MS / 10);
    }
    Some(())
}

/// Fails if a duration exceeds its limit.
fn within(what: &str, took: Duration, limit: Duration) -> Result<(), String> {
    match took <= limit {
        true => Ok(()),
        false => Err(format!("{what} took {took:?}, limit {limit:?}")),
    }
}

/// Measures up to three times: on a machine that is busy with other programs a measurement may miss
/// its limits; a broken promise misses them every time.
fn promised(measure: impl Fn() -> Result<(), String>) {
    let mut missed = Vec::new();
    for _ in 0..3 {
        match measure() {
            Ok(()) => return,
            Err(error) => {
                eprintln!("missed: {error}");
                missed.push(error);
            }
        }
    }
    panic!("missed three times: {missed:?}");
}

#[test]
fn overdue_timers_and_full_mailbox_do_not_delay_others() {
    let _alone = exclusive_machine();
    promised(|| {
        let busy = Busy::new(Flood::Timers(100), 150 * US);
        within("an ask", busy.ask()?, 50 * MS)?;
        busy.neighbour()?;
        within("stop", busy.stop()?, 50 * MS)
    });
}

#[test]
fn overrunning_timer_does_not_starve_messages_or_stop() {
    let _alone = exclusive_machine();
    promised(|| {
        let busy = Busy::new(Flood::Timers(1), 11 * MS);
        for _ in 0..5 {
            within("an ask", busy.ask()?, 150 * MS)?;
        }
        within("stop", busy.stop()?, 60 * MS)
    });
}

#[test]
fn ask_is_not_delayed_by_many_due_timers() {
    let _alone = exclusive_machine();
    promised(|| {
        let busy = Busy::new(Flood::Due(50_000), 20 * US);
        within("an ask", busy.ask()?, 100 * MS)?;
        busy.neighbour()
    });
}

#[test]
fn stop_is_bounded_by_one_handler_under_any_flood() {
    let _alone = exclusive_machine();
    let floods = [
        Flood::Messages(200),
        Flood::Timers(100),
        Flood::Pipes(200),
        Flood::Tasks(200),
        Flood::Downs(200),
    ];
    for flood in floods {
        promised(|| {
            let busy = Busy::new(flood, 150 * US);
            let measured = || {
                within("an ask", busy.ask()?, 250 * MS)?;
                busy.neighbour()?;
                within("stop", busy.stop()?, 50 * MS)
            };
            measured().map_err(|error| format!("{flood:?}: {error}"))
        });
    }
}

/// Fails once that is allowed, and from then on as soon as it has started.
struct Failing(Arc<AtomicBool>);

impl Actor for Failing {
    type Msg = ();
    type Args = Arc<AtomicBool>;
    type Error = BoxError;

    async fn pre_start(fails: Arc<AtomicBool>, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        cx.send_every(MS, || ());
        if fails.load(Ordering::Relaxed) {
            cx.actor_ref().try_tell(())?;
        }
        Ok(Self(fails))
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
        match self.0.load(Ordering::Relaxed) {
            true => Err("as always".into()),
            false => Ok(()),
        }
    }
}

#[test]
fn supervisor_of_endlessly_failing_children_answers_and_stops() {
    let _alone = exclusive_machine();
    promised(|| {
        let runtime = runtime(1);
        let fails = Arc::new(AtomicBool::new(false));
        let given = Arc::clone(&fails);
        let (system, supervisor) = on_worker(&runtime, async move {
            let system = ActorSystem::new("failing").expect("within tokio");
            // Without the immediate restarts of one-for-one, every exit is a signal.
            let mut children = Supervisor::new(Strategy::RestForOne).intensity(u32::MAX, MS);
            for number in 0..20 {
                let child = ChildSpec::new::<Failing>(number.to_string(), Arc::clone(&given));
                children = children.child(child.restart(Restart::Permanent));
            }
            let supervisor = system.supervise("s", children).await;
            (system, supervisor)
        });
        let result = (|| {
            let supervisor: SupervisorRef = supervisor.map_err(|error| error.to_string())?;
            fails.store(true, Ordering::Relaxed);
            thread::sleep(50 * MS);
            let asked = supervisor.clone();
            let begun = Instant::now();
            let count = spawned(&runtime, async move { asked.count_children().await });
            let count = count.recv_timeout(LIMIT);
            count
                .map_err(|_| "a request did not end".to_owned())?
                .map_err(|error| error.to_string())?;
            within("a request", begun.elapsed(), 100 * MS)?;
            let begun = Instant::now();
            supervisor.stop();
            until(|| !supervisor.erase().is_alive()).ok_or("the supervisor did not stop")?;
            within("stop", begun.elapsed(), 100 * MS)
        })();
        on_worker(&runtime, async move { system.shutdown(MAX_WAIT).await });
        result
    });
}
