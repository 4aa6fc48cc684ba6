//! The tables of the pages, compared with the programs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use strowger::{Address, ContentType, MailboxSpec};
use strowger_gateway::frame::FrameKind;
use strowger_pfcp::MessageType;
use strowger_pfcp::ie::Cause;
use strowger_pfcp_node::Restoration;

use super::page;
use crate::agent::Agent;
use crate::binary::strowger;
use crate::running::Running;

/// Returns the cells of the table with this header on a page.
fn table(path: &str, header: &str) -> Vec<Vec<String>> {
    let text = page(path);
    let mut lines = text.lines().skip_while(|line| *line != header).skip(2);
    let rows = lines.by_ref().take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        let row = row.trim_matches('|').replace(r"\|", "\u{1}");
        let cells = row.split('|').map(|cell| cell.trim().replace('\u{1}', "|"));
        cells.collect::<Vec<String>>()
    };
    let rows: Vec<Vec<String>> = rows.map(cells).collect();
    assert!(!rows.is_empty(), "{path} has no table `{header}`");
    rows
}

/// Returns the words in backticks.
fn code_spans(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Returns the configuration keys with their defaults, as `strowger init` writes them, including
/// those that are commented out.
fn default_keys() -> BTreeMap<String, String> {
    let ran = strowger(["init", "-"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut keys = BTreeMap::new();
    let mut section = String::new();
    for line in ran.out.lines() {
        let line = line.strip_prefix('#').unwrap_or(line);
        if let Some(head) = line.strip_prefix('[') {
            let (name, _) = head.split_once(']').expect("a section");
            section = name.trim_start_matches('[').to_owned();
            keys.insert(section.clone(), String::new());
        } else if let Some((key, value)) = line.split_once(" = ")
            && key.chars().all(|letter| {
                letter.is_ascii_lowercase() || letter == '_' || letter.is_ascii_digit()
            })
        {
            keys.insert(format!("{section}.{key}"), value.trim().to_owned());
        }
    }
    keys
}

/// Returns the default of a key as a number; sizes are in bytes.
fn default_number(keys: &BTreeMap<String, String>, key: &str) -> u64 {
    let value = keys
        .get(key)
        .unwrap_or_else(|| panic!("`strowger init` has no {key}"));
    let size: strowger::ByteSize = value
        .trim_matches('"')
        .parse()
        .unwrap_or_else(|error| panic!("{key} = {value}: {error}"));
    size.bytes()
}

/// Parses the number at the beginning of a cell; its digits may be grouped, and a unit of bytes may
/// follow.
fn leading_number(cell: &str) -> u64 {
    let part_of_number = |c: char| c.is_ascii_digit() || c == ' ';
    let end = cell.find(|c| !part_of_number(c)).unwrap_or(cell.len());
    let (digits, rest) = cell.split_at(end);
    let units = ["KiB", "MiB", "GiB"];
    let unit = units.into_iter().find(|unit| rest.starts_with(unit));
    let number = digits.replace(' ', "") + unit.unwrap_or_default();
    let size: strowger::ByteSize = number
        .parse()
        .unwrap_or_else(|error| panic!("{cell}: {error}"));
    size.bytes()
}

/// Returns the keys of a manifest with their defaults, by table.
fn manifest_keys() -> BTreeMap<(String, String), Option<String>> {
    let schema: Value = serde_json::from_str(&page("wit/manifest.schema.json")).expect("JSON");
    let mut keys = BTreeMap::new();
    let mut tables = vec![(String::new(), &schema)];
    while let Some((name, table)) = tables.pop() {
        for (key, rule) in table["properties"].as_object().into_iter().flatten() {
            let place = format!("{name}.{key}");
            let place = place.trim_start_matches('.');
            if rule["properties"].is_object() {
                tables.push((place.to_owned(), rule));
            } else if rule["additionalProperties"]["properties"].is_object() {
                tables.push((format!("{place}.NAME"), &rule["additionalProperties"]));
            } else if !name.is_empty() {
                let default = match &rule["default"] {
                    Value::Null => None,
                    Value::String(text) => Some(text.clone()),
                    other => Some(other.to_string()),
                };
                keys.insert((name.clone(), key.clone()), default);
            }
        }
    }
    keys
}

#[test]
fn documented_manifest_keys_and_defaults_match() {
    let rows = table(
        "docs/components.md",
        "| table | key | default | what it says |",
    );
    let known = manifest_keys();
    let (mut name, mut said) = (String::new(), BTreeSet::new());
    for row in &rows {
        if let [named] = &code_spans(&row[0])[..] {
            name = (*named).to_owned();
        }
        let keys = code_spans(&row[1]);
        let defaults: Vec<&str> = row[2].split(", ").collect();
        for (at, key) in keys.iter().enumerate() {
            let key = (name.clone(), (*key).to_owned());
            let default = known
                .get(&key)
                .unwrap_or_else(|| panic!("no manifest has {key:?}"));
            let shown = defaults.get(at).unwrap_or(&defaults[0]);
            if let Some(default) = default {
                assert_eq!(shown, default, "{key:?}");
            }
            said.insert(key);
        }
    }
    let missing: Vec<_> = known.keys().filter(|key| !said.contains(*key)).collect();
    assert!(missing.is_empty(), "docs/components.md has no {missing:?}");
}

#[test]
fn documented_configuration_keys_exist() {
    const FILES: [&str; 12] = [
        "md", "toml", "rs", "ts", "js", "json", "wasm", "wit", "yaml", "sock", "sh", "c",
    ];
    let keys = default_keys();
    let manifest = manifest_keys();
    let manifest: BTreeSet<String> = manifest
        .keys()
        .map(|(at, key)| format!("{at}.{key}"))
        .collect();
    let sections: BTreeSet<&str> = keys
        .keys()
        .filter_map(|key| key.split('.').next())
        .collect();
    let mut unknown = Vec::new();
    let mut named = 0;
    for path in super::pages().iter().filter(|path| *path != "CHANGELOG.md") {
        let text = page(path);
        let mut is_fenced = false;
        for (at, line) in text.lines().enumerate() {
            is_fenced ^= line.trim_start().starts_with("```");
            // The verbs of tokens look like keys; another test checks their table.
            let is_verb = path == "docs/doors.md" && line.starts_with("| `");
            if is_fenced || is_verb {
                continue;
            }
            for code in code_spans(line) {
                let key = code.split(" = ").next().unwrap_or_default();
                // `[section] key` is a key as well.
                let key = key.replace("] ", ".").replace(['[', ']'], "");
                let plain =
                    |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c);
                let Some((section, rest)) = key.split_once('.') else {
                    continue;
                };
                let end = rest.rsplit('.').next().unwrap_or_default();
                if !sections.contains(section) || !key.chars().all(plain) || FILES.contains(&end) {
                    continue;
                }
                named += 1;
                // A key relative to a table, such as `limits.sessions` in [n4.limits].
                let is_end = |known: &String| known.ends_with(&format!(".{key}"));
                if !keys.contains_key(&key) && !keys.keys().any(is_end) && !manifest.contains(&key)
                {
                    unknown.push(format!("{path}:{}: `{code}`", at + 1));
                }
            }
        }
    }
    assert!(
        unknown.is_empty(),
        "no configuration has these keys:\n{}",
        unknown.join("\n")
    );
    assert!(named > 40, "only {named} keys are looked at");
}

#[test]
fn documented_peer_limits_match() {
    let keys = default_keys();
    for row in table("docs/n4-node.md", "| key | default | beyond it |") {
        for key in code_spans(&row[0]) {
            let places = [
                format!("n4.peer.{key}"),
                format!("n4.limits.{key}"),
                key.to_owned(),
            ];
            let key = places.iter().find(|key| keys.contains_key(*key));
            let key = key.unwrap_or_else(|| panic!("`strowger init` has none of {places:?}"));
            assert_eq!(leading_number(&row[1]), default_number(&keys, key), "{key}");
        }
    }
}

#[test]
fn documented_numbers_match_the_configuration() {
    let keys = default_keys();
    let mebi = |key: &str| format!("{} MiB", default_number(&keys, key) >> 20);
    let groups = default_number(&keys, "n4.store.queue") / default_number(&keys, "n4.store.group");
    let head = default_number(&keys, "metrics.head") >> 10;
    let clients = default_number(&keys, "metrics.connections");
    let (agents, calls) = (
        default_number(&keys, "mcp.connections"),
        default_number(&keys, "mcp.calls"),
    );
    assert_eq!(
        keys["metrics.time"], "\"5s\"",
        "docs/metrics.md says five seconds"
    );
    for (path, says) in [
        ("docs/store.md", format!("({groups} with the defaults)")),
        ("docs/metrics.md", format!("at most {head} KiB")),
        ("docs/metrics.md", format!("at most {clients} clients")),
        (
            "docs/tools.md",
            format!("there may be {agents} of them with {calls} calls under way"),
        ),
        (
            "docs/tools.md",
            format!("(`file`, {})", mebi("tools.files.file")),
        ),
    ] {
        let text = page(path).replace('\n', " ");
        assert!(text.contains(&says), "{path} does not say: {says}");
    }
    let caps = |key: &str| {
        keys[&format!("components.caps.{key}")]
            .trim_matches('"')
            .to_owned()
    };
    let caps = [caps("deadline"), caps("init"), caps("memory")];
    assert_eq!(caps, ["1s", "5s", "256MiB"], "docs/components.md says so");
}

#[test]
fn documented_tools_and_arguments_match() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().to_str().expect("text");
    let mut agent = Agent::start(&["--root", root, "--code", "--programs", "--streams"]);
    let mut schemas = agent.schemas();
    drop(agent);
    // Tools that only a node has.
    let node = Running::start("");
    for (name, schema) in Agent::start(&["--control", &node.control]).schemas() {
        schemas.entry(name).or_insert(schema);
    }
    node.end();
    let mut said = BTreeSet::new();
    for row in table("docs/tools.md", "| tool | arguments | answer |") {
        let names: Vec<String> = code_spans(&row[0])
            .iter()
            .map(|name| (*name).to_owned())
            .collect();
        let all = names.iter().map(|name| {
            schemas
                .get(name)
                .unwrap_or_else(|| panic!("no agent has a tool `{name}`"))
        });
        let all: Vec<&Value> = all.collect();
        let text: String = all.iter().map(|schema| schema.to_string()).collect();
        let arguments = code_spans(&row[1]);
        for argument in &arguments {
            assert!(
                text.contains(&format!("\"{argument}\"")),
                "{names:?} take no {argument}"
            );
        }
        let keys = all
            .iter()
            .filter_map(|schema| schema["properties"].as_object());
        let keys = keys.flat_map(|keys| keys.keys());
        let missing: Vec<&String> = keys
            .filter(|key| !arguments.contains(&key.as_str()))
            .collect();
        let is_whole = !row[1].contains("...");
        assert!(
            missing.is_empty() || !is_whole,
            "the page has no {missing:?} of {names:?}"
        );
        said.extend(names);
    }
    let missing: Vec<&String> = schemas
        .keys()
        .filter(|name| !said.contains(*name))
        .collect();
    assert!(missing.is_empty(), "docs/tools.md has no {missing:?}");
}

/// The tools of the official filesystem server, with their arguments.
const OFFICIAL: [(&str, &[&str]); 14] = [
    ("read_file", &["path", "tail", "head"]),
    ("read_text_file", &["path", "tail", "head"]),
    ("read_media_file", &["path"]),
    ("read_multiple_files", &["paths"]),
    ("write_file", &["path", "content"]),
    ("edit_file", &["path", "edits", "dryRun"]),
    ("create_directory", &["path"]),
    ("list_directory", &["path"]),
    ("list_directory_with_sizes", &["path", "sortBy"]),
    ("directory_tree", &["path", "excludePatterns"]),
    ("move_file", &["source", "destination"]),
    ("search_files", &["path", "pattern", "excludePatterns"]),
    ("get_file_info", &["path"]),
    ("list_allowed_directories", &[]),
];

#[test]
fn file_tools_accept_the_documented_official_arguments() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().to_str().expect("text");
    let schemas = Agent::start(&["--root", root]).schemas();
    for (name, arguments) in OFFICIAL {
        let schema = schemas
            .get(name)
            .unwrap_or_else(|| panic!("there is no `{name}`"));
        for argument in arguments {
            let known = &schema["properties"][argument];
            assert!(known.is_object(), "{name} takes no {argument}: {schema}");
        }
        let required = schema["required"].as_array().into_iter().flatten();
        for key in required.filter_map(Value::as_str) {
            assert!(
                arguments.contains(&key),
                "{name} wants {key}, which the other has not"
            );
        }
    }
}

