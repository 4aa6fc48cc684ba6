//! Fault injection between a socket and its node, according to a scenario.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use strowger_pfcp::Seid;
use strowger_pfcp::association::NodeName;
use tokio::time::Instant;

use super::{Batch, DatagramSocket, ReceiveBuffers};
use crate::scenario::{FaultScenario, ScenarioFault, refusal};

/// A filter for received datagrams.
pub(super) struct FaultInjector {
    scenario: FaultScenario,
    /// The Node ID in injected responses.
    name: NodeName,
    /// Returns the peer's SEID of a session.
    named: Box<dyn Fn(Seid) -> Option<Seid> + Send + Sync>,
    /// Delayed datagrams and the end of their delay; the next one to be released is last.
    delayed: Vec<(Instant, SocketAddr, Vec<u8>)>,
}

impl FaultInjector {
    /// Creates an injector if there is a scenario.
    pub(super) fn new(
        scenario: Option<(FaultScenario, NodeName)>,
        named: impl Fn(Seid) -> Option<Seid> + Send + Sync + 'static,
    ) -> Option<Self> {
        let (scenario, name) = scenario?;
        Some(Self {
            scenario,
            name,
            named: Box::new(named),
            delayed: Vec::new(),
        })
    }

    /// Waits until datagrams arrive or a delay ends. Returns those that pass, which may be none.
    pub(super) async fn receive(
        &mut self,
        source: &DatagramSocket,
        socket: usize,
        buffers: &mut ReceiveBuffers,
    ) -> io::Result<Batch> {
        let mut passed = Batch::empty(socket);
        if let Some(&(until, ..)) = self.delayed.last() {
            let received = tokio::time::timeout_at(until, Batch::receive(source, socket, buffers));
            match received.await {
                Ok(batch) => self.sort(source, &batch?, &mut passed),
                Err(_) => {
                    if let Some((_, peer, bytes)) = self.delayed.pop() {
                        passed.push(peer, &bytes);
                    }
                }
            }
        } else {
            let batch = Batch::receive(source, socket, buffers).await?;
            self.sort(source, &batch, &mut passed);
        }
        Ok(passed)
    }

    fn sort(&mut self, source: &DatagramSocket, batch: &Batch, passed: &mut Batch) {
        for (peer, bytes) in batch.iter() {
            match self.scenario.decide(bytes) {
                None | Some(ScenarioFault::TimeStamp(_)) => passed.push(peer, bytes),
                Some(ScenarioFault::Drop | ScenarioFault::Restart) => {}
                Some(ScenarioFault::Refuse(cause)) => {
                    if let Some(refusal) = refusal(bytes, cause, &self.name, &*self.named) {
                        // If the system does not accept the response, the peer retransmits.
                        let _ = source.try_send_to(&refusal, peer);
                    }
                }
                Some(ScenarioFault::Delay(_)) if self.delayed.len() >= MAX_DELAYED => {}
                Some(ScenarioFault::Delay(delay)) => {
                    let until = Instant::now() + delay;
                    let at = self.delayed.partition_point(|(one, ..)| *one > until);
                    self.delayed.insert(at, (until, peer, bytes.to_vec()));
                }
            }
        }
    }
}

impl fmt::Debug for FaultInjector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "FaultInjector({}, {} delayed)",
            self.scenario,
            self.delayed.len()
        )
    }
}

/// The maximum number of delayed datagrams; further ones are dropped.
const MAX_DELAYED: usize = 4096;
