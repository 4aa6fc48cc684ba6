//! The actor that runs a component.

mod backlog;
mod incarnation;
mod passivation;
mod shared;
mod streams;
mod upgrade;

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use strowger::{Actor, Ask, Completion, Context, Exit, Reply};

use self::backlog::{AtRisk, Backlogged, FailedDelivery};
use self::incarnation::{Incarnation, unless_killed};
use self::passivation::IdleTracker;
use self::shared::ComponentShared;
pub use self::shared::{ComponentArgs, ComponentInfo, LifecycleStage};
pub(crate) use self::streams::{OpeningStream, StreamItem};
use crate::contract::{Envelope, HandleResult, MessageKind, Payload, StartReason};
use crate::fault::{CallPhase, Fault, FaultKind, printable};
use crate::guest::ActorEnv;
use crate::manifest::StateMode;
use crate::message::{
    Answer, Call, CallError, ComponentMsg, DrainBacklog, Message, MsgBody, TimerDue,
};
use crate::usage::Admission;

/// An actor whose behavior is a component.
///
/// Each incarnation has a Store of its own, which nothing else accesses. A fault of any kind ends
/// the incarnation with [`Exit::Failed`], which contains a [`Fault`]; the supervisor decides
/// whether to restart it. Queued messages stay in the mailbox, and the next incarnation receives
/// the saved state.
#[derive(Debug)]
pub struct ComponentActor {
    incarnation: Incarnation,
    shared: Arc<ComponentShared>,
    /// Messages handled since the last snapshot.
    unsaved: u32,
    /// Messages collected for the next call of `batch.handle`.
    batch: Vec<Envelope>,
    /// The messages that a fault in the current call would affect.
    at_risk: AtRisk,
    /// `true` if earlier incarnations left messages to handle.
    has_backlog: bool,
    idle: IdleTracker,
}

impl Actor for ComponentActor {
    type Msg = ComponentMsg;
    type Args = ComponentArgs;
    type Error = Fault;

    async fn pre_start(args: ComponentArgs, cx: &mut Context<Self>) -> Result<Self, Fault> {
        let shared = args.0;
        shared.report_stage(LifecycleStage::PreStart);
        let env = ActorEnv {
            path: cx.path(),
            system: cx.system(),
            me: cx.actor_ref(),
            lane: cx.lane(),
            directory: shared.directory().clone(),
        };
        shared.reserve_capacity().await;
        let (image, mut start, tokens) = shared.next_incarnation();
        let now = cx.now();
        let failed = |fault: &Fault| {
            shared.record_end(fault, now, AtRisk::default(), Vec::new());
        };
        if start.reason == StartReason::Fresh
            && let Some(saved) = shared.load_state().inspect_err(failed)?
        {
            (start.reason, start.saved) = (StartReason::Restart, Some(saved));
        }
        let usage = shared.usage().inspect_err(failed)?;
        let mut incarnation = Incarnation::begin(shared.host(), image, usage, env, tokens)
            .await
            .inspect_err(failed)?;
        incarnation.init(start).await.inspect_err(failed)?;
        let has_backlog = shared.has_backlog();
        if has_backlog {
            cx.send_after(Duration::ZERO, DrainBacklog);
        }
        let mut actor = Self {
            incarnation,
            shared,
            unsaved: 0,
            batch: Vec::new(),
            at_risk: AtRisk::default(),
            has_backlog,
            idle: IdleTracker::new(now),
        };
        actor.record_work(cx);
        actor.set_timers(cx);
        actor.shared.report_stage(LifecycleStage::PostStart);
        Ok(actor)
    }