#[test]
fn documented_actor_messages_match() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().display();
    let node = Running::start(&format!("[[tools.files]]\nroot = \"{root}\"\n"));
    let rows = table("docs/tools.md", "| message | payload | answer |");
    let said: BTreeSet<String> = rows
        .iter()
        .flat_map(|row| code_spans(&row[0]))
        .map(str::to_owned)
        .collect();
    let ran = node.ask(["ask", "tools/files#nothing"]);
    let (_, takes) = ran
        .err
        .split_once("it takes ")
        .unwrap_or_else(|| panic!("{}", ran.err));
    let takes = takes.lines().next().unwrap_or_default();
    let takes: BTreeSet<String> = takes
        .split(", ")
        .filter_map(|one| one.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    assert_eq!(takes, said, "{}", ran.err);
    node.end();
}

#[test]
fn documented_address_limits_match() {
    let text = page("docs/messages.md").replace('\n', " ");
    let after = |words: &str| {
        let (_, rest) = text
            .split_once(words)
            .unwrap_or_else(|| panic!("no `{words}`"));
        usize::try_from(leading_number(rest)).expect("it is small")
    };
    let keys = after("A path has at most ");
    let bytes = after("keys and ");
    let key = after("key     = 1*");
    assert_eq!(after("path    = key *") + 1, keys);
    let address = |path: &str| format!("@({path})").parse::<Address>().is_ok();
    let path = |keys: usize| vec!["a"; keys].join("/");
    assert!(address(&path(keys)) && !address(&path(keys + 1)));
    assert!(address(&"a".repeat(key)) && !address(&"a".repeat(key + 1)));
    let long = |bytes: usize| {
        let mut path = format!("{}/", "a".repeat(200)).repeat(bytes / 201);
        path.push_str(&"b".repeat(bytes - path.len()));
        path
    };
    assert!(address(&long(bytes)) && !address(&long(bytes + 1)));
}

