//! Destructors are foreign code: if one panics, only its own actor is affected.

use std::fmt;
use std::time::Duration;

use strowger::testing::TestSystem;
use strowger::{
    Actor, ActorRef, BoxError, ChildSpec, Context, Exit, MailboxSpec, Overflow, Restart, Strategy,
    Supervisor,
};

const SECOND: Duration = Duration::from_secs(1);

/// Panics when it is dropped, unless it was defused.
#[derive(Debug)]
struct PanicOnDrop(bool);

impl Drop for PanicOnDrop {
    fn drop(&mut self) {
        if self.0 && !std::thread::panicking() {
            std::panic::resume_unwind(Box::new("bomb"));
        }
    }
}

/// An error that panics when it is dropped.
#[derive(Debug)]
struct Volatile(PanicOnDrop);

impl fmt::Display for Volatile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "volatile: {:?}", self.0)
    }
}

impl std::error::Error for Volatile {}

enum Msg {
    Bomb(PanicOnDrop),
    Fail,
    Stop,
    Wait,
    Hold,
    Later,
    Pipe,
}

/// An actor that holds bombs in its state and whose mailbox has room for two messages.
struct Bearer {
    held: Vec<PanicOnDrop>,
}

impl Actor for Bearer {
    type Msg = Msg;
    type Args = ();
    type Error = BoxError;
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(2).overflow(Overflow::DropOldest);

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self { held: Vec::new() })
    }

    async fn handle(&mut self, msg: Msg, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match msg {
            Msg::Bomb(mut bomb) => bomb.0 = false,
            Msg::Stop => cx.stop(),
            Msg::Fail => return Err(Volatile(PanicOnDrop(true)).into()),
            Msg::Wait => tokio::time::sleep(SECOND).await,
            Msg::Later => {
                cx.send_after(SECOND, Msg::Bomb(PanicOnDrop(true)));
            }
            Msg::Pipe => {
                cx.pipe(async { PanicOnDrop(true) }, Msg::Bomb)?;
            }
            Msg::Hold => self.held.push(PanicOnDrop(true)),
        }
        Ok(())
    }
}

fn tell(actor: &ActorRef<Msg>, msg: Msg) {
    actor
        .try_tell(msg)
        .map_err(drop)
        .expect("the oldest makes room");
}

#[test]
fn panicking_message_destructor_does_not_prevent_actor_exit() {
    TestSystem::check(0..5, |system| {
        let probe = system.probe::<()>();
        let bearer = system.spawn::<Bearer>("b", ());
        probe.monitor(&bearer);
        tell(&bearer, Msg::Stop);
        tell(&bearer, Msg::Bomb(PanicOnDrop(true)));
        assert!(matches!(probe.expect_down(&bearer, SECOND), Exit::Normal));
        assert!(matches!(system.run(bearer.stopped()), Exit::Normal));
        system.spawn::<Bearer>("b", ());
    });
}

#[test]
fn supervisor_sees_exit_despite_panicking_message_destructors() {
    TestSystem::check(0..5, |system| {
        let child = ChildSpec::new::<Bearer>("b", ()).restart(Restart::Transient);
        let other = ChildSpec::new::<Bearer>("c", ());
        let children = Supervisor::new(Strategy::OneForOne)
            .child(child)
            .child(other);
        let supervisor = system.supervise("s", children);
        let bearer: ActorRef<Msg> = supervisor.child("b").expect("it runs");
        tell(&bearer, Msg::Stop);
        tell(&bearer, Msg::Bomb(PanicOnDrop(true)));
        system.run_until_idle();
        assert!(!bearer.is_alive());
        // The supervisor itself keeps running.
        let info = supervisor.erase().info();
        assert_eq!(info.restarts, 0);
        assert!(supervisor.any_child("c").is_some());
        system
            .run(supervisor.restart_child("b"))
            .expect("it starts");
    });
}

