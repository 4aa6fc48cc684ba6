//! A session: an actor that holds the rules a peer gave it.
//!
//! A request is worked on a copy of the rules; only when all of it holds is the copy written to the
//! store, together with the answer, then taken over, and the request answered. A panic on the way
//! leaves the store as it was, and the next incarnation starts from there.

mod answer;
mod choose;
mod decide;
mod meter;

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use strowger::{Accepts, Actor, Context, MailboxSpec, Overflow, Reply};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::session::{Change, Refusal, RuleSet};
use strowger_pfcp::transaction::AnswerKey;
use strowger_pfcp::validate::tolerate;
use strowger_pfcp::{Frame, IeType, Index, MessageView, Rejection, Seid};

use crate::bulletin::SessionEventKind;
use crate::endpoint::Outgoing;
use crate::planted::{Bug, planted};
use crate::policy::QuestionKind;
use crate::pool::Claim;
use crate::shared::{Shared, add};
use crate::store::{self, Answer, Owner, SessionRecord, Ticket};

pub(crate) use answer::{claims, peer_seid, refusal_message, rule_ids};
pub(crate) use meter::Kept;

use meter::{Metered, Resumed};

/// What every incarnation of a session is made from.
#[derive(Clone, Debug)]
pub(crate) struct SessionArgs {
    pub(crate) seid: Seid,
    pub(crate) shared: Arc<Shared>,
}

/// A request of the peer.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) task: Task,
    /// The whole message.
    pub(crate) octets: Arc<[u8]>,
    /// By what it is known when it is repeated.
    pub(crate) key: Option<AnswerKey>,
    pub(crate) reply: Reply<Done>,
}

/// What the peer asks for.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// For this peer, which has so many sessions, this one included.
    Establish(Arc<Owner>, usize),
    Modify,
    Delete,
}

/// The answer to the peer.
#[derive(Debug)]
pub(crate) struct Done {
    /// The whole message.
    pub(crate) octets: Arc<[u8]>,
    pub(crate) outcome: Outcome,
    /// Session reports that the answer to a deletion announces, and that follow it.
    pub(crate) more: Box<[Outgoing]>,
}

impl Done {
    fn new(octets: Arc<[u8]>, outcome: Outcome) -> Self {
        let more = Box::default();
        Self {
            octets,
            outcome,
            more,
        }
    }
}

/// What became of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Established,
    /// `renamed` says that the peer calls it otherwise from now on.
    Modified {
        renamed: bool,
    },
    Deleted,
    Refused(Cause),
}

/// What a session takes.
#[derive(Debug)]
pub(crate) enum SessionMsg {
    // Boxes, so that the mailbox of an idle session is small.
    Work(Box<Work>),
    Drill(Box<Drill>),
    /// The time has come that the counting asked for.
    Due,
    /// A report was answered, or not.
    Reported(Box<Reported>),
}

/// The outcome of a session report: the whole answer, if there was one.
#[derive(Debug)]
pub(crate) struct Reported(pub(crate) Option<Arc<[u8]>>);

/// Makes the handler panic with these words: a drill of supervision.
#[derive(Debug)]
pub(crate) struct Drill(pub(crate) String);

impl Accepts<Work> for SessionMsg {
    fn wrap(work: Work) -> Self {
        Self::Work(Box::new(work))
    }
}

impl Accepts<Drill> for SessionMsg {
    fn wrap(drill: Drill) -> Self {
        Self::Drill(Box::new(drill))
    }
}

impl Accepts<Reported> for SessionMsg {
    fn wrap(reported: Reported) -> Self {
        Self::Reported(Box::new(reported))
    }
}

/// The actor.
#[derive(Debug)]
pub(crate) struct Session {
    seid: Seid,
    shared: Arc<Shared>,
    /// Absent until the establishment was accepted.
    live: Option<Arc<SessionRecord>>,
    /// Absent as long as nothing is to be counted.
    metered: Option<Box<Metered>>,
}

impl Actor for Session {
    type Msg = SessionMsg;
    type Args = SessionArgs;
    type Error = Infallible;

