//! The runtime beside hand-written tokio tasks, ractor, kameo, actix and xtra: the same work in the
//! same run, on two workers.

mod actix_actor;
mod counter;
mod kameo_actor;
mod ractor_actor;
mod strowger_actor;
mod subject;
mod tokio_task;
mod work;
mod xtra_actor;

use std::future::Future;

use strowger_bench::{Case, CountingAllocator, Estimate, Machine, Plan, workers};

use crate::counter::InjectedFailure;
use crate::subject::{Capacity, Placement, Subject, WorkerHandles};
use crate::work::{CrowdFigure, Neighbour, Quantile, Workload};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() {
    let plan =
        Plan::from_args(&["runtime", "scale"], Estimate::Median).with_machine(Machine::measure());
    silence_injected_panics();
    let (both, one, other) = (workers(0, 2), workers(0, 1), workers(1, 1));
    let together = WorkerHandles {
        here: both.handle().clone(),
        there: both.handle().clone(),
    };
    let apart = WorkerHandles {
        here: one.handle().clone(),
        there: other.handle().clone(),
    };
    if plan.part() == "scale" {
        scale(&plan, &Subjects::start(&together));
        return;
    }
    let (together, apart) = (Subjects::start(&together), Subjects::start(&apart));
    for work in Workload::ALL {
        let subjects = match work {
            Workload::AskOtherWorker => &apart,
            _ => &together,
        };
        plan.run(subjects.cases(work));
    }
    plan.run(together.each(&TimeoutOverrunRow));
    for who in [Neighbour::Timer, Neighbour::Socket] {
        for busy in [1, 10] {
            plan.run(together.each(&NeighbourDelayRow(who, busy)));
        }
    }
}

/// Number of live actors in the rows about a million.
const MILLION: usize = 1_000_000;

/// Measures the rows that the plots are drawn from, and a million actors that live at once.
fn scale(plan: &Plan, subjects: &Subjects) {
    // This runs first, while the process holds no memory left over from other cases.
    plan.run(vec![
        LiveActorsRow(CrowdFigure::Resident).case(&subjects.strowger),
    ]);
    // The other subjects would need minutes, or gigabytes; their rows for a single actor tell how
    // much.
    for figure in [CrowdFigure::Heap, CrowdFigure::Spawned] {
        let row = LiveActorsRow(figure);
        plan.run(vec![
            row.case(&subjects.strowger),
            row.case(&subjects.tokio),
        ]);
    }
    for actors in work::ACTORS {
        plan.run(subjects.each(&ThroughputRow(actors)));
    }
    for load in work::LOADS {
        for quantile in [Quantile::Half, Quantile::NinetyNine] {
            plan.run(subjects.each(&LatencyRow(load, quantile)));
        }
    }
}

/// Silences seeded panics: the default hook writes to the terminal, which costs more than the
/// restart that is measured.
fn silence_injected_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some(InjectedFailure::PANIC) {
            default(panic);
        }
    }));
}

/// All subjects, on the same two workers.
struct Subjects {
    strowger: strowger_actor::Strowger,
    tokio: tokio_task::Tokio,
    ractor: ractor_actor::Ractor,
    kameo: kameo_actor::Kameo,
    actix: actix_actor::Actix,
    xtra: xtra_actor::Xtra,
}

impl Subjects {
    fn start(handles: &WorkerHandles) -> Self {
        Self {
            strowger: Subject::start(handles.clone()),
            tokio: Subject::start(handles.clone()),
            ractor: Subject::start(handles.clone()),
            kameo: Subject::start(handles.clone()),
            actix: Subject::start(handles.clone()),
            xtra: Subject::start(handles.clone()),
        }
    }

    /// The cases of a row, followed by those of its bounded form.
    fn cases(&self, work: Workload) -> Vec<Case> {
        let unbounded = self.each(&WorkloadRow(work, Capacity::Unbounded, ""));
        if work == Workload::Scatter {
            // Eight messages at a time never reach the bound.
            return unbounded;
        }
        let bounded = self.each(&WorkloadRow(work, Capacity::Bounded, "_bounded"));
        unbounded.into_iter().chain(bounded).collect()
    }

    fn each(&self, row: &impl MakesCase) -> Vec<Case> {
        vec![
            row.case(&self.strowger),
            row.case(&self.tokio),
            row.case(&self.ractor),
            row.case(&self.kameo),
            row.case(&self.actix),
            row.case(&self.xtra),
        ]
    }
}

