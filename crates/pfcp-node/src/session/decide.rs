//! What a policy has to say about the rules of a session.

use std::sync::Arc;

use strowger_pfcp::ie::Cause;
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::session::{Refusal, RuleSet};
use strowger_pfcp::{Error, Frame, Message, Sequence};

use super::Session;
use crate::policy::{Question, QuestionKind, Verdict};
use crate::store::Owner;

/// What a session tells the policy, besides the rules.
pub(super) struct Asked<'a> {
    pub(super) kind: QuestionKind,
    pub(super) owner: &'a Arc<Owner>,
    pub(super) sessions: usize,
    pub(super) before: Option<&'a RuleSet>,
}

impl Session {
    /// Lets the policy decide about rules, if there is one. Returns the rules as they may be, and
    /// the message by which the policy changed them.
    pub(super) async fn decided(
        &self,
        rules: RuleSet,
        asked: Asked<'_>,
    ) -> Result<(RuleSet, Option<Vec<u8>>), Refusal> {
        let Some(desk) = &self.shared.policy else {
            return Ok((rules, None));
        };
        let question = Question {
            kind: asked.kind,
            seid: self.seid,
            node: asked.owner.node.to_string(),
            peer: asked.owner.address,
            sessions: asked.sessions,
            before: asked.before.cloned(),
            rules: rules.clone(),
        };
        match desk.ask(question).await {
            Verdict::Admit => Ok((rules, None)),
            Verdict::Refuse(cause) => Err(Refusal::new(cause)),
            // What holds then has taken its place already.
            Verdict::Undecided => Err(Refusal::new(Cause::SYSTEM_FAILURE)),
            Verdict::Change(change) => self.changed_by_policy(&rules, *change).map_err(|error| {
                desk.unsound();
                tracing::warn!(session = %self.seid, error, "the policy's change is not sound");
                Refusal::new(Cause::SYSTEM_FAILURE)
            }),
        }
    }

    fn changed_by_policy(
        &self,
        rules: &RuleSet,
        change: SessionModificationRequest,
    ) -> Result<(RuleSet, Option<Vec<u8>>), String> {
        let unsound = |error: Error| error.to_string();
        let message = Message::session(self.seid, Sequence::default(), change);
        let octets = message.encode().map_err(unsound)?;
        let frame = Frame::decode(&octets).map_err(unsound)?;
        let changed = rules.modify(&frame, &mut self.choice());
        let changed = changed.map_err(|refusal| refusal.to_string())?;
        Ok((changed.rules, Some(octets)))
    }
}
