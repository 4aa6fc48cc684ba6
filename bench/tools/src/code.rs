//! Code: in a realm that is kept, in a fresh one, and code that never ends.

use std::cell::LazyCell;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rquickjs::{Context, Runtime as Engine};
use strowger::{ActorRef, ActorSystem};
use strowger_bench::{Case, Sample};
use strowger_tools::code::{
    Code, CodeBudget, CodeError, CodeLimit, CodeMessage, CodeSpec, ExecuteRequest,
};
use strowger_wasm::{Host, HostLimits};
use tokio::runtime::Runtime;

use crate::sandbox::{Realms, TYPESCRIPT};

/// Milliseconds that endless code may compute.
const LIMIT: u64 = 20;

/// Endless code: in the language, in a regular expression, and in a builtin.
const ENDLESS: [&str; 3] = [
    "for (;;);",
    "/^(a+)+$/.test('a'.repeat(64) + 'b')",
    "const s = 'x'.repeat(1 << 18); for (;;) s.lastIndexOf('y');",
];

pub(super) fn cases(quick: bool) -> Vec<Case> {
    let tools = Rc::new(LazyCell::new(ToolSystem::open as fn() -> ToolSystem));
    let mut cases = vec![
        warm(Rc::clone(&tools)),
        plain_warm(),
        cold(Rc::clone(&tools)),
        plain_cold(),
    ];
    let runs = if quick { 40 } else { 200 };
    for (id, percent) in [
        ("code_kill_over_limit_p50", 50),
        ("code_kill_over_limit_p99", 99),
    ] {
        let tools = Rc::clone(&tools);
        let over = Case::counted(id, "strowger", "ns", move || {
            let mut over = tools.over_limit(runs);
            over.sort_unstable();
            let at = (over.len() * percent / 100).min(over.len() - 1);
            Ok((over[at].as_nanos() as f64, over.len() as u64))
        });
        cases.push(over.with_note("limit_ms", LIMIT));
    }
    cases
}

/// Returns a host with the engine compiled, as in a node; all rows share it.
pub(super) fn realms() -> Arc<Realms> {
    static REALMS: OnceLock<Arc<Realms>> = OnceLock::new();
    let realms = REALMS.get_or_init(|| {
        let host = Host::new(HostLimits::default()).expect("it starts");
        Realms::new_blocking(&host).expect("the engine compiles")
    });
    Arc::clone(realms)
}

/// Returns a script for this number, and its result. No two numbers have the same result.
fn source(number: u64) -> (String, u64) {
    (format!("({number} + 7) * 2"), (number + 7) * 2)
}

/// A code actor on one thread.
struct ToolSystem {
    runtime: Runtime,
    code: ActorRef<CodeMessage>,
    _system: ActorSystem,
}

impl ToolSystem {
    fn open() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let (system, code) = runtime.block_on(async {
            let system = ActorSystem::new("bench").expect("it starts");
            let spec = CodeSpec::new(realms()).with_typescript(TYPESCRIPT);
            let code = system.spawn::<Code>("code", spec).expect("it starts");
            (system, code)
        });
        Self {
            runtime,
            code,
            _system: system,
        }
    }

    fn run(&self, execute: ExecuteRequest) -> u64 {
        let executed = self.runtime.block_on(self.code.ask(execute));
        let executed = executed.expect("it answers").expect("it runs");
        executed.value.as_u64().expect("a number")
    }

    /// Returns how late after its limit each of this number of runs was ended and answered.
    fn over_limit(&self, runs: usize) -> Vec<Duration> {
        let mut budget = CodeBudget::default();
        budget.time_ms = Some(LIMIT);
        let over = (0..runs).map(|run| {
            let code = format!("'{run}'; {}", ENDLESS[run % ENDLESS.len()]);
            let execute = ExecuteRequest::new(code).with_budget(budget);
            let began = Instant::now();
            let ended = self.runtime.block_on(self.code.ask(execute));
            let took = began.elapsed();
            let ended = ended.expect("it answers");
            assert!(
                matches!(&ended, Err(CodeError::Limit(passed)) if passed.limit == CodeLimit::Time),
                "{ended:?}"
            );
            took.checked_sub(Duration::from_millis(LIMIT))
                .expect("it has its time")
        });
        over.collect()
    }
}

type LazySystem = Rc<LazyCell<ToolSystem>>;

fn warm(tools: LazySystem) -> Case {
    let mut next = 0;
    Case::new("code_warm", "strowger", move |count| {
        // The engine is compiled before the first row, and does not count for a call.
        let tools = &**tools;
        timed(count, |_| {
            next += 1;
            let (code, wanted) = source(next);
            assert_eq!(
                tools.run(ExecuteRequest::new(code).in_realm("kept")),
                wanted
            );
        })
    })
}

fn cold(tools: LazySystem) -> Case {
    let mut next = 0;
    Case::new("code_cold", "strowger", move |count| {
        let tools = &**tools;
        timed(count, |_| {
            next += 1;
            let (code, wanted) = source(next);
            assert_eq!(tools.run(ExecuteRequest::new(code)), wanted);
        })
    })
}

fn plain_warm() -> Case {
    let engine = Engine::new().expect("an engine");
    let context = Context::full(&engine).expect("a context");
    let mut next = 0;
    Case::new("code_warm", "rquickjs", move |count| {
        timed(count, |_| {
            next += 1;
            let (code, wanted) = source(next);
            assert_eq!(value(&context, code), wanted);
        })
    })
}

fn plain_cold() -> Case {
    let mut next = 0;
    Case::new("code_cold", "rquickjs", move |count| {
        timed(count, |_| {
            next += 1;
            let (code, wanted) = source(next);
            let engine = Engine::new().expect("an engine");
            let context = Context::full(&engine).expect("a context");
            assert_eq!(value(&context, code), wanted);
        })
    })
}

fn value(context: &Context, code: String) -> u64 {
    context.with(|cx| cx.eval(code).expect("it runs"))
}

fn timed(count: u64, mut each: impl FnMut(u64)) -> Sample {
    let began = Instant::now();
    (0..count).for_each(&mut each);
    Sample {
        time: began.elapsed(),
        done: count,
        checked: count,
    }
}
