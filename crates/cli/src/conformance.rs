//! The actors for the conformance suite of clients, if a node is configured to start them:
//! `@(conformance/echo)`, and `@(conformance/small)` whose mailbox refuses a third message.
//!
//! | message | pattern | payload | answer or effect |
//! |---|---|---|---|
//! | `echo` | ask | anything | the same |
//! | `add` | ask, tell | a number | the sum, which begins at 0 |
//! | `sum` | ask | none | the sum |
//! | `numbers` | stream | `from`, `to` (optional), `pause_ms` (optional) | numbers below `to` |
//! | `active` | ask | none | the number of these streams that have a reader |
//! | `fail` | ask | `code`, `message`, `retryable`, `details` | that error |
//! | `wait` | ask | `ms` | nothing after that time; ends early if the caller gave up |
//! | `abandoned` | ask | none | the number of callers of `wait` that gave up |
//! | `publish` | tell | anything | it is published to `@(topic/conformance)` |
//! | `crash` | ask, tell | none | the actor panics, and restarts with a sum of 0 |
//! | `end` | ask, tell | none | the actor ends for good |

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use strowger::{
    ActorSystem, Ask, BoxError, ChildSpec, Completion, Context, Export, Fault, MailboxSpec,
    Overflow, Payload, Reader, Reply, Request, Restart, SendError, Source, SourceSpec, StartError,
    Strategy, Supervisor, handlers,
};
use strowger_gateway::relay::RelaySpec;

/// Starts the actors, supervised, and the topic that they publish to.
pub(crate) async fn start(system: &ActorSystem) -> Result<(), StartError> {
    let counts = AbandonedCount::default();
    let child = |key: &str| ChildSpec::new::<Echo>(key, Arc::clone(&counts));
    let echo = child("echo").restart(Restart::Transient);
    let narrow = MailboxSpec::bounded(2).overflow(Overflow::Fail);
    let small = child("small").restart(Restart::Transient).mailbox(narrow);
    let topic = RelaySpec::<Value>::new(TOPIC, Value::clone).child("topic");
    let supervisor = Supervisor::new(Strategy::OneForOne)
        // Clients make the actors panic on purpose, many times a second.
        .intensity(1000, Duration::from_secs(1))
        .child(topic)
        .child(echo)
        .child(small);
    system.supervise("conformance", supervisor).await?;
    Ok(())
}

/// The topic that the actors publish to.
const TOPIC: &str = "conformance";

/// Number of callers of `wait` that gave up, over all incarnations.
type AbandonedCount = Arc<AtomicU64>;

struct Echo {
    sum: f64,
    abandoned: AbandonedCount,
    streams: BTreeMap<u64, NumberStream>,
    next: u64,
}

/// A stream that has a reader.
struct NumberStream {
    source: Source<u64>,
    next: u64,
    to: Option<u64>,
    pause: Option<Duration>,
}

struct EchoPayload(Payload);
impl Request for EchoPayload {
    type Reply = Payload;
}

#[derive(Deserialize)]
struct Add(f64);
impl Request for Add {
    type Reply = f64;
}

#[derive(Deserialize)]
struct Sum;
impl Request for Sum {
    type Reply = f64;
}

#[derive(Deserialize)]
struct Count {
    from: u64,
    to: Option<u64>,
    pause_ms: Option<u64>,
}
impl Request for Count {
    type Reply = Reader<u64>;
}

#[derive(Deserialize)]
struct Active;
impl Request for Active {
    type Reply = usize;
}

/// A request to answer with this fault.
struct Fail(Fault);
impl Request for Fail {
    type Reply = Fault;
}

#[derive(Deserialize)]
struct Wait {
    ms: u64,
}
impl Request for Wait {
    type Reply = Value;
}

#[derive(Deserialize)]
struct Abandoned;
impl Request for Abandoned {
    type Reply = u64;
}

struct Publish(Value);

#[derive(Deserialize)]
struct Crash;
impl Request for Crash {
    type Reply = ();
}

#[derive(Deserialize)]
struct End;
impl Request for End {
    type Reply = ();
}

/// A message to a stream whose pause is over.
struct NextItem(u64);

fn export() -> Export<EchoMessage> {
    let any = |payload: &Payload| payload.decode::<Value>();
    Export::new()
        .ask_with("echo", |payload| Ok(EchoPayload(payload.clone())), Ok)
        .ask::<Add>("add")
        .ask::<Sum>("sum")
        .stream::<Count, u64>("numbers")
        .ask::<Active>("active")
        .ask_with(
            "fail",
            move |payload| Ok(Fail(Fault::from_json(&any(payload)?)?)),
            Err,
        )
        .ask::<Wait>("wait")
        .ask::<Abandoned>("abandoned")
        .tell_with("publish", move |payload| any(payload).map(Publish))
        .ask::<Crash>("crash")
        .ask::<End>("end")
}

