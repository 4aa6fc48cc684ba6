//! The plan of a replay: the requests of a capture, each with its captured answer.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Header, IeType, MessageType, Seid, Sequence, frames};

use super::super::source::Packet;
use super::answer;

/// The requests of a capture, in its order.
#[derive(Debug, Default)]
pub(super) struct ReplayPlan {
    pub(super) steps: Vec<PlannedRequest>,
    /// Requests that only a node in the UP role sends: no request of the other side triggers them.
    pub(super) left_out: usize,
    /// The last Recovery Time Stamp of each peer, as bytes.
    pub(super) recovery: HashMap<IpAddr, [u8; 4]>,
    /// The Recovery Time Stamp that a peer had when a node gave it a session.
    since: HashMap<(IpAddr, Seid), [u8; 4]>,
}

/// A request to send.
#[derive(Debug)]
pub(super) struct PlannedRequest {
    /// The number of the captured frame.
    pub(super) frame: u64,
    /// The captured sender and receiver.
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    pub(super) header: Header,
    /// The elements, as captured.
    pub(super) body: Vec<u8>,
    /// The step that this one retransmits.
    pub(super) repeats: Option<usize>,
    /// `true` if the sender restarted after it had established the session.
    pub(super) restarted: bool,
    /// The captured answer.
    pub(super) captured: Option<CapturedAnswer>,
}

/// The answer in the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CapturedAnswer {
    pub(super) cause: Option<Cause>,
    /// The session that an establishment created.
    pub(super) session: Option<Seid>,
}

/// The key that pairs an answer with its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RequestKey {
    asks: SocketAddr,
    answers: SocketAddr,
    sequence: Sequence,
    request: MessageType,
}

impl ReplayPlan {
    /// Reads the requests and their answers from `packets`.
    pub(super) fn read(packets: impl IntoIterator<Item = Packet>) -> Self {
        let mut plan = Self::default();
        let mut open: HashMap<RequestKey, Vec<usize>> = HashMap::new();
        for packet in packets {
            // An ICMP error quotes a datagram that was captured already.
            let (Some(ends), false) = (packet.ends, packet.quoted) else {
                continue;
            };
            for frame in frames(&packet.bytes).map_while(Result::ok) {
                plan.message(packet.number, ends, frame.header, frame.body, &mut open);
            }
        }
        plan
    }

    fn message(
        &mut self,
        frame: u64,
        (src, dst): (SocketAddr, SocketAddr),
        header: Header,
        body: &[u8],
        open: &mut HashMap<RequestKey, Vec<usize>>,
    ) {
        let stamp = answer::element(body, IeType::RECOVERY_TIME_STAMP);
        if let Some(stamp) = stamp.and_then(<[u8]>::first_chunk) {
            self.recovery.insert(src.ip(), *stamp);
        }
        let kind = header.message_type;
        if kind.is_request() {
            if matches!(
                kind,
                MessageType::SESSION_REPORT_REQUEST | MessageType::NODE_REPORT_REQUEST
            ) {
                self.left_out += 1;
                return;
            }
            let key = RequestKey {
                asks: src,
                answers: dst,
                sequence: header.sequence,
                request: kind,
            };
            let asked = open.entry(key).or_default();
            let same = |&at: &usize| self.steps[at].body == body;
            let repeats = asked.first().copied().filter(same);
            if repeats.is_none() {
                asked.clear();
            }
            asked.push(self.steps.len());
            self.steps.push(PlannedRequest {
                frame,
                from: src.ip(),
                to: dst.ip(),
                header: Header {
                    follow_on: false,
                    ..header
                },
                body: body.to_vec(),
                repeats,
                restarted: self.restarted(src.ip(), dst.ip(), header.seid),
                captured: None,
            });
        } else if kind.is_response() {
            let key = RequestKey {
                asks: dst,
                answers: src,
                sequence: header.sequence,
                request: MessageType(kind.0 - 1),
            };
            let captured = CapturedAnswer {
                cause: answer::cause(body),
                session: answer::session(body),
            };
            let recovery = self.recovery.get(&dst.ip()).copied();
            if let (Some(session), Some(recovery)) = (captured.session, recovery) {
                self.since.insert((src.ip(), session), recovery);
            }
            for at in open.remove(&key).unwrap_or_default() {
                self.steps[at].captured = Some(captured);
            }
        }
    }

