//! A session: an actor that holds the rules that its peer provisioned.
//!
//! A request is applied to a copy of the rules. Only if it succeeds as a whole is the copy written
//! to the store together with the response; the session then adopts the copy and responds. A panic
//! on the way leaves the store unchanged, and the next incarnation starts from there.

mod allocator;
mod answer;
mod claim;
mod decide;
mod meter;

use std::borrow::Cow;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use strowger::{Accepts, Actor, Context, MailboxSpec, Overflow, Reply};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::session::{Refusal, RuleChange, RuleKind, RuleSet};
use strowger_pfcp::validate::tolerate;
use strowger_pfcp::{Frame, IeType, Index, MessageView, Rejection, Seid};

use crate::endpoint::OutgoingReport;
use crate::policy::PolicyRequestKind;
use crate::pool::AddressClaim;
use crate::rule_memory::{MemoryReservation, memory_of};
use crate::seeded_bug::{Bug, seeded};
use crate::shared::{Shared, add};
use crate::store::{self, PendingWrite, RequestKey, SessionRecord, StoredPeer, StoredResponse};
use crate::topics::SessionEventKind;

pub(crate) use answer::{claims, peer_seid, refusal_message, rule_ids};
pub(crate) use claim::{ClaimKind, report_address};
pub(crate) use meter::SharedMeter;

use meter::{MeterOrigin, SessionMeter};

/// The arguments that every incarnation of a session starts with.
#[derive(Clone, Debug)]
pub(crate) struct SessionArgs {
    pub(crate) seid: Seid,
    pub(crate) shared: Arc<Shared>,
}

/// A request of the peer.
#[derive(Debug)]
pub(crate) struct SessionRequest {
    pub(crate) procedure: Procedure,
    /// The complete message.
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) key: Option<RequestKey>,
    pub(crate) reply: Reply<SessionResponse>,
}

/// The procedure that the peer requests.
#[derive(Clone, Debug)]
pub(crate) enum Procedure {
    /// An establishment for this peer, which has the given number of sessions, including this one.
    Establish(Arc<StoredPeer>, usize),
    Modify,
    Delete,
}

/// The response to the peer.
#[derive(Debug)]
pub(crate) struct SessionResponse {
    /// The complete message.
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) outcome: RequestOutcome,
    /// Session reports that a deletion response announces and that follow it.
    pub(crate) more: Box<[OutgoingReport]>,
    /// The address that they are sent to.
    pub(crate) report_address: Option<SocketAddr>,
}

impl SessionResponse {
    fn new(bytes: Arc<[u8]>, outcome: RequestOutcome) -> Self {
        let more = Box::default();
        Self {
            bytes,
            outcome,
            more,
            report_address: None,
        }
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    Established,
    /// `renamed` is set if the peer has assigned a new F-SEID to the session.
    Modified {
        renamed: bool,
    },
    Deleted,
    Refused(Cause),
}

/// The messages that a session accepts.
#[derive(Debug)]
pub(crate) enum SessionMsg {
    // Boxed, so that the mailbox of an idle session is small.
    Request(Box<SessionRequest>),
    Panic(Box<InjectedPanic>),
    /// The timer of usage measurement has expired.
    Due,
    /// A report was answered, or was not answered in time.
    Reported(Box<ReportOutcome>),
}

/// The outcome of a session report: the complete response, if there was one.
#[derive(Debug)]
pub(crate) struct ReportOutcome(pub(crate) Option<Arc<[u8]>>);

/// A message that makes the handler panic with this text, to exercise supervision.
#[derive(Debug)]
pub(crate) struct InjectedPanic(pub(crate) String);

impl Accepts<SessionRequest> for SessionMsg {
    fn wrap(request: SessionRequest) -> Self {
        Self::Request(Box::new(request))
    }
}

impl Accepts<InjectedPanic> for SessionMsg {
    fn wrap(panic: InjectedPanic) -> Self {
        Self::Panic(Box::new(panic))
    }
}

impl Accepts<ReportOutcome> for SessionMsg {
    fn wrap(reported: ReportOutcome) -> Self {
        Self::Reported(Box::new(reported))
    }
}

/// The actor of a session.
#[derive(Debug)]
pub(crate) struct SessionActor {
    seid: Seid,
    shared: Arc<Shared>,
    /// `None` until the establishment is accepted.
    live: Option<Arc<SessionRecord>>,
    /// `None` while no rule requires measurement.
    metered: Option<Box<SessionMeter>>,
}

impl Actor for SessionActor {
    type Msg = SessionMsg;
    type Args = SessionArgs;
    type Error = Infallible;

