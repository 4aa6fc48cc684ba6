//! The SMF role: associations with other nodes, and sessions at them.

mod actor;
mod error;
mod event;
mod message;
mod outcome;
mod read;
mod report;
mod restore;
mod rules;
mod session;
mod sessions;

use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strowger::{ActorRef, ActorSystem, Recipient};
use strowger_pfcp::association::{AssociationId, NodeName, Recovery};
use strowger_pfcp::endpoint::Network;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::message::{Body, SessionEstablishmentRequest};
use strowger_pfcp::{Error, IeType, Message, MessageType, Seid, Sequence};

pub use error::ClientError;
pub(crate) use error::{request_failed, unanswered};
pub use event::{ClientEvent, ClientStats};
pub(crate) use report::check as check_report;
pub use rules::SessionRules;
pub use session::Session;

use crate::node::recovery_now;
use crate::restoration::{OnLoss, Restoration};
use crate::socket::Sockets;
use actor::{ClientActor, ClientArgs};
use message::{Associate, ClientMsg, Establish, Exchange, Release};

/// The configuration of a client: its identity, its timers, and the recipients of its events.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientConfig {
    /// The UDP address to send from. Port 0 lets the system choose. User plane nodes send session
    /// reports to port 8805 (TS 29.244 §4.2.2), so on another port the client gets them only from
    /// nodes whose configuration says so, such as [`ReportPort::Source`](crate::ReportPort).
    pub listen: SocketAddr,
    /// The Node ID: an IP address or a domain name. Defaults to the listen address.
    pub node_id: Option<String>,
    /// The release of TS 29.244 to use; the client neither sends nor reads anything newer.
    pub release: strowger_pfcp::Release,
    /// The networks that peers may answer from.
    pub peers: Vec<Network>,
    /// T1: the time to wait for a response before the request is sent again.
    pub t1: Duration,
    /// N1: the number of times that a request is sent before the client gives up.
    pub n1: u32,
    /// The silence of a peer after which a heartbeat is sent; zero disables heartbeats.
    pub heartbeat: Duration,
    /// The recipient of session reports. A report is acknowledged once the recipient has it; while
    /// the recipient has no room, reports are refused with Cause 74, and the peer sends them again.
    /// Without a recipient, reports are acknowledged and dropped.
    pub reports: Option<Recipient<SessionReport>>,
    /// The default for sessions that their peer lost, unless [`Association::establish_with`]
    /// overrides it.
    pub on_loss: OnLoss,
    /// The pace at which the client searches for lost peers and restores their sessions.
    pub restoration: Restoration,
    /// The recipient of events about lost and found peers, and about each session that its peer
    /// lost. While the recipient has no room, up to [`ClientConfig::EVENTS`] events are queued.
    pub events: Option<Recipient<ClientEvent>>,
    /// The recipient of node reports, which are acknowledged like session reports.
    pub node_reports: Option<Recipient<NodeReport>>,
}

impl ClientConfig {
    /// The maximum number of events queued for a recipient without room; further events are dropped
    /// and counted in [`ClientStats::events_dropped`].
    pub const EVENTS: usize = 65_536;
}

/// The values that distinguish one start of a client from another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientIdentity {
    pub(crate) recovery: Recovery,
    pub(crate) first_sequence: Sequence,
    pub(crate) first_seid: Seid,
}

impl Default for ClientConfig {
    /// Returns a configuration with the loopback address, a port chosen by the system and the
    /// default timers.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            node_id: None,
            release: strowger_pfcp::Release::default(),
            peers: ["127.0.0.0/8", "::1"]
                .iter()
                .filter_map(|text| text.parse().ok())
                .collect(),
            t1: Duration::from_secs(3),
            n1: 3,
            heartbeat: Duration::from_secs(60),
            reports: None,
            on_loss: OnLoss::default(),
            restoration: Restoration::default(),
            events: None,
            node_reports: None,
        }
    }
}

/// A report that a peer sent about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionReport {
    /// Our SEID of the session.
    pub seid: Seid,
    /// The address of the peer that sent the report.
    pub peer: SocketAddr,
    /// The complete message.
    pub bytes: Arc<[u8]>,
}

