//! The parts of a node that an embedding program may supply.

use std::sync::Arc;

use super::NodeError;
use crate::config::{DataPathKind, NodeConfig, PolicyKind};
use crate::data_path::{DataPath, NoTraffic, SimulatedTraffic};
use crate::policy::{Policy, PolicyClient, QosCap};

/// Parts of a node that the caller supplies; parts that are `None` follow the configuration.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NodeParts {
    /// The source of the traffic that sessions measure.
    pub data_path: Option<Arc<dyn DataPath>>,
    /// The policy that decides about sessions; the time limit and the fallback are as configured.
    pub policy: Option<Arc<dyn Policy>>,
}

impl NodeParts {
    /// Checks that the parts that the configuration requires are given.
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

    pub(super) fn policy_client(&self, config: &NodeConfig) -> Option<PolicyClient> {
        let policy: Arc<dyn Policy> = match (&self.policy, config.policy.kind) {
            (Some(given), _) => Arc::clone(given),
            // `check` has refused a component without a policy.
            (None, PolicyKind::None | PolicyKind::Component) => return None,
            (None, PolicyKind::QosCap) => Arc::new(QosCap::new(config.policy.caps())),
        };
        let (budget, on_failure) = (config.policy.budget, config.policy.on_failure);
        Some(PolicyClient::new(policy, budget, on_failure))
    }
}
