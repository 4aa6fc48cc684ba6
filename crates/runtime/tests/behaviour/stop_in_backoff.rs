//! Requests to the children of a stopping supervisor: none of them waits for a child that will not
//! come back.

use std::time::Duration;

use strowger::testing::{Probe, TestSystem};
use strowger::{
    Actor, ActorRef, Ask, AskError, Backoff, BoxError, ChildSpec, Context, Dynamic, Exit,
    Recipient, Request, Restart, Shutdown, Strategy, Supervisor, handlers,
};

const SECOND: Duration = Duration::from_secs(1);
const EVER: Duration = Duration::from_secs(1_000_000);

/// The requests that a member answers.
#[derive(Debug, Clone, Copy)]
enum Question {
    Answer,
    Fail,
}

impl Request for Question {
    type Reply = ();
}

/// Makes a member ask another one after some time.
struct Visit {
    whom: ActorRef<MemberMessage>,
    after: Duration,
    questions: Vec<Question>,
}

type Heard = Vec<Result<(), AskError>>;

/// Replies, or asks another member and reports what it heard.
struct Member {
    to: Recipient<Heard>,
}

#[handlers]
impl Actor for Member {
    type Args = Recipient<Heard>;
    type Error = BoxError;

    async fn pre_start(to: Recipient<Heard>, _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self { to })
    }

    async fn question(&mut self, ask: Ask<Question>) -> Result<(), BoxError> {
        match ask.request {
            Question::Answer => ask.reply.send(()),
            Question::Fail => return Err("as asked".into()),
        }
        Ok(())
    }

    async fn visit(&mut self, visit: Visit) -> Result<(), BoxError> {
        tokio::time::sleep(visit.after).await;
        let mut heard = Heard::new();
        for question in visit.questions {
            heard.push(visit.whom.ask_within(question, EVER).await);
        }
        self.to.try_tell(heard)?;
        Ok(())
    }
}

/// A backoff that is long for every restart but the first.
fn long() -> Backoff {
    Backoff::new(99 * SECOND, 99 * SECOND)
}

/// Two members below a supervisor.
struct Pair {
    supervisor: strowger::SupervisorRef,
    first: ActorRef<MemberMessage>,
    second: ActorRef<MemberMessage>,
    probe: Probe<Heard>,
}

impl Pair {
    fn new(system: &TestSystem, strategy: Strategy, backoff: Backoff) -> Self {
        let probe = system.probe();
        let child = |key: &str| {
            let spec = ChildSpec::new::<Member>(key, probe.recipient());
            spec.shutdown(Shutdown::Infinity)
        };
        let supervisor = Supervisor::new(strategy)
            .backoff(backoff)
            .child(child("first"))
            .child(child("second"));
        let supervisor = system.supervise("s", supervisor);
        let find = |key| supervisor.child(key).expect("it runs");
        Self {
            first: find("first"),
            second: find("second"),
            supervisor,
            probe,
        }
    }

    fn visit(&self, after: Duration, questions: &[Question]) {
        let visit = Visit {
            whom: self.first.clone(),
            after,
            questions: questions.to_vec(),
        };
        self.second.try_tell(visit).expect("there is room");
    }

    /// Stops the supervisor; returns what the second member heard and how long that took.
    fn stop(&self, system: &TestSystem) -> (Vec<Heard>, Duration) {
        let before = system.elapsed();
        self.supervisor.stop();
        let exit = system.run(self.supervisor.stopped());
        assert!(matches!(exit, Exit::Shutdown), "{exit:?}");
        assert!(!self.first.is_alive() && !self.second.is_alive());
        (self.probe.drain(), system.elapsed() - before)
    }
}

fn fail_twice(system: &TestSystem, member: &ActorRef<MemberMessage>) {
    for _ in 0..2 {
        let failed = system.run(member.ask(Question::Fail));
        assert_eq!(failed, Err(AskError::Dropped));
    }
}

#[test]
fn ask_of_a_child_in_backoff_fails_when_the_supervisor_stops() {
    TestSystem::check(0..10, |system| {
        let pair = Pair::new(system, Strategy::OneForOne, long());
        fail_twice(system, &pair.first);
        pair.visit(Duration::ZERO, &[Question::Answer]);
        system.run_until_idle();
        let (heard, took) = pair.stop(system);
        assert_eq!(heard, [[Err(AskError::Dropped)]]);
        assert_eq!(took, Duration::ZERO);
    });
}

#[test]
fn child_in_backoff_refuses_asks_once_its_supervisor_stops() {
    TestSystem::check(0..10, |system| {
        let pair = Pair::new(system, Strategy::OneForOne, long());
        fail_twice(system, &pair.first);
        pair.visit(SECOND, &[Question::Answer]);
        system.run_until_idle();
        let (heard, took) = pair.stop(system);
        assert_eq!(heard, [[Err(AskError::Closed)]]);
        assert_eq!(took, SECOND);
    });
}

#[test]
fn child_ended_during_supervisor_stop_refuses_messages() {
    let all = [
        Strategy::OneForOne,
        Strategy::OneForAll,
        Strategy::RestForOne,
    ];
    let each = all.map(|strategy| [(strategy, long()), (strategy, Backoff::NONE)]);
    for (strategy, backoff) in each.into_iter().flatten() {
        TestSystem::check(0..10, |system| {
            let pair = Pair::new(system, strategy, backoff);
            pair.visit(SECOND, &[Question::Fail, Question::Answer]);
            system.run_until_idle();
            let (heard, took) = pair.stop(system);
            assert_eq!(heard, [[Err(AskError::Dropped), Err(AskError::Closed)]]);
            assert_eq!(took, SECOND);
            assert_eq!(pair.first.erase().info().restarts, 0);
        });
    }
}

#[test]
fn stopping_dynamic_ends_children_in_backoff() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe::<Heard>();
        let dynamic = Dynamic::<Member>::new()
            .restart(Restart::Permanent)
            .shutdown(Shutdown::Infinity)
            .backoff(long());
        let dynamic = system.dynamic("d", dynamic);
        let start = |key: &str| {
            let started = dynamic.start_child(key, probe.recipient());
            started.expect("a new key")
        };
        let (first, second) = (start("first"), start("second"));
        fail_twice(system, &first);
        let visit = Visit {
            whom: first,
            after: Duration::ZERO,
            questions: vec![Question::Answer; 2],
        };
        second.try_tell(visit).expect("there is room");
        system.run_until_idle();
        let before = system.elapsed();
        dynamic.stop();
        system.run(dynamic.stopped());
        let expected = [[Err(AskError::Dropped), Err(AskError::Closed)]];
        assert_eq!(probe.drain(), expected);
        assert_eq!(system.elapsed(), before);
    });
}

#[test]
fn stopping_dynamic_does_not_restart_children() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe::<Heard>();
        let dynamic = Dynamic::<Member>::new()
            .restart(Restart::Permanent)
            .shutdown(Shutdown::Infinity);
        let dynamic = system.dynamic("d", dynamic);
        let member = dynamic
            .start_child("member", probe.recipient())
            .expect("a new key");
        // The member is busy when it is asked to stop, and then fails: nobody is told.
        let visit = Visit {
            whom: system.spawn::<Member>("other", probe.recipient()),
            after: SECOND,
            questions: vec![Question::Answer],
        };
        probe.actor().kill();
        member.try_tell(visit).expect("there is room");
        system.run_until_idle();
        dynamic.stop();
        system.run(dynamic.stopped());
        let info = member.erase().info();
        assert_eq!(info.restarts, 0);
        assert!(matches!(info.last_exit, Some(Exit::Failed(_))), "{info:?}");
    });
}