impl SessionReport {
    /// Decodes the report.
    ///
    /// # Errors
    /// Returns an error if an IE is missing or malformed.
    pub fn message(&self) -> Result<Message, Error> {
        Message::decode(&self.bytes)
    }
}

/// A report that a peer sent about itself, such as the failure or recovery of a user plane path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// The address of the peer that sent the report.
    pub peer: SocketAddr,
    /// The complete message.
    pub bytes: Arc<[u8]>,
}

/// A node in the SMF role, with its own socket.
///
/// ```
/// use strowger::ActorSystem;
/// use strowger_pfcp_node::{Client, ClientConfig, Node, NodeConfig, SessionRules};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = ActorSystem::new("doc")?;
/// let mut config = NodeConfig::default();
/// config.listen = vec!["127.0.0.1:0".parse()?];
/// let upf = Node::start(&system, config).await?.local_addr();
///
/// let client = Client::bind(&system, ClientConfig::default()).await?;
/// let association = client.associate(upf).await?;
/// let session = association.establish(SessionRules::pdu_session("10.45.0.9".parse()?)).await?;
/// session.delete().await?;
/// # system.shutdown(std::time::Duration::from_secs(1)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    actor: ActorRef<ClientMsg>,
    local: SocketAddr,
    on_loss: OnLoss,
    stats: Arc<Mutex<ClientStats>>,
    /// The time limit for a response: all retransmissions, and one second more.
    response_timeout: Duration,
}

impl Client {
    /// Binds the socket and starts the actor that owns it, at `/smf-ADDRESS`.
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound, or if the configured Node ID is invalid.
    pub async fn bind(system: &ActorSystem, config: ClientConfig) -> Result<Self, ClientError> {
        let bound = Sockets::bind(&[config.listen], 65_535).await;
        let sockets = bound.map_err(|error| ClientError::Bind(Arc::new(error)))?;
        let random = RandomState::new();
        let identity = ClientIdentity {
            recovery: recovery_now(),
            // Random start values, so that a client that starts again at the same address does not
            // repeat earlier numbers.
            first_sequence: Sequence::new((random.hash_one(0) >> 40) as u32),
            first_seid: Seid(1 + (random.hash_one(1) >> 16)),
        };
        Self::over(system, config, sockets, identity)
    }

    /// Starts the actor of a client whose socket is already bound.
    pub(crate) fn over(
        system: &ActorSystem,
        config: ClientConfig,
        sockets: Sockets,
        identity: ClientIdentity,
    ) -> Result<Self, ClientError> {
        let local = sockets.address(0);
        let name = match &config.node_id {
            None => local.ip().into(),
            Some(text) => {
                NodeName::from_text(text).ok_or_else(|| ClientError::NodeId(text.clone()))?
            }
        };
        let response_timeout = config.t1.saturating_mul(config.n1.max(1)) + Duration::from_secs(1);
        let (on_loss, stats) = (config.on_loss, Arc::default());
        let args = ClientArgs {
            sockets: Arc::new(sockets),
            name,
            identity,
            config: Arc::new(config),
            response_timeout,
            stats: Arc::clone(&stats),
        };
        let actor = system.spawn::<ClientActor>(format!("smf-{local}"), args)?;
        Ok(Self {
            actor,
            local,
            on_loss,
            stats,
            response_timeout,
        })
    }

    /// Returns the address that requests are sent from.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns counters about lost peers and their sessions.
    #[must_use]
    pub fn stats(&self) -> ClientStats {
        *self.stats.lock()
    }

    /// Sets up an association, or returns the existing one.
    ///
    /// From then on the client searches for the peer whenever it is lost (see [`ClientEvent`]),
    /// until the association is released.
    ///
    /// # Errors
    /// Returns an error if the peer refuses or does not answer.
    pub async fn associate(&self, peer: SocketAddr) -> Result<Association, ClientError> {
        let request = Associate { peer };
        let answer = self.actor.ask_within(request, self.response_timeout).await;
        Ok(Association {
            client: self.clone(),
            id: answer.map_err(|error| unanswered(&error, peer))??,
            peer,
        })
    }

