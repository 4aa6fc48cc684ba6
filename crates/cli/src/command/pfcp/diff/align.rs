//! Which message of one side has the part of which message of the other.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use strowger_pfcp::ie::FSeid;
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{Ie, IeType, MessageType, Seid, Sequence, frames};

use crate::command::pfcp::source::Packet;

/// The messages of one side, each once.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) spoken: Vec<Spoken>,
    /// Messages of types that the user named.
    pub(super) left_out: usize,
}

/// A message and the part that it has.
#[derive(Debug)]
pub(super) struct Spoken {
    /// The frame that it came in.
    pub(super) number: u64,
    pub(super) octets: Vec<u8>,
    part: Part,
}

/// What a message is in its capture, whatever the numbers are that were chosen for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    /// The session, counted from 1 in the order of appearance; 0 is none.
    pub(super) session: usize,
    pub(super) message_type: MessageType,
    /// Its place among the messages of its type in its session, counted from 1.
    place: usize,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.session {
            0 => write!(f, "{} {}", self.message_type, self.place),
            session => write!(f, "Session {session}: {} {}", self.message_type, self.place),
        }
    }
}

impl Side {
    /// Reads the messages to or from one of the ports, without those of some types.
    pub(super) fn read(
        packets: Vec<Packet>,
        ports: &[Option<u16>],
        without: &[MessageType],
    ) -> Self {
        let mut side = Self::default();
        let mut known = Known::default();
        for packet in packets {
            let is_pfcp = |(src, dst): (SocketAddr, SocketAddr)| {
                let port = |end: SocketAddr| ports.contains(&Some(end.port()));
                port(src) || port(dst)
            };
            if packet.quoted || !packet.ends.is_none_or(is_pfcp) {
                continue;
            }
            for frame in frames(&packet.octets) {
                let (message_type, octets, header) = match &frame {
                    Ok(frame) => (frame.header.message_type, frame.octets, Some(frame.header)),
                    // What follows cannot be told apart from it.
                    Err(error) => {
                        let kind = error.path().message().unwrap_or(MessageType(0));
                        (kind, &*packet.octets, None)
                    }
                };
                if without.contains(&message_type) {
                    side.left_out += 1;
                    continue;
                }
                let ends = packet.ends.map(|(src, dst)| (src.ip(), dst.ip()));
                let body = frame.as_ref().map_or(&[][..], |frame| frame.body);
                let said = Said { ends, body };
                let sequence = header.map(|header| header.sequence);
                // Without ends nobody knows whether it was sent again.
                if ends.is_some() && !known.told.insert((ends, message_type, octets.to_vec())) {
                    continue;
                }
                let seid = header.and_then(|header| header.seid);
                let session = match (seid, sequence) {
                    (Some(seid), Some(sequence)) => {
                        known.session(message_type, seid, sequence, &said)
                    }
                    _ => 0,
                };
                side.spoken.push(Spoken {
                    number: packet.number,
                    octets: octets.to_vec(),
                    part: known.part(session, message_type),
                });
            }
        }
        side
    }
}

type Ends = Option<(IpAddr, IpAddr)>;

/// What tells the session of a message.
struct Said<'a> {
    ends: Ends,
    body: &'a [u8],
}

impl Said<'_> {
    /// The SEID that its sender chose for the session.
    fn chosen(&self) -> Option<Seid> {
        let mut elements = Tlvs::new(self.body).map_while(Result::ok);
        let f_seid = elements.find(|element| element.ie == IeType::F_SEID)?;
        FSeid::decode(f_seid.value)
            .ok()
            .map(|f_seid| Seid(f_seid.seid))
    }
}

/// What the messages so far have told.
#[derive(Debug, Default)]
struct Known {
    sessions: usize,
    /// The session of a SEID at its receiver.
    by_seid: HashMap<(Option<IpAddr>, Seid), usize>,
    /// The session of a request, by its sender and receiver.
    by_request: HashMap<(Ends, MessageType, Sequence), usize>,
    told: HashSet<(Ends, MessageType, Vec<u8>)>,
    places: HashMap<(usize, MessageType), usize>,
}

impl Known {
    fn session(
        &mut self,
        message_type: MessageType,
        seid: Seid,
        sequence: Sequence,
        said: &Said<'_>,
    ) -> usize {
        let (src, dst) = (said.ends.map(|ends| ends.0), said.ends.map(|ends| ends.1));
        let asked = message_type.0.checked_sub(1).map(MessageType);
        let back = said.ends.map(|(src, dst)| (dst, src));
        let request = asked
            .filter(|_| message_type.is_response())
            .and_then(|asked| self.by_request.get(&(back, asked, sequence)));
        let session = match (message_type, request) {
            (_, Some(session)) => *session,
            (MessageType::SESSION_ESTABLISHMENT_REQUEST, _) => self.next(),
            _ => match self.by_seid.get(&(dst, seid)) {
                Some(session) => *session,
                // The capture began after it.
                None => self.next(),
            },
        };
        self.by_seid.insert((dst, seid), session);
        if let Some(chosen) = said.chosen() {
            self.by_seid.insert((src, chosen), session);
        }
        if message_type.is_request() {
            self.by_request
                .insert((said.ends, message_type, sequence), session);
        }
        session
    }

    fn next(&mut self) -> usize {
        self.sessions += 1;
        self.sessions
    }

    fn part(&mut self, session: usize, message_type: MessageType) -> Part {
        let place = self.places.entry((session, message_type)).or_default();
        *place += 1;
        Part {
            session,
            message_type,
            place: *place,
        }
    }
}

/// Pairs the messages of two sides: those of the left in their order, then what only the right
/// one has.
pub(super) fn pairs<'a>(
    left: &'a Side,
    right: &'a Side,
) -> Vec<(Part, Option<&'a Spoken>, Option<&'a Spoken>)> {
    // Two messages are compared whatever they are.
    if let ([left], [right]) = (&*left.spoken, &*right.spoken) {
        return vec![(left.part, Some(left), Some(right))];
    }
    let mut rights: HashMap<Part, &Spoken> = right
        .spoken
        .iter()
        .map(|spoken| (spoken.part, spoken))
        .collect();
    let mut pairs: Vec<_> = left
        .spoken
        .iter()
        .map(|spoken| (spoken.part, Some(spoken), rights.remove(&spoken.part)))
        .collect();
    let alone = |spoken: &&Spoken| rights.contains_key(&spoken.part);
    let only = right.spoken.iter().filter(alone);
    pairs.extend(only.map(|spoken| (spoken.part, None, Some(spoken))));
    pairs
}
