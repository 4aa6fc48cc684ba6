//! The runtime beside hand-written tokio tasks, ractor, kameo, actix and xtra: same work, same run,
//! two workers.

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

use strowger_bench::{Case, Counting, Pick, Plan};
use tokio::runtime::Runtime;

use crate::counter::Planted;
use crate::subject::{Room, Seat, Seats, Subject};
use crate::work::Work;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let plan = Plan::from_args("runtime", Pick::Median);
    be_silent_about_planted_panics();
    let (both, one, other) = (workers(2), workers(1), workers(1));
    let together = Seats {
        here: both.handle().clone(),
        there: both.handle().clone(),
    };
    let apart = Seats {
        here: one.handle().clone(),
        there: other.handle().clone(),
    };
    let (together, apart) = (Subjects::start(&together), Subjects::start(&apart));
    for work in Work::ALL {
        let subjects = match work {
            Work::AskOtherWorker => &apart,
            _ => &together,
        };
        plan.run(subjects.cases(work));
    }
}

fn workers(count: usize) -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(count)
        .enable_all()
        .build()
        .expect("tokio starts its workers")
}

/// The default hook writes to the terminal, which costs more than the restart that is measured.
fn be_silent_about_planted_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some(Planted::PANIC) {
            default(panic);
        }
    }));
}

/// Everybody, on the same seats.
struct Subjects {
    strowger: strowger_actor::Strowger,
    tokio: tokio_task::Tokio,
    ractor: ractor_actor::Ractor,
    kameo: kameo_actor::Kameo,
    actix: actix_actor::Actix,
    xtra: xtra_actor::Xtra,
}

impl Subjects {
    fn start(seats: &Seats) -> Self {
        Self {
            strowger: Subject::start(seats.clone()),
            tokio: Subject::start(seats.clone()),
            ractor: Subject::start(seats.clone()),
            kameo: Subject::start(seats.clone()),
            actix: Subject::start(seats.clone()),
            xtra: Subject::start(seats.clone()),
        }
    }

    /// A row with its bounded form beside it.
    fn cases(&self, work: Work) -> Vec<Case> {
        [(Room::Unbounded, ""), (Room::Bounded, "_bounded")]
            .into_iter()
            .flat_map(|(room, suffix)| {
                let id = format!("{}{suffix}", work.id());
                [
                    case(&self.strowger, work, room, &id),
                    case(&self.tokio, work, room, &id),
                    case(&self.ractor, work, room, &id),
                    case(&self.kameo, work, room, &id),
                    case(&self.actix, work, room, &id),
                    case(&self.xtra, work, room, &id),
                ]
            })
            .collect()
    }
}

fn case<S: Subject>(subject: &S, work: Work, room: Room, id: &str) -> Case {
    if let Some(reason) = S::lacks(work, room) {
        return Case::lacking(id, S::NAME, work.unit(), reason);
    }
    let subject = subject.clone();
    if work == Work::HeapPerIdleActor {
        return Case::counted(id, S::NAME, work.unit(), move || {
            drive(&subject, work.count(subject.clone(), room))
        });
    }
    Case::new(id, S::NAME, move |operations| {
        drive(&subject, work.run(subject.clone(), room, operations))
    })
}

/// Runs work as a task of the subject: the driver is a task among tasks, as in a program.
fn drive<S: Subject, T: Send + 'static>(
    subject: &S,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let result = subject.task(Seat::Here, work);
    result
        .blocking_recv()
        .expect("the work ends without a panic")
}
