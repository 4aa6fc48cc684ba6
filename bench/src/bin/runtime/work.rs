//! The work that every subject does, and the checks of its results.

mod ask;
mod crowding;
mod life;
mod pass;
mod scale;
mod scatter;
mod tell;

use strowger_bench::Sample;

use crate::counter::Failure;
use crate::subject::{Capacity, Subject};

pub use crowding::{Neighbour, neighbour, timeout_overrun};
pub use life::heap_per_idle_actor;
pub use scale::{ACTORS, CrowdFigure, LOADS, Quantile, crowd, latency, throughput};

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// This number of tasks tell numbers to one actor.
    Tell(u64),
    /// One task asks, one ask at a time.
    Ask,
    /// The same as [`Work::Ask`], of an actor that other tasks tell at the same time.
    AskBusy,
    /// An actor asks another from its handler.
    AskFromActor,
    /// The same as [`Work::Ask`], of an actor on another worker.
    AskOtherWorker,
    /// One task asks eight actors at once, and each of them computes.
    Scatter,
    /// Two actors pass a token back and forth.
    Hop,
    /// A thousand actors pass a token around a ring.
    RingHop,
    /// One actor passes every number on to this number of actors.
    FanOut(usize),
    /// An actor is started and answers its first ask.
    SpawnUntilAnswered,
    /// Ten thousand actors are started, then stopped.
    SpawnAndStop,
    /// An actor fails, and its next incarnation answers.
    Restart(Failure),
    /// Heap memory of an idle actor.
    HeapPerIdleActor,
}

impl Workload {
    /// All rows, in the order of the table.
    pub const ALL: [Self; 16] = [
        Self::Tell(1),
        Self::Tell(4),
        Self::Ask,
        Self::AskBusy,
        Self::AskFromActor,
        Self::AskOtherWorker,
        Self::Scatter,
        Self::Hop,
        Self::RingHop,
        Self::FanOut(10),
        Self::FanOut(100),
        Self::SpawnUntilAnswered,
        Self::SpawnAndStop,
        Self::Restart(Failure::Error),
        Self::Restart(Failure::Panic),
        Self::HeapPerIdleActor,
    ];

    /// Returns the id in the table, without the suffix for the bound.
    pub fn id(self) -> &'static str {
        match self {
            Self::Tell(1) => "tell",
            Self::Tell(_) => "tell_4_to_1",
            Self::Ask => "ask",
            Self::AskBusy => "ask_busy",
            Self::AskFromActor => "ask_from_actor",
            Self::AskOtherWorker => "ask_other_worker",
            Self::Scatter => "scatter_8",
            Self::Hop => "hop",
            Self::RingHop => "ring_hop",
            Self::FanOut(10) => "fan_out_10",
            Self::FanOut(_) => "fan_out_100",
            Self::SpawnUntilAnswered => "spawn_until_answered",
            Self::SpawnAndStop => "spawn_and_stop",
            Self::Restart(Failure::Error) => "restart_err",
            Self::Restart(Failure::Panic) => "restart_panic",
            Self::HeapPerIdleActor => "heap_per_idle_actor",
        }
    }

    /// Returns the unit of the figure.
    pub fn unit(self) -> &'static str {
        match self {
            Self::HeapPerIdleActor => "bytes",
            _ => "ns",
        }
    }

    /// Does about the requested number of operations.
    pub async fn run<S: Subject>(self, subject: S, capacity: Capacity, operations: u64) -> Sample {
        match self {
            Self::Tell(tellers) => tell::tell(subject, capacity, tellers, operations).await,
            Self::Ask => ask::ask(subject, capacity, operations).await,
            Self::AskBusy => ask::ask_busy(subject, capacity, operations).await,
            Self::AskFromActor => ask::ask_from_actor(subject, capacity, operations).await,
            Self::AskOtherWorker => ask::ask_there(subject, capacity, operations).await,
            Self::Scatter => scatter::scatter(subject, capacity, operations).await,
            Self::Hop => pass::ring(subject, capacity, 2, operations).await,
            Self::RingHop => pass::ring(subject, capacity, 1000, operations).await,
            Self::FanOut(leaves) => pass::fan_out(subject, capacity, leaves, operations).await,
            Self::SpawnUntilAnswered => {
                life::spawn_until_answered(subject, capacity, operations).await
            }
            Self::SpawnAndStop => life::spawn_and_stop(subject, capacity, operations).await,
            Self::Restart(failure) => life::restart(subject, capacity, failure, operations).await,
            Self::HeapPerIdleActor => unreachable!("it is counted, not timed"),
        }
    }
}
