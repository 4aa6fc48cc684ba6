//! The runtime beside hand-written tokio tasks, ractor and kameo: same work, same run, two workers.

mod kameo_actor;
mod ractor_actor;
mod strowger_actor;
mod tokio_task;
mod work;

use std::future::Future;
use std::sync::Arc;

use strowger_bench::{Case, Pick, Plan, Sample};
use tokio::runtime::Runtime;

use crate::work::{Room, Subject};

fn main() {
    let plan = Plan::from_args("runtime", Pick::Median);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("tokio starts two workers");
    let runtime = Arc::new(runtime);
    let mut cases = Vec::new();
    let strowger = {
        let _inside = runtime.enter();
        strowger_actor::Strowger::start()
    };
    add(&mut cases, &runtime, strowger);
    add(&mut cases, &runtime, tokio_task::Tokio);
    add(&mut cases, &runtime, ractor_actor::Ractor);
    add(&mut cases, &runtime, kameo_actor::Kameo);
    cases.sort_by_key(|(order, _)| *order);
    plan.run(cases.into_iter().map(|(_, case)| case).collect());
}

/// Adds every kind of work for a subject, with its place in the table.
fn add<S: Subject>(cases: &mut Vec<(usize, Case)>, runtime: &Arc<Runtime>, subject: S) {
    let mut order = 0;
    let mut case = |order: &mut usize, id: &str, mut run: Box<dyn FnMut(S, u64) -> Sample>| {
        let subject = subject.clone();
        cases.push((
            *order,
            Case::new(id, S::NAME, move |n| run(subject.clone(), n)),
        ));
        *order += 1;
    };
    for (room, suffix) in [(Room::Unbounded, ""), (Room::Bounded, "_bounded")] {
        // Not every peer bounds its mailboxes.
        if room != Room::Unbounded && !S::TAKES_BOUNDS {
            order += 2;
            continue;
        }
        for (producers, name) in [(1, "tell"), (4, "tell_4_to_1")] {
            let run = on(runtime, move |s, n| work::tell::<S>(s, room, producers, n));
            case(&mut order, &format!("{name}{suffix}"), run);
        }
    }
    case(&mut order, "ask", on(runtime, work::ask::<S>));
    case(&mut order, "hop", on(runtime, work::hop::<S>));
    case(
        &mut order,
        "spawn_until_answered",
        on(runtime, work::spawn_until_answered::<S>),
    );
}

/// Runs work as a task of the runtime: the driver is a task among tasks, as in a program.
fn on<S, F>(
    runtime: &Arc<Runtime>,
    work: impl Fn(S, u64) -> F + 'static,
) -> Box<dyn FnMut(S, u64) -> Sample>
where
    F: Future<Output = Sample> + Send + 'static,
{
    let runtime = Arc::clone(runtime);
    Box::new(move |subject, operations| {
        let task = runtime.spawn(work(subject, operations));
        runtime
            .block_on(task)
            .expect("the work ends without a panic")
    })
}
