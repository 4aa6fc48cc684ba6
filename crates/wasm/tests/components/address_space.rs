//! Processes whose address space is limited (`ulimit -v`): each limit in a process of its own.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use strowger::ActorSystem;
use strowger_wasm::script::{
    Realm, ScriptCallFuture, ScriptCaller, ScriptEngine, ScriptLimits, ScriptTask,
};
use strowger_wasm::{Call, ComponentRegistry, Host};

use crate::kit::{Guest, limits, manifest, payload};

/// The environment variables that tell a child process its limit in MiB, and a directory for
/// compiled code, so that only the first child compiles.
const LIMIT: &str = "STROWGER_TEST_ADDRESS_SPACE";
const CACHE: &str = "STROWGER_TEST_CACHE";
/// The limits in MiB.
const LIMITS: [u64; 4] = [1 << 10, 2 << 10, 4 << 10, 8 << 10];

/// Runs the test `name` of this file in a process with each limit.
fn in_children(name: &str) {
    let cache = tempfile::tempdir().expect("there is room for a folder");
    for limit in LIMITS {
        let test = format!("address_space::{name}");
        let ran = Command::new(env::current_exe().expect("it is a file"))
            .args([&test, "--exact", "--nocapture"])
            .env(LIMIT, limit.to_string())
            .env(CACHE, cache.path())
            .output()
            .expect("it runs");
        let text = [ran.stdout, ran.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(ran.status.success(), "{limit} MiB: {text}");
        assert!(text.contains("1 passed"), "{limit} MiB: {text}");
    }
}

/// Limits this process, if it is a child; returns the limit in MiB.
fn limited() -> Option<u64> {
    let limit: u64 = env::var(LIMIT).ok()?.parse().expect("a number");
    let both = Rlimit {
        current: Some(limit << 20),
        maximum: Some(limit << 20),
    };
    setrlimit(Resource::As, both).expect("it may be lowered");
    Some(limit)
}

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

fn scripts(host: &Host) -> ScriptEngine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/embedded/quickjs.wasm");
    let bytes = fs::read(path).expect("the engine is there");
    ScriptEngine::load_blocking(host, &bytes).unwrap_or_else(|error| panic!("{error}"))
}

async fn evaluate(realm: &mut Realm, code: &str) -> Option<String> {
    let mut limits = ScriptLimits::default();
    limits.time = Duration::from_secs(60);
    let task = ScriptTask::Script { name: "test", code };
    let ran = realm.run(task, &[], &limits, Box::new(Silent)).await;
    ran.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn components_and_scripts_run_in_limited_address_space() {
    let Some(limit) = limited() else {
        return in_children("components_and_scripts_run_in_limited_address_space");
    };
    let runtime = tokio::runtime::Runtime::new().expect("there are threads");
    runtime.block_on(async {
        // As many instances as by default.
        let mut limits = limits();
        limits.cache = env::var_os(CACHE).map(Into::into);
        let host = Host::new(limits).expect("it starts");
        let system = ActorSystem::new("limited").expect("inside a runtime");
        let registry = ComponentRegistry::start(&system, "components", &host).await;
        let registry = registry.expect("the key is free");
        let classes = [
            ("small", ""),
            ("counting", "[limits]\nfuel = 1000000"),
            ("large", "[limits]\nmemory = \"128MiB\""),
            ("stateful", "[state]\nmode = \"snapshot\""),
        ];
        for (name, more) in classes {
            let guest = match name {
                "stateful" => crate::kit::counter(),
                _ => Guest::new(),
            };
            let loaded = host.load(guest.encode(), manifest(name, more)).await;
            let image = loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
            let deployed = registry.deploy(image).await;
            let actor = deployed.unwrap_or_else(|error| panic!("{name}: {error}"));
            let answer = actor.ask(Call(payload("x"))).await.expect("it answers");
            answer.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let engine = scripts(&host);
        let mut realm = engine.realm(64 << 20).await.expect("there is room");
        let value = evaluate(&mut realm, "let s = 'x'.repeat(1e6); s.length + 1").await;
        assert_eq!(value.as_deref(), Some("1000001"));
        if limit == LIMITS[0] {
            assert_exhaustion_is_named(&engine).await;
        }
        system.shutdown(Duration::from_secs(10)).await;
    });
}

/// Creates realms until the system refuses memory, and checks the error.
async fn assert_exhaustion_is_named(engine: &ScriptEngine) {
    let mut realms = Vec::new();
    let refused = loop {
        match engine.realm(64 << 20).await {
            Ok(realm) => realms.push(realm),
            Err(refused) => break refused,
        }
    };
    let count = realms.len();
    // Room to print.
    drop(realms);
    assert!(count > 10, "{count}: {refused}");
    let text = refused.to_string();
    for part in [
        "1.0 GiB",
        "ulimit -v",
        "components.instances",
        "limits.memory",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
