//! Subscribers: simulated users that establish sessions and record the outcomes.

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

use super::driver::{Simulation, UPF};
use super::model::{FARS, ModelState, SessionMark, SessionModels};
use super::rng::SimulationRng;
use crate::{Association, ClientError, Session, SessionRules};

impl Simulation {
    /// Establishes sessions, modifies them, and deletes most of them.
    pub(super) async fn subscriber(self: Arc<Self>, mut rng: SimulationRng) {
        while !self.finished.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(20) + rng.millis(400)).await;
            let (association, incarnation) = {
                let smf = self.smf.lock();
                (smf.association.clone(), smf.incarnation)
            };
            let Some(association) = association else {
                continue;
            };
            let mark = SessionMark(self.marks.fetch_add(1, Ordering::Relaxed));
            let Some(session) = self
                .establish(&association, mark, incarnation, &mut rng)
                .await
            else {
                continue;
            };
            for number in 10..10 + u32::try_from(rng.below(4)).unwrap_or(0) {
                tokio::time::sleep(rng.millis(700)).await;
                self.modify(&session, mark, incarnation, number, &mut rng)
                    .await;
            }
            if rng.percent(60) {
                self.delete(session, mark, incarnation).await;
            }
        }
    }

    async fn establish(
        &self,
        association: &Association,
        mark: SessionMark,
        incarnation: u32,
        rng: &mut SimulationRng,
    ) -> Option<Session> {
        let losses = self.losses.load(Ordering::Relaxed);
        let refusals_forgotten = {
            let mut models = self.models.lock();
            models.begin(mark);
            models.refusals_forgotten
        };
        let outcome = association.establish(rules(mark, rng)).await;
        self.network.note(|| match &outcome {
            Ok(session) => format!("{mark:?} is session {}", session.remote_seid()),
            Err(error) => format!("{mark:?} is not established: {error}"),
        });
        let certain = self.is_certain(incarnation, losses);
        match outcome {
            Ok(session) => {
                if certain {
                    self.models.lock().update(mark, |model| {
                        model.state = ModelState::Up;
                        model.remote = session.remote_seid();
                        model.certain = [far(mark, 1), far(mark, 2)].into();
                    });
                }
                Some(session)
            }
            Err(error) => {
                self.failed(&error);
                match error.cause() {
                    None => {}
                    Some(Cause::NO_ESTABLISHED_ASSOCIATION) => self.smf.lock().association = None,
                    Some(cause) if may_refuse(cause) || self.forgets_responses => {}
                    Some(cause) => self
                        .network
                        .record_violation(format!("{mark:?} is refused: {cause}")),
                }
                if certain && error.cause().is_some() {
                    self.models.lock().refused(mark, refusals_forgotten);
                }
                None
            }
        }
    }

    async fn modify(
        &self,
        session: &Session,
        mark: SessionMark,
        incarnation: u32,
        number: u32,
        rng: &mut SimulationRng,
    ) {
        let fresh = far(mark, number);
        let mut sound = true;
        let mut request = SessionModificationRequest::new()
            .create_fars([CreateFar::new(FarId(fresh), ApplyAction::DROP)]);
        let pdr = |to| {
            let id = PdrId(u16::try_from(number).unwrap_or(99));
            let pdi = Pdi::new(SourceInterface::ACCESS).local_f_teid(FTeid::choose_ipv4());
            CreatePdr::new(id, pdi).precedence(9).far_id(FarId(to))
        };
        match rng.below(4) {
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
            self.models.lock().update(mark, |model| {
                model.maybe.insert(fresh);
            });
        }
        let losses = self.losses.load(Ordering::Relaxed);
        let refusals_forgotten = self.models.lock().refusals_forgotten;
        let outcome = session.modify(request).await;
        self.network.note(|| match &outcome {
            Ok(_) => format!("{mark:?} has FAR {fresh}"),
            Err(error) => format!("{mark:?} does not have FAR {fresh}: {error}"),
        });
        let certain = self.is_certain(incarnation, losses);
        match outcome {
            Ok(_) if !sound => {
                let text = format!("{mark:?} accepted FAR {fresh}, which is not sound");
                self.network.record_violation(text);
            }
            Ok(_) if certain => self.models.lock().update(mark, |model| {
                model.certain.insert(fresh);
            }),
            Ok(_) => {}
            Err(error) => {
                self.failed(&error);
                let up = |models: &SessionModels| {
                    let model = models.all.get(&mark);
                    model.is_some_and(|model| model.state == ModelState::Up)
                };
                let known = certain && up(&self.models.lock()) && !self.forgets_responses;
                match error.cause() {
                    Some(cause) if sound && known && !may_refuse(cause) => {
                        self.network
                            .record_violation(format!("{mark:?} refuses FAR {fresh}: {cause}"));
                    }
                    Some(_) if certain => {
                        self.models
                            .lock()
                            .refused_far(mark, fresh, refusals_forgotten)
                    }
                    _ => {}
                }
            }
        }
    }

    async fn delete(&self, session: Session, mark: SessionMark, incarnation: u32) {
        let was = {
            let mut models = self.models.lock();
            let was = models.all.get(&mark).map(|model| model.state);
            models.update(mark, |model| model.state = ModelState::Unsure);
            was
        };
        let losses = self.losses.load(Ordering::Relaxed);
        let outcome = session.delete().await;
        self.network.note(|| match &outcome {
            Ok(_) => format!("{mark:?} is deleted"),
            Err(error) => format!("{mark:?} is not deleted: {error}"),
        });
        let certain = self.is_certain(incarnation, losses);
        let Err(error) = outcome else {
            if certain && was == Some(ModelState::Up) {
                self.models
                    .lock()
                    .update(mark, |model| model.state = ModelState::Gone);
            }
            return;
        };
        self.failed(&error);
        let lost = error.cause() == Some(Cause::SESSION_CONTEXT_NOT_FOUND);
        if lost && certain && was == Some(ModelState::Up) && !self.forgets_responses {
            self.network
                .record_violation(format!("{mark:?} was accepted and is not found"));
        }
    }

    /// Returns `true` if an outcome reflects the current state: no state was lost since the request
    /// was sent, and the SMF knows of all earlier losses.
    fn is_certain(&self, incarnation: u32, losses: u32) -> bool {
        let now = self.smf.lock().incarnation;
        let lost = losses != self.losses.load(Ordering::Relaxed);
        now == incarnation && !lost && !self.restart_unnoticed.load(Ordering::Relaxed)
    }

    fn failed(&self, error: &ClientError) {
        self.network.count(|faults| match error.cause() {
            Some(_) => faults.refused += 1,
            None => faults.unanswered += 1,
        });
    }
}

fn far(mark: SessionMark, number: u32) -> u32 {
    mark.0 * FARS + number
}

fn rules(mark: SessionMark, rng: &mut SimulationRng) -> SessionRules {
    let ue = IpAddr::V4(Ipv4Addr::from_bits(0x0a64_0000 + mark.0));
    let tunnel = match rng.percent(50) {
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
    let rules = SessionRules::new().far(drop(1)).far(drop(2));
    if !rng.percent(40) {
        return rules.pdr(pdr(1, uplink)).pdr(pdr(2, downlink));
    }
    // The duration is measured from the start, and reported every second.
    let urr = CreateUrr::new(1, MeasurementMethod::DURAT, ReportingTriggers::PERIO)
        .measurement_period(1)
        .measurement_information(MeasurementInformation::ISTM);
    let counted = |pdr: CreatePdr| pdr.urr_ids([UrrId(1)]);
    rules
        .pdr(counted(pdr(1, uplink)))
        .pdr(counted(pdr(2, downlink)))
        .urr(urr)
}

/// Returns `true` if a node with faults may refuse a valid request with this cause.
fn may_refuse(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::NO_RESOURCES_AVAILABLE | Cause::CONGESTION | Cause::SYSTEM_FAILURE
    )
}
