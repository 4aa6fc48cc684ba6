//! A component as an actor of the tree.

mod flow;
mod left;
mod life;
mod rest;
mod seat;

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use strowger::{Actor, Ask, Completion, Context, Exit, Reply};

pub(crate) use self::flow::{Item, Opening};
use self::left::{Left, Stake, Tried};
use self::life::{Kept, Life};
use self::rest::Rest;
use self::seat::Seat;
pub use self::seat::{ComponentArgs, ComponentInfo, Stage};
use crate::contract::{Answered, Envelope, Kind, Payload, Reason};
use crate::fault::{Fault, FaultKind, Phase, cut};
use crate::guest::Ties;
use crate::host::Permit;
use crate::load::Image;
use crate::manifest::StateMode;
use crate::message::{Answer, Call, CallError, ComponentMsg, Due, Inside, Message, Rouse};
use crate::usage::Admission;

/// An actor whose behaviour is a component.
///
/// Each incarnation has a Store of its own, which nobody else touches. A fault of any kind ends
/// the incarnation with [`Exit::Failed`] and a [`Fault`] in it; the supervisor decides what
/// follows. What waits stays in the mailbox, and what the component kept is given to the next
/// life.
#[derive(Debug)]
pub struct ComponentActor {
    life: Life,
    seat: Arc<Seat>,
    /// Messages handled since the last snapshot.
    unsaved: u32,
    /// What waits for a full batch.
    batch: Vec<Envelope>,
    /// What an end of this life in this moment ends over.
    stake: Stake,
    /// Whether lives before this one left something to handle.
    behind: bool,
    rest: Rest,
}

impl Actor for ComponentActor {
    type Msg = ComponentMsg;
    type Args = ComponentArgs;
    type Error = Fault;

    async fn pre_start(args: ComponentArgs, cx: &mut Context<Self>) -> Result<Self, Fault> {
        let seat = args.0;
        seat.stage(Stage::PreStart);
        let ties = Ties {
            path: cx.path(),
            system: cx.system(),
            me: cx.me(),
            lane: cx.lane(),
            directory: seat.directory().clone(),
        };
        seat.take_room().await;
        let (image, mut start, tokens) = seat.next_life();
        let now = cx.now();
        let failed = |fault: &Fault| {
            seat.ended(fault, now, Stake::default(), Vec::new());
        };
        if start.reason == Reason::Fresh
            && let Some(kept) = seat.recall().inspect_err(failed)?
        {
            (start.reason, start.kept) = (Reason::Restart, Some(kept));
        }
        let usage = seat.usage().inspect_err(failed)?;
        let mut life = Life::begin(seat.host(), image, usage, ties, tokens)
            .await
            .inspect_err(failed)?;
        life.init(start).await.inspect_err(failed)?;
        let behind = seat.is_behind();
        if behind {
            cx.send_after(Duration::ZERO, Rouse);
        }
        let mut actor = Self {
            life,
            seat,
            unsaved: 0,
            batch: Vec::new(),
            stake: Stake::default(),
            behind,
            rest: Rest::new(now),
        };
        actor.worked(cx);
        actor.set_timers(cx);
        actor.seat.stage(Stage::PostStart);
        Ok(actor)
    }

    async fn handle(&mut self, message: ComponentMsg, cx: &mut Context<Self>) -> Result<(), Fault> {
        let worked = message.0.is_work();
        let mut waiting = Some(message.0);
        let outcome = match self.at_once(&mut waiting, cx) {
            Some(outcome) => outcome,
            None => {
                if !self.is_awake_for(&mut waiting, cx).await? {
                    return Ok(());
                }
                let admitted = match worked {
                    true => self.admitted(cx).await,
                    false => Ok(()),
                };
                match admitted {
                    Ok(()) => self.turn(&mut waiting, cx).await,
                    Err(fault) => Err(fault),
                }
            }
        };
        match &outcome {
            Ok(()) => {
                self.set_timers(cx);
                if worked {
                    self.worked(cx);
                }
            }
            Err(fault) => {
                let stake = mem::take(&mut self.stake);
                let unbegun = mem::take(&mut self.batch).into_iter();
                let unbegun = unbegun.filter_map(|envelope| match envelope.kind {
                    Kind::Message => Some(Inside::Message(Message(envelope.payload))),
                    _ => None,
                });
                let unbegun = unbegun.chain(waiting).collect();
                cx.set_at_stake(self.seat.ended(fault, cx.now(), stake, unbegun));
            }
        }
        outcome
    }

