//! An actor that stays within its limits delays the sockets, timers and actors of its neighbours by
//! a few milliseconds at most, on a runtime as `#[tokio::main]` creates it.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::{Duration, Instant};

use strowger::{Actor, ActorRef, ActorSystem, Context};
use tokio::net::UdpSocket;
use tokio::runtime::Runtime;

use crate::support::{
    Job, MAX_WAIT, Work, Worker, compute, current_thread, exclusive_machine, on_worker, runtime,
};

/// Sends itself the next message, computes, and repeats this forever.
struct Hog {
    work: Duration,
    ahead: u32,
}

impl Actor for Hog {
    type Msg = ();
    /// The time that a message takes, and the number of messages that wait.
    type Args = (Duration, u32);
    type Error = Infallible;

    async fn pre_start(
        (work, ahead): Self::Args,
        cx: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        for _ in 0..ahead {
            cx.actor_ref().try_tell(()).expect("there is room");
        }
        Ok(Self { work, ahead })
    }

    async fn handle(&mut self, (): (), cx: &mut Context<Self>) -> Result<(), Infallible> {
        debug_assert!(self.ahead > 0);
        compute(self.work);
        cx.actor_ref().try_tell(()).expect("there is room");
        Ok(())
    }
}

/// The delays of a neighbour, sorted.
struct Delays(Vec<Duration>);

impl Delays {
    fn of(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        Self(all)
    }

    fn at(&self, part: f64) -> Duration {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a place in a short list"
        )]
        let place = (self.0.len() as f64 * part) as usize;
        self.0[place.min(self.0.len() - 1)]
    }
}

/// The time for which neighbours are measured.
const WHILE: Duration = Duration::from_secs(1);

/// The round-trip times of datagrams to a task with a socket.
async fn socket() -> Delays {
    let echo = UdpSocket::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let to = echo.local_addr().expect("it is bound");
    let echoing = tokio::spawn(async move {
        let mut bytes = [0; 16];
        while let Ok((length, from)) = echo.recv_from(&mut bytes).await {
            echo.send_to(&bytes[..length], from)
                .await
                .expect("it is sent");
        }
    });
    // The other end is a thread outside the runtime.
    let measured = tokio::task::spawn_blocking(move || {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        socket.connect(to).expect("it is there");
        let (begun, mut delays) = (Instant::now(), Vec::new());
        while begun.elapsed() < WHILE {
            let sent = Instant::now();
            socket.send(b"there and back").expect("it is sent");
            socket.recv(&mut [0; 16]).expect("it comes back");
            delays.push(sent.elapsed());
            std::thread::sleep(Duration::from_millis(2));
        }
        delays
    });
    let delays = measured.await.expect("no panic");
    echoing.abort();
    Delays::of(delays)
}

