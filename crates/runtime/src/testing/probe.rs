//! An actor that records the messages it receives.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;

use super::TestDriver;
use crate::actor::Actor;
use crate::address::{Accepts, ActorRef, AnyRef};
use crate::cell::ActorId;
use crate::context::Context;
use crate::exit::Exit;
use crate::mailbox::MailboxSpec;
use crate::monitor::Signal;
use crate::recipient::Recipient;
use crate::system::ActorSystem;

/// A recorder for messages of type `T`: an actor that keeps what it receives until the test takes
/// it out.
///
/// It can also monitor actors, and then records their exits. Its mailbox is unbounded.
pub struct Probe<T> {
    driver: Arc<TestDriver>,
    actor: ActorRef<ProbeMsg<T>>,
    record: Arc<Mutex<ProbeRecord<T>>>,
}

struct ProbeRecord<T> {
    messages: VecDeque<T>,
    downs: VecDeque<(ActorId, Exit)>,
    waker: Option<Waker>,
}

impl<T: Send + 'static> Probe<T> {
    pub(super) fn start(driver: &Arc<TestDriver>, system: &ActorSystem) -> Self {
        let record = Arc::new(Mutex::new(ProbeRecord {
            messages: VecDeque::new(),
            downs: VecDeque::new(),
            waker: None,
        }));
        let mut number = 0;
        let actor = loop {
            let key = format!("probe-{number}");
            match system.spawn::<ProbeActor<T>>(key, Arc::clone(&record)) {
                Ok(actor) => break actor,
                Err(crate::StartError::KeyTaken { .. }) => number += 1,
                Err(error) => panic!("{error}"),
            }
        };
        Self {
            driver: Arc::clone(driver),
            actor,
            record,
        }
    }

    /// Returns the address of the probe, for messages of its type.
    #[must_use]
    pub fn recipient(&self) -> Recipient<T> {
        self.actor.recipient()
    }

    /// Returns the address of the probe without its message type.
    #[must_use]
    pub fn actor(&self) -> AnyRef {
        self.actor.erase()
    }

    /// Monitors an actor. Its exit is recorded and returned by [`Probe::expect_down`].
    pub fn monitor(&self, actor: impl Into<AnyRef>) {
        let _sent = self
            .actor
            .try_tell(ProbeMsg(ProbeCommand::Monitor(actor.into())));
        self.driver.run_until_idle();
    }

    /// Takes the next message, if there is one, without running the system.
    #[must_use]
    pub fn try_next(&self) -> Option<T> {
        self.record.lock().messages.pop_front()
    }

    /// Runs the system until idle and takes all messages.
    #[must_use]
    pub fn drain(&self) -> Vec<T> {
        self.driver.run_until_idle();
        self.record.lock().messages.drain(..).collect()
    }

    /// Waits for the next message. For use in async code, such as
    /// [`TestSystem::run`](super::TestSystem::run).
    pub async fn next(&self) -> T {
        self.next_recorded(|record| record.messages.pop_front())
            .await
    }

    /// Runs the system until there is a message, and returns it.
    ///
    /// # Panics
    /// Panics if no message arrives within this virtual time.
    #[must_use]
    pub fn expect(&self, within: Duration) -> T {
        let Some(message) = self.driver.block_on_within(within, self.next()) else {
            panic!("no message for {} within {within:?}", self.actor.path());
        };
        message
    }

    /// Runs the system for this virtual time, in which no message may arrive.
    ///
    /// # Panics
    /// Panics if a message arrives.
    pub fn expect_none(&self, within: Duration)
    where
        T: fmt::Debug,
    {
        if let Some(message) = self.driver.block_on_within(within, self.next()) {
            panic!("{} was sent {message:?}", self.actor.path());
        }
    }

    /// Runs the system until the exit of a monitored actor is recorded.
    ///
    /// # Panics
    /// Panics if the actor does not end within this virtual time.
    #[must_use]
    pub fn expect_down(&self, actor: impl Into<AnyRef>, within: Duration) -> Exit {
        let actor = actor.into();
        let id = actor.id();
        let down = self.next_recorded(|record| {
            let place = record.downs.iter().position(|(down, _)| *down == id)?;
            record.downs.remove(place)
        });
        let Some((_, exit)) = self.driver.block_on_within(within, down) else {
            panic!("{} did not end within {within:?}", actor.path());
        };
        exit
    }

    /// Takes all recorded exits, in order of arrival, without running the system.
    #[must_use]
    pub fn take_downs(&self) -> Vec<(ActorId, Exit)> {
        self.record.lock().downs.drain(..).collect()
    }

    async fn next_recorded<R>(&self, mut take: impl FnMut(&mut ProbeRecord<T>) -> Option<R>) -> R {
        poll_fn(|cx| {
            let mut record = self.record.lock();
            if let Some(taken) = take(&mut record) {
                return Poll::Ready(taken);
            }
            record.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl<T> fmt::Debug for Probe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe")
            .field("waiting", &self.record.lock().messages.len())
            .finish()
    }
}

/// A message to the actor of a probe: a `T`, or a command from its probe.
pub struct ProbeMsg<T>(ProbeCommand<T>);

enum ProbeCommand<T> {
    Message(T),
    Monitor(AnyRef),
}

impl<T: Send + 'static> Accepts<T> for ProbeMsg<T> {
    fn wrap(message: T) -> Self {
        Self(ProbeCommand::Message(message))
    }
}

impl<T> fmt::Debug for ProbeMsg<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProbeMsg")
    }
}

struct ProbeActor<T>(Arc<Mutex<ProbeRecord<T>>>);

impl<T> ProbeActor<T> {
    fn update(&self, note: impl FnOnce(&mut ProbeRecord<T>)) {
        let mut record = self.0.lock();
        note(&mut record);
        let waker = record.waker.take();
        drop(record);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T: Send + 'static> Actor for ProbeActor<T> {
    type Msg = ProbeMsg<T>;
    type Args = Arc<Mutex<ProbeRecord<T>>>;
    type Error = Infallible;

    const MAILBOX: MailboxSpec = MailboxSpec::unbounded();

    async fn pre_start(args: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(args))
    }

    async fn handle(
        &mut self,
        ProbeMsg(message): ProbeMsg<T>,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        match message {
            ProbeCommand::Message(message) => {
                self.update(|record| record.messages.push_back(message))
            }
            ProbeCommand::Monitor(actor) => {
                cx.monitor(actor);
            }
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), Infallible> {
        if let Signal::Down { actor, exit, .. } = signal {
            self.update(|record| record.downs.push_back((actor, exit)));
        }
        Ok(())
    }
}
