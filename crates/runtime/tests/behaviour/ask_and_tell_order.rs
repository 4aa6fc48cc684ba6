//! Asks of actors that other threads send tells to at the same time, also across restarts.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, BoxError, ChildSpec, Context, MailboxSpec, Reply,
    Request, Strategy, Supervisor,
};

/// Counts the tells that it handles, and those that arrive out of order.
struct Counter<const ROOM: usize> {
    count: u64,
    wrong: Arc<AtomicU64>,
}

enum Msg {
    Told(u64),
    Count(Reply<u64>),
}

struct Count;

impl Request for Count {
    type Reply = u64;
}

impl Accepts<Ask<Count>> for Msg {
    fn wrap(ask: Ask<Count>) -> Self {
        Self::Count(ask.reply)
    }
}

impl<const ROOM: usize> Actor for Counter<ROOM> {
    type Msg = Msg;
    type Args = Arc<AtomicU64>;
    type Error = Infallible;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(ROOM);

    async fn pre_start(wrong: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self { count: 0, wrong })
    }

    async fn handle(&mut self, msg: Msg, _: &mut Context<Self>) -> Result<(), Infallible> {
        match msg {
            Msg::Told(number) => {
                let wrong = u64::from(number != self.count);
                self.wrong.fetch_add(wrong, Ordering::Relaxed);
                self.count += 1;
            }
            Msg::Count(reply) => reply.send(self.count),
        }
        Ok(())
    }
}

/// Sends bursts of tells from one task while another task asks, until all tells are sent; then each
/// of them must have been counted.
async fn tell_and_ask<const ROOM: usize>(actors: usize, bursts: usize) {
    const BURST: usize = 100;
    let system = ActorSystem::new("place").expect("a system starts");
    let wrong = Arc::new(AtomicU64::new(0));
    let spawn = |key: usize| system.spawn::<Counter<ROOM>>(key.to_string(), Arc::clone(&wrong));
    let all: Result<Vec<ActorRef<Msg>>, _> = (0..actors).map(spawn).collect();
    let all = Arc::new(all.expect("the keys are free"));
    let over = Arc::new(AtomicBool::new(false));
    let (mine, done) = (Arc::clone(&all), Arc::clone(&over));
    let teller = tokio::spawn(async move {
        for at in 0..bursts * BURST {
            let number = (at / actors) as u64;
            let told = mine[at % actors].tell(Msg::Told(number)).await;
            assert!(told.is_ok(), "the actor is there");
            if at % BURST == 0 {
                tokio::task::yield_now().await;
            }
        }
        done.store(true, Ordering::Release);
    });
    let mut seen = vec![0; actors];
    let mut at = 0;
    while !over.load(Ordering::Acquire) {
        at = (at + 7) % actors;
        let count = all[at].ask(Count).await.expect("it answers");
        assert!(count >= seen[at], "a count does not go back");
        seen[at] = count;
        tokio::task::consume_budget().await;
    }
    teller.await.expect("the teller ends");
    let mut sum = 0;
    for actor in all.iter() {
        sum += actor.ask(Count).await.expect("it answers");
    }
    assert_eq!(
        sum,
        (bursts * BURST) as u64,
        "nothing was lost or overtaken"
    );
    assert_eq!(wrong.load(Ordering::Relaxed), 0, "all came in order");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asks_and_tells_of_one_sender_keep_order_without_loss() {
    let bursts = if cfg!(miri) { 2 } else { 500 };
    for _ in 0..4 {
        tell_and_ask::<1024>(100, bursts).await;
        tell_and_ask::<4>(3, bursts).await;
        tell_and_ask::<1>(2, bursts / 4).await;
    }
}

/// Observations that all incarnations of one actor share.
#[derive(Default)]
struct Seen {
    count: AtomicU64,
    wrong: AtomicU64,
    lives: AtomicU64,
}

/// Fails on one message in seven.
struct FailingCounter(Arc<Seen>);

const FATAL: u64 = 7;

impl Actor for FailingCounter {
    type Msg = Msg;
    type Args = Arc<Seen>;
    type Error = BoxError;

    async fn pre_start(seen: Arc<Seen>, _: &mut Context<Self>) -> Result<Self, BoxError> {
        seen.lives.fetch_add(1, Ordering::Relaxed);
        Ok(Self(seen))
    }

    async fn handle(&mut self, msg: Msg, _: &mut Context<Self>) -> Result<(), BoxError> {
        match msg {
            Msg::Told(number) => {
                let next = self.0.count.fetch_add(1, Ordering::Relaxed);
                let wrong = u64::from(number != next);
                self.0.wrong.fetch_add(wrong, Ordering::Relaxed);
                match number % FATAL {
                    0 => Err(format!("{number} is one too many").into()),
                    _ => Ok(()),
                }
            }
            Msg::Count(reply) => {
                reply.send(self.0.count.load(Ordering::Relaxed));
                Ok(())
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_incarnation_continues_after_the_message_that_failed() {
    let bursts: u64 = if cfg!(miri) { 4 } else { 2_000 };
    const BURST: u64 = 50;
    let system = ActorSystem::new("place").expect("a system starts");
    let seen = Arc::<Seen>::default();
    let child = ChildSpec::new::<FailingCounter>("frail", Arc::clone(&seen));
    let office = Supervisor::new(Strategy::OneForOne)
        .intensity(u32::MAX, std::time::Duration::from_secs(1))
        .child(child);
    let office = system.supervise("office", office).await.expect("it starts");
    let frail: ActorRef<Msg> = office.child("frail").expect("it runs");
    let teller = frail.clone();
    let teller = tokio::spawn(async move {
        for number in 0..bursts * BURST {
            let told = teller.tell(Msg::Told(number)).await;
            assert!(told.is_ok(), "the actor is there");
            if number % BURST == 0 {
                tokio::task::yield_now().await;
            }
        }
    });
    let (mut before, all) = (0, bursts * BURST);
    while before < all {
        let count = frail.ask(Count).await.expect("it answers");
        assert!(count >= before, "a count does not go back");
        before = count;
        tokio::task::consume_budget().await;
    }
    teller.await.expect("the teller ends");
    assert_eq!(seen.count.load(Ordering::Relaxed), all, "each came once");
    assert_eq!(seen.wrong.load(Ordering::Relaxed), 0, "all came in order");
    let lives = 1 + all.div_ceil(FATAL);
    assert_eq!(seen.lives.load(Ordering::Relaxed), lives);
    assert_eq!(u64::from(frail.erase().info().restarts), lives - 1);
}
