//! Peers that speak PFCP byte by byte, and retransmit requests that are not answered.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

use strowger_pfcp::ie::{Cause, FSeid, NodeId, PdrId, Precedence, UpdatePdr};
use strowger_pfcp::message::{
    AssociationSetupRequest, Body, HeartbeatRequest, SessionDeletionRequest,
    SessionEstablishmentRequest, SessionModificationRequest,
};
use strowger_pfcp::{Frame, IeType, Message, MessageType, Seid, Sequence};
use strowger_pfcp_node::SessionRules;

/// The limit of every wait.
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// A peer in the SMF role with a loopback address of its own.
#[derive(Debug)]
pub(crate) struct Peer {
    socket: UdpSocket,
    pub(crate) address: Ipv4Addr,
    sequence: Sequence,
    next_seid: u64,
    /// Messages that arrived while another one was awaited.
    unread: Vec<Vec<u8>>,
    /// Requests that were retransmitted, and may be answered more than once.
    retransmitted: Vec<Sequence>,
}

/// The time after which a request is retransmitted.
const T1: Duration = Duration::from_secs(1);

/// The Recovery Time Stamp of every peer in these tests, as the bad inputs use it.
pub(crate) const STARTED: u32 = 0x0102_0304;

impl Peer {
    /// Binds `127.0.0.last` and connects to the node at `to`.
    pub(crate) fn bind(last: u8, to: &str) -> Self {
        let address = Ipv4Addr::new(127, 0, 0, last);
        let socket = UdpSocket::bind((address, 0)).expect("loopback has ports");
        socket.connect(to).expect("loopback has routes");
        socket.set_read_timeout(Some(T1)).expect("a timeout");
        Self {
            socket,
            address,
            sequence: Sequence::new(1),
            // Far from those that bad inputs name.
            next_seid: 1 << 40,
            unread: Vec::new(),
            retransmitted: Vec::new(),
        }
    }

    /// Binds and associates.
    pub(crate) fn associated(last: u8, to: &str) -> Self {
        let mut peer = Self::bind(last, to);
        assert_eq!(peer.associate(STARTED), Cause::REQUEST_ACCEPTED);
        peer
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&self, bytes: &[u8]) {
        self.socket.send(bytes).expect("loopback takes it");
    }

