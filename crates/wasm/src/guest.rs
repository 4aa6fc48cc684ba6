//! What the host knows of a running component: the data of its Store.

mod bucket;
mod handles;
mod imports;
mod memory;
mod streams;
mod tick;
mod watch;

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use strowger::{ActorRef, ActorSystem, Lane, Path, Subscription, TimerKey, TopicError};
use tokio::time::Instant;

use self::bucket::Bucket;
use self::handles::Handles;
pub(crate) use self::imports::link;
use self::memory::Memory;
use self::streams::Streams;
use self::tick::Course;
pub(crate) use self::tick::{Place, is_worker};
use self::watch::Watch;
pub(crate) use self::watch::{Bounds, Moment, Spent};
use crate::contract::Refusal;
use crate::directory::Directory;
use crate::fault::cut;
#[cfg(unix)]
use crate::files::Root;
use crate::guests::Clock;
use crate::host::Host;
use crate::kv::Space;
use crate::load::Image;
use crate::message::{Answer, ComponentMsg, Due, Event, Tagged};
use crate::metric::{self, AUDIT};
use crate::usage::Usage;

/// The lines about what was refused in a second.
const AUDITS: u32 = 10;

/// The data of a component's Store. One life, one Store.
pub(crate) struct Guest {
    pub(crate) host: Host,
    pub(crate) image: Arc<Image>,
    pub(crate) memory: Memory,
    pub(crate) ties: Ties,
    handles: Handles,
    sends: Bucket,
    lines: Bucket,
    lines_dropped: u64,
    audits: Bucket,
    audits_dropped: u64,
    /// What it keeps by key, once it looked.
    space: Option<Space>,
    /// The folders that it looked into.
    #[cfg(unix)]
    roots: FxHashMap<String, Root>,
    writes: Bucket,
    /// When the call under way began, once somebody wanted to know.
    now: Option<Instant>,
    /// How long the call under way has computed.
    watch: Watch,
    course: Course,
    /// The same on guest threads.
    pub(crate) clock: Arc<Clock>,
    /// How long all lives of the component have.
    pub(crate) usage: Arc<Usage>,
    /// Timers that were set in the call under way.
    timers: Vec<(Duration, Due)>,
    /// Asks and timers that are under way, by token, with what wakes the actor for them.
    under_way: FxHashMap<u64, Option<TimerKey>>,
    pub(crate) streams: Streams,
    next_token: u64,
    subscriptions: Vec<(u64, Subscription)>,
    /// Those of the life before a sleep, until this one has said whether it wants them.
    inherited: Vec<(u64, Subscription)>,
}

/// How a component is tied into the system.
#[derive(Clone)]
pub(crate) struct Ties {
    pub(crate) path: Path,
    pub(crate) system: ActorSystem,
    pub(crate) me: ActorRef<ComponentMsg>,
    pub(crate) lane: Lane<Answer>,
    pub(crate) directory: Directory,
}

impl Ties {
    /// Subscribes the actor; its events come with this token.
    fn subscribe(&self, pattern: &str, token: u64) -> Result<Subscription, TopicError> {
        let me = self.me.recipient::<Tagged>();
        let recipient = me.contramap(move |event: Arc<Event>| Tagged { token, event });
        self.system.subscribe(pattern, recipient)
    }
}

impl Guest {
    pub(crate) fn new(
        host: Host,
        image: Arc<Image>,
        usage: Arc<Usage>,
        ties: Ties,
        tokens: u64,
    ) -> Self {
        let limits = &image.manifest().limits;
        Self {
            memory: Memory::new(limits),
            handles: Handles::new(limits.handles),
            sends: Bucket::new(limits.send_rate),
            lines: Bucket::new(limits.log_rate),
            lines_dropped: 0,
            audits: Bucket::new(AUDITS),
            audits_dropped: 0,
            space: None,
            #[cfg(unix)]
            roots: FxHashMap::default(),
            writes: Bucket::new(image.manifest().grant.kv.map_or(0, |kv| kv.rate)),
            now: None,
            watch: Watch::new(),
            course: Course::new(),
            clock: Arc::default(),
            usage,
            timers: Vec::new(),
            under_way: FxHashMap::default(),
            streams: Streams::default(),
            next_token: tokens,
            subscriptions: Vec::new(),
            inherited: Vec::new(),
            host,
            image,
            ties,
        }
    }

