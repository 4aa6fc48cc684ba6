//! The session policy of the demo: a component that is part of the program.

use std::time::Duration;

use strowger_pfcp_node::{OnFailure, PolicyKind};
use strowger_wasm::{Message, Payload};

use super::TRIES;
use crate::compose::components::Components;
use crate::config::Config;
use crate::config::component::{ComponentSection, Embedded};

/// The name of the component.
const NAME: &str = "qos-cap";

const QOS_CAP: Embedded = Embedded {
    bytes: include_bytes!("../../../embedded/qos-cap.wasm"),
    manifest: include_str!("qos-cap.toml"),
};

/// The longest wait for one answer: far longer than it takes on any machine, so that decisions do
/// not depend on how busy this machine is.
const BUDGET: Duration = Duration::from_secs(5);
const _: () = assert!(TRIES as u64 > BUDGET.as_secs());

/// The rule of the demo, for people.
pub(super) const RULE: Option<&str> =
    Some("qos-cap caps each session at 50 Mbit/s uplink and 200 Mbit/s downlink, rejects none");

/// The part of the demo that this program was built without.
pub(super) const MISSING: Option<&str> = None;

/// Commands to try, with their purpose.
pub(super) const COMMANDS: &[(&str, &str)] = &[(
    "component list",
    "the policy component that is asked about sessions",
)];

pub(super) const HELP: &str = "\
The policy component, qos-cap, is asked about each new session. It caps rates at 50 Mbit/s uplink
and 200 Mbit/s downlink and rejects none. If it does not answer, after a trap or within 5 s, the
session is accepted as requested; the summary counts these sessions. With --chaos it traps twice per
second.";

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

/// Returns the number of calls of the component, and of its traps.
pub(super) fn counts(components: &Components) -> (u64, u64) {
    let component = components.one(NAME);
    component.map_or((0, 0), |deployed| {
        (deployed.info.calls, deployed.info.faults)
    })
}

/// A message that ends an incarnation of the component, because it is longer than its memory.
#[derive(Debug)]
pub(super) struct TrapMessage(Payload);

impl TrapMessage {
    pub(super) fn new() -> Self {
        Self(vec![b' '; 4 << 20].into())
    }

    /// Sends the message to the component, which traps for lack of memory and is restarted.
    pub(super) fn send_to(&self, components: &Components) {
        if let Some(actor) = components.registry().find(NAME) {
            // If the mailbox is full, the next one will do.
            let _ = actor.try_tell(Message(self.0.clone()));
        }
    }
}
