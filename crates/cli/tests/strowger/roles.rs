//! Tokens with roles: every verb of a running node, the reach of tools, and configurations that a
//! node refuses.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use strowger::{Fault, FaultCode};
use strowger_gateway::client::{Client, ClientError};

use crate::binary::strowger;
use crate::running::Running;

/// The configuration of a token, whose file is written into a directory.
fn token(folder: &Path, name: &str, role: &str, more: &str) -> String {
    let file = folder.join(name);
    fs::write(&file, format!("the-secret-of-{name}\n")).expect("the folder is writable");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("the file is accessible");
    format!("[[doors.token]]\nname = {name:?}\nfile = {file:?}\nrole = {role:?}\n{more}\n")
}

async fn client(node: &Running, name: &str) -> Client {
    let address = node.tcp.as_deref().expect("the door is open");
    let address = address.parse().expect("an address");
    let client = Client::connect_tcp(address, &format!("the-secret-of-{name}")).await;
    client.expect("it listens")
}

fn fault(result: Result<Value, ClientError>) -> Option<Fault> {
    match result {
        Ok(_) => None,
        Err(ClientError::Fault(fault)) => Some(fault),
        Err(error) => panic!("{error}"),
    }
}

fn code(result: Result<Value, ClientError>) -> Option<FaultCode> {
    fault(result).map(|fault| fault.code)
}

const ALL_ADDRESSES: &str = "addresses = [\"/**\"]";
const ENDPOINTS: &str = "[gateway]\ntcp = \"127.0.0.1:0\"\ncontrol = true\nconformance = true\n";