/// The times in which an actor answers a task.
async fn actor(neighbour: ActorRef<Job>) -> Delays {
    let (begun, mut delays) = (Instant::now(), Vec::new());
    while begun.elapsed() < WHILE {
        let sent = Instant::now();
        neighbour
            .ask(Work::Wait(Duration::ZERO))
            .await
            .expect("an answer");
        delays.push(sent.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Delays::of(delays)
}

/// The delays of one-millisecond timers.
async fn timer() -> Delays {
    let (begun, mut delays) = (Instant::now(), Vec::new());
    while begun.elapsed() < WHILE {
        let set = Instant::now();
        tokio::time::sleep(Duration::from_millis(1)).await;
        delays.push(set.elapsed());
    }
    Delays::of(delays)
}

/// Measures the neighbours of `hogs` hogs per worker; the median and the 99th percentile must be
/// within the margins. On a machine that is busy with other programs a measurement may miss them; a
/// broken guarantee misses them every time.
fn neighbours(hogs: usize, work: Duration, ahead: u32) {
    neighbours_on(|| runtime(WORKERS), hogs * WORKERS, work, ahead);
}

/// The same for `hogs` hogs on another kind of runtime.
fn neighbours_on(runtime: impl Fn() -> Runtime, hogs: usize, work: Duration, ahead: u32) {
    let mut late = Vec::new();
    for _ in 0..3 {
        match on_worker(&runtime(), measured(hogs, work, ahead)) {
            Ok(()) => return,
            Err(missed) => {
                eprintln!("late beside {hogs} hogs: {missed}");
                late.push(missed);
            }
        }
    }
    panic!("late three times: {late:?}");
}

const WORKERS: usize = 2;

/// Measures once; returns the values that exceed the margins as an error.
async fn measured(hogs: usize, work: Duration, ahead: u32) -> Result<(), String> {
    let system = ActorSystem::new("fair").expect("within tokio");
    let mut all = Vec::new();
    for number in 0..hogs {
        let hog = system.spawn::<Hog>(format!("hog-{number}"), (work, ahead));
        all.push(hog.expect("the name is free"));
    }
    let neighbour = system.spawn::<Worker>("neighbour", ()).expect("free");
    let (socket, timer, actor) = (
        tokio::spawn(socket()),
        tokio::spawn(timer()),
        tokio::spawn(actor(neighbour)),
    );
    let mut late = Ok(());
    for (what, delays) in [("socket", socket), ("timer", timer), ("actor", actor)] {
        let delays = delays.await.expect("no panic");
        let (half, most) = (delays.at(0.5), delays.at(0.99));
        if half >= Duration::from_millis(8) || most >= Duration::from_millis(40) {
            late = Err(format!("{what}: half within {half:?}, p99 {most:?}"));
        }
    }
    all.iter().for_each(ActorRef::kill);
    system.shutdown(MAX_WAIT).await;
    late
}

#[test]
fn one_busy_actor_per_worker_delays_no_others() {
    let _alone = exclusive_machine();
    neighbours(1, Duration::from_micros(100), 1);
    neighbours(1, Duration::from_millis(1), 1);
}

#[test]
fn ten_busy_actors_per_worker_delay_no_others() {
    let _alone = exclusive_machine();
    neighbours(10, Duration::from_micros(100), 1);
    neighbours(10, Duration::from_millis(1), 1);
}

#[test]
fn self_flooding_actor_delays_no_others() {
    let _alone = exclusive_machine();
    neighbours(1, Duration::from_micros(100), 500);
    neighbours(10, Duration::from_nanos(100), 1000);
}

#[test]
fn busy_actors_on_a_single_worker_delay_no_others() {
    let _alone = exclusive_machine();
    for hogs in [1, 10] {
        neighbours_on(|| runtime(1), hogs, Duration::from_micros(100), 1);
        neighbours_on(current_thread, hogs, Duration::from_micros(100), 1);
    }
}

#[test]
fn baseline_without_load_meets_latency() {
    let _alone = exclusive_machine();
    neighbours(0, Duration::ZERO, 0);
}

/// Sends tells to idle actors, and then occupies the worker for longer than they may wait. Uses
/// several runtimes, because the worker that an actor belongs to is a matter of chance.
#[test]
fn told_actor_runs_while_the_sender_task_keeps_running() {
    let _alone = exclusive_machine();
    for _ in 0..4 {
        on_worker(&runtime(WORKERS), async move {
            let system = ActorSystem::new("told").expect("within tokio");
            for name in ["one", "two", "three"] {
                let told = system.spawn::<Worker>(name, ()).expect("free");
                asked_without_giving_way(&told).await;
            }
            system.shutdown(MAX_WAIT).await;
        });
    }
}

async fn asked_without_giving_way(told: &ActorRef<Job>) {
    let (held, soon) = (Duration::from_secs(2), Duration::from_secs(1));
    told.ask(Work::Wait(Duration::ZERO)).await.expect("it runs");
    let begun = Instant::now();
    let mut asking = Box::pin(told.ask(Work::Wait(Duration::ZERO)));
    // The first poll sends the ask.
    let first = poll_fn(|cx| Poll::Ready(asking.as_mut().poll(cx))).await;
    assert!(first.is_pending(), "nobody runs on the stack of who asks");
    let mut answered = None;
    while begun.elapsed() < held && answered.is_none() {
        compute(Duration::from_millis(5));
        let mut cx = TaskContext::from_waker(Waker::noop());
        if asking.as_mut().poll(&mut cx).is_ready() {
            answered = Some(begun.elapsed());
        }
    }
    let answered = answered.expect("another worker runs it meanwhile");
    assert!(answered < soon, "answered after {answered:?}");
}

#[test]
fn timers_fire_beside_a_busy_actor_on_a_single_worker() {
    let _alone = exclusive_machine();
    let runtime = runtime(1);
    let ticks = Arc::new(AtomicU64::new(0));
    let (system, hog) = on_worker(&runtime, async {
        let system = ActorSystem::new("ticks").expect("within tokio");
        let hog = system.spawn::<Hog>("hog", (Duration::from_micros(100), 1));
        (system, hog.expect("the name is free"))
    });
    let ticking = Arc::clone(&ticks);
    let ticking = runtime.spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            ticking.fetch_add(1, Ordering::Relaxed);
        }
    });
    // Waits on a thread outside the runtime, where no hog can keep the test from ending.
    std::thread::sleep(WHILE / 2);
    let ticked = ticks.load(Ordering::Relaxed);
    hog.kill();
    ticking.abort();
    on_worker(&runtime, async move { system.shutdown(MAX_WAIT).await });
    assert!(
        ticked >= 20,
        "a timer of a millisecond went off {ticked} times in a second"
    );
}

