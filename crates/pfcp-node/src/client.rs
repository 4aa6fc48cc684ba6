//! The SMF role: associations and sessions at other nodes, as values.

mod actor;
mod rules;

use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use strowger::{ActorRef, ActorSystem, AskError, Recipient, StartError};
use strowger_pfcp::association::{AssociationId, NodeName, Recovery};
use strowger_pfcp::endpoint::Network;
use strowger_pfcp::ie::{Cause, CreatedPdr, PfcpsdrspFlags};
use strowger_pfcp::message::{
    Body, SessionDeletionRequest, SessionDeletionResponse, SessionEstablishmentRequest,
    SessionEstablishmentResponse, SessionModificationRequest, SessionModificationResponse,
};
use strowger_pfcp::{Error, IeType, Message, MessageType, Seid, Sequence};

pub use rules::Rules;

use crate::ledger::LedgerError;
use crate::node::recovery_now;
use crate::socket::{BindError, Sockets};
use actor::{Associate, ClientActor, ClientArgs, ClientMsg, Exchange, Forget, Know, Release};

/// What a client is and how it asks.
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
    /// Who is told that a peer restarted: the sessions at it are no more.
    pub restarts: Option<Recipient<PeerRestarted>>,
    /// Who is told of node reports; they are answered either way.
    pub node_reports: Option<Recipient<NodeReport>>,
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
            restarts: None,
            node_reports: None,
        }
    }
}

/// Why a client did not get what it asked for.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The Node ID is neither an address nor a domain name.
    #[error("`node_id` \"{0}\" is neither an IP address nor a domain name")]
    NodeId(String),
    /// The address cannot be listened on.
    #[error(transparent)]
    Bind(Arc<BindError>),
    /// The ledger of a load cannot be made.
    #[error(transparent)]
    Ledger(Arc<LedgerError>),
    /// The actor did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The peer refused.
    #[error("{peer} refused: cause {} ({cause})", .cause.0)]
    Refused {
        /// Who refused.
        peer: SocketAddr,
        /// Why.
        cause: Cause,
        /// The element at fault.
        offending_ie: Option<IeType>,
    },
    /// The peer did not answer, however often it was asked.
    #[error("{peer} did not answer")]
    NoAnswer {
        /// Who was asked.
        peer: SocketAddr,
    },
    /// The answer cannot be read.
    #[error("the answer of {peer} cannot be read: {error}")]
    Answer {
        /// Who answered.
        peer: SocketAddr,
        /// What is wrong with it.
        error: Error,
    },
    /// The request cannot be written.
    #[error("the request cannot be written: {0}")]
    Request(#[from] Error),
    /// Too many requests wait for answers.
    #[error("too many requests wait for answers")]
    Busy,
    /// The client has ended.
    #[error("the client has ended")]
    Ended,
}

impl ClientError {
    /// The cause with which the peer refused.
    #[must_use]
    pub const fn cause(&self) -> Option<Cause> {
        match self {
            Self::Refused { cause, .. } => Some(*cause),
            _ => None,
        }
    }
}

impl From<AskError> for ClientError {
    fn from(_: AskError) -> Self {
        Self::Ended
    }
}

/// What an actor that asks `peer` in our place left unsaid.
pub(crate) fn unanswered(error: &AskError, peer: SocketAddr) -> ClientError {
    match error {
        AskError::TimedOut => ClientError::NoAnswer { peer },
        AskError::Full => ClientError::Busy,
        _ => ClientError::Ended,
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

/// A peer restarted, and says so by its Recovery Time Stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerRestarted {
    /// Which peer.
    pub peer: SocketAddr,
    /// Its time stamp now, in seconds since 1900.
    pub recovery: u32,
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
    name: NodeName,
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
        let args = ClientArgs {
            sockets: Arc::new(sockets),
            name: name.clone(),
            identity,
            config: Arc::new(config),
        };
        let actor = system.spawn::<ClientActor>(format!("smf-{local}"), args)?;
        Ok(Self {
            actor,
            local,
            name,
            patience,
        })
    }

    /// The address that requests are sent from.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Sets an association up, or finds the one that there is.
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
        Message::decode(&octets).map_err(|error| ClientError::Answer { peer, error })
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

    /// Establishes a session with these rules.
    ///
    /// # Errors
    /// When the peer refuses or does not answer.
    pub async fn establish(&self, rules: Rules) -> Result<Session, ClientError> {
        let (client, peer) = (&self.client, self.peer);
        let seid = client.actor.ask(Know { peer }).await?;
        let f_seid = (seid, client.local.ip());
        let body = rules.into_request(&client.name, f_seid.into())?;
        let answer = self
            .send(MessageType::SESSION_ESTABLISHMENT_REQUEST, Seid(0), &body)
            .await;
        let accepted = answer.and_then(|answer| match answer.body {
            Body::SessionEstablishmentResponse(answer) => established(peer, *answer),
            _ => Err(ClientError::NoAnswer { peer }),
        });
        match accepted {
            Ok((remote, created)) => {
                client.actor.ask(actor::Bind { seid, remote }).await?;
                Ok(Session {
                    association: self.clone(),
                    seid,
                    remote,
                    created,
                })
            }
            Err(error) => {
                client.actor.ask(Forget::now(seid)).await?;
                Err(error)
            }
        }
    }

    /// Sends a request with a body of any elements and returns the answer, whatever it says.
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
        };
        let client = &self.client;
        let released = client.actor.ask_within(request, client.patience).await;
        released.map_err(|error| unanswered(&error, self.peer))?
    }
}