    /// A peer that does not wait for answers gets Cause 74 beyond this.
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(16).overflow(Overflow::Fail);

    async fn pre_start(args: SessionArgs, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        let SessionArgs { seid, shared } = args;
        shared.settle(seid).await;
        shared.unsettled.lock().remove(&seid);
        let mut live = shared.store.session(seid);
        if let Some(found) = &live {
            add(&shared.counters.restored);
            // What a panic left half done is given back.
            let _ = shared.pool.replace(seid, claims(&found.rules));
            // It may have been ended meanwhile; then its addresses were given back before this.
            if shared.ended.lock().contains(&seid) || shared.store.session(seid).is_none() {
                live = None;
            }
        }
        if live.is_none() {
            shared.pool.release(seid);
        }
        let now = cx.now().into_std();
        let metered = Self::meter_for(&shared, seid, live.as_ref(), now, Resumed::Yes);
        let mut session = Self {
            seid,
            shared,
            live,
            metered,
        };
        session.settle(now, cx).await;
        Ok(session)
    }

    fn describe(message: &SessionMsg) -> Cow<'static, str> {
        match message {
            SessionMsg::Work(work) => {
                let task = match work.task {
                    Task::Establish(..) => "an establishment",
                    Task::Modify => "a modification",
                    Task::Delete => "a deletion",
                };
                format!("{task}, {} octets", work.octets.len()).into()
            }
            SessionMsg::Drill(_) => "a drill".into(),
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
            SessionMsg::Work(work) => self.work(now, *work, cx).await,
            // Unlike panic!, this says nothing on the terminal: a drill is no news.
            SessionMsg::Drill(drill) => std::panic::resume_unwind(Box::new(drill.0)),
            SessionMsg::Due => self.timer_ended(),
            SessionMsg::Reported(reported) => self.reported(now, reported.0.as_deref()),
        }
        self.settle(now, cx).await;
        Ok(())
    }
}

impl Session {
    async fn work(&mut self, now: Instant, work: Work, cx: &mut Context<Self>) {
        let Work {
            task,
            octets,
            key,
            reply,
        } = work;
        let Ok(frame) = Frame::decode(&octets) else {
            // The endpoint cut the message out; if it is none after all, nobody is answered.
            return;
        };
        let done = match task {
            Task::Establish(owner, count) => {
                self.establish(now, &frame, key, (&owner, count)).await
            }
            Task::Modify => self.modify(now, &frame, key).await,
            Task::Delete => self.delete(now, &frame, key).await,
        };
        if self.live.is_none() {
            if !planted(Bug::AddressesLeak) {
                self.shared.pool.release(self.seid);
            }
            cx.stop();
        }
        reply.send(done);
    }

    async fn establish(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
        key: Option<AnswerKey>,
        owner: (&Arc<Owner>, usize),
    ) -> Done {
        let peer_seid = peer_seid(frame);
        let committed = match self.accept(frame, owner, peer_seid).await {
            Ok((record, created)) => {
                let octets = answer::established(frame, &self.shared, &record, &created);
                self.commit(record, key, octets.into()).await
            }
            Err(refusal) => Err(refusal),
        };
        match committed {
            Ok(octets) => {
                self.metered_commit(now, None);
                add(&self.shared.counters.established);
                self.tell(SessionEventKind::Established);
                Done::new(octets, Outcome::Established)
            }
            Err(refusal) => self.refuse(frame, peer_seid, &refusal),
        }
    }

    /// Makes the session that a request asks for, without keeping it.
    async fn accept(
        &self,
        frame: &Frame<'_>,
        (owner, count): (&Arc<Owner>, usize),
        peer_seid: Option<Seid>,
    ) -> Result<(SessionRecord, Vec<u8>), Refusal> {
        self.check_interface(frame, owner)?;
        let change = RuleSet::establish(frame, &mut self.choice())?;
        let (rules, created) = self.noted(change);
        let asked = decide::Asked {
            kind: QuestionKind::Establish,
            owner,
            sessions: count,
            before: None,
        };
        let (rules, _) = self.decided(rules, asked).await?;
        self.hold(&rules)?;
        let record = SessionRecord {
            seid: self.seid,
            peer_seid: peer_seid.unwrap_or_default(),
            owner: Arc::clone(owner),
            rules,
        };
        Ok((record, created))
    }