    /// Further requests of a peer that does not wait for responses are refused with Cause 74.
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(16).overflow(Overflow::Fail);

    async fn pre_start(args: SessionArgs, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        let SessionArgs { seid, shared } = args;
        shared.wait_for_writes(seid).await;
        shared.writing.lock().remove(&seid);
        let mut live = shared.store.session(seid);
        if let Some(found) = &live {
            add(&shared.counters.restored);
            // A panic may have left claims of an unfinished request; the stored rules replace them.
            let _ = shared.pool.replace(seid, claims(found));
            // The endpoint may have ended the session in the meantime and released its addresses
            // before the claim above. Then they have to be released again.
            if shared.ended.lock().contains(&seid) || shared.store.session(seid).is_none() {
                live = None;
            }
        }
        if live.is_none() {
            shared.pool.release(seid);
        }
        let now = cx.now().into_std();
        let metered = Self::meter_for(&shared, seid, live.as_ref(), now, MeterOrigin::Resumed);
        let mut session = Self {
            seid,
            shared,
            live,
            metered,
        };
        session.process_reports(now, cx).await;
        Ok(session)
    }

    fn describe(message: &SessionMsg) -> Cow<'static, str> {
        match message {
            SessionMsg::Request(request) => {
                let procedure = match request.procedure {
                    Procedure::Establish(..) => "an establishment",
                    Procedure::Modify => "a modification",
                    Procedure::Delete => "a deletion",
                };
                format!("{procedure}, {} bytes", request.bytes.len()).into()
            }
            SessionMsg::Panic(_) => "a drill".into(),
            SessionMsg::Due => "a timer of the counting".into(),
            SessionMsg::Reported(_) => "the answer to a report".into(),
        }
    }

    async fn handle(
        &mut self,
        message: SessionMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        let now = cx.now().into_std();
        self.advance(now);
        match message {
            SessionMsg::Request(request) => self.handle_request(now, *request, cx).await,
            // Unlike `panic!`, this prints no message: the panic is intended.
            SessionMsg::Panic(panic) => std::panic::resume_unwind(Box::new(panic.0)),
            SessionMsg::Due => self.timer_ended(),
            SessionMsg::Reported(reported) => self.reported(now, reported.0.as_deref()),
        }
        self.process_reports(now, cx).await;
        Ok(())
    }
}

/// A session after a modification: its record, the elements for the answer, the change by the
/// policy, and the memory that is set aside.
type ChangedSession = (
    SessionRecord,
    Vec<u8>,
    Option<Vec<u8>>,
    Option<MemoryReservation>,
);

impl SessionActor {
    async fn handle_request(
        &mut self,
        now: Instant,
        request: SessionRequest,
        cx: &mut Context<Self>,
    ) {
        let SessionRequest {
            procedure,
            bytes,
            key,
            reply,
        } = request;
        let Ok(frame) = Frame::decode(&bytes) else {
            // The endpoint has already decoded this frame. If decoding fails after all, the request
            // is dropped without a response.
            return;
        };
        let response = match procedure {
            Procedure::Establish(owner, count) => {
                self.establish(now, &frame, key, (&owner, count)).await
            }
            Procedure::Modify => self.modify(now, &frame, key).await,
            Procedure::Delete => self.delete(now, &frame, key).await,
        };
        if self.live.is_none() {
            if !seeded(Bug::AddressesLeak) {
                self.shared.pool.release(self.seid);
            }
            cx.stop();
        }
        reply.send(response);
    }