/// A session at a node in the UPF role.
#[derive(Clone, Debug)]
pub struct Session {
    association: Association,
    seid: Seid,
    remote: Seid,
    created: Vec<CreatedPdr>,
}

impl Session {
    /// Our identifier of the session.
    #[must_use]
    pub fn seid(&self) -> Seid {
        self.seid
    }

    /// The peer's identifier of the session.
    #[must_use]
    pub fn remote_seid(&self) -> Seid {
        self.remote
    }

    /// What the peer chose when the session was established.
    #[must_use]
    pub fn created(&self) -> &[CreatedPdr] {
        &self.created
    }

    /// Changes the session.
    ///
    /// # Errors
    /// When the peer refuses or does not answer.
    pub async fn modify(
        &self,
        request: SessionModificationRequest,
    ) -> Result<SessionModificationResponse, ClientError> {
        let peer = self.association.peer;
        let body = body_of(request)?;
        let message_type = MessageType::SESSION_MODIFICATION_REQUEST;
        match self
            .association
            .send(message_type, self.remote, &body)
            .await?
            .body
        {
            Body::SessionModificationResponse(answer) => {
                let offending = answer.offending_ie.as_ref().map(|offending| offending.ie());
                accepted(peer, answer.cause, offending).map(|()| *answer)
            }
            _ => Err(ClientError::NoAnswer { peer }),
        }
    }

    /// Asks whether the peer still has the session, by a modification that changes nothing.
    ///
    /// # Errors
    /// When the peer refuses for another reason, or does not answer.
    pub async fn audit(&self) -> Result<bool, ClientError> {
        match self.modify(SessionModificationRequest::new()).await {
            Ok(_) => Ok(true),
            Err(error) if error.cause() == Some(Cause::SESSION_CONTEXT_NOT_FOUND) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the session.
    ///
    /// # Errors
    /// When the peer refuses or does not answer.
    pub async fn delete(self) -> Result<SessionDeletionResponse, ClientError> {
        let peer = self.association.peer;
        let body = body_of(SessionDeletionRequest::new())?;
        let message_type = MessageType::SESSION_DELETION_REQUEST;
        let answer = self
            .association
            .send(message_type, self.remote, &body)
            .await?;
        let client = &self.association.client;
        let mut forget = Forget::now(self.seid);
        if reports_follow(&answer) {
            forget.after = client.patience;
        }
        client.actor.ask(forget).await?;
        match answer.body {
            Body::SessionDeletionResponse(answer) => {
                let offending = answer.offending_ie.as_ref().map(|offending| offending.ie());
                accepted(peer, answer.cause, offending).map(|()| *answer)
            }
            _ => Err(ClientError::NoAnswer { peer }),
        }
    }
}

/// Says that reports about a deleted session may still come, TS 29.244 §7.5.7.
fn reports_follow(answer: &Message) -> bool {
    let Body::SessionDeletionResponse(answer) = &answer.body else {
        return false;
    };
    let pending = |flags: PfcpsdrspFlags| flags.contains(PfcpsdrspFlags::PURU);
    answer.pfcpsdrsp_flags.is_some_and(pending)
        || answer.additional_usage_reports_information.is_some()
}

fn established(
    peer: SocketAddr,
    answer: SessionEstablishmentResponse,
) -> Result<(Seid, Vec<CreatedPdr>), ClientError> {
    let offending = answer.offending_ie.as_ref().map(|offending| offending.ie());
    accepted(peer, answer.cause, offending)?;
    let missing = || ClientError::Refused {
        peer,
        cause: Cause::CONDITIONAL_IE_MISSING,
        offending_ie: Some(IeType::F_SEID),
    };
    let remote = answer.up_f_seid.ok_or_else(missing)?;
    Ok((Seid(remote.seid), answer.created_pdrs))
}

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