#[test]
fn panicking_actor_destructor_does_not_prevent_exit() {
    TestSystem::check(0..5, |system| {
        let children =
            Supervisor::new(Strategy::OneForOne).child(ChildSpec::new::<Bearer>("b", ()));
        let supervisor = system.supervise("s", children);
        let bearer: ActorRef<Msg> = supervisor.child("b").expect("it runs");
        tell(&bearer, Msg::Hold);
        system.run_until_idle();
        bearer.kill();
        system.run_until_idle();
        assert_eq!(bearer.erase().info().restarts, 1);
        tell(&bearer, Msg::Hold);
        tell(&bearer, Msg::Stop);
        system.run_until_idle();
        assert_eq!(bearer.erase().info().restarts, 2);
        assert!(bearer.is_alive());
    });
}

#[test]
fn killed_actor_exits_despite_panicking_current_message() {
    TestSystem::check(0..5, |system| {
        let children =
            Supervisor::new(Strategy::OneForOne).child(ChildSpec::new::<Bearer>("b", ()));
        let supervisor = system.supervise("s", children);
        let bearer: ActorRef<Msg> = supervisor.child("b").expect("it runs");
        tell(&bearer, Msg::Wait);
        system.run_until_idle();
        tell(&bearer, Msg::Bomb(PanicOnDrop(true)));
        tell(&bearer, Msg::Bomb(PanicOnDrop(false)));
        bearer.kill();
        system.run_until_idle();
        assert_eq!(bearer.erase().info().restarts, 1);
        assert_eq!(bearer.erase().info().mailbox_len, 0);
    });
}

#[test]
fn panicking_displaced_message_does_not_affect_the_sender() {
    let system = TestSystem::new(1);
    let bearer = system.spawn::<Bearer>("b", ());
    tell(&bearer, Msg::Wait);
    system.run_until_idle();
    (0..5).for_each(|_| tell(&bearer, Msg::Bomb(PanicOnDrop(true))));
    assert_eq!(bearer.erase().info().dropped, 3);
    system.advance(2 * SECOND);
    assert_eq!(bearer.erase().info().mailbox_len, 0);
    assert!(bearer.is_alive());
}

#[test]
fn panicking_timer_message_does_not_prevent_exit() {
    TestSystem::check(0..5, |system| {
        let children =
            Supervisor::new(Strategy::OneForOne).child(ChildSpec::new::<Bearer>("b", ()));
        let supervisor = system.supervise("s", children);
        let bearer: ActorRef<Msg> = supervisor.child("b").expect("it runs");
        tell(&bearer, Msg::Later);
        tell(&bearer, Msg::Stop);
        system.run_until_idle();
        assert_eq!(bearer.erase().info().restarts, 1);
        tell(&bearer, Msg::Wait);
        system.advance(2 * SECOND);
        assert!(bearer.is_alive());
    });
}

#[test]
fn panicking_queued_completion_does_not_prevent_exit() {
    TestSystem::check(0..5, |system| {
        let children =
            Supervisor::new(Strategy::OneForOne).child(ChildSpec::new::<Bearer>("b", ()));
        let supervisor = system.supervise("s", children);
        let bearer: ActorRef<Msg> = supervisor.child("b").expect("it runs");
        tell(&bearer, Msg::Pipe);
        tell(&bearer, Msg::Wait);
        system.run_until_idle();
        bearer.kill();
        system.run_until_idle();
        assert_eq!(bearer.erase().info().restarts, 1);
        assert_eq!(bearer.erase().info().mailbox_len, 0);
        tell(&bearer, Msg::Wait);
        system.advance(2 * SECOND);
        assert!(bearer.is_alive());
    });
}

#[test]
fn panicking_error_destructor_does_not_prevent_restart() {
    TestSystem::check(0..20, |system| {
        let child = ChildSpec::new::<Bearer>("b", ()).restart(Restart::Transient);
        let top = Supervisor::new(Strategy::OneForOne)
            .intensity(9, SECOND)
            .child(child);
        let top = system.supervise("s", top);
        let bearer: ActorRef<Msg> = top.child("b").expect("it runs");
        for restarts in 1..=4 {
            tell(&bearer, Msg::Fail);
            system.run_until_idle();
            assert!(bearer.is_alive());
            assert_eq!(bearer.erase().info().restarts, restarts);
        }
        // The error of the last failure is dropped with the exit for good.
        tell(&bearer, Msg::Stop);
        assert!(matches!(system.run(bearer.stopped()), Exit::Normal));
        assert!(top.erase().is_alive());
    });
}