/// A message that travels back and forth between two players, with the return address.
struct Ball(ActorRef<Self>);

/// Returns each ball, and counts the turns of both sides.
struct Player(Arc<AtomicU64>);

impl Actor for Player {
    type Msg = Ball;
    type Args = Arc<AtomicU64>;
    type Error = Infallible;

    async fn pre_start(turns: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(turns))
    }

    async fn handle(&mut self, ball: Ball, cx: &mut Context<Self>) -> Result<(), Infallible> {
        self.0.fetch_add(1, Ordering::Relaxed);
        // At the end the other player may already be gone.
        let _end = ball.0.try_tell(Ball(cx.actor_ref()));
        Ok(())
    }
}

/// Number of turns that two players have while an actor is asked: half of the asks take no more.
async fn turns_of_players() -> u64 {
    let system = ActorSystem::new("players").expect("within tokio");
    let turns = Arc::new(AtomicU64::new(0));
    let player = |name| system.spawn::<Player>(name, Arc::clone(&turns));
    let (one, other) = (player("one").expect("free"), player("other").expect("free"));
    one.tell(Ball(other.clone())).await.expect("it is there");
    let callee = system.spawn::<Worker>("callee", ()).expect("free");
    let mut between = Vec::new();
    for _ in 0..100 {
        let before = turns.load(Ordering::Relaxed);
        let asked = callee.ask(Work::Compute(Duration::ZERO)).await;
        asked.expect("an answer");
        between.push(turns.load(Ordering::Relaxed) - before);
    }
    one.kill();
    other.kill();
    system.shutdown(MAX_WAIT).await;
    assert!(turns.load(Ordering::Relaxed) > 0, "nobody played");
    between.sort_unstable();
    between[between.len() / 2]
}

/// Counts the turns of other actors, so that the speed of the machine does not matter. On a busy
/// machine the players may move to another dispatcher, and then nobody has to yield: hence the
/// rounds.
#[test]
fn answered_task_resumes_within_a_few_turns() {
    let _alone = exclusive_machine();
    for _ in 0..10 {
        let half = on_worker(&runtime(1), turns_of_players());
        assert!(
            half <= 40,
            "half of the asks took {half} turns of others or more"
        );
    }
}
