//! Entities as actors that callers outside the process reach by their key.

use std::sync::{Arc, Weak};

use strowger::{
    ActorSystem, Address, Export, ExportError, Fault, FaultCode, FindActor, KeyedActors,
};

use super::{EntityError, EntityKind, KindState, Permit};
use crate::actor::DurableActor;
use crate::store::EntityId;

impl<A: DurableActor> EntityKind<A> {
    /// Exposes all entities of this kind to callers outside the process, each at the name, a slash
    /// and its key: with the name `accounts`, the entity `acc-42` has the address
    /// `@(accounts/acc-42)`. A message to an entity that is asleep activates it, and the deadline
    /// of an ask includes the activation.
    ///
    /// Only keys that are [keys of an address](Address) can be reached so. The export ends with the
    /// host of the kind.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use serde::Deserialize;
    /// # use strowger::{ActorSystem, Address, Ask, BoxError, Export, Request};
    /// # use strowger_durable::store::MemoryStore;
    /// # use strowger_durable::{DurableActor, DurableContext, Entities};
    /// #[derive(Deserialize)]
    /// struct Deposit(i64);
    /// # impl Request for Deposit { type Reply = i64; }
    /// # struct Account;
    /// # impl DurableActor for Account {
    /// #     const KIND: &'static str = "account";
    /// #     type State = i64;
    /// #     type Msg = Ask<Deposit>;
    /// #     type Args = ();
    /// #     type Error = BoxError;
    /// #     async fn pre_start(
    /// #         _: (), _: &mut i64, _: &mut DurableContext<'_, Self>,
    /// #     ) -> Result<Self, BoxError> {
    /// #         Ok(Self)
    /// #     }
    /// #     async fn handle(
    /// #         &mut self, ask: Ask<Deposit>, state: &mut i64, cx: &mut DurableContext<'_, Self>,
    /// #     ) -> Result<(), BoxError> {
    /// #         *state += ask.request.0;
    /// #         cx.reply(ask.reply, *state);
    /// #         Ok(())
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// # let system = ActorSystem::new("bank")?;
    /// # let entities = Entities::new(Arc::new(MemoryStore::new()));
    /// let accounts = entities.start::<Account>(&system, "accounts", ())?;
    /// accounts.export(&system, "accounts", Export::new().ask::<Deposit>("deposit"))?;
    /// let entry = system.remote_entry(&"@(accounts/acc-42)".parse()?, "deposit")?;
    /// # let _ = entry;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the name is not a valid address, or if other actors with keys are
    /// exposed there.
    pub fn export(
        &self,
        system: &ActorSystem,
        name: &str,
        export: Export<A::Msg>,
    ) -> Result<Address, ExportError> {
        let actors = ExportedKind(Arc::downgrade(&self.0));
        system.export_keyed(name, actors, export)
    }
}

/// The entities of a kind whose host may have ended.
struct ExportedKind<A: DurableActor>(Weak<KindState<A>>);

impl<A: DurableActor> KeyedActors<A::Msg> for ExportedKind<A> {
    type Hold = Permit<A>;

    fn find(&self, key: &str) -> FindActor<A::Msg, Permit<A>> {
        let kind = self.0.clone();
        let id = EntityId::new(A::KIND, key);
        Box::pin(async move {
            let id = id.map_err(|error| Fault::new(FaultCode::BadRequest, error.to_string()))?;
            let Some(kind) = kind.upgrade() else {
                let text = format!("{id} not activated: the host of its kind has ended");
                return Err(Fault::new(FaultCode::UnknownTarget, text));
            };
            let permit = kind.enter(&id).await.map_err(|error| fault(&error))?;
            Ok((permit.actor.clone(), permit))
        })
    }

    fn is_open(&self) -> bool {
        let kind = self.0.upgrade();
        kind.is_some_and(|kind| !kind.table.lock().is_closed())
    }
}

/// Converts the reason why an entity was not activated.
fn fault(error: &EntityError) -> Fault {
    let code = match error {
        EntityError::TooManyAwake { .. } => FaultCode::Full,
        EntityError::Closed { .. } => FaultCode::UnknownTarget,
        EntityError::NotActivated { .. } | EntityError::Unanswered { .. } => FaultCode::Failed,
    };
    Fault::new(code, error.to_string())
}
