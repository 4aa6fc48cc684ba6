//! A bank account that stores its postings, and makes its balance from them.
//! `cargo run -p strowger-examples event_sourced`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde::{Deserialize, Serialize};
use strowger::{ActorSystem, Ask, BoxError, Request};
use strowger_durable::store::{FjallOptions, FjallStore};
use strowger_durable::{Durable, DurableArgs, EventContext, EventSourced, Sourced};

/// Pays money in or out; the reply is the new balance, or `None` if there is not enough.
struct Pay(i64);
impl Request for Pay {
    type Reply = Option<i64>;
}

#[derive(Serialize, Deserialize)]
struct Posted(i64);
struct Account;
type Cx<'a> = EventContext<'a, Account>;

impl EventSourced for Account {
    const KIND: &'static str = "account";
    type State = i64;
    type Event = Posted;
    type Msg = Ask<Pay>;
    type Args = ();
    type Error = BoxError;

    fn apply(balance: &mut i64, Posted(amount): Posted) {
        *balance += amount;
    }
    async fn pre_start(_: (), _: &mut Cx<'_>) -> Result<Self, BoxError> {
        Ok(Self)
    }
    async fn handle(&mut self, ask: Ask<Pay>, cx: &mut Cx<'_>) -> Result<(), BoxError> {
        let balance = cx.state() + ask.request.0;
        if balance >= 0 {
            cx.emit(&Posted(ask.request.0));
        }
        cx.reply(ask.reply, (balance >= 0).then_some(balance));
        Ok(())
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    for amount in [100, -30, -90, -5] {
        let store = FjallStore::open(folder.path(), FjallOptions::default())?;
        let system = ActorSystem::new("bank")?;
        let args = DurableArgs::new(std::sync::Arc::new(store), "acc-42", ())?;
        let account = system.spawn::<Durable<Sourced<Account>>>("acc-42", args)?;
        println!("{amount}: {:?}", account.ask(Pay(amount)).await?);
        system.shutdown(std::time::Duration::from_secs(5)).await;
    }
    Ok(())
}
