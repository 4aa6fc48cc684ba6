//! The budget: operations that complete at once consume it too, so a loop over them lets others
//! run.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::time::{Duration, Instant};

use strowger::{
    Actor, ActorRef, ActorSystem, ChildSpec, Context, Dynamic, MailboxSpec, Overflow, Restart,
    Strategy, Supervisor,
};
use tokio::task::coop;
use tokio::time::timeout;

use crate::support::{
    Job, MAX_WAIT, Work, Worker, current_thread, exclusive_machine, on_worker, runtime,
};

const SHORT: Duration = Duration::from_millis(50);
/// A loop that has not been interrupted by then never yields.
const LATE: Duration = Duration::from_secs(2);

struct Letter;

/// Handles nothing; its mailbox is small.
struct Deaf;

impl Actor for Deaf {
    type Msg = Letter;
    type Args = ();
    type Error = Infallible;
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1).overflow(Overflow::Fail);

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn handle(&mut self, _: Letter, _: &mut Context<Self>) -> Result<(), Infallible> {
        pending().await
    }
}

/// Awaits in a loop, under a timeout that must end it.
async fn gives_way<F: Future>(what: &str, mut wait: impl FnMut() -> F) {
    let begun = Instant::now();
    let waiting = async {
        while begun.elapsed() < LATE {
            wait().await;
        }
    };
    let ended = timeout(SHORT, waiting).await;
    assert!(
        ended.is_err() && begun.elapsed() < LATE,
        "{what} kept its worker for {:?}",
        begun.elapsed()
    );
}

async fn loops_over_waits_that_are_over() {
    let system = ActorSystem::new("budget").expect("within tokio");
    let ended: ActorRef<Job> = system.spawn::<Worker>("ended", ()).expect("free");
    ended.stop();
    ended.stopped().await;
    let running = system.spawn::<Worker>("running", ()).expect("free");
    let supervisor = Supervisor::new(Strategy::OneForOne);
    let supervisor = system.supervise("supervisor", supervisor).await;
    let supervisor = supervisor.expect("it starts");
    supervisor.stop();
    supervisor.stopped().await;

    gives_way("an ask of one who ended", || {
        ended.ask(Work::Wait(Duration::ZERO))
    })
    .await;
    let letter = || Letter;
    let deaf = system.spawn::<Deaf>("deaf", ()).expect("free");
    let full = system.spawn::<Deaf>("full", ()).expect("free");
    deaf.stop();
    deaf.stopped().await;
    while full.try_tell(letter()).is_ok() {}
    gives_way("a message for one who ended", || deaf.tell(letter())).await;
    gives_way("a message for one with no room", || full.tell(letter())).await;
    gives_way("a message that is wanted for a while", || {
        deaf.tell_within(letter(), MAX_WAIT)
    })
    .await;
    let recipient = full.recipient::<Letter>();
    gives_way("a message for a recipient", || recipient.tell(letter())).await;
    gives_way("a wait for an end that was", || ended.stopped()).await;
    gives_way("a wait for a start that was", || running.started()).await;
    gives_way("a request to a supervisor that ended", || {
        supervisor.count_children()
    })
    .await;
    gives_way("a child for a supervisor that ended", || {
        supervisor.start_child(ChildSpec::new::<Worker>("child", ()))
    })
    .await;
    full.kill();
    let mut events = system.events();
    system.shutdown(MAX_WAIT).await;
    while events.next().await.is_some() {}
    let begun = Instant::now();
    let reading = async {
        while begun.elapsed() < LATE {
            assert!(events.next().await.is_none(), "it is over");
        }
    };
    assert!(timeout(SHORT, reading).await.is_err());
    assert!(begun.elapsed() < LATE, "events kept their worker");
}

#[test]
fn loop_of_ready_awaits_yields() {
    let _alone = exclusive_machine();
    for runtime in [runtime(1), current_thread()] {
        on_worker(&runtime, loops_over_waits_that_are_over());
    }
}

struct Number(u64);

/// Adds up the numbers that it receives.
struct Sum(u64);

impl Actor for Sum {
    type Msg = Number;
    type Args = ();
    type Error = Infallible;
    const MAILBOX: MailboxSpec = MailboxSpec::unbounded();

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(0))
    }

    async fn handle(&mut self, number: Number, _: &mut Context<Self>) -> Result<(), Infallible> {
        self.0 += number.0;
        Ok(())
    }
}

#[test]
fn loop_of_tells_yields() {
    let _alone = exclusive_machine();
    for runtime in [runtime(1), runtime(2), current_thread()] {
        on_worker(&runtime, async {
            let system = ActorSystem::new("tells").expect("within tokio");
            let sum = system.spawn::<Sum>("sum", ()).expect("free");
            gives_way("a message that finds room", || sum.tell(Number(1))).await;
            system.shutdown(MAX_WAIT).await;
        });
    }
}

#[test]
fn spawning_many_actors_yields_at_the_next_await() {
    let _alone = exclusive_machine();
    on_worker(&runtime(1), async {
        let system = ActorSystem::new("starts").expect("within tokio");
        let dynamic = Dynamic::<Worker>::new().restart(Restart::Temporary);
        let dynamic = system.dynamic("dynamic", dynamic).expect("free");
        // Tokio limits the operations of a task in a row; the second loop starts with a fresh
        // budget.
        let many = 200;
        tokio::task::yield_now().await;
        for number in 0..many {
            let started = system.spawn::<Worker>(number.to_string(), ());
            started.expect("the name is free");
        }
        assert!(!coop::has_budget_remaining(), "spawn is charged");
        tokio::task::yield_now().await;
        assert!(coop::has_budget_remaining());
        for number in 0..many {
            let started = dynamic.start_child(number.to_string(), ());
            started.expect("the name is free");
        }
        assert!(!coop::has_budget_remaining(), "start_child is charged");
        system.shutdown(MAX_WAIT).await;
    });
}