    async fn handle(&mut self, message: ComponentMsg, cx: &mut Context<Self>) -> Result<(), Fault> {
        let worked = message.0.is_work();
        let mut waiting = Some(message.0);
        let outcome = match self.try_handle_now(&mut waiting, cx) {
            Some(outcome) => unless_killed(outcome).await,
            None => {
                if !self.activate_for(&mut waiting, cx).await? {
                    return Ok(());
                }
                let admitted = match worked {
                    true => self.wait_for_share(cx).await,
                    false => Ok(()),
                };
                match admitted {
                    Ok(()) => self.drain_and_handle(&mut waiting, cx).await,
                    Err(fault) => Err(fault),
                }
            }
        };
        match &outcome {
            Ok(()) => {
                self.set_timers(cx);
                if worked {
                    self.record_work(cx);
                }
            }
            Err(fault) => {
                let at_risk = mem::take(&mut self.at_risk);
                let unbegun = mem::take(&mut self.batch).into_iter();
                let unbegun = unbegun.filter_map(|envelope| match envelope.kind {
                    MessageKind::Message => Some(MsgBody::Message(Message(envelope.payload))),
                    _ => None,
                });
                let unbegun = unbegun.chain(waiting).collect();
                cx.set_messages_at_risk(self.shared.record_end(fault, cx.now(), at_risk, unbegun));
            }
        }
        outcome
    }

    fn describe(message: &ComponentMsg) -> Cow<'static, str> {
        Cow::Borrowed(message.0.name())
    }

    async fn post_stop(mut self, exit: &Exit, _: &mut Context<Self>) {
        // A Store is not used after a fault.
        if exit.is_orderly() {
            self.shared.report_stage(LifecycleStage::PreStop);
            if self.incarnation.is_active()
                && let Err(fault) = self.finish().await
            {
                self.shared.record_fault(&fault);
                if let Some(omitted) = self.shared.take_log_line() {
                    let component = self.shared.name();
                    tracing::warn!(component, %fault, omitted, "component failed while stopping");
                }
            }
        }
        self.shared.report_stage(LifecycleStage::PostStop);
    }
}

impl ComponentActor {
    /// Handles a message synchronously where possible, which is the common case: the component
    /// never waits, nothing is left to handle before the message, and no state has to be saved
    /// after it. Otherwise returns `None` and leaves the message in `waiting`.
    fn try_handle_now(
        &mut self,
        waiting: &mut Option<MsgBody>,
        cx: &Context<Self>,
    ) -> Option<Result<(), Fault>> {
        let manifest = self.incarnation.image().manifest();
        let more = self.has_backlog || manifest.state.mode != StateMode::None;
        if more || !self.incarnation.can_call_now() {
            return None;
        }
        match waiting.take() {
            Some(MsgBody::Message(Message(payload))) if manifest.run.batch > 1 => {
                let complete = self.push_to_batch(MessageKind::Message, 0, payload, cx);
                Some(if complete { self.flush_now() } else { Ok(()) })
            }
            Some(MsgBody::Message(Message(payload))) => {
                self.record_at_risk(MessageKind::Message, &payload);
                let called = self
                    .incarnation
                    .handle_now(MessageKind::Message, 0, payload);
                Some(called.map(|answered| self.record_handled(1, answered.err())))
            }
            Some(MsgBody::Call(Ask { request, reply })) if self.batch.is_empty() => {
                self.at_risk.lost = 1;
                let called = self
                    .incarnation
                    .handle_now(MessageKind::Request, 0, request.0);
                Some(send_reply(reply, called).map(|refused| self.record_handled(1, refused)))
            }
            other => {
                *waiting = other;
                None
            }
        }
    }

    /// Waits until the component has its share of a processor again. If it is to be quarantined for
    /// having exceeded its share, stops its supervisor as well, so that it is not restarted.
    async fn wait_for_share(&self, cx: &Context<Self>) -> Result<(), Fault> {
        match self.shared.admission() {
            Admission::Now => Ok(()),
            Admission::After(delay) => {
                let pause = tokio::time::sleep(delay);
                pause.await;
                Ok(())
            }
            Admission::Quarantine => {
                let path = cx.path();
                let above = path.as_str().rsplit_once('/').map(|(above, _)| above);
                if let Some(supervisor) = above.and_then(|above| cx.system().find(above)) {
                    supervisor.stop();
                }
                Err(over_share_fault())
            }
        }
    }

