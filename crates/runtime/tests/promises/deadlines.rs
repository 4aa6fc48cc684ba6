//! A deadline fires on time whatever the callee does, and independent actors run in parallel.

use std::time::{Duration, Instant};

use strowger::{Actor, ActorRef, ActorSystem, Ask, AskError, BoxError, Context};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::{
    Job, MAX_WAIT, Work, Worker, current_thread, exclusive_machine, on_worker, runtime,
};

const SHORT: Duration = Duration::from_millis(50);
/// The limit beyond which a deadline is late.
const LATE: Duration = Duration::from_millis(350);
const LONG: Duration = Duration::from_secs(1);

fn worker(system: &ActorSystem, name: &str) -> ActorRef<Job> {
    system.spawn::<Worker>(name, ()).expect("the name is free")
}

#[test]
fn ask_of_a_busy_callee_ends_at_its_deadline() {
    let _alone = exclusive_machine();
    for workers in [2, 4] {
        on_worker(&runtime(workers), async {
            let system = ActorSystem::new("deadlines").expect("within tokio");
            let works = [Work::Compute, Work::Block, Work::Wait];
            for (number, work) in works.into_iter().enumerate() {
                // An idle actor that started long ago.
                let idle = worker(&system, &format!("idle-{number}"));
                idle.ask(Work::Wait(Duration::ZERO))
                    .await
                    .expect("an answer");
                let begun = Instant::now();
                let asked = idle.ask_within(work(LONG), SHORT).await;
                assert_eq!(asked, Err(AskError::TimedOut));
                let took = begun.elapsed();
                assert!(took >= SHORT && took < LATE, "it took {took:?}");
                // Otherwise the actor would block its worker together with the next one.
                idle.ask(Work::Wait(Duration::ZERO))
                    .await
                    .expect("an answer");
            }
            system.shutdown(MAX_WAIT).await;
        });
    }
}

#[test]
fn timeout_around_a_loop_of_asks_is_on_time() {
    let _alone = exclusive_machine();
    for runtime in [runtime(1), runtime(2), current_thread()] {
        on_worker(&runtime, async {
            let system = ActorSystem::new("loop").expect("within tokio");
            let busy = worker(&system, "busy");
            let begun = Instant::now();
            let mut ticks = 0;
            let ticking = async {
                let mut tick = tokio::time::interval(Duration::from_millis(1));
                loop {
                    tick.tick().await;
                    ticks += 1;
                }
            };
            let asking = async {
                loop {
                    let asked = busy.ask(Work::Compute(Duration::from_micros(10))).await;
                    asked.expect("an answer");
                }
            };
            let both = async { tokio::join!(ticking, asking) };
            assert!(timeout(2 * SHORT, both).await.is_err());
            let took = begun.elapsed();
            assert!(took < 2 * SHORT + LATE, "it took {took:?}");
            assert!(ticks >= 10, "a timer beside it went off {ticks} times");
            system.shutdown(MAX_WAIT).await;
        });
    }
}

#[test]
fn loop_of_asks_in_a_handler_does_not_starve_the_runtime() {
    let _alone = exclusive_machine();
    use std::convert::Infallible;

    /// Asks another actor forever.
    struct Asker(ActorRef<Job>);

    impl Actor for Asker {
        type Msg = ();
        type Args = ActorRef<Job>;
        type Error = Infallible;

        async fn pre_start(of: ActorRef<Job>, _: &mut Context<Self>) -> Result<Self, Infallible> {
            Ok(Self(of))
        }

        async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), Infallible> {
            while self.0.ask(Work::Wait(Duration::ZERO)).await.is_ok() {}
            Ok(())
        }
    }

    for runtime in [runtime(1), runtime(2), current_thread()] {
        on_worker(&runtime, async {
            let system = ActorSystem::new("asker").expect("within tokio");
            let busy = worker(&system, "busy");
            let asker = system.spawn::<Asker>("asker", busy.clone()).expect("free");
            asker.tell(()).await.expect("it is there");
            let begun = Instant::now();
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let took = begun.elapsed();
            assert!(took < LATE, "twenty milliseconds took {took:?}");
            asker.kill();
            system.shutdown(MAX_WAIT).await;
        });
    }
}

