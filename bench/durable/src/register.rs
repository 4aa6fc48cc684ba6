//! The durable actor that is measured: it keeps the last value that it was sent.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use strowger::{Accepts, ActorSystem, Ask, Request};
use strowger_durable::store::{Durability, FjallOptions, FjallStore};
use strowger_durable::{DurableActor, DurableContext, Entities, EntityKind};

use crate::GROUP;

/// Saves a value. The answer is the number of values that this register has saved.
pub(crate) struct Save(pub(crate) String);

impl Request for Save {
    type Reply = u64;
}

/// Returns the value.
pub(crate) struct Get;

impl Request for Get {
    type Reply = String;
}

/// Puts the register to sleep.
pub(crate) struct Sleep;

/// The messages of a [`Register`].
pub(crate) enum RegisterMessage {
    Save(Ask<Save>),
    Get(Ask<Get>),
    Sleep,
}

impl Accepts<Ask<Save>> for RegisterMessage {
    fn wrap(ask: Ask<Save>) -> Self {
        Self::Save(ask)
    }
}

impl Accepts<Ask<Get>> for RegisterMessage {
    fn wrap(ask: Ask<Get>) -> Self {
        Self::Get(ask)
    }
}

impl Accepts<Sleep> for RegisterMessage {
    fn wrap(_: Sleep) -> Self {
        Self::Sleep
    }
}

/// The state of a [`Register`].
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Saved {
    value: String,
    count: u64,
}

/// An entity that keeps the last value that it was sent.
pub(crate) struct Register;

impl DurableActor for Register {
    const KIND: &'static str = "register";
    /// Longer than a run, so that no activation is in a figure about saves.
    const IDLE: Duration = Duration::from_secs(3600);

    type State = Saved;
    type Msg = RegisterMessage;
    type Args = ();
    type Error = Infallible;

    async fn pre_start(
        (): (),
        _: &mut Saved,
        _: &mut DurableContext<'_, Self>,
    ) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn handle(
        &mut self,
        message: RegisterMessage,
        state: &mut Saved,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), Infallible> {
        match message {
            RegisterMessage::Save(ask) => {
                state.value = ask.request.0;
                state.count += 1;
                cx.reply(ask.reply, state.count);
            }
            RegisterMessage::Get(ask) => cx.reply(ask.reply, state.value.clone()),
            RegisterMessage::Sleep => cx.stop(),
        }
        Ok(())
    }
}

/// A system with the registers of a store.
pub(crate) struct Registers {
    pub(crate) store: Arc<FjallStore>,
    pub(crate) kind: EntityKind<Register>,
    system: ActorSystem,
}

impl Registers {
    /// Opens the store in a folder, or creates it. Must be called in a runtime.
    pub(crate) fn open(path: &Path, durability: Durability) -> Self {
        let options = FjallOptions {
            durability,
            group: GROUP,
            ..FjallOptions::default()
        };
        let store = Arc::new(FjallStore::open(path, options).expect("the store opens"));
        let system = ActorSystem::new("bench").expect("the system starts");
        let entities = Entities::new(Arc::<FjallStore>::clone(&store));
        let kind = entities.start::<Register>(&system, "registers", ());
        let kind = kind.expect("the key is free");
        Self {
            store,
            kind,
            system,
        }
    }

    /// Saves a value, and returns the number of values that the register has saved.
    pub(crate) async fn save(&self, key: String, value: String) -> u64 {
        let register = self.kind.get(key).expect("the key is short");
        register.ask(Save(value)).await.expect("the value is saved")
    }

    pub(crate) async fn get(&self, key: String) -> String {
        let register = self.kind.get(key).expect("the key is short");
        register.ask(Get).await.expect("the register answers")
    }

    /// Stops the system and closes the store.
    pub(crate) async fn close(self) {
        let Self {
            store,
            kind,
            system,
        } = self;
        let report = system.shutdown(LIMIT).await;
        assert!(report.not_stopped.is_empty(), "an actor did not stop");
        drop((system, kind));
        // The last owner closes the store. Tasks that are being aborted own it for a moment.
        wait_until(|| Arc::strong_count(&store) == 1).await;
    }
}

/// Maximum time for a system to stop and for a condition to hold.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until a condition holds that has no notification.
///
/// # Panics
/// If it does not hold within [`LIMIT`].
pub(crate) async fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LIMIT, "not within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