    fn describe(message: &ComponentMsg) -> Cow<'static, str> {
        Cow::Borrowed(message.0.name())
    }

    async fn post_stop(mut self, exit: &Exit, _: &mut Context<Self>) {
        // After a fault the Store is not used again.
        if exit.is_orderly() {
            self.seat.stage(Stage::PreStop);
            if self.life.is_awake()
                && let Err(fault) = self.finish().await
            {
                self.seat.failed(&fault);
                tracing::warn!(component = %self.seat.name(), %fault, "failed while it stopped");
            }
        }
        self.seat.stage(Stage::PostStop);
    }
}

impl ComponentActor {
    /// Handles a message here and now, which most can be: of a component that never waits, if there
    /// is nothing before it and nothing to do after it. Otherwise it stays where it is.
    fn at_once(
        &mut self,
        waiting: &mut Option<Inside>,
        cx: &Context<Self>,
    ) -> Option<Result<(), Fault>> {
        let manifest = self.life.image().manifest();
        let more = self.behind || manifest.state.mode != StateMode::None;
        if more || !self.life.is_prompt() {
            return None;
        }
        match waiting.take() {
            Some(Inside::Message(Message(payload))) if manifest.run.batch > 1 => {
                let whole = self.is_whole_with(Kind::Message, 0, payload, cx);
                Some(if whole { self.flush_now() } else { Ok(()) })
            }
            Some(Inside::Message(Message(payload))) => {
                self.at_stake(Kind::Message, &payload);
                let called = self.life.handle_now(Kind::Message, 0, payload);
                Some(called.map(|answered| self.count(1, answered.err())))
            }
            Some(Inside::Call(Ask { request, reply })) if self.batch.is_empty() => {
                self.stake.lost = 1;
                let called = self.life.handle_now(Kind::Request, 0, request.0);
                Some(replied(reply, called).map(|refused| self.count(1, refused)))
            }
            other => {
                *waiting = other;
                None
            }
        }
    }

