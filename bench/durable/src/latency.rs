//! The time of one save at half of the rate that a durable actor reaches.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use strowger::{Actor, ActorRef, ActorSystem, Ask, Context};
use strowger_bench::{Case, Counted, Plan, workers};
use strowger_durable::store::Durability;
use tokio::runtime::Runtime;

use crate::database::{Fjall, Writer};
use crate::register::{Registers, Save};
use crate::{Place, value};

const KEY: &str = "register";

/// Measures both percentiles of durable actors and of an actor that writes by hand.
pub fn run(plan: &Plan, place: &Place) {
    const ROWS: [(&str, usize); 2] = [("half_load_p50", 50), ("half_load_p99", 99)];
    if !ROWS.iter().any(|(id, _)| plan.wants(id)) {
        return;
    }
    let runtime = Arc::new(workers(0, 2));
    let interval = 2 * time_of_one(&runtime, place);
    let count = if plan.is_quick() { 2000 } else { 20_000 };
    for (id, percent) in ROWS {
        let (here, there) = (place.clone(), place.clone());
        let (ours, other) = (Arc::clone(&runtime), Arc::clone(&runtime));
        let per_second = (1.0 / interval.as_secs_f64()).round();
        plan.run(vec![
            Case::counted(id, "strowger", "ns", move || {
                let registers = Arc::new(Registers::open(&here.new_path(), Durability::Process));
                let waits = open_loop(&ours, interval, count, |number| {
                    let registers = Arc::clone(&registers);
                    async move { registers.save(KEY.to_owned(), value(number)).await }
                });
                ours.block_on(Arc::into_inner(registers).expect("all are done").close());
                percentile(waits, percent)
            })
            .with_note("per_second", per_second),
            Case::counted(id, "fjall", "ns", move || {
                let path = there.new_path();
                let writer = Writer::open::<Fjall>(&path, Durability::Process);
                let system = ActorSystem::new("bench").expect("it starts");
                let actor = system.spawn::<WritingActor>("writing", Arc::new(writer));
                let actor: ActorRef<Ask<Save>> = actor.expect("its key is free");
                let waits = open_loop(&other, interval, count, |number| {
                    let actor = actor.clone();
                    async move { actor.ask(Save(value(number))).await.expect("it is saved") }
                });
                other.block_on(system.shutdown(Duration::from_secs(60)));
                percentile(waits, percent)
            })
            .with_note("per_second", per_second),
        ]);
    }
}

/// An actor without durable state that writes each value by hand before it answers.
struct WritingActor {
    writer: Arc<Writer>,
    count: u64,
}

impl Actor for WritingActor {
    type Msg = Ask<Save>;
    type Args = Arc<Writer>;
    type Error = Infallible;

    async fn pre_start(writer: Arc<Writer>, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self { writer, count: 0 })
    }

    async fn handle(&mut self, ask: Ask<Save>, _: &mut Context<Self>) -> Result<(), Infallible> {
        self.writer.save(KEY.to_owned(), ask.request.0).await;
        self.count += 1;
        ask.reply.send(self.count);
        Ok(())
    }
}

/// Returns the time of a save of a durable actor that has nothing else to do.
fn time_of_one(runtime: &Runtime, place: &Place) -> Duration {
    const COUNT: u32 = 3000;
    let registers = Registers::open(&place.new_path(), Durability::Process);
    runtime.block_on(async move {
        registers.save(KEY.to_owned(), value(0)).await;
        let start = Instant::now();
        for number in 0..COUNT {
            registers.save(KEY.to_owned(), value(number.into())).await;
        }
        let time = start.elapsed();
        registers.close().await;
        time / COUNT
    })
}

/// Sends requests at a fixed rate, and returns how long each waited. A thread of its own sends
/// those that are due, so that the lateness of a timer is not counted as that of an answer.
fn open_loop<F>(
    runtime: &Runtime,
    interval: Duration,
    count: u64,
    ask: impl Fn(u64) -> F,
) -> Vec<Duration>
where
    F: Future<Output = u64> + Send + 'static,
{
    let waits = Arc::new(Mutex::new(Vec::with_capacity(count as usize)));
    let start = Instant::now();
    let mut asks = Vec::with_capacity(count as usize);
    for number in 0..count {
        let due = start + interval * u32::try_from(number).expect("a small count");
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let (answer, waits) = (ask(number), Arc::clone(&waits));
        let sent = Instant::now();
        asks.push(runtime.spawn(async move {
            let saved = answer.await;
            waits.lock().expect("nobody panics").push(sent.elapsed());
            saved
        }));
    }
    let mut counts: Vec<u64> = runtime.block_on(async {
        let mut counts = Vec::with_capacity(asks.len());
        for ask in asks {
            counts.push(ask.await.expect("it does not panic"));
        }
        counts
    });
    counts.sort_unstable();
    assert!(counts.iter().copied().eq(1..=count), "each is saved once");
    let waits = waits.lock().expect("nobody panics");
    waits.clone()
}

fn percentile(mut waits: Vec<Duration>, percent: usize) -> Counted {
    waits.sort_unstable();
    let wait = waits[waits.len() * percent / 100];
    Ok((wait.as_nanos() as f64, waits.len() as u64))
}
