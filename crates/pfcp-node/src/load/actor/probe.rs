//! Panics in sessions, and questions whether a session is still what it was.

use std::time::Instant;

use strowger::Reply;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{MessageType, Seid};

use super::{LoadActor, What};
use crate::client::ClientError;
use crate::load::requests::Sessions;

impl LoadActor {
    /// Makes a session panic, and tries it at once.
    pub(super) fn hit(&mut self, now: Instant) {
        let Some(chaos) = &self.plan.chaos else {
            return;
        };
        let node = chaos.node.clone();
        let Some(seid) = self.pick() else {
            return;
        };
        let Some(&remote) = self.remote.get(&seid) else {
            return;
        };
        if node.panic_session(remote, "chaos") {
            self.figures.lock().panics += 1;
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
        match Sessions::naming() {
            Ok(body) => {
                self.figures.lock().probes += 1;
                let message_type = MessageType::SESSION_MODIFICATION_REQUEST;
                self.send(
                    now,
                    now,
                    message_type,
                    remote,
                    &body,
                    What::Probe(seid, reply),
                );
            }
            Err(error) => reply.send(Err(error.into())),
        }
    }
}
