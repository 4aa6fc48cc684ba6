//! A node in the UP role that only answers requests.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};

use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Header, MessageType, Seid, frames};

/// Answers on a loopback socket until it is dropped.
pub(crate) struct Upf {
    address: SocketAddr,
    answering: Option<JoinHandle<ReceivedRequests>>,
}

/// The requests that a [`Upf`] received.
#[derive(Debug, Default)]
pub(crate) struct ReceivedRequests {
    pub(crate) requests: u64,
    /// Requests for a session that was never created here, or was deleted.
    pub(crate) unknown_sessions: u64,
    pub(crate) peers: HashSet<SocketAddr>,
    sessions: HashSet<Seid>,
    last: u64,
}

/// A byte that starts no message: a request to close the socket.
const STOP: [u8; 1] = [0];

impl Upf {
    /// Starts to answer requests with `cause`; with `None`, never answers.
    pub(crate) fn start(cause: Option<Cause>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
        let address = socket.local_addr().expect("bound");
        let answering = thread::spawn(move || {
            let mut seen = ReceivedRequests::default();
            let mut buffer = vec![0; 65_536];
            loop {
                let (length, peer) = match socket.recv_from(&mut buffer) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    received => received.expect("the socket is open"),
                };
                if buffer[..length] == STOP {
                    return seen;
                }
                for frame in frames(&buffer[..length]) {
                    let header = frame.expect("requests are messages").header;
                    seen.peers.insert(peer);
                    if let Some(answer) = seen.answer(header, cause) {
                        socket.send_to(&answer, peer).expect("the peer is there");
                    }
                }
            }
        });
        Self {
            address,
            answering: Some(answering),
        }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Stops, and returns the requests received.
    pub(crate) fn stop(mut self) -> ReceivedRequests {
        let answering = self.answering.take().expect("stopped once");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
        socket
            .send_to(&STOP, self.address)
            .expect("loopback takes it");
        answering.join().expect("the answers were sent")
    }
}

impl ReceivedRequests {
    fn answer(&mut self, request: Header, cause: Option<Cause>) -> Option<Vec<u8>> {
        self.requests += 1;
        let kind = request.message_type;
        if let (Some(seid), true) = (request.seid, kind != MessageType(50)) {
            let known = match kind {
                MessageType::SESSION_DELETION_REQUEST => self.sessions.remove(&seid),
                _ => self.sessions.contains(&seid),
            };
            self.unknown_sessions += u64::from(!known);
        }
        let mut body = match kind {
            MessageType::HEARTBEAT_REQUEST => vec![0, 96, 0, 4, 1, 2, 3, 4],
            _ => vec![0, 19, 0, 1, cause?.0],
        };
        if kind == MessageType::SESSION_ESTABLISHMENT_REQUEST {
            self.last += 1;
            self.sessions.insert(Seid(self.last));
            body.extend_from_slice(&[0, 57, 0, 13, 2]);
            body.extend_from_slice(&self.last.to_be_bytes());
            body.extend_from_slice(&[127, 0, 0, 1]);
        }
        let header = Header {
            message_type: MessageType(kind.0 + 1),
            ..request
        };
        let mut bytes = Vec::new();
        header.encode(body.len(), &mut bytes).expect("short");
        bytes.extend_from_slice(&body);
        cause.map(|_| bytes)
    }
}
