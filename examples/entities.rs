//! Bank accounts by key: a thousand are stored, and a hundred are awake.
//! `cargo run -p strowger-examples entities`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use serde::Deserialize;
use strowger::{ActorSystem, Ask, BoxError, Export, Request};
use strowger_durable::store::{FjallOptions, FjallStore};
use strowger_durable::{DurableActor, DurableContext, Entities};

/// Pays money in; the reply is the new balance.
#[derive(Deserialize)]
struct Deposit(i64);
impl Request for Deposit {
    type Reply = i64;
}

struct Account;
type Cx<'a> = DurableContext<'a, Account>;
type Done = Result<(), BoxError>;

impl DurableActor for Account {
    const KIND: &'static str = "account";
    const MAX_AWAKE: usize = 100;
    type State = i64;
    type Msg = Ask<Deposit>;
    type Args = ();
    type Error = BoxError;

    async fn pre_start(_: (), _: &mut i64, _: &mut Cx<'_>) -> Result<Self, BoxError> {
        Ok(Self)
    }
    async fn handle(&mut self, ask: Ask<Deposit>, balance: &mut i64, cx: &mut Cx<'_>) -> Done {
        *balance += ask.request.0;
        cx.reply(ask.reply, *balance);
        Ok(())
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let store = FjallStore::open(folder.path(), FjallOptions::default())?;
    let (system, entities) = (ActorSystem::new("bank")?, Entities::new(Arc::new(store)));
    let accounts = entities.start::<Account>(&system, "accounts", ())?;
    for number in 1..=1000 {
        let account = accounts.get(format!("acc-{number}"))?;
        account.ask(Deposit(number)).await?;
    }
    println!("stored: {}", accounts.stored(None, 2000).await?.len());
    println!("awake: {}", accounts.awake().len());
    let account = accounts.get("acc-42")?;
    println!("acc-42: {}", account.ask(Deposit(8)).await?);

    let deposit = Export::new().ask::<Deposit>("deposit");
    let exported = accounts.export(&system, "accounts", deposit)?;
    println!("exported at: {exported}");
    Ok(())
}
