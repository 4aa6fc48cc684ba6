//! Load generation: sessions that are established and deleted at a constant rate, or with a
//! constant number of requests in flight.
//!
//! The open loop keeps to its schedule regardless of the peer, and measures latency from the time
//! at which a request was meant to be sent. If the peer stalls, the waiting time of all delayed
//! requests therefore counts. Sessions are established until the target number is held; after that,
//! each establishment is accompanied by the deletion of the oldest session.

mod actor;
mod change;
mod link_faults;
mod message;
mod mix;
mod pacer;
mod requests;
mod stats;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strowger::{ActorRef, ActorSystem};
use strowger_pfcp::association::NodeName;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Release, Seid};

pub use mix::{ChangeShares, LoadMix, MixError};
pub(crate) use requests::answer;
pub use stats::{ChangeStats, LoadStats};

use crate::client::{ClientError, unanswered};
use crate::journal::Journal;
use crate::node::{NodeHandle, recovery_now};
use crate::profile::SessionProfile;
use crate::restoration::{OnLoss, Restoration};
use crate::socket::Sockets;
use actor::{LoadActor, LoadArgs};
use message::{Begin, ListHeld, LoadMsg, Probe, Stop};

/// The pacing of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadPace {
    /// An open loop: establishments per second, independent of the responses.
    Rate(f64),
    /// A closed loop: the number of requests in flight; each response makes room for the next
    /// request.
    InFlight(usize),
}

/// The configuration of a load.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadPlan {
    /// The address of the node under load.
    pub to: SocketAddr,
    /// The address to send from. Port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The Node ID of the load; derived from the address if it is not set.
    pub node_id: Option<String>,
    /// The release of TS 29.244 to use; the load neither sends nor reads anything newer.
    pub release: Release,
    /// The pacing of requests.
    pub pace: LoadPace,
    /// The maximum number of sessions that are held.
    pub sessions: usize,
    /// The time during which new requests are sent; until the load is stopped if it is not set.
    pub duration: Option<Duration>,
    /// T1: the time to wait for a response before a request is sent again.
    pub t1: Duration,
    /// N1: the number of times that a request is sent before it counts as lost.
    pub n1: u32,
    /// Set to keep the sessions and the association at the end. Otherwise they are deleted, and a
    /// session that the peer does not know counts as lost.
    pub keep: bool,
    /// Number of modifications per establishment: 0.5 is one for every two.
    pub modifications: f64,
    /// The proportions of the kinds of modifications. Sessions have the rules that these modify.
    pub shares: ChangeShares,
    /// The network that the sessions belong to, and the addresses of their UEs.
    pub profile: SessionProfile,
    /// The fraction of datagrams in both directions that the load drops: 0.05 is one in twenty.
    pub loss: f64,
    /// The fraction of sent datagrams that the load lets the next one overtake.
    pub reordering: f64,
    /// The volume in bytes after which a URR of each session reports usage; no usage is measured if
    /// it is not set.
    pub usage: Option<u64>,
    /// Set to request rates, which differ between sessions, in a QER of each session, for a policy
    /// to decide about. The sessions belong to the network "internet" unless the profile names
    /// another one.
    pub rates: bool,
    /// The file for the journal of requests and responses, which
    /// [`JournalAudit`](crate::JournalAudit) reads.
    pub journal: Option<PathBuf>,
    /// Panics in the sessions of a node in this process.
    pub panic_injection: Option<PanicInjection>,
    /// The silence of the node after which a heartbeat is sent.
    pub heartbeat: Duration,
    /// The treatment of sessions that the node lost. They count as lost in either case, and no new
    /// requests are sent while the node itself is lost.
    pub on_loss: OnLoss,
    /// The pace at which the load searches for a lost node and restores its sessions.
    pub restoration: Restoration,
}

/// Panics in session actors under load. Each one is followed by a modification that names a PDR of
/// the session; a session that does not accept it counts as lost.
#[derive(Clone, Debug)]
pub struct PanicInjection {
    /// The node whose sessions panic, which is the node under load.
    pub node: NodeHandle,
    /// Number of panics per second.
    pub rate: f64,
}

