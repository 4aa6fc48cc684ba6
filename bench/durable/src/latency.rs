//! The time of one save at half of the rate that a durable actor reaches.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger::{Actor, ActorSystem, Ask, Context};
use strowger_bench::{Plan, Row, workers};
use strowger_durable::store::Durability;
use tokio::runtime::Runtime;

use crate::database::{Database, Fjall};
use crate::register::{Registers, Save};
use crate::{Databases, key, value};

/// The rows, each with its percentile.
const ROWS: [(&str, usize); 2] = [("half_load_p50", 50), ("half_load_p99", 99)];

/// Number of callers that wait for an answer while the maximum rate is measured.
const CALLERS: u64 = 64;

/// A subject that saves the values of the first numbers, one in each interval.
type Subject = fn(&Runtime, &Databases, Duration, u64) -> Vec<Duration>;

const SUBJECTS: [(&str, Subject); 2] = [("strowger", durable_actor), ("fjall", ask_and_append)];

/// Measures the median and the 99th percentile of both subjects at the same rate.
pub(crate) fn measure(plan: &Plan, databases: &Databases) {
    if !ROWS.iter().any(|(id, _)| plan.wants(id)) {
        return;
    }
    let runtime = workers(0, 2);
    let (rounds, count) = match plan.is_quick() {
        true => (1, 2000),
        // The 99th percentiles of runs differ threefold.
        false => (9, 20_000),
    };
    plan.progress("rate of a durable actor");
    let rate = maximum_rate(&runtime, databases, count) / 2.0;
    let interval = Duration::from_secs_f64(1.0 / rate);
    // The figures of each percentile, by subject.
    let mut figures = ROWS.map(|_| SUBJECTS.map(|_| Vec::new()));
    for round in 1..=rounds {
        for (at, (subject, run)) in SUBJECTS.iter().enumerate() {
            plan.progress(&format!(
                "round {round} of {rounds}, half load of {subject}"
            ));
            let mut times = run(&runtime, databases, interval, count);
            times.sort_unstable();
            for ((_, percent), figures) in ROWS.iter().zip(&mut figures) {
                let time = times[times.len() * percent / 100];
                figures[at].push(time.as_nanos() as f64);
            }
        }
    }
    plan.progress("");
    for ((id, _), figures) in ROWS.iter().zip(figures) {
        for ((subject, _), mut figures) in SUBJECTS.iter().zip(figures) {
            figures.sort_by(f64::total_cmp);
            let done = count * rounds;
            plan.print(&Row {
                part: plan.part(),
                id: (*id).to_owned(),
                subject,
                value: Ok(figures[figures.len() / 2]),
                unit: "ns",
                iterations: done,
                checked: done,
                notes: vec![("per_second", rate.round().into())],
            });
        }
    }
}

/// Returns the number of saves a second of one durable actor whose callers always wait for it.
fn maximum_rate(runtime: &Runtime, databases: &Databases, count: u64) -> f64 {
    let path = databases.path("half_load", "rate");
    runtime.block_on(async {
        let registers = Arc::new(Registers::open(&path, Durability::Process));
        assert_eq!(registers.save(key(0), value(0)).await, 1);
        let start = Instant::now();
        let callers = (0..CALLERS).map(|caller| {
            let registers = Arc::clone(&registers);
            tokio::spawn(async move {
                for number in (caller..count).step_by(CALLERS as usize) {
                    registers.save(key(0), value(number)).await;
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.expect("no caller panics");
        }
        let rate = count as f64 / start.elapsed().as_secs_f64();
        assert_eq!(registers.save(key(0), value(count)).await, count + 2);
        let registers = Arc::into_inner(registers);
        registers.expect("all callers are done").close().await;
        rate
    })
}

/// Asks a durable actor, which saves the value and then answers.
fn durable_actor(
    runtime: &Runtime,
    databases: &Databases,
    interval: Duration,
    count: u64,
) -> Vec<Duration> {
    let path = databases.path("half_load", "strowger");
    let registers = {
        let _runtime = runtime.enter();
        Arc::new(Registers::open(&path, Durability::Process))
    };
    let before = runtime.block_on(registers.save(key(0), value(0)));
    let times = open_loop(runtime, interval, count, |number| {
        let registers = Arc::clone(&registers);
        async move { registers.save(key(0), value(number)).await - before }
    });
    let registers = Arc::into_inner(registers).expect("all saves are done");
    runtime.block_on(async {
        registers.close().await;
        let again = Registers::open(&path, Durability::Process);
        let saved = again.save(key(0), value(0)).await;
        assert_eq!(saved, before + count + 1, "every save is stored");
        again.close().await;
    });
    times
}

/// Asks an actor without durable state, and appends the value by hand once it has answered.
fn ask_and_append(
    runtime: &Runtime,
    databases: &Databases,
    interval: Duration,
    count: u64,
) -> Vec<Duration> {
    let path = databases.path("half_load", "fjall");
    let database = Arc::new(Fjall::open(&path, Durability::Process));
    let (system, counter) = {
        let _runtime = runtime.enter();
        let system = ActorSystem::new("bench").expect("the system starts");
        let counter = system.spawn::<Counter>("counter", ());
        (system, counter.expect("the key is free"))
    };
    let times = open_loop(runtime, interval, count, |number| {
        let (counter, database) = (counter.clone(), Arc::clone(&database));
        async move {
            let answer = counter.ask(Save(value(number))).await;
            database.commit(&[(key(number), value(number))]);
            answer.expect("the actor answers")
        }
    });
    runtime.block_on(system.shutdown(Duration::from_secs(60)));
    drop(Arc::into_inner(database).expect("all tasks are done"));
    let mut again = Fjall::open(&path, Durability::Process);
    assert_eq!(again.len() as u64, count, "every value is stored");
    assert_eq!(again.read(&key(count - 1)), value(count - 1));
    times
}

/// An actor that counts values.
struct Counter(u64);

impl Actor for Counter {
    type Msg = Ask<Save>;
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(0))
    }

    async fn handle(&mut self, ask: Ask<Save>, _: &mut Context<Self>) -> Result<(), Infallible> {
        self.0 += 1;
        ask.reply.send(self.0);
        Ok(())
    }
}

/// Starts the saves of `count` numbers at fixed times, however long they take, and returns how
/// long after its time each was done. The answers must be the numbers from 1 on, in any order.
fn open_loop<F>(
    runtime: &Runtime,
    interval: Duration,
    count: u64,
    save: impl Fn(u64) -> F,
) -> Vec<Duration>
where
    F: Future<Output = u64> + Send + 'static,
{
    let start = Instant::now();
    let mut saves = Vec::with_capacity(count as usize);
    for number in 0..count {
        let due = start + interval * u32::try_from(number).expect("a few");
        // A sleep would end later than due by about as long as a save takes. Yielding leaves the
        // processor to the workers.
        while Instant::now() < due {
            std::thread::yield_now();
        }
        let save = save(number);
        saves.push(runtime.spawn(async move {
            let answer = save.await;
            (answer, due.elapsed())
        }));
    }
    let done = runtime.block_on(async {
        let mut done = Vec::with_capacity(saves.len());
        for save in saves {
            done.push(save.await.expect("no save panics"));
        }
        done
    });
    let (mut answers, times): (Vec<_>, Vec<_>) = done.into_iter().unzip();
    answers.sort_unstable();
    assert!(answers.into_iter().eq(1..=count), "each is counted once");
    times
}
