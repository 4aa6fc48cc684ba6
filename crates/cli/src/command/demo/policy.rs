//! Who is asked about each session of the demo: a component that is part of the program.

use std::time::Duration;

use strowger_pfcp_node::{OnFailure, PolicyKind};
use strowger_wasm::{Message, Payload};

use crate::compose::Running;
use crate::config::{ComponentSection, Config, Embedded};

/// Its name.
pub(super) const NAME: &str = "qos-cap";

const QOS_CAP: Embedded = Embedded {
    octets: include_bytes!("../../../../../fixtures/components/qos-cap.wasm"),
    manifest: include_str!("qos-cap.toml"),
};

/// The longest wait for one answer: far longer than it takes on any machine, so that what is
/// decided does not depend on how busy this one is.
pub(super) const BUDGET: Duration = Duration::from_secs(5);

/// The rule of the demo, in words.
pub(super) const RULE: &str = "caps each session at 50 Mbit/s up and 200 Mbit/s down; refuses none";

/// Lets it be asked about each session. A session that it has no answer about is accepted as it was
/// asked for: the policy refuses none, so the peer gets the same cause with an answer and without.
pub(super) fn configure(config: &mut Config) {
    let mut section = ComponentSection::new(format!("{NAME}.toml").into());
    section.embedded = Some(QOS_CAP);
    config.component.push(section);
    // Sessions wait for it: on a machine that is busy with other programs it must have more than
    // the hundredth of a processor that a component of the lowest priority gets there. At the
    // node's own priority components that compute all the time would delay the node.
    config.components.nice = 10;
    let policy = &mut config.n4.policy;
    policy.kind = PolicyKind::Component;
    policy.component = Some(NAME.to_owned());
    policy.budget = BUDGET;
    policy.on_failure = OnFailure::Allow;
}

/// What ends a life of it: a message longer than its memory.
#[derive(Debug)]
pub(super) struct Poison(Payload);

impl Poison {
    pub(super) fn new() -> Self {
        Self(vec![b' '; 4 << 20].into())
    }

    /// Gives it to the component, which traps for want of memory and is restarted.
    pub(super) fn give(&self, running: &Running) {
        if let Some(actor) = running.components.registry().find(NAME) {
            // A full mailbox gets the next one.
            let _ = actor.try_tell(Message(self.0.clone()));
        }
    }
}
