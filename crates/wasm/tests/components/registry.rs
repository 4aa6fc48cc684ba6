//! Components by name: deployed, upgraded, rolled back, removed.

use strowger_wasm::registry::{RegistryError, WiderAccess};
use strowger_wasm::{Call, ComponentRegistry, Message};

use crate::kit::{Guest, Testbed, counter, payload};

fn registry(testbed: &Testbed) -> ComponentRegistry {
    let starting = ComponentRegistry::start(testbed.system.system(), "components", &testbed.host);
    testbed.system.run(starting).expect("the key is free")
}

fn deploy(
    testbed: &Testbed,
    registry: &ComponentRegistry,
    guest: &Guest,
    name: &str,
) -> Result<(), RegistryError> {
    let image = testbed.image(guest, name, "[restart]\nintensity = 0");
    testbed.system.run(registry.deploy(image)).map(drop)
}

fn ask(testbed: &Testbed, registry: &ComponentRegistry, name: &str) -> u8 {
    let actor = registry.find(name).expect("it was deployed");
    let asked = testbed.system.run(actor.ask(Call(payload("x"))));
    asked.expect("it is answered").expect("it answers")[0]
}

/// A counter that starts at 100.
fn hundred() -> Guest {
    counter().init("(global.set $count (i32.const 100)) (call $ok)")
}

#[test]
fn name_is_deployed_once() {
    let testbed = Testbed::new();
    let registry = registry(&testbed);
    deploy(&testbed, &registry, &counter(), "b").expect("there is room");
    deploy(&testbed, &registry, &counter(), "a").expect("there is room");
    let taken = deploy(&testbed, &registry, &counter(), "a").expect_err("it runs already");
    assert!(matches!(taken, RegistryError::Taken { .. }), "{taken}");
    assert_eq!(ask(&testbed, &registry, "a"), 1);
    let names: Vec<_> = registry
        .list()
        .iter()
        .map(|one| one.info.name.to_string())
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert!(registry.directory().find("a").is_some());
    assert_eq!(testbed.host.live(), 2);
}

#[test]
fn failed_deployment_leaves_nothing() {
    let testbed = Testbed::new();
    let registry = registry(&testbed);
    let bad = Guest::new().init("unreachable");
    let refused = deploy(&testbed, &registry, &bad, "bad").expect_err("it does not start");
    assert!(refused.to_string().contains("init: aborted"), "{refused}");
    assert_eq!((registry.list().len(), testbed.host.live()), (0, 0));
    deploy(&testbed, &registry, &counter(), "bad").expect("the name is free");
}

#[test]
fn upgrade_is_rolled_back_on_request_and_on_failure() {
    let testbed = Testbed::new();
    let registry = registry(&testbed);
    deploy(&testbed, &registry, &counter(), "a").expect("there is room");
    let first = testbed
        .system
        .run(registry.rollback("a", WiderAccess::Refused))
        .expect_err("there is one version");
    assert!(matches!(first, RegistryError::First { .. }), "{first}");
    let image = testbed.image(&hundred(), "a", "");
    testbed
        .system
        .run(registry.upgrade(image, WiderAccess::Granted))
        .expect("it is well");
    assert_eq!(ask(&testbed, &registry, "a"), 101);
    let ill = hundred().health("(call $fail (i32.const 0) (i32.const 0))");
    let image = testbed.image(&ill, "a", "");
    let failed = testbed
        .system
        .run(registry.upgrade(image, WiderAccess::Granted))
        .expect_err("it is ill");
    assert!(matches!(failed, RegistryError::RolledBack(_)), "{failed}");
    assert_eq!(ask(&testbed, &registry, "a"), 102);
    testbed
        .system
        .run(registry.rollback("a", WiderAccess::Refused))
        .expect("the version before is well");
    assert_eq!(
        ask(&testbed, &registry, "a"),
        103,
        "with the state of the later one"
    );
    assert!(registry.list()[0].previous.is_some());
}

#[test]
fn quarantined_component_stays_visible_and_alone() {
    let testbed = Testbed::new();
    let registry = registry(&testbed);
    deploy(&testbed, &registry, &counter(), "a").expect("there is room");
    deploy(&testbed, &registry, &counter(), "b").expect("there is room");
    let fatal = Message([255_u8].as_slice().into());
    let a = registry.find("a").expect("it was deployed");
    a.try_tell(fatal).expect("there is room");
    testbed.system.run_until_idle();
    let seen = registry.list();
    assert_eq!((seen[0].alive, seen[1].alive), (false, true));
    let fault = seen[0].info.fault.as_ref().expect("it failed");
    assert_eq!(fault.kind.name(), "panic");
    assert_eq!(ask(&testbed, &registry, "b"), 1);
    deploy(&testbed, &registry, &counter(), "a").expect("its place can be taken");
    assert_eq!(ask(&testbed, &registry, "a"), 1);
}

#[test]
fn removed_component_is_not_found() {
    let testbed = Testbed::new();
    let registry = registry(&testbed);
    deploy(&testbed, &registry, &counter(), "a").expect("there is room");
    let actor = registry.find("a").expect("it was deployed");
    testbed
        .system
        .run(registry.remove("a"))
        .expect("it is there");
    assert!(!actor.is_alive());
    assert!(registry.find("a").is_none() && registry.directory().find("a").is_none());
    let again = testbed
        .system
        .run(registry.remove("a"))
        .expect_err("it is gone");
    assert!(matches!(again, RegistryError::Unknown { .. }), "{again}");
    assert_eq!(testbed.host.live(), 0);
}
