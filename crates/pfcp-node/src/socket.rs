//! UDP sockets: bound all or none, read in batches, written without waiting.

mod gate;
mod together;

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

use crate::scenario::Scenario;
use gate::Gate;
pub(crate) use together::Inbox;

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

    /// Takes into `batch` what is there; `WouldBlock` when that was all.
    fn try_take(&self, inbox: &mut Inbox, batch: &mut Batch) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.try_io(Interest::READABLE, || inbox.take(socket, batch)),
            #[cfg(test)]
            Self::Wire(plug) => {
                let room = inbox.one();
                let received = plug.take(room);
                let (length, peer) = received.ok_or(ErrorKind::WouldBlock)?;
                batch.push(peer, &room[..length]);
                Ok(())
            }
        }
    }

    /// Gives the first of `datagrams` to the system, and more if it takes them at once; says how
    /// many it took.
    fn try_give(&self, datagrams: &[(SocketAddr, &[u8])]) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => together::give(socket, datagrams),
            #[cfg(test)]
            Self::Wire(_) => {
                let Some((peer, octets)) = datagrams.first() else {
                    return Ok(0);
                };
                self.try_send_to(octets, *peer).map(|_| 1)
            }
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

    /// The socket that a datagram leaves from.
    pub(crate) fn leaves_from(&self, transmit: &Transmit) -> usize {
        match transmit.local {
            Some(local) => usize::from(local),
            None => self.for_peer(transmit.peer),
        }
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

    /// Gives datagrams to the system, together where it can take them so; says how many it does
    /// not take now.
    pub(crate) fn send_all(&self, leaving: &[Transmit]) -> u64 {
        let mut refused = 0;
        let from = |transmit: &Transmit| self.leaves_from(transmit);
        for run in leaving.chunk_by(|one, next| from(one) == from(next)) {
            let socket = run.first().and_then(|first| self.sockets.get(from(first)));
            refused += match (socket, &self.scenario) {
                (None, _) => run.len(),
                (Some((_, socket)), None) => send_run(socket, run),
                (Some(_), Some(_)) => {
                    let send = |one: &&Transmit| !self.send(from(one), one.peer, &one.octets);
                    run.iter().filter(send).count()
                }
            };
        }
        u64::try_from(refused).unwrap_or(u64::MAX)
    }

    /// Waits until some socket has datagrams, and takes them; there may be none after all. `None`
    /// when no socket can be read.
    pub(crate) async fn receive(&self, inbox: &mut Inbox) -> Option<Batch> {
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
        // What is wrong will be said by the endpoint, which reads them next.
        let _ = batch.take(&self.sockets.get(at)?.1, inbox);
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
            let mut inbox = Inbox::new(limit);
            loop {
                let received = match &mut gate {
                    None => Batch::receive(&source, socket, &mut inbox).await,
                    Some(gate) => gate.receive(&source, socket, &mut inbox).await,
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
    async fn receive(source: &Source, socket: usize, inbox: &mut Inbox) -> io::Result<Self> {
        let mut batch = Self::empty(socket);
        while batch.is_empty() {
            poll_fn(|cx| source.poll_recv_ready(cx)).await?;
            batch.take(source, inbox)?;
        }
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
    fn take(&mut self, source: &Source, inbox: &mut Inbox) -> io::Result<()> {
        while self.datagrams.len() < BATCH && self.octets.len() < BATCH_OCTETS {
            match source.try_take(inbox, self) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // It will be said again, or was about a datagram that left.
                Err(_) if !self.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
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

/// Sends datagrams from one socket; says how many the system does not take now.
fn send_run(socket: &Source, run: &[Transmit]) -> usize {
    let datagrams: Vec<_> = run.iter().map(|one| (one.peer, &*one.octets)).collect();
    let mut rest = datagrams.as_slice();
    let mut refused = 0;
    while !rest.is_empty() {
        let taken = match socket.try_give(rest) {
            Ok(taken) => taken,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return refused + rest.len(),
            // That one cannot leave; the next one may.
            Err(_) => {
                refused += 1;
                1
            }
        };
        rest = rest.get(taken.max(1)..).unwrap_or_default();
    }
    refused
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

#[cfg(test)]
mod tests;
