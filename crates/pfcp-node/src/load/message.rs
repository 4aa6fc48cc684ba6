//! The messages of the load actor.

use strowger::{Accepts, Ask, Request};
use strowger_pfcp::Seid;
use strowger_pfcp::ie::Cause;

use crate::client::ClientError;
use crate::socket::Batch;

/// A request to set up the association and start the load.
#[derive(Debug)]
pub(super) struct Begin;

impl Request for Begin {
    type Reply = Result<(), ClientError>;
}

/// A request for the sessions that are held.
#[derive(Debug)]
pub(super) struct ListHeld;

impl Request for ListHeld {
    type Reply = Vec<(Seid, Seid)>;
}

/// A request to probe a session.
#[derive(Debug)]
pub(super) struct Probe {
    pub(super) seid: Seid,
}

impl Request for Probe {
    type Reply = Result<Option<Cause>, ClientError>;
}

/// A message that makes the load check its schedule.
#[derive(Debug)]
pub(super) struct Tick;

/// A message that stops the sending of new requests.
#[derive(Debug)]
pub(super) struct Stop;

/// The messages that the load actor accepts.
#[derive(Debug)]
pub(crate) enum LoadMsg {
    Received(Batch),
    Due,
    Tick,
    Begin(Ask<Begin>),
    ListHeld(Ask<ListHeld>),
    Probe(Ask<Probe>),
    Stop,
}

impl Accepts<Batch> for LoadMsg {
    fn wrap(batch: Batch) -> Self {
        Self::Received(batch)
    }
}

impl Accepts<Tick> for LoadMsg {
    fn wrap(_: Tick) -> Self {
        Self::Tick
    }
}

impl Accepts<Ask<Begin>> for LoadMsg {
    fn wrap(ask: Ask<Begin>) -> Self {
        Self::Begin(ask)
    }
}

impl Accepts<Ask<ListHeld>> for LoadMsg {
    fn wrap(ask: Ask<ListHeld>) -> Self {
        Self::ListHeld(ask)
    }
}

impl Accepts<Ask<Probe>> for LoadMsg {
    fn wrap(ask: Ask<Probe>) -> Self {
        Self::Probe(ask)
    }
}

impl Accepts<Stop> for LoadMsg {
    fn wrap(_: Stop) -> Self {
        Self::Stop
    }
}