#[tokio::test(flavor = "multi_thread")]
async fn methods_are_open_to_their_roles_only() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut config = ENDPOINTS.to_owned();
    const ROLES: [&str; 3] = ["viewer", "operator", "agent"];
    for role in ROLES {
        // Names differ from roles: `operator` alone would not say which of them is meant.
        config.push_str(&token(
            folder.path(),
            &format!("{role}-1"),
            role,
            ALL_ADDRESSES,
        ));
    }
    let node = Running::start(&config);
    let mut operator = client(&node, "operator-1").await;
    let methods = operator.call("methods", Value::Null).await.expect("rows");
    let methods = methods.as_array().expect("rows").clone();
    let document = include_str!("../../../../docs/doors.md");
    let mut forbidden: BTreeMap<&str, usize> = BTreeMap::new();
    for role in ROLES {
        let mut client = client(&node, &format!("{role}-1")).await;
        for row in &methods {
            let name = row["name"].as_str().expect("text");
            assert!(document.contains(&format!("\n| `{name}` | ")), "{name}");
            // Without parameters none of the methods has an effect: those that need parameters
            // report an error.
            let refused = fault(client.call(name, json!({})).await);
            let is_forbidden = refused
                .as_ref()
                .is_some_and(|one| one.code == FaultCode::Forbidden);
            let roles = row["roles"].as_array().expect("roles");
            assert_eq!(
                is_forbidden,
                !roles.contains(&json!(role)),
                "{role} {name}: {refused:?}"
            );
            *forbidden.entry(role).or_default() += usize::from(is_forbidden);
        }
    }
    assert_eq!(forbidden["operator"], 0);
    assert!(
        forbidden["viewer"] >= 8 && forbidden["agent"] >= 15,
        "{forbidden:?}"
    );
    // The owner's socket is not affected.
    assert_eq!(node.ask(["tell", "conformance/echo#add", "3"]).code, 0);
    node.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarders_reach_only_what_the_token_reaches() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [near, far] = ["near", "far"].map(|name| folder.path().join(name));
    for root in [&near, &far] {
        fs::create_dir(root).expect("the folder is writable");
        fs::write(root.join("a.txt"), "inside").expect("the folder is writable");
    }
    let mut config = format!(
        "{ENDPOINTS}[[tools.files]]\nname = \"near\"\nroot = {near:?}\n[[tools.files]]\n\
         name = \"far\"\nroot = {far:?}\n"
    );
    let tools = "addresses = [\"/mcp/tools/*_file\", \"/mcp/tools/actor_tree\", \
                 \"/tools/near\", \"/conformance/*\"]";
    config.push_str(&token(folder.path(), "limited", "agent", tools));
    config.push_str(&token(folder.path(), "whole", "agent", ALL_ADDRESSES));
    config.push_str(&token(folder.path(), "viewer", "viewer", ALL_ADDRESSES));
    let node = Running::start(&config);
    let read = |path: &Path| {
        let arguments = json!({ "path": path.join("a.txt") });
        json!({ "name": "read_text_file", "arguments": arguments })
    };
    let answered =
        |rows: &Value| -> Value { rows[rows.as_array().map_or(0, Vec::len) - 1].clone() };
    let mut limited = client(&node, "limited").await;
    let mut whole = client(&node, "whole").await;
    for (name, path) in [("limited", &near), ("whole", &near), ("whole", &far)] {
        let mut agent = client(&node, name).await;
        let rows = agent.call("mcp.call", read(path)).await.expect("rows");
        let answer = answered(&rows)["answer"].to_string();
        assert!(answer.contains("inside"), "{name}: {rows}");
    }
    let rows = limited.call("mcp.call", read(&far)).await.expect("rows");
    let refused = answered(&rows)["fault"].to_string();
    assert!(refused.contains("not below an allowed directory"), "{rows}");
    assert!(!refused.contains("inside"), "{rows}");

    // The list of tools and the tree contain only items in reach of the token.
    let tools = limited.call("mcp.tools", Value::Null).await.expect("rows");
    let tools = tools.as_array().expect("rows").clone();
    let names = tools.iter().filter_map(|tool| tool["name"].as_str());
    let fits = |name: &str| name.ends_with("_file") || name == "actor_tree";
    assert!(
        names.clone().count() > 1 && names.clone().all(fits),
        "{tools:?}"
    );
    let tree = json!({ "name": "actor_tree", "arguments": {} });
    let rows = limited.call("mcp.call", tree).await.expect("rows");
    let shown = answered(&rows)["answer"]["content"][0]["text"].clone();
    let shown = shown.as_str().expect("it is a text");
    let shown: Value = serde_json::from_str(shown).expect("it is JSON");
    let actors = shown["actors"].as_array().expect("actors");
    assert!(!actors.is_empty(), "{rows}");
    let seen = |actor: &Value| {
        let path = actor["path"].as_str().unwrap_or_default();
        path == "/tools/near" || path.starts_with("/conformance/")
    };
    assert!(actors.iter().all(seen), "{rows}");

    // Relays and exits are actors like others: neither bypasses the addresses of a token.
    let sum = limited.call("@(conformance/echo) sum", Value::Null).await;
    assert_eq!(code(sum), None);
    for name in [
        "@(exits/components) call",
        "@(topic/n4/sessions) subscribe",
        "@(tools/far) list",
    ] {
        let refused = code(limited.call(name, json!({})).await);
        assert_eq!(refused, Some(FaultCode::Forbidden), "{name}");
    }
    // Even with all addresses, no token has access to an exit, and an agent has none to a topic.
    let exit = whole.call("@(exits/components) call", json!({})).await;
    assert_eq!(code(exit), Some(FaultCode::UnknownTarget));
    let topic = whole
        .call("@(topic/n4/sessions) subscribe", json!({}))
        .await;
    assert_eq!(code(topic), Some(FaultCode::Forbidden));

    let mut viewer = client(&node, "viewer").await;
    let refused = fault(viewer.call("mcp.call", read(&near)).await).expect("it only reads");
    assert_eq!(refused.code, FaultCode::Forbidden);
    assert!(
        refused
            .message
            .contains("it needs the role operator or agent"),
        "{refused}"
    );
    assert_eq!(
        viewer.call("mcp.tools", Value::Null).await.expect("rows"),
        json!([])
    );
    // The node's log records each action with the token that performed it.
    let logs = node.ask(["logs", "--json"]).out;
    let line = "token=\"limited\" role=\"agent\" door=\"tcp\" verb=\"mcp.call\" \
                address=\"/mcp/tools/read_text_file\" outcome=\"done\"";
    let plain = logs.replace("\\\"", "\"");
    assert!(plain.contains(line), "{logs}");
    node.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn code_gets_no_tool_that_its_agent_may_not_call() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().join("work");
    fs::create_dir(&root).expect("the folder is writable");
    fs::write(root.join("a.txt"), "inside").expect("the folder is writable");
    let cache = folder.path().join("cache");
    let mut config = format!(
        "{ENDPOINTS}deadline = \"10m\"\n[mcp]\ndeadline = \"10m\"\n[components]\n\
         cache = {cache:?}\n[tools.code]\nenabled = true\n[[tools.files]]\nroot = {root:?}\n"
    );
    let only = "addresses = [\"/mcp/tools/code_execute\", \"/tools/*\"]";
    config.push_str(&token(folder.path(), "limited", "agent", only));
    config.push_str(&token(folder.path(), "whole", "agent", ALL_ADDRESSES));
    let node = Running::start(&config);
    let arguments = json!({
        "code": "await fns.read_text_file({ path: 'a.txt' })",
        "functions": ["read_text_file"],
    });
    let call = json!({ "name": "code_execute", "arguments": arguments });
    for (name, says) in [("whole", "inside"), ("limited", "forbidden")] {
        let mut agent = client(&node, name).await;
        agent.set_deadline(std::time::Duration::from_secs(600));
        let rows = agent
            .call("mcp.call", call.clone())
            .await
            .expect("rows")
            .to_string();
        assert!(rows.contains(says), "{name}: {rows}");
        assert_eq!(rows.contains("inside"), name == "whole", "{name}: {rows}");
    }
    node.end();
}

