//! Components of a running node: configured, deployed, called, upgraded, removed.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use serde_json::{Value, json};
use strowger::ActorSystem;
use strowger_gateway::client::Client as Control;
use strowger_pfcp::ie::{Cause, CreateQer, GateStatus, Mbr};
use strowger_pfcp_node::{Client, ClientConfig, ClientError, Session, SessionRules};

use crate::agent::{Agent, cache};
use crate::binary::{run, strowger, strowger_with_input};
use crate::metrics::{LISTEN, get};
use crate::running::Running;

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is there")
}

/// A manifest of one of the fixtures in a directory of its own.
struct Manifest {
    folder: tempfile::TempDir,
}

impl Manifest {
    fn of(fixture: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = root().join(format!("fixtures/components/{fixture}.wasm"));
        let text =
            format!("[component]\nname = {fixture:?}\nfile = {file:?}\n{LONG_DEADLINES}\n{more}\n");
        fs::write(folder.path().join("it.toml"), text).expect("the folder is writable");
        Self { folder }
    }

    fn path(&self) -> String {
        let path = self.folder.path().join("it.toml");
        path.to_str().expect("text").to_owned()
    }
}

/// Long deadlines, so that a busy machine causes no fault of a component.
const LONG_DEADLINES: &str = "[limits]\ndeadline = \"1s\"\ninit = \"5s\"";

const SNAPSHOT_STATE: &str = "[state]\nmode = \"snapshot\"";

fn configured(manifest: &Manifest, more: &str) -> String {
    format!("[[component]]\nmanifest = {:?}\n{more}\n", manifest.path())
}

