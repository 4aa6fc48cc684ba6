//! What the actor of a load takes.

use strowger::{Accepts, Ask, Request};
use strowger_pfcp::Seid;
use strowger_pfcp::ie::Cause;

use crate::client::ClientError;
use crate::socket::Batch;

/// Associates, and waits for it.
#[derive(Debug)]
pub(super) struct Begin;

impl Request for Begin {
    type Reply = Result<(), ClientError>;
}

/// Asks for the sessions that are held.
#[derive(Debug)]
pub(super) struct Held;

impl Request for Held {
    type Reply = Vec<(Seid, Seid)>;
}

/// Asks to try a session.
#[derive(Debug)]
pub(super) struct Probe {
    pub(super) seid: Seid,
}

impl Request for Probe {
    type Reply = Result<Option<Cause>, ClientError>;
}

/// Has the load look at its schedule.
#[derive(Debug)]
pub(super) struct Tick;

/// Ends new work.
#[derive(Debug)]
pub(super) struct Stop;

/// What the actor takes.
#[derive(Debug)]
pub(crate) enum LoadMsg {
    Received(Batch),
    Due,
    Tick,
    Begin(Ask<Begin>),
    Held(Ask<Held>),
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

impl Accepts<Ask<Held>> for LoadMsg {
    fn wrap(ask: Ask<Held>) -> Self {
        Self::Held(ask)
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
