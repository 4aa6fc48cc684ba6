//! The work that every subject does, and how its result is checked.

use std::future::Future;
use std::time::{Duration, Instant};

use strowger_bench::Sample;
use tokio::sync::oneshot;

/// How much a mailbox takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// As much as memory holds.
    Unbounded,
    /// [`Room::BOUND`] messages; a teller waits for room.
    Bounded,
}

impl Room {
    /// How much a bounded mailbox takes.
    pub const BOUND: usize = 1024;
}

/// What a counter is told before the work begins.
pub struct Wiring<R> {
    /// Where tokens are passed on to.
    pub next: Option<R>,
    /// After how many numbers the sum is reported.
    pub expected: u64,
    /// Where the result is reported to.
    pub report: Option<oneshot::Sender<u64>>,
}

/// The state of the actor that every subject runs.
pub struct Counter<R> {
    sum: u64,
    seen: u64,
    wiring: Wiring<R>,
}

impl<R> Default for Counter<R> {
    fn default() -> Self {
        let wiring = Wiring {
            next: None,
            expected: u64::MAX,
            report: None,
        };
        Self {
            sum: 0,
            seen: 0,
            wiring,
        }
    }
}

impl<R> Counter<R> {
    /// Adds a number, and reports the sum with the last one expected.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.sum = self.sum.wrapping_add(value);
        self.seen += 1;
        if self.seen == self.wiring.expected {
            self.report(self.sum);
        }
    }

    /// Adds a number and returns the sum.
    #[inline]
    pub fn add_and_get(&mut self, value: u64) -> u64 {
        self.sum = self.sum.wrapping_add(value);
        self.sum
    }

    /// Takes a token: returns where it goes with one hop less, or reports that it arrived.
    #[inline]
    pub fn take(&mut self, token: Token) -> Option<(&R, Token)> {
        let token = Token {
            left: token.left - 1,
            hops: token.hops + 1,
        };
        if token.left == 0 {
            self.report(token.hops);
            return None;
        }
        self.wiring.next.as_ref().map(|next| (next, token))
    }

    /// Begins anew.
    pub fn wire(&mut self, wiring: Wiring<R>) {
        *self = Self {
            sum: 0,
            seen: 0,
            wiring,
        };
    }

    #[cold]
    fn report(&mut self, result: u64) {
        if let Some(report) = self.wiring.report.take() {
            report
                .send(result)
                .expect("the driver waits for the result");
        }
    }
}

/// A token that is passed from actor to actor.
#[derive(Debug, Clone, Copy)]
pub struct Token {
    /// Hops still to do.
    pub left: u64,
    /// Hops done.
    pub hops: u64,
}

/// A way to run counters.
pub trait Subject: Clone + Send + Sync + 'static {
    /// The name in the table.
    const NAME: &'static str;
    /// Whether a mailbox can be bounded.
    const TAKES_BOUNDS: bool;
    /// How an actor is addressed.
    type Ref: Clone + Send + Sync + 'static;

    /// Starts a counter.
    fn spawn(&self, room: Room) -> impl Future<Output = Self::Ref> + Send;
    /// Calls [`Counter::add`] and does not wait for it.
    fn tell(to: &Self::Ref, value: u64) -> impl Future<Output = ()> + Send;
    /// Calls [`Counter::add_and_get`] and waits for the answer.
    fn ask(to: &Self::Ref, value: u64) -> impl Future<Output = u64> + Send;
    /// Calls [`Counter::take`] and does not wait for it.
    fn pass(to: &Self::Ref, token: Token) -> impl Future<Output = ()> + Send;
    /// Calls [`Counter::wire`] and does not wait for it.
    fn wire(to: &Self::Ref, wiring: Wiring<Self::Ref>) -> impl Future<Output = ()> + Send;
    /// Ends a counter and waits until it ended, where the subject can.
    fn stop(&self, actor: Self::Ref) -> impl Future<Output = ()> + Send;
}