    async fn modify(&mut self, now: Instant, frame: &Frame<'_>, key: Option<AnswerKey>) -> Done {
        let Some(live) = self.live.clone() else {
            return self.refuse(frame, None, &Refusal::new(Cause::SESSION_CONTEXT_NOT_FOUND));
        };
        let mut metered = None;
        let committed = match self.change(frame, &live).await {
            Ok((record, mut created, by_policy)) => {
                let by_policy = by_policy.as_deref().and_then(|by| Frame::decode(by).ok());
                let requests: Vec<&Frame<'_>> = [frame].into_iter().chain(&by_policy).collect();
                metered = self.metered_change(now, &record.rules, &requests);
                if let Some((_, finals)) = &metered {
                    created.extend_from_slice(&finals.elements);
                }
                let octets = answer::modified(frame, &record, &created);
                self.commit(record, key, octets.into()).await
            }
            Err(refusal) => Err(refusal),
        };
        match committed {
            Ok(octets) => {
                self.metered_commit(now, metered);
                let new = self.live.as_ref().map(|record| record.peer_seid);
                let renamed = new != Some(live.peer_seid);
                if renamed {
                    self.metered_renamed(now);
                }
                add(&self.shared.counters.modified);
                self.tell(SessionEventKind::Modified);
                Done::new(octets, Outcome::Modified { renamed })
            }
            Err(refusal) => {
                // The session held these before, so nobody else can hold them now.
                let claims = claims(&live.rules);
                let _ = self.shared.pool.replace(self.seid, claims);
                self.refuse(frame, Some(live.peer_seid), &refusal)
            }
        }
    }

    /// Makes what the session would be after a modification.
    async fn change(
        &self,
        frame: &Frame<'_>,
        live: &SessionRecord,
    ) -> Result<(SessionRecord, Vec<u8>, Option<Vec<u8>>), Refusal> {
        self.check_interface(frame, &live.owner)?;
        let change = live.rules.modify(frame, &mut self.choice())?;
        let (rules, created) = self.noted(change);
        let asked = decide::Asked {
            kind: QuestionKind::Modify,
            owner: &live.owner,
            sessions: 0,
            before: Some(&live.rules),
        };
        let (rules, by_policy) = self.decided(rules, asked).await?;
        self.hold(&rules)?;
        let record = SessionRecord {
            seid: self.seid,
            peer_seid: peer_seid(frame).unwrap_or(live.peer_seid),
            owner: Arc::clone(&live.owner),
            rules,
        };
        Ok((record, created, by_policy))
    }

    /// Checks that a request has what the interface of its peer asks for, where that is known.
    fn check_interface(&self, frame: &Frame<'_>, owner: &Owner) -> Result<(), Refusal> {
        let peer = owner.address.ip();
        let mut interfaces = self.shared.config.peer.interfaces.iter();
        let Some(&(_, interface)) = interfaces.find(|(network, _)| network.contains(peer)) else {
            return Ok(());
        };
        let mut index = Index::new();
        let view = MessageView::of(frame, &mut index);
        let view = view.map_err(|error| match Rejection::of(&error, frame.octets) {
            Some(rejection) => Refusal::from(rejection),
            None => Refusal::new(Cause::INVALID_LENGTH),
        })?;
        tolerate(&view, interface)?;
        Ok(())
    }

    /// Counts what a request does though a clause forbids it.
    fn noted(&self, change: Change) -> (RuleSet, Vec<u8>) {
        for deviation in change.deviations {
            tracing::debug!(session = %self.seid, %deviation, "a deviation is tolerated");
            self.shared.counters.deviated(deviation);
        }
        (change.rules, change.created)
    }

