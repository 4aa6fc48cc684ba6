//! Components by name: deployed, upgraded, rolled back, removed.

use strowger_wasm::registry::{RegistryError, Widening};
use strowger_wasm::{Call, ComponentRegistry, Message};

use crate::kit::{Guest, Stand, counter, octets};

fn registry(stand: &Stand) -> ComponentRegistry {
    let starting = ComponentRegistry::start(stand.system.system(), "components", &stand.host);
    stand.system.run(starting).expect("the key is free")
}

fn deploy(
    stand: &Stand,
    registry: &ComponentRegistry,
    guest: &Guest,
    name: &str,
) -> Result<(), RegistryError> {
    let image = stand.image(guest, name, "[restart]\nintensity = 0");
    stand.system.run(registry.deploy(image)).map(drop)
}

fn ask(stand: &Stand, registry: &ComponentRegistry, name: &str) -> u8 {
    let actor = registry.find(name).expect("it was deployed");
    let asked = stand.system.run(actor.ask(Call(octets("x"))));
    asked.expect("it is answered").expect("it answers")[0]
}

/// A counter that starts at 100.
fn hundred() -> Guest {
    counter().init("(global.set $count (i32.const 100)) (call $ok)")
}

#[test]
fn a_component_is_deployed_once_under_its_name() {
    let stand = Stand::new();
    let registry = registry(&stand);
    deploy(&stand, &registry, &counter(), "b").expect("there is room");
    deploy(&stand, &registry, &counter(), "a").expect("there is room");
    let taken = deploy(&stand, &registry, &counter(), "a").expect_err("it runs already");
    assert!(matches!(taken, RegistryError::Taken { .. }), "{taken}");
    assert_eq!(ask(&stand, &registry, "a"), 1);
    let names: Vec<_> = registry
        .list()
        .iter()
        .map(|one| one.info.name.to_string())
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert!(registry.directory().find("a").is_some());
    assert_eq!(stand.host.live(), 2);
}

#[test]
fn a_component_that_does_not_start_leaves_nothing() {
    let stand = Stand::new();
    let registry = registry(&stand);
    let bad = Guest::new().init("unreachable");
    let refused = deploy(&stand, &registry, &bad, "bad").expect_err("it does not start");
    assert!(refused.to_string().contains("init: aborted"), "{refused}");
    assert_eq!((registry.list().len(), stand.host.live()), (0, 0));
    deploy(&stand, &registry, &counter(), "bad").expect("the name is free");
}

#[test]
fn an_upgrade_can_be_rolled_back_by_hand_and_by_a_failure() {
    let stand = Stand::new();
    let registry = registry(&stand);
    deploy(&stand, &registry, &counter(), "a").expect("there is room");
    let first = stand
        .system
        .run(registry.rollback("a", Widening::Refused))
        .expect_err("there is one version");
    assert!(matches!(first, RegistryError::First { .. }), "{first}");
    let image = stand.image(&hundred(), "a", "");
    stand
        .system
        .run(registry.upgrade(image, Widening::Granted))
        .expect("it is well");
    assert_eq!(ask(&stand, &registry, "a"), 101);
    let ill = hundred().health("(call $fail (i32.const 0) (i32.const 0))");
    let image = stand.image(&ill, "a", "");
    let failed = stand
        .system
        .run(registry.upgrade(image, Widening::Granted))
        .expect_err("it is ill");
    assert!(matches!(failed, RegistryError::RolledBack(_)), "{failed}");
    assert_eq!(ask(&stand, &registry, "a"), 102);
    stand
        .system
        .run(registry.rollback("a", Widening::Refused))
        .expect("the version before is well");
    assert_eq!(
        ask(&stand, &registry, "a"),
        103,
        "with the state of the later one"
    );
    assert!(registry.list()[0].previous.is_some());
}

#[test]
fn one_in_quarantine_stays_to_be_seen_and_takes_no_neighbour_along() {
    let stand = Stand::new();
    let registry = registry(&stand);
    deploy(&stand, &registry, &counter(), "a").expect("there is room");
    deploy(&stand, &registry, &counter(), "b").expect("there is room");
    let fatal = Message([255_u8].as_slice().into());
    let a = registry.find("a").expect("it was deployed");
    a.try_tell(fatal).expect("there is room");
    stand.system.run_until_idle();
    let seen = registry.list();
    assert_eq!((seen[0].alive, seen[1].alive), (false, true));
    let fault = seen[0].info.fault.as_ref().expect("it failed");
    assert_eq!(fault.kind.word(), "panic");
    assert_eq!(ask(&stand, &registry, "b"), 1);
    deploy(&stand, &registry, &counter(), "a").expect("its place can be taken");
    assert_eq!(ask(&stand, &registry, "a"), 1);
}

#[test]
fn what_is_removed_is_gone() {
    let stand = Stand::new();
    let registry = registry(&stand);
    deploy(&stand, &registry, &counter(), "a").expect("there is room");
    let actor = registry.find("a").expect("it was deployed");
    stand.system.run(registry.remove("a")).expect("it is there");
    assert!(!actor.is_alive());
    assert!(registry.find("a").is_none() && registry.directory().find("a").is_none());
    let again = stand
        .system
        .run(registry.remove("a"))
        .expect_err("it is gone");
    assert!(matches!(again, RegistryError::Unknown { .. }), "{again}");
    assert_eq!(stand.host.live(), 0);
}
