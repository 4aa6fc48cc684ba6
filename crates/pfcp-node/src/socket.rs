//! UDP sockets: bound all together or not at all, read in batches, and written without waiting.

mod batched;
mod fault_injector;

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;

use strowger::{Accepts, ActorRef};
use strowger_pfcp::Seid;
use strowger_pfcp::association::NodeName;
use strowger_pfcp::endpoint::Transmit;
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::scenario::FaultScenario;
pub(crate) use batched::ReceiveBuffers;
use fault_injector::FaultInjector;

/// The maximum number of datagrams in a batch, so that timers and responses are not delayed.
const MAX_BATCH: usize = 64;
/// The maximum number of bytes in a batch.
const MAX_BATCH_BYTES: usize = 256 * 1024;

/// The error returned when an address cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}{}", hint(.address, .source))]
pub struct BindError {
    /// Address that could not be bound.
    pub address: SocketAddr,
    /// The I/O error.
    pub source: io::Error,
}

fn hint(address: &SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => format!(
            "; another process has port {}: stop it, or give port 0 to let the system choose one",
            address.port()
        ),
        ErrorKind::AddrNotAvailable => "; no interface of this host has that address".to_owned(),
        ErrorKind::PermissionDenied => "; ports below 1024 need a privilege".to_owned(),
        _ => String::new(),
    }
}

/// The sockets of an endpoint, shared by its incarnations.
#[derive(Debug)]
pub(crate) struct Sockets {
    sockets: Vec<(SocketAddr, Arc<DatagramSocket>)>,
    limit: usize,
    /// The faults to inject into received datagrams, and the Node ID for injected responses.
    scenario: Option<(FaultScenario, NodeName)>,
}

/// The source and destination of datagrams.
#[derive(Debug)]
enum DatagramSocket {
    Udp(UdpSocket),
    /// The network of a simulation.
    #[cfg(test)]
    Simulated(crate::simulation::SimulatedSocket),
}

impl DatagramSocket {
    fn poll_recv_ready(&self, cx: &mut std::task::Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Udp(socket) => socket.poll_recv_ready(cx),
            #[cfg(test)]
            Self::Simulated(plug) => plug.poll_ready(cx).map(Ok),
        }
    }

    /// Appends the available datagrams to `batch`; returns `WouldBlock` if there are no more.
    fn try_receive_batch(&self, buffers: &mut ReceiveBuffers, batch: &mut Batch) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.try_io(Interest::READABLE, || buffers.take(socket, batch)),
            #[cfg(test)]
            Self::Simulated(plug) => {
                let room = buffers.first_buffer();
                let received = plug.take(room);
                let (length, peer) = received.ok_or(ErrorKind::WouldBlock)?;
                batch.push(peer, &room[..length]);
                Ok(())
            }
        }
    }

    /// Passes the first of `datagrams` to the system, and more if the system accepts several at
    /// once. Returns the number that it accepted.
    fn try_send_batch(&self, datagrams: &[(SocketAddr, &[u8])]) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => batched::send_batch(socket, datagrams),
            #[cfg(test)]
            Self::Simulated(_) => {
                let Some((peer, bytes)) = datagrams.first() else {
                    return Ok(0);
                };
                self.try_send_to(bytes, *peer).map(|_| 1)
            }
        }
    }

    fn try_send_to(&self, bytes: &[u8], peer: SocketAddr) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => socket.try_send_to(bytes, peer),
            #[cfg(test)]
            Self::Simulated(plug) => plug.send(bytes, peer),
        }
    }
}

/// Datagrams that one socket received, in one allocation.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The index of the socket.
    pub(crate) socket: usize,
    bytes: Vec<u8>,
    datagrams: Vec<(SocketAddr, usize)>,
}

impl Sockets {
    /// Binds all addresses; datagrams longer than `limit` are cut off and not processed.
    pub(crate) async fn bind(addresses: &[SocketAddr], limit: usize) -> Result<Self, BindError> {
        let mut sockets = Vec::with_capacity(addresses.len());
        for &address in addresses {
            let failed = |source| BindError { address, source };
            let socket = UdpSocket::bind(address).await.map_err(failed)?;
            let local = socket.local_addr().map_err(failed)?;
            // Until the reactor has polled the socket once, `try_send_to` returns `WouldBlock`: the
            // first datagram would be lost and wait for its retransmission.
            socket.writable().await.map_err(failed)?;
            sockets.push((local, Arc::new(DatagramSocket::Udp(socket))));
        }
        Ok(Self {
            sockets,
            limit,
            scenario: None,
        })
    }

