//! The peers of a capture, alive again: one socket each, on addresses of their own.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use strowger_pfcp::{Header, MessageType, Sequence, frames};

/// How long one peer waits before the others get a look at what arrived for them.
const TURN: Duration = Duration::from_millis(50);

/// Larger than any datagram.
const BUFFER: usize = 65_536;

/// How long to wait for an answer, and how often to ask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) wait: Duration,
    pub(super) tries: u32,
}

/// A captured peer and the socket that speaks for it.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) captured: IpAddr,
    socket: UdpSocket,
    recovery: [u8; 4],
}

/// All peers of a capture.
#[derive(Debug)]
pub(super) struct Peers {
    peers: Vec<Peer>,
    buffer: Vec<u8>,
}

/// What arrived in answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) body: Vec<u8>,
    pub(super) took: Duration,
}

impl Peers {
    /// Opens a socket towards `to` for each captured peer.
    ///
    /// Towards loopback each gets an address of its own there, the same in every replay: a node
    /// binds the name of a peer to its address. Elsewhere they share the address that the system
    /// chooses, and differ by port.
    pub(super) fn open(
        captured: &[IpAddr],
        recovery: &HashMap<IpAddr, [u8; 4]>,
        to: SocketAddr,
    ) -> io::Result<Self> {
        let mut peers = Vec::with_capacity(captured.len());
        for &captured in captured {
            let local: IpAddr = match to.ip() {
                IpAddr::V4(ip) if ip.is_loopback() => loopback(captured).into(),
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let socket = UdpSocket::bind((local, 0))?;
            socket.connect(to)?;
            let recovery = recovery.get(&captured).copied().unwrap_or_default();
            peers.push(Peer {
                captured,
                socket,
                recovery,
            });
        }
        Ok(Self {
            peers,
            buffer: vec![0; BUFFER],
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter()
    }

    /// Sends a request for the captured peer `from` until it is answered or patience ends.
    pub(super) fn ask(
        &mut self,
        from: IpAddr,
        (header, request): (Header, &[u8]),
        patience: Patience,
    ) -> io::Result<Option<Answer>> {
        let Self { peers, buffer } = self;
        let at = peers
            .iter()
            .position(|peer| peer.captured == from)
            .expect("a peer was opened for everyone who asks");
        let start = Instant::now();
        for _ in 0..patience.tries {
            peers[at].socket.send(request)?;
            let until = Instant::now() + patience.wait;
            loop {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                if let Some(body) = peers[at].listen(left.min(TURN), Some(header), buffer)? {
                    return Ok(Some(Answer {
                        body,
                        took: start.elapsed(),
                    }));
                }
                for (_, other) in peers.iter().enumerate().filter(|(other, _)| *other != at) {
                    other.listen(Duration::ZERO, None, buffer)?;
                }
            }
        }
        Ok(None)
    }
}

impl Peer {
    /// Returns the address that speaks for the peer.
    pub(super) fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Takes what arrives until the answer to `request` is there or `turn` is over.
    fn listen(
        &self,
        turn: Duration,
        request: Option<Header>,
        buffer: &mut [u8],
    ) -> io::Result<Option<Vec<u8>>> {
        let until = Instant::now() + turn;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            self.socket.set_nonblocking(left.is_zero())?;
            if !left.is_zero() {
                self.socket.set_read_timeout(Some(left))?;
            }
            let octets = match self.socket.recv(buffer) {
                Ok(length) => &buffer[..length],
                // A stop and its continuation interrupt a wait that has a limit.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_silence(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            for frame in frames(octets).map_while(Result::ok) {
                if request.is_some_and(|request| answers(frame.header, request)) {
                    return Ok(Some(frame.body.to_vec()));
                }
                self.reply(frame.header)?;
            }
        }
    }

    /// Answers the node's own heartbeats, so that it does not take the peer for dead.
    fn reply(&self, request: Header) -> io::Result<()> {
        if request.message_type != MessageType::HEARTBEAT_REQUEST {
            return Ok(());
        }
        let header = Header::node(MessageType::HEARTBEAT_RESPONSE, request.sequence);
        let mut octets = Vec::with_capacity(16);
        header.encode(8, &mut octets).expect("8 octets fit");
        octets.extend_from_slice(&[0, 96, 0, 4]);
        octets.extend_from_slice(&self.recovery);
        self.socket.set_nonblocking(false)?;
        self.socket.send(&octets).map(drop)
    }
}

/// The address that speaks for a captured one: it ends in the same two octets.
fn loopback(captured: IpAddr) -> Ipv4Addr {
    let octets = match captured {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let (network, host) = octets.split_at(octets.len() - 2);
    let folded = network.iter().fold(0, |sum: u8, octet| {
        sum.wrapping_mul(31).wrapping_add(*octet)
    });
    // 127.0.x.y is where nodes are.
    Ipv4Addr::new(127, folded.max(1), host[0], host[1])
}

fn answers(answer: Header, request: Header) -> bool {
    let version = MessageType::VERSION_NOT_SUPPORTED_RESPONSE;
    let kind = MessageType(request.message_type.0 + 1);
    (answer.message_type == kind || answer.message_type == version)
        && answer.sequence == request.sequence
}

fn is_silence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// Numbers for requests, starting where another run is unlikely to have been a moment ago.
#[derive(Debug)]
pub(super) struct Numbers(Sequence);

impl Numbers {
    pub(super) fn starting_at(value: u32) -> Self {
        Self(Sequence::new(value))
    }

    pub(super) fn take(&mut self) -> Sequence {
        self.0 = self.0.next();
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_have_loopback_addresses_of_their_own() {
        let peers = [
            "127.0.0.3",
            "127.0.0.4",
            "10.0.0.4",
            "192.168.0.4",
            "2001:db8::4",
        ];
        let local = peers.map(|peer| loopback(peer.parse().expect("address")));
        for (at, address) in local.iter().enumerate() {
            assert!(
                address.is_loopback() && address.octets()[1] != 0,
                "{address}"
            );
            assert!(!local[..at].contains(address), "{address}");
        }
    }
}
