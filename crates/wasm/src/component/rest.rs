//! Passivation: a component without work keeps its state and nothing else.
//!
//! A look is taken when it may have been idle for long enough; if it worked meanwhile, the next
//! look is taken when it may have been so since. What wakes it is what it would have handled:
//! looks and questions about its health do not.

use std::time::Duration;

use strowger::Context;
use tokio::time::Instant;

use super::ComponentActor;
use super::left::Stake;
use super::life::Life;
use crate::contract::Reason;
use crate::fault::Fault;
use crate::message::{Idle, Inside};

/// When a component worked, and whether somebody will look.
#[derive(Debug)]
pub(super) struct Rest {
    worked: Instant,
    watched: bool,
}

impl Rest {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            worked: now,
            watched: false,
        }
    }
}

impl ComponentActor {
    fn passivates(&self) -> Option<Duration> {
        self.life.image().manifest().state.passivate
    }

    /// Notes that it had work; sees to it that somebody looks, if its manifest says that it may
    /// sleep.
    pub(super) fn worked(&mut self, cx: &mut Context<Self>) {
        let Some(after) = self.passivates() else {
            return;
        };
        self.rest.worked = cx.now();
        if !self.rest.watched {
            cx.send_after(after, Idle);
            self.rest.watched = true;
        }
    }

    /// Takes a look.
    pub(super) async fn idle(&mut self, cx: &mut Context<Self>) -> Result<(), Fault> {
        self.rest.watched = false;
        let Some(after) = self.passivates() else {
            return Ok(());
        };
        let since = cx.now().saturating_duration_since(self.rest.worked);
        let left = after.saturating_sub(since);
        if left.is_zero() && cx.depth() == 0 && self.life.guest().is_idle() {
            self.flush().await?;
            self.save().await?;
            self.life.sleep();
            self.seat.slept();
            return Ok(());
        }
        let left = if left.is_zero() { after } else { left };
        cx.send_after(left, Idle);
        self.rest.watched = true;
        Ok(())
    }

    /// Wakes the component if it sleeps and has to handle what waits; whether that is to be
    /// handled.
    pub(super) async fn is_awake_for(
        &mut self,
        waiting: &mut Option<Inside>,
        cx: &mut Context<Self>,
    ) -> Result<bool, Fault> {
        if self.life.is_awake() {
            return Ok(true);
        }
        match waiting.take() {
            None
            | Some(
                Inside::Idle(_)
                | Inside::Rouse(_)
                | Inside::Timer(_)
                | Inside::Answer(_)
                | Inside::Item(_)
                | Inside::Flow(_),
            ) => Ok(false),
            Some(Inside::Event(tagged)) if !self.life.guest().subscribes(tagged.token) => Ok(false),
            Some(Inside::Health(ask)) => {
                ask.reply.send(Ok(()));
                Ok(false)
            }
            Some(message) => {
                let awoken = self.awaken(cx).await;
                if let Err(fault) = awoken {
                    let stake = Stake::default();
                    let lost = self.seat.ended(&fault, cx.now(), stake, vec![message]);
                    cx.set_at_stake(lost);
                    return Err(fault);
                }
                *waiting = Some(message);
                Ok(true)
            }
        }
    }

    async fn awaken(&mut self, cx: &mut Context<Self>) -> Result<(), Fault> {
        self.seat.take_room().await;
        let ties = self.life.guest().ties.clone();
        let (image, mut start, tokens) = self.seat.next_life();
        start.reason = Reason::Restart;
        let usage = self.seat.usage()?;
        let mut life = Life::begin(self.seat.host(), image, usage, ties, tokens).await?;
        life.guest_mut().inherit(self.life.guest_mut());
        life.init(start).await?;
        life.guest_mut().settle();
        self.life = life;
        self.set_timers(cx);
        self.worked(cx);
        Ok(())
    }
}
