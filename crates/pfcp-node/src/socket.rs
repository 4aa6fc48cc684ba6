//! UDP sockets: bound all or none, read in batches, written without waiting.

mod gate;

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;

use strowger::{Accepts, ActorRef};
use strowger_pfcp::Seid;
use strowger_pfcp::association::NodeName;
use tokio::net::UdpSocket;

use crate::scenario::Scenario;
use gate::Gate;

/// The most datagrams of one batch, so that timers and answers get their turn.
const BATCH: usize = 64;
/// The most octets of one batch.
const BATCH_OCTETS: usize = 256 * 1024;

/// An address on which the node cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}{}", hint(.address, .source))]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// What the system says.
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
    sockets: Vec<(SocketAddr, Arc<Source>)>,
    limit: usize,
    /// What goes wrong with what comes, and in whose name.
    scenario: Option<(Scenario, NodeName)>,
}

/// What datagrams come from and go to.
#[derive(Debug)]
enum Source {
    Udp(UdpSocket),
    /// The network of a simulation.
    #[cfg(test)]
    Wire(crate::simulation::Plug),
}

impl Source {
    fn poll_recv_ready(&self, cx: &mut std::task::Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Udp(socket) => socket.poll_recv_ready(cx),
            #[cfg(test)]
            Self::Wire(plug) => plug.poll_ready(cx).map(Ok),
        }
    }

    async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        match self {
            Self::Udp(socket) => socket.recv_from(buffer).await,
            #[cfg(test)]
            Self::Wire(plug) => loop {
                poll_fn(|cx| plug.poll_ready(cx)).await;
                if let Some(received) = plug.take(buffer) {
                    return Ok(received);
                }
            },
        }
    }

    fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        match self {
            Self::Udp(socket) => socket.try_recv_from(buffer),
            #[cfg(test)]
            Self::Wire(plug) => plug
                .take(buffer)
                .ok_or_else(|| ErrorKind::WouldBlock.into()),
        }
    }

    fn try_send_to(&self, octets: &[u8], peer: SocketAddr) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => socket.try_send_to(octets, peer),
            #[cfg(test)]
            Self::Wire(plug) => plug.send(octets, peer),
        }
    }
}

/// Datagrams that one socket received, in one piece of memory.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The socket that received them.
    pub(crate) socket: usize,
    octets: Vec<u8>,
    datagrams: Vec<(SocketAddr, usize)>,
}

impl Sockets {
    /// Binds all addresses; datagrams longer than `limit` are not looked at.
    pub(crate) async fn bind(addresses: &[SocketAddr], limit: usize) -> Result<Self, BindError> {
        let mut sockets = Vec::with_capacity(addresses.len());
        for &address in addresses {
            let failed = |source| BindError { address, source };
            let socket = UdpSocket::bind(address).await.map_err(failed)?;
            let local = socket.local_addr().map_err(failed)?;
            // Until the reactor has seen the socket once, `try_send_to` refuses: the first
            // datagram would wait for its retransmission.
            socket.writable().await.map_err(failed)?;
            sockets.push((local, Arc::new(Source::Udp(socket))));
        }
        Ok(Self {
            sockets,
            limit,
            scenario: None,
        })
    }

    /// One socket that is plugged into the network of a simulation.
    #[cfg(test)]
    pub(crate) fn plugged(address: SocketAddr, plug: crate::simulation::Plug) -> Self {
        let source = Arc::new(Source::Wire(plug));
        Self {
            sockets: vec![(address, source)],
            limit: 65_535,
            scenario: None,
        }
    }

    /// Lets a scenario decide about what comes, in the name of a node.
    pub(crate) fn misbehave(&mut self, scenario: Scenario, name: NodeName) {
        self.scenario = Some((scenario, name));
    }

    pub(crate) fn len(&self) -> usize {
        self.sockets.len()
    }