fn row(node: &Running, name: &str) -> Value {
    let ran = node.ask(["component", "list", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut rows = ran.objects().into_iter();
    rows.find(|row| row["name"] == name)
        .unwrap_or_else(|| panic!("{name} is not there: {}", ran.out))
}

fn answer(node: &Running, to: &str, payload: &str) -> String {
    let ran = node.ask(["ask", to, payload, "--deadline", "60s"]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.err, node.log());
    ran.out.trim().to_owned()
}

#[test]
fn configured_component_runs_in_the_tree_and_answers_clients() {
    let echo = Manifest::of("echo", "");
    let node = Running::start(&configured(&echo, "expose = true"));
    let tree = node.ask(["tree", "/components"]).out;
    assert!(tree.contains("echo") && tree.contains("guest"), "{tree}");
    assert_eq!(answer(&node, "components/echo", "\"hello\""), "hello");
    assert_eq!(
        answer(&node, "components/echo", "{\"a\":[1]}"),
        "{\"a\":[1]}"
    );
    let told = node.ask(["tell", "components/echo", "\"hello\""]);
    assert_eq!(told.code, 0, "{}", told.err);
    // Handled in the order of sending.
    assert_eq!(answer(&node, "components/echo#call", "7"), "7");
    let seen = row(&node, "echo");
    assert_eq!(
        (&seen["state"], &seen["faults"]),
        (&json!("running"), &json!(0))
    );
    assert_eq!(seen["address"], "@(components/echo)");
    let inspected = node.ask(["inspect", "/components/echo/guest", "--json"]);
    let details = &inspected.last_object()["details"]["component"];
    assert_eq!(details["sha256"], seen["sha256"]);
    node.end();
}

#[test]
fn piped_text_keeps_its_lines() {
    let echo = Manifest::of("echo", "");
    let node = Running::start(&configured(&echo, "expose = true"));
    let payload = r#""a\nb\tc\u001b[2Jd\r\n""#;
    let ran = node.ask(["ask", "components/echo", payload]);
    assert_eq!(
        (ran.code, &*ran.out),
        (0, "a\nb\tc?[2Jd?\n\n"),
        "{}",
        ran.err
    );
    let ran = node.ask(["ask", "components/echo", payload, "--json"]);
    assert_eq!(ran.out.trim(), payload, "{}", ran.err);
    node.end();
}

/// A component without limits, and one whose instructions are counted: each needs its own engine.
fn two_engines() -> [Manifest; 2] {
    let counting = Manifest::of("echo", "fuel = 1000000000\n[grant]");
    [Manifest::of("echo", ""), counting]
}

fn with_instances(instances: usize, manifests: &[Manifest; 2]) -> String {
    let [plain, counting] = manifests;
    format!(
        "[components]\ninstances = {instances}\n{}{}",
        configured(plain, "name = \"plain\"\nexpose = true"),
        configured(counting, "name = \"counting\"\nexpose = true"),
    )
}

/// The number that a hint suggests after `components.instances = `.
fn suggested_instances(errors: &str) -> usize {
    let hint = errors.split("`components.instances = ").nth(1);
    let number = hint.and_then(|hint| hint.split('`').next());
    let number = number.and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("no number that fits: {errors}"))
}

#[test]
fn checked_instances_fit_on_every_engine() {
    let manifests = two_engines();
    let place = tempfile::tempdir().expect("a temporary folder");
    let file = place.path().join("node.toml");
    let path = file.to_str().expect("text");
    for instances in [20_000, 10_000, 1000] {
        let mut config = with_instances(instances, &manifests);
        fs::write(&file, &config).expect("the folder is writable");
        let ran = strowger(["check", path]);
        if ran.code != 0 {
            // A refusal contains numbers, and the number that it suggests does fit.
            assert_eq!(ran.code, 3, "{}", ran.err);
            let asked = format!("{instances} instances");
            assert!(ran.err.contains(&asked), "{}", ran.err);
            assert!(instances > 1000, "the defaults fit everywhere: {}", ran.err);
            config = with_instances(suggested_instances(&ran.err), &manifests);
            fs::write(&file, &config).expect("the folder is writable");
            let ran = strowger(["check", path]);
            assert_eq!(ran.code, 0, "{}", ran.err);
        }
        let node = Running::start(&config);
        for name in ["plain", "counting"] {
            assert_eq!(answer(&node, &format!("components/{name}"), "\"x\""), "x");
        }
        node.end();
    }
}

#[test]
fn address_space_limit_is_reported_before_loading() {
    let manifests = two_engines();
    let place = tempfile::tempdir().expect("a temporary folder");
    let file = place.path().join("node.toml");
    let path = file.to_str().expect("text");
    // 16 GiB, of which only address space is used.
    let check = |instances| {
        let config = with_instances(instances, &manifests);
        let config = config.replace("instances", "waiting = 1\ninstances");
        let config = format!("[tools.programs]\nresidents = 1\n{config}");
        fs::write(&file, config).expect("the folder is writable");
        let shell = ["-c", "ulimit -v 16777216 && exec \"$@\"", "sh"];
        let mut command = Command::new("sh");
        command.args(shell).arg(env!("CARGO_BIN_EXE_strowger"));
        run(command.args(["check", path]), b"")
    };
    let ran = check(1000);
    assert_eq!(ran.code, 3, "{}", ran.err);
    for said in ["1000 instances", "in 2 pools", "GiB", "ulimit -v"] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
    let fits = suggested_instances(&ran.err);
    assert!((2..1000).contains(&fits), "{}", ran.err);
    let ran = check(fits);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

/// The pools of component memory reserve more than each of these limits, by default.
#[test]
fn components_and_code_run_under_a_limit_of_address_space() {
    let (echo, cache) = (Manifest::of("echo", ""), cache());
    let config = format!(
        "[mcp]\ndeadline = \"10m\"\n[components]\ncache = {cache:?}\n[tools.code]\nenabled = true\n\
         [tools.code.limits]\ntime = \"10m\"\ndeadline = \"10m\"\n"
    );
    let code = json!({ "code": "'x'.repeat(1e6).length + 1" });
    let computed = |agent: &mut Agent| agent.call("code_execute", &code)["content"][0].clone();
    let cache = cache.to_str().expect("text");
    for gib in [1, 2, 8] {
        let limit = format!("ulimit -v {} && exec \"$@\"", gib << 20);
        let shell = ["sh", "-c", &limit, "sh"];
        let node = Running::start_by(&shell, 0, &config);
        let ran = node.ask(["component", "deploy", &echo.path(), "--expose"]);
        assert_eq!(ran.code, 0, "{gib} GiB: {}\n{}", ran.err, node.log());
        assert_eq!(answer(&node, "components/echo", "\"hello\""), "hello");
        let mut agent = Agent::start(&["--control", &node.control]);
        assert_eq!(computed(&mut agent)["text"], "1000001", "{gib} GiB");
        node.end();
        // And of an agent that starts the program.
        let patient = "deadline=10m,code.time=10m,code.deadline=10m";
        let args = ["--code", "--cache", cache, "--limit", patient];
        let mut agent = Agent::start_by(&shell, &args);
        assert_eq!(computed(&mut agent)["text"], "1000001", "{gib} GiB");
    }
}

/// Configured components need room for all instances, which the node reserves when it starts.
#[test]
fn node_that_cannot_reserve_its_instances_names_limit_and_remedy() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let (file, socket) = (place.path().join("node.toml"), place.path().join("control"));
    let echo = Manifest::of("echo", "");
    fs::write(&file, configured(&echo, "")).expect("the folder is writable");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 1048576 && exec \"$@\"", "sh"]);
    command.args([env!("CARGO_BIN_EXE_strowger"), "run", "--port", "0"]);
    command.args([
        Path::new("--config"),
        &file,
        Path::new("--control"),
        &socket,
    ]);
    let ran = run(&mut command, b"");
    assert_eq!(ran.code, 3, "{}", ran.err);
    for part in ["components.instances", "1000 instances", "MiB", "ulimit -v"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
}

