use std::time::Duration;

use super::{ConfigError, NodeConfig};

#[test]
fn the_commented_file_is_the_default() {
    let config: NodeConfig = toml::from_str(NodeConfig::COMMENTED).unwrap();
    assert_eq!(config, NodeConfig::default());
    assert_eq!(config.check(), Ok(()));
}

#[test]
fn every_line_of_the_commented_file_is_a_key_or_explains_one() {
    let text = NodeConfig::COMMENTED;
    for key in text
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .map(|(key, _)| key)
    {
        let before = text.split_once(&format!("{key} = ")).unwrap().0;
        let explained = before.lines().next_back().unwrap();
        assert!(
            explained.starts_with('#') || key == "teid_last",
            "{key} has no comment"
        );
    }
}

#[test]
fn an_unknown_key_is_an_error() {
    for text in [
        "lisen = []",
        "[limits]\nsession = 1",
        "[timers]\nt2 = \"1s\"",
    ] {
        let error = toml::from_str::<NodeConfig>(text).unwrap_err().to_string();
        assert!(error.contains("unknown field"), "{error}");
    }
}

#[test]
fn a_wrong_value_says_what_is_right() {
    for (text, reason) in [
        (
            "peers = [\"10.0.0.0/33\"]",
            "`10.0.0.0/33` is not a network",
        ),
        ("release = \"r18\"", "give \"r17\" or \"r19\""),
        ("peers = [\"host\"]", "`host` is not a network"),
        (
            "[peer]\ninterfaces = { \"10.0.0.1\" = \"N6\" }",
            "\"N6\" is no interface",
        ),
        (
            "[peer]\nrestarts = { \"10.0.0.1\" = \"never\" }",
            "\"never\" is no sign of a restart: give \"heartbeat\" or \"association-setup\"",
        ),
        (
            "[peer]\nrestarts = { \"smf\" = \"heartbeat\" }",
            "`smf` is not a network",
        ),
        ("[timers]\nt1 = \"3 s\"", "such as \"500ms\""),
        (
            "[timers]\nt1 = \"99999999999999999999s\"",
            "such as \"500ms\"",
        ),
    ] {
        let error = toml::from_str::<NodeConfig>(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let broken = |change: fn(&mut NodeConfig)| {
        let mut config = NodeConfig::default();
        change(&mut config);
        config.check().unwrap_err()
    };
    assert_eq!(
        broken(|config| config.listen.clear()),
        ConfigError::NoListenAddress
    );
    let zero = broken(|config| config.limits.sessions = 0);
    assert_eq!(zero, ConfigError::ZeroLimit { key: "sessions" });
    let range = broken(|config| config.pools.teid_first = 0);
    assert!(matches!(range, ConfigError::TeidRange { .. }));
    let timer = broken(|config| config.timers.t1 = Duration::ZERO);
    assert!(matches!(timer, ConfigError::Timer { key: "t1", .. }));
    let timer = broken(|config| config.timers.n1 = 0);
    assert!(matches!(timer, ConfigError::Timer { key: "n1", .. }));
}

#[test]
fn only_the_loopback_is_allowed_unless_told_otherwise() {
    let config = NodeConfig::default();
    for (peer, allowed) in [
        ("127.0.0.1", true),
        ("127.255.0.9", true),
        ("::1", true),
        ("::ffff:127.0.0.1", true),
        ("128.0.0.1", false),
        ("::2", false),
        ("10.0.0.1", false),
    ] {
        assert_eq!(config.allows(peer.parse().unwrap()), allowed, "{peer}");
    }
}
