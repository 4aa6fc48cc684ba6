use std::time::Duration;

use super::{ConfigError, NodeConfig, Pools};

#[test]
fn commented_config_equals_default() {
    let config: NodeConfig = toml::from_str(NodeConfig::COMMENTED).unwrap();
    assert_eq!(config, NodeConfig::default());
    assert_eq!(config.check(), Ok(()));
}

#[test]
fn every_key_of_commented_config_has_comment() {
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
fn invalid_value_error_states_reason() {
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
        (
            "[peer]\nnamed = { \"smf..lab\" = [\"10.0.0.1\"] }",
            "\"smf..lab\" is no Node ID: give an IP address or a domain name",
        ),
        (
            "[peer]\nnamed = { \"smf.lab\" = [\"10.0.0.1\"], \"SMF.lab\" = [\"10.0.0.2\"] }",
            "\"smf.lab\" is named twice",
        ),
        (
            "[peer]\nnamed = { \"smf.lab\" = [] }",
            "\"smf.lab\" has no addresses",
        ),
        (
            "[peer]\nnamed = { \"smf.lab\" = [\"host\"] }",
            "`host` is not a network",
        ),
        (
            "[pools]\nnetwork_instance = \"ims\"",
            "write `[[n4.pools]]`",
        ),
        (
            "[[pools]]\nue = []\n[[pools]]\nteid_first = 7",
            "two pools have no `network_instance`",
        ),
        (
            "[[pools]]\nnetwork_instance = \"ims\"\nue = []\nteid_first = 7",
            "TEIDs belong to the whole node",
        ),
        ("[[pools]]\nnetwork_instance = \"ims\"", "has no `ue`"),
        (
            "[[pools]]\nnetwork_instance = \"\"\nue = []",
            "empty `network_instance`",
        ),
        (
            "[[pools]]\nnetwork_instance = \"ims\"\nue = []\n\
             [[pools]]\nnetwork_instance = \"IMS\"\nue = []",
            "\"IMS\" has two pools",
        ),
        ("[[pools]]\nue = [\"10.0.0.0/33\"]", "is not a network"),
        ("[[pools]]\nteid = 7", "unknown field"),
        ("[pools]\nteid = 7", "unknown field"),
        (
            "[peer]\nreport_port = 0",
            "a port from 1 to 65535, or \"source\"",
        ),
        ("[peer]\nreport_port = 65536", "a port from 1 to 65535"),
        ("[peer]\nreport_port = \"any\"", "or \"source\""),
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
fn pools_are_a_table_or_a_list() {
    let pools = |text: &str| toml::from_str::<NodeConfig>(text).unwrap().pools;
    let usual = Pools::default();
    let table = pools("[pools]\nteid_first = 7");
    assert_eq!((table.teid_first, &table.ue), (7, &usual.ue));
    assert_eq!(pools("pools = [{ teid_first = 7, ue = [] }]").teid_first, 7);
    let listed = pools("[[pools]]\nnetwork_instance = \"ims\"\nue = [\"10.1.0.0/16\"]");
    assert_eq!((listed.ue, listed.teid_last), (Vec::new(), usual.teid_last));
    assert_eq!(listed.instances[0].ue, ["10.1.0.0/16".parse().unwrap()]);
}

#[test]
fn unworkable_configuration_is_refused() {
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
fn named_peers_must_be_allowed_and_have_room() {
    let config = |text: &str| toml::from_str::<NodeConfig>(text).unwrap();
    let two = "[peer]\nnamed = { \"a.lab\" = [\"127.0.0.2\"], \"b.lab\" = [\"127.0.0.3\"] }";
    assert_eq!(config(two).check(), Ok(()));
    let full = config(&format!("[limits]\nassociations = 1\n{two}")).check();
    let (named, associations) = (2, 1);
    let wanted = ConfigError::NamedPeers {
        named,
        associations,
    };
    assert_eq!(full, Err(wanted));
    for (peers, network, is_right) in [
        ("10.0.0.0/8", "10.1.0.0/16", true),
        ("10.1.0.0/16", "10.0.0.0/8", false),
        ("10.0.0.0/8", "11.0.0.1", false),
    ] {
        let text =
            format!("peers = [\"{peers}\"]\n[peer]\nnamed = {{ \"a.lab\" = [\"{network}\"] }}");
        let checked = config(&text).check();
        assert_eq!(
            checked.is_ok(),
            is_right,
            "{network} in {peers}: {checked:?}"
        );
    }
}

#[test]
fn default_config_allows_only_loopback_peers() {
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
