//! Names: unique, looked up, and free again when the actor ends.

use strowger::testing::{ScriptCommand, ScriptedActor, TestSystem};
use strowger::{ChildSpec, RegisterError, Strategy, Supervisor};

#[test]
fn name_is_unique_until_its_actor_ends() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let one = system.spawn::<ScriptedActor>("one", probe.recipient());
    let two = system.spawn::<ScriptedActor>("two", probe.recipient());
    let names = system.system();
    names.register("scripted", &one).unwrap();
    let taken = names.register("scripted", &two);
    assert_eq!(
        taken,
        Err(RegisterError::NameTaken {
            name: "scripted".into()
        })
    );
    assert_eq!(
        names.whereis::<ScriptCommand>("scripted"),
        Some(one.clone())
    );
    assert!(
        names.whereis::<u8>("scripted").is_none(),
        "its messages are of another type"
    );
    one.stop();
    system.run_until_idle();
    assert!(names.whereis::<ScriptCommand>("scripted").is_none());
    names.register("scripted", &two).unwrap();
    assert_eq!(names.registered(), ["scripted".into()]);
}

#[test]
fn ended_actor_cannot_be_registered() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let one = system.spawn::<ScriptedActor>("one", probe.recipient());
    one.kill();
    system.run_until_idle();
    let refused = system.system().register("scripted", &one);
    assert_eq!(
        refused,
        Err(RegisterError::Ended {
            name: "scripted".into()
        })
    );
    assert!(system.system().registered().is_empty());
}

#[test]
fn registered_name_survives_restart() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let child = ChildSpec::new::<ScriptedActor>("p", probe.recipient());
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let supervisor = system.supervise("s", supervisor);
    let child = supervisor.child::<ScriptCommand>("p").unwrap();
    system.system().register("scripted", &child).unwrap();
    child.try_tell(ScriptCommand::Error).unwrap();
    system.run_until_idle();
    assert_eq!(
        system.system().whereis::<ScriptCommand>("scripted"),
        Some(child)
    );
}

#[test]
fn unregistered_name_is_free_at_once() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let one = system.spawn::<ScriptedActor>("one", probe.recipient());
    system.system().register("scripted", &one).unwrap();
    assert!(system.system().unregister("scripted"));
    assert!(!system.system().unregister("scripted"));
    assert!(one.is_alive());
}

#[test]
fn actor_ids_are_never_reused() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let one = system.spawn::<ScriptedActor>("one", probe.recipient());
    let id = one.id();
    one.stop();
    system.run_until_idle();
    let two = system.spawn::<ScriptedActor>("two", probe.recipient());
    assert_eq!(two.id().slot, id.slot, "the slot is used again");
    assert_ne!(two.id(), id);
    assert!(system.system().get(id).is_none());
    assert_eq!(
        system.system().get(two.id()).unwrap().path().as_str(),
        "/two"
    );
}

#[test]
fn actors_are_found_by_path() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let one = system.spawn::<ScriptedActor>("one", probe.recipient());
    one.try_tell(ScriptCommand::Spawn("child".into())).unwrap();
    system.run_until_idle();
    let child = system.system().find("/one/child").unwrap();
    assert_eq!(child.path().key(), "child");
    assert!(system.system().find("/one/other").is_none());
    let paths: Vec<_> = system
        .system()
        .actors()
        .into_iter()
        .map(|info| info.path)
        .collect();
    let below: Vec<_> = paths
        .iter()
        .filter(|path| path.as_str().starts_with("/one"))
        .collect();
    assert_eq!(
        below,
        ["/one", "/one/child"]
            .map(strowger::ActorPath::from)
            .iter()
            .collect::<Vec<_>>()
    );
    let tree = system.system().tree();
    let one = tree
        .iter()
        .find(|node| node.info.path.as_str() == "/one")
        .unwrap();
    assert_eq!(one.children.len(), 1);
    assert_eq!(one.info.children, 1);
}
