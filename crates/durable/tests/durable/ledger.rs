//! The event-sourced actor of the tests: a list of entries, whose order shows that of the events.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strowger::{Accepts, Ask, BoxError, Recipient, Request};
use strowger_durable::store::Store;
use strowger_durable::{
    AnswerWindow, Durable, DurableArgs, EventContext, EventRetention, EventSourced, IdempotencyKey,
    Reminder, Sourced,
};

use crate::format::ANSWERS_OF_FIXTURES;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LedgerEvent {
    Added {
        entry: u64,
    },
    /// Not commutative with the others.
    AllDoubled,
    /// Panics if there is no such entry.
    Removed {
        index: usize,
    },
    /// Encoded as what cannot be decoded.
    Unreadable {
        #[serde(skip_serializing)]
        lost: u64,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Book {
    pub(crate) entries: Vec<u64>,
    pub(crate) events: u64,
}

impl Book {
    pub(crate) fn apply(&mut self, event: &LedgerEvent) {
        self.events += 1;
        match *event {
            LedgerEvent::Added { entry } => self.entries.push(entry),
            LedgerEvent::AllDoubled => {
                for entry in &mut self.entries {
                    *entry = entry.wrapping_mul(2);
                }
            }
            LedgerEvent::Removed { index } => _ = self.entries.remove(index),
            LedgerEvent::Unreadable { lost } => self.entries.push(lost),
        }
    }
}

/// Emits events once; the answer is the number of events so far.
#[derive(Debug, Clone)]
pub(crate) struct Write(pub(crate) Vec<LedgerEvent>, pub(crate) IdempotencyKey);
impl Request for Write {
    type Reply = u64;
}

/// Reads the state.
pub(crate) struct Read;
impl Request for Read {
    type Reply = Book;
}

/// Emits events without an answer, and then fails as told.
pub(crate) struct EmitThen(pub(crate) Vec<LedgerEvent>, pub(crate) After);

#[derive(Debug, Clone, Copy)]
pub(crate) enum After {
    Succeed,
    Fail,
    Panic,
    /// Sets a reminder, which adds this entry.
    Remind(Duration, u64),
}

pub(crate) enum LedgerMessage {
    Write(Ask<Write>),
    Read(Ask<Read>),
    Emit(EmitThen),
}

impl Accepts<Ask<Write>> for LedgerMessage {
    fn wrap(message: Ask<Write>) -> Self {
        Self::Write(message)
    }
}

impl Accepts<Ask<Read>> for LedgerMessage {
    fn wrap(message: Ask<Read>) -> Self {
        Self::Read(message)
    }
}

impl Accepts<EmitThen> for LedgerMessage {
    fn wrap(message: EmitThen) -> Self {
        Self::Emit(message)
    }
}

/// A ledger with a snapshot after so many events, and all of them kept or not. It tells the number
/// of events to an observer after each message that has some.
pub(crate) struct Ledger<const EVERY: u64, const KEEPS: bool>(Option<Recipient<u64>>);

impl<const EVERY: u64, const KEEPS: bool> Ledger<EVERY, KEEPS> {
    fn emit(&self, events: &[LedgerEvent], cx: &mut EventContext<'_, Self>) {
        events.iter().for_each(|event| cx.emit(event));
        if let Some(observer) = &self.0 {
            let events = cx.state().events;
            cx.tell(observer.clone(), events);
        }
    }
}

impl<const EVERY: u64, const KEEPS: bool> EventSourced for Ledger<EVERY, KEEPS> {
    const KIND: &'static str = "ledger";
    const SNAPSHOT_EVERY: u64 = EVERY;
    const RETENTION: EventRetention = match KEEPS {
        true => EventRetention::All,
        false => EventRetention::SinceSnapshot,
    };
    const IDLE: Duration = Duration::from_millis(20);
    const ANSWERS: AnswerWindow = ANSWERS_OF_FIXTURES;

    type State = Book;
    type Event = LedgerEvent;
    type Msg = LedgerMessage;
    type Args = Option<Recipient<u64>>;
    type Error = BoxError;

    fn apply(state: &mut Book, event: LedgerEvent) {
        state.apply(&event);
    }

    async fn pre_start(
        observer: Self::Args,
        _: &mut EventContext<'_, Self>,
    ) -> Result<Self, BoxError> {
        Ok(Self(observer))
    }

    async fn handle(
        &mut self,
        message: LedgerMessage,
        cx: &mut EventContext<'_, Self>,
    ) -> Result<(), BoxError> {
        match message {
            LedgerMessage::Write(Ask { request, reply }) => {
                cx.reply_once(&request.1, reply, |cx| {
                    self.emit(&request.0, cx);
                    cx.last_event().0
                });
            }
            LedgerMessage::Read(ask) => {
                let book = cx.state().clone();
                cx.reply(ask.reply, book);
            }
            LedgerMessage::Emit(EmitThen(events, after)) => {
                self.emit(&events, cx);
                match after {
                    After::Succeed => {}
                    After::Fail => return Err("as told".into()),
                    After::Panic => std::panic::resume_unwind(Box::new("as told")),
                    After::Remind(delay, entry) => cx.set_reminder("add", delay, &entry)?,
                }
            }
        }
        Ok(())
    }

    async fn remind(
        &mut self,
        reminder: Reminder,
        cx: &mut EventContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let entry = reminder.decode()?;
        self.emit(&[LedgerEvent::Added { entry }], cx);
        Ok(())
    }
}

pub(crate) type DurableLedger<const EVERY: u64, const KEEPS: bool> =
    Durable<Sourced<Ledger<EVERY, KEEPS>>>;

/// Returns the arguments of the ledger with a key.
pub(crate) fn ledger<const EVERY: u64, const KEEPS: bool>(
    store: &(impl Store + Clone),
    key: &str,
    observer: Option<Recipient<u64>>,
) -> DurableArgs<Sourced<Ledger<EVERY, KEEPS>>> {
    DurableArgs::new(Arc::new(store.clone()), key, observer).expect("a short key")
}

/// Returns events that add entries.
pub(crate) fn added(entries: impl IntoIterator<Item = u64>) -> Vec<LedgerEvent> {
    let entries = entries.into_iter();
    entries.map(|entry| LedgerEvent::Added { entry }).collect()
}
