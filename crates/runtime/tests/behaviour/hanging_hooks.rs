//! Hooks that never return: the rest of the system keeps working, and the actors can be ended.

use std::time::Duration;

use strowger::testing::{
    Hook, InjectedFault, Probe, RecordedEvent, ScriptCommand, ScriptedActor, TestSystem,
};
use strowger::{
    ActorLifecycle, ActorRef, ChildSpec, Dynamic, Exit, Shutdown, Strategy, Supervisor,
};

const SECOND: Duration = Duration::from_secs(1);
const EVER: Duration = Duration::from_secs(1_000_000);

fn scripted(key: &str, probe: &Probe<RecordedEvent>) -> ChildSpec {
    ChildSpec::new::<ScriptedActor>(key, probe.recipient())
}

#[test]
fn system_with_hanging_start_can_be_shut_down() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    system.inject("/s/b", Hook::PreStart, 1, InjectedFault::Stall(EVER));
    let children = Supervisor::new(Strategy::OneForOne)
        .child(scripted("a", &probe))
        .child(scripted("b", &probe));
    let handle = system.system().clone();
    let started = system.run(async move {
        tokio::time::timeout(SECOND, handle.supervise("s", children))
            .await
            .is_ok()
    });
    assert!(!started);
    let info = system.system().find("/s").expect("it is starting").info();
    assert_eq!(info.state, ActorLifecycle::Starting);
    let report = system.shutdown(SECOND);
    assert!(report.not_stopped.is_empty(), "{report:?}");
    assert!(system.system().actors().is_empty());
}

#[test]
fn child_hanging_in_restart_can_be_killed_and_is_retried() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let children = Supervisor::new(Strategy::OneForOne).child(scripted("a", &probe));
        let supervisor = system.supervise("s", children);
        let child: ActorRef<ScriptCommand> = supervisor.child("a").expect("it runs");
        system.inject("/s/a", Hook::PreStart, 1, InjectedFault::Stall(EVER));
        child.try_tell(ScriptCommand::Panic).expect("there is room");
        child
            .try_tell(ScriptCommand::Note(1))
            .expect("there is room");
        system.advance(SECOND);
        assert_eq!(child.erase().info().state, ActorLifecycle::Starting);
        child.kill();
        let expected = [
            "/s/a started",
            "/s/a dropped",
            "/s/a started",
            "/s/a noted 1",
        ];
        assert_eq!(probe.event_lines(), expected);
    });
}

#[test]
fn killing_a_supervisor_kills_a_child_hanging_in_start() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let children = Supervisor::new(Strategy::OneForOne)
            .child(scripted("a", &probe))
            .child(scripted("b", &probe));
        let supervisor = system.supervise("s", children);
        let child: ActorRef<ScriptCommand> = supervisor.child("a").expect("it runs");
        system.inject("/s/a", Hook::PreStart, 1, InjectedFault::Stall(EVER));
        child.try_tell(ScriptCommand::Panic).expect("there is room");
        system.run_until_idle();
        supervisor.kill();
        assert!(matches!(system.run(supervisor.stopped()), Exit::Killed));
        assert!(!child.is_alive());
        assert!(system.system().find("/s").is_none());
    });
}

#[test]
fn supervisor_waiting_for_a_start_can_be_stopped() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let children = Supervisor::new(Strategy::OneForOne)
            .child(scripted("a", &probe))
            .child(scripted("b", &probe).shutdown(Shutdown::Graceful(SECOND)));
        let supervisor = system.supervise("s", children);
        let child: ActorRef<ScriptCommand> = supervisor.child("b").expect("it runs");
        system.inject("/s/b", Hook::PreStart, 1, InjectedFault::Stall(EVER));
        child.try_tell(ScriptCommand::Panic).expect("there is room");
        system.run_until_idle();
        let before = system.elapsed();
        supervisor.stop();
        assert!(matches!(system.run(supervisor.stopped()), Exit::Shutdown));
        // The hanging child gets its own time limit, and is then killed.
        assert_eq!(system.elapsed() - before, SECOND);
        let expected = [
            "/s/a started",
            "/s/b started",
            "/s/b dropped",
            "/s/a stopped: shutdown",
        ];
        assert_eq!(probe.event_lines(), expected);
    });
}

#[test]
fn hanging_handler_is_killed_at_the_shutdown_limit() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let limit = Shutdown::Graceful(2 * SECOND);
    let children =
        Supervisor::new(Strategy::OneForOne).child(scripted("a", &probe).shutdown(limit));
    let supervisor = system.supervise("s", children);
    let child: ActorRef<ScriptCommand> = supervisor.child("a").expect("it runs");
    child
        .try_tell(ScriptCommand::Sleep(EVER))
        .expect("there is room");
    system.run_until_idle();
    let before = system.elapsed();
    system
        .run(supervisor.terminate_child("a"))
        .expect("it has such a child");
    assert_eq!(system.elapsed() - before, 2 * SECOND);
    assert_eq!(probe.event_lines(), ["/s/a started", "/s/a dropped"]);
}

#[test]
fn hanging_dynamic_child_does_not_block_its_siblings() {
    let system = TestSystem::new(1);
    let probe = system.probe::<RecordedEvent>();
    let dynamic = system.dynamic("d", Dynamic::<ScriptedActor>::new());
    system.inject("/d/a", Hook::PreStart, 1, InjectedFault::Stall(EVER));
    let hanging = dynamic
        .start_child("a", probe.recipient())
        .expect("a new key");
    dynamic
        .start_child("b", probe.recipient())
        .expect("a new key");
    assert_eq!(probe.event_lines(), ["/d/b started"]);
    assert!(system.run(dynamic.terminate_child("a")));
    assert!(!hanging.is_alive());
    assert_eq!(system.elapsed(), 5 * SECOND);
}

#[test]
fn supervisor_waiting_for_initial_children_can_be_stopped() {
    TestSystem::check(0..10, |system| {
        let probe = system.probe();
        let inner = Supervisor::new(Strategy::OneForOne)
            .child(scripted("a", &probe))
            .child(scripted("b", &probe).shutdown(Shutdown::Immediate));
        system.inject("/s/inner/b", Hook::PreStart, 1, InjectedFault::Stall(EVER));
        let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne));
        let starting = supervisor.clone();
        let stopping = supervisor.clone();
        let started = system.run(async move {
            let inner = ChildSpec::supervisor("inner", inner);
            tokio::join!(starting.start_child(inner), async {
                tokio::time::sleep(SECOND).await;
                stopping.stop();
            })
        });
        assert!(started.0.is_err());
        assert!(matches!(system.run(supervisor.stopped()), Exit::Shutdown));
        assert_eq!(
            probe.event_lines(),
            ["/s/inner/a started", "/s/inner/a stopped: shutdown"]
        );
        assert!(system.system().find("/s").is_none());
    });
}
