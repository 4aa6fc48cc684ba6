//! A seat that is reserved for a second, and released although no process runs at that time:
//! `cargo run -p strowger-examples reminder`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{sync::Arc, time::Duration};
use strowger::{ActorSystem, Ask, BoxError, Request};
use strowger_durable::store::{FjallOptions, FjallStore};
use strowger_durable::{DurableActor, DurableContext, Entities, Reminder};

/// Reserves the seat for this time; the reply is `false` if it is taken.
struct Reserve(Duration);
impl Request for Reserve {
    type Reply = bool;
}
struct Seat;
type Cx<'a> = DurableContext<'a, Seat>;
type Done = Result<(), BoxError>;

impl DurableActor for Seat {
    const KIND: &'static str = "seat";
    type State = bool;
    type Msg = Ask<Reserve>;
    type Args = ();
    type Error = BoxError;

    async fn pre_start(_: (), _: &mut bool, _: &mut Cx<'_>) -> Result<Self, BoxError> {
        Ok(Self)
    }
    async fn handle(&mut self, ask: Ask<Reserve>, taken: &mut bool, cx: &mut Cx<'_>) -> Done {
        if !*taken {
            cx.set_reminder("release", ask.request.0, &"not paid")?;
        }
        cx.reply(ask.reply, !std::mem::replace(taken, true));
        Ok(())
    }
    async fn remind(&mut self, reminder: Reminder, taken: &mut bool, cx: &mut Cx<'_>) -> Done {
        let why = reminder.decode::<String>()?;
        println!(
            "{} released: {why}, late: {}",
            cx.entity(),
            reminder.is_late()
        );
        *taken = false;
        Ok(())
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    for pause in [3, 0] {
        let store = Arc::new(FjallStore::open(folder.path(), FjallOptions::default())?);
        let system = ActorSystem::new("theatre")?;
        let seat = Entities::new(store)
            .start::<Seat>(&system, "seats", ())?
            .get("7")?;
        let reserve = Reserve(Duration::from_secs(1));
        println!("reserved: {}", seat.ask(reserve).await?);
        system.shutdown(Duration::from_secs(5)).await;
        tokio::time::sleep(Duration::from_secs(pause)).await;
    }
    Ok(())
}