    async fn establish(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
        key: Option<RequestKey>,
        owner: (&Arc<StoredPeer>, usize),
    ) -> SessionResponse {
        let peer_seid = peer_seid(frame);
        let committed = match self.accept(frame, owner, peer_seid, now).await {
            Ok((record, created, _reserved)) => {
                let bytes = answer::established(frame, &self.shared, &record, &created);
                self.commit(record, key, bytes.into()).await
            }
            Err(refusal) => Err(refusal),
        };
        match committed {
            Ok(bytes) => {
                self.commit_meter_change(now, None);
                add(&self.shared.counters.established);
                self.publish(SessionEventKind::Established);
                SessionResponse::new(bytes, RequestOutcome::Established)
            }
            Err(refusal) => self.refuse(frame, peer_seid, &refusal),
        }
    }

    /// Creates the session that a request asks for, without adopting it.
    async fn accept(
        &self,
        frame: &Frame<'_>,
        (owner, count): (&Arc<StoredPeer>, usize),
        peer_seid: Option<Seid>,
        now: Instant,
    ) -> Result<(SessionRecord, Vec<u8>, Option<MemoryReservation>), Refusal> {
        self.check_interface(frame, owner)?;
        check_peer_seid(peer_seid)?;
        let change = RuleSet::establish(frame, &mut self.allocator())?;
        let (rules, created) = self.count_deviations(change);
        let context = decide::DecisionContext {
            kind: PolicyRequestKind::Establish,
            owner,
            sessions: count,
            before: None,
        };
        let (rules, _) = self.decided(rules, context).await?;
        let reserved = self.reserve_memory(&rules, owner, None)?;
        let kept = self.claim_addresses(&rules, owner, now)?;
        let record = SessionRecord {
            seid: self.seid,
            peer_seid: peer_seid.unwrap_or_default(),
            owner: Arc::clone(owner),
            rules,
            kept,
            moved: false,
        };
        self.check_report_host(&record, now);
        Ok((record, created, reserved))
    }

    async fn modify(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
        key: Option<RequestKey>,
    ) -> SessionResponse {
        let Some(live) = self.live.clone() else {
            return self.refuse(frame, None, &Refusal::new(Cause::SESSION_CONTEXT_NOT_FOUND));
        };
        let mut metered = None;
        let committed = match self.change(frame, &live, now).await {
            Ok((record, mut created, by_policy, _reserved)) => {
                let by_policy = by_policy.as_deref().and_then(|by| Frame::decode(by).ok());
                let requests: Vec<&Frame<'_>> = [frame].into_iter().chain(&by_policy).collect();
                metered = self.plan_meter_change(now, &record.rules, &requests);
                if let Some((_, finals)) = &metered {
                    created.extend_from_slice(&finals.elements);
                }
                let bytes = answer::modified(frame, &record, &created);
                self.commit(record, key, bytes.into()).await
            }
            Err(refusal) => Err(refusal),
        };
        match committed {
            Ok(bytes) => {
                self.commit_meter_change(now, metered);
                // An address of the F-SEID is part of the name: a report on its way is sent again.
                let name = |record: &Arc<SessionRecord>| {
                    (record.peer_seid, report_address(record, &self.shared))
                };
                let renamed = self.live.as_ref().map(name) != Some(name(&live));
                if renamed {
                    self.on_peer_seid_changed(now);
                }
                add(&self.shared.counters.modified);
                self.publish(SessionEventKind::Modified);
                SessionResponse::new(bytes, RequestOutcome::Modified { renamed })
            }
            Err(refusal) => {
                // The session held these claims before the request, so no other session can hold
                // them now.
                let claims = claims(&live);
                let _ = self.shared.pool.replace(self.seid, claims);
                self.refuse(frame, Some(live.peer_seid), &refusal)
            }
        }
    }

