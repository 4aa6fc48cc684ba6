//! Required signers, caps on grants, and upgrades that ask for more.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use strowger_gateway::client::{Client as Control, ClientError};

use crate::binary::{Ran, strowger};
use crate::running::Running;

/// A component in a directory of its own, with a manifest that can be altered.
struct Package {
    folder: tempfile::TempDir,
}

impl Package {
    fn new(more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let bytes = fs::read(root.join("fixtures/components/counter.wasm"));
        let package = Self { folder };
        fs::write(package.at("it.wasm"), bytes.expect("it exists"))
            .expect("the file is accessible");
        package.write(more);
        package
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, more: &str) {
        let text = format!(
            "# A component.\n[component]\nname = \"counter\"\nfile = \"it.wasm\"\n\
             [limits]\ndeadline = \"1s\"\ninit = \"5s\"\n{more}\n"
        );
        fs::write(self.at("it.toml"), text).expect("the file is accessible");
    }

    fn path(&self) -> String {
        text(&self.at("it.toml"))
    }

    fn alter(&self, from: &str, to: &str) {
        let before = fs::read_to_string(self.path()).expect("it exists");
        assert!(before.contains(from), "{before}");
        fs::write(self.path(), before.replace(from, to)).expect("the file is accessible");
    }

    /// Creates a key; returns its public half.
    fn keygen(&self, name: &str) -> String {
        let ran = strowger(["component", "keygen", &text(&self.at(name)), "--json"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let signer = ran.last_object()["signer"].clone();
        signer.as_str().expect("a text").to_owned()
    }

    fn sign(&self, key: &str) {
        let ran = strowger([
            "component",
            "sign",
            &self.path(),
            "--key",
            &text(&self.at(key)),
        ]);
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("a text").to_owned()
}

fn trusted_signer(name: &str, signer: &str) -> String {
    format!("[components.trust]\nsigners = {{ {name} = \"{signer}\" }}\n")
}

/// The verdict of every way to run a component: `check`, `inspect` with the node's configuration,
/// and the node itself, by its command and by its socket.
fn refusals(node: &Running, package: &Package, config: &str) -> Vec<(i32, String)> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("node.toml");
    let whole = format!("{config}\n[[component]]\nmanifest = {:?}\n", package.path());
    fs::write(&file, whole).expect("the file is accessible");
    let (file, path) = (text(&file), package.path());
    let said = |ran: Ran| (ran.code, ran.err);
    vec![
        said(strowger(["check", &file])),
        said(strowger(["component", "inspect", &path, "--config", &file])),
        said(node.ask(["component", "deploy", &path])),
        match call(node, "component.deploy", json!({ "manifest": path })) {
            Ok(_) => (0, String::new()),
            Err(fault) => (2, fault),
        },
    ]
}

/// Calls a method like any client of the socket.
fn call(node: &Running, method: &str, params: Value) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let mut client = Control::connect(&node.control).await.expect("it runs");
        match client.call(method, params).await {
            Ok(answer) => Ok(answer),
            Err(ClientError::Fault(fault)) => {
                let details = fault.details.map(|details| details.to_string());
                Err(format!(
                    "{}\n{}",
                    fault.message,
                    details.unwrap_or_default()
                ))
            }
            Err(error) => panic!("{error}"),
        }
    })
}

fn assert_refused(refusals: &[(i32, String)], says: &[&str]) {
    for (code, said) in refusals {
        assert_eq!(*code, 2, "{said}");
        for word in says {
            assert!(said.contains(word), "no {word:?} in {said}");
        }
    }
}

const GRANT: &str = "[grant]\nsend = [\"audit\"]";

