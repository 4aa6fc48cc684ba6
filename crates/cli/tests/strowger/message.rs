//! `tell`, `ask` and `sub`: messages to actors of a running node.

use std::fs::{self, Permissions};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use serde_json::json;

use crate::binary::strowger;
use crate::peer::Peer;
use crate::running::Running;

const CONFORMANCE: &str = "[gateway]\nconformance = true\n";

#[test]
fn tell_ask_and_sub_reach_an_actor() {
    let live = Running::start(CONFORMANCE);
    let ran = live.ask(["tell", "conformance/echo#add", "3"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    let ran = live.ask(["ask", "@(conformance/echo) sum", "--json"]);
    assert_eq!((ran.code, ran.out.trim()), (0, "3.0"), "{}", ran.err);
    let ran = live.ask(["ask", "conformance/echo#echo", "\"as text\""]);
    assert_eq!((ran.code, ran.out.trim()), (0, "as text"), "{}", ran.err);
    let ran = live.ask([
        "sub",
        "conformance/echo",
        "{\"from\": 1, \"to\": 4}",
        "--json",
    ]);
    assert_eq!(
        ran.out.lines().collect::<Vec<_>>(),
        ["1", "2", "3"],
        "{}",
        ran.err
    );
    let ran = live.ask([
        "sub",
        "conformance/echo",
        "{\"from\": 1}",
        "--json",
        "--max",
        "2",
    ]);
    assert_eq!(
        ran.out.lines().collect::<Vec<_>>(),
        ["1", "2"],
        "{}",
        ran.err
    );
    live.end();
}

#[test]
fn invalid_messages_end_with_2() {
    let live = Running::start(CONFORMANCE);
    let cases: [(&[&str], i32, &str); 6] = [
        (
            &["ask", "conformance/echo#sum", "--deadline", "0s"],
            2,
            "from 1 ms",
        ),
        (
            &["ask", "conformance/echo#sum", "--deadline", "500us"],
            2,
            "from 1 ms",
        ),
        (
            &["ask", "conformance/echo#sum", "--deadline", "9000h"],
            2,
            "to 2^32 - 1 ms",
        ),
        (
            &["tell", "conformance/echo#add", "1", "--deadline", "0s"],
            2,
            "from 1 ms",
        ),
        (
            &[
                "ask",
                "conformance/echo#numbers",
                "{\"from\": 1, \"to\": 4}",
            ],
            2,
            "is a stream",
        ),
        (&["ask", "topic/n4/sessions"], 2, "has no message for `ask`"),
    ];
    for (words, code, says) in cases {
        let ran = live.ask(words.iter().copied());
        assert_eq!(ran.code, code, "{words:?}: {}", ran.err);
        assert!(ran.err.contains(says), "{words:?}: {}", ran.err);
    }
    live.end();
}

#[test]
fn undeliverable_message_is_reported_with_a_hint() {
    let live = Running::start(CONFORMANCE);
    // As the help of the commands says.
    let cases: [(&[&str], i32, &str); 11] = [
        (
            &["ask", "nobody#sum"],
            1,
            "no actor is exposed at @(nobody)",
        ),
        (
            &["ask", "conformance/echo#burn"],
            2,
            "it takes abandoned, active",
        ),
        (
            &["ask", "conformance/echo"],
            2,
            "hint: name one of them: conformance/echo#",
        ),
        (&["ask", "conformance/echo#echo", "{"], 2, "not valid JSON"),
        (&["ask", "not a path#sum"], 2, "' ' is not allowed in a key"),
        (&["sub", "conformance/nobody"], 1, "no actor is exposed"),
        (&["tell", "nobody#add", "1"], 1, "no actor is exposed"),
        (&["tell", "conformance/echo#burn"], 2, "it takes abandoned"),
        (&["sub", "conformance/echo#burn"], 2, "it takes abandoned"),
        (&["ask", "conformance/echo#crash"], 3, "panicked"),
        (
            &[
                "ask",
                "conformance/echo#wait",
                "{\"ms\": 60000}",
                "--deadline",
                "50ms",
            ],
            3,
            "within",
        ),
    ];
    for (words, code, says) in cases {
        let ran = live.ask(words.iter().copied());
        assert_eq!(ran.code, code, "{words:?}: {}", ran.err);
        assert!(ran.err.contains(says), "{words:?}: {}", ran.err);
    }
    let fault = json!({"code": "refused", "message": "not today", "retryable": false});
    let ran = live.ask(["ask", "conformance/echo#fail", &fault.to_string()]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.starts_with("error: not today"), "{}", ran.err);
    live.end();
}

#[test]
fn session_events_reach_subscribers() {
    let live = Running::start("");
    let mut peer = Peer::associated(2, &live.n4);
    let events = thread::scope(|scope| {
        const SUB: [&str; 5] = ["sub", "topic/n4/sessions", "--json", "--max", "1"];
        let subscribed = scope.spawn(|| live.ask(SUB));
        // Nothing reports when the subscription exists.
        for number in 1.. {
            if subscribed.is_finished() {
                break;
            }
            let address = Ipv4Addr::from(0x0ac8_0000 + number);
            peer.establish(address).expect("accepted");
        }
        subscribed.join().expect("it ends")
    });
    assert_eq!(events.code, 0, "{}", events.err);
    let value = &events.last_object()["value"];
    assert_eq!(value["kind"], "established");
    assert!(
        value["seid"].is_u64() && value["peer"].is_string(),
        "{value}"
    );
    live.end();
}

#[test]
fn endpoints_are_announced_and_open() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let token = folder.path().join("token");
    fs::write(&token, "sixteen-octets-at-least\n").expect("the folder is writable");
    let config = format!(
        "{CONFORMANCE}socket = {:?}\ntcp = \"127.0.0.1:0\"\ntoken_file = {token:?}\n",
        folder.path().join("gateway.sock"),
    );
    let file = folder.path().join("node.toml");
    fs::write(&file, &config).expect("the folder is writable");
    fs::set_permissions(&token, Permissions::from_mode(0o640)).expect("the file is accessible");
    let refused = [
        "run",
        "--port",
        "0",
        "--config",
        file.to_str().expect("text"),
    ];
    let check = ["check", file.to_str().expect("text")];
    for words in [&refused[..], &check] {
        let ran = strowger(words.iter().copied());
        assert_eq!(ran.code, 2, "{words:?}: {}", ran.err);
        assert!(
            ran.err.contains("accessible to other users (mode 640)"),
            "{words:?}: {}",
            ran.err
        );
    }
    fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("the file is accessible");
    let live = Running::start(&config);
    let gateway = folder.path().join("gateway.sock");
    let gateway = gateway.to_str().expect("text");
    let ran = strowger([
        "ask",
        "conformance/echo#sum",
        "--control",
        gateway,
        "--json",
    ]);
    assert_eq!((ran.code, ran.out.trim()), (0, "0.0"), "{}", ran.err);
    // The control methods are available only if `gateway.control` says so.
    let ran = strowger(["ps", "--control", gateway]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        ran.err.contains("this endpoint has no methods"),
        "{}",
        ran.err
    );
    live.end();
}

#[test]
fn check_reads_token_files_as_a_start_does() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let token = folder.path().join("token");
    let gateway = format!("[gateway]\ntcp = \"127.0.0.1:0\"\ntoken_file = {token:?}\n");
    let agents = format!(
        "[metrics]\nlisten = \"127.0.0.1:0\"\n[mcp]\nhttp = true\ntoken_file = {token:?}\n"
    );
    let unused = format!("[gateway]\ntoken_file = {token:?}\n");
    let file = folder.path().join("node.toml");
    let refused = |config: &str, code: i32, says: &str| {
        fs::write(&file, config).expect("the folder is writable");
        let file = file.to_str().expect("text");
        let run = ["run", "--port", "0", "--config", file];
        for words in [&["check", file][..], &run] {
            let ran = strowger(words.iter().copied());
            assert_eq!(ran.code, code, "{words:?}: {}", ran.err);
            assert!(ran.err.contains(says), "{words:?}: {}", ran.err);
        }
    };
    for config in [&gateway, &agents] {
        let _ = fs::remove_file(&token);
        refused(config, 3, "No such file");
        fs::write(&token, "").expect("the folder is writable");
        fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("the file is accessible");
        refused(
            config,
            2,
            "the token in its first line is 0 bytes; it must be 16 to 512",
        );
        fs::write(&token, "sixteen-octets-at-least\n").expect("the folder is writable");
        fs::set_permissions(&token, Permissions::from_mode(0o644)).expect("the file is accessible");
        refused(config, 2, "accessible to other users (mode 644)");
        fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("the file is accessible");
        fs::write(&file, config).expect("the folder is writable");
        let ran = strowger(["check", file.to_str().expect("text")]);
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    // Without an endpoint that uses the token, its file is not read.
    fs::remove_file(&token).expect("the file is accessible");
    let ran = crate::binary::strowger_with_input(["check", "-"], unused.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn non_loopback_address_is_refused_with_its_position() {
    let check = |text: &str| crate::binary::strowger_with_input(["check", "-"], text.as_bytes());
    let ran = check("[gateway]\ntcp = \"0.0.0.0:1\"\n");
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("must be a loopback address"),
        "{}",
        ran.err
    );
    let ran = check("[gateway]\ntcp = \"127.0.0.1:1\"\n");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("needs gateway.token_file"), "{}", ran.err);
}
