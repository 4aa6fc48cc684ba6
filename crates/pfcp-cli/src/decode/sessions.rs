//! Assignment of messages to sessions, and the ladder diagram of each session.
//!
//! A session has an identifier at each end: the header of a message carries that of its receiver,
//! and the F-SEIDs of an establishment tell both. An answer belongs to the session of its request.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Frame, IeType, MessageType, Seid};

use super::filter::FilterArgs;
use crate::exit::CliResult;
use crate::output::{Output, TextStyle};
use crate::source::Packet;
use crate::time::iso;

/// The sessions of a capture, identified by the messages so far.
#[derive(Debug, Default)]
pub(super) struct CaptureSessions {
    sessions: Vec<CaptureSession>,
    by_end: HashMap<(IpAddr, Seid), usize>,
    /// Requests by both ends, sequence number and type: the index of the session, and a digest of
    /// the request's bytes.
    requests: HashMap<(SocketAddr, SocketAddr, u32, u8), (usize, u64)>,
}

/// The messages of one session.
#[derive(Debug, Default)]
struct CaptureSession {
    /// The identifiers of the session, each with the address of the node that chose it.
    ends: Vec<(IpAddr, Seid)>,
    messages: Vec<SessionMessage>,
}

/// A message of a session.
#[derive(Debug)]
struct SessionMessage {
    packet: Packet,
    /// The bytes of this message alone; `packet` has the whole datagram.
    bytes: Vec<u8>,
    src: SocketAddr,
    dst: SocketAddr,
    is_retransmission: bool,
}

impl CaptureSessions {
    /// Adds a message of a session; other messages are ignored.
    pub(super) fn add(&mut self, packet: &Packet, frame: &Frame<'_>) {
        let kind = frame.header.message_type;
        if !kind.is_session() {
            return;
        }
        // Hex text has no addresses; then both ends are the same.
        let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let (src, dst) = packet.ends.unwrap_or((unspecified, unspecified));
        let sequence = frame.header.sequence.get();
        let seid = frame.header.seid.unwrap_or_default();
        let f_seid = f_seid(frame);
        let digest = digest(frame.bytes);
        let (question, request) = match kind.is_request() {
            true => ((src, dst), kind.0),
            false => ((dst, src), kind.0.wrapping_sub(1)),
        };
        let question = (question.0, question.1, sequence, request);
        let asked = self.requests.get(&question).copied();
        // A sequence number that is reused with other contents is another request.
        let asked = asked.filter(|(_, first)| !kind.is_request() || *first == digest);
        let known = self.by_end.get(&(dst.ip(), seid)).copied();
        let known = known.filter(|_| seid.0 != 0);
        let is_retransmission = kind.is_request() && asked.is_some();
        // Answers and retransmissions belong to the session of their request. The SEID of the
        // receiver comes second: it is 0 in an establishment, for example.
        let at = match (asked, known) {
            (Some((at, _)), _) | (None, Some(at)) => at,
            (None, None) => self.begin_session((dst.ip(), seid)),
        };
        if kind.is_request() {
            self.requests.insert(question, (at, digest));
        }
        if let Some(seid) = f_seid {
            self.name(at, (src.ip(), seid));
        }
        self.sessions[at].messages.push(SessionMessage {
            packet: packet.clone(),
            bytes: frame.bytes.to_vec(),
            src,
            dst,
            is_retransmission,
        });
    }

    fn begin_session(&mut self, end: (IpAddr, Seid)) -> usize {
        self.sessions.push(CaptureSession::default());
        let at = self.sessions.len() - 1;
        if end.1.0 != 0 {
            self.name(at, end);
        }
        at
    }

    fn name(&mut self, at: usize, end: (IpAddr, Seid)) {
        self.by_end.insert(end, at);
        if !self.sessions[at].ends.contains(&end) {
            self.sessions[at].ends.push(end);
        }
    }

    /// Returns the messages of the sessions that have this identifier at one end, in order of
    /// capture, as packets of one message each.
    pub(super) fn of(self, seid: Seid) -> Vec<Packet> {
        let has = |session: &CaptureSession| session.ends.iter().any(|(_, end)| *end == seid);
        let messages = self
            .sessions
            .into_iter()
            .filter(has)
            .flat_map(|session| session.messages);
        let mut packets: Vec<Packet> = messages
            .map(|message| Packet {
                bytes: message.bytes,
                ..message.packet
            })
            .collect();
        packets.sort_by_key(|packet| packet.number);
        packets
    }