    /// Handles the messages that earlier incarnations left, and then the new one. A message that is
    /// still in `waiting` after a fault was not begun.
    async fn drain_and_handle(
        &mut self,
        waiting: &mut Option<MsgBody>,
        cx: &mut Context<Self>,
    ) -> Result<(), Fault> {
        while self.has_backlog {
            match self.shared.next_backlogged() {
                None => self.has_backlog = false,
                Some(Backlogged::Failed(failed)) => self.retry(failed).await?,
                Some(Backlogged::Unbegun(message)) => {
                    let mut message = Some(message);
                    let outcome = self.handle_one(&mut message, cx).await;
                    if let (Err(_), Some(message)) = (&outcome, message) {
                        self.shared.put_back(Backlogged::Unbegun(message));
                    }
                    outcome?;
                }
            }
        }
        self.handle_one(waiting, cx).await
    }

    async fn handle_one(
        &mut self,
        waiting: &mut Option<MsgBody>,
        cx: &mut Context<Self>,
    ) -> Result<(), Fault> {
        // A message that does not batch is handled after the messages that arrived before it.
        if waiting.as_ref().is_some_and(|message| !message.can_batch()) {
            self.flush().await?;
        }
        match waiting.take() {
            Some(message) => self.dispatch(message, cx).await,
            None => Ok(()),
        }
    }

    /// Handles a message again that ended an earlier incarnation.
    async fn retry(&mut self, failed: FailedDelivery) -> Result<(), Fault> {
        let payload = Arc::clone(&failed.envelope.payload);
        self.at_risk.retryable.push(failed);
        let answered = self
            .incarnation
            .handle(MessageKind::Message, 0, payload)
            .await?;
        self.record_and_save(1, answered.err()).await
    }

    async fn dispatch(&mut self, message: MsgBody, cx: &mut Context<Self>) -> Result<(), Fault> {
        match message {
            MsgBody::CheckIdle(_) => self.check_idle(cx).await,
            MsgBody::Message(message) => self.deliver(MessageKind::Message, 0, message.0, cx).await,
            MsgBody::Event(tagged) if self.incarnation.guest().subscribes(tagged.token) => {
                let payload = Arc::clone(&tagged.event.payload);
                self.deliver(MessageKind::Event, tagged.token, payload, cx)
                    .await
            }
            // An event for an earlier incarnation, or a `DrainBacklog` whose messages have been
            // handled meanwhile.
            MsgBody::Event(_) | MsgBody::DrainBacklog(_) => Ok(()),
            MsgBody::Timer(due) => self.handle_timer(due, cx).await,
            MsgBody::Answer(completion) => self.handle_answer(completion, cx).await,
            MsgBody::Call(ask) => self.handle_request(ask).await,
            MsgBody::Open(ask) => self.handle_open(ask, cx).await,
            MsgBody::Item(item) => self.handle_item(item, cx).await,
            MsgBody::Flow(notified) => self.handle_flow(notified, cx).await,
            MsgBody::Health(ask) => {
                self.at_risk.lost = 1;
                let health = self.incarnation.health().await;
                ask.reply.send(health.clone().flatten());
                self.finish_call(health)
            }
            MsgBody::Upgrade(ask) => {
                self.at_risk.lost = 1;
                let upgraded = self.upgrade(ask.request).await;
                ask.reply.send(upgraded.clone().flatten());
                self.finish_call(upgraded)
            }
        }
    }

