//! The host of a kind: the parent of its activations.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::time::Duration;

use strowger::{Actor, ActorId, ActorRef, Context, Exit, MailboxSpec, Signal, TimerKey};
use tokio::time::Instant;

use super::{Hosted, HostedKind, KindState};
use crate::actor::{Durable, DurableActor, DurableArgs};
use crate::hash_map::remove_and_shrink;
use crate::seeded_bug::{Bug, seeded};
use crate::store::{EntityId, StoreError, Wake};

/// A message to a host. Nearly all are about an entity in its table, so they are bounded.
pub(crate) enum HostMessage<M> {
    /// Start an activation.
    Activate(Arc<str>),
    /// End an activation once it has handled the messages that wait.
    Passivate(Arc<str>, ActorRef<M>),
    /// Messages that an activation did not handle, because it failed while it was passivated.
    Unhandled(Arc<str>, Vec<M>),
    /// Look for idle entities.
    Tick,
    /// Look for entities that are due.
    Look,
    /// The next entities that have a wake-up time.
    Found(Result<Vec<Wake>, StoreError>),
}

/// The parent of the activations of one kind.
pub(crate) struct EntityHost<A: DurableActor> {
    kind: Arc<KindState<A>>,
    /// The keys of the activations that run.
    activations: HashMap<ActorId, Arc<str>>,
    /// The next look for entities that are due.
    look: Option<(Duration, TimerKey)>,
    /// Set while there are entities that may become idle.
    is_ticking: bool,
}

/// Number of wake-up times that are read at once.
const PAGE: usize = 256;
/// Maximum time until the wall clock is read again, which may have been set.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Time until a look that found no room, or no store, is repeated.
const REPEAT: Duration = Duration::from_secs(1);
/// Time until an entity that failed and is due is activated again.
const RETRY: Duration = Duration::from_secs(10);

impl<A: DurableActor> EntityHost<A> {
    /// Looks for idle entities after a while, as long as there are entities that are not asleep.
    fn tick(&mut self, cx: &mut Context<Self>) {
        self.is_ticking = !self.activations.is_empty();
        if self.is_ticking {
            let period = (A::IDLE / 4).clamp(Duration::from_millis(1), Duration::from_secs(10));
            cx.send_after(period, HostMessage::Tick);
        }
    }

    fn activate(&mut self, key: &Arc<str>, cx: &mut Context<Self>) {
        let hosted: Weak<dyn HostedKind> = Arc::<KindState<A>>::downgrade(&self.kind);
        let hosted = Hosted {
            kind: hosted,
            key: Arc::clone(key),
            link: self.kind.table.lock().link(key),
        };
        let store = Arc::clone(&self.kind.entities.0.store);
        let args = self.kind.args.clone();
        let started = EntityId::new(Arc::clone(&self.kind.name), Arc::clone(key))
            .map_err(Exit::failed)
            .and_then(|id| {
                let args = DurableArgs::hosted(store, id, args, hosted);
                let child = child_key(key, self.activations.len());
                cx.spawn::<Durable<A>>(child, args).map_err(Exit::failed)
            });
        let actor = match started {
            Ok(actor) => actor,
            Err(exit) => return self.ended(key, exit, cx),
        };
        self.activations.insert(actor.id(), Arc::clone(key));
        if !self.is_ticking {
            self.tick(cx);
        }
    }

    fn passivate(key: Arc<str>, actor: ActorRef<A::Msg>, cx: &mut Context<Self>) {
        if seeded(Bug::PassivationLosesMessage) {
            return actor.stop();
        }
        let draining = async move { actor.drain(Duration::MAX).await };
        let _ = cx.pipe(draining, move |left| HostMessage::Unhandled(key, left));
    }

    fn ended(&mut self, key: &Arc<str>, exit: Exit, cx: &mut Context<Self>) {
        let has_failed = !exit.is_orderly();
        let wake = self.kind.table.lock().ended(key, exit);
        self.kind.changed.notify_waiters();
        match wake {
            Some(wake) if has_failed => self.look_at(wake.max(self.now() + RETRY), cx),
            Some(wake) => self.look_at(wake, cx),
            // It may have failed before it knew.
            None if has_failed => self.look_at(self.now() + RETRY, cx),
            None => {}
        }
    }

    fn now(&self) -> Duration {
        self.kind.entities.0.store.wall_clock()
    }

    /// Looks for entities that are due at a time, at the latest.
    fn look_at(&mut self, at: Duration, cx: &mut Context<Self>) {
        if let Some((earlier, timer)) = self.look {
            if earlier <= at {
                return;
            }
            cx.cancel(timer);
        }
        let wait = at.saturating_sub(self.now()).min(MAX_WAIT);
        let timer = cx.send_after(wait, HostMessage::Look);
        self.look = Some((at, timer));
    }

    fn look(&self, after: Option<&Wake>, cx: &mut Context<Self>) {
        let store = &self.kind.entities.0.store;
        let wakes = store.wakes(A::KIND, after, PAGE);
        let _ = cx.pipe(wakes, HostMessage::Found);
    }

    /// Activates entities that are due.
    fn wake(&mut self, found: &[Wake], cx: &mut Context<Self>) {
        let now = self.now();
        for wake in found {
            if wake.at > now {
                return self.look_at(wake.at, cx);
            }
            if !self.kind.table.lock().wake(&wake.key, A::MAX_AWAKE) {
                self.kind.make_room();
                return self.look_at(now + REPEAT, cx);
            }
        }
        if found.len() == PAGE {
            self.look(found.last(), cx);
        }
    }
}

impl<A: DurableActor> Actor for EntityHost<A> {
    type Msg = HostMessage<A::Msg>;
    type Args = Arc<KindState<A>>;
    type Error = Infallible;

    const MAILBOX: MailboxSpec = MailboxSpec::unbounded();
    const PIPES: usize = usize::MAX;

    async fn pre_start(kind: Self::Args, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        // Not earlier: a clock of tests runs from its first reading.
        kind.began();
        let waiting = kind.table.lock().open(cx.actor_ref());
        let mut host = Self {
            kind,
            activations: HashMap::new(),
            look: None,
            is_ticking: false,
        };
        host.look(None, cx);
        for key in waiting {
            host.activate(&key, cx);
        }
        Ok(host)
    }

    async fn handle(
        &mut self,
        message: HostMessage<A::Msg>,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        match message {
            HostMessage::Activate(key) => self.activate(&key, cx),
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
                let (now, wall_clock) = (Instant::now(), self.now());
                self.kind
                    .table
                    .lock()
                    .passivate_idle(A::IDLE, now, wall_clock);
                self.tick(cx);
            }
            HostMessage::Look => {
                self.look = None;
                self.look(None, cx);
            }
            HostMessage::Found(Ok(found)) => self.wake(&found, cx),
            HostMessage::Found(Err(error)) => {
                tracing::warn!(kind = A::KIND, %error, "reminders of sleeping entities not read");
                let at = self.now() + REPEAT;
                self.look_at(at, cx);
            }
        }
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), Infallible> {
        if let Signal::ChildEnded { actor, exit, .. } = signal
            && let Some(key) = remove_and_shrink(&mut self.activations, &actor)
        {
            self.ended(&key, exit, cx);
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