#[test]
fn node_runs_only_signed_and_unaltered_components() {
    let package = Package::new(GRANT);
    let (release, stranger) = (package.keygen("release.pem"), package.keygen("other.pem"));
    let config = trusted_signer("release", &release);
    let node = Running::start(&config);
    let refused = |says: &[&str]| assert_refused(&refusals(&node, &package, &config), says);
    refused(&[
        "names no signer",
        "signed by release",
        "components.trust.signers",
        "hint",
    ]);
    // A signature by another key, which is valid by itself.
    package.sign("other.pem");
    let verified = strowger(["component", "verify", &package.path()]);
    assert_eq!(verified.code, 0, "{}", verified.err);
    refused(&[&stranger, "signed by release"]);
    package.sign("release.pem");
    let good = fs::read_to_string(package.path()).expect("it exists");
    assert!(
        good.starts_with("# A component.\n[component]\nsigner = "),
        "{good}"
    );
    // The manifest grants more than what was signed.
    package.alter("\"audit\"", "\"*\"");
    let rule = "does not match this manifest and this code";
    refused(&[
        "not signed by release",
        &release,
        rule,
        "strowger component sign",
    ]);
    fs::write(package.path(), &good).expect("the file is accessible");
    // The code differs from what was signed, by an empty custom section.
    let mut code = fs::read(package.at("it.wasm")).expect("it exists");
    code.extend([0, 2, 1, b'x']);
    fs::write(package.at("it.wasm"), &code).expect("the file is accessible");
    refused(&["not signed by release", rule]);
    // Both are signed in their current form: every way accepts them.
    package.sign("release.pem");
    for (code, said) in refusals(&node, &package, &config).iter().take(3) {
        assert_eq!(*code, 0, "{said}");
    }
    // The next version must be signed as well.
    package.write("");
    for grant in [false, true] {
        let params = json!({ "manifest": package.path(), "grant": grant });
        let said = call(&node, "component.upgrade", params).expect_err("nobody signed it");
        assert!(said.contains("names no signer"), "{said}");
    }
    let log = node.log();
    assert!(
        log.contains("audit") && log.contains("names no signer"),
        "{log}"
    );
    node.end();
}

