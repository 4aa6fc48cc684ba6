//! The counter on ractor.

use ractor::rpc::CallResult;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

use crate::work::{Counter, Room, Subject, Token, Wiring};

/// Actors of ractor; their mailboxes have no bound.
#[derive(Debug, Clone)]
pub struct Ractor;

/// What the actor understands.
pub enum Msg {
    Add(u64),
    Get(u64, RpcReplyPort<u64>),
    Pass(Token),
    Wire(Box<Wiring<ActorRef<Msg>>>),
}

struct CounterActor;

impl Actor for CounterActor {
    type Msg = Msg;
    type State = Counter<ActorRef<Msg>>;
    type Arguments = ();

    async fn pre_start(
        &self,
        _myself: ActorRef<Msg>,
        (): (),
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(Counter::default())
    }

    async fn handle(
        &self,
        _myself: ActorRef<Msg>,
        msg: Msg,
        counter: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Add(value) => counter.add(value),
            Msg::Get(value, reply) => {
                let _ = reply.send(counter.add_and_get(value));
            }
            Msg::Pass(token) => {
                if let Some((next, token)) = counter.take(token) {
                    next.send_message(Msg::Pass(token))?;
                }
            }
            Msg::Wire(wiring) => counter.wire(*wiring),
        }
        Ok(())
    }
}

fn send(to: &ActorRef<Msg>, msg: Msg) {
    assert!(to.send_message(msg).is_ok(), "the actor is running");
}

impl Subject for Ractor {
    const NAME: &'static str = "ractor";
    const TAKES_BOUNDS: bool = false;
    type Ref = ActorRef<Msg>;

    async fn spawn(&self, _room: Room) -> ActorRef<Msg> {
        let (actor, _task) = Actor::spawn(None, CounterActor, ())
            .await
            .expect("the actor starts");
        actor
    }

    async fn tell(to: &ActorRef<Msg>, value: u64) {
        send(to, Msg::Add(value));
    }

    async fn ask(to: &ActorRef<Msg>, value: u64) -> u64 {
        match to.call(|reply| Msg::Get(value, reply), None).await {
            Ok(CallResult::Success(sum)) => sum,
            _ => panic!("the actor answers"),
        }
    }

    async fn pass(to: &ActorRef<Msg>, token: Token) {
        send(to, Msg::Pass(token));
    }

    async fn wire(to: &ActorRef<Msg>, wiring: Wiring<ActorRef<Msg>>) {
        send(to, Msg::Wire(Box::new(wiring)));
    }

    async fn stop(&self, actor: ActorRef<Msg>) {
        actor
            .stop_and_wait(None, None)
            .await
            .expect("the actor stops");
    }
}