#[test]
fn unexposed_component_is_unreachable_for_clients() {
    let echo = Manifest::of("echo", "");
    let node = Running::start(&configured(&echo, ""));
    let ran = node.ask(["ask", "components/echo", "\"hello\""]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert_eq!(row(&node, "echo")["address"], Value::Null);
    node.end();
}

#[test]
fn component_is_deployed_upgraded_rolled_back_and_removed() {
    let node = Running::start("");
    assert!(
        node.ask(["component", "list"])
            .out
            .contains("no components")
    );
    let counter = Manifest::of("counter", SNAPSHOT_STATE);
    let ran = node.ask(["component", "deploy", &counter.path(), "--expose"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("@(components/counter)"), "{}", ran.out);
    let again = node.ask(["component", "deploy", &counter.path()]);
    assert_eq!(again.code, 1, "{}", again.err);
    assert!(again.err.contains("already running"), "{}", again.err);
    assert!(
        again.err.contains("`strowger component upgrade`"),
        "{}",
        again.err
    );
    assert_eq!(answer(&node, "components/counter", "\"x\""), "1");
    // A fault ends an incarnation, and the counter is kept.
    let ran = node.ask(["ask", "components/counter", "\"panic\""]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("aborted"), "{}", ran.err);
    assert_eq!(answer(&node, "components/counter", "\"x\""), "2");
    let first = node.ask(["component", "rollback", "counter"]);
    assert_eq!(first.code, 1, "{}", first.err);
    assert!(first.err.contains("no previous version"), "{}", first.err);
    // Another program takes its place: the address stays, and the counter is discarded.
    let upper = Manifest::of("upper", "");
    let ran = node.ask(["component", "upgrade", &upper.path(), "--name", "counter"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(answer(&node, "components/counter", "\"x\""), "X");
    let ran = node.ask(["component", "rollback", "counter", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let now = ran.last_object();
    assert_eq!(
        (&now["faults"], &now["state"]),
        (&json!(1), &json!("running"))
    );
    assert!(now["previous"].is_string(), "{now}");
    let ran = node.ask(["component", "remove", "counter"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for verb in ["remove", "rollback"] {
        let gone = node.ask(["component", verb, "counter"]);
        assert_eq!(gone.code, 1, "{}", gone.err);
        assert!(
            gone.err.contains("no component \"counter\""),
            "{}",
            gone.err
        );
    }
    assert_eq!(node.ask(["ask", "components/counter", "1"]).code, 1);
    node.end();
}

#[test]
fn failed_upgrade_keeps_the_running_version() {
    let counter = Manifest::of("counter", SNAPSHOT_STATE);
    let node = Running::start(&configured(&counter, "expose = true"));
    assert_eq!(answer(&node, "components/counter", "\"x\""), "1");
    let unheard = Manifest::of("relay", "");
    let ran = node.ask(["component", "upgrade", &unheard.path(), "--name", "counter"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(
        ran.err.contains("not granted") && ran.err.contains("hint: "),
        "{}",
        ran.err
    );
    let lost = Manifest::of(
        "relay",
        "[grant]\nrequest = [\"nobody\"]\n[config]\nto = \"nobody\"",
    );
    let words = ["component", "upgrade", &lost.path(), "--name", "counter"];
    let ran = node.ask(words.into_iter().chain(["--grant"]));
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        ran.err.contains("the previous one continues: init"),
        "{}",
        ran.err
    );
    let ran = node.ask(["component", "deploy", &lost.path()]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("failed to start: init"), "{}", ran.err);
    assert_eq!(answer(&node, "components/counter", "\"x\""), "2");
    node.end();
}

#[test]
fn node_configuration_overrides_the_manifest() {
    let echo = Manifest::of("echo", "");
    let relay = Manifest::of(
        "relay",
        "[grant]\nrequest = [\"*\"]\n[config]\nto = \"nobody\"",
    );
    let line = "grant = { request = [\"other\"] }\nconfig = { to = \"other\" }\nexpose = true";
    let config = configured(&echo, "name = \"other\"") + &configured(&relay, line);
    let node = Running::start(&config);
    // A call from outside to one component, and through it to another.
    assert_eq!(answer(&node, "components/relay", "\"through\""), "through");
    assert_eq!(row(&node, "other")["calls"], 1);
    // The next version is bound by the same grants.
    let ran = node.ask(["component", "upgrade", &relay.path()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(answer(&node, "components/relay", "\"again\""), "again");
    node.end();
}

#[test]
fn component_reaches_only_exposed_actors() {
    let node = Running::start("[gateway]\nconformance = true\n");
    let to = |message: &str| {
        let grant = "[grant]\nrequest = [\"conformance/echo#*\"]\n[config]\n";
        Manifest::of("relay", &format!("{grant}to = \"{message}\""))
    };
    let deploy = |message: &str, name: &str| {
        let manifest = to(message);
        let path = manifest.path();
        node.ask(["component", "deploy", &path, "--name", name, "--expose"])
    };
    for (message, name) in [("echo", "echo"), ("add", "sum")] {
        let ran = deploy(&format!("conformance/echo#{message}"), name);
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    for (message, why) in [
        ("conformance/small#sum", "denied"),
        ("conformance/echo#numbers", "unknown"),
        ("conformance/echo#burn", "unknown"),
    ] {
        let ran = deploy(message, "refused");
        assert_eq!(ran.code, 1, "{}", ran.err);
        assert!(ran.err.contains(why), "{message}: {}", ran.err);
    }
    // Calls from outside to a component, from there to a native actor, and back.
    assert_eq!(answer(&node, "components/echo", "\"hello\""), "hello");
    assert_eq!(answer(&node, "components/sum", "3"), "3.0");
    assert_eq!(answer(&node, "components/sum", "4"), "7.0");
    node.end();
}

/// Publishes every message that it receives on the topic `news`.
const PUBLISHER: &str = r#"(module
  (import "strowger:component/messaging@0.1.0" "topic" (func $topic (param i32 i32 i32)))
  (import "strowger:component/messaging@0.1.0" "publish"
    (func $publish (param i64 i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 512) "news")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "strowger:component/actor@0.1.0#init")
    (param i32 i32 i32 i32 i32 i32) (result i32)
    (call $topic (i32.const 512) (i32.const 4) (i32.const 64))
    (i32.const 16))
  (func (export "strowger:component/actor@0.1.0#handle")
    (param i32 i64 i32 i32) (result i32)
    (call $publish (i64.load (i32.const 72)) (local.get 2) (local.get 3) (i32.const 96))
    (i32.const 16))
  (func (export "strowger:component/actor@0.1.0#stop"))
  (func (export "strowger:component/actor@0.1.0#health") (result i32) (i32.const 16)))"#;

#[test]
fn published_events_reach_clients() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (module, component, manifest) = (place("core.wasm"), place("it.wasm"), place("it.toml"));
    fs::write(&module, wat::parse_str(PUBLISHER).expect("it parses"))
        .expect("the file is accessible");
    let built = strowger(["component", "build", &module, "--out", &component]);
    assert_eq!(built.code, 0, "{}", built.err);
    let text = format!(
        "[component]\nname = \"herald\"\nfile = \"it.wasm\"\n{LONG_DEADLINES}\n\
         [grant]\npublish = [\"news\"]\n"
    );
    fs::write(&manifest, text).expect("the file is accessible");
    let config = format!(
        "[components]\ntopics = [\"news\"]\n\
         [[component]]\nmanifest = {manifest:?}\nexpose = true\n"
    );
    let node = Running::start(&config);
    let read = thread::scope(|scope| {
        const SUB: [&str; 5] = ["sub", "topic/news", "--json", "--max", "1"];
        let subscribed = scope.spawn(|| node.ask(SUB));
        // Nothing reports when the subscription exists.
        while !subscribed.is_finished() {
            let told = node.ask(["tell", "components/herald", "\"rain\""]);
            assert_eq!(told.code, 0, "{}", told.err);
        }
        subscribed.join().expect("it ends")
    });
    assert_eq!(read.code, 0, "{}", read.err);
    assert_eq!(read.last_object()["value"], "rain");
    node.end();
}

#[test]
fn compiled_code_is_reused_from_a_private_cache_directory() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let folder = place.path().join("compiled");
    let echo = Manifest::of("echo", "");
    let config = format!(
        "[components]\ncache = {folder:?}\n{LISTEN}{}",
        configured(&echo, "expose = true")
    );
    let compiles = || {
        let node = Running::start(&config);
        assert_eq!(answer(&node, "components/echo", "\"hello\""), "hello");
        let (_, page) = get(&node, "/metrics");
        node.end();
        page.contains("strowger_component_compilations_total 1\n")
    };
    assert!(compiles());
    assert!(!compiles());
    // Anyone who may write to this directory could make the node run code.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o770))
        .expect("the file is accessible");
    let file = place.path().join("node.toml");
    fs::write(&file, &config).expect("the folder is writable");
    let file = file.to_str().expect("text");
    let socket = place.path().join("control.sock");
    let socket = socket.to_str().expect("text");
    let ran = strowger(["run", "--config", file, "--port", "0", "--control", socket]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("writable by other users"), "{}", ran.err);
    assert!(ran.err.contains("chmod 700"), "{}", ran.err);
}

#[test]
fn quarantined_component_is_shown_and_can_be_deployed_again() {
    let rule = "[restart]\nintensity = 0";
    let counter = Manifest::of("counter", rule);
    let node = Running::start(&configured(&counter, "expose = true"));
    let ran = node.ask(["ask", "components/counter", "\"panic\""]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    // The supervisor's exit follows the answer.
    while row(&node, "counter")["state"] != "quarantine" {}
    assert!(
        row(&node, "counter")["fault"]
            .as_str()
            .is_some_and(|text| text.contains("aborted"))
    );
    let ran = node.ask(["component", "deploy", &counter.path(), "--expose"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(answer(&node, "components/counter", "\"x\""), "1");
    node.end();
}

/// The rules of a session on a network, with a rate in each direction.
fn rules(number: u8, network: &str) -> SessionRules {
    let plain = SessionRules::pdu_session(IpAddr::from(Ipv4Addr::new(10, 47, 0, number)));
    let rate = Mbr {
        ul_mbr: 90_000,
        dl_mbr: 80_000,
    };
    let qer = CreateQer::new(1, GateStatus::default()).maximum_bitrate(rate);
    let mut rules = SessionRules::new().qer(qer);
    for pdr in plain.pdrs() {
        let mut pdr = pdr.clone();
        pdr.pdi = pdr.pdi.network_instance(network);
        rules = rules.pdr(pdr);
    }
    let fars = plain.fars().iter().cloned();
    fars.fold(rules, SessionRules::far)
}

#[tokio::test]
async fn policy_component_decides_about_sessions() {
    let caps = "[config.internet]\nuplink = 50000\ndownlink = 200000";
    let policy = Manifest::of("qos-cap", caps);
    let asked = "[n4.policy]\nkind = \"component\"\ncomponent = \"qos-cap\"\nbudget = \"10s\"\n";
    let node = Running::start(&(configured(&policy, "") + asked));
    let system = ActorSystem::new("smf").expect("inside a runtime");
    let client = Client::bind(&system, ClientConfig::default()).await;
    let client = client.expect("the loopback is there");
    let upf: SocketAddr = node.n4.parse().expect("an address");
    let association = client.associate(upf).await.expect("the node answers");
    let cause = |refused: Result<Session, ClientError>| {
        let error = refused.expect_err("it is refused");
        error.cause().expect("it says why")
    };
    let admitted = association.establish(rules(1, "internet")).await;
    let _session = admitted.expect("its network is served");
    let sessions = node.ask(["pfcp", "sessions", "--json"]).objects();
    let path = sessions[0]["path"].as_str().expect("a path");
    let kept = node.ask(["inspect", path, "--json"]).out;
    // Whole numbers: the SEID has many digits, some of which may be those of a rate.
    let is_kept = |rate: &str| kept.split(|c: char| !c.is_ascii_digit()).any(|n| n == rate);
    assert!(is_kept("50000") && is_kept("80000"), "{kept}");
    assert!(!is_kept("90000"), "it was lowered: {kept}");
    let refused = association.establish(rules(2, "elsewhere")).await;
    assert_eq!(cause(refused), Cause::REQUEST_REJECTED);
    assert_eq!(row(&node, "qos-cap")["refused"], 1);
    // Without the component there is no answer, which by default means a refusal.
    assert_eq!(node.ask(["component", "remove", "qos-cap"]).code, 0);
    let denied = association.establish(rules(3, "internet")).await;
    assert_eq!(cause(denied), Cause::SYSTEM_FAILURE);
    node.end();
}

#[test]
fn missing_policy_component_is_reported_before_the_start() {
    let text = "[n4.policy]\nkind = \"component\"\ncomponent = \"nobody\"\n";
    let check = strowger_with_input(["check", "-"], text.as_bytes());
    assert_eq!(check.code, 2, "{}", check.err);
    assert!(
        check.err.contains("there is no such component"),
        "{}",
        check.err
    );
    let unread = strowger_with_input(["check", "-"], b"[n4.policy]\nuplink = 5\n");
    assert!(unread.err.contains("only \"qos-cap\""), "{}", unread.err);
    let nobody = strowger_with_input(["check", "-"], b"[n4.policy]\nkind = \"component\"\n");
    assert!(
        nobody.err.contains("`policy.component` is missing"),
        "{}",
        nobody.err
    );
}

#[test]
fn check_loads_components_and_reports_their_errors() {
    let check = |text: &str| strowger_with_input(["check", "-"], text.as_bytes());
    let counter = Manifest::of("counter", SNAPSHOT_STATE);
    let ran = check(&configured(&counter, ""));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("components: counter"), "{}", ran.out);
    let twice = configured(&counter, "") + &configured(&counter, "");
    let relay = Manifest::of("relay", "");
    let broken = Manifest::of("counter", "[grant]\nsned = []");
    let cases = [
        (twice, "\"counter\" is already running"),
        (configured(&relay, ""), "not granted"),
        (configured(&counter, "name = \"a b\""), "component.name"),
        (configured(&counter, "nam = \"a\""), "did you mean `name`?"),
        (configured(&broken, ""), "unknown field `sned`"),
        (
            "[[component]]\nmanifest = \"/none.toml\"".to_owned(),
            "/none.toml: ",
        ),
        (
            format!(
                "[components]\ninstances = 1\nwaiting = 1\n{0}{0}",
                configured(&counter, "")
            ),
            "there are 2 components",
        ),
    ];
    for (text, says) in cases {
        let ran = check(&text);
        assert!(ran.code != 0, "{text}: {}", ran.out);
        assert!(ran.err.contains(says), "{text}: {}", ran.err);
    }
    let node = tempfile::tempdir().expect("a temporary folder");
    let file = node.path().join("node.toml");
    fs::write(&file, "[[component]]\nmanifest = \"none.toml\"\n").expect("the file is accessible");
    let ran = strowger([
        "run",
        "--port",
        "0",
        "--config",
        file.to_str().expect("text"),
    ]);
    assert_eq!(
        ran.code, 3,
        "a path is from the folder of the configuration: {}",
        ran.err
    );
    assert!(
        ran.err
            .contains(&format!("{}/none.toml", node.path().display())),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn methods_name_the_invalid_parameter() {
    let node = Running::start("");
    let mut client = Control::connect(&node.control).await.expect("it listens");
    for (method, params, says) in [
        ("component.deploy", json!({}), "missing field `manifest`"),
        (
            "component.deploy",
            json!({"manifest": "/x", "nmae": 1}),
            "unknown field `nmae`",
        ),
        ("component.upgrade", json!({"manifest": "/none"}), "/none: "),
        ("component.remove", json!(null), "invalid type: null"),
    ] {
        let refused = client.call(method, params).await.expect_err(says);
        assert!(refused.to_string().contains(says), "{refused}");
    }
    node.end();
}