#[test]
fn key_file_is_private_and_never_overwritten() {
    use std::os::unix::fs::PermissionsExt;

    let package = Package::new(GRANT);
    let signer = package.keygen("key.pem");
    let key = package.at("key.pem");
    let mode = fs::metadata(&key).expect("it exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = strowger(["component", "keygen", &text(&key)]);
    assert_eq!(again.code, 3, "{}", again.err);
    package.sign("key.pem");
    // The text for other signing tools is the text that was signed.
    let digest = strowger(["component", "digest", &package.path(), "--json"]).last_object();
    let verified = strowger(["component", "verify", &package.path(), "--json"]).last_object();
    assert_eq!(
        (&verified["signer"], &verified["name"]),
        (&json!(signer), &Value::Null)
    );
    let printed = strowger(["component", "digest", &package.path()]).out;
    assert_eq!(json!(printed), digest["statement"]);
    let bad = strowger([
        "component",
        "sign",
        &package.path(),
        "--key",
        &package.path(),
    ]);
    assert_eq!(bad.code, 2, "{}", bad.err);
    assert!(
        bad.err.contains("not an Ed25519 secret key") && bad.err.contains("keygen"),
        "{}",
        bad.err
    );
    let inline = "component = { name = \"a\", file = \"it.wasm\" }\n";
    fs::write(package.path(), inline).expect("the file is accessible");
    let ran = strowger(["component", "sign", &package.path(), "--key", &text(&key)]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert_eq!(
        fs::read_to_string(package.path()).expect("it exists"),
        inline
    );
    let unsigned = strowger(["component", "verify", &package.path()]);
    assert_eq!(unsigned.code, 1, "{}", unsigned.err);
}

#[test]
fn caps_on_grants_apply_to_every_command() {
    let package = Package::new("");
    fs::create_dir_all(package.at("data/in")).expect("the file is accessible");
    std::os::unix::fs::symlink("/etc", package.at("data/link")).expect("the file is accessible");
    let config = format!(
        "[components.caps.grant]\nsend = [\"audit\", \"orders.*\"]\nlog = true\n\
         [components.caps.grant.files.all]\npath = {:?}\n",
        package.at("data")
    );
    let node = Running::start(&config);
    for (more, says) in [
        (
            "[grant]\nsend = [\"orders*\"]",
            "`grant.send` is \"orders*\", but the node allows at most \"audit\", \"orders.*\"",
        ),
        ("[grant]\nclock = true", "`components.caps.grant.clock`"),
        ("[grant.kv]", "the node allows at most nothing"),
        (
            "[grant.files.f]\npath = \"/\"",
            "`grant.files` is `f`: \"/\", read",
        ),
        ("[grant.files.f]\npath = \"data/link\"", "\"/etc\", read"),
        (
            "[grant.files.f]\npath = \"data/..\"",
            "components.caps.grant.files",
        ),
        (
            "[grant.files.f]\npath = \"data\"\nwrite = true",
            "read and write",
        ),
    ] {
        package.write(more);
        let refusals = refusals(&node, &package, &config);
        assert_refused(&refusals, &[says, "[components.caps]"]);
    }
    // Grants of the configuration to a single component are capped as well.
    let own = format!(
        "{config}[[component]]\nmanifest = {:?}\ngrant = {{ clock = true }}\n",
        package.path()
    );
    let ran = crate::binary::strowger_with_input(["check", "-"], own.as_bytes());
    assert_eq!(ran.code, 2, "{}", ran.err);
    package
        .write("[grant]\nsend = [\"orders.eu\"]\nlog = true\n[grant.files.f]\npath = \"data/in\"");
    for (code, said) in refusals(&node, &package, &config).iter().take(3) {
        assert_eq!(*code, 0, "{said}");
    }
    // An upgrade with granted permissions is capped too.
    package.write("[grant]\nsend = [\"*\"]");
    let ran = node.ask(["component", "upgrade", &package.path(), "--grant"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    node.end();
}

#[test]
fn wider_upgrade_is_shown_and_needs_consent() {
    let package = Package::new("[grant]\nclock = true\n[grant.files.d]\npath = \"/usr/share\"");
    let node = Running::start("");
    let ran = node.ask(["component", "deploy", &package.path()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let upgrade = |more: &[&str]| {
        let path = package.path();
        let words = ["component", "upgrade", &path];
        node.ask(words.iter().chain(more).copied())
    };
    assert_eq!(upgrade(&[]).code, 0, "the same is no more");
    package.write("[grant]\nsend = [\"audit\"]\n[grant.files.d]\npath = \"/\"");
    let ran = upgrade(&[]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    for line in [
        "grant.files.d: \"/usr/share\", read -> \"/\", read (widened)",
        "grant.send: nothing -> \"audit\" (added, wider)",
        "--grant",
    ] {
        assert!(ran.err.contains(line), "{}", ran.err);
    }
    let ran = upgrade(&["--json"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let changes = ran.last_object()["changes"].clone();
    let send = json!({
        "key": "grant.send",
        "change": "added",
        "wider": true,
        "before": null,
        "after": "\"audit\"",
    });
    assert_eq!(changes[0], send, "{changes}");
    assert_eq!(changes.as_array().map(Vec::len), Some(3), "{changes}");
    // The check cannot be bypassed by calling the method directly.
    let params = json!({ "manifest": package.path() });
    let said = call(&node, "component.upgrade", params).expect_err("it is wider");
    assert!(
        said.contains("needs more capabilities") && said.contains("\"changes\""),
        "{said}"
    );
    let params = json!({ "manifest": package.path(), "grant": true });
    let row = call(&node, "component.upgrade", params).expect("it was granted");
    assert_eq!(row["changes"].as_array().map(Vec::len), Some(3), "{row}");
    // A narrower grant needs no consent, and is also shown; going back is a wider one.
    package.write("");
    let ran = upgrade(&[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let line = "grant.files.d: \"/\", read -> nothing (removed)";
    assert!(ran.out.contains(line), "{}", ran.out);
    let ran = node.ask(["component", "rollback", "counter"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        ran.err
            .contains("strowger component rollback counter --grant"),
        "{}",
        ran.err
    );
    let said = call(&node, "component.rollback", json!({ "name": "counter" }));
    assert!(said.expect_err("it is wider").contains("grant.files.d"));
    let ran = node.ask(["component", "rollback", "counter", "--grant"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("(added, wider)"), "{}", ran.out);
    let log = node.log();
    assert!(
        log.contains("granted wider access") && log.contains("refused"),
        "{log}"
    );
    node.end();
}

#[test]
fn more_memory_time_and_weight_count_as_wider() {
    let package = Package::new("");
    let node = Running::start("");
    assert_eq!(node.ask(["component", "deploy", &package.path()]).code, 0);
    for more in [
        "memory = \"32MiB\"",
        "handles = 65",
        "send_rate = 10001",
        "streams = 17",
    ] {
        package.write(more);
        let ran = node.ask(["component", "upgrade", &package.path()]);
        assert_eq!(ran.code, 1, "{more}: {}", ran.err);
        let key = more.split(' ').next().expect("a key");
        assert!(ran.err.contains(&format!("limits.{key}: ")), "{}", ran.err);
    }
    for less in ["memory = \"8MiB\"", "memory = \"8MiB\"\nfuel = 100000000"] {
        package.write(less);
        let ran = node.ask(["component", "upgrade", &package.path()]);
        assert_eq!(ran.code, 0, "{less}: {}", ran.err);
        assert!(ran.out.contains("(narrowed)"), "{}", ran.out);
    }
    node.end();
}

#[test]
fn configuration_may_accept_wider_upgrades_up_to_the_caps() {
    let alone =
        crate::binary::strowger_with_input(["check", "-"], b"[components.trust]\nwiden = true\n");
    assert_eq!(alone.code, 2, "{}", alone.err);
    assert!(
        alone.err.contains("[components.caps.grant]"),
        "{}",
        alone.err
    );
    let package = Package::new("");
    let config = "[components.trust]\nwiden = true\n[components.caps.grant]\nclock = true\n";
    let node = Running::start(config);
    assert_eq!(node.ask(["component", "deploy", &package.path()]).code, 0);
    package.write("[grant]\nclock = true");
    let ran = node.ask(["component", "upgrade", &package.path()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out
            .contains("grant.clock: nothing -> true (added, wider)"),
        "{}",
        ran.out
    );
    package.write("[grant]\nclock = true\nrandom = true");
    let ran = node.ask(["component", "upgrade", &package.path()]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    node.end();
}

#[test]
fn documented_examples_are_valid_configurations() {
    let document = include_str!("../../../../docs/components.md");
    let chapter = document.split("\n## Trust\n").nth(1).expect("a chapter");
    let chapter = chapter.split("\n## ").next().expect("it ends");
    let examples = chapter.split("```toml\n").skip(1);
    let examples: Vec<&str> = examples
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(!examples.is_empty(), "{chapter}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    for example in examples {
        let file = folder.path().join("node.toml");
        fs::write(&file, example).expect("the file is accessible");
        let ran = strowger(["check", &text(&file)]);
        assert_eq!(ran.code, 0, "{}\n{example}", ran.err);
        for key in ["signers", "[components.caps.grant]"] {
            assert!(example.contains(key), "{example}");
        }
    }
    // The commands in the chapter exist.
    for command in chapter.lines().filter(|line| line.starts_with("strowger ")) {
        let words: Vec<&str> = command.split_whitespace().skip(1).take(2).collect();
        let ran = strowger(words.into_iter().chain(["--help"]));
        assert_eq!(ran.code, 0, "{command}: {}", ran.err);
    }
}
