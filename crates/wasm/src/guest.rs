//! The host's data of a running component, kept in its Store.

mod cpu_meter;
mod handles;
mod host_work;
mod imports;
mod memory;
mod streams;
mod tick;

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use strowger::{ActorPath, ActorRef, ActorSystem, ReplyLane, Subscription, TimerKey, TopicError};
use tokio::time::Instant;

use self::cpu_meter::CpuMeter;
pub(crate) use self::cpu_meter::{CpuLimits, Elapsed, ThreadInstant};
use self::handles::HandleTable;
pub(crate) use self::host_work::off_worker;
pub(crate) use self::imports::link;
use self::memory::MemoryLimiter;
use self::streams::ComponentStreams;
use self::tick::CallState;
pub(crate) use self::tick::{CallPlace, is_worker};
use crate::contract::Refusal;
use crate::directory::Directory;
use crate::fault::printable;
#[cfg(unix)]
use crate::files::GrantedDir;
use crate::guest_threads::TurnClock;
use crate::host::Host;
use crate::kv::KvSpace;
use crate::load::Image;
use crate::log_limit::LogLimits;
use crate::message::{Answer, ComponentMsg, Event, TaggedEvent, TimerDue};
use crate::metric::{self, AUDIT};
use crate::token_bucket::TokenBucket;
use crate::usage::ComponentUsage;

/// The data of a component's Store. Each incarnation has one Store.
pub(crate) struct StoreData {
    pub(crate) host: Host,
    pub(crate) image: Arc<Image>,
    pub(crate) memory: MemoryLimiter,
    pub(crate) env: ActorEnv,
    handles: HandleTable,
    sends: TokenBucket,
    /// The latest line logged in the current call.
    last_line: Option<String>,
    /// The key-value space of the component, after its first use.
    space: Option<Arc<KvSpace>>,
    /// The directories opened so far.
    #[cfg(unix)]
    granted_dirs: FxHashMap<String, Arc<GrantedDir>>,
    writes: TokenBucket,
    /// Start time of the current call, if it was needed.
    now: Option<Instant>,
    /// Processor time of the current call.
    cpu_meter: CpuMeter,
    call: CallState,
    /// Processor time of the current call on guest threads.
    pub(crate) clock: Arc<TurnClock>,
    /// Processor usage of all incarnations of the component.
    pub(crate) usage: Arc<ComponentUsage>,
    /// Timers set in the current call.
    timers: Vec<(Duration, TimerDue)>,
    /// Asks and timers in progress by token, with the actor's timer for each.
    in_flight: FxHashMap<u64, Option<TimerKey>>,
    pub(crate) streams: ComponentStreams,
    next_token: u64,
    subscriptions: Vec<(u64, Subscription)>,
    /// Subscriptions of the incarnation before passivation, until this one has subscribed again.
    inherited: Vec<(u64, Subscription)>,
}

/// The environment of a component's actor: its path, its system, and the addresses that it uses.
#[derive(Clone)]
pub(crate) struct ActorEnv {
    pub(crate) path: ActorPath,
    pub(crate) system: ActorSystem,
    pub(crate) me: ActorRef<ComponentMsg>,
    pub(crate) lane: ReplyLane<Answer>,
    pub(crate) directory: Directory,
}

impl ActorEnv {
    /// Subscribes the actor; its events carry this token.
    fn subscribe(&self, pattern: &str, token: u64) -> Result<Subscription, TopicError> {
        let me = self.me.recipient::<TaggedEvent>();
        let recipient = me.contramap(move |event: Arc<Event>| TaggedEvent { token, event });
        self.system.subscribe(pattern, recipient)
    }
}

impl StoreData {
    pub(crate) fn new(
        host: Host,
        image: Arc<Image>,
        usage: Arc<ComponentUsage>,
        env: ActorEnv,
        tokens: u64,
    ) -> Self {
        let limits = &image.manifest().limits;
        Self {
            memory: MemoryLimiter::new(limits),
            handles: HandleTable::new(limits.handles),
            sends: TokenBucket::new(limits.send_rate),
            last_line: None,
            space: None,
            #[cfg(unix)]
            granted_dirs: FxHashMap::default(),
            writes: TokenBucket::new(image.manifest().grant.kv.map_or(0, |kv| kv.rate)),
            now: None,
            cpu_meter: CpuMeter::new(),
            call: CallState::new(),
            clock: Arc::default(),
            usage,
            timers: Vec::new(),
            in_flight: FxHashMap::default(),
            streams: ComponentStreams::default(),
            next_token: tokens,
            subscriptions: Vec::new(),
            inherited: Vec::new(),
            host,
            image,
            env,
        }
    }