#[test]
fn documented_frame_kinds_match() {
    let rows = table("docs/messages.md", "| kind | from | in version | payload |");
    let known = [
        FrameKind::Hello,
        FrameKind::Name,
        FrameKind::Call,
        FrameKind::Item,
        FrameKind::Done,
        FrameKind::Error,
        FrameKind::Cancel,
        FrameKind::Credit,
        FrameKind::Tell,
        FrameKind::Token,
    ];
    let known = known.map(|kind| format!("{} {}", kind as u8, format!("{kind:?}").to_lowercase()));
    let said: Vec<&String> = rows.iter().map(|row| &row[0]).collect();
    assert_eq!(said, known.iter().collect::<Vec<_>>());
    let rows = table("docs/messages.md", "| field | meaning |");
    let content = rows
        .iter()
        .find(|row| row[0] == "content")
        .expect("a row of contents");
    for content_of in [
        ContentType::None,
        ContentType::Json,
        ContentType::Text,
        ContentType::Bytes,
    ] {
        let says = format!("{} {content_of:?}", content_of as u8).to_lowercase();
        assert!(
            content[1].to_lowercase().contains(&says),
            "{says}: {content:?}"
        );
    }
}

#[test]
fn documented_defaults_match_the_libraries() {
    let room = MailboxSpec::DEFAULT.capacity().expect("it is bounded");
    let restoration = Restoration::default();
    let help = strowger(["ask", "--help"]).out;
    assert!(
        help.contains("[default: 5s]"),
        "docs/messages.md says 5000 ms: {help}"
    );
    for (path, says) in [
        (
            "docs/messages.md",
            format!("has a capacity, {room} if none is given"),
        ),
        ("docs/messages.md", "5000 ms if none is given".to_owned()),
        (
            "docs/benchmarking.md",
            format!("| 100 to {room} (the default) |"),
        ),
        (
            "packages/strowger/README.md",
            format!("has a capacity ({room})"),
        ),
        (
            "docs/n4-node.md",
            format!(
                "`Restoration::backoff` ({} ms)",
                restoration.backoff.as_millis()
            ),
        ),
        (
            "docs/n4-node.md",
            format!("`backoff_max` ({} s)", restoration.backoff_max.as_secs()),
        ),
        (
            "docs/n4-node.md",
            format!("`Restoration::rate` sessions ({})", restoration.rate),
        ),
        (
            "docs/n4-node.md",
            format!("`in_flight` ({})", restoration.in_flight),
        ),
    ] {
        let text = page(path).replace('\n', " ");
        assert!(text.contains(&says), "{path} does not say: {says}");
    }
}