    /// Creates the record that the session has after a modification, without adopting it.
    async fn change(
        &self,
        frame: &Frame<'_>,
        live: &SessionRecord,
        now: Instant,
    ) -> Result<ChangedSession, Refusal> {
        self.check_interface(frame, &live.owner)?;
        check_peer_seid(peer_seid(frame))?;
        let change = live.rules.modify(frame, &mut self.allocator())?;
        let (rules, created) = self.count_deviations(change);
        let context = decide::DecisionContext {
            kind: PolicyRequestKind::Modify,
            owner: &live.owner,
            sessions: 0,
            before: Some(&live.rules),
        };
        let (rules, by_policy) = self.decided(rules, context).await?;
        let reserved = self.reserve_memory(&rules, &live.owner, Some(&live.rules))?;
        let kept = self.claim_addresses(&rules, &live.owner, now)?;
        let record = SessionRecord {
            seid: self.seid,
            peer_seid: peer_seid(frame).unwrap_or(live.peer_seid),
            owner: Arc::clone(&live.owner),
            rules,
            kept,
            moved: live.moved && peer_seid(frame).is_none(),
        };
        if peer_seid(frame).is_some() {
            self.check_report_host(&record, now);
        }
        Ok((record, created, by_policy, reserved))
    }

    /// Checks that a request has the IEs that the configured interface of its peer requires.
    fn check_interface(&self, frame: &Frame<'_>, owner: &StoredPeer) -> Result<(), Refusal> {
        let peer = owner.address.ip();
        let mut interfaces = self.shared.config.peer.interfaces.iter();
        let Some(&(_, interface)) = interfaces.find(|(network, _)| network.contains(peer)) else {
            return Ok(());
        };
        let mut index = Index::new();
        let view = MessageView::of(frame, &mut index);
        let view = view.map_err(|error| match Rejection::of(&error, frame.bytes) {
            Some(rejection) => Refusal::from(rejection),
            None => Refusal::new(Cause::INVALID_LENGTH),
        })?;
        tolerate(&view, interface)?;
        Ok(())
    }

    /// Counts the tolerated deviations of a request.
    fn count_deviations(&self, change: RuleChange) -> (RuleSet, Vec<u8>) {
        for deviation in change.deviations {
            tracing::debug!(session = %self.seid, %deviation, "a deviation is tolerated");
            self.shared.counters.count_deviation(deviation);
        }
        (change.rules, change.created)
    }

    async fn delete(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
        key: Option<RequestKey>,
    ) -> SessionResponse {
        let Some(live) = self.live.clone() else {
            return self.refuse(frame, None, &Refusal::new(Cause::SESSION_CONTEXT_NOT_FOUND));
        };
        let finals = self.finals(now);
        let bytes: Arc<[u8]> = answer::deleted(frame, &live, &finals).into();
        let removal = store::StoreChange::Remove(self.seid);
        if let Err(refusal) = self.write(removal, key, &bytes).await {
            return self.refuse(frame, Some(live.peer_seid), &refusal);
        }
        self.live = None;
        let more = self.end_metering(&live, finals);
        add(&self.shared.counters.deleted);
        let kind = SessionEventKind::Deleted;
        self.shared.topics.session(kind, &live);
        SessionResponse {
            bytes,
            outcome: RequestOutcome::Deleted,
            more,
            report_address: Some(report_address(&live, &self.shared)),
        }
    }

    /// Publishes an event about the session.
    fn publish(&self, kind: SessionEventKind) {
        if let Some(live) = &self.live {
            self.shared.topics.session(kind, live);
        }
    }

