//! An actor that stays within its limits delays neither the sockets and timers of its neighbours
//! nor their actors by more than a few milliseconds, on a runtime as `#[tokio::main]` makes it.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use strowger::{Actor, ActorRef, ActorSystem, Context};
use tokio::net::UdpSocket;

use crate::support::{Job, PATIENCE, Work, Worker, compute, on_worker, runtime};

/// Sends itself the next message, computes, and so on for ever.
struct Hog {
    work: Duration,
    ahead: u32,
}

impl Actor for Hog {
    type Msg = ();
    /// How long a message takes, and how many wait.
    type Args = (Duration, u32);
    type Error = Infallible;

    async fn pre_start(
        (work, ahead): Self::Args,
        cx: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        for _ in 0..ahead {
            cx.me().try_tell(()).expect("there is room");
        }
        Ok(Self { work, ahead })
    }

    async fn handle(&mut self, (): (), cx: &mut Context<Self>) -> Result<(), Infallible> {
        debug_assert!(self.ahead > 0);
        compute(self.work);
        cx.me().try_tell(()).expect("there is room");
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

/// For how long neighbours are measured.
const WHILE: Duration = Duration::from_secs(2);

/// What a datagram takes to a task with a socket and back.
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
    // The other end is a thread beside the runtime.
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

/// What an actor takes to answer a task.
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

/// How late a timer of a millisecond is.
async fn timer() -> Delays {
    let (begun, mut delays) = (Instant::now(), Vec::new());
    while begun.elapsed() < WHILE {
        let set = Instant::now();
        tokio::time::sleep(Duration::from_millis(1)).await;
        delays.push(set.elapsed());
    }
    Delays::of(delays)
}

/// Measures the neighbours of so many hogs a worker; half of what is measured and all but one of a
/// hundred must be within the margins. On a machine that is busy with other programs a measurement
/// may miss them; a broken promise misses them each time.
fn neighbours(hogs: usize, work: Duration, ahead: u32) {
    let mut late = Vec::new();
    for _ in 0..3 {
        match on_worker(&runtime(WORKERS), measured(hogs, work, ahead)) {
            Ok(()) => return,
            Err(missed) => late.push(missed),
        }
    }
    panic!("late three times: {late:?}");
}

const WORKERS: usize = 2;

/// Measures once; what was beyond the margins.
async fn measured(hogs: usize, work: Duration, ahead: u32) -> Result<(), String> {
    let system = ActorSystem::new("fair").expect("within tokio");
    let mut all = Vec::new();
    for number in 0..hogs * WORKERS {
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
    system.shutdown(PATIENCE).await;
    late
}

#[test]
fn one_hog_a_worker_delays_nobody() {
    neighbours(1, Duration::from_micros(100), 1);
    neighbours(1, Duration::from_millis(1), 1);
}

#[test]
fn ten_hogs_a_worker_delay_nobody() {
    neighbours(10, Duration::from_micros(100), 1);
    neighbours(10, Duration::from_millis(1), 1);
}

#[test]
fn a_flood_to_itself_delays_nobody() {
    neighbours(1, Duration::from_micros(100), 500);
    neighbours(10, Duration::from_nanos(100), 1000);
}

#[test]
fn without_hogs_nobody_is_late() {
    neighbours(0, Duration::ZERO, 0);
}