    async fn exchange(
        &self,
        peer: SocketAddr,
        message_type: MessageType,
        seid: Seid,
        body: Vec<u8>,
    ) -> Result<Message, ClientError> {
        let request = Exchange {
            peer,
            message_type,
            seid,
            body,
        };
        let answer = self.actor.ask_within(request, self.response_timeout).await;
        let bytes = answer.map_err(|error| unanswered(&error, peer))??;
        read::read(peer, &bytes)
    }
}

/// An association with a node in the UPF role.
#[derive(Clone, Debug)]
pub struct Association {
    client: Client,
    id: AssociationId,
    peer: SocketAddr,
}

impl Association {
    /// Returns the address of the peer.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Establishes a session with the given rules. [`ClientConfig::on_loss`] decides what happens
    /// to the session when the peer loses it.
    ///
    /// # Errors
    /// Returns an error if the peer refuses or does not answer.
    pub async fn establish(&self, rules: SessionRules) -> Result<Session, ClientError> {
        self.establish_with(rules, self.client.on_loss).await
    }

    /// Establishes a session with the given rules; `on_loss` decides what happens to the session
    /// when the peer loses it.
    ///
    /// # Errors
    /// Returns an error if the peer refuses or does not answer.
    pub async fn establish_with(
        &self,
        rules: SessionRules,
        on_loss: OnLoss,
    ) -> Result<Session, ClientError> {
        let (client, peer) = (&self.client, self.peer);
        let request = Establish {
            peer,
            on_loss,
            rules,
        };
        let opened = client
            .actor
            .ask_within(request, client.response_timeout)
            .await;
        let opened = opened.map_err(|error| unanswered(&error, peer))??;
        Ok(Session::new(self.clone(), opened))
    }

    /// Sends a request with an arbitrary body and returns the response, whatever its cause. Changes
    /// made by such a request are not restored when the peer loses its sessions.
    ///
    /// # Errors
    /// Returns an error if the peer does not answer, or if the response cannot be decoded.
    pub async fn send(
        &self,
        message_type: MessageType,
        seid: Seid,
        body: &[u8],
    ) -> Result<Message, ClientError> {
        self.client
            .exchange(self.peer, message_type, seid, body.to_vec())
            .await
    }

    /// Releases the association; the peer deletes its sessions. A peer that knows no association
    /// (Cause 72) has nothing to release.
    ///
    /// # Errors
    /// Returns an error if the client has stopped, or if the peer refuses or does not answer. The
    /// client forgets the association and its sessions in any case.
    pub async fn release(self) -> Result<(), ClientError> {
        let request = Release {
            association: self.id,
            peer: self.peer,
        };
        let client = &self.client;
        let released = client
            .actor
            .ask_within(request, client.response_timeout)
            .await;
        released.map_err(|error| unanswered(&error, self.peer))?
    }
}

/// Converts a cause that is not an acceptance into [`ClientError::Refused`].
fn accepted(
    peer: SocketAddr,
    cause: Cause,
    offending_ie: Option<IeType>,
) -> Result<(), ClientError> {
    if cause.is_acceptance() {
        return Ok(());
    }
    if cause == Cause::RESERVED {
        let reason = "Cause is 0".to_owned();
        return Err(ClientError::InvalidAnswer { peer, reason });
    }
    Err(ClientError::Refused {
        peer,
        cause,
        offending_ie,
    })
}

/// Returns the encoded body of a message, without the header.
pub(crate) fn body_of(body: impl Into<Body>) -> Result<Vec<u8>, Error> {
    let message = Message::session(Seid(0), Sequence::new(0), body);
    let mut bytes = message.encode()?;
    bytes.drain(..message.header.encoded_len());
    Ok(bytes)
}

/// Returns an establishment request with the Node ID and F-SEID of the client and no rules.
pub(crate) fn empty_establishment(
    name: &NodeName,
    f_seid: strowger_pfcp::ie::FSeid,
) -> Result<SessionEstablishmentRequest, Error> {
    let node = <strowger_pfcp::ie::NodeId as strowger_pfcp::Ie>::decode(name.value())?;
    Ok(SessionEstablishmentRequest::new(node, f_seid))
}
