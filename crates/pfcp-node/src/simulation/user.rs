//! Those who want sessions, and note what they were told.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateFar, CreatePdr, CreateUrr, FTeid, FarId, MeasurementInformation,
    MeasurementMethod, Pdi, PdrId, RemovePdr, ReportingTriggers, SourceInterface, UeIpAddress,
    UrrId,
};
use strowger_pfcp::message::SessionModificationRequest;

use super::belief::{Beliefs, FARS, Mark, State};
use super::dice::Dice;
use super::world::{UPF, World};
use crate::{Association, ClientError, Rules, Session};

impl World {
    /// Sets up sessions, changes them and deletes most of them.
    pub(super) async fn user(self: Arc<Self>, mut dice: Dice) {
        while !self.over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(20) + dice.millis(400)).await;
            let (association, life) = {
                let smf = self.smf.lock();
                (smf.association.clone(), smf.life)
            };
            let Some(association) = association else {
                continue;
            };
            let mark = Mark(self.marks.fetch_add(1, Ordering::Relaxed));
            let Some(session) = self.establish(&association, mark, life, &mut dice).await else {
                continue;
            };
            for number in 10..10 + u32::try_from(dice.below(4)).unwrap_or(0) {
                tokio::time::sleep(dice.millis(700)).await;
                self.modify(&session, mark, life, number, &mut dice).await;
            }
            if dice.percent(60) {
                self.delete(session, mark, life).await;
            }
        }
    }

    async fn establish(
        &self,
        association: &Association,
        mark: Mark,
        life: u32,
        dice: &mut Dice,
    ) -> Option<Session> {
        let losses = self.losses.load(Ordering::Relaxed);
        let upsets = {
            let mut beliefs = self.beliefs.lock();
            beliefs.begin(mark);
            beliefs.upsets
        };
        let outcome = association.establish(rules(mark, dice)).await;
        self.wire.note(|| match &outcome {
            Ok(session) => format!("{mark:?} is session {}", session.remote_seid()),
            Err(error) => format!("{mark:?} is not established: {error}"),
        });
        let certain = self.is_certain(life, losses);
        match outcome {
            Ok(session) => {
                if certain {
                    self.beliefs.lock().change(mark, |belief| {
                        belief.state = State::Up;
                        belief.remote = session.remote_seid();
                        belief.certain = [far(mark, 1), far(mark, 2)].into();
                    });
                }
                Some(session)
            }
            Err(error) => {
                self.failed(&error);
                match error.cause() {
                    None => {}
                    Some(Cause::NO_ESTABLISHED_ASSOCIATION) => self.smf.lock().association = None,
                    Some(cause) if may_refuse(cause) || self.forgetful => {}
                    Some(cause) => self.wire.wrong(format!("{mark:?} is refused: {cause}")),
                }
                if certain && error.cause().is_some() {
                    self.beliefs.lock().refused(mark, upsets);
                }
                None
            }
        }
    }

    async fn modify(&self, session: &Session, mark: Mark, life: u32, number: u32, dice: &mut Dice) {
        let fresh = far(mark, number);
        let mut sound = true;
        let mut request = SessionModificationRequest::new()
            .create_fars([CreateFar::new(FarId(fresh), ApplyAction::DROP)]);
        let pdr = |to| {
            let id = PdrId(u16::try_from(number).unwrap_or(99));
            let pdi = Pdi::new(SourceInterface::ACCESS).local_f_teid(FTeid::choose_ipv4());
            CreatePdr::new(id, pdi).precedence(9).far_id(FarId(to))
        };
        match dice.below(4) {
            0 => {
                sound = false;
                request = request.remove_pdrs([RemovePdr::new(PdrId(7777))]);
            }
            1 => request = request.create_pdrs([pdr(fresh)]),
            2 => {
                sound = false;
                request = request.create_pdrs([pdr(4_000_000_000)]);
            }
            _ => {}
        }
        if sound {
            self.beliefs.lock().change(mark, |belief| {
                belief.maybe.insert(fresh);
            });
        }
        let losses = self.losses.load(Ordering::Relaxed);
        let upsets = self.beliefs.lock().upsets;
        let outcome = session.modify(request).await;
        self.wire.note(|| match &outcome {
            Ok(_) => format!("{mark:?} has FAR {fresh}"),
            Err(error) => format!("{mark:?} does not have FAR {fresh}: {error}"),
        });
        let certain = self.is_certain(life, losses);
        match outcome {
            Ok(_) if !sound => {
                let text = format!("{mark:?} accepted FAR {fresh}, which is not sound");
                self.wire.wrong(text);
            }
            Ok(_) if certain => self.beliefs.lock().change(mark, |belief| {
                belief.certain.insert(fresh);
            }),
            Ok(_) => {}
            Err(error) => {
                self.failed(&error);
                let up = |beliefs: &Beliefs| {
                    let belief = beliefs.all.get(&mark);
                    belief.is_some_and(|belief| belief.state == State::Up)
                };
                let known = certain && up(&self.beliefs.lock()) && !self.forgetful;
                match error.cause() {
                    Some(cause) if sound && known && !may_refuse(cause) => {
                        self.wire
                            .wrong(format!("{mark:?} refuses FAR {fresh}: {cause}"));
                    }
                    Some(_) if certain => self.beliefs.lock().refused_far(mark, fresh, upsets),
                    _ => {}
                }
            }
        }
    }

    async fn delete(&self, session: Session, mark: Mark, life: u32) {
        let was = {
            let mut beliefs = self.beliefs.lock();
            let was = beliefs.all.get(&mark).map(|belief| belief.state);
            beliefs.change(mark, |belief| belief.state = State::Unsure);
            was
        };
        let losses = self.losses.load(Ordering::Relaxed);
        let outcome = session.delete().await;
        self.wire.note(|| match &outcome {
            Ok(_) => format!("{mark:?} is deleted"),
            Err(error) => format!("{mark:?} is not deleted: {error}"),
        });
        let certain = self.is_certain(life, losses);
        let Err(error) = outcome else {
            if certain && was == Some(State::Up) {
                self.beliefs
                    .lock()
                    .change(mark, |belief| belief.state = State::Gone);
            }
            return;
        };
        self.failed(&error);
        let lost = error.cause() == Some(Cause::SESSION_CONTEXT_NOT_FOUND);
        if lost && certain && was == Some(State::Up) && !self.forgetful {
            self.wire
                .wrong(format!("{mark:?} was accepted and is not found"));
        }
    }

    /// Whether an outcome says what holds from here on: nothing was lost since it was asked for,
    /// nor before without the SMF having heard of it.
    fn is_certain(&self, life: u32, losses: u32) -> bool {
        let now = self.smf.lock().life;
        let lost = losses != self.losses.load(Ordering::Relaxed);
        now == life && !lost && !self.unheard.load(Ordering::Relaxed)
    }

    fn failed(&self, error: &ClientError) {
        self.wire.count(|faults| match error.cause() {
            Some(_) => faults.refused += 1,
            None => faults.unanswered += 1,
        });
    }
}