    /// Prints the ladder of each session that passes the filter, and returns their number.
    pub(super) fn draw(
        mut self,
        filter: &FilterArgs,
        json: bool,
        output: &mut Output,
    ) -> CliResult<usize> {
        for session in &mut self.sessions {
            session
                .messages
                .retain(|message| message.frame().is_some_and(|frame| filter.passes(&frame)));
        }
        let has = |session: &&CaptureSession| {
            let named = |seid| session.ends.iter().any(|(_, end)| *end == seid);
            !session.messages.is_empty() && filter.session.is_none_or(named)
        };
        let mut drawn = 0;
        for session in self.sessions.iter().filter(has) {
            if json {
                output.json(&session.to_json())?;
            } else {
                if drawn > 0 {
                    output.line("")?;
                }
                session.draw(output)?;
            }
            drawn += 1;
        }
        Ok(drawn)
    }
}

impl CaptureSession {
    fn draw(&self, output: &mut Output) -> CliResult {
        let Some(first) = self.messages.first() else {
            return Ok(());
        };
        let ends: Vec<String> = self
            .ends
            .iter()
            .map(|(address, seid)| format!("{seid} at {address}"))
            .collect();
        let title = format!("Session {}", ends.join(", "));
        output.line(output.paint(TextStyle::Bold, title))?;
        let (left, right) = (first.src, first.dst);
        let header = format!("{:>12}  {left:<24}{:>24}", "", right.to_string());
        output.line(output.paint(TextStyle::Faint, header))?;
        for message in &self.messages {
            let since = match (message.packet.time, first.packet.time) {
                (Some(now), Some(start)) => {
                    format!("+{:.6}", now.saturating_sub(start).as_secs_f64())
                }
                _ => format!("#{}", message.packet.number),
            };
            let to_the_right = message.src == left;
            let mut line = format!("{since:>12}  {}", arrow(&message.name(), to_the_right));
            if let Some(cause) = message.cause() {
                _ = write!(line, "  {cause}");
            }
            if message.is_retransmission {
                line.push_str("  again");
            }
            let refused = message.cause().is_some_and(|cause| !cause.is_acceptance());
            match (refused, message.is_retransmission) {
                (true, _) => output.line(output.paint(TextStyle::Red, line))?,
                (false, true) => output.line(output.paint(TextStyle::Yellow, line))?,
                (false, false) => output.line(line)?,
            }
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
        let ends = self.ends.iter().map(
            |(address, seid)| json!({ "address": address.to_string(), "seid": seid.to_string() }),
        );
        let messages = self.messages.iter().map(SessionMessage::to_json);
        json!({ "ends": ends.collect::<Value>(), "messages": messages.collect::<Value>() })
    }
}

impl SessionMessage {
    fn frame(&self) -> Option<Frame<'_>> {
        Frame::decode(&self.bytes).ok()
    }

    fn name(&self) -> String {
        let kind = self.frame().map(|frame| frame.header.message_type);
        let name = kind.and_then(MessageType::name).unwrap_or("?");
        name.to_owned()
    }

    fn cause(&self) -> Option<Cause> {
        let frame = self.frame()?;
        let found = frame.tlvs().flatten().find(|tlv| tlv.ie == IeType::CAUSE)?;
        found.value.first().copied().map(Cause)
    }

    fn to_json(&self) -> Value {
        let header = self.frame().map(|frame| frame.header);
        json!({
            "frame": self.packet.number,
            "time": self.packet.time.map(iso),
            "src": self.src.to_string(),
            "dst": self.dst.to_string(),
            "name": self.name(),
            "sequence": header.map(|header| header.sequence.get()),
            "seid": header.and_then(|header| header.seid).map(|seid| seid.to_string()),
            "cause": self.cause().map(|cause| cause.0),
            "again": self.is_retransmission,
        })
    }
}

/// Returns an arrow of fifty columns with a name on it.
fn arrow(name: &str, to_the_right: bool) -> String {
    let name = format!(" {name} ");
    match to_the_right {
        true => format!("|--{name:-<45}>|"),
        false => format!("|<-{name:-<45}-|"),
    }
}

fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Returns the SEID that a message assigns to its session.
pub(super) fn f_seid(frame: &Frame<'_>) -> Option<Seid> {
    let found = frame
        .tlvs()
        .flatten()
        .find(|tlv| tlv.ie == IeType::F_SEID)?;
    let bytes = found.value.get(1..9)?.first_chunk()?;
    Some(Seid(u64::from_be_bytes(*bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_arrows_have_one_width() {
        let name = "Session Establishment Response";
        assert_eq!(arrow(name, true).len(), arrow(name, false).len());
    }
}