#[test]
fn documented_causes_have_their_names() {
    for row in table("docs/pfcp.md", "| found | cause | refused |") {
        let digits: String = row[1].chars().take_while(char::is_ascii_digit).collect();
        let Ok(number) = digits.parse::<u8>() else {
            continue;
        };
        let named = row[1][digits.len()..].trim();
        let name = Cause(number).name().expect("a cause of the specification");
        assert_eq!(name.to_lowercase(), named.to_lowercase(), "{row:?}");
    }
}

#[test]
fn readme_versions_and_counts_match_the_packages() {
    let readme = page("README.md").replace('\n', " ");
    let manifest: toml::Table = page("Cargo.toml").parse().expect("TOML");
    let rust = manifest["workspace"]["package"]["rust-version"]
        .as_str()
        .expect("text");
    let package: Value =
        serde_json::from_str(&page("packages/strowger/package.json")).expect("JSON");
    let node = package["engines"]["node"].as_str().expect("text");
    let node = node
        .trim_start_matches(">=")
        .split('.')
        .next()
        .expect("a version");
    let version = package["version"].as_str().expect("text");
    let messages = (1..=u8::MAX)
        .filter(|number| MessageType(*number).name().is_some())
        .count();
    for says in [
        format!("needs Rust {rust} and nothing else"),
        format!("on Node {node} and later"),
        format!("strowger-{version}.tgz"),
        format!("all {messages} messages"),
    ] {
        assert!(readme.contains(&says), "README.md does not say: {says}");
    }
    let contributing = page("CONTRIBUTING.md");
    assert!(contributing.contains(&format!("Rust {rust}, nothing else")));
    let library = page("packages/strowger/README.md").replace('\n', " ");
    assert!(
        library.contains(&format!("Node {node} and later")),
        "{node}"
    );
}

#[test]
fn documented_component_faults_match() {
    let rows = table("docs/components.md", "| fault | what happened |");
    let said: BTreeSet<&str> = rows.iter().flat_map(|row| code_spans(&row[0])).collect();
    // Faults carry data, so they have no list of names to iterate over.
    let source = page("crates/wasm/src/fault.rs");
    let (_, words) = source.split_once("fn name(&self)").expect("it has words");
    let (words, _) = words.split_once("\n    }\n").expect("it ends");
    let words = words.split("=> \"").skip(1);
    let known: BTreeSet<&str> = words.filter_map(|word| word.split('"').next()).collect();
    assert_eq!(said, known);
}

#[test]
fn documented_refusals_match() {
    let text = page("docs/tools.md").replace('\n', " ");
    let (_, rules) = text
        .split_once("Every refusal names its rule: ")
        .expect("the rules");
    let (rules, _) = rules.split_once(". ").expect("their end");
    let known = strowger_tools::files::FileRule::ALL.map(strowger_tools::files::FileRule::name);
    assert_eq!(code_spans(rules), known);
}