    async fn delete(&mut self, now: Instant, frame: &Frame<'_>, key: Option<AnswerKey>) -> Done {
        let Some(live) = self.live.clone() else {
            return self.refuse(frame, None, &Refusal::new(Cause::SESSION_CONTEXT_NOT_FOUND));
        };
        let finals = self.finals(now);
        let octets: Arc<[u8]> = answer::deleted(frame, &live, &finals).into();
        let removal = store::Change::Remove(self.seid);
        if let Err(refusal) = self.write(removal, key, &octets).await {
            return self.refuse(frame, Some(live.peer_seid), &refusal);
        }
        self.live = None;
        let more = self.metered_end(&live, finals);
        add(&self.shared.counters.deleted);
        let kind = SessionEventKind::Deleted;
        self.shared.bulletin.session(kind, &live);
        Done {
            octets,
            outcome: Outcome::Deleted,
            more,
        }
    }

    /// Tells the tree what became of the session.
    fn tell(&self, kind: SessionEventKind) {
        if let Some(live) = &self.live {
            self.shared.bulletin.session(kind, live);
        }
    }

    fn choice(&self) -> choose::Choice<'_> {
        choose::Choice {
            shared: &self.shared,
            seid: self.seid,
        }
    }

    /// Claims the addresses of the rules, and keeps the rules within their limit.
    fn hold(&self, rules: &RuleSet) -> Result<(), Refusal> {
        if rules.octets().len() > self.shared.config.limits.session_octets {
            return Err(Refusal::new(Cause::NO_RESOURCES_AVAILABLE));
        }
        let claims = claims(rules);
        self.shared.pool.replace(self.seid, claims).map_err(|taken| {
            tracing::debug!(session = %self.seid, ?taken, "an address belongs to another session");
            let (rule, ie) = match taken.claim {
                Claim::Teid { teid, address } => (rules.rule_at(teid, address), IeType::F_TEID),
                Claim::Ue(address) => (rules.rule_of_ue(address), IeType::UE_IP_ADDRESS),
            };
            let refusal = Refusal::new(Cause::RULE_FAILURE).at(ie);
            rule.into_iter().fold(refusal, Refusal::rule)
        })
    }

    /// Writes the session and the answer, then takes the session over.
    async fn commit(
        &mut self,
        record: SessionRecord,
        key: Option<AnswerKey>,
        answer: Arc<[u8]>,
    ) -> Result<Arc<[u8]>, Refusal> {
        let record = Arc::new(record);
        let put = store::Change::Put(Arc::clone(&record));
        if planted(Bug::RefusedStays) {
            self.live = Some(Arc::clone(&record));
        }
        self.write(put, key, &answer).await?;
        self.live = Some(record);
        Ok(answer)
    }

    /// Writes a change and its answer, and waits until both are as durable as the store promises.
    async fn write(
        &self,
        change: store::Change,
        key: Option<AnswerKey>,
        answer: &Arc<[u8]>,
    ) -> Result<(), Refusal> {
        let key = key.filter(|_| !planted(Bug::AnswerNotWritten));
        let answer = key.map(|key| store::Change::Answer(Answer::new(key, Arc::clone(answer))));
        let changes = [Some(change), answer].into_iter().flatten().collect();
        let ticket = self.shared.store.write(changes);
        if planted(Bug::AnsweredBeforeWritten) {
            drop(ticket);
            return Ok(());
        }
        let written = match ticket {
            Ticket::Settled(outcome) => outcome,
            Ticket::Waiting(_) => {
                self.shared.unsettled.lock().insert(self.seid);
                let outcome = ticket.settled().await;
                self.shared.unsettled.lock().remove(&self.seid);
                outcome
            }
        };
        written.map_err(|refused| Refusal::new(refused.cause()))
    }

    fn refuse(&self, frame: &Frame<'_>, peer_seid: Option<Seid>, refusal: &Refusal) -> Done {
        let outcome = Outcome::Refused(refusal.cause);
        self.shared.counters.refused(refusal.cause);
        let octets = refusal_message(frame, &self.shared, peer_seid, refusal);
        Done::new(octets.into(), outcome)
    }
}