/// Interval at which `wait` checks whether the caller still waits.
const ABANDON_CHECK: Duration = Duration::from_millis(5);

#[handlers]
impl strowger::Actor for Echo {
    type Args = AbandonedCount;
    type Error = BoxError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(64);

    async fn pre_start(
        abandoned: AbandonedCount,
        cx: &mut Context<Self>,
    ) -> Result<Self, BoxError> {
        cx.system().export(&cx.actor_ref(), export())?;
        Ok(Self {
            sum: 0.0,
            abandoned,
            streams: BTreeMap::new(),
            next: 0,
        })
    }

    async fn echo(&mut self, EchoPayload(payload): EchoPayload) -> Payload {
        payload
    }

    async fn add(&mut self, Add(more): Add) -> f64 {
        self.sum += more;
        self.sum
    }

    async fn sum(&mut self, _: Sum) -> f64 {
        self.sum
    }

    async fn numbers(&mut self, ask: Ask<Count>, cx: &mut Context<Self>) -> Result<(), BoxError> {
        let mut source = cx.source(SourceSpec::DEFAULT);
        let Count { from, to, pause_ms } = ask.request;
        self.next += 1;
        let reader = source.reader()?;
        // Only now that the reader exists: before, this would be answered at once.
        source.notify_when_idle(cx.lane().reply(self.next << 1 | 1));
        ask.reply.send(reader);
        let numbers = NumberStream {
            source,
            next: from,
            to,
            pause: pause_ms.map(Duration::from_millis),
        };
        self.streams.insert(self.next, numbers);
        self.send_next(self.next, cx)
    }

    async fn ready(
        &mut self,
        done: Completion<()>,
        cx: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        let stream = done.token >> 1;
        if done.token & 1 == 0 {
            return self.send_next(stream, cx);
        }
        self.streams.remove(&stream);
        Ok(())
    }

    async fn tick(
        &mut self,
        NextItem(stream): NextItem,
        cx: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        self.send_next(stream, cx)
    }

    async fn active(&mut self, _: Active) -> usize {
        self.streams.len()
    }

    async fn fail(&mut self, Fail(fault): Fail) -> Fault {
        fault
    }

    async fn wait(&mut self, ask: Ask<Wait>) {
        let Ask { request, reply } = ask;
        if wait_unless_abandoned(&reply, Duration::from_millis(request.ms)).await {
            reply.send(Value::Null);
        } else {
            self.abandoned.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn abandoned(&mut self, _: Abandoned) -> u64 {
        self.abandoned.load(Ordering::Relaxed)
    }

    async fn publish(&mut self, Publish(value): Publish, cx: &mut Context<Self>) {
        if let Ok(topic) = cx.system().topic::<Value>(TOPIC) {
            topic.publish(value);
        }
    }

    async fn crash(&mut self, ask: Ask<Crash>) {
        let _reply = ask.reply;
        panic!("it was told to");
    }

    #[ask]
    async fn end(&mut self, _: End, cx: &mut Context<Self>) {
        cx.stop();
    }
}

impl Echo {
    /// Sends as many numbers as the reader accepts.
    fn send_next(&mut self, stream: u64, cx: &mut Context<Self>) -> Result<(), BoxError> {
        let Some(numbers) = self.streams.get_mut(&stream) else {
            return Ok(());
        };
        while numbers.to.is_none_or(|to| numbers.next < to) {
            match numbers.source.try_send(numbers.next) {
                // No reader is left, so the stream would never be full and the loop would not end.
                Ok(0) => break,
                Ok(_) => numbers.next += 1,
                Err(SendError::Full(_)) => {
                    numbers
                        .source
                        .notify_when_ready(cx.lane().reply(stream << 1));
                    return Ok(());
                }
                Err(error) => return Err(error.to_string().into()),
            }
            if let Some(pause) = numbers.pause {
                cx.send_after(pause, NextItem(stream));
                return Ok(());
            }
        }
        if let Some(numbers) = self.streams.remove(&stream) {
            numbers.source.finish();
        }
        Ok(())
    }
}

/// Waits for the time to pass. Returns `false` if the caller gave up before.
async fn wait_unless_abandoned(reply: &Reply<Value>, span: Duration) -> bool {
    let until = tokio::time::Instant::now() + span;
    while tokio::time::Instant::now() < until {
        if !reply.is_waiting() {
            return false;
        }
        tokio::time::sleep_until((tokio::time::Instant::now() + ABANDON_CHECK).min(until)).await;
    }
    reply.is_waiting()
}