const HTTP: &str = "[metrics]\nlisten = \"127.0.0.1:0\"\n";
const HTTP_EVERYWHERE: &str = "[metrics]\nlisten = \"0.0.0.0:0\"\n";
const GATEWAY: &str = "[gateway]\ntcp = \"127.0.0.1:0\"\n";

/// Configurations with which no node starts, and the message about each.
fn refused_configurations(at: &Path) -> Vec<(String, &'static str)> {
    let good = |name: &str| token(at, name, "viewer", ALL_ADDRESSES);
    let with = |role: &str, more: &str| token(at, "tee", role, more);
    let one = good("one");
    let same = one.clone() + &good("twin");
    fs::write(at.join("twin"), "the-secret-of-one\n").expect("the folder is writable");
    let empty = good("empty");
    fs::write(at.join("empty"), "").expect("the folder is writable");
    let open = good("open");
    fs::set_permissions(at.join("open"), Permissions::from_mode(0o644))
        .expect("the file is accessible");
    vec![
        (
            with("admin", ALL_ADDRESSES),
            "unknown variant `admin`, expected one of `viewer`, `operator`",
        ),
        (with("owner", ALL_ADDRESSES), "unknown variant `owner`"),
        (with("viewer", ""), "missing field `addresses`"),
        (with("viewer", "addresses = []"), "nothing is reachable"),
        (with("viewer", "addresses = [\"\"]"), "must not be empty"),
        (
            with("viewer", "addresses = [\"@(tools/x)\"]"),
            "leave out `@(`",
        ),
        (
            with("viewer", &format!("{ALL_ADDRESSES}\nverbs = [\"burn\"]")),
            "unknown verb \"burn\"; expected one of tell",
        ),
        (
            with("viewer", &format!("{ALL_ADDRESSES}\nverbs = [\"kill\"]")),
            "which its role viewer does not have",
        ),
        (format!("{one}{one}"), "two tokens named \"one\""),
        (
            good("owner"),
            "reserved for clients without a [[doors.token]]",
        ),
        (good("a b"), "invalid token name"),
        (same, "have the same secret"),
        (
            empty,
            "the token in its first line is 0 bytes; it must be 16 to 512",
        ),
        (open, "accessible to other users (mode 644)"),
        (format!("{HTTP}tokens = true\n"), "needs a [[doors.token]]"),
        (
            format!("{HTTP_EVERYWHERE}tokens = true\n{one}"),
            "must be on the loopback",
        ),
        (
            format!("{HTTP_EVERYWHERE}[mcp]\nhttp = true\n{one}"),
            "must be on the loopback",
        ),
        (
            format!("[mcp]\nhttp = true\n{one}"),
            "needs `metrics.listen`",
        ),
        (
            format!("{HTTP}[mcp]\nhttp = true\n"),
            "needs mcp.token_file or a [[doors.token]]",
        ),
        (
            GATEWAY.to_owned(),
            "needs gateway.token_file or a [[doors.token]]",
        ),
    ]
}

#[test]
fn check_and_start_refuse_the_same_tokens() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    let file = at.join("node.toml");
    let name = file.to_str().expect("text");
    for (config, says) in refused_configurations(at) {
        fs::write(&file, &config).expect("the folder is writable");
        for words in [
            &["check", name][..],
            &["run", "--port", "0", "--config", name],
        ] {
            let ran = strowger(words.iter().copied());
            assert_eq!(ran.code, 2, "{words:?} {config}: {}", ran.err);
            assert!(ran.err.contains(says), "{words:?} {config}: {}", ran.err);
        }
    }
}

#[test]
fn check_and_start_accept_the_same_tokens() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = folder.path();
    let file = at.join("node.toml");
    let name = file.to_str().expect("text");
    let good = |name: &str| token(at, name, "viewer", ALL_ADDRESSES);
    let with = |role: &str, more: &str| token(at, "tee", role, more);
    let one = good("one");
    let other = good("other");
    let more = format!("{ALL_ADDRESSES}\nverbs = [\"tree\", \"metrics\"]");
    for config in [
        format!("{one}{other}"),
        with("viewer", &more),
        format!("{HTTP}tokens = true\n[mcp]\nhttp = true\n{one}"),
        format!("{GATEWAY}{one}"),
    ] {
        fs::write(&file, &config).expect("the folder is writable");
        let ran = strowger(["check", name]);
        assert_eq!(ran.code, 0, "{config}: {}", ran.err);
        Running::start(&config).end();
    }
    // A relative path is resolved against the directory of the configuration.
    let beside = one.replace(&format!("{:?}", at.join("one")), "\"one\"");
    assert_ne!(beside, one);
    fs::write(&file, beside).expect("the folder is writable");
    assert_eq!(strowger(["check", name]).code, 0);
}
