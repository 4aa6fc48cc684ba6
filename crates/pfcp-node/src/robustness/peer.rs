//! The sending peer: a socket that responds to requests of the node, and assigns responses to
//! requests.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Frame, Header, IeType, MessageType, Seid, Sequence};

use super::case::element;

/// A socket with its own sequence numbers.
#[derive(Debug)]
pub(super) struct TestPeer {
    socket: UdpSocket,
    pub(super) address: IpAddr,
    sequence: Sequence,
    wait: Duration,
    /// Received responses that have not been taken yet.
    unclaimed: Vec<(Sequence, Vec<u8>)>,
    buffer: Vec<u8>,
}

/// The number of times that a request is sent before it counts as unanswered.
const MAX_TRANSMISSIONS: u32 = 3;
/// The maximum number of kept responses.
const MAX_UNCLAIMED: usize = 1024;

impl TestPeer {
    /// Binds `from`, or an address that the system chooses.
    pub(super) fn bind(
        from: Option<SocketAddr>,
        to: SocketAddr,
        wait: Duration,
    ) -> io::Result<Self> {
        let any: IpAddr = match to.ip() {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind(from.unwrap_or_else(|| (any, 0).into()))?;
        socket.connect(to)?;
        let address = socket.local_addr()?.ip();
        Ok(Self {
            socket,
            address,
            sequence: Sequence::new(0),
            wait,
            unclaimed: Vec::new(),
            buffer: vec![0; 65_536],
        })
    }

    /// Returns a sequence number that this peer has not used.
    pub(super) fn next_sequence(&mut self) -> Sequence {
        self.sequence = self.sequence.next();
        self.sequence
    }

    pub(super) fn send(&self, bytes: &[u8]) {
        // Errors that concern an earlier datagram, such as a closed port, become visible in the
        // responses.
        let _sent = self.socket.send(bytes);
    }

    /// Sends a request, and retransmits it until it is answered or the attempts are used up.
    pub(super) fn ask(
        &mut self,
        message_type: MessageType,
        seid: Option<Seid>,
        body: &[u8],
    ) -> Option<Vec<u8>> {
        let sequence = self.next_sequence();
        let mut header = Header::node(message_type, sequence);
        header.seid = seid;
        let request = message(&header, body).ok()?;
        (0..MAX_TRANSMISSIONS).find_map(|_| {
            self.send(&request);
            self.answers(&[sequence], 1).pop()
        })
    }

    /// Waits for `count` responses to the requests with these numbers.
    pub(super) fn answers(&mut self, sequences: &[Sequence], count: usize) -> Vec<Vec<u8>> {
        let mut answers = self.take_responses(sequences);
        let until = Instant::now() + self.wait;
        while answers.len() < count {
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                break;
            };
            if self.receive(left) {
                answers.extend(self.take_responses(sequences));
            }
        }
        answers
    }

    /// Takes the responses that have been received for requests with these numbers.
    pub(super) fn take_responses(&mut self, sequences: &[Sequence]) -> Vec<Vec<u8>> {
        let (come, other) = std::mem::take(&mut self.unclaimed)
            .into_iter()
            .partition(|(sequence, _)| sequences.contains(sequence));
        self.unclaimed = other;
        let bytes = |(_, bytes)| bytes;
        let come: Vec<(Sequence, Vec<u8>)> = come;
        come.into_iter().map(bytes).collect()
    }

    /// Takes the responses that no request waits for any more.
    pub(super) fn take_unclaimed(&mut self) -> Vec<Vec<u8>> {
        let come = std::mem::take(&mut self.unclaimed);
        come.into_iter().map(|(_, bytes)| bytes).collect()
    }

    /// Receives one datagram. Returns `false` if none arrived in time.
    fn receive(&mut self, wait: Duration) -> bool {
        let wait = wait.max(Duration::from_millis(1));
        if self.socket.set_read_timeout(Some(wait)).is_err() {
            return false;
        }
        let length = match self.socket.recv(&mut self.buffer) {
            Ok(length) => length,
            Err(error) => {
                if error.kind() == ErrorKind::ConnectionRefused {
                    // The port is closed and will stay closed for a while.
                    std::thread::sleep(wait.min(Duration::from_millis(50)));
                }
                return false;
            }
        };
        let bytes = self.buffer[..length].to_vec();
        self.take(&bytes);
        true
    }

    fn take(&mut self, bytes: &[u8]) {
        let Ok((header, _)) = Header::decode(bytes) else {
            self.keep_unclaimed(Sequence::new(0), bytes);
            return;
        };
        if !header.message_type.is_request() {
            self.keep_unclaimed(header.sequence, bytes);
            return;
        }
        let mut body = BodyBuilder::new();
        match header.message_type {
            MessageType::HEARTBEAT_REQUEST => {
                body = body.with(IeType::RECOVERY_TIME_STAMP, &RECOVERY_TIME.to_be_bytes());
            }
            MessageType::SESSION_REPORT_REQUEST => body = body.cause(Cause::REQUEST_ACCEPTED),
            _ => return,
        }
        if let Ok(answer) = message(&answer_header(&header, None), body.as_slice()) {
            self.send(&answer);
        }
    }

    fn keep_unclaimed(&mut self, sequence: Sequence, bytes: &[u8]) {
        if self.unclaimed.len() == MAX_UNCLAIMED {
            self.unclaimed.remove(0);
        }
        self.unclaimed.push((sequence, bytes.to_vec()));
    }

    /// Returns `true` if a heartbeat is answered.
    pub(super) fn is_heard(&mut self) -> bool {
        let body =
            BodyBuilder::new().with(IeType::RECOVERY_TIME_STAMP, &RECOVERY_TIME.to_be_bytes());
        let answer = self.ask(MessageType::HEARTBEAT_REQUEST, None, body.as_slice());
        answer.is_some_and(|bytes| bytes.get(1) == Some(&2))
    }
}

/// The Recovery Time Stamp of all peers of a test, in seconds since 1900. It is later than any in
/// captured messages, so that none of those indicates a restart.
pub(super) const RECOVERY_TIME: u32 = 0xf000_0001;

/// Returns the cause of a response.
pub(super) fn cause_of(answer: &[u8]) -> Option<Cause> {
    Some(Cause(*element(answer, IeType::CAUSE)?.first()?))
}

/// Returns the SEID that a response assigns to the session.
pub(super) fn f_seid_of(answer: &[u8]) -> Option<Seid> {
    let seid = element(answer, IeType::F_SEID)?.get(1..9)?.first_chunk()?;
    Some(Seid(u64::from_be_bytes(*seid)))
}

/// Returns the header of a response.
pub(super) fn header_of(answer: &[u8]) -> Option<Header> {
    Frame::decode(answer).ok().map(|frame| frame.header)
}
