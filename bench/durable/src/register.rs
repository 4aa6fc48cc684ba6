//! The durable actor of the rows: it keeps the last value that it was sent.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strowger::{Accepts, ActorSystem, Ask, Request};
use strowger_durable::store::{Durability, FjallOptions, FjallStore};
use strowger_durable::{DurableActor, DurableContext, Entities, EntityKind};

use crate::GROUP;

/// Saves a value; the answer is how many were saved.
pub struct Save(pub String);

impl Request for Save {
    type Reply = u64;
}

/// Returns the value.
pub struct Get;

impl Request for Get {
    type Reply = String;
}

/// The messages of a [`Register`].
pub enum RegisterMessage {
    /// See [`Save`].
    Save(Ask<Save>),
    /// See [`Get`].
    Get(Ask<Get>),
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

/// The state of a [`Register`].
#[derive(Default, Serialize, Deserialize)]
pub struct Saved {
    value: String,
    count: u64,
}

/// An actor that keeps the last value that it was sent.
pub struct Register;

impl DurableActor for Register {
    const KIND: &'static str = "register";

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
        }
        Ok(())
    }
}

/// A system with the registers of a store.
pub struct Registers {
    system: ActorSystem,
    /// The registers, by key.
    pub kind: EntityKind<Register>,
}

impl Registers {
    /// Opens the store in a folder, or creates it.
    #[must_use]
    pub fn open(path: &Path, durability: Durability) -> Self {
        let options = FjallOptions {
            durability,
            group: GROUP,
            ..FjallOptions::default()
        };
        let store = FjallStore::open(path, options).expect("the store opens");
        let system = ActorSystem::new("bench").expect("it starts");
        let entities = Entities::new(Arc::new(store));
        let kind = entities.start::<Register>(&system, "registers", ());
        let kind = kind.expect("its key is free");
        Self { system, kind }
    }

    /// Saves a value, and returns how many this register has saved.
    pub async fn save(&self, key: String, value: String) -> u64 {
        let register = self.kind.get(key).expect("the key is short");
        register.ask(Save(value)).await.expect("it is saved")
    }

    /// Returns the value of a register.
    pub async fn get(&self, key: String) -> String {
        let register = self.kind.get(key).expect("the key is short");
        register.ask(Get).await.expect("it answers")
    }

    /// Stops the system and closes the store.
    pub async fn close(self) {
        self.system
            .shutdown(std::time::Duration::from_secs(60))
            .await;
    }
}
