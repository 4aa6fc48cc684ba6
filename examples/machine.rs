//! A state machine: a telephone whose states carry their own data.
//!
//! The transition is a pure function of state and event, which a test can call without an actor.
//! The actor around it adds timers, messages and a lifecycle.
//!
//! `cargo run -p strowger-examples machine`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use strowger::{Actor, ActorSystem, BoxError, Context, Request, TimerKey, handlers};

#[derive(Debug, Clone, PartialEq)]
enum State {
    OnHook,
    Dialling {
        digits: String,
    },
    Ringing {
        number: String,
    },
    Talking {
        number: String,
    },
    /// Something went wrong; only hanging up helps.
    Busy,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    LiftReceiver,
    Dial(char),
    Answered,
    HangUp,
    /// The time limit of a state has passed.
    TimedOut,
}

impl State {
    /// Returns the next state; the same state if the event does not apply.
    fn after(self, event: Event) -> Self {
        match (self, event) {
            (_, Event::HangUp) => Self::OnHook,
            (Self::OnHook, Event::LiftReceiver) => Self::Dialling {
                digits: String::new(),
            },
            (Self::Dialling { mut digits }, Event::Dial(digit)) => {
                digits.push(digit);
                if digits.len() == 3 {
                    Self::Ringing { number: digits }
                } else {
                    Self::Dialling { digits }
                }
            }
            (Self::Ringing { number }, Event::Answered) => Self::Talking { number },
            (Self::Dialling { .. } | Self::Ringing { .. }, Event::TimedOut) => Self::Busy,
            (same, _) => same,
        }
    }

    /// Returns `true` if the state has a time limit.
    const fn is_limited(&self) -> bool {
        matches!(self, Self::Dialling { .. } | Self::Ringing { .. })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnHook => f.write_str("on hook"),
            Self::Dialling { digits } => write!(f, "dialling {digits:?}"),
            Self::Ringing { number } => write!(f, "ringing {number}"),
            Self::Talking { number } => write!(f, "talking to {number}"),
            Self::Busy => f.write_str("busy"),
        }
    }
}

/// Waits until the telephone is in another state than this one.
struct Changed(State);
impl Request for Changed {
    type Reply = State;
}

struct Telephone {
    state: State,
    patience: Duration,
    timer: Option<TimerKey>,
    watching: Vec<strowger::Ask<Changed>>,
}

#[handlers]
impl Actor for Telephone {
    type Args = Duration;
    type Error = Infallible;

    async fn pre_start(patience: Duration, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self {
            patience,
            state: State::OnHook,
            timer: None,
            watching: Vec::new(),
        })
    }

    async fn event(&mut self, event: Event, cx: &mut Context<Self>) {
        let before = self.state.clone();
        let after = before.clone().after(event);
        println!("{before} + {event:?} = {after}");
        if after == before {
            return;
        }
        // The timer of a state is cancelled with the state.
        if let Some(timer) = self.timer.take() {
            cx.cancel(timer);
        }
        let is_limited = after.is_limited();
        self.timer = is_limited.then(|| cx.send_after(self.patience, Event::TimedOut));
        self.state = after;
        for ask in std::mem::take(&mut self.watching) {
            self.changed(ask).await;
        }
    }

    async fn changed(&mut self, ask: strowger::Ask<Changed>) {
        if self.state == ask.request.0 {
            self.watching.push(ask);
        } else {
            ask.reply.send(self.state.clone());
        }
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let system = ActorSystem::new("example")?;
    let telephone = system.spawn::<Telephone>("telephone", Duration::from_secs(60))?;

    let call = [
        Event::LiftReceiver,
        Event::Dial('1'),
        Event::Answered, // No telephone rings yet: ignored.
        Event::Dial('8'),
        Event::Dial('9'),
        Event::Answered,
        Event::HangUp,
    ];
    for event in call {
        telephone.tell(event).await?;
    }

    // Queued behind all events: the call is over when this is answered.
    telephone.ask(Changed(State::Busy)).await?;

    // At another telephone, somebody lifts the receiver and does not dial.
    let telephone = system.spawn::<Telephone>("hasty", Duration::from_millis(5))?;
    telephone.tell(Event::LiftReceiver).await?;
    let digits = String::new();
    let state = telephone.ask(Changed(State::Dialling { digits })).await?;
    println!("in the end: {state}");
    Ok(())
}
