//! The targets that a client has bound to names.

use std::collections::HashMap;
use std::sync::Arc;

use strowger::{ActorPath, Address, ContentType, Fault, FaultCode, MessagePattern, RemoteEntry};
use tokio::time::Instant;

use crate::access::{AuditGuard, Caller, Operation};
use crate::frame::{Frame, FrameKind};

/// The meaning of a target number.
pub(super) enum BoundName {
    Method(Arc<str>),
    Message {
        address: Address,
        kind: Box<str>,
        /// The permissions of the caller for this message.
        permissions: MessagePermissions,
        /// The endpoint found at the last use.
        entry: Option<RemoteEntry>,
    },
}

/// The permissions of a caller for one message of an actor. They are determined once, when the name
/// is bound, and checked for each message.
#[derive(Debug, Clone)]
pub(super) struct MessagePermissions {
    path: ActorPath,
    is_topic: bool,
    /// Decisions by [`MessageUse`].
    granted: [bool; 3],
}

/// The way in which a message is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageUse {
    Tell,
    Ask,
    Stream,
}

impl MessagePermissions {
    fn new(caller: &Caller, address: &Address, kind: &str) -> Self {
        let path = ActorPath::from(address.path());
        let mut permissions = Self {
            is_topic: kind == SUBSCRIBE && address.path().starts_with(TOPICS),
            granted: [false; 3],
            path,
        };
        let uses = [MessageUse::Tell, MessageUse::Ask, MessageUse::Stream];
        permissions.granted = uses
            .map(|used| caller.is_allowed(permissions.operation(used), Some(&permissions.path)));
        permissions
    }

    const fn grants(&self, used: MessageUse) -> bool {
        self.granted[used as usize]
    }

    /// Refuses a frame that the caller may not send whatever the message pattern is, so that the
    /// actor is not even looked up.
    pub(super) fn check_frame(
        &self,
        caller: &Caller,
        kind: FrameKind,
        now: Instant,
    ) -> Result<(), Fault> {
        let used = match kind {
            FrameKind::Tell => MessageUse::Tell,
            _ if self.grants(MessageUse::Ask) || self.grants(MessageUse::Stream) => return Ok(()),
            _ if self.is_topic => MessageUse::Stream,
            _ => MessageUse::Ask,
        };
        self.decide(caller, used, now).map(drop)
    }

    /// Authorizes a frame for a message with this pattern, and opens the audit record of a write.
    pub(super) fn authorize(
        &self,
        caller: &Caller,
        kind: FrameKind,
        pattern: MessagePattern,
        now: Instant,
    ) -> Result<Option<AuditGuard>, Fault> {
        let used = match (kind, pattern) {
            (FrameKind::Tell, _) => MessageUse::Tell,
            (_, MessagePattern::Stream) => MessageUse::Stream,
            _ => MessageUse::Ask,
        };
        self.decide(caller, used, now)?;
        let operation = self.operation(used);
        if !operation.is_recorded() {
            return Ok(None);
        }
        let record = caller.open_record(operation, Some(&self.path), now);
        if used != MessageUse::Stream {
            return Ok(record);
        }
        // A stream may go on forever, so it is recorded when it begins.
        if let Some(record) = record {
            record.begun();
        }
        Ok(None)
    }

    /// Applies the decision made when the name was bound. A refusal is counted each time.
    fn decide(&self, caller: &Caller, used: MessageUse, now: Instant) -> Result<(), Fault> {
        if self.grants(used) {
            return Ok(());
        }
        let operation = self.operation(used);
        caller.authorize(operation, Some(&self.path), now).map(drop)
    }

    const fn operation(&self, used: MessageUse) -> &'static Operation {
        match used {
            MessageUse::Tell => &Operation::TELL,
            MessageUse::Ask => &Operation::ASK,
            MessageUse::Stream if self.is_topic => &Operation::SUBSCRIBE,
            MessageUse::Stream => &Operation::STREAM,
        }
    }
}

/// The address prefix of topic relays, and their only message.
const TOPICS: &str = "topic/";
const SUBSCRIBE: &str = "subscribe";

/// The targets that a client has bound.
pub(super) struct BoundNames {
    by_target: HashMap<u32, BoundName>,
    limit: usize,
}

/// Maximum length of an address, a space and a message type, in bytes.
const MAX_ADDRESS_NAME: usize = 1024 + 3 + 1 + MAX_MESSAGE_TYPE;
/// Maximum length of a message type, in bytes.
const MAX_MESSAGE_TYPE: usize = 128;

impl BoundNames {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            by_target: HashMap::new(),
            limit,
        }
    }

    pub(super) fn get(&mut self, target: u32) -> Option<&mut BoundName> {
        self.by_target.get_mut(&target)
    }

    /// Binds a target. All later calls depend on it, so an error here closes the connection.
    pub(super) fn bind(&mut self, frame: &Frame, caller: &Caller) -> Result<(), Fault> {
        let refused = |text: String| Err(Fault::new(FaultCode::Protocol, text));
        let limit = self.limit;
        let is_address = frame.payload.starts_with(b"@(");
        let max_len = if is_address { MAX_ADDRESS_NAME } else { limit };
        if frame.content != ContentType::Text || frame.payload.len() > max_len {
            return refused(format!("a name is limited to {max_len} bytes of text"));
        }
        let Ok(name) = std::str::from_utf8(&frame.payload) else {
            return refused(format!("name {} is not UTF-8", frame.target));
        };
        if frame.target == 0 {
            return refused(format!("{name:?} is bound to target 0, which is reserved"));
        }
        if self.by_target.len() >= limit && !self.by_target.contains_key(&frame.target) {
            return refused(format!("more than {limit} names"));
        }
        let name = if is_address {
            parse_message_name(name, caller).map_err(|why| Fault::new(FaultCode::Protocol, why))?
        } else {
            BoundName::Method(Arc::from(name))
        };
        self.by_target.insert(frame.target, name);
        Ok(())
    }
}

/// Parses an address, a space and a message type.
fn parse_message_name(name: &str, caller: &Caller) -> Result<BoundName, String> {
    let Some((address, kind)) = name.split_once(' ') else {
        let text = format!("{name:?} needs an address, a space and a message type");
        return Err(text);
    };
    let address: Address = address.parse().map_err(|fault: Fault| fault.message)?;
    let fit = |one: char| !one.is_control() && !one.is_whitespace();
    if kind.is_empty() || kind.len() > MAX_MESSAGE_TYPE || !kind.chars().all(fit) {
        let text = format!(
            "invalid message type {kind:?}: must be 1 to {MAX_MESSAGE_TYPE} bytes without spaces"
        );
        return Err(text);
    }
    Ok(BoundName::Message {
        permissions: MessagePermissions::new(caller, &address, kind),
        address,
        kind: kind.into(),
        entry: None,
    })
}