    /// Takes the timers that the last call set.
    pub(crate) fn take_timers(&mut self) -> Vec<(Duration, TimerDue)> {
        mem::take(&mut self.timers)
    }

    /// Records the actor's timer for an ask or a timer of the component.
    pub(crate) fn set_timer_key(&mut self, token: u64, timer: TimerKey) {
        if let Some(entry) = self.in_flight.get_mut(&token) {
            *entry = Some(timer);
        }
    }

    /// Removes an ask or a timer that is no longer in progress; returns `None` if it was not.
    pub(crate) fn finish_in_flight(&mut self, token: u64) -> Option<Option<TimerKey>> {
        self.in_flight.remove(&token)
    }

    /// Returns `true` if the subscription belongs to this incarnation.
    pub(crate) fn subscribes(&self, token: u64) -> bool {
        self.subscriptions.iter().any(|(own, _)| *own == token)
    }

    /// Returns the next token without taking it.
    pub(crate) const fn next_token(&self) -> u64 {
        self.next_token
    }

    /// Takes over asks, timers and streams from the incarnation of another version. A subscription
    /// that both made already belongs to this one.
    pub(crate) fn take_over(&mut self, old: &mut Self) {
        self.in_flight.extend(old.in_flight.drain());
        self.streams.take_over(&mut old.streams);
        let own = &self.subscriptions;
        old.subscriptions
            .retain(|(_, old)| !own.iter().any(|(_, own)| own.pattern() == old.pattern()));
    }

    /// Returns `true` if no answer, timer or stream is pending.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.streams.len() == 0
    }

    /// Keeps the subscriptions of an incarnation that is being passivated.
    pub(crate) fn keep_subscriptions(&mut self, old: &mut Self) {
        self.subscriptions = mem::take(&mut old.subscriptions);
    }

    /// Takes over the kept subscriptions. If the component subscribes again, the subscription keeps
    /// its token, so that events that arrived meanwhile are still delivered.
    pub(crate) fn inherit_subscriptions(&mut self, held: &mut Self) {
        self.inherited = mem::take(&mut held.subscriptions);
    }

    /// Drops the kept subscriptions that were not renewed.
    pub(crate) fn drop_inherited(&mut self) {
        for (_, subscription) in self.inherited.drain(..) {
            subscription.unsubscribe();
        }
    }

    /// Renews the subscriptions after a failed upgrade, because the failed version may have
    /// replaced them.
    pub(crate) fn renew_subscriptions(&mut self) {
        for (token, subscription) in mem::take(&mut self.subscriptions) {
            let pattern = subscription.pattern().to_owned();
            if let Ok(subscription) = self.env.subscribe(&pattern, token) {
                self.subscriptions.push((token, subscription));
            }
        }
    }

    /// Returns the coarse time of this call.
    fn now(&mut self) -> Instant {
        let system = &self.env.system;
        *self.now.get_or_insert_with(|| system.now())
    }

    /// Returns the rate limiters of log lines caused by the component.
    fn log_limits(&self) -> &LogLimits {
        self.usage.log_limits()
    }

    /// Returns the latest line logged in the current call.
    pub(crate) fn last_line(&self) -> Option<&str> {
        self.last_line.as_deref()
    }

    /// Logs a denied operation for the operators of the node. Each one is counted in the metrics,
    /// even if its line is omitted.
    fn log_denied(&mut self, grant: &'static str, what: &str) {
        metric::refused(&self.image.manifest().component.name, grant);
        let now = self.now();
        if let Some(omitted) = self.log_limits().audits.take(now) {
            let (component, what) = (&self.env.path, printable(what));
            tracing::warn!(target: AUDIT, %component, grant, what, omitted, "refused");
        }
    }

    /// Takes one token of `limits.send_rate`.
    fn take_send_token(&mut self) -> Result<(), Refusal> {
        let now = self.now();
        if self.sends.take(now) {
            Ok(())
        } else {
            Err(Refusal::Rate)
        }
    }

    /// Reserves an entry for an ask or a timer in progress; returns its token.
    fn begin_in_flight(&mut self) -> Result<u64, Refusal> {
        if self.in_flight.len() >= self.image.manifest().limits.in_flight {
            return Err(Refusal::Limit);
        }
        let token = self.new_token();
        self.in_flight.insert(token, None);
        Ok(token)
    }

    /// Returns a new token.
    pub(crate) const fn new_token(&mut self) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        token
    }
}

impl Drop for StoreData {
    /// Subscriptions end with an incarnation; the actor that holds them may continue.
    fn drop(&mut self) {
        self.usage.count_ended_calls(self.call.calls());
        let now = self.now();
        self.log_limits().report_omitted(now);
        self.drop_inherited();
        for (_, subscription) in self.subscriptions.drain(..) {
            subscription.unsubscribe();
        }
    }
}