    /// The addresses that are listened on, with the ports that the system chose.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(|(address, _)| *address).collect()
    }

    /// The local address of a socket.
    pub(crate) fn address(&self, socket: usize) -> SocketAddr {
        let unspecified = || SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        self.sockets
            .get(socket)
            .map_or_else(unspecified, |(address, _)| *address)
    }

    /// The first socket that can send to `peer`.
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

    /// Gives a datagram to the system; false if it does not take it now.
    pub(crate) fn send(&self, socket: usize, peer: SocketAddr, octets: &[u8]) -> bool {
        let Some((_, socket)) = self.sockets.get(socket) else {
            return false;
        };
        let told = self.scenario.as_ref();
        let told = told.and_then(|(scenario, _)| scenario.restamped(octets));
        let octets = told.as_deref().unwrap_or(octets);
        socket.try_send_to(octets, peer).is_ok()
    }

    /// Waits until some socket has datagrams, and takes them; there may be none after all. `None`
    /// when no socket can be read.
    pub(crate) async fn receive(&self, buffer: &mut [u8]) -> Option<Batch> {
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
        batch.take(&self.sockets.get(at)?.1, buffer);
        Some(batch)
    }

    /// Reads one socket into the mailbox of `owner` until reading fails or the owner is gone.
    /// A full mailbox makes this wait, and the system drops what then finds no room in the socket.
    pub(crate) fn read<M: Accepts<Batch>>(
        &self,
        socket: usize,
        owner: ActorRef<M>,
    ) -> impl Future<Output = ()> + Send + 'static {
        self.read_as_told(socket, owner, |_| None)
    }

    /// Reads one socket as [`Sockets::read`] does, and as the scenario says if there is one;
    /// `named` knows how a peer calls a session.
    pub(crate) fn read_as_told<M: Accepts<Batch>>(
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
        let mut gate = Gate::new(self.scenario.clone(), named);
        async move {
            let Some(source) = source else {
                return;
            };
            let mut buffer = vec![0; limit + 1];
            loop {
                let received = match &mut gate {
                    None => Batch::receive(&source, socket, &mut buffer).await,
                    Some(gate) => gate.receive(&source, socket, &mut buffer).await,
                };
                match received {
                    Ok(batch) if batch.is_empty() => {}
                    Ok(batch) => {
                        if owner.tell(batch).await.is_err() {
                            return;
                        }
                    }
                    // An ICMP error about a datagram that was sent before.
                    Err(error) if is_passing(&error) => {}
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
    /// Waits for a datagram, and takes those that are there with it.
    async fn receive(source: &Source, socket: usize, buffer: &mut [u8]) -> io::Result<Self> {
        let mut batch = Self::empty(socket);
        let (length, peer) = source.recv_from(buffer).await?;
        batch.push(peer, &buffer[..length]);
        batch.take(source, buffer);
        Ok(batch)
    }

    /// A batch without datagrams.
    pub(crate) fn empty(socket: usize) -> Self {
        Self {
            socket,
            octets: Vec::new(),
            datagrams: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Takes the datagrams that are there, as many as fit.
    fn take(&mut self, source: &Source, buffer: &mut [u8]) {
        while self.datagrams.len() < BATCH && self.octets.len() < BATCH_OCTETS {
            match source.try_recv_from(buffer) {
                Ok((length, peer)) => self.push(peer, &buffer[..length]),
                Err(_) => break,
            }
        }
    }

    pub(crate) fn push(&mut self, peer: SocketAddr, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
        self.datagrams.push((peer, self.octets.len()));
    }

    /// How many datagrams it has.
    pub(crate) fn count(&self) -> usize {
        self.datagrams.len()
    }

    /// The datagrams in the order of their arrival; one that is too long is cut, one octet above
    /// the limit.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let mut start = 0;
        self.datagrams.iter().map(move |&(peer, end)| {
            let octets = &self.octets[start..end];
            start = end;
            (peer, octets)
        })
    }
}

fn is_passing(error: &io::Error) -> bool {
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

/// The address to tell `peer`, where `bound` may stand for all addresses of the host.
pub(crate) fn local_towards(bound: IpAddr, peer: IpAddr) -> IpAddr {
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
