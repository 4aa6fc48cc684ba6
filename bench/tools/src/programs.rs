//! Programs: sequential asks of one program, and concurrent asks of many.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use strowger::{ActorRef, ActorSystem};
use strowger_bench::{Case, Counted, Sample, workers};
use strowger_tools::program::{
    PerformRequest, ProgramMessage, Programs, ProgramsMessage, ProgramsSpec, PublishRequest,
};
use tokio::runtime::Runtime;

use crate::code::realms;

/// A program that adds to its state.
const COUNTER: &str = "state.n ??= 0; function handle(by) { return state.n += by }";

/// Number of programs that are asked at the same time.
const PROGRAMS: usize = 64;

pub(super) fn cases(quick: bool) -> Vec<Case> {
    let span = Duration::from_millis(if quick { 500 } else { 3000 });
    let mut programs = None;
    let rate = Case::counted("program_rate", "strowger", "messages/s", move || {
        let programs = programs.get_or_insert_with(|| ProgramSystem::open(workers(0, 2), PROGRAMS));
        programs.rate(span)
    });
    vec![sequential_asks(), rate]
}

/// One program is asked, one ask at a time, on one thread.
fn sequential_asks() -> Case {
    let mut programs = None;
    Case::new("program_ask", "strowger", move |count| {
        let programs = programs.get_or_insert_with(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            ProgramSystem::open(runtime.expect("a runtime"), 1)
        });
        let program = &mut programs.programs[0];
        programs.runtime.block_on(async {
            let began = Instant::now();
            for by in 1..=count {
                program.ask(by).await;
            }
            Sample {
                time: began.elapsed(),
                done: count,
                checked: count,
            }
        })
    })
}

/// Published programs, and the answers expected of them.
struct ProgramSystem {
    programs: Vec<CalledProgram>,
    _system: ActorSystem,
    runtime: Runtime,
}

struct CalledProgram {
    program: ActorRef<ProgramMessage>,
    sum: u64,
}

impl CalledProgram {
    async fn ask(&mut self, by: u64) {
        self.sum += by;
        let answered = self.program.ask(PerformRequest(json!(by))).await;
        assert_eq!(answered.expect("it answers"), Ok(json!(self.sum)));
    }
}

impl ProgramSystem {
    fn open(runtime: Runtime, count: usize) -> Self {
        let realms = realms();
        let opening = async move {
            let system = ActorSystem::new("bench").expect("it starts");
            let spec = ProgramsSpec::new(realms);
            let registry = system
                .spawn::<Programs>("programs", spec)
                .expect("it starts");
            let mut programs = Vec::new();
            for number in 0..count {
                let program =
                    publish(&system, &registry, &format!("counter-{number}"), COUNTER).await;
                programs.push(CalledProgram { program, sum: 0 });
            }
            (system, programs)
        };
        let (system, programs) = runtime.block_on(opening);
        Self {
            programs,
            _system: system,
            runtime,
        }
    }

    /// Returns the number of messages that all programs together handle and answer per second.
    fn rate(&mut self, span: Duration) -> Counted {
        let programs = std::mem::take(&mut self.programs);
        let answered = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&answered);
        let began = Instant::now();
        let asking = async move {
            let tasks = programs.into_iter().map(|mut asked| {
                let answered = Arc::clone(&answered);
                tokio::spawn(async move {
                    let mut by = 0;
                    while began.elapsed() < span {
                        by += 1;
                        asked.ask(by).await;
                    }
                    answered.fetch_add(by, Ordering::Relaxed);
                    asked
                })
            });
            let tasks: Vec<_> = tasks.collect();
            let mut programs = Vec::new();
            for task in tasks {
                programs.push(task.await.expect("all were answered"));
            }
            programs
        };
        self.programs = self.runtime.block_on(asking);
        let took = began.elapsed();
        let count = count.load(Ordering::Relaxed);
        Ok((count as f64 / took.as_secs_f64(), count))
    }
}

/// Publishes a program.
pub(super) async fn publish(
    system: &ActorSystem,
    programs: &ActorRef<ProgramsMessage>,
    name: &str,
    code: &str,
) -> ActorRef<ProgramMessage> {
    let published = programs.ask(PublishRequest::new(name, code)).await;
    published.expect("it answers").expect("it is valid");
    let path = format!("{}/published/{name}/program", programs.path());
    let found = system.find(path.as_str());
    found
        .and_then(|program| program.downcast())
        .expect("it exists")
}