    /// Handles a message whose sender expects no reply.
    async fn deliver(
        &mut self,
        kind: MessageKind,
        token: u64,
        payload: Payload,
        cx: &Context<Self>,
    ) -> Result<(), Fault> {
        let most = self.incarnation.image().manifest().run.batch;
        if most == 1 {
            self.record_at_risk(kind, &payload);
            let answered = self.incarnation.handle(kind, token, payload).await?;
            return self.record_and_save(1, answered.err()).await;
        }
        if !self.push_to_batch(kind, token, payload, cx) {
            return Ok(());
        }
        self.flush().await
    }

    /// Adds a message to the batch. Returns `true` if the batch is to be delivered now; otherwise
    /// the next message in the mailbox completes it.
    fn push_to_batch(
        &mut self,
        kind: MessageKind,
        token: u64,
        payload: Payload,
        cx: &Context<Self>,
    ) -> bool {
        let most = self.incarnation.image().manifest().run.batch;
        self.batch.push(Envelope {
            kind,
            token,
            payload,
        });
        self.batch.len() >= most || !cx.has_messages()
    }

    /// Delivers the batch.
    async fn flush(&mut self) -> Result<(), Fault> {
        let Some((batch, count)) = self.take_batch() else {
            return Ok(());
        };
        let answered = self.incarnation.batch(batch).await?;
        self.record_and_save(count, answered.err()).await
    }

    /// Delivers the batch synchronously, for a component that never waits and keeps no state.
    fn flush_now(&mut self) -> Result<(), Fault> {
        let Some((batch, count)) = self.take_batch() else {
            return Ok(());
        };
        let answered = self.incarnation.batch_now(batch)?;
        self.record_handled(count, answered.err());
        Ok(())
    }

    /// Takes the batch and the number of its messages, and records these messages in `at_risk`.
    fn take_batch(&mut self) -> Option<(Vec<Envelope>, u32)> {
        if self.batch.is_empty() {
            return None;
        }
        // The next batch is likely to be of the same length.
        let room = Vec::with_capacity(self.batch.len());
        let batch = mem::replace(&mut self.batch, room);
        for envelope in &batch {
            self.record_at_risk(envelope.kind, &envelope.payload);
        }
        let count = u32::try_from(batch.len()).unwrap_or(u32::MAX);
        Some((batch, count))
    }

    /// Records a message that a fault in the next call would affect. Events, answers and timers
    /// belong to this incarnation, so only a message can be handled again by the next one.
    fn record_at_risk(&mut self, kind: MessageKind, payload: &Payload) {
        if kind != MessageKind::Message || self.incarnation.image().manifest().restart.poison == 1 {
            self.at_risk.lost += 1;
            return;
        }
        let envelope = Envelope {
            kind,
            token: 0,
            payload: Arc::clone(payload),
        };
        self.at_risk.retryable.push(FailedDelivery {
            envelope,
            failures: 0,
        });
    }

    /// Clears `at_risk`, unless the call failed.
    fn finish_call(&mut self, called: Result<Result<(), Fault>, Fault>) -> Result<(), Fault> {
        called.map(|_| self.at_risk.clear())
    }

    /// Counts handled messages, and logs a refusal.
    fn record_handled(&mut self, count: u32, refused: Option<String>) {
        self.at_risk.clear();
        self.shared.count_handled(count, refused.is_some());
        if let Some(text) = refused
            && tracing::enabled!(tracing::Level::DEBUG)
            && let Some(omitted) = self.shared.take_log_line()
        {
            let (component, text) = (self.shared.name(), printable(&text));
            tracing::debug!(%component, text, omitted, "component refused a message");
        }
    }

    /// Counts handled messages, and saves the state if it is due.
    async fn record_and_save(&mut self, count: u32, refused: Option<String>) -> Result<(), Fault> {
        self.record_handled(count, refused);
        let rule = &self.incarnation.image().manifest().state;
        if rule.mode == StateMode::None {
            return Ok(());
        }
        self.unsaved = self.unsaved.saturating_add(count);
        if self.unsaved < rule.interval {
            return Ok(());
        }
        self.save().await
    }