    /// Takes the messages that arrived while another one was awaited.
    pub(crate) fn take_unread(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.unread)
    }

    /// Waits for one more message; `None` if none arrives in a long time.
    pub(crate) fn next(&self) -> Option<Vec<u8>> {
        (0..WAIT_LIMIT.as_secs() / T1.as_secs()).find_map(|_| self.receive())
    }

    /// Takes the messages that have arrived, without waiting.
    pub(crate) fn drain(&mut self) -> Vec<Vec<u8>> {
        self.socket.set_nonblocking(true).expect("a mode");
        let mut all = self.take_unread();
        while let Some(bytes) = self.receive() {
            all.push(bytes);
        }
        self.socket.set_nonblocking(false).expect("a mode");
        all
    }

    fn receive(&self) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 65_536];
        let received = loop {
            match self.socket.recv(&mut buffer) {
                // A signal arrived, or the machine was suspended.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => break received,
            }
        };
        match received {
            Ok(length) => Some(buffer[..length].to_vec()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// A sequence number that this peer has not used.
    pub(crate) fn next_sequence(&mut self) -> Sequence {
        self.sequence = self.sequence.next();
        self.sequence
    }

    /// Sends a request until it is answered.
    pub(crate) fn ask(&mut self, request: &Message) -> Vec<u8> {
        let bytes = request.encode().expect("it fits");
        let answer = request.header.message_type.response().expect("a request");
        let sequence = request.header.sequence;
        for turn in 0..WAIT_LIMIT.as_secs() / T1.as_secs() {
            if turn == 1 {
                self.retransmitted.push(sequence);
            }
            self.send(&bytes);
            while let Some(bytes) = self.receive() {
                let header = Frame::decode(&bytes).map(|frame| frame.header);
                match header {
                    Ok(header) if (header.message_type, header.sequence) == (answer, sequence) => {
                        return bytes;
                    }
                    Ok(header) if self.retransmitted.contains(&header.sequence) => {}
                    _ => self.unread.push(bytes),
                }
            }
        }
        panic!("no answer to {request}");
    }

    fn ask_node(&mut self, body: impl Into<Body>) -> Vec<u8> {
        let message = Message::node(self.next_sequence(), body);
        self.ask(&message)
    }

    fn ask_session(&mut self, seid: Seid, body: impl Into<Body>) -> Vec<u8> {
        let message = Message::session(seid, self.next_sequence(), body);
        self.ask(&message)
    }

    /// Sets the association up, as a node that started at `recovery`.
    pub(crate) fn associate(&mut self, recovery: u32) -> Cause {
        self.associate_as(NodeId::from(IpAddr::from(self.address)), recovery)
    }

    /// Sets an association up under any Node ID.
    pub(crate) fn associate_as(&mut self, node: NodeId, recovery: u32) -> Cause {
        cause(&self.ask_node(AssociationSetupRequest::new(node, recovery)))
    }

    /// Waits until the node has read everything that was sent before.
    pub(crate) fn heartbeat(&mut self) {
        self.ask_node(HeartbeatRequest::new(STARTED));
    }

    /// Establishes a session for a UE; returns the SEID that the node chose, or the cause.
    pub(crate) fn establish(&mut self, ue: Ipv4Addr) -> Result<Seid, Cause> {
        let rules = SessionRules::pdu_session(ue.into());
        self.establish_with(|request| {
            request
                .create_pdrs(rules.pdrs().to_vec())
                .create_fars(rules.fars().to_vec())
        })
    }

    /// Establishes a session with the request that `rules` completes.
    pub(crate) fn establish_with(
        &mut self,
        rules: impl FnOnce(SessionEstablishmentRequest) -> SessionEstablishmentRequest,
    ) -> Result<Seid, Cause> {
        self.next_seid += 1;
        let address = IpAddr::from(self.address);
        let f_seid = FSeid::new(Seid(self.next_seid), address);
        let request = rules(SessionEstablishmentRequest::new(
            NodeId::from(address),
            f_seid,
        ));
        let answer = self.ask_session(Seid(0), request);
        match cause(&answer) {
            Cause::REQUEST_ACCEPTED => Ok(f_seid_of(&answer).expect("accepted")),
            cause => Err(cause),
        }
    }

    /// Modifies a session so that it must have the second PDR of its establishment.
    pub(crate) fn modify(&mut self, seid: Seid) -> Cause {
        let update = UpdatePdr::new(PdrId(2)).precedence(Precedence(255));
        let request = SessionModificationRequest::new().update_pdrs([update]);
        cause(&self.ask_session(seid, request))
    }

    pub(crate) fn delete(&mut self, seid: Seid) -> Cause {
        cause(&self.ask_session(seid, SessionDeletionRequest::new()))
    }
}

/// The value of the first top-level element of this type in a message.
pub(crate) fn value(bytes: &[u8], ie: IeType) -> Option<&[u8]> {
    let frame = Frame::decode(bytes).ok()?;
    let mut all = frame.tlvs().filter_map(Result::ok);
    all.find(|tlv| tlv.ie == ie).map(|tlv| tlv.value)
}

/// The cause of a response.
pub(crate) fn cause(bytes: &[u8]) -> Cause {
    let value = value(bytes, IeType::CAUSE).expect("an answer has a cause");
    Cause(value[0])
}

/// The SEID that a node gave to a session that it accepted.
pub(crate) fn f_seid_of(bytes: &[u8]) -> Option<Seid> {
    let frame = Frame::decode(bytes).ok()?;
    if frame.header.message_type != MessageType::SESSION_ESTABLISHMENT_RESPONSE {
        return None;
    }
    let seid = value(bytes, IeType::F_SEID)?.get(1..9)?.first_chunk()?;
    Some(Seid(u64::from_be_bytes(*seid)))
}
