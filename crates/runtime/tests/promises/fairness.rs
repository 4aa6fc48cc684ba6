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

/// The time that hogs spend computing, in nanoseconds.
#[derive(Debug, Default)]
struct ComputeTime {
    /// By the clock on the wall.
    total: AtomicU64,
    /// The part in which other programs, or other machines on the same host, had the processor.
    paused: AtomicU64,
}

impl ComputeTime {
    /// Computes for this time. A computing thread reads the clock many times per microsecond, so
    /// it was paused where two readings are far apart, whoever paused it.
    fn compute(&self, time: Duration) {
        const MIN_PAUSE: Duration = Duration::from_micros(200);
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let begun = Instant::now();
        let (mut last, mut paused) = (begun, Duration::ZERO);
        while last - begun < time {
            std::hint::spin_loop();
            let now = Instant::now();
            if now - last >= MIN_PAUSE {
                paused += now - last;
            }
            last = now;
        }
        self.total.fetch_add(nanos(last - begun), Ordering::Relaxed);
        self.paused.fetch_add(nanos(paused), Ordering::Relaxed);
    }

    /// The fraction of the time in which a computing thread had a processor.
    fn share(&self) -> f64 {
        let [total, paused] = [&self.total, &self.paused]
            .map(|time| Duration::from_nanos(time.load(Ordering::Relaxed)));
        if total.is_zero() {
            return 1.0;
        }
        (1.0 - paused.div_duration_f64(total)).max(0.01)
    }
}

/// Sends itself the next message, computes, and repeats this forever.
struct Hog {
    work: Duration,
    ahead: u32,
    computed: Arc<ComputeTime>,
}

impl Actor for Hog {
    type Msg = ();
    /// The time that a message takes, the number of messages that wait, and where to count.
    type Args = (Duration, u32, Arc<ComputeTime>);
    type Error = Infallible;

    async fn pre_start(
        (work, ahead, computed): Self::Args,
        cx: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        for _ in 0..ahead {
            cx.actor_ref().try_tell(()).expect("there is room");
        }
        Ok(Self {
            work,
            ahead,
            computed,
        })
    }

    async fn handle(&mut self, (): (), cx: &mut Context<Self>) -> Result<(), Infallible> {
        debug_assert!(self.ahead > 0);
        self.computed.compute(self.work);
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

/// The bounds of the median and of the 99th percentile for hogs that have the processors to
/// themselves. Measured in debug builds: up to 3.3 and 9 ms, both with ten hogs per worker that
/// compute for a millisecond; beside eight other programs that compute, and multiplied with the
/// share of the hogs, up to 4.2 and 31 ms.
const BOUNDS: [(f64, Duration); 2] = [
    (0.5, Duration::from_millis(8)),
    (0.99, Duration::from_millis(40)),
];

/// Measures the neighbours of `hogs` hogs per worker; the median and the 99th percentile must be
/// within their bounds, which are wider in proportion where the hogs had only a share of the
/// processors. On a machine that is busy with other programs a measurement may miss them all the
/// same; a broken guarantee misses them every time.
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
    let (mut all, computed) = (Vec::new(), Arc::new(ComputeTime::default()));
    for number in 0..hogs {
        let args = (work, ahead, Arc::clone(&computed));
        let hog = system.spawn::<Hog>(format!("hog-{number}"), args);
        all.push(hog.expect("the name is free"));
    }
    let neighbour = system.spawn::<Worker>("neighbour", ()).expect("free");
    let (socket, timer, actor) = (
        tokio::spawn(socket()),
        tokio::spawn(timer()),
        tokio::spawn(actor(neighbour)),
    );
    let mut delays = Vec::new();
    for (what, measured) in [("socket", socket), ("timer", timer), ("actor", actor)] {
        delays.push((what, measured.await.expect("no panic")));
    }
    let share = computed.share();
    all.iter().for_each(ActorRef::kill);
    system.shutdown(MAX_WAIT).await;
    let mut late = Vec::new();
    for (what, delays) in delays {
        let [half, most] = BOUNDS.map(|(part, bound)| (delays.at(part), bound.div_f64(share)));
        if half.0 >= half.1 || most.0 >= most.1 {
            late.push(format!(
                "{what}: half within {:?}, p99 {:?}",
                half.0, most.0
            ));
        }
    }
    if late.is_empty() {
        return Ok(());
    }
    Err(format!("{late:?} with {share:.2} of the processors"))
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
        let args = (Duration::from_micros(100), 1, Arc::default());
        let hog = system.spawn::<Hog>("hog", args);
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
