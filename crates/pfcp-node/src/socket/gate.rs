//! What a scenario does between a socket and its node.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use strowger_pfcp::Seid;
use strowger_pfcp::association::NodeName;
use tokio::time::Instant;

use super::{Batch, Inbox, Source};
use crate::scenario::{Act, Scenario, refusal};

/// Lets datagrams pass, or not.
pub(super) struct Gate {
    scenario: Scenario,
    /// In whose name it refuses.
    name: NodeName,
    /// How a peer calls a session.
    named: Box<dyn Fn(Seid) -> Option<Seid> + Send + Sync>,
    /// What was delayed, and until when; the next one last.
    later: Vec<(Instant, SocketAddr, Vec<u8>)>,
}

impl Gate {
    /// There is one where there is a scenario.
    pub(super) fn new(
        scenario: Option<(Scenario, NodeName)>,
        named: impl Fn(Seid) -> Option<Seid> + Send + Sync + 'static,
    ) -> Option<Self> {
        let (scenario, name) = scenario?;
        Some(Self {
            scenario,
            name,
            named: Box::new(named),
            later: Vec::new(),
        })
    }

    /// Waits for a datagram that may pass, or for the end of a delay; there may be none after all.
    pub(super) async fn receive(
        &mut self,
        source: &Source,
        socket: usize,
        inbox: &mut Inbox,
    ) -> io::Result<Batch> {
        let mut passed = Batch::empty(socket);
        if let Some(&(until, ..)) = self.later.last() {
            let received = tokio::time::timeout_at(until, Batch::receive(source, socket, inbox));
            match received.await {
                Ok(batch) => self.sort(source, &batch?, &mut passed),
                Err(_) => {
                    if let Some((_, peer, octets)) = self.later.pop() {
                        passed.push(peer, &octets);
                    }
                }
            }
        } else {
            let batch = Batch::receive(source, socket, inbox).await?;
            self.sort(source, &batch, &mut passed);
        }
        Ok(passed)
    }

    fn sort(&mut self, source: &Source, batch: &Batch, passed: &mut Batch) {
        for (peer, octets) in batch.iter() {
            match self.scenario.decide(octets) {
                None | Some(Act::TimeStamp(_)) => passed.push(peer, octets),
                Some(Act::Drop | Act::Restart) => {}
                Some(Act::Refuse(cause)) => {
                    if let Some(refusal) = refusal(octets, cause, &self.name, &*self.named) {
                        // What the system does not take is asked for again.
                        let _ = source.try_send_to(&refusal, peer);
                    }
                }
                Some(Act::Delay(_)) if self.later.len() >= DELAYED => {}
                Some(Act::Delay(delay)) => {
                    let until = Instant::now() + delay;
                    let at = self.later.partition_point(|(one, ..)| *one > until);
                    self.later.insert(at, (until, peer, octets.to_vec()));
                }
            }
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gate({}, {} later)", self.scenario, self.later.len())
    }
}

/// The most datagrams that are delayed at a time; others are dropped.
const DELAYED: usize = 4096;