    async fn save(&mut self) -> Result<(), Fault> {
        let saved = self.incarnation.snapshot().await?;
        self.shared.save_state(saved)?;
        self.unsaved = 0;
        Ok(())
    }

    async fn handle_request(&mut self, ask: Ask<Call>) -> Result<(), Fault> {
        self.at_risk.lost = 1;
        let Ask { request, reply } = ask;
        let called = self
            .incarnation
            .handle(MessageKind::Request, 0, request.0)
            .await;
        let refused = send_reply(reply, called)?;
        self.record_and_save(1, refused).await
    }

    async fn handle_answer(
        &mut self,
        completion: Completion<Answer>,
        cx: &mut Context<Self>,
    ) -> Result<(), Fault> {
        let token = completion.token;
        let Some(timer) = self.incarnation.guest_mut().finish_in_flight(token) else {
            return Ok(());
        };
        if let Some(timer) = timer {
            cx.cancel(timer);
        }
        let failure = match completion.result {
            Ok(Ok(payload)) => return self.deliver(MessageKind::Answer, token, payload, cx).await,
            Ok(Err(error)) => error.to_string(),
            Err(unanswered) => unanswered.to_string(),
        };
        let payload = Payload::from(failure.into_bytes());
        self.deliver(MessageKind::Failure, token, payload, cx).await
    }

    async fn handle_timer(&mut self, due: TimerDue, cx: &Context<Self>) -> Result<(), Fault> {
        if self
            .incarnation
            .guest_mut()
            .finish_in_flight(due.token)
            .is_none()
        {
            return Ok(());
        }
        match due.payload {
            Some(payload) => {
                self.deliver(MessageKind::Timer, due.token, payload, cx)
                    .await
            }
            None => {
                let late = Payload::from(&b"no reply within the deadline"[..]);
                self.deliver(MessageKind::Failure, due.token, late, cx)
                    .await
            }
        }
    }

    async fn finish(&mut self) -> Result<(), Fault> {
        self.flush().await?;
        if self.incarnation.image().manifest().state.mode != StateMode::None {
            self.save().await?;
        }
        self.incarnation.stop().await
    }

    /// Sets the timers that the last call requested.
    fn set_timers(&mut self, cx: &mut Context<Self>) {
        let guest = self.incarnation.guest_mut();
        for (after, due) in guest.take_timers() {
            let token = due.token;
            let timer = cx.send_after(after, due);
            guest.set_timer_key(token, timer);
        }
        self.shared.set_memory(guest.memory.used());
        if !guest.streams.is_settled() {
            self.update_streams(cx);
        }
    }
}

/// Replies to the caller; returns the text of a refusal.
fn send_reply(
    reply: Reply<Answer>,
    called: Result<HandleResult, Fault>,
) -> Result<Option<String>, Fault> {
    match called {
        Ok(answered) => {
            let refused = answered.as_ref().err().cloned();
            reply.send(to_answer(answered));
            Ok(refused)
        }
        // The caller of a killed component sees the request dropped, on whatever thread the call
        // ran.
        Err(fault) if fault.kind == FaultKind::Killed => Err(fault),
        Err(fault) => {
            reply.send(Err(CallError::Fault(fault.clone())));
            Err(fault)
        }
    }
}

fn to_answer(answered: HandleResult) -> Answer {
    match answered {
        Ok(bytes) => Ok(Payload::from(bytes)),
        Err(text) => Err(CallError::Refused(printable(&text))),
    }
}

/// The fault of a component that kept exceeding its share of a processor.
const fn over_share_fault() -> Fault {
    Fault {
        phase: CallPhase::Handle,
        kind: FaultKind::Budget { limit: "cpu" },
    }
}

/// The fault of a component that reported an error itself.
fn refusal_fault(phase: CallPhase, text: &str) -> Fault {
    Fault {
        phase,
        kind: FaultKind::Refused {
            text: printable(text),
        },
    }
}
