//! The SMF role: associations and sessions at other nodes, as values.

mod actor;
mod error;
mod event;
mod message;
mod outcome;
mod read;
mod record;
mod report;
mod restore;
mod rules;
mod session;

use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
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
pub(crate) use error::unanswered;
pub use event::{ClientEvent, ClientStats};
pub use rules::Rules;
pub use session::Session;

use crate::node::recovery_now;
use crate::restoration::{OnLoss, Restoration};
use crate::socket::Sockets;
use actor::{ClientActor, ClientArgs};
use message::{Associate, ClientMsg, Establish, Exchange, Release};

/// The configuration of a client: its identity, its timers, and who is told what.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientConfig {
    /// The UDP address to send from. Port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Its Node ID: an IP address or a domain name. The listen address if it is not set.
    pub node_id: Option<String>,
    /// The release that is spoken: what is newer is neither sent nor read.
    pub release: strowger_pfcp::Release,
    /// Where it may be answered from.
    pub peers: Vec<Network>,
    /// How long an answer is waited for before the request is sent again.
    pub t1: Duration,
    /// How often a request is sent before it is given up.
    pub n1: u32,
    /// How long a peer may be silent before a heartbeat is sent; zero sends none.
    pub heartbeat: Duration,
    /// Who is told of session reports; they are answered either way.
    pub reports: Option<Recipient<SessionReport>>,
    /// The fate of a session that its peer lost, unless [`Association::establish_with`] says
    /// another.
    pub on_loss: OnLoss,
    /// The pace at which lost peers are looked for and their sessions are restored.
    pub restoration: Restoration,
    /// The recipient of news about peers that are lost or found, and about each session that its
    /// peer lost. While it has no room, up to [`ClientConfig::EVENTS`] events wait for it.
    pub events: Option<Recipient<ClientEvent>>,
    /// Who is told of node reports; they are answered either way.
    pub node_reports: Option<Recipient<NodeReport>>,
}

impl ClientConfig {
    /// Events that wait for a recipient without room at most; later ones are dropped and counted in
    /// [`ClientStats::events_dropped`].
    pub const EVENTS: usize = 65_536;
}

/// What tells one start of a client from another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) recovery: Recovery,
    pub(crate) first_sequence: Sequence,
    pub(crate) first_seid: Seid,
}

impl Default for ClientConfig {
    /// The loopback, a port that the system chooses, the times of the specification.
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
    /// Our identifier of the session.
    pub seid: Seid,
    /// Who sent it.
    pub peer: SocketAddr,
    /// The whole message.
    pub octets: Arc<[u8]>,
}

impl SessionReport {
    /// Reads the report.
    ///
    /// # Errors
    /// When a member is missing or malformed.
    pub fn message(&self) -> Result<Message, Error> {
        Message::decode(&self.octets)
    }
}

/// A report that a peer sent about itself: a path of the user plane that failed or recovered, ...
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// Who sent it.
    pub peer: SocketAddr,
    /// The whole message.
    pub octets: Arc<[u8]>,
}

/// A node in the SMF role, with a socket of its own.
///
/// ```
/// use strowger::ActorSystem;
/// use strowger_pfcp_node::{Client, ClientConfig, Node, NodeConfig, Rules};
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
/// let session = association.establish(Rules::pdu_session("10.45.0.9".parse()?)).await?;
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
    /// How long an answer may take: all retransmissions, and a little more.
    patience: Duration,
}

impl Client {
    /// Binds the socket and starts the actor that owns it, at `/smf-ADDRESS`.
    ///
    /// # Errors
    /// When the address cannot be listened on, or the Node ID is none.
    pub async fn bind(system: &ActorSystem, config: ClientConfig) -> Result<Self, ClientError> {
        let bound = Sockets::bind(&[config.listen], 65_535).await;
        let sockets = bound.map_err(|error| ClientError::Bind(Arc::new(error)))?;
        let random = RandomState::new();
        let identity = Identity {
            recovery: recovery_now(),
            // Whoever starts again at the same address repeats no number of before.
            first_sequence: Sequence::new((random.hash_one(0) >> 40) as u32),
            first_seid: Seid(1 + (random.hash_one(1) >> 16)),
        };
        Self::over(system, config, sockets, identity)
    }