    fn allocator(&self) -> allocator::PoolAllocator<'_> {
        allocator::PoolAllocator {
            shared: &self.shared,
            seid: self.seid,
        }
    }

    /// Checks the size of the rules, and sets memory aside if they take more than those `before`.
    fn reserve_memory(
        &self,
        rules: &RuleSet,
        owner: &StoredPeer,
        before: Option<&RuleSet>,
    ) -> Result<Option<MemoryReservation>, Refusal> {
        let limits = &self.shared.config.limits;
        let full = || Refusal::new(Cause::NO_RESOURCES_AVAILABLE);
        if rules.bytes().len() > limits.session_bytes
            || rules.rules(RuleKind::Urr).count() > limits.urrs
        {
            return Err(full());
        }
        let more = memory_of(rules).saturating_sub(before.map_or(0, memory_of));
        // A change that needs no more is possible at the limit too.
        if more == 0 {
            return Ok(None);
        }
        let reserved = self.shared.reserve_rule_memory(owner.address.ip(), more);
        reserved.map(Some).ok_or_else(full)
    }

    /// Claims the addresses of the rules. Returns the addresses that the session keeps besides.
    fn claim_addresses(
        &self,
        rules: &RuleSet,
        owner: &StoredPeer,
        now: Instant,
    ) -> Result<Box<[AddressClaim]>, Refusal> {
        // Only a UP function with the feature IP6PL accepts prefix lengths, TS 29.244 §8.2.25.
        if !self.shared.config.offers("ip6pl") {
            let rule = rules.rule_of_ue(|ue| ue.ipv6_prefix_length.is_some());
            if let Some(rule) = rule {
                let refusal = Refusal::new(Cause::SERVICE_NOT_SUPPORTED);
                return Err(refusal.at(IeType::UE_IP_ADDRESS).rule(rule));
            }
        }
        let pool = &self.shared.pool;
        let mut claims = answer::claims_of_rules(rules);
        let kept = answer::kept(pool.pool_addresses(self.seid), &claims, rules);
        claims.extend(&kept);
        match pool.replace(self.seid, claims) {
            Ok(()) => Ok(kept),
            Err(taken) => Err(self.refuse_claim(rules, taken, owner, now)),
        }
    }

    /// Writes the session and the response, then adopts the session.
    async fn commit(
        &mut self,
        record: SessionRecord,
        key: Option<RequestKey>,
        answer: Arc<[u8]>,
    ) -> Result<Arc<[u8]>, Refusal> {
        let record = Arc::new(record);
        let put = store::StoreChange::Put(Arc::clone(&record));
        if seeded(Bug::RefusedStays) {
            self.live = Some(Arc::clone(&record));
        }
        self.write(put, key, &answer).await?;
        self.live = Some(record);
        Ok(answer)
    }

    /// Writes a change and its response, and waits until both are as durable as the store promises.
    async fn write(
        &self,
        change: store::StoreChange,
        key: Option<RequestKey>,
        answer: &Arc<[u8]>,
    ) -> Result<(), Refusal> {
        let key = key.filter(|_| !seeded(Bug::AnswerNotWritten));
        let answer =
            key.map(|key| store::StoreChange::Answer(StoredResponse::new(key, Arc::clone(answer))));
        let changes = [Some(change), answer].into_iter().flatten().collect();
        let pending = self.shared.store.write(changes);
        if seeded(Bug::AnsweredBeforeWritten) {
            drop(pending);
            return Ok(());
        }
        let written = match pending {
            PendingWrite::Done(outcome) => outcome,
            PendingWrite::Waiting(_) => {
                self.shared.writing.lock().insert(self.seid);
                let outcome = pending.outcome().await;
                self.shared.writing.lock().remove(&self.seid);
                outcome
            }
        };
        written.map_err(|refused| Refusal::new(refused.cause()))
    }

    fn refuse(
        &self,
        frame: &Frame<'_>,
        peer_seid: Option<Seid>,
        refusal: &Refusal,
    ) -> SessionResponse {
        let outcome = RequestOutcome::Refused(refusal.cause);
        self.shared.counters.refused(refusal.cause);
        let bytes = refusal_message(frame, &self.shared, peer_seid, refusal);
        SessionResponse::new(bytes.into(), outcome)
    }
}

/// Refuses a CP F-SEID with SEID 0: in a header it stands for a SEID that the sender does not know,
/// TS 29.244 §7.2.2.4.2, so no request of ours could name the session.
fn check_peer_seid(peer_seid: Option<Seid>) -> Result<(), Refusal> {
    match peer_seid {
        Some(Seid(0)) => Err(Refusal::new(Cause::MANDATORY_IE_INCORRECT).at(IeType::F_SEID)),
        _ => Ok(()),
    }
}