    /// Creates a socket that is connected to the network of a simulation.
    #[cfg(test)]
    pub(crate) fn simulated(address: SocketAddr, plug: crate::simulation::SimulatedSocket) -> Self {
        let source = Arc::new(DatagramSocket::Simulated(plug));
        Self {
            sockets: vec![(address, source)],
            limit: 65_535,
            scenario: None,
        }
    }

    /// Applies a scenario to received datagrams; `name` is the Node ID in its responses.
    pub(crate) fn inject_faults(&mut self, scenario: FaultScenario, name: NodeName) {
        self.scenario = Some((scenario, name));
    }

    pub(crate) fn len(&self) -> usize {
        self.sockets.len()
    }

    /// Returns the bound addresses, with the ports that the system chose.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(|(address, _)| *address).collect()
    }

    /// Returns the local address of a socket.
    pub(crate) fn address(&self, socket: usize) -> SocketAddr {
        let unspecified = || SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        self.sockets
            .get(socket)
            .map_or_else(unspecified, |(address, _)| *address)
    }

    /// Returns the first socket that can send to `peer`.
    pub(crate) fn for_peer(&self, peer: SocketAddr) -> usize {
        let fits = |address: &SocketAddr| {
            address.is_ipv4() == peer.is_ipv4()
                && (address.ip().is_unspecified()
                    || address.ip().is_loopback() == peer.ip().is_loopback())
        };
        self.sockets
            .iter()
            .position(|(address, _)| fits(address))
            .unwrap_or_default()
    }

    /// Returns the socket that a datagram is sent from.
    pub(crate) fn socket_for(&self, transmit: &Transmit) -> usize {
        match transmit.local {
            Some(local) => usize::from(local),
            None => self.for_peer(transmit.peer),
        }
    }

    /// Passes a datagram to the system. Returns `false` if the system does not accept it now.
    pub(crate) fn send(&self, socket: usize, peer: SocketAddr, bytes: &[u8]) -> bool {
        let Some((_, socket)) = self.sockets.get(socket) else {
            return false;
        };
        let changed = self.scenario.as_ref();
        let changed = changed.and_then(|(scenario, _)| scenario.with_changed_time_stamp(bytes));
        let bytes = changed.as_deref().unwrap_or(bytes);
        socket.try_send_to(bytes, peer).is_ok()
    }

    /// Passes datagrams to the system, several per call where possible. Returns the number that it
    /// does not accept now.
    pub(crate) fn send_all(&self, outgoing: &[Transmit]) -> u64 {
        let mut refused = 0;
        let from = |transmit: &Transmit| self.socket_for(transmit);
        for run in outgoing.chunk_by(|one, next| from(one) == from(next)) {
            let socket = run.first().and_then(|first| self.sockets.get(from(first)));
            refused += match (socket, &self.scenario) {
                (None, _) => run.len(),
                (Some((_, socket)), None) => send_from(socket, run),
                (Some(_), Some(_)) => {
                    let send = |one: &&Transmit| !self.send(from(one), one.peer, &one.bytes);
                    run.iter().filter(send).count()
                }
            };
        }
        u64::try_from(refused).unwrap_or(u64::MAX)
    }

    /// Waits until a socket is readable and receives its datagrams, of which there may be none.
    /// Returns `None` if no socket can be read.
    pub(crate) async fn receive(&self, buffers: &mut ReceiveBuffers) -> Option<Batch> {
        let ready = poll_fn(|cx| {
            let mut readable = false;
            for (at, (_, socket)) in self.sockets.iter().enumerate() {
                match socket.poll_recv_ready(cx) {
                    Poll::Ready(Ok(())) => return Poll::Ready(Some(at)),
                    Poll::Ready(Err(_)) => {}
                    Poll::Pending => readable = true,
                }
            }
            match readable {
                true => Poll::Pending,
                false => Poll::Ready(None),
            }
        });
        let at = ready.await?;
        let mut batch = Batch::empty(at);
        // The endpoint reads the sockets next and reports the error.
        let _ = batch.take(&self.sockets.get(at)?.1, buffers);
        Some(batch)
    }

    /// Reads one socket into the mailbox of `owner` until reading fails or the owner is gone. A
    /// full mailbox makes this wait, and the system drops datagrams that exceed the socket buffer.
    pub(crate) fn read<M: Accepts<Batch>>(
        &self,
        socket: usize,
        owner: ActorRef<M>,
    ) -> impl Future<Output = ()> + Send + 'static {
        self.read_with_faults(socket, owner, |_| None)
    }

    /// Reads one socket as [`Sockets::read`] does, and applies the scenario if there is one.
    /// `named` returns the peer's SEID of a session.
    pub(crate) fn read_with_faults<M: Accepts<Batch>>(
        &self,
        socket: usize,
        owner: ActorRef<M>,
        named: impl Fn(Seid) -> Option<Seid> + Send + Sync + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let source = self
            .sockets
            .get(socket)
            .map(|(_, source)| Arc::clone(source));
        let limit = self.limit;
        let mut injector = FaultInjector::new(self.scenario.clone(), named);
        async move {
            let Some(source) = source else {
                return;
            };
            let mut buffers = ReceiveBuffers::new(limit);
            loop {
                let received = match &mut injector {
                    None => Batch::receive(&source, socket, &mut buffers).await,
                    Some(injector) => injector.receive(&source, socket, &mut buffers).await,
                };
                match received {
                    Ok(batch) if batch.is_empty() => {}
                    Ok(batch) => {
                        if owner.tell(batch).await.is_err() {
                            return;
                        }
                    }
                    // An ICMP error about a datagram that was sent earlier.
                    Err(error) if is_transient(&error) => {}
                    Err(error) => {
                        tracing::error!(%error, "a PFCP socket cannot be read");
                        return;
                    }
                }
            }
        }
    }
}

