//! Alignment of the messages of two sides.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use strowger_pfcp::ie::FSeid;
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{Ie, IeType, MessageType, Seid, Sequence, frames};

use crate::source::Packet;

/// The messages of one side, without retransmissions.
#[derive(Debug, Default)]
pub(super) struct SideMessages {
    pub(super) messages: Vec<AlignedMessage>,
    /// Messages left out because the user ignores their type.
    pub(super) left_out: usize,
}

/// A message with its position in the capture.
#[derive(Debug)]
pub(super) struct AlignedMessage {
    /// The frame that contains it.
    pub(super) number: u64,
    pub(super) bytes: Vec<u8>,
    key: MessageKey,
}

/// The position of a message in its capture, independent of the numbers chosen for it (SEIDs,
/// sequence numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MessageKey {
    /// The session, counted from 1 in the order of appearance; 0 means none.
    pub(super) session: usize,
    pub(super) message_type: MessageType,
    /// The position among the messages of its type in its session, counted from 1.
    place: usize,
}

impl fmt::Display for MessageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.session {
            0 => write!(f, "{} {}", self.message_type, self.place),
            session => write!(f, "Session {session}: {} {}", self.message_type, self.place),
        }
    }
}

impl SideMessages {
    /// Reads the messages from or to one of the ports, except those of the given types.
    pub(super) fn read(
        packets: Vec<Packet>,
        ports: &[Option<u16>],
        without: &[MessageType],
    ) -> Self {
        let mut side = Self::default();
        let mut seen = SeenSessions::default();
        for packet in packets {
            let is_pfcp = |(src, dst): (SocketAddr, SocketAddr)| {
                let port = |end: SocketAddr| ports.contains(&Some(end.port()));
                port(src) || port(dst)
            };
            if packet.quoted || !packet.ends.is_none_or(is_pfcp) {
                continue;
            }
            for frame in frames(&packet.bytes) {
                let (message_type, bytes, header) = match &frame {
                    Ok(frame) => (frame.header.message_type, frame.bytes, Some(frame.header)),
                    // The rest of the datagram cannot be separated from a malformed message.
                    Err(error) => {
                        let kind = error.path().message().unwrap_or(MessageType(0));
                        (kind, &*packet.bytes, None)
                    }
                };
                if without.contains(&message_type) {
                    side.left_out += 1;
                    continue;
                }
                let ends = packet.ends.map(|(src, dst)| (src.ip(), dst.ip()));
                let body = frame.as_ref().map_or(&[][..], |frame| frame.body);
                let hints = SessionHints { ends, body };
                let sequence = header.map(|header| header.sequence);
                // Without addresses, a retransmission cannot be recognized.
                if ends.is_some() && !seen.messages.insert((ends, message_type, bytes.to_vec())) {
                    continue;
                }
                let seid = header.and_then(|header| header.seid);
                let session = match (seid, sequence) {
                    (Some(seid), Some(sequence)) => {
                        seen.session(message_type, seid, sequence, &hints)
                    }
                    _ => 0,
                };
                side.messages.push(AlignedMessage {
                    number: packet.number,
                    bytes: bytes.to_vec(),
                    key: seen.key(session, message_type),
                });
            }
        }
        side
    }
}

type AddressPair = Option<(IpAddr, IpAddr)>;

/// The parts of a message that identify its session.
struct SessionHints<'a> {
    ends: AddressPair,
    body: &'a [u8],
}

impl SessionHints<'_> {
    /// Returns the SEID that the sender chose for the session.
    fn sender_seid(&self) -> Option<Seid> {
        let mut elements = Tlvs::new(self.body).map_while(Result::ok);
        let f_seid = elements.find(|element| element.ie == IeType::F_SEID)?;
        FSeid::decode(f_seid.value)
            .ok()
            .map(|f_seid| Seid(f_seid.seid))
    }
}

/// The sessions and messages seen so far.
#[derive(Debug, Default)]
struct SeenSessions {
    sessions: usize,
    /// Session by SEID and the address of the node that chose it, which receives it in headers.
    by_seid: HashMap<(Option<IpAddr>, Seid), usize>,
    /// Session of a request, by sender and receiver.
    by_request: HashMap<(AddressPair, MessageType, Sequence), usize>,
    messages: HashSet<(AddressPair, MessageType, Vec<u8>)>,
    places: HashMap<(usize, MessageType), usize>,
}

impl SeenSessions {
    fn session(
        &mut self,
        message_type: MessageType,
        seid: Seid,
        sequence: Sequence,
        hints: &SessionHints<'_>,
    ) -> usize {
        let (src, dst) = (hints.ends.map(|ends| ends.0), hints.ends.map(|ends| ends.1));
        let asked = message_type.0.checked_sub(1).map(MessageType);
        let back = hints.ends.map(|(src, dst)| (dst, src));
        let request = asked
            .filter(|_| message_type.is_response())
            .and_then(|asked| self.by_request.get(&(back, asked, sequence)));
        let session = match (message_type, request) {
            (_, Some(session)) => *session,
            (MessageType::SESSION_ESTABLISHMENT_REQUEST, _) => self.next_session(),
            _ => match self.by_seid.get(&(dst, seid)) {
                Some(session) => *session,
                // The session was established before the capture began.
                None => self.next_session(),
            },
        };
        self.by_seid.insert((dst, seid), session);
        if let Some(chosen) = hints.sender_seid() {
            self.by_seid.insert((src, chosen), session);
        }
        if message_type.is_request() {
            self.by_request
                .insert((hints.ends, message_type, sequence), session);
        }
        session
    }

    fn next_session(&mut self) -> usize {
        self.sessions += 1;
        self.sessions
    }

    fn key(&mut self, session: usize, message_type: MessageType) -> MessageKey {
        let place = self.places.entry((session, message_type)).or_default();
        *place += 1;
        MessageKey {
            session,
            message_type,
            place: *place,
        }
    }
}

/// Pairs the messages of two sides: those of the left in their order, then those that only the
/// right has.
pub(super) fn pair_messages<'a>(
    left: &'a SideMessages,
    right: &'a SideMessages,
) -> Vec<(
    MessageKey,
    Option<&'a AlignedMessage>,
    Option<&'a AlignedMessage>,
)> {
    // Two single messages are compared whatever their types are.
    if let ([left], [right]) = (&*left.messages, &*right.messages) {
        return vec![(left.key, Some(left), Some(right))];
    }
    let mut rights: HashMap<MessageKey, &AlignedMessage> = right
        .messages
        .iter()
        .map(|message| (message.key, message))
        .collect();
    let mut pairs: Vec<_> = left
        .messages
        .iter()
        .map(|message| (message.key, Some(message), rights.remove(&message.key)))
        .collect();
    let alone = |message: &&AlignedMessage| rights.contains_key(&message.key);
    let only = right.messages.iter().filter(alone);
    pairs.extend(only.map(|message| (message.key, None, Some(message))));
    pairs
}