fn far(mark: Mark, number: u32) -> u32 {
    mark.0 * FARS + number
}

fn rules(mark: Mark, dice: &mut Dice) -> Rules {
    let ue = IpAddr::V4(Ipv4Addr::from_bits(0x0a64_0000 + mark.0));
    let tunnel = match dice.percent(50) {
        true => FTeid::choose_ipv4(),
        false => FTeid::new(0x5000_0000 + mark.0, UPF.ip()),
    };
    let uplink = Pdi::new(SourceInterface::ACCESS)
        .local_f_teid(tunnel)
        .ue_ip_addresses([UeIpAddress::source(ue)]);
    let downlink = Pdi::new(SourceInterface::CORE).ue_ip_addresses([UeIpAddress::destination(ue)]);
    let pdr = |id: u16, pdi| {
        let to = FarId(far(mark, id.into()));
        CreatePdr::new(PdrId(id), pdi).precedence(255).far_id(to)
    };
    let drop = |number| CreateFar::new(FarId(far(mark, number)), ApplyAction::DROP);
    let rules = Rules::new().far(drop(1)).far(drop(2));
    if !dice.percent(40) {
        return rules.pdr(pdr(1, uplink)).pdr(pdr(2, downlink));
    }
    // Time is measured from the start, and reported every second.
    let urr = CreateUrr::new(1, MeasurementMethod::DURAT, ReportingTriggers::PERIO)
        .measurement_period(1)
        .measurement_information(MeasurementInformation::ISTM);
    let counted = |pdr: CreatePdr| pdr.urr_ids([UrrId(1)]);
    rules
        .pdr(counted(pdr(1, uplink)))
        .pdr(counted(pdr(2, downlink)))
        .urr(urr)
}

/// What a node in trouble may say to a sound request.
fn may_refuse(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::NO_RESOURCES_AVAILABLE | Cause::CONGESTION | Cause::SYSTEM_FAILURE
    )
}
