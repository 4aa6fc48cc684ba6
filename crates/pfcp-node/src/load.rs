//! Load: sessions established and deleted at a constant rate, or with so many requests in flight.
//!
//! The open loop keeps to its schedule whatever the peer does, and measures from the time at which
//! a request was meant to be sent: a peer that stalls is charged for all that waited meanwhile.
//! Until the wanted number of sessions is held they are established; after that each is joined by
//! the deletion of the oldest.

mod actor;
mod figures;
mod message;
mod pacer;
mod requests;
mod trouble;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strowger::{ActorRef, ActorSystem};
use strowger_pfcp::association::NodeName;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Release, Seid};

pub use figures::LoadFigures;
pub(crate) use requests::answer;

use crate::client::{ClientError, unanswered};
use crate::ledger::Ledger;
use crate::node::{NodeHandle, recovery_now};
use crate::restoration::{OnLoss, Restoration};
use crate::socket::Sockets;
use actor::{LoadActor, LoadArgs};
use message::{Begin, Held, LoadMsg, Probe, Stop};

/// How requests are paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Establishments a second, whatever the answers do.
    Rate(f64),
    /// Requests in flight; an answer makes room for the next.
    InFlight(usize),
}

/// What a load does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadPlan {
    /// The node that is loaded.
    pub to: SocketAddr,
    /// The address to send from. Port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The Node ID to associate with; one made of the address if it is not set.
    pub node_id: Option<String>,
    /// The release that is spoken: what is newer is neither sent nor read.
    pub release: Release,
    /// How requests are paced.
    pub pace: Pace,
    /// How many sessions are held at most.
    pub sessions: usize,
    /// How long new work is begun; until it is stopped, if it is not set.
    pub duration: Option<Duration>,
    /// How long an answer is waited for before a request is sent again.
    pub t1: Duration,
    /// How often a request is sent before it counts as lost.
    pub n1: u32,
    /// Whether sessions and association are left behind at the end. If not, they are deleted: a
    /// session that the peer does not know then counts as lost.
    pub keep: bool,
    /// Modifications for each establishment: 0.5 is one for two.
    pub modifications: f64,
    /// The share of datagrams, both ways, that the load itself loses: 0.05 is one in twenty.
    pub loss: f64,
    /// The share of its datagrams that the load lets the next one overtake.
    pub reordering: f64,
    /// The octets of a session after which its usage is reported, by a URR of its own; none is
    /// counted where it is not set.
    pub usage: Option<u64>,
    /// Whether sessions belong to the network "internet" and ask for rates, each for others: by a
    /// QER of their own, for whoever decides about them.
    pub rates: bool,
    /// A file for what is asked and what is acknowledged, for [`Audit`](crate::Audit).
    pub ledger: Option<PathBuf>,
    /// Panics in the sessions of a node in this process.
    pub chaos: Option<Chaos>,
    /// How long the node may be silent before a heartbeat is sent.
    pub heartbeat: Duration,
    /// The fate of sessions that the node lost. Either way they count as lost, and while the node
    /// itself is lost nothing new is begun.
    pub on_loss: OnLoss,
    /// The pace at which a lost node is looked for and its sessions are restored.
    pub restoration: Restoration,
}

/// Panics in session actors under load, each followed by a modification that names a PDR of the
/// session: a session that does not accept it counts as lost.
#[derive(Clone, Debug)]
pub struct Chaos {
    /// The node whose sessions panic; the one that is loaded.
    pub node: NodeHandle,
    /// Panics a second.
    pub rate: f64,
}

impl LoadPlan {
    /// A thousand sessions at two hundred a second, until it is stopped.
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
            pace: Pace::Rate(200.0),
            sessions: 1000,
            duration: None,
            t1: Duration::from_secs(1),
            n1: 3,
            keep: false,
            modifications: 0.0,
            usage: None,
            rates: false,
            loss: 0.0,
            reordering: 0.0,
            ledger: None,
            chaos: None,
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
    /// Associates with the peer, and starts.
    ///
    /// # Errors
    /// When the address cannot be bound, the ledger cannot be made, or the peer refuses or does not
    /// answer.
    pub async fn start(system: &ActorSystem, plan: LoadPlan) -> Result<LoadHandle, ClientError> {
        let sockets = Sockets::bind(&[plan.listen], 65_535).await;
        let sockets = sockets.map_err(|error| ClientError::Bind(Arc::new(error)))?;
        let local = sockets.address(0);
        let text = plan
            .node_id
            .clone()
            .unwrap_or_else(|| format!("smf-{}.load", local.port()));
        let name = match text.parse::<IpAddr>() {
            Ok(address) => address.into(),
            Err(_) => NodeName::from_fqdn(&text).ok_or(ClientError::NodeId(text))?,
        };
        let ledger = plan.ledger.as_deref().map(Ledger::create).transpose();
        let ledger = ledger.map_err(|error| ClientError::Ledger(Arc::new(error)))?;
        let figures = Arc::new(Mutex::new(LoadFigures::new()));
        let patience = plan.t1.saturating_mul(plan.n1.max(1)) + Duration::from_secs(1);
        let args = LoadArgs {
            sockets: Arc::new(sockets),
            name,
            recovery: recovery_now(),
            plan: Arc::new(plan),
            figures: Arc::clone(&figures),
            ledger: ledger.map(|ledger| Arc::new(Mutex::new(ledger))),
        };
        let to = args.plan.to;
        let actor = system.spawn::<LoadActor>(format!("load-{local}"), args)?;
        let handle = LoadHandle {
            actor,
            figures,
            local,
            to,
            patience,
        };
        let begun = handle.actor.ask_within(Begin, patience).await;
        begun.map_err(|error| unanswered(&error, to))??;
        Ok(handle)
    }
}

/// A running load.
#[derive(Clone, Debug)]
pub struct LoadHandle {
    actor: ActorRef<LoadMsg>,
    figures: Arc<Mutex<LoadFigures>>,
    local: SocketAddr,
    to: SocketAddr,
    patience: Duration,
}

impl LoadHandle {
    /// The address that requests are sent from.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The figures at this moment.
    #[must_use]
    pub fn snapshot(&self) -> LoadFigures {
        self.figures.lock().clone()
    }

    /// The sessions that are held: our identifier and the peer's.
    ///
    /// # Errors
    /// When the load has ended.
    pub async fn held(&self) -> Result<Vec<(Seid, Seid)>, ClientError> {
        Ok(self.actor.ask(Held).await?)
    }

    /// Sends a modification that names a PDR of a held session; `None` if it is not held. An answer
    /// that is no acceptance counts the session as lost.
    ///
    /// # Errors
    /// When the load has ended, or the peer does not answer.
    pub async fn modify(&self, seid: Seid) -> Result<Option<Cause>, ClientError> {
        let answer = self.actor.ask_within(Probe { seid }, self.patience).await;
        answer.map_err(|error| unanswered(&error, self.to))?
    }

    /// Ends the load: nothing new is begun, answers are waited for, sessions are deleted unless
    /// they are to be kept.
    pub fn stop(&self) {
        // A load that does not take this has ended.
        let _ = self.actor.try_tell(Stop);
    }

    /// Waits for the end.
    pub async fn finished(&self) -> LoadFigures {
        self.actor.stopped().await;
        self.snapshot()
    }
}
