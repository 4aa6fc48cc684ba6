//! The host of a kind: the parent of its activations.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::time::Duration;

use strowger::{Actor, ActorId, ActorRef, Context, Exit, MailboxSpec, Signal};
use tokio::time::Instant;

use super::{Hosted, HostedKind, KindState};
use crate::actor::{Durable, DurableActor, DurableArgs};
use crate::seeded_bug::{Bug, seeded};
use crate::store::EntityId;

/// A message to a host. All but `Tick` are about an entity in its table, so they are bounded.
pub(crate) enum HostMessage<M> {
    /// Start an activation.
    Activate(Arc<str>),
    /// An activation has started.
    Started(Arc<str>, ActorRef<M>),
    /// End an activation once it has handled the messages that wait.
    Passivate(Arc<str>, ActorRef<M>),
    /// Messages that an activation did not handle, because it failed while it was passivated.
    Unhandled(Arc<str>, Vec<M>),
    /// Look for idle entities.
    Tick,
}

/// The parent of the activations of one kind.
pub(crate) struct EntityHost<A: DurableActor> {
    kind: Arc<KindState<A>>,
    /// The keys of the activations that run.
    activations: HashMap<ActorId, Arc<str>>,
}

impl<A: DurableActor> EntityHost<A> {
    fn activate(&mut self, key: &Arc<str>, cx: &mut Context<Self>) {
        let hosted: Weak<dyn HostedKind> = Arc::<KindState<A>>::downgrade(&self.kind);
        let hosted = Hosted {
            kind: hosted,
            key: Arc::clone(key),
        };
        let store = Arc::clone(&self.kind.entities.0.store);
        let args = self.kind.args.clone();
        let started = EntityId::new(A::KIND, Arc::clone(key))
            .map_err(Exit::failed)
            .and_then(|id| {
                let args = DurableArgs::hosted(store, id, args, hosted);
                let child = child_key(key, self.activations.len());
                cx.spawn::<Durable<A>>(child, args).map_err(Exit::failed)
            });
        let actor = match started {
            Ok(actor) => actor,
            Err(exit) => return self.ended(key, exit),
        };
        self.activations.insert(actor.id(), Arc::clone(key));
        let key = Arc::clone(key);
        let starting = {
            let actor = actor.clone();
            // If it fails, its end says why.
            async move { _ = actor.started().await }
        };
        let _ = cx.pipe(starting, move |()| HostMessage::Started(key, actor));
    }

    fn passivate(key: Arc<str>, actor: ActorRef<A::Msg>, cx: &mut Context<Self>) {
        if seeded(Bug::PassivationLosesMessage) {
            return actor.stop();
        }
        let draining = async move { actor.drain(Duration::MAX).await };
        let _ = cx.pipe(draining, move |left| HostMessage::Unhandled(key, left));
    }

    fn ended(&self, key: &Arc<str>, exit: Exit) {
        self.kind.table.lock().ended(key, exit);
        self.kind.changed.notify_waiters();
    }
}

impl<A: DurableActor> Actor for EntityHost<A> {
    type Msg = HostMessage<A::Msg>;
    type Args = Arc<KindState<A>>;
    type Error = Infallible;

    const MAILBOX: MailboxSpec = MailboxSpec::unbounded();
    const PIPES: usize = usize::MAX;

    async fn pre_start(kind: Self::Args, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        let waiting = kind.table.lock().open(cx.actor_ref());
        let mut host = Self {
            kind,
            activations: HashMap::new(),
        };
        for key in waiting {
            host.activate(&key, cx);
        }
        let tick = (A::IDLE / 4).clamp(Duration::from_millis(1), Duration::from_secs(10));
        cx.send_every(tick, || HostMessage::Tick);
        Ok(host)
    }

    async fn handle(
        &mut self,
        message: HostMessage<A::Msg>,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        match message {
            HostMessage::Activate(key) => self.activate(&key, cx),
            HostMessage::Started(key, actor) => {
                if self.activations.contains_key(&actor.id()) && actor.is_alive() {
                    let mut table = self.kind.table.lock();
                    table.started(&key, actor, Instant::now());
                    self.kind.changed.notify_waiters();
                }
            }
            HostMessage::Passivate(key, actor) => Self::passivate(key, actor, cx),
            HostMessage::Unhandled(key, left) => {
                if let Ok(id) = EntityId::new(A::KIND, key)
                    && !left.is_empty()
                {
                    let kind = Arc::clone(&self.kind);
                    cx.task("unhandled messages", async move {
                        for message in left {
                            match kind.enter(&id).await {
                                Ok(permit) => _ = permit.actor.tell(message).await,
                                Err(error) => tracing::warn!(%error, "message dropped"),
                            }
                        }
                    });
                }
            }
            HostMessage::Tick => {
                let now = Instant::now();
                self.kind.table.lock().passivate_idle(A::IDLE, now);
            }
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), Infallible> {
        if let Signal::ChildEnded { actor, exit, .. } = signal
            && let Some(key) = self.activations.remove(&actor)
        {
            self.ended(&key, exit);
        }
        Ok(())
    }
}

impl<A: DurableActor> Drop for EntityHost<A> {
    fn drop(&mut self) {
        self.kind.table.lock().close();
        self.kind.changed.notify_waiters();
    }
}

/// Returns the key of an activation among its siblings, which must not be empty or have a slash.
fn child_key(key: &str, activations: usize) -> String {
    match key {
        "" => "%".to_owned(),
        key if seeded(Bug::TwoActivations) => format!("{key}-{activations}"),
        key => key.replace('%', "%25").replace('/', "%2F"),
    }
}