impl Batch {
    /// Waits for a datagram, and receives all that are available.
    async fn receive(
        source: &DatagramSocket,
        socket: usize,
        buffers: &mut ReceiveBuffers,
    ) -> io::Result<Self> {
        let mut batch = Self::empty(socket);
        while batch.is_empty() {
            poll_fn(|cx| source.poll_recv_ready(cx)).await?;
            batch.take(source, buffers)?;
        }
        Ok(batch)
    }

    /// Creates an empty batch.
    pub(crate) fn empty(socket: usize) -> Self {
        Self {
            socket,
            bytes: Vec::new(),
            datagrams: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Receives the available datagrams, as many as fit.
    fn take(&mut self, source: &DatagramSocket, buffers: &mut ReceiveBuffers) -> io::Result<()> {
        while self.datagrams.len() < MAX_BATCH && self.bytes.len() < MAX_BATCH_BYTES {
            match source.try_receive_batch(buffers, self) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The error recurs with the next read, or concerned a datagram that was sent
                // earlier.
                Err(_) if !self.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(crate) fn push(&mut self, peer: SocketAddr, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.datagrams.push((peer, self.bytes.len()));
    }

    /// Returns the number of datagrams.
    pub(crate) fn count(&self) -> usize {
        self.datagrams.len()
    }

    /// Returns the datagrams in order of arrival. A datagram that is too long is cut to one byte
    /// above the limit.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let mut start = 0;
        self.datagrams.iter().map(move |&(peer, end)| {
            let bytes = &self.bytes[start..end];
            start = end;
            (peer, bytes)
        })
    }
}

/// Sends datagrams from one socket. Returns the number that the system does not accept now.
fn send_from(socket: &DatagramSocket, run: &[Transmit]) -> usize {
    let datagrams: Vec<_> = run.iter().map(|one| (one.peer, &*one.bytes)).collect();
    let mut rest = datagrams.as_slice();
    let mut refused = 0;
    while !rest.is_empty() {
        let taken = match socket.try_send_batch(rest) {
            Ok(taken) => taken,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return refused + rest.len(),
            // This datagram cannot be sent, but the next one may.
            Err(_) => {
                refused += 1;
                1
            }
        };
        // Always advance, so that the loop ends even if the system accepts nothing.
        rest = rest.get(taken.max(1)..).unwrap_or_default();
    }
    refused
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::Interrupted
            | ErrorKind::WouldBlock
    )
}

/// Returns the local address to send to `peer`; `bound` may be the unspecified address.
pub(crate) fn local_address_for(bound: IpAddr, peer: IpAddr) -> IpAddr {
    if !bound.is_unspecified() {
        return bound;
    }
    // Connecting a UDP socket sends nothing; it only asks the system for a route.
    let route = || {
        let socket = std::net::UdpSocket::bind((bound, 0))?;
        socket.connect((peer, crate::PFCP_PORT))?;
        socket.local_addr()
    };
    route().map_or(bound, |address: SocketAddr| address.ip())
}

#[cfg(test)]
mod tests;