impl LoadPlan {
    /// Creates a configuration with 1000 sessions at 200 per second, until the load is stopped.
    #[must_use]
    pub fn new(to: SocketAddr) -> Self {
        let any: IpAddr = match to.ip() {
            address if address.is_loopback() => address,
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        Self {
            to,
            listen: SocketAddr::new(any, 0),
            node_id: None,
            release: Release::default(),
            pace: LoadPace::Rate(200.0),
            sessions: 1000,
            duration: None,
            t1: Duration::from_secs(1),
            n1: 3,
            keep: false,
            modifications: 0.0,
            shares: ChangeShares::default(),
            profile: SessionProfile::default(),
            usage: None,
            rates: false,
            loss: 0.0,
            reordering: 0.0,
            journal: None,
            panic_injection: None,
            heartbeat: Duration::from_secs(1),
            on_loss: OnLoss::Restore,
            restoration: Restoration::default(),
        }
    }
}

/// A load generator.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Load;

impl Load {
    /// Sets up an association with the peer, and starts the load.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid, the address cannot be bound, the journal
    /// cannot be created, or the peer refuses or does not answer.
    pub async fn start(system: &ActorSystem, plan: LoadPlan) -> Result<LoadHandle, ClientError> {
        plan.profile.check(plan.sessions)?;
        plan.shares.check()?;
        let sockets = Sockets::bind(&[plan.listen], 65_535).await;
        let sockets = sockets.map_err(|error| ClientError::Bind(Arc::new(error)))?;
        let local = sockets.address(0);
        let text = plan
            .node_id
            .clone()
            .unwrap_or_else(|| format!("smf-{}.load", local.port()));
        let name = NodeName::from_text(&text).ok_or(ClientError::NodeId(text))?;
        let journal = plan.journal.as_deref().map(Journal::create).transpose();
        let journal = journal.map_err(|error| ClientError::Journal(Arc::new(error)))?;
        let stats = Arc::new(Mutex::new(LoadStats::new()));
        let response_timeout = plan.t1.saturating_mul(plan.n1.max(1)) + Duration::from_secs(1);
        let args = LoadArgs {
            sockets: Arc::new(sockets),
            name,
            recovery: recovery_now(),
            plan: Arc::new(plan),
            stats: Arc::clone(&stats),
            journal: journal.map(|journal| Arc::new(Mutex::new(journal))),
        };
        let to = args.plan.to;
        let actor = system.spawn::<LoadActor>(format!("load-{local}"), args)?;
        let handle = LoadHandle {
            actor,
            stats,
            local,
            to,
            response_timeout,
        };
        let begun = handle.actor.ask_within(Begin, response_timeout).await;
        begun.map_err(|error| unanswered(&error, to))??;
        Ok(handle)
    }
}

/// A handle to a running load.
#[derive(Clone, Debug)]
pub struct LoadHandle {
    actor: ActorRef<LoadMsg>,
    stats: Arc<Mutex<LoadStats>>,
    local: SocketAddr,
    to: SocketAddr,
    response_timeout: Duration,
}

impl LoadHandle {
    /// Returns the address that requests are sent from.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns the current measurements.
    #[must_use]
    pub fn snapshot(&self) -> LoadStats {
        self.stats.lock().clone()
    }

    /// Returns the sessions that are held, as pairs of our SEID and the SEID of the peer.
    ///
    /// # Errors
    /// Returns an error if the load has ended.
    pub async fn held(&self) -> Result<Vec<(Seid, Seid)>, ClientError> {
        Ok(self.actor.ask(ListHeld).await?)
    }

    /// Sends a modification that names a PDR of a held session, and returns the cause of the
    /// response; `None` if the session is not held. The session counts as lost unless the cause is
    /// an acceptance.
    ///
    /// # Errors
    /// Returns an error if the load has ended, or if the peer does not answer.
    pub async fn modify(&self, seid: Seid) -> Result<Option<Cause>, ClientError> {
        let answer = self
            .actor
            .ask_within(Probe { seid }, self.response_timeout)
            .await;
        answer.map_err(|error| unanswered(&error, self.to))?
    }

    /// Stops the load: sends no new requests, waits for responses, and deletes the sessions unless
    /// they are to be kept.
    pub fn stop(&self) {
        // If the message is not delivered, the load has already ended.
        let _ = self.actor.try_tell(Stop);
    }

    /// Waits until the load has ended, and returns the final measurements.
    pub async fn finished(&self) -> LoadStats {
        self.actor.stopped().await;
        self.snapshot()
    }
}
