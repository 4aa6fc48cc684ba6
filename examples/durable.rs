//! A bank account whose balance survives the process, and a payment that counts once:
//! `cargo run -p strowger-examples durable`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;
use strowger::{ActorSystem, Ask, BoxError, Request};
use strowger_durable::store::{FjallOptions, FjallStore};
use strowger_durable::{Durable, DurableActor, DurableArgs, DurableContext, IdempotencyKey};

/// Pays money in or out; the reply is the new balance. A repetition has the same key.
struct Post(i64, IdempotencyKey);
impl Request for Post {
    type Reply = i64;
}
struct Account;
type Cx<'a> = DurableContext<'a, Account>;
type Done = Result<(), BoxError>;

impl DurableActor for Account {
    const KIND: &'static str = "account";
    type State = i64;
    type Msg = Ask<Post>;
    type Args = ();
    type Error = BoxError;

    async fn pre_start(_: (), balance: &mut i64, cx: &mut Cx<'_>) -> Result<Self, BoxError> {
        println!("{} starts with {balance}", cx.entity());
        Ok(Self)
    }
    async fn handle(&mut self, ask: Ask<Post>, balance: &mut i64, cx: &mut Cx<'_>) -> Done {
        let Post(amount, key) = ask.request;
        cx.reply_once(&key, ask.reply, || {
            *balance += amount;
            *balance
        });
        Ok(())
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    for day in [
        [(100, "salary"), (-30, "rent")],
        [(-30, "rent"), (-5, "bread")],
    ] {
        let store = Arc::new(FjallStore::open(folder.path(), FjallOptions::default())?);
        let system = ActorSystem::new("bank")?;
        let args = DurableArgs::new(store, "acc-42", ())?;
        let account = system.spawn::<Durable<Account>>("acc-42", args)?;
        for (amount, key) in day {
            let post = Post(amount, IdempotencyKey::new(key)?);
            println!("{key}: {amount}, balance {}", account.ask(post).await?);
        }
        system.shutdown(std::time::Duration::from_secs(5)).await;
    }
    Ok(())
}
