//! Every key with an amount is a size, a time, or a known count.

use super::{every_key, head};
use crate::config::Config;

/// Keys whose numbers have no unit, because they count something other than bytes and time.
const COUNTS: &[&str] = &[
    "control.connections",
    "control.in_flight",
    "gateway.connections",
    "gateway.strangers",
    "gateway.in_flight",
    "gateway.names",
    "gateway.rate",
    "metrics.connections",
    "components.instances",
    "components.waiting",
    "components.threads",
    "components.nice",
    "components.wall",
    "components.caps.table",
    "components.caps.handles",
    "components.caps.mailbox",
    "components.caps.send_rate",
    "components.caps.log_rate",
    "components.caps.in_flight",
    "components.caps.streams",
    "components.caps.window",
    "components.caps.weight",
    "components.caps.intensity",
    "components.caps.batch",
    "components.caps.kv.keys",
    "components.caps.kv.rate",
    "components.caps.files.files",
    "components.caps.grant.kv.keys",
    "components.caps.grant.kv.rate",
    "tools.files.entries",
    "tools.files.page",
    "tools.files.scan",
    "tools.files.matches",
    "tools.files.depth",
    "tools.streams.streams",
    "tools.streams.readers",
    "tools.streams.window",
    "tools.streams.replay",
    "tools.streams.waiting",
    "tools.code.runs",
    "tools.code.waiting",
    "tools.code.realms",
    "tools.code.limits.jobs",
    "tools.code.limits.calls",
    "tools.programs.programs",
    "tools.programs.residents",
    "tools.programs.mailbox",
    "tools.programs.restarts",
    "tools.programs.limits.jobs",
    "tools.programs.limits.calls",
    "mcp.connections",
    "mcp.sessions",
    "mcp.calls",
    "n4.limits.associations",
    "n4.limits.sessions",
    "n4.limits.sessions_per_association",
    "n4.limits.transactions",
    "n4.limits.response_cache",
    "n4.limits.urrs",
    "n4.limits.usage_reports",
    "n4.limits.buffered_packets",
    "n4.peer.associations",
    "n4.peer.transactions",
    "n4.peer.requests_per_second",
    "n4.peer.burst",
    "n4.peer.report_port",
    "n4.timers.n1",
    "n4.pools.teid_first",
    "n4.pools.teid_last",
    "n4.store.group",
    "n4.store.queue",
    "n4.data_path.seed",
    "n4.policy.uplink",
    "n4.policy.downlink",
    "n4.policy.sessions",
];

/// Keys whose texts have a grammar of their own, unlike sizes and times.
const SHARES: &[&str] = &["components.caps.cpu"];

/// The kind of an amount.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Size,
    Time,
    Count,
    Share,
}

/// Returns a file with one key, and the keys that its table requires.
fn text(table: &str, key: &str, value: &str) -> String {
    let needs = match table {
        "tools.files" => "root = \"a\"\n",
        "component" => "manifest = \"a\"\n",
        "doors.token" => "name = \"a\"\nfile = \"a\"\nrole = \"viewer\"\n",
        _ => "",
    };
    let needs: String = needs
        .lines()
        .filter(|line| !line.starts_with(&format!("{key} =")))
        .map(|line| format!("{line}\n"))
        .collect();
    format!("{}{needs}{key} = {value}\n", head(table))
}

fn read(table: &str, key: &str, value: &str) -> Result<Config, String> {
    toml::from_str(&text(table, key, value)).map_err(|error| error.to_string())
}

/// Returns the kind of a key, if its value is an amount.
fn kind(table: &str, key: &str) -> Option<Kind> {
    let takes = |value: &str| read(table, key, value).is_ok();
    match (takes("\"64KiB\""), takes("\"2s\""), takes("1")) {
        // Any text is accepted: the key is neither a size nor a time.
        (true, true, _) => None,
        (true, ..) => Some(Kind::Size),
        (_, true, _) => Some(Kind::Time),
        (.., true) => Some(Kind::Count),
        _ => takes("\"50%\"").then_some(Kind::Share),
    }
}

