//! What a program of one's own gives a node.

use std::sync::Arc;

use super::NodeError;
use crate::config::{DataPathKind, NodeConfig, PolicyKind};
use crate::data_path::{DataPath, NoTraffic, SimulatedTraffic};
use crate::policy::{Desk, Policy, QosCap};

/// Parts of a node that its configuration does not name; what is not set is as configured.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NodeParts {
    /// Where the traffic comes from that sessions count.
    pub data_path: Option<Arc<dyn DataPath>>,
    /// Who is asked about sessions; budget and behaviour on failure are as configured.
    pub policy: Option<Arc<dyn Policy>>,
}

impl NodeParts {
    /// Whether the parts are given that the configuration speaks of.
    pub(super) fn check(&self, config: &NodeConfig) -> Result<(), NodeError> {
        match (config.policy.kind, &self.policy) {
            (PolicyKind::Component, None) => Err(NodeError::NoPolicy),
            _ => Ok(()),
        }
    }

    pub(super) fn data_path(&self, config: &NodeConfig) -> Arc<dyn DataPath> {
        if let Some(given) = &self.data_path {
            return Arc::clone(given);
        }
        let start = tokio::time::Instant::now().into_std();
        match config.data_path.kind {
            DataPathKind::None => Arc::new(NoTraffic),
            DataPathKind::Simulated => {
                Arc::new(SimulatedTraffic::new(start, config.data_path.model()))
            }
        }
    }

    pub(super) fn desk(&self, config: &NodeConfig) -> Option<Desk> {
        let policy: Arc<dyn Policy> = match (&self.policy, config.policy.kind) {
            (Some(given), _) => Arc::clone(given),
            // Refused before: a component is a part that the program gives.
            (None, PolicyKind::None | PolicyKind::Component) => return None,
            (None, PolicyKind::QosCap) => Arc::new(QosCap::new(config.policy.caps())),
        };
        let (budget, on_failure) = (config.policy.budget, config.policy.on_failure);
        Some(Desk::new(policy, budget, on_failure))
    }
}
