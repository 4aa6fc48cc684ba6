//! Components and the exposed actors of their system: durable entities by their addresses.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use strowger::{Ask, BoxError, Export, Request};
use strowger_durable::store::MemoryStore;
use strowger_durable::{DurableActor, DurableContext, Entities, EntityKind};

use crate::kit::{Testbed, text};
use crate::messaging::relay;

#[derive(Deserialize)]
struct Deposit(i64);
impl Request for Deposit {
    type Reply = i64;
}

struct Account;

impl DurableActor for Account {
    const KIND: &'static str = "account";
    const IDLE: Duration = Duration::from_millis(20);
    type State = i64;
    type Msg = Ask<Deposit>;
    type Args = ();
    type Error = BoxError;

    async fn pre_start(
        (): (),
        _: &mut i64,
        _: &mut DurableContext<'_, Self>,
    ) -> Result<Self, BoxError> {
        Ok(Self)
    }

    async fn handle(
        &mut self,
        ask: Ask<Deposit>,
        balance: &mut i64,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        *balance += ask.request.0;
        cx.reply(ask.reply, *balance);
        Ok(())
    }
}

/// Starts exported accounts, and lets the components of a testbed reach them.
fn accounts(testbed: &Testbed) -> EntityKind<Account> {
    let entities = Entities::new(Arc::new(MemoryStore::new()));
    let system = testbed.system.system();
    let accounts = entities.start::<Account>(system, "accounts", ());
    let accounts = accounts.expect("it starts");
    let deposit = Export::new().ask::<Deposit>("deposit");
    let exported = accounts.export(system, "accounts", deposit);
    exported.expect("the name is free");
    let added = testbed.directory.add_exposed_actors(system);
    testbed.system.run(added).expect("it starts");
    accounts
}

#[test]
fn component_reaches_entities_by_their_addresses() {
    let testbed = Testbed::new();
    let accounts = accounts(&testbed);
    let more = "[grant]\nrequest = [\"accounts/*\"]";
    let first = testbed.start(&relay("accounts/acc-1#deposit"), "first", more);
    let second = testbed.start(&relay("accounts/acc-2#deposit"), "second", more);
    assert_eq!(text(testbed.ask(&first, "50")), "50");
    assert_eq!(text(testbed.ask(&second, "7")), "7");
    // They sleep, and the next message activates them again.
    testbed.system.advance(Duration::from_millis(100));
    assert!(accounts.awake().is_empty(), "{:?}", accounts.awake());
    assert_eq!(text(testbed.ask(&first, "-20")), "30");
    let refused = testbed.ask(&first, "\"fifty\"").expect_err("not a number");
    assert!(refused.to_string().contains("refused"), "{refused}");
    assert_eq!(text(testbed.ask(&first, "0")), "30", "nothing was changed");
    assert_eq!(first.args.info().faults, 0);
}

#[test]
fn entity_without_grant_and_message_that_is_not_exported_are_not_resolved() {
    let testbed = Testbed::new();
    let _accounts = accounts(&testbed);
    for (name, granted) in [
        ("accounts/acc-1#deposit", "accounts/acc-2#*"),
        ("accounts/acc-1#withdraw", "accounts/*"),
    ] {
        let more = format!("[grant]\nrequest = [\"{granted}\"]\n[restart]\nintensity = 0");
        let image = testbed.image(&relay(name), "first", &more);
        let args = testbed
            .host
            .component(image, &testbed.directory)
            .expect("there is room");
        let top = strowger::Supervisor::new(strowger::Strategy::OneForOne);
        let top = testbed
            .system
            .supervise(format!("top-{granted}").replace(['/', '#', '*'], "-"), top);
        let started = testbed.system.run(top.start_child(args.child()));
        assert!(started.is_err(), "{name} with {granted}");
    }
}
