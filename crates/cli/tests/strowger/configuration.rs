//! `init` and `check`: `check` accepts what `init` writes.

use std::fs;

use crate::binary::{strowger, strowger_with_input};

#[test]
fn check_accepts_the_output_of_init() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("node.toml");
    let name = file.to_str().expect("text");
    let ran = strowger(["init", name]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let ran = strowger(["check", name]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("listens on 127.0.0.1:8805"), "{}", ran.out);
    let object = strowger(["check", name, "--json"]).last_object();
    assert_eq!(object["ok"], true);
    let printed = strowger(["init", "-"]).out;
    assert_eq!(printed, fs::read_to_string(&file).expect("it exists"));
    assert_eq!(
        strowger_with_input(["check", "-"], printed.as_bytes()).code,
        0
    );
}

#[test]
fn init_overwrites_a_file_only_with_force() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("node.toml");
    fs::write(&file, "mine").expect("the folder is writable");
    let name = file.to_str().expect("text");
    let ran = strowger(["init", name]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("hint: "), "{}", ran.err);
    assert_eq!(fs::read_to_string(&file).expect("it exists"), "mine");
    assert_eq!(strowger(["init", "--force", name]).code, 0);
    assert_eq!(strowger(["check", name]).code, 0);
}

#[test]
fn check_shows_the_position_of_an_error() {
    let ran = strowger_with_input(["check", "-"], b"[n4]\nlisen = []\n");
    assert_eq!(ran.code, 2);
    assert!(
        ran.err
            .starts_with("error: standard input:2:1: unknown field `lisen`")
    );
    assert!(
        ran.err.contains("\n2 | lisen = []\n  | ^^^^^\n"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("hint: did you mean `listen`?"),
        "{}",
        ran.err
    );
}

#[test]
fn run_refuses_what_check_refuses() {
    let ran = strowger(["run", "--config", "/nowhere/node.toml"]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("strowger init"), "{}", ran.err);
}

#[test]
fn durations_have_one_syntax_everywhere() {
    let sections = [
        ("[node]", "shutdown"),
        ("[n4.timers]", "t1"),
        ("[gateway]", "idle"),
        ("[tools.streams]", "stall"),
        ("[tools.code.limits]", "deadline"),
    ];
    for (section, key) in sections {
        for time in [
            "\"1.5s\"",
            "\"3\"",
            "\"1min\"",
            "\"0.5m\"",
            "\"1500ms\"",
            "3",
            "1.5",
        ] {
            let text = format!("{section}\n{key} = {time}\n");
            let ran = strowger_with_input(["check", "-"], text.as_bytes());
            assert_eq!(ran.code, 0, "{text}{}", ran.err);
        }
        for time in ["soon", "1,5s", "10 s", "-1s", "10d", ""] {
            let text = format!("{section}\n{key} = \"{time}\"\n");
            let ran = strowger_with_input(["check", "-"], text.as_bytes());
            assert_eq!(ran.code, 2, "{text}");
            let said = format!("invalid duration \"{time}\": expected a number and a unit");
            assert!(ran.err.contains(&said), "{}", ran.err);
            // The line with the key.
            let shown = format!("2 | {key} = \"{time}\"");
            assert!(ran.err.contains(&shown), "{}", ran.err);
        }
    }
}

#[test]
fn sizes_have_one_syntax_everywhere() {
    let sections = [
        ("[control]", "frame"),
        ("[gateway]", "memory"),
        ("[components.caps]", "memory"),
        ("[components.caps.kv]", "size"),
        ("[tools.code.limits]", "memory"),
        ("[tools.streams]", "piece"),
        ("[mcp]", "body"),
        ("[n4.limits]", "session_bytes"),
        ("[n4.store]", "buffer"),
    ];
    for (section, key) in sections {
        for size in ["4194304", "\"4194304\"", "\"4096KiB\"", "\"4MiB\""] {
            let text = format!("{section}\n{key} = {size}\n");
            let ran = strowger_with_input(["check", "-"], text.as_bytes());
            assert_eq!(ran.code, 0, "{text}{}", ran.err);
        }
        for size in [
            "-1",
            "\"4MB\"",
            "\"4 MiB\"",
            "\"1.5MiB\"",
            "\"big\"",
            "\"\"",
        ] {
            let text = format!("{section}\n{key} = {size}\n");
            let ran = strowger_with_input(["check", "-"], text.as_bytes());
            assert_eq!(ran.code, 2, "{text}");
            let value = size.trim_matches('"');
            let said = format!("invalid size \"{value}\": expected a whole number of bytes");
            assert!(ran.err.contains(&said), "{}", ran.err);
            // The line with the key.
            let shown = format!("2 | {key} = {size}");
            assert!(ran.err.contains(&shown), "{}", ran.err);
        }
    }
}

#[test]
fn invalid_peer_is_shown_with_its_position() {
    let check = |address: &str| {
        let text = format!("[n4.peer.named]\n\"smf.lab\" = [\"{address}\"]\n");
        strowger_with_input(["check", "-"], text.as_bytes())
    };
    let ran = check("127.0.0.4");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = check("10.0.0.4");
    assert_eq!(ran.code, 2, "{}", ran.err);
    let said = "`n4.peer.named` gives smf.lab the addresses 10.0.0.4/32, which `peers` does";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert!(ran.err.contains("1 | [n4.peer.named]"), "{}", ran.err);
}

/// The configurations shown in the documentation are accepted.
#[test]
fn documented_configurations_are_valid() {
    for page in ["n4-node.md", "peers.md"] {
        let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).expect("the page is there");
        let blocks = text.split("```toml\n").skip(1);
        let blocks = blocks.filter_map(|rest| rest.split("```").next());
        let mut checked = 0;
        for block in blocks.filter(|block| block.contains("[n4")) {
            // A fragment of a configuration may leave the peers open.
            let peers = match block.contains("[n4]") {
                true => "",
                false => "[n4]\npeers = [\"0.0.0.0/0\"]\n",
            };
            let ran = strowger_with_input(["check", "-"], format!("{peers}{block}").as_bytes());
            assert_eq!(ran.code, 0, "{page}: {block}{}", ran.err);
            checked += 1;
        }
        assert!(checked > 0, "{page} has configurations");
    }
}
