//! An order that is placed twice emails once: `cargo run -p strowger-examples outbox`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;
use strowger::{ActorSystem, Ask, BoxError, Request};
use strowger_durable::store::{EntityId, FjallOptions, FjallStore};
use strowger_durable::{Delivery, DurableActor, DurableContext as Cx, Entities};

/// Places an order; the reply is the number of emails that are not delivered yet.
struct Place;
impl Request for Place {
    type Reply = usize;
}
type Done = Result<(), BoxError>;
struct Order;
impl DurableActor for Order {
    const KIND: &'static str = "order";
    type State = bool;
    type Msg = Ask<Place>;
    type Args = ();
    type Error = BoxError;
    async fn pre_start(_: (), _: &mut bool, _: &mut Cx<'_, Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }
    async fn handle(&mut self, ask: Ask<Place>, placed: &mut bool, cx: &mut Cx<'_, Self>) -> Done {
        if !std::mem::replace(placed, true) {
            cx.send_durable(&EntityId::new("mailer", "main")?, &"Thank you!")?;
        }
        cx.reply(ask.reply, cx.undelivered());
        Ok(())
    }
}
struct Mailer;
impl DurableActor for Mailer {
    const KIND: &'static str = "mailer";
    type State = ();
    type Msg = ();
    type Args = ();
    type Error = BoxError;
    async fn pre_start(_: (), (): &mut (), _: &mut Cx<'_, Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }
    async fn handle(&mut self, (): (), (): &mut (), _: &mut Cx<'_, Self>) -> Done {
        Ok(())
    }
    async fn receive(&mut self, mail: Delivery, (): &mut (), _: &mut Cx<'_, Self>) -> Done {
        println!("{} says: {}", mail.sender(), mail.decode::<String>()?);
        Ok(())
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let store = Arc::new(FjallStore::open(folder.path(), FjallOptions::default())?);
    let (system, entities) = (ActorSystem::new("shop")?, Entities::new(store));
    let order = entities.start::<Order>(&system, "orders", ())?.get("7")?;
    println!("undelivered: {}", order.ask(Place).await?);
    println!("undelivered: {}", order.ask(Place).await?);
    let _mailers = entities.start::<Mailer>(&system, "mailers", ())?;
    // Until the mailer has stored that it has the email.
    while order.ask(Place).await? > 0 {}
    Ok(())
}