    /// Takes out the timers that the last call set.
    pub(crate) fn take_timers(&mut self) -> Vec<(Duration, Due)> {
        mem::take(&mut self.timers)
    }

    /// Notes by which timer an ask or a timer of the component ends.
    pub(crate) fn timed(&mut self, token: u64, timer: TimerKey) {
        if let Some(noted) = self.under_way.get_mut(&token) {
            *noted = Some(timer);
        }
    }

    /// Says that an ask or a timer is no longer under way; `None` if it was not.
    pub(crate) fn landed(&mut self, token: u64) -> Option<Option<TimerKey>> {
        self.under_way.remove(&token)
    }

    /// Whether a subscription is of this life.
    pub(crate) fn subscribes(&self, token: u64) -> bool {
        self.subscriptions.iter().any(|(own, _)| *own == token)
    }

    /// The token that comes next.
    pub(crate) const fn next_token(&self) -> u64 {
        self.next_token
    }

    /// Takes over what another version of the component has under way. A subscription to what
    /// both subscribe to is this one's by now.
    pub(crate) fn succeed(&mut self, old: &mut Self) {
        self.under_way.extend(old.under_way.drain());
        self.streams.succeed(&mut old.streams);
        let own = &self.subscriptions;
        old.subscriptions
            .retain(|(_, old)| !own.iter().any(|(_, own)| own.pattern() == old.pattern()));
    }

    /// Whether it waits for nothing: no answer, no timer, no stream.
    pub(crate) fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.streams.len() == 0
    }

    /// Holds what another one subscribed to, while nobody handles it.
    pub(crate) fn hold(&mut self, old: &mut Self) {
        self.subscriptions = mem::take(&mut old.subscriptions);
    }

    /// Takes over what was held; what it subscribes to again keeps its token, so that what came
    /// meanwhile is its own.
    pub(crate) fn inherit(&mut self, held: &mut Self) {
        self.inherited = mem::take(&mut held.subscriptions);
    }

    /// Lets go of what it did not subscribe to again.
    pub(crate) fn settle(&mut self) {
        for (_, subscription) in self.inherited.drain(..) {
            subscription.unsubscribe();
        }
    }

    /// Subscribes again to what another version, that did not come to life, subscribed to.
    pub(crate) fn subscribe_again(&mut self) {
        for (token, subscription) in mem::take(&mut self.subscriptions) {
            let pattern = subscription.pattern().to_owned();
            if let Ok(subscription) = self.ties.subscribe(&pattern, token) {
                self.subscriptions.push((token, subscription));
            }
        }
    }

    /// The coarse time of this call.
    fn now(&mut self) -> Instant {
        let system = &self.ties.system;
        *self.now.get_or_insert_with(|| system.now())
    }

    /// A line for those who look after the node: who wanted what. Each counts; the lines have a
    /// rate of their own, so that a component that logs a lot does not hide what it tries.
    fn refuse(&mut self, grant: &'static str, what: &str) {
        metric::refused(&self.image.manifest().component.name, grant);
        let now = self.now();
        if !self.audits.take(now) {
            self.audits_dropped += 1;
            return;
        }
        let omitted = mem::take(&mut self.audits_dropped);
        let (component, what) = (&self.ties.path, cut(what));
        tracing::warn!(target: AUDIT, %component, grant, what, omitted, "refused");
    }

    /// Pays for one message out.
    fn pay(&mut self) -> Result<(), Refusal> {
        let now = self.now();
        if self.sends.take(now) {
            Ok(())
        } else {
            Err(Refusal::Rate)
        }
    }

    /// Takes a place among what is under way, with a token for it.
    fn launch(&mut self) -> Result<u64, Refusal> {
        if self.under_way.len() >= self.image.manifest().limits.in_flight {
            return Err(Refusal::Limit);
        }
        let token = self.token();
        self.under_way.insert(token, None);
        Ok(token)
    }

    /// A token that nothing has had.
    pub(crate) const fn token(&mut self) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        token
    }
}

impl Drop for Guest {
    /// Subscriptions are those of a life; the actor that holds them may live on.
    fn drop(&mut self) {
        self.settle();
        for (_, subscription) in self.subscriptions.drain(..) {
            subscription.unsubscribe();
        }
    }
}
