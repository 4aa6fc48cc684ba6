//! Which messages belong to one session, and their ladder.
//!
//! A session has an identifier at each end: the header of a message has that of its receiver, and
//! the F-SEIDs of an establishment tell both. An answer belongs to where its request does.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Frame, IeType, MessageType, Seid};

use super::filter::FilterArgs;
use crate::command::pfcp::source::Packet;
use crate::command::pfcp::time::iso;
use crate::exit::Done;
use crate::output::{Ink, Output};

/// The sessions of a capture, by the messages that named them so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    by_end: HashMap<(IpAddr, Seid), usize>,
    /// Requests by both ends, number and type: the session, and a digest of the octets.
    asked: HashMap<(SocketAddr, SocketAddr, u32, u8), (usize, u64)>,
}

/// The messages of one session.
#[derive(Debug, Default)]
struct Call {
    /// Its identifiers, each with the address of who gave it.
    ends: Vec<(IpAddr, Seid)>,
    steps: Vec<Step>,
}

/// One message.
#[derive(Debug)]
struct Step {
    packet: Packet,
    /// Where its octets are in the datagram.
    octets: Vec<u8>,
    src: SocketAddr,
    dst: SocketAddr,
    again: bool,
}

impl Calls {
    /// Takes a message of a session; others are nobody's.
    pub(super) fn take(&mut self, packet: &Packet, frame: &Frame<'_>) {
        let kind = frame.header.message_type;
        if !kind.is_session() {
            return;
        }
        // Hex text says nothing about addresses; then both ends are one.
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let (src, dst) = packet.ends.unwrap_or((nowhere, nowhere));
        let sequence = frame.header.sequence.get();
        let seid = frame.header.seid.unwrap_or_default();
        let f_seid = f_seid(frame);
        let digest = digest(frame.octets);
        let (question, request) = match kind.is_request() {
            true => ((src, dst), kind.0),
            false => ((dst, src), kind.0.wrapping_sub(1)),
        };
        let question = (question.0, question.1, sequence, request);
        let asked = self.asked.get(&question).copied();
        // A number that is used again for something else is another request.
        let asked = asked.filter(|(_, first)| !kind.is_request() || *first == digest);
        let known = self.by_end.get(&(dst.ip(), seid)).copied();
        let known = known.filter(|_| seid.0 != 0);
        let again = kind.is_request() && asked.is_some();
        let at = match (asked, known) {
            (Some((at, _)), _) | (None, Some(at)) => at,
            (None, None) => self.begin((dst.ip(), seid)),
        };
        if kind.is_request() {
            self.asked.insert(question, (at, digest));
        }
        if let Some(seid) = f_seid {
            self.name(at, (src.ip(), seid));
        }
        self.calls[at].steps.push(Step {
            packet: packet.clone(),
            octets: frame.octets.to_vec(),
            src,
            dst,
            again,
        });
    }

    fn begin(&mut self, end: (IpAddr, Seid)) -> usize {
        self.calls.push(Call::default());
        let at = self.calls.len() - 1;
        if end.1.0 != 0 {
            self.name(at, end);
        }
        at
    }

    fn name(&mut self, at: usize, end: (IpAddr, Seid)) {
        self.by_end.insert(end, at);
        if !self.calls[at].ends.contains(&end) {
            self.calls[at].ends.push(end);
        }
    }

    /// The messages of the sessions that have this identifier at one end, in their order, as
    /// packets of one message.
    pub(super) fn of(self, seid: Seid) -> Vec<Packet> {
        let has = |call: &Call| call.ends.iter().any(|(_, end)| *end == seid);
        let steps = self
            .calls
            .into_iter()
            .filter(has)
            .flat_map(|call| call.steps);
        let mut packets: Vec<Packet> = steps
            .map(|step| Packet {
                octets: step.octets,
                ..step.packet
            })
            .collect();
        packets.sort_by_key(|packet| packet.number);
        packets
    }

    /// Prints the ladder of each session that the filter lets through; returns how many.
    pub(super) fn draw(
        mut self,
        filter: &FilterArgs,
        json: bool,
        output: &mut Output,
    ) -> Done<usize> {
        for call in &mut self.calls {
            call.steps
                .retain(|step| step.frame().is_some_and(|frame| filter.passes(&frame)));
        }
        let has = |call: &&Call| {
            let named = |seid| call.ends.iter().any(|(_, end)| *end == seid);
            !call.steps.is_empty() && filter.session.is_none_or(named)
        };
        let mut drawn = 0;
        for call in self.calls.iter().filter(has) {
            if json {
                output.json(&call.to_json())?;
            } else {
                if drawn > 0 {
                    output.line("")?;
                }
                call.draw(output)?;
            }
            drawn += 1;
        }
        Ok(drawn)
    }
}

impl Call {
    fn draw(&self, output: &mut Output) -> Done {
        let Some(first) = self.steps.first() else {
            return Ok(());
        };
        let ends: Vec<String> = self
            .ends
            .iter()
            .map(|(address, seid)| format!("{seid} at {address}"))
            .collect();
        let title = format!("Session {}", ends.join(", "));
        output.line(output.paint(Ink::Bold, title))?;
        let (left, right) = (first.src, first.dst);
        let header = format!("{:>12}  {left:<24}{:>24}", "", right.to_string());
        output.line(output.paint(Ink::Faint, header))?;
        for step in &self.steps {
            let since = match (step.packet.time, first.packet.time) {
                (Some(now), Some(start)) => {
                    format!("+{:.6}", now.saturating_sub(start).as_secs_f64())
                }
                _ => format!("#{}", step.packet.number),
            };
            let to_the_right = step.src == left;
            let mut line = format!("{since:>12}  {}", arrow(&step.name(), to_the_right));
            if let Some(cause) = step.cause() {
                _ = write!(line, "  {cause}");
            }
            if step.again {
                line.push_str("  again");
            }
            let refused = step.cause().is_some_and(|cause| !cause.is_acceptance());
            match (refused, step.again) {
                (true, _) => output.line(output.paint(Ink::Red, line))?,
                (false, true) => output.line(output.paint(Ink::Yellow, line))?,
                (false, false) => output.line(line)?,
            }
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
        let ends = self.ends.iter().map(
            |(address, seid)| json!({ "address": address.to_string(), "seid": seid.to_string() }),
        );
        let steps = self.steps.iter().map(Step::to_json);
        json!({ "ends": ends.collect::<Value>(), "messages": steps.collect::<Value>() })
    }
}

impl Step {
    fn frame(&self) -> Option<Frame<'_>> {
        Frame::decode(&self.octets).ok()
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
            "again": self.again,
        })
    }
}

/// An arrow of fifty columns with a name on it.
fn arrow(name: &str, to_the_right: bool) -> String {
    let name = format!(" {name} ");
    match to_the_right {
        true => format!("|--{name:-<45}>|"),
        false => format!("|<-{name:-<45}-|"),
    }
}

fn digest(octets: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    octets.hash(&mut hasher);
    hasher.finish()
}

/// The identifier that a message gives its session.
pub(super) fn f_seid(frame: &Frame<'_>) -> Option<Seid> {
    let found = frame
        .tlvs()
        .flatten()
        .find(|tlv| tlv.ie == IeType::F_SEID)?;
    let octets = found.value.get(1..9)?.first_chunk()?;
    Some(Seid(u64::from_be_bytes(*octets)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_arrows_are_of_one_width() {
        let name = "Session Establishment Response";
        assert_eq!(arrow(name, true).len(), arrow(name, false).len());
    }
}
