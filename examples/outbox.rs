//! An order emails once, although the process ends before the mailer starts.
//! `cargo run -p strowger-examples outbox`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{sync::Arc, time::Duration};

use strowger::{ActorSystem, Ask, BoxError, Reply, Request};
use strowger_durable::store::{EntityId, FjallOptions, FjallStore};
use strowger_durable::{Delivery, DurableActor, DurableContext as Cx, Entities};

/// Places an order, or waits for the first email. The reply is the number of emails.
struct Call;
impl Request for Call {
    type Reply = usize;
}
type Done = Result<(), BoxError>;
type Emails = Vec<String>;

struct Order;
impl DurableActor for Order {
    const KIND: &'static str = "order";
    type State = bool;
    type Msg = Ask<Call>;
    type Args = ();
    type Error = BoxError;
    async fn pre_start(_: (), _: &mut bool, _: &mut Cx<'_, Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }
    async fn handle(&mut self, call: Ask<Call>, placed: &mut bool, cx: &mut Cx<'_, Self>) -> Done {
        if !std::mem::replace(placed, true) {
            cx.send_durable(&EntityId::new("mailer", "main")?, &"Thank you!")?;
        }
        cx.reply(call.reply, cx.undelivered());
        Ok(())
    }
}

struct Mailer(Option<Reply<usize>>);
impl DurableActor for Mailer {
    const KIND: &'static str = "mailer";
    type State = Emails;
    type Msg = Ask<Call>;
    type Args = ();
    type Error = BoxError;
    async fn pre_start(_: (), _: &mut Emails, _: &mut Cx<'_, Self>) -> Result<Self, BoxError> {
        Ok(Self(None))
    }
    async fn handle(&mut self, call: Ask<Call>, sent: &mut Emails, cx: &mut Cx<'_, Self>) -> Done {
        match sent.len() {
            0 => self.0 = Some(call.reply),
            count => cx.reply(call.reply, count),
        }
        Ok(())
    }
    async fn receive(&mut self, mail: Delivery, sent: &mut Emails, cx: &mut Cx<'_, Self>) -> Done {
        sent.push(mail.decode()?);
        println!("email of {}: {sent:?}", mail.sender());
        if let Some(reply) = self.0.take() {
            cx.reply(reply, sent.len());
        }
        Ok(())
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    for has_mailer in [false, true] {
        let store = FjallStore::open(folder.path(), FjallOptions::default())?;
        let (system, entities) = (ActorSystem::new("shop")?, Entities::new(Arc::new(store)));
        let orders = entities.start::<Order>(&system, "orders", ())?;
        if has_mailer {
            let mailers = entities.start::<Mailer>(&system, "mailers", ())?;
            println!("emails: {}", mailers.get("main")?.ask(Call).await?);
        } else {
            let undelivered = orders.get("order-7")?.ask(Call).await?;
            println!("order placed, {undelivered} email not delivered yet");
        }
        system.shutdown(Duration::from_secs(5)).await;
    }
    Ok(())
}