/// Producers tell numbers to one actor, until it handled the last one.
pub async fn tell<S: Subject>(subject: S, room: Room, producers: u64, operations: u64) -> Sample {
    let each = operations.div_ceil(producers);
    let done = each * producers;
    let actor = subject.spawn(room).await;
    let (report, reported) = oneshot::channel();
    let wiring = Wiring {
        next: None,
        expected: done,
        report: Some(report),
    };
    S::wire(&actor, wiring).await;
    assert_eq!(S::ask(&actor, 0).await, 0, "the counter is wired");
    let start = Instant::now();
    let tellers: Vec<_> = (0..producers)
        .map(|_| {
            let actor = actor.clone();
            tokio::spawn(async move {
                for value in 0..each {
                    S::tell(&actor, value).await;
                }
            })
        })
        .collect();
    let sum = reported.await.expect("the counter reports");
    let time = start.elapsed();
    assert_eq!(
        sum,
        producers * (each * (each - 1) / 2),
        "every number arrived once"
    );
    for teller in tellers {
        teller.await.expect("a teller ends");
    }
    subject.stop(actor).await;
    Sample {
        time,
        done,
        checked: done,
    }
}

/// One task asks, one question at a time.
pub async fn ask<S: Subject>(subject: S, operations: u64) -> Sample {
    let actor = subject.spawn(Room::Unbounded).await;
    assert_eq!(S::ask(&actor, 0).await, 0, "a new counter is empty");
    let mut sum = 0;
    let start = Instant::now();
    for value in 0..operations {
        sum += value;
        assert_eq!(
            S::ask(&actor, value).await,
            sum,
            "the answer belongs to the question"
        );
    }
    let time = start.elapsed();
    subject.stop(actor).await;
    Sample {
        time,
        done: operations,
        checked: operations,
    }
}

/// Two actors pass a token to and fro.
pub async fn hop<S: Subject>(subject: S, operations: u64) -> Sample {
    let (report, reported) = oneshot::channel();
    let here = subject.spawn(Room::Unbounded).await;
    let there = subject.spawn(Room::Unbounded).await;
    // The token ends where its hops run out: an even number of hops ends with the second actor.
    let hops = operations.next_multiple_of(2);
    let forth = Wiring {
        next: Some(there.clone()),
        expected: u64::MAX,
        report: None,
    };
    let back = Wiring {
        next: Some(here.clone()),
        expected: u64::MAX,
        report: Some(report),
    };
    S::wire(&here, forth).await;
    S::wire(&there, back).await;
    S::ask(&here, 0).await;
    S::ask(&there, 0).await;
    let start = Instant::now();
    S::pass(
        &here,
        Token {
            left: hops,
            hops: 0,
        },
    )
    .await;
    let counted = reported.await.expect("the last hop reports");
    let time = start.elapsed();
    assert_eq!(counted, hops, "every hop was made once");
    // References in a circle keep each other alive.
    S::wire(&here, Counter::default().wiring).await;
    S::wire(&there, Counter::default().wiring).await;
    subject.stop(here).await;
    subject.stop(there).await;
    Sample {
        time,
        done: hops,
        checked: hops,
    }
}

/// Actors are spawned, each asked once; stopping them is not timed.
pub async fn spawn_until_answered<S: Subject>(subject: S, operations: u64) -> Sample {
    const BATCH: u64 = 500;
    let mut time = Duration::ZERO;
    let mut done = 0;
    while done < operations {
        let count = BATCH.min(operations - done);
        let mut actors = Vec::with_capacity(BATCH as usize);
        let start = Instant::now();
        for number in 1..=count {
            let actor = subject.spawn(Room::Unbounded).await;
            assert_eq!(S::ask(&actor, number).await, number, "a new actor answers");
            actors.push(actor);
        }
        time += start.elapsed();
        for actor in actors {
            subject.stop(actor).await;
        }
        done += count;
    }
    Sample {
        time,
        done,
        checked: done,
    }
}
