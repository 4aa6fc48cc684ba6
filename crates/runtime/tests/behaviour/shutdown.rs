//! The shutdown of a system: in order, within time limits, and without leftovers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use strowger::testing::{ScriptCommand, ScriptedActor, TestSystem};
use strowger::{Actor, ActorSystem, ChildSpec, Context, Exit, StartError, Strategy, Supervisor};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn shutdown_stops_actors_in_reverse_start_order() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let child = |key: &str| ChildSpec::new::<ScriptedActor>(key, probe.recipient());
    let inner = Supervisor::new(Strategy::OneForOne)
        .child(child("c"))
        .child(child("d"));
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .child(child("a"))
        .supervisor("b", inner)
        .child(child("e"));
    system.supervise("s", supervisor);
    let last = system.spawn::<ScriptedActor>("z", probe.recipient());
    last.try_tell(ScriptCommand::Spawn("y".into())).unwrap();
    let _ = probe.event_lines();
    let report = system.run(system.system().shutdown(SECOND));
    assert!(report.not_stopped.is_empty());
    let stopped = |path: &str| format!("{path} stopped: shutdown");
    let order = ["/z/y", "/z", "/s/e", "/s/b/d", "/s/b/c", "/s/a"].map(stopped);
    // The probe started first, so it ends last and has received everything.
    assert_eq!(probe.event_lines(), order);
    let refused = system
        .system()
        .spawn::<ScriptedActor>("late", probe.recipient());
    assert!(matches!(refused, Err(StartError::ParentEnding { .. })));
}

#[test]
fn actor_exceeding_its_limit_is_killed() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let slow = system.spawn::<ScriptedActor>("slow", probe.recipient());
    slow.try_tell(ScriptCommand::Sleep(3600 * SECOND)).unwrap();
    let _ = probe.event_lines();
    let report = system.run(system.system().shutdown(SECOND));
    assert!(report.not_stopped.is_empty());
    assert_eq!(system.elapsed(), SECOND);
    assert!(matches!(system.run(slow.stopped()), Exit::Killed));
}

/// Blocks its thread until the test lets it go.
struct Blocked;

type Gate = Arc<(parking_lot::Mutex<bool>, parking_lot::Condvar)>;

impl Actor for Blocked {
    type Msg = Gate;
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn handle(&mut self, gate: Gate, _: &mut Context<Self>) -> Result<(), Infallible> {
        let mut open = gate.0.lock();
        while !*open {
            gate.1.wait(&mut open);
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_report_names_blocked_actors() {
    let system = ActorSystem::new("test").unwrap();
    let gate = Gate::default();
    let blocked = system.spawn::<Blocked>("blocked", ()).unwrap();
    blocked.tell(Arc::clone(&gate)).await.unwrap();
    while blocked.erase().info().handled == 0 && blocked.erase().info().mailbox_len > 0 {
        tokio::task::yield_now().await;
    }
    let report = system.shutdown(Duration::from_millis(20)).await;
    let named: Vec<_> = report
        .not_stopped
        .iter()
        .map(strowger::ActorPath::as_str)
        .collect();
    assert_eq!(named, ["/blocked"]);
    *gate.0.lock() = true;
    gate.1.notify_all();
    assert!(matches!(
        blocked.stopped().await,
        Exit::Killed | Exit::Shutdown
    ));
}

#[tokio::test]
async fn dropping_the_last_handle_kills_all_actors() {
    let system = ActorSystem::new("test").unwrap();
    let probe = Arc::new(());
    let actor = system
        .spawn::<Holder>("holder", Arc::clone(&probe))
        .unwrap();
    let clone = system.clone();
    drop(system);
    assert!(actor.is_alive(), "another handle is left");
    drop(clone);
    assert!(matches!(actor.stopped().await, Exit::Killed));
    drop(actor);
    tokio::task::yield_now().await;
    assert_eq!(
        Arc::strong_count(&probe),
        1,
        "nothing of the system is left"
    );
}

/// Holds its arguments.
struct Holder {
    _held: Arc<()>,
}

impl Actor for Holder {
    type Msg = ();
    type Args = Arc<()>;
    type Error = Infallible;

    async fn pre_start(held: Arc<()>, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        let beside = Arc::clone(&held);
        cx.task("beside", async move {
            let _held = beside;
            std::future::pending().await
        });
        Ok(Self { _held: held })
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), Infallible> {
        Ok(())
    }
}

#[test]
fn dropping_the_tokio_runtime_ends_its_actors() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let (system, actor, held) = runtime.block_on(async {
        let held = Arc::new(());
        let system = ActorSystem::new("test").unwrap();
        let actor = system.spawn::<Holder>("holder", Arc::clone(&held)).unwrap();
        (system, actor, held)
    });
    drop(runtime);
    assert!(!actor.is_alive());
    assert!(system.find("/holder").is_none());
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn actor_never_polled_ends_with_its_runtime() {
    // Without a worker, only the future given to `block_on` is polled.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let held = Arc::new(());
    let (system, actor) = runtime.block_on(async {
        let system = ActorSystem::new("test").unwrap();
        let actor = system.spawn::<Holder>("holder", Arc::clone(&held)).unwrap();
        (system, actor)
    });
    drop(runtime);
    assert!(!actor.is_alive());
    assert!(system.find("/holder").is_none());
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn build_fails_outside_a_tokio_runtime() {
    let error = ActorSystem::new("test").unwrap_err();
    assert_eq!(
        error.to_string(),
        "an actor system must be built inside a tokio runtime"
    );
}

#[test]
fn events_end_with_their_system() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    system.spawn::<ScriptedActor>("p", probe.recipient());
    let mut events = system.events();
    system.run(system.system().shutdown(SECOND));
    let mut paths = Vec::new();
    while let Some(event) = system.run(events.next()) {
        paths.push(event.path().to_string());
    }
    assert_eq!(paths[0], "/p");
    assert!(system.run(system.events().next()).is_none());
}

#[test]
fn restarted_child_keeps_its_shutdown_position() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let child = |key: &str| ChildSpec::new::<ScriptedActor>(key, probe.recipient());
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .child(child("a"))
        .child(child("b"));
    let supervisor = system.supervise("s", supervisor);
    system.run(supervisor.terminate_child("a")).unwrap();
    system.run(supervisor.restart_child("a")).unwrap();
    let _ = probe.event_lines();
    supervisor.stop();
    assert_eq!(
        probe.event_lines(),
        ["/s/b stopped: shutdown", "/s/a stopped: shutdown"]
    );
}
