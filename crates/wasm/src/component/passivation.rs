//! Passivation: an idle component keeps only its state.
//!
//! A timer checks the component when it may have been idle for long enough. If it has worked
//! meanwhile, the timer is set for the earliest time at which it may be idle for long enough. A
//! message that it has to handle activates the component; these checks and requests about its
//! health do not.

use std::time::Duration;

use strowger::Context;
use tokio::time::Instant;

use super::ComponentActor;
use super::backlog::AtRisk;
use super::incarnation::Incarnation;
use crate::contract::StartReason;
use crate::fault::Fault;
use crate::message::{CheckIdle, MsgBody};

/// The time at which a component last worked, and whether a check is scheduled.
#[derive(Debug)]
pub(super) struct IdleTracker {
    last_worked: Instant,
    check_scheduled: bool,
}

impl IdleTracker {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            last_worked: now,
            check_scheduled: false,
        }
    }
}

impl ComponentActor {
    fn passivate_after(&self) -> Option<Duration> {
        self.incarnation.image().manifest().state.passivate
    }

    /// Records that the component worked, and schedules a check if its manifest allows passivation.
    pub(super) fn record_work(&mut self, cx: &mut Context<Self>) {
        let Some(after) = self.passivate_after() else {
            return;
        };
        self.idle.last_worked = cx.now();
        if !self.idle.check_scheduled {
            cx.send_after(after, CheckIdle);
            self.idle.check_scheduled = true;
        }
    }

    /// Checks whether the component has been idle for long enough, and passivates it if so.
    pub(super) async fn check_idle(&mut self, cx: &mut Context<Self>) -> Result<(), Fault> {
        self.idle.check_scheduled = false;
        let Some(after) = self.passivate_after() else {
            return Ok(());
        };
        let since = cx.now().saturating_duration_since(self.idle.last_worked);
        let left = after.saturating_sub(since);
        if left.is_zero() && cx.mailbox_len() == 0 && self.incarnation.guest().is_idle() {
            self.flush().await?;
            self.save().await?;
            self.incarnation.passivate();
            self.shared.release_capacity();
            return Ok(());
        }
        let left = if left.is_zero() { after } else { left };
        cx.send_after(left, CheckIdle);
        self.idle.check_scheduled = true;
        Ok(())
    }

    /// Activates the component if it is passivated and has to handle the message in `waiting`.
    /// Returns `true` if the message is to be handled.
    pub(super) async fn activate_for(
        &mut self,
        waiting: &mut Option<MsgBody>,
        cx: &mut Context<Self>,
    ) -> Result<bool, Fault> {
        if self.incarnation.is_active() {
            return Ok(true);
        }
        match waiting.take() {
            None
            | Some(
                MsgBody::CheckIdle(_)
                | MsgBody::DrainBacklog(_)
                | MsgBody::Timer(_)
                | MsgBody::Answer(_)
                | MsgBody::Item(_)
                | MsgBody::Flow(_),
            ) => Ok(false),
            Some(MsgBody::Event(tagged)) if !self.incarnation.guest().subscribes(tagged.token) => {
                Ok(false)
            }
            Some(MsgBody::Health(ask)) => {
                ask.reply.send(Ok(()));
                Ok(false)
            }
            Some(message) => {
                let awoken = self.activate(cx).await;
                if let Err(fault) = awoken {
                    let at_risk = AtRisk::default();
                    let lost = self
                        .shared
                        .record_end(&fault, cx.now(), at_risk, vec![message]);
                    cx.set_messages_at_risk(lost);
                    return Err(fault);
                }
                *waiting = Some(message);
                Ok(true)
            }
        }
    }

    async fn activate(&mut self, cx: &mut Context<Self>) -> Result<(), Fault> {
        self.shared.reserve_capacity().await;
        let env = self.incarnation.guest().env.clone();
        let (image, mut start, tokens) = self.shared.next_incarnation();
        start.reason = StartReason::Restart;
        let usage = self.shared.usage()?;
        let mut incarnation =
            Incarnation::begin(self.shared.host(), image, usage, env, tokens).await?;
        incarnation
            .guest_mut()
            .inherit_subscriptions(self.incarnation.guest_mut());
        incarnation.init(start).await?;
        incarnation.guest_mut().drop_inherited();
        self.incarnation = incarnation;
        self.set_timers(cx);
        self.record_work(cx);
        Ok(())
    }
}
