//! Delays that busy actors cause for other tasks on the same runtime.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use strowger_bench::Counted;
use tokio::time::{sleep_until, timeout};

use crate::counter::{Computation, Wiring};
use crate::subject::{Capacity, Placement, Running, Subject};

/// A task asks an actor that computes for 10 us, again and again, within a time-out of 20 ms. The
/// figure is how much later than that the task ends, in microseconds; the median of three runs.
pub async fn timeout_overrun<S: Subject>(subject: S) -> Counted {
    const LIMIT: Duration = Duration::from_millis(20);
    // A task that never checks its time-out still ends at this point.
    const GIVE_UP_AFTER: Duration = Duration::from_secs(2);
    let computation = Computation::lasting(Duration::from_micros(10));
    let expected = computation.compute();
    let running = subject.spawn(Capacity::Unbounded).await;
    let mut overruns = Vec::new();
    let mut answers = 0;
    for _ in 0..3 {
        let start = Instant::now();
        let asking = async {
            while start.elapsed() < GIVE_UP_AFTER {
                let answer = S::compute(&running.actor, computation).await;
                assert_eq!(answer, expected, "it computed");
                answers += 1;
            }
        };
        // The task is cut off by the time-out, or gives up after `PATIENCE`.
        let _ = timeout(LIMIT, asking).await;
        overruns.push(start.elapsed().saturating_sub(LIMIT));
    }
    subject.stop(running).await;
    assert!(answers > 0, "it was answered");
    overruns.sort();
    Ok((
        overruns[overruns.len() / 2].as_nanos() as f64 / 1000.0,
        answers,
    ))
}

/// The kind of task that is delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbour {
    /// A task that sleeps for a millisecond, again and again.
    Timer,
    /// A task that reads datagrams which a thread outside the runtime sends every millisecond.
    Socket,
}

/// On each of the two workers, `busy` actors compute for 100 us per message and then tell
/// themselves the next one. The figure is the 99th percentile of how late a neighbour on the same
/// runtime runs, in microseconds.
pub async fn neighbour<S: Subject>(subject: S, busy: usize, who: Neighbour) -> Counted {
    const BUSY_TIME: Duration = Duration::from_millis(300);
    // Actors that starve everything else end by themselves after this time.
    const MAX_BUSY_TIME: Duration = Duration::from_secs(1);
    let until = Instant::now() + MAX_BUSY_TIME;
    let computation = Computation::lasting(Duration::from_micros(100));
    let mut all = Vec::with_capacity(2 * busy);
    for number in 0..2 * busy {
        all.push(begin(&subject, number, computation, until).await);
    }
    let mut late = match who {
        Neighbour::Timer => sleeper(BUSY_TIME).await,
        Neighbour::Socket => reader(BUSY_TIME).await,
    };
    for one in all {
        S::wire(&one.actor, Wiring::default()).await;
        // Without a peer, the actor sends itself nothing more and can be stopped.
        S::ask(&one.actor, 0).await;
        subject.stop(one).await;
    }
    late.sort();
    let at = late.len() * 99 / 100;
    let Some(p99) = late.get(at) else {
        return Err("the neighbour never had its turn");
    };
    Ok((p99.as_nanos() as f64 / 1000.0, late.len() as u64))
}

/// Starts an actor that is busy from now on; the subject chooses the worker by the actor's number.
async fn begin<S: Subject>(
    subject: &S,
    number: usize,
    computation: Computation,
    until: Instant,
) -> Running<S> {
    let starter = subject.clone();
    let started = subject.task(Placement::Any(number), async move {
        let one = starter.spawn(Capacity::Unbounded).await;
        let wiring = Wiring {
            peers: vec![one.actor.clone()],
            until: Some(until),
            ..Wiring::default()
        };
        S::wire(&one.actor, wiring).await;
        assert_eq!(S::ask(&one.actor, 0).await, 0, "the actor is wired");
        S::churn(&one.actor, computation).await;
        one
    });
    started.await.expect("the actor starts")
}

async fn sleeper(time: Duration) -> Vec<Duration> {
    const TICK: Duration = Duration::from_millis(1);
    let mut late = Vec::new();
    let start = tokio::time::Instant::now();
    while start.elapsed() < time {
        let due = tokio::time::Instant::now() + TICK;
        sleep_until(due).await;
        late.push(due.elapsed());
    }
    late
}

async fn reader(time: Duration) -> Vec<Duration> {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    let to = socket.local_addr().expect("it is bound");
    let nonblocking = socket.set_nonblocking(true);
    nonblocking.expect("sockets can be non-blocking");
    let socket = tokio::net::UdpSocket::from_std(socket).expect("the runtime has a driver");
    let over = Arc::new(AtomicBool::new(false));
    let epoch = Instant::now();
    let sender = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
            while !over.load(Ordering::Relaxed) {
                let sent = epoch.elapsed().as_nanos() as u64;
                let sent = socket.send_to(&sent.to_be_bytes(), to);
                sent.expect("loopback takes it");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let mut late = Vec::new();
    let mut bytes = [0; 8];
    while epoch.elapsed() < time {
        let (_, from) = socket.recv_from(&mut bytes).await.expect("it is open");
        let sent = Duration::from_nanos(u64::from_be_bytes(bytes));
        late.push(epoch.elapsed().saturating_sub(sent));
        // The sender's buffer may be full, or its socket closed.
        let _ = socket.try_send_to(&bytes, from);
    }
    over.store(true, Ordering::Relaxed);
    sender.join().expect("the sender ends");
    late
}
