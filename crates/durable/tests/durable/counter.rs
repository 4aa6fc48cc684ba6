//! The actor of the tests: it counts, and tells each new value to an observer.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strowger::{Accepts, Ask, BoxError, Recipient, Request};
use strowger_durable::store::Store;
use strowger_durable::{
    AnswerWindow, Durable, DurableActor, DurableArgs, DurableContext, IdempotencyKey,
};

/// Increments; the answer is the new value. The key makes a repetition harmless.
#[derive(Debug, Clone)]
pub(crate) struct Increment(pub(crate) IdempotencyKey);
impl Request for Increment {
    type Reply = u64;
}

/// Reads the value, without changing it.
pub(crate) struct Get;
impl Request for Get {
    type Reply = u64;
}

/// Adds to the value without an answer, and then fails as told.
pub(crate) struct AddThen(pub(crate) u64, pub(crate) Outcome);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    Succeed,
    Fail,
    Panic,
    /// A timer adds one more, after this time.
    AddLater(Duration),
}

pub(crate) enum CounterMessage {
    Increment(Ask<Increment>),
    Get(Ask<Get>),
    Add(AddThen),
}

impl Accepts<Ask<Increment>> for CounterMessage {
    fn wrap(message: Ask<Increment>) -> Self {
        Self::Increment(message)
    }
}

impl Accepts<Ask<Get>> for CounterMessage {
    fn wrap(message: Ask<Get>) -> Self {
        Self::Get(message)
    }
}

impl Accepts<AddThen> for CounterMessage {
    fn wrap(message: AddThen) -> Self {
        Self::Add(message)
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) value: u64,
}

pub(crate) struct Counter(Option<Recipient<u64>>);

impl Counter {
    fn report(&self, value: u64, cx: &mut DurableContext<'_, Self>) {
        if let Some(observer) = &self.0 {
            cx.tell(observer.clone(), value);
        }
    }
}

impl DurableActor for Counter {
    const KIND: &'static str = "counter";
    const ANSWERS: AnswerWindow = AnswerWindow {
        count: 100,
        ..AnswerWindow::DEFAULT
    };

    type State = Count;
    type Msg = CounterMessage;
    type Args = Option<Recipient<u64>>;
    type Error = BoxError;

    async fn pre_start(
        observer: Option<Recipient<u64>>,
        _: &mut Count,
        _: &mut DurableContext<'_, Self>,
    ) -> Result<Self, BoxError> {
        Ok(Self(observer))
    }

    async fn handle(
        &mut self,
        message: CounterMessage,
        state: &mut Count,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        match message {
            CounterMessage::Increment(Ask { request, reply }) => {
                let mut new = None;
                cx.reply_once(&request.0, reply, || {
                    state.value += 1;
                    *new.insert(state.value)
                });
                if let Some(new) = new {
                    self.report(new, cx);
                }
            }
            CounterMessage::Get(ask) => cx.reply(ask.reply, state.value),
            CounterMessage::Add(AddThen(more, outcome)) => {
                state.value += more;
                self.report(state.value, cx);
                match outcome {
                    Outcome::Succeed => {}
                    Outcome::Fail => return Err("as told".into()),
                    Outcome::Panic => std::panic::resume_unwind(Box::new("as told")),
                    Outcome::AddLater(delay) => cx.send_after(delay, AddThen(1, Outcome::Succeed)),
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(text).expect("a short key")
}

/// Returns the arguments of the counter with a key.
pub(crate) fn counter(
    store: &(impl Store + Clone),
    key: &str,
    observer: Option<Recipient<u64>>,
) -> DurableArgs<Counter> {
    DurableArgs::new(Arc::new(store.clone()), key, observer).expect("a short key")
}

pub(crate) type DurableCounter = Durable<Counter>;
