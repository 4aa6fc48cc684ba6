//! Panics in sessions, and probes that check whether a session still exists with its rules.

use std::time::Instant;

use strowger::Reply;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{MessageType, Seid};

use super::{LoadActor, Operation, due};
use crate::client::ClientError;
use crate::load::PanicInjection;
use crate::load::requests::RequestBuilder;

impl LoadActor {
    /// Makes a session panic if the schedule has a panic due, and probes the session at once. The
    /// panic stays due until there is a session for it.
    pub(super) fn inject_due_panic(&mut self, now: Instant) {
        let Some(PanicInjection { node, rate }) = &self.plan.panic_injection else {
            return;
        };
        let (node, rate) = (node.clone(), *rate);
        if rate <= 0.0 || due(self.began, self.panics, rate, now).is_none() {
            return;
        }
        let Some(seid) = self.pick_unmodified_session() else {
            return;
        };
        let Some(&remote) = self.remote.get(&seid) else {
            return;
        };
        if !node.panic_session(remote, "chaos") {
            return;
        }
        // One panic stands for all that were missed during a stall: issued at once, they would fill
        // the mailboxes of a few sessions.
        while due(self.began, self.panics, rate, now).is_some() {
            self.panics += 1;
        }
        self.stats.lock().panics += 1;
        self.probe(now, seid, Reply::ignored());
    }

    pub(super) fn probe(
        &mut self,
        now: Instant,
        seid: Seid,
        reply: Reply<Result<Option<Cause>, ClientError>>,
    ) {
        let Some(&remote) = self.remote.get(&seid) else {
            return reply.send(Ok(None));
        };
        match RequestBuilder::naming() {
            Ok(body) => {
                self.stats.lock().probes += 1;
                let message_type = MessageType::SESSION_MODIFICATION_REQUEST;
                let kind = Operation::Probe(seid, reply);
                if self.send(now, now, message_type, remote, &body, kind) {
                    self.modification_started(seid);
                }
            }
            Err(error) => reply.send(Err(error.into())),
        }
    }
}