    /// Starts the actor of a client that has its socket already.
    pub(crate) fn over(
        system: &ActorSystem,
        config: ClientConfig,
        sockets: Sockets,
        identity: Identity,
    ) -> Result<Self, ClientError> {
        let local = sockets.address(0);
        let name = match &config.node_id {
            None => local.ip().into(),
            Some(text) => match text.parse::<IpAddr>() {
                Ok(address) => address.into(),
                Err(_) => {
                    NodeName::from_fqdn(text).ok_or_else(|| ClientError::NodeId(text.clone()))?
                }
            },
        };
        let patience = config.t1.saturating_mul(config.n1.max(1)) + Duration::from_secs(1);
        let (on_loss, stats) = (config.on_loss, Arc::default());
        let args = ClientArgs {
            sockets: Arc::new(sockets),
            name,
            identity,
            config: Arc::new(config),
            patience,
            stats: Arc::clone(&stats),
        };
        let actor = system.spawn::<ClientActor>(format!("smf-{local}"), args)?;
        Ok(Self {
            actor,
            local,
            on_loss,
            stats,
            patience,
        })
    }

    /// The address that requests are sent from.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Figures of the peers that were lost and of their sessions.
    #[must_use]
    pub fn stats(&self) -> ClientStats {
        *self.stats.lock()
    }

    /// Sets an association up, or finds the one that there is.
    ///
    /// From then on the peer is looked for whenever it is lost ([`ClientEvent`]), until the
    /// association is released.
    ///
    /// # Errors
    /// When the peer refuses or does not answer.
    pub async fn associate(&self, peer: SocketAddr) -> Result<Association, ClientError> {
        let request = Associate { peer };
        let answer = self.actor.ask_within(request, self.patience).await;
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
        let answer = self.actor.ask_within(request, self.patience).await;
        let octets = answer.map_err(|error| unanswered(&error, peer))??;
        read::read(peer, &octets)
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
    /// The address of the peer.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Establishes a session with these rules. What becomes of it when the peer loses it is what
    /// [`ClientConfig::on_loss`] says.
    ///
    /// # Errors
    /// When the peer refuses or does not answer.
    pub async fn establish(&self, rules: Rules) -> Result<Session, ClientError> {
        self.establish_with(rules, self.client.on_loss).await
    }

    /// Establishes a session with these rules, and says what becomes of it when the peer loses it.
    ///
    /// # Errors
    /// When the peer refuses or does not answer.
    pub async fn establish_with(
        &self,
        rules: Rules,
        on_loss: OnLoss,
    ) -> Result<Session, ClientError> {
        let (client, peer) = (&self.client, self.peer);
        let request = Establish {
            peer,
            on_loss,
            rules,
        };
        let opened = client.actor.ask_within(request, client.patience).await;
        let opened = opened.map_err(|error| unanswered(&error, peer))??;
        Ok(Session::new(self.clone(), opened))
    }

    /// Sends a request with a body of any elements and returns the answer, whatever it says. What
    /// it changes is not restored when the peer loses its sessions.
    ///
    /// # Errors
    /// When the peer does not answer, or the answer cannot be read.
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

    /// Releases the association; the peer ends its sessions.
    ///
    /// # Errors
    /// When the client has ended, or the peer does not answer.
    pub async fn release(self) -> Result<(), ClientError> {
        let request = Release {
            association: self.id,
            peer: self.peer,
        };
        let client = &self.client;
        let released = client.actor.ask_within(request, client.patience).await;
        released.map_err(|error| unanswered(&error, self.peer))?
    }
}

/// What an answer that refuses says.
fn accepted(
    peer: SocketAddr,
    cause: Cause,
    offending_ie: Option<IeType>,
) -> Result<(), ClientError> {
    if cause.is_acceptance() {
        return Ok(());
    }
    Err(ClientError::Refused {
        peer,
        cause,
        offending_ie,
    })
}

/// The octets of a body, without a header.
pub(crate) fn body_of(body: impl Into<Body>) -> Result<Vec<u8>, Error> {
    let message = Message::session(Seid(0), Sequence::new(0), body);
    let mut octets = message.encode()?;
    octets.drain(..message.header.octets());
    Ok(octets)
}

/// An establishment without the names that the client adds.
pub(crate) fn empty_establishment(
    name: &NodeName,
    f_seid: strowger_pfcp::ie::FSeid,
) -> Result<SessionEstablishmentRequest, Error> {
    let node = <strowger_pfcp::ie::NodeId as strowger_pfcp::Ie>::decode(name.value())?;
    Ok(SessionEstablishmentRequest::new(node, f_seid))
}
