//! A worker that fails, and the supervisor that restarts it at the same address.
//!
//! `cargo run -p strowger-examples supervision`

use std::time::Duration;

use strowger::{
    Accepts, Actor, ActorSystem, Ask, BoxError, ChildSpec, Context, Exit, Request, Restart,
    Strategy, Supervisor,
};

/// Asks for the number of lines divided by this number.
struct Divide(u32);

impl Request for Divide {
    type Reply = u32;
}

struct Message(Ask<Divide>);

impl Accepts<Ask<Divide>> for Message {
    fn wrap(ask: Ask<Divide>) -> Self {
        Self(ask)
    }
}

struct Worker {
    lines: u32,
}

impl Actor for Worker {
    type Msg = Message;
    type Args = u32;
    type Error = BoxError;

    // The state is still valid after a panic, so `post_stop` may see it.
    const SURVIVES_PANIC: bool = true;

    async fn pre_start(lines: u32, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        say(&format!("{} starts with {lines} lines", cx.path()));
        Ok(Self { lines })
    }

    async fn handle(&mut self, message: Message, _: &mut Context<Self>) -> Result<(), BoxError> {
        let Ask {
            request: Divide(by),
            reply,
        } = message.0;
        reply.send(self.lines / by); // By zero: a panic, which ends only this incarnation.
        Ok(())
    }

    async fn post_stop(self, exit: &Exit, _: &mut Context<Self>) {
        say(&format!("it ends: {exit}"));
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    std::panic::set_hook(Box::new(|_| {})); // The exit reports the panic.
    let system = ActorSystem::new("example")?;
    let office = Supervisor::new(Strategy::OneForOne)
        .intensity(3, Duration::from_secs(5))
        .child(ChildSpec::new::<Worker>("worker", 84).restart(Restart::Permanent));
    let office = system.supervise("office", office).await?;
    let worker = office
        .child::<Message>("worker")
        .ok_or("the supervisor started it")?;

    say(&format!("84 / 2 = {}", worker.ask(Divide(2)).await?));
    if let Err(error) = worker.ask(Divide(0)).await {
        say(&format!("84 / 0: {error}"));
    }
    // The same address reaches the next incarnation.
    say(&format!("84 / 4 = {}", worker.ask(Divide(4)).await?));

    let report = system.shutdown(Duration::from_secs(1)).await;
    say(&format!(
        "all ended in order: {}",
        report.not_stopped.is_empty()
    ));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn say(what: &str) {
    println!("{what}");
}
