//! The peers of a capture, replayed: one socket each, on separate addresses.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use strowger_pfcp::{Header, MessageType, Sequence, frames};

/// Time that one peer waits before the sockets of the others are read.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Larger than any datagram.
const BUFFER: usize = 65_536;

/// Time to wait for an answer, and number of attempts.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryPolicy {
    pub(super) wait: Duration,
    pub(super) tries: u32,
}

/// A captured peer and the socket that it sends from.
#[derive(Debug)]
pub(super) struct ReplayPeer {
    pub(super) captured: IpAddr,
    socket: UdpSocket,
    recovery: [u8; 4],
}

/// All peers of a capture.
#[derive(Debug)]
pub(super) struct ReplayPeers {
    peers: Vec<ReplayPeer>,
    buffer: Vec<u8>,
}

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerAnswer {
    pub(super) body: Vec<u8>,
    pub(super) took: Duration,
}

impl ReplayPeers {
    /// Opens a socket towards `to` for each captured peer.
    ///
    /// If `to` is a loopback address, each peer gets a loopback address of its own, the same in
    /// every replay: a node binds the name of a peer to its address, and a loopback address does
    /// not identify a host to others. Otherwise they share the address that the system chooses, and
    /// differ by port.
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
            peers.push(ReplayPeer {
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

    pub(super) fn iter(&self) -> impl Iterator<Item = &ReplayPeer> {
        self.peers.iter()
    }

    /// Sends a request for the captured peer `from` until it is answered or the attempts are used
    /// up.
    pub(super) fn ask(
        &mut self,
        from: IpAddr,
        (header, request): (Header, &[u8]),
        retry: RetryPolicy,
    ) -> io::Result<Option<PeerAnswer>> {
        let Self { peers, buffer } = self;
        let at = peers
            .iter()
            .position(|peer| peer.captured == from)
            .expect("a peer was opened for everyone who asks");
        let start = Instant::now();
        for _ in 0..retry.tries {
            peers[at].socket.send(request)?;
            let until = Instant::now() + retry.wait;
            loop {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                if let Some(body) =
                    peers[at].listen(left.min(POLL_INTERVAL), Some(header), buffer)?
                {
                    return Ok(Some(PeerAnswer {
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

impl ReplayPeer {
    /// Returns the address that the peer sends from.
    pub(super) fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Receives messages until the answer to `request` arrives or `turn` is over.
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
            let bytes = match self.socket.recv(buffer) {
                Ok(length) => &buffer[..length],
                // Stopping and continuing the process interrupts a wait that has a timeout.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_silence(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            for frame in frames(bytes).map_while(Result::ok) {
                if request.is_some_and(|request| answers(frame.header, request)) {
                    return Ok(Some(frame.body.to_vec()));
                }
                self.reply(frame.header)?;
            }
        }
    }

    /// Answers heartbeats of the node, so that it does not consider the peer dead.
    fn reply(&self, request: Header) -> io::Result<()> {
        if request.message_type != MessageType::HEARTBEAT_REQUEST {
            return Ok(());
        }
        let header = Header::node(MessageType::HEARTBEAT_RESPONSE, request.sequence);
        let mut bytes = Vec::with_capacity(16);
        header.encode(8, &mut bytes).expect("8 bytes fit");
        bytes.extend_from_slice(&[0, 96, 0, 4]);
        bytes.extend_from_slice(&self.recovery);
        self.socket.set_nonblocking(false)?;
        self.socket.send(&bytes).map(drop)
    }
}

/// Returns the loopback address for a captured one: the same if it is a loopback address, else one
/// that ends in the same two bytes.
fn loopback(captured: IpAddr) -> Ipv4Addr {
    if let IpAddr::V4(address) = captured
        && address.is_loopback()
    {
        return address;
    }
    let bytes = match captured {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let (network, host) = bytes.split_at(bytes.len() - 2);
    let folded = network
        .iter()
        .fold(0, |sum: u8, byte| sum.wrapping_mul(31).wrapping_add(*byte));
    // Nodes use 127.0.x.y.
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

/// Sequence numbers for requests. They start at a value that a recent run is unlikely to have used.
#[derive(Debug)]
pub(super) struct SequenceNumbers(Sequence);

impl SequenceNumbers {
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
            let own = peers[at].parse() == Ok(*address);
            assert!(
                address.is_loopback() && (own || address.octets()[1] != 0),
                "{address}"
            );
            assert!(!local[..at].contains(address), "{address}");
        }
    }
}
