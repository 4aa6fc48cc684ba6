//! Scripts that compute all the time.

use std::fs;
use std::future::{Future as _, poll_fn};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use strowger_wasm::Host;
use strowger_wasm::script::{
    Realm, ScriptCallFuture, ScriptCaller, ScriptEngine, ScriptError, ScriptLimits, ScriptTask,
};

use crate::kit::limits;
use crate::node::{alone, run};

/// The computing time of each run.
const TIME: Duration = Duration::from_millis(400);
/// The minimum number of slices of a run. There are more than a thousand on an idle machine, some
/// hundreds beside four programs that compute all the time, and one if the script never yields.
const SLICES: usize = 10;

/// A caller of a script that calls nothing.
struct Silent;

impl ScriptCaller for Silent {
    fn print(&mut self, _: u32, _: String) {}

    fn call(&mut self, _: usize, _: String) -> ScriptCallFuture {
        Box::pin(async { Err("there are no functions".to_owned()) })
    }

    fn is_wanted(&self) -> bool {
        true
    }
}

/// The engine of scripts. Its compiled code is kept for the next run.
fn scripts() -> ScriptEngine {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("code-cache");
    let made = fs::DirBuilder::new().mode(0o700).create(&cache);
    assert!(made.is_ok() || cache.is_dir(), "there is a folder");
    let mut limits = limits();
    (limits.cache, limits.cached) = (Some(cache), 512 << 20);
    let host = Host::new(limits).expect("it starts");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/embedded/quickjs.wasm");
    let bytes = fs::read(path).expect("the engine is there");
    ScriptEngine::load_blocking(&host, &bytes).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs code that does not end, and returns the number of slices in which it had the thread.
async fn slices(realm: &mut Realm, code: &str) -> usize {
    let mut limits = ScriptLimits::default();
    limits.time = TIME;
    let task = ScriptTask::Script { name: "test", code };
    let mut run = pin!(realm.run(task, &[], &limits, Box::new(Silent)));
    let mut slices = 0;
    let outcome = poll_fn(|cx| {
        slices += 1;
        run.as_mut().poll(cx)
    });
    match outcome.await {
        Err(ScriptError::Limit(limit)) => assert_eq!(limit.name, "time", "{code}"),
        other => panic!("{code}: {other:?}"),
    }
    slices
}

#[test]
fn endless_script_hands_back_its_thread_all_the_time() {
    // Compiling takes all processors.
    let engine = alone(scripts);
    for code in [
        "for (;;);",
        // Within a function of the engine, not in the loop that interprets the code.
        "/^(a+)+$/.test('a'.repeat(60) + 'b')",
    ] {
        // While other programs have the processors, a slice gets longer.
        let mut tries = Vec::new();
        while tries.last().is_none_or(|count| *count < SLICES) {
            assert!(tries.len() < 3, "{code}: slices in {TIME:?}: {tries:?}");
            tries.push(run(async {
                let realm = engine.realm(64 << 20).await;
                let mut realm = realm.unwrap_or_else(|error| panic!("{error}"));
                slices(&mut realm, code).await
            }));
        }
        eprintln!("{code}: slices in {TIME:?}: {tries:?}");
    }
}
