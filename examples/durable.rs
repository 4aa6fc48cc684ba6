//! A bank account whose balance survives the process, and a payment that counts once.
//!
//! `cargo run -p strowger-examples durable`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strowger::{ActorSystem, Ask, BoxError, Request};
use strowger_durable::store::{FjallOptions, FjallStore};
use strowger_durable::{Durable, DurableActor, DurableArgs, DurableContext, IdempotencyKey};

/// Pays money in or out; the reply is the new balance. A repetition has the same key.
struct Post(i64, IdempotencyKey);
impl Request for Post {
    type Reply = i64;
}

#[derive(Default, Serialize, Deserialize)]
struct Balance {
    amount: i64,
}

struct Account;

impl DurableActor for Account {
    const KIND: &'static str = "account";
    type State = Balance;
    type Msg = Ask<Post>;
    type Args = ();
    type Error = BoxError;

    async fn pre_start(
        _: (),
        state: &mut Balance,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<Self, BoxError> {
        println!("{} starts with {}", cx.entity(), state.amount);
        Ok(Self)
    }

    async fn handle(
        &mut self,
        ask: Ask<Post>,
        state: &mut Balance,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let Post(amount, key) = ask.request;
        cx.reply_once(&key, ask.reply, || {
            state.amount += amount;
            state.amount
        });
        Ok(())
    }
}

/// Opens the bank, posts some payments, and closes it.
async fn day(folder: &Path, payments: &[(i64, &str)]) -> Result<(), BoxError> {
    let store = Arc::new(FjallStore::open(folder, FjallOptions::default())?);
    let system = ActorSystem::new("bank")?;
    let args = DurableArgs::new(store, "acc-42", ())?;
    let account = system.spawn::<Durable<Account>>("acc-42", args)?;
    for (amount, key) in payments {
        let balance = account.ask(Post(*amount, IdempotencyKey::new(*key)?));
        println!("{key}: {amount}, balance {}", balance.await?);
    }
    system.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    day(folder.path(), &[(100, "salary"), (-30, "rent")]).await?;
    day(folder.path(), &[(-30, "rent"), (-5, "bread")]).await
}
