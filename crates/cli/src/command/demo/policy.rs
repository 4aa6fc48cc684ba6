//! The session policy of the demo: a component that is part of the program.

use std::time::Duration;

use strowger_pfcp_node::{OnFailure, PolicyKind};
use strowger_wasm::{Message, Payload};

use crate::compose::RunningNode;
use crate::config::{ComponentSection, Config, Embedded};

/// The name of the component.
pub(super) const NAME: &str = "qos-cap";

const QOS_CAP: Embedded = Embedded {
    bytes: include_bytes!("../../../embedded/qos-cap.wasm"),
    manifest: include_str!("qos-cap.toml"),
};

/// The longest wait for one answer: far longer than it takes on any machine, so that decisions do
/// not depend on how busy this machine is.
pub(super) const BUDGET: Duration = Duration::from_secs(5);

/// The rule of the demo, for people.
pub(super) const RULE: &str = "caps each session at 50 Mbit/s uplink and 200 Mbit/s downlink, \
                               rejects none";

/// Configures the component as the policy for sessions. A session about which the policy does not
/// answer is accepted as requested: this policy refuses none, so the peer gets the same cause with
/// an answer and without.
pub(super) fn configure(config: &mut Config) {
    let mut section = ComponentSection::new(format!("{NAME}.toml").into());
    section.embedded = Some(QOS_CAP);
    config.component.push(section);
    // Sessions wait for the policy: on a machine that is busy with other programs it must have more
    // than the hundredth of a processor that a component of the lowest priority gets there. At the
    // node's own priority, components that compute all the time would delay the node.
    config.components.nice = 10;
    let policy = &mut config.n4.policy;
    policy.kind = PolicyKind::Component;
    policy.component = Some(NAME.to_owned());
    policy.budget = BUDGET;
    policy.on_failure = OnFailure::Allow;
}

/// A message that ends an incarnation of the component, because it is longer than its memory.
#[derive(Debug)]
pub(super) struct TrapMessage(Payload);

impl TrapMessage {
    pub(super) fn new() -> Self {
        Self(vec![b' '; 4 << 20].into())
    }

    /// Sends the message to the component, which traps for lack of memory and is restarted.
    pub(super) fn send_to(&self, running: &RunningNode) {
        if let Some(actor) = running.components.registry().find(NAME) {
            // If the mailbox is full, the next one will do.
            let _ = actor.try_tell(Message(self.0.clone()));
        }
    }
}
