//! Faults besides those of the network: crashes, panics, kills, a full disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use strowger_pfcp::association::Recovery;
use strowger_pfcp::endpoint::{BodyBuilder, message};
use strowger_pfcp::{Header, MessageType, Seid, Sequence};

use super::driver::{SMF, Simulation, UPF};
use super::rng::SimulationRng;

impl Simulation {
    /// Injects faults at random times until the run is over.
    pub(super) async fn inject_faults(self: Arc<Self>, mut rng: SimulationRng) {
        while !self.finished.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(100) + rng.millis(1500)).await;
            match rng.below(13) {
                0 => self.crash_upf(false, &mut rng).await,
                1 => self.crash_upf(true, &mut rng).await,
                2 => self.crash_smf(&mut rng).await,
                3 => self.panic_endpoint(),
                4 => self.kill_association(&mut rng),
                5 | 6 => {
                    self.disk.set_full(true);
                    tokio::time::sleep(rng.millis(800)).await;
                    self.disk.set_full(false);
                }
                7..=9 => self.fail_session(false, &mut rng),
                10 => self.spoof(&mut rng),
                _ => self.fail_session(true, &mut rng),
            }
        }
        self.disk.end_faults();
    }

    async fn crash_upf(&self, power: bool, rng: &mut SimulationRng) {
        // The most critical moment is during a write.
        for _ in 0..rng.below(100) {
            if self.disk.is_writing() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let Some(upf) = self.upf.lock().take() else {
            return;
        };
        self.network.note(|| "the UPF crashes".to_owned());
        self.network.count(|faults| faults.upf_crashed += 1);
        self.network.disconnect(UPF);
        self.forget_refusals();
        if self.disk.crash(power) {
            self.network
                .note(|| "what was acknowledged is lost".to_owned());
            self.network.forgets_answers();
            self.losses.fetch_add(1, Ordering::Relaxed);
            self.restart_unnoticed.store(true, Ordering::Relaxed);
            self.models.lock().forget_state();
        }
        // From here on, its actors reach neither the network nor the disk.
        upf.node.stop().await;
        tokio::time::sleep(rng.millis(1500)).await;
        self.start_upf().await;
    }

    async fn crash_smf(self: &Arc<Self>, rng: &mut SimulationRng) {
        self.network.note(|| "the SMF crashes".to_owned());
        self.network.count(|faults| faults.smf_crashed += 1);
        self.network.disconnect(SMF);
        {
            let mut smf = self.smf.lock();
            (smf.client, smf.association, smf.noticed) = (None, None, None);
            // Invalidates everything that belongs to the previous incarnation.
            smf.incarnation += 1;
        }
        self.models.lock().restart();
        if let Some(actor) = self.system.find(format!("/smf-{SMF}").as_str()) {
            actor.kill();
            actor.stopped().await;
        }
        // Its last messages may arrive after the first ones of its next incarnation.
        tokio::time::sleep(rng.millis(1500)).await;
        self.start_smf();
    }

    /// Sends a heartbeat from the host of the control plane that falsely indicates a restart.
    fn spoof(&self, rng: &mut SimulationRng) {
        let incarnation = self.smf.lock().incarnation;
        let stamp = Recovery(1000 + incarnation);
        let sequence = Sequence::new(u32::try_from(rng.below(1 << 24)).unwrap_or(0));
        let header = Header::node(MessageType::HEARTBEAT_REQUEST, sequence);
        let body = BodyBuilder::new().recovery(stamp);
        if let Ok(bytes) = message(&header, body.as_slice()) {
            self.network.count(|faults| faults.spoofed += 1);
            self.network.spoof((SMF.ip(), 40_000).into(), UPF, &bytes);
        }
    }

    fn panic_endpoint(&self) {
        if let Some(endpoint) = self.system.find("/node/n4") {
            self.network.note(|| "the endpoint panics".to_owned());
            self.network.count(|faults| faults.endpoint_panicked += 1);
            self.forget_refusals();
            endpoint.inject_panic("a drill");
        }
    }

    fn kill_association(&self, rng: &mut SimulationRng) {
        let Some(upf) = self.upf.lock().clone() else {
            return;
        };
        let associations = upf.node.associations();
        let Some(association) = associations.first() else {
            return;
        };
        if let Some(supervisor) = self.system.find(association.path.as_str()) {
            self.network
                .note(|| "the association's supervisor ends".to_owned());
            self.network.count(|faults| faults.association_killed += 1);
            match rng.percent(50) {
                true => supervisor.kill(),
                false => supervisor.stop(),
            }
        }
    }

    fn fail_session(&self, kill: bool, rng: &mut SimulationRng) {
        let Some(upf) = self.upf.lock().clone() else {
            return;
        };
        let sessions: Vec<_> = self
            .system
            .actors()
            .into_iter()
            .filter(|actor| actor.path.to_string().contains("/0x"))
            .collect();
        let at = usize::try_from(rng.below(sessions.len() as u64)).unwrap_or(0);
        let Some(session) = sessions.get(at).map(|actor| actor.path.to_string()) else {
            return;
        };
        let seid = session
            .rsplit_once("/0x")
            .map(|(_, hex)| u64::from_str_radix(hex, 16));
        self.network.note(|| format!("{session} fails"));
        if kill {
            self.network.count(|faults| faults.session_killed += 1);
            if let Some(actor) = self.system.find(session.as_str()) {
                actor.kill();
            }
        } else if let Some(Ok(seid)) = seid
            && upf.node.panic_session(Seid(seid), "a drill")
        {
            self.network.count(|faults| faults.session_panicked += 1);
        }
    }

    /// Records that the node may answer refused requests differently from now on.
    fn forget_refusals(&self) {
        self.network.forgets_refusals();
        self.models.lock().forget_refusals();
    }
}