/// A row that is not yet tied to a subject.
trait MakesCase {
    fn case<S: Subject>(&self, subject: &S) -> Case;
}

/// A row of the table, with its mailbox and the suffix that this adds to the id.
struct WorkloadRow(Workload, Capacity, &'static str);

impl MakesCase for WorkloadRow {
    fn case<S: Subject>(&self, subject: &S) -> Case {
        let &Self(work, capacity, suffix) = self;
        case(subject, work, capacity, &format!("{}{suffix}", work.id()))
    }
}

/// Message throughput to this number of actors.
struct ThroughputRow(usize);

impl MakesCase for ThroughputRow {
    fn case<S: Subject>(&self, subject: &S) -> Case {
        let Self(actors) = *self;
        let id = format!("throughput/{actors}");
        if actors >= MILLION && ["ractor", "kameo"].contains(&S::NAME) {
            let reason = "a million of them take more than 5 GB";
            return Case::lacking(id, S::NAME, "ns", reason);
        }
        let subject = subject.clone();
        Case::counted(id, S::NAME, "ns", move || {
            drive(&subject, work::throughput(subject.clone(), actors))
        })
    }
}

/// Actors that live at once, a million of them.
struct LiveActorsRow(CrowdFigure);

impl MakesCase for LiveActorsRow {
    fn case<S: Subject>(&self, subject: &S) -> Case {
        let Self(figure) = *self;
        let (id, unit) = match figure {
            CrowdFigure::Spawned => ("live_spawned", "ns"),
            CrowdFigure::Heap => ("live_heap", "bytes"),
            CrowdFigure::Resident => ("live_resident", "bytes"),
        };
        let id = format!("{id}/{MILLION}");
        let subject = subject.clone();
        Case::counted(id, S::NAME, unit, move || {
            drive(&subject, work::crowd(subject.clone(), MILLION, figure))
        })
    }
}

/// Latency of answers at this number of messages per second.
struct LatencyRow(u64, Quantile);

impl MakesCase for LatencyRow {
    fn case<S: Subject>(&self, subject: &S) -> Case {
        let Self(load, quantile) = *self;
        let name = match quantile {
            Quantile::Half => "p50",
            Quantile::NinetyNine => "p99",
        };
        let id = format!("latency_{name}/{load}");
        if let Some(reason) = S::unsupported(Workload::Tell(1), Capacity::Bounded) {
            return Case::lacking(id, S::NAME, "ns", reason);
        }
        let subject = subject.clone();
        Case::counted(id, S::NAME, "ns", move || {
            drive(&subject, work::latency(subject.clone(), load, quantile))
        })
    }
}

/// Lateness of a time-out around asks.
struct TimeoutOverrunRow;

impl MakesCase for TimeoutOverrunRow {
    fn case<S: Subject>(&self, subject: &S) -> Case {
        let subject = subject.clone();
        Case::counted("timeout_overrun", S::NAME, "us", move || {
            drive(&subject, work::timeout_overrun(subject.clone()))
        })
    }
}

/// Lateness of a neighbour of this number of busy actors per worker.
struct NeighbourDelayRow(Neighbour, usize);

impl MakesCase for NeighbourDelayRow {
    fn case<S: Subject>(&self, subject: &S) -> Case {
        let Self(who, busy) = *self;
        let name = match who {
            Neighbour::Timer => "neighbour_p99",
            Neighbour::Socket => "neighbour_udp_p99",
        };
        let subject = subject.clone();
        Case::counted(format!("{name}/{busy}"), S::NAME, "us", move || {
            drive(&subject, work::neighbour(subject.clone(), busy, who))
        })
    }
}

fn case<S: Subject>(subject: &S, work: Workload, capacity: Capacity, id: &str) -> Case {
    if let Some(reason) = S::unsupported(work, capacity) {
        return Case::lacking(id, S::NAME, work.unit(), reason);
    }
    let subject = subject.clone();
    if work == Workload::HeapPerIdleActor {
        return Case::counted(id, S::NAME, work.unit(), move || {
            drive(
                &subject,
                work::heap_per_idle_actor(subject.clone(), capacity),
            )
        });
    }
    Case::new(id, S::NAME, move |operations| {
        drive(&subject, work.run(subject.clone(), capacity, operations))
    })
}

/// Runs work as a task of the subject: the driver is a task among others, as in a program.
fn drive<S: Subject, T: Send + 'static>(
    subject: &S,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let result = subject.task(Placement::Here, work);
    result
        .blocking_recv()
        .expect("the work ends without a panic")
}