#[test]
fn asks_of_several_actors_run_in_parallel() {
    let _alone = exclusive_machine();
    on_worker(&runtime(4), async {
        let system = ActorSystem::new("parallel").expect("within tokio");
        let begun = Instant::now();
        let mut asks = JoinSet::new();
        for number in 0..3 {
            let worker = worker(&system, &format!("{number}"));
            asks.spawn(async move { worker.ask(Work::Block(LONG / 2)).await });
        }
        while let Some(asked) = asks.join_next().await {
            asked.expect("no panic").expect("an answer");
        }
        let took = begun.elapsed();
        assert!(took < LONG, "three halves of a second took {took:?}");

        // The same from a single task: neither actor waits for the other on the stack of the asker.
        let (one, other) = (worker(&system, "one"), worker(&system, "other"));
        let begun = Instant::now();
        let asks = tokio::join!(
            one.ask(Work::Block(LONG / 2)),
            other.ask(Work::Block(LONG / 2))
        );
        assert_eq!(asks, (Ok(()), Ok(())));
        let took = begun.elapsed();
        assert!(took < LONG * 9 / 10, "two halves of a second took {took:?}");
        system.shutdown(MAX_WAIT).await;
    });
}

/// The time that eight actors take when they are asked at once and each of them computes for
/// `time`.
async fn ask_eight_computing_actors(time: Duration) -> Duration {
    let system = ActorSystem::new("eight").expect("within tokio");
    let named = |number: u32| worker(&system, &number.to_string());
    let workers: Vec<_> = (0..8).map(named).collect();
    let begun = Instant::now();
    let mut asks = JoinSet::new();
    for worker in workers {
        asks.spawn(async move { worker.ask(Work::Compute(time)).await });
    }
    while let Some(asked) = asks.join_next().await {
        asked.expect("no panic").expect("an answer");
    }
    let took = begun.elapsed();
    system.shutdown(MAX_WAIT).await;
    took
}

#[test]
fn computing_callees_share_the_workers() {
    let _alone = exclusive_machine();
    // A machine that is busy with other programs may delay a worker for long; a broken guarantee
    // fails every time.
    let sequential = 8 * SHORT;
    let mut tries = Vec::new();
    for _ in 0..3 {
        tries.push(on_worker(&runtime(2), ask_eight_computing_actors(SHORT)));
        if tries.last() < Some(&(sequential * 3 / 4)) {
            return;
        }
    }
    panic!("on two workers, where one takes {sequential:?}: {tries:?}");
}

#[test]
fn blocking_start_does_not_delay_other_asks() {
    let _alone = exclusive_machine();
    on_worker(&runtime(4), async {
        let system = ActorSystem::new("beside").expect("within tokio");
        let (held, free) = (worker(&system, "held"), worker(&system, "free"));
        let holding = tokio::spawn(async move { held.ask(Work::Block(LONG)).await });
        tokio::task::yield_now().await;
        let mut worst = Duration::ZERO;
        for _ in 0..100 {
            let begun = Instant::now();
            free.ask(Work::Wait(Duration::ZERO))
                .await
                .expect("an answer");
            worst = worst.max(begun.elapsed());
        }
        assert!(worst < LATE, "an answer took {worst:?}");
        holding.await.expect("no panic").expect("an answer");
        system.shutdown(MAX_WAIT).await;
    });
}

#[test]
fn answer_racing_with_watch_wakes_the_asker() {
    let _alone = exclusive_machine();
    /// Forwards each request to another actor.
    struct Between(ActorRef<Job>);

    impl Actor for Between {
        type Msg = Ask<Work>;
        type Args = ActorRef<Job>;
        type Error = BoxError;

        async fn pre_start(to: ActorRef<Job>, _: &mut Context<Self>) -> Result<Self, BoxError> {
            Ok(Self(to))
        }

        async fn handle(&mut self, ask: Ask<Work>, _: &mut Context<Self>) -> Result<(), BoxError> {
            self.0.ask_within(ask.request, 2 * LONG).await?;
            ask.reply.send(());
            Ok(())
        }
    }

    on_worker(&runtime(2), async {
        let system = ActorSystem::new("watched").expect("within tokio");
        let callee = worker(&system, "callee");
        let between = system.spawn::<Between>("between", callee).expect("free");
        // Only an ask of an actor is monitored, and only about a millisecond after it was sent.
        for time in [10, 20, 30] {
            let begun = Instant::now();
            let work = Work::Block(Duration::from_millis(time));
            assert_eq!(between.ask(work).await, Ok(()));
            // An asker that nothing wakes finds its reply only at its deadline.
            let took = begun.elapsed();
            assert!(took < LONG, "an answer of {time} ms took {took:?}");
        }
        system.shutdown(MAX_WAIT).await;
    });
}