    fn restarted(&self, from: IpAddr, to: IpAddr, session: Option<Seid>) -> bool {
        let since = session.and_then(|session| self.since.get(&(to, session)));
        since.is_some_and(|since| self.recovery.get(&from).is_some_and(|now| now > since))
    }

    /// Returns the senders of requests, in the order of their first request.
    pub(super) fn peers(&self) -> Vec<IpAddr> {
        let mut peers = Vec::new();
        for step in &self.steps {
            if !peers.contains(&step.from) {
                peers.push(step.from);
            }
        }
        peers
    }
}

#[cfg(test)]
impl PlannedRequest {
    /// Returns a request without context.
    pub(super) fn sample(kind: MessageType) -> Self {
        let unspecified = IpAddr::from([0, 0, 0, 0]);
        Self {
            frame: 1,
            from: unspecified,
            to: unspecified,
            header: Header::session(kind, Seid(1), Sequence::new(1)),
            body: Vec::new(),
            repeats: None,
            restarted: false,
            captured: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SMF: &str = "10.0.0.1:8805";
    const UPF: &str = "10.0.0.2:8805";

    fn packet(number: u64, ends: (&str, &str), header: Header, body: &[u8]) -> Packet {
        let mut bytes = Vec::new();
        header.encode(body.len(), &mut bytes).expect("short");
        bytes.extend_from_slice(body);
        Packet {
            number,
            time: Some(Duration::ZERO),
            ends: Some((ends.0.parse().unwrap(), ends.1.parse().unwrap())),
            quoted: false,
            bytes,
        }
    }

    fn establishment(number: u64, sequence: u32) -> Packet {
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let header = Header::session(kind, Seid(0), Sequence::new(sequence));
        packet(number, (SMF, UPF), header, &[0, 60, 0, 5, 0, 10, 0, 0, 1])
    }

    #[test]
    fn answer_is_found_by_sequence_and_type() {
        let kind = MessageType::SESSION_ESTABLISHMENT_RESPONSE;
        let header = Header::session(kind, Seid(1), Sequence::new(8));
        let body = [
            0, 19, 0, 1, 1, 0, 57, 0, 13, 2, 0, 0, 0, 0, 0, 0, 0, 9, 10, 0, 0, 2,
        ];
        let answer = packet(3, (UPF, SMF), header, &body);
        let plan = ReplayPlan::read([establishment(1, 7), establishment(2, 8), answer]);
        assert_eq!(plan.steps.len(), 2);
        assert_eq!(plan.steps[0].captured, None);
        let captured = CapturedAnswer {
            cause: Some(Cause(1)),
            session: Some(Seid(9)),
        };
        assert_eq!(plan.steps[1].captured, Some(captured));
    }

    #[test]
    fn second_copy_of_an_open_request_repeats_it() {
        let plan = ReplayPlan::read([establishment(1, 7), establishment(2, 7)]);
        assert_eq!(plan.steps[1].repeats, Some(0));
    }

    #[test]
    fn datagram_quoted_by_the_network_is_not_sent_again() {
        let mut quoted = establishment(2, 7);
        quoted.quoted = true;
        let plan = ReplayPlan::read([establishment(1, 7), quoted]);
        assert_eq!(plan.steps.len(), 1);
    }

    #[test]
    fn report_of_the_other_role_is_left_out() {
        let kind = MessageType::SESSION_REPORT_REQUEST;
        let header = Header::session(kind, Seid(1), Sequence::new(1));
        let plan = ReplayPlan::read([packet(1, (UPF, SMF), header, &[])]);
        assert!(plan.steps.is_empty());
        assert_eq!(plan.left_out, 1);
    }
}
