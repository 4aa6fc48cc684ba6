use super::super::amounts::{self, amounts};
use super::*;

#[test]
fn default_manifest_is_within_default_caps() {
    assert_eq!(ManifestCaps::default().check(&Manifest::new("a")), Ok(()));
}

#[test]
fn grants_beyond_the_cap_are_reported_with_both_values() {
    let grant = "send = [\"audit\", \"orders.*\"]\nlog = true\nkv = {}\n\
                 files.data = { path = \"/data\", write = true }";
    let caps = format!("[grant]\n{grant}");
    let caps: ManifestCaps = toml::from_str(&caps).expect("they are caps");
    let check = |grant: &str| {
        let text = format!("[component]\nname = \"a\"\n[grant]\n{grant}");
        caps.check(&Manifest::parse(&text).expect("it is a manifest"))
    };
    for within in [
        "",
        grant,
        "send = [\"orders.eu.*\"]",
        "files.other = { path = \"/data/in\", write = true, size = \"1MiB\" }",
        "kv = { keys = 10 }",
    ] {
        assert_eq!(check(within), Ok(()), "{within}");
    }
    for (beyond, says) in [
        (
            "send = [\"audit\", \"orders*\"]",
            "`grant.send` is \"orders*\", but the node allows \
          at most \"audit\", \"orders.*\" (`components.caps.grant.send`)",
        ),
        (
            "clock = true",
            "`grant.clock` is true, but the node allows at most false",
        ),
        ("kv = { size = \"2MiB\" }", "at most 1MiB, 1000 keys"),
        (
            "files.up = { path = \"/data/..\" }",
            "`grant.files` is `up`: \"/\", read, but",
        ),
        (
            "publish = [\"x\"]",
            "at most nothing (`components.caps.grant.publish`)",
        ),
    ] {
        let text = check(beyond).expect_err(beyond).to_string();
        assert!(text.contains(says), "{text}");
    }
    assert_eq!(ManifestCaps::default().check(&Manifest::new("a")), Ok(()));
}

/// Each amount of a manifest with its cap, an upper or lower bound, and the next value beyond it.
const CAPPED: [(&str, &str, &str); 24] = [
    ("limits.memory", "\"256MiB\"", "\"257MiB\""),
    ("limits.table", "100000", "100001"),
    ("limits.payload", "\"16MiB\"", "\"16385KiB\""),
    ("limits.handles", "4096", "4097"),
    ("limits.deadline", "\"1s\"", "\"1001ms\""),
    ("limits.init", "\"5s\"", "\"5001ms\""),
    ("limits.mailbox", "65536", "65537"),
    ("limits.send_rate", "100000", "100001"),
    ("limits.log_rate", "1000", "1001"),
    ("limits.in_flight", "4096", "4097"),
    ("limits.streams", "256", "257"),
    ("limits.window", "4096", "4097"),
    ("limits.answer", "\"60s\"", "\"60001ms\""),
    ("limits.weight", "100", "101"),
    // There is no value beyond a whole processor.
    ("limits.cpu", "\"100%\"", ""),
    ("restart.intensity", "1000", "1001"),
    ("restart.period", "\"1s\"", "\"999ms\""),
    ("restart.backoff", "\"1ms\"", "\"999us\""),
    ("restart.backoff_max", "\"1ms\"", "\"999us\""),
    ("run.batch", "4096", "4097"),
    ("grant.kv.size", "\"64MiB\"", "\"65537KiB\""),
    ("grant.kv.keys", "100000", "100001"),
    ("grant.kv.rate", "10000", "10001"),
    ("grant.files.x.size", "\"1GiB\"", "\"1025MiB\""),
];

/// The amounts that need no cap, with the reason.
const UNCAPPED: [(&str, &str); 5] = [
    (
        "limits.fuel",
        "the processor time of a call ends it in any case",
    ),
    ("restart.poison", "it is at most restart.intensity"),
    ("state.interval", "the usual one is the most work"),
    (
        "state.passivate",
        "each message brings it back at most once, like an `init`",
    ),
    // The range check bounds a single directory; several are tested below.
    ("grant.files.x.files", "one folder may not have more anyway"),
];

#[test]
fn every_amount_has_a_cap_or_a_reason() {
    for (key, _) in amounts() {
        let is_capped = CAPPED.iter().any(|(capped, ..)| *capped == key);
        let is_free = UNCAPPED.iter().any(|(free, _)| *free == key);
        assert!(
            is_capped != is_free,
            "{key} needs a cap, or a reason why none"
        );
    }
}

#[test]
fn caps_are_inclusive_and_reported_with_both_values() {
    for (key, most, beyond) in CAPPED {
        let check = |value: &str| {
            let manifest = Manifest::parse(&amounts::text(key, value));
            ManifestCaps::default().check(&manifest.expect("it is a manifest"))
        };
        assert_eq!(check(most), Ok(()), "{key}");
        if beyond.is_empty() {
            continue;
        }
        let error = check(beyond).expect_err(key);
        let key = key.replace(".x.", ".");
        assert_eq!(error.key, key);
        let cap = key
            .trim_start_matches("grant.")
            .replace("backoff_max", "backoff");
        let cap = match key.starts_with("grant.") {
            true => &cap,
            false => cap.split_once('.').expect("a table and a key").1,
        };
        assert_eq!(error.cap_key(), cap);
        let text = error.to_string();
        assert!(
            text.contains(&format!("(`components.caps.{cap}`)")),
            "{text}"
        );
        let is_least = key == "restart.period" || key.contains("backoff");
        let side = if is_least { "at least" } else { "at most" };
        assert!(text.contains(side), "{text}");
        // Each cap is a key of the node's configuration, and raising it has an effect.
        let least = if is_least { "\"1us\"" } else { beyond };
        let (table, name) = match cap.split_once('.') {
            Some((table, name)) => (format!("[{table}]\n"), name),
            None => (String::new(), cap),
        };
        let raised: ManifestCaps = toml::from_str(&format!("{table}{name} = {least}")).expect(&key);
        let asked = match key.strip_prefix("grant.files.") {
            Some(name) => format!("grant.files.x.{name}"),
            None => key.clone(),
        };
        let manifest = Manifest::parse(&amounts::text(&asked, beyond)).expect("as above");
        assert_eq!(raised.check(&manifest), Ok(()), "{key}");
    }
}

#[test]
fn writable_directories_share_the_cap() {
    let check = |write: bool| {
        let folder = format!("path = \"x\"\nwrite = {write}\nsize = \"600MiB\"\nfiles = 6000\n");
        let text = format!(
            "[component]\nname = \"a\"\n[grant.files.a]\n{folder}[grant.files.b]\n{folder}"
        );
        ManifestCaps::default().check(&Manifest::parse(&text).expect("it is a manifest"))
    };
    assert_eq!(check(false), Ok(()));
    let text = check(true).expect_err("it is too much").to_string();
    let size = "`grant.files.size` is 1200MiB, but the node allows at most 1GiB \
                (`components.caps.files.size`)";
    assert_eq!(text, size);
    let mut caps = ManifestCaps::default();
    caps.files.size = usize::MAX;
    let folder = "path = \"x\"\nwrite = true\nfiles = 6000\n";
    let text =
        format!("[component]\nname = \"a\"\n[grant.files.a]\n{folder}[grant.files.b]\n{folder}");
    let asked = Manifest::parse(&text).expect("it is a manifest");
    let text = caps.check(&asked).expect_err("it is too many").to_string();
    assert!(
        text.starts_with("`grant.files.files` is 12000, but"),
        "{text}"
    );
}
