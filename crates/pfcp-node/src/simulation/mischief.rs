//! What goes wrong besides the network: crashes, panics, kills, a full disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use strowger_pfcp::association::Recovery;
use strowger_pfcp::endpoint::{Elements, message};
use strowger_pfcp::{Header, MessageType, Seid, Sequence};

use super::dice::Dice;
use super::world::{SMF, UPF, World};

impl World {
    /// What goes wrong besides the network.
    pub(super) async fn mischief(self: Arc<Self>, mut dice: Dice) {
        while !self.over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(100) + dice.millis(1500)).await;
            match dice.below(13) {
                0 => self.crash_upf(false, &mut dice).await,
                1 => self.crash_upf(true, &mut dice).await,
                2 => self.crash_smf(&mut dice).await,
                3 => self.panic_endpoint(),
                4 => self.kill_association(&mut dice),
                5 | 6 => {
                    self.platter.set_full(true);
                    tokio::time::sleep(dice.millis(800)).await;
                    self.platter.set_full(false);
                }
                7..=9 => self.fail_session(false, &mut dice),
                10 => self.spoof(&mut dice),
                _ => self.fail_session(true, &mut dice),
            }
        }
        self.platter.heal();
    }

    async fn crash_upf(&self, power: bool, dice: &mut Dice) {
        // The worst moment is that in which something is written.
        for _ in 0..dice.below(100) {
            if self.platter.is_writing() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let Some(upf) = self.upf.lock().take() else {
            return;
        };
        self.wire.note(|| "the UPF crashes".to_owned());
        self.wire.count(|faults| faults.upf_crashed += 1);
        self.wire.unplug(UPF);
        self.upset();
        if self.platter.crash(power) {
            self.wire
                .note(|| "what was acknowledged is lost".to_owned());
            self.wire.forgets_answers();
            self.losses.fetch_add(1, Ordering::Relaxed);
            self.unheard.store(true, Ordering::Relaxed);
            self.beliefs.lock().doubt();
        }
        // What its actors still do reaches neither the network nor the disk.
        upf.node.stop().await;
        tokio::time::sleep(dice.millis(1500)).await;
        self.start_upf().await;
    }

    async fn crash_smf(self: &Arc<Self>, dice: &mut Dice) {
        self.wire.note(|| "the SMF crashes".to_owned());
        self.wire.count(|faults| faults.smf_crashed += 1);
        self.wire.unplug(SMF);
        {
            let mut smf = self.smf.lock();
            (smf.client, smf.association, smf.noticed) = (None, None, None);
            // Nobody is of this life any more.
            smf.life += 1;
        }
        self.beliefs.lock().restart();
        if let Some(actor) = self.system.find(format!("/smf-{SMF}").as_str()) {
            actor.kill();
            actor.stopped().await;
        }
        // Its last words may arrive after the first ones of its next life.
        tokio::time::sleep(dice.millis(1500)).await;
        self.start_smf();
    }

    /// Somebody on the host of the control plane says that it has restarted.
    fn spoof(&self, dice: &mut Dice) {
        let life = self.smf.lock().life;
        let stamp = Recovery(1000 + life);
        let sequence = Sequence::new(u32::try_from(dice.below(1 << 24)).unwrap_or(0));
        let header = Header::node(MessageType::HEARTBEAT_REQUEST, sequence);
        let body = Elements::new().recovery(stamp);
        if let Ok(octets) = message(&header, body.as_slice()) {
            self.wire.count(|faults| faults.spoofed += 1);
            self.wire.spoof((SMF.ip(), 40_000).into(), UPF, &octets);
        }
    }

    fn panic_endpoint(&self) {
        if let Some(endpoint) = self.system.find("/node/n4") {
            self.wire.note(|| "the endpoint panics".to_owned());
            self.wire.count(|faults| faults.endpoint_panicked += 1);
            self.upset();
            endpoint.inject_panic("a drill");
        }
    }

    fn kill_association(&self, dice: &mut Dice) {
        let Some(upf) = self.upf.lock().clone() else {
            return;
        };
        let associations = upf.node.associations();
        let Some(association) = associations.first() else {
            return;
        };
        if let Some(supervisor) = self.system.find(association.path.as_str()) {
            self.wire
                .note(|| "the association's supervisor ends".to_owned());
            self.wire.count(|faults| faults.association_killed += 1);
            match dice.percent(50) {
                true => supervisor.kill(),
                false => supervisor.stop(),
            }
        }
    }

    fn fail_session(&self, kill: bool, dice: &mut Dice) {
        let Some(upf) = self.upf.lock().clone() else {
            return;
        };
        let sessions: Vec<_> = self
            .system
            .actors()
            .into_iter()
            .filter(|actor| actor.path.to_string().contains("/0x"))
            .collect();
        let at = usize::try_from(dice.below(sessions.len() as u64)).unwrap_or(0);
        let Some(session) = sessions.get(at).map(|actor| actor.path.to_string()) else {
            return;
        };
        let seid = session
            .rsplit_once("/0x")
            .map(|(_, hex)| u64::from_str_radix(hex, 16));
        self.wire.note(|| format!("{session} fails"));
        if kill {
            self.wire.count(|faults| faults.session_killed += 1);
            if let Some(actor) = self.system.find(session.as_str()) {
                actor.kill();
            }
        } else if let Some(Ok(seid)) = seid
            && upf.node.panic_session(Seid(seid), "a drill")
        {
            self.wire.count(|faults| faults.session_panicked += 1);
        }
    }

    /// The node may answer otherwise what it refused.
    fn upset(&self) {
        self.wire.forgets_refusals();
        self.beliefs.lock().upset();
    }
}
