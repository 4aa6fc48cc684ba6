//! Policy decisions about the rules of a session.

use std::sync::Arc;

use strowger_pfcp::ie::Cause;
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::session::{Refusal, RuleSet};
use strowger_pfcp::{Error, Frame, Message, Sequence};

use super::SessionActor;
use crate::policy::{PolicyDecision, PolicyRequest, PolicyRequestKind};
use crate::store::StoredPeer;

/// The context of a policy request, besides the rules.
pub(super) struct DecisionContext<'a> {
    pub(super) kind: PolicyRequestKind,
    pub(super) owner: &'a Arc<StoredPeer>,
    pub(super) sessions: usize,
    pub(super) before: Option<&'a RuleSet>,
}

impl SessionActor {
    /// Asks the policy, if there is one, to decide about `rules`. Returns the rules that apply, and
    /// the modification by which the policy changed them.
    pub(super) async fn decided(
        &self,
        rules: RuleSet,
        context: DecisionContext<'_>,
    ) -> Result<(RuleSet, Option<Vec<u8>>), Refusal> {
        let Some(policy) = &self.shared.policy else {
            return Ok((rules, None));
        };
        let question = PolicyRequest {
            kind: context.kind,
            seid: self.seid,
            node: context.owner.node.to_string(),
            peer: context.owner.address,
            sessions: context.sessions,
            before: context.before.cloned(),
            rules: rules.clone(),
        };
        match policy.ask(question).await {
            PolicyDecision::Admit => Ok((rules, None)),
            PolicyDecision::Refuse(cause) => Err(Refusal::new(cause)),
            // The policy client has already applied the fallback for undecided requests.
            PolicyDecision::NoDecision => Err(Refusal::new(Cause::SYSTEM_FAILURE)),
            PolicyDecision::Change(change) => {
                self.changed_by_policy(&rules, *change).map_err(|error| {
                    policy.count_invalid_change();
                    tracing::warn!(session = %self.seid, error, "invalid change from the policy");
                    Refusal::new(Cause::SYSTEM_FAILURE)
                })
            }
        }
    }

    fn changed_by_policy(
        &self,
        rules: &RuleSet,
        change: SessionModificationRequest,
    ) -> Result<(RuleSet, Option<Vec<u8>>), String> {
        let invalid = |error: Error| error.to_string();
        let message = Message::session(self.seid, Sequence::default(), change);
        let bytes = message.encode().map_err(invalid)?;
        let frame = Frame::decode(&bytes).map_err(invalid)?;
        let changed = rules.modify(&frame, &mut self.allocator());
        let changed = changed.map_err(|refusal| refusal.to_string())?;
        Ok((changed.rules, Some(bytes)))
    }
}
