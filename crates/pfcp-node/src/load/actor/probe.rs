//! Panics in sessions, and probes that check whether a session still exists with its rules.

use std::time::Instant;

use strowger::Reply;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{MessageType, Seid};

use super::{LoadActor, Operation};
use crate::client::ClientError;
use crate::load::requests::RequestBuilder;

impl LoadActor {
    /// Makes a session panic, and probes it at once.
    pub(super) fn inject_panic(&mut self, now: Instant) {
        let Some(panic_injection) = &self.plan.panic_injection else {
            return;
        };
        let node = panic_injection.node.clone();
        let Some(seid) = self.pick_held_session() else {
            return;
        };
        let Some(&remote) = self.remote.get(&seid) else {
            return;
        };
        if node.panic_session(remote, "chaos") {
            self.stats.lock().panics += 1;
            self.probe(now, seid, Reply::ignored());
        }
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
                self.send(
                    now,
                    now,
                    message_type,
                    remote,
                    &body,
                    Operation::Probe(seid, reply),
                );
            }
            Err(error) => reply.send(Err(error.into())),
        }
    }
}