    /// Waits until it has its share of a processor again. One that is put into quarantine for
    /// having been beyond it ends with its supervisor, so that it is not started again.
    async fn admitted(&self, cx: &Context<Self>) -> Result<(), Fault> {
        match self.seat.admission() {
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
                Err(over_share())
            }
        }
    }

    /// Handles what was left, and then what came. What is still in `waiting` after a fault was not
    /// begun.
    async fn turn(
        &mut self,
        waiting: &mut Option<Inside>,
        cx: &mut Context<Self>,
    ) -> Result<(), Fault> {
        while self.behind {
            match self.seat.next_left() {
                None => self.behind = false,
                Some(Left::Tried(tried)) => self.again(tried).await?,
                Some(Left::Waiting(message)) => {
                    let mut message = Some(message);
                    let outcome = self.one(&mut message, cx).await;
                    if let (Err(_), Some(message)) = (&outcome, message) {
                        self.seat.put_back(Left::Waiting(message));
                    }
                    outcome?;
                }
            }
        }
        self.one(waiting, cx).await
    }

    async fn one(
        &mut self,
        waiting: &mut Option<Inside>,
        cx: &mut Context<Self>,
    ) -> Result<(), Fault> {
        // Who waits for an answer comes after what was told before.
        if waiting.as_ref().is_some_and(|message| !message.batches()) {
            self.flush().await?;
        }
        match waiting.take() {
            Some(message) => self.take(message, cx).await,
            None => Ok(()),
        }
    }

    /// Handles a message over which a life ended.
    async fn again(&mut self, tried: Tried) -> Result<(), Fault> {
        let payload = Arc::clone(&tried.envelope.payload);
        self.stake.again.push(tried);
        let answered = self.life.handle(Kind::Message, 0, payload).await?;
        self.handled(1, answered.err()).await
    }

    async fn take(&mut self, message: Inside, cx: &mut Context<Self>) -> Result<(), Fault> {
        match message {
            Inside::Idle(_) => self.idle(cx).await,
            Inside::Message(message) => self.told(Kind::Message, 0, message.0, cx).await,
            Inside::Event(tagged) if self.life.guest().subscribes(tagged.token) => {
                let payload = Arc::clone(&tagged.event.payload);
                self.told(Kind::Event, tagged.token, payload, cx).await
            }
            // Of a life before this one; or what was left has been handled by now.
            Inside::Event(_) | Inside::Rouse(_) => Ok(()),
            Inside::Timer(due) => self.due(due, cx).await,
            Inside::Answer(completion) => self.answered(completion, cx).await,
            Inside::Call(ask) => self.asked(ask).await,
            Inside::Open(ask) => self.opened(ask, cx).await,
            Inside::Item(item) => self.item(item, cx).await,
            Inside::Flow(news) => self.flowed(news, cx).await,
            Inside::Health(ask) => {
                self.stake.lost = 1;
                let health = self.life.health().await;
                ask.reply.send(health.clone().flatten());
                self.done(health)
            }
            Inside::Upgrade(ask) => {
                self.stake.lost = 1;
                let upgraded = self.upgrade(ask.request.0).await;
                ask.reply.send(upgraded.clone().flatten());
                self.done(upgraded)
            }
        }
    }

    /// A message to which nobody waits for an answer.
    async fn told(
        &mut self,
        kind: Kind,
        token: u64,
        payload: Payload,
        cx: &Context<Self>,
    ) -> Result<(), Fault> {
        let most = self.life.image().manifest().run.batch;
        if most == 1 {
            self.at_stake(kind, &payload);
            let answered = self.life.handle(kind, token, payload).await?;
            return self.handled(1, answered.err()).await;
        }
        if !self.is_whole_with(kind, token, payload, cx) {
            return Ok(());
        }
        self.flush().await
    }

    /// Puts a message in the batch; whether that is to be handed over: what waits brings the rest.
    fn is_whole_with(
        &mut self,
        kind: Kind,
        token: u64,
        payload: Payload,
        cx: &Context<Self>,
    ) -> bool {
        let most = self.life.image().manifest().run.batch;
        self.batch.push(Envelope {
            kind,
            token,
            payload,
        });
        self.batch.len() >= most || !cx.has_more()
    }

    /// Hands the batch over.
    async fn flush(&mut self) -> Result<(), Fault> {
        let Some((batch, count)) = self.take_batch() else {
            return Ok(());
        };
        let answered = self.life.batch(batch).await?;
        self.handled(count, answered.err()).await
    }

    /// The same of a component that never waits, and keeps no state.
    fn flush_now(&mut self) -> Result<(), Fault> {
        let Some((batch, count)) = self.take_batch() else {
            return Ok(());
        };
        let answered = self.life.batch_now(batch)?;
        self.count(count, answered.err());
        Ok(())
    }

    /// Takes the batch out, with the number of its messages, which are at stake from here on.
    fn take_batch(&mut self) -> Option<(Vec<Envelope>, u32)> {
        if self.batch.is_empty() {
            return None;
        }
        // The next one is most likely as long.
        let room = Vec::with_capacity(self.batch.len());
        let batch = mem::replace(&mut self.batch, room);
        for envelope in &batch {
            self.at_stake(envelope.kind, &envelope.payload);
        }
        let count = u32::try_from(batch.len()).unwrap_or(u32::MAX);
        Some((batch, count))
    }

    /// Notes what a fault in the next call ends over. Events, answers and timers are those of this
    /// life, so only a message can be handled by another one.
    fn at_stake(&mut self, kind: Kind, payload: &Payload) {
        if kind != Kind::Message || self.life.image().manifest().restart.poison == 1 {
            self.stake.lost += 1;
            return;
        }
        let envelope = Envelope {
            kind,
            token: 0,
            payload: Arc::clone(payload),
        };
        self.stake.again.push(Tried { envelope, kills: 0 });
    }

    /// Nothing is at stake any more, unless the call failed.
    fn done(&mut self, called: Result<Result<(), Fault>, Fault>) -> Result<(), Fault> {
        called.map(|_| self.stake.clear())
    }

    /// Notes what was handled.
    fn count(&mut self, count: u32, refused: Option<String>) {
        self.stake.clear();
        self.seat.handled(count, refused.is_some());
        if let Some(text) = refused {
            let (component, text) = (self.seat.name(), cut(&text));
            tracing::debug!(%component, text, "refused a message");
        }
    }

    /// Notes what was handled, and keeps the state if it is time.
    async fn handled(&mut self, count: u32, refused: Option<String>) -> Result<(), Fault> {
        self.count(count, refused);
        let rule = &self.life.image().manifest().state;
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
        let kept = self.life.snapshot().await?;
        self.seat.keep(kept)?;
        self.unsaved = 0;
        Ok(())
    }

    async fn asked(&mut self, ask: Ask<Call>) -> Result<(), Fault> {
        self.stake.lost = 1;
        let Ask { request, reply } = ask;
        let called = self.life.handle(Kind::Request, 0, request.0).await;
        let refused = replied(reply, called)?;
        self.handled(1, refused).await
    }

    async fn answered(
        &mut self,
        completion: Completion<Answer>,
        cx: &mut Context<Self>,
    ) -> Result<(), Fault> {
        let token = completion.token;
        let Some(timer) = self.life.guest_mut().landed(token) else {
            return Ok(());
        };
        if let Some(timer) = timer {
            cx.cancel(timer);
        }
        let failure = match completion.result {
            Ok(Ok(payload)) => return self.told(Kind::Answer, token, payload, cx).await,
            Ok(Err(error)) => error.to_string(),
            Err(unanswered) => unanswered.to_string(),
        };
        let payload = Payload::from(failure.into_bytes());
        self.told(Kind::Failure, token, payload, cx).await
    }

    async fn due(&mut self, due: Due, cx: &Context<Self>) -> Result<(), Fault> {
        if self.life.guest_mut().landed(due.token).is_none() {
            return Ok(());
        }
        match due.payload {
            Some(payload) => self.told(Kind::Timer, due.token, payload, cx).await,
            None => {
                let late = Payload::from(&b"no answer within the deadline"[..]);
                self.told(Kind::Failure, due.token, late, cx).await
            }
        }
    }

    /// Puts another version in the place of this one. On any error this one goes on, but for one
    /// of its own: that is the outer error.
    async fn upgrade(&mut self, image: Arc<Image>) -> Result<Result<(), Fault>, Fault> {
        let stateful = image.exports.is_stateful() && self.life.image().exports.is_stateful();
        let kept = if stateful {
            Some(self.life.snapshot().await?)
        } else {
            None
        };
        let next = self.next(&image, kept.clone()).await;
        let upgraded = next.map(|(mut life, permit)| {
            life.guest_mut().succeed(self.life.guest_mut());
            self.life = life;
            self.seat.upgraded(image, permit);
            self.unsaved = 0;
            kept
        });
        let upgraded = upgraded.map(|kept| self.hand_over(kept));
        if upgraded.is_err() {
            self.life.guest_mut().subscribe_again();
        }
        Ok(upgraded)
    }

    /// Keeps what the version before handed over: the new one has it, and may fail before it gives
    /// a state of its own.
    fn hand_over(&self, kept: Option<Kept>) {
        let Some(kept) = kept else {
            return self.seat.forget();
        };
        if let Err(fault) = self.seat.keep(kept) {
            tracing::warn!(component = self.seat.name(), %fault, "did not keep its state");
        }
    }

    /// A life of another version that is well, beside this one.
    async fn next(&self, image: &Arc<Image>, kept: Option<Kept>) -> Result<(Life, Permit), Fault> {
        let host = self.seat.host();
        let permit = host.admit(image.waits()).map_err(|full| Fault {
            phase: Phase::Instantiate,
            kind: FaultKind::Host {
                text: full.to_string(),
            },
        })?;
        let guest = self.life.guest();
        let (ties, tokens) = (guest.ties.clone(), guest.next_token());
        let usage = self.seat.usage()?;
        let mut life = Life::begin(host, Arc::clone(image), usage, ties, tokens).await?;
        life.init(self.seat.start(Reason::Upgrade, kept)).await?;
        life.health().await??;
        Ok((life, permit))
    }

    async fn finish(&mut self) -> Result<(), Fault> {
        self.flush().await?;
        if self.life.image().manifest().state.mode != StateMode::None {
            self.save().await?;
        }
        self.life.stop().await
    }

    /// Sets the timers that the last call asked for.
    fn set_timers(&mut self, cx: &mut Context<Self>) {
        let guest = self.life.guest_mut();
        for (after, due) in guest.take_timers() {
            let token = due.token;
            let timer = cx.send_after(after, due);
            guest.timed(token, timer);
        }
        self.seat.measured(guest.memory.used());
        if !guest.streams.is_quiet() {
            self.attend_streams(cx);
        }
    }
}

/// Answers who asked; the words of a refusal.
fn replied(reply: Reply<Answer>, called: Result<Answered, Fault>) -> Result<Option<String>, Fault> {
    match called {
        Ok(answered) => {
            let refused = answered.as_ref().err().cloned();
            reply.send(answer(answered));
            Ok(refused)
        }
        Err(fault) => {
            reply.send(Err(CallError::Fault(fault.clone())));
            Err(fault)
        }
    }
}

fn answer(answered: Answered) -> Answer {
    match answered {
        Ok(octets) => Ok(Payload::from(octets)),
        Err(text) => Err(CallError::Refused(cut(&text))),
    }
}

/// The fault of a component that stayed beyond its share of a processor.
const fn over_share() -> Fault {
    Fault {
        phase: Phase::Handle,
        kind: FaultKind::Budget { limit: "cpu" },
    }
}

/// A component's own word that it cannot go on.
fn refused(phase: Phase, text: &str) -> Fault {
    Fault {
        phase,
        kind: FaultKind::Refused { text: cut(text) },
    }
}