#[test]
fn every_size_and_time_has_the_common_syntax() {
    let (mut sizes, mut times, mut unknown) = (0, 0, Vec::new());
    for (table, key) in every_key() {
        let place = format!("{table}.{key}");
        let (forms, wrong, says) = match kind(&table, &key) {
            Some(Kind::Size) => {
                sizes += 1;
                let forms = ["65536", "\"65536\"", "\"64KiB\""];
                let wrong = ["-1", "1.5", "\"64kb\"", "\"soon\"", "true"];
                (forms, wrong, " size")
            }
            Some(Kind::Time) => {
                times += 1;
                let forms = ["3", "\"3\"", "\"3s\""];
                let wrong = ["-1", "nan", "\"3 s\"", "\"soon\"", "true"];
                (forms, wrong, " duration")
            }
            Some(Kind::Count) => {
                unknown.extend((!COUNTS.contains(&&*place)).then_some(place));
                continue;
            }
            Some(Kind::Share) => {
                assert!(
                    SHARES.contains(&&*place),
                    "{place} has a grammar of its own"
                );
                continue;
            }
            None => continue,
        };
        let one = read(&table, &key, forms[0]);
        assert!(one.is_ok(), "{place}: {one:?}");
        for form in forms {
            assert_eq!(read(&table, &key, form), one, "{place} = {form}");
        }
        for value in wrong {
            let text = text(&table, &key, value);
            let message = Config::parse(&text, "node.toml")
                .expect_err(&place)
                .to_string();
            // The error shows key and value with their place, and the remedy.
            let line = format!(" | {key} = {value}\n");
            assert!(message.starts_with("error: node.toml:"), "{message}");
            assert!(
                message.contains(&line) && message.contains(says),
                "{message}"
            );
        }
    }
    assert!(
        unknown.is_empty(),
        "they take bare numbers: is each a size, a time or a count? {unknown:#?}"
    );
    assert!(sizes > 20 && times > 20, "{sizes} sizes, {times} times");
}

#[test]
fn listed_counts_are_counts() {
    let counts: Vec<String> = every_key()
        .into_iter()
        .filter(|(table, key)| kind(table, key) == Some(Kind::Count))
        .map(|(table, key)| format!("{table}.{key}"))
        .collect();
    for known in COUNTS {
        assert!(counts.iter().any(|count| count == known), "{known}");
    }
}

/// The comment above a key in the example mentions bytes if the value is a size, and only then.
#[test]
fn comments_of_sizes_name_bytes() {
    let example = Config::example();
    for (table, key) in every_key() {
        let Some(Kind::Size) = kind(&table, &key) else {
            continue;
        };
        let body = example
            .split(&head(&table))
            .nth(1)
            .expect("it has each table");
        let is_key = |line: &str| {
            let line = line.trim_start_matches('#');
            line.split_once(" =").is_some_and(|(name, _)| name == key)
        };
        let lines: Vec<&str> = body.lines().take_while(|line| !is_key(line)).collect();
        let above = lines
            .iter()
            .rev()
            .skip_while(|line| !line.starts_with("# "));
        let comment: Vec<&str> = above
            .take_while(|line| line.starts_with("# "))
            .copied()
            .collect();
        let says = comment
            .iter()
            .any(|line| line.to_lowercase().contains("bytes"));
        assert!(says, "[{table}] {key}: {comment:?}");
    }
}

#[test]
fn command_line_limits_have_the_syntax_of_files() {
    use crate::config::agents::FilesSection;

    for (key, form) in [
        ("file", "64KiB"),
        ("octets", "65536"),
        ("searched", "1GiB"),
        ("path", "4KiB"),
    ] {
        let mut section = FilesSection::new("a".into());
        assert_eq!(section.set_limit(key, form), Some(Ok(())), "{key}");
        let text = text("tools.files", key, &format!("\"{form}\""));
        let written = Config::parse(&text, "node.toml").expect("it is a size");
        assert_eq!(written.tools.files, [section], "{key}");
        let wrong = FilesSection::new("a".into()).set_limit(key, "64 apples");
        let Some(Err(wrong)) = wrong else {
            panic!("{key} takes apples: {wrong:?}");
        };
        assert!(
            wrong.starts_with("invalid size \"64 apples\": expected"),
            "{wrong}"
        );
    }
    for (_, key) in every_key()
        .into_iter()
        .filter(|(table, _)| table == "tools.files")
    {
        let mut section = FilesSection::new("a".into());
        let is_size = kind("tools.files", &key) == Some(Kind::Size);
        let set = section.set_limit(&key, "1KiB");
        assert_eq!(set == Some(Ok(())), is_size, "{key}: {set:?}");
    }
}
