//! Required signers, caps on grants, and upgrades that ask for more.

use strowger_wasm::manifest::ManifestCaps;
use strowger_wasm::registry::{RegistryError, WiderAccess};
use strowger_wasm::signature::{SigningKey, Statement, TrustPolicy};
use strowger_wasm::{ComponentRegistry, Host, LoadError, Manifest};

use crate::audit::audited;
use crate::kit::{Guest, Testbed, counter, host, limits};

const GRANTS: &str = "[limits]\nmemory = \"1MiB\"\n[grant]\nsend = [\"audit\"]\n";

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed([seed; 32])
}

/// A manifest that this key signed together with a component.
fn signed(key: &SigningKey, more: &str, component: &[u8]) -> String {
    let signer = key.signer();
    let text = format!("[component]\nname = \"guest\"\nsigner = \"{signer}\"\n{more}");
    let statement = Statement::of(&text, component).expect("it is TOML");
    let signature = key.sign(&statement);
    text.replace(
        "signer =",
        &format!("signature = \"{signature}\"\nsigner ="),
    )
}

fn refused(host: &Host, text: &str, component: &[u8]) -> LoadError {
    let manifest = Manifest::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let loaded = host.load_blocking(component, manifest);
    loaded.expect_err("it is not trusted")
}

#[test]
fn signature_covers_exactly_manifest_and_code() {
    let component = Guest::new().encode();
    let other = Guest::new().data("other").encode();
    let text = signed(&key(1), GRANTS, &component);
    let load = |text: &str, component: &[u8]| {
        let manifest = Manifest::parse(text).expect("it is a manifest");
        host().load_blocking(component, manifest)
    };
    load(&text, &component).expect("it is as it was signed");
    // A program may override the name.
    let mut manifest = Manifest::parse(&text).expect("it is a manifest");
    manifest.component.name = "other".to_owned();
    host()
        .load_blocking(&component, manifest.with_base_dir("/"))
        .expect("it is the host's decision");
    let attempts = [
        (text.replace("\"audit\"", "\"*\""), &component),
        (text.clone() + "log = true\n", &component),
        (text.replace("1MiB", "2MiB"), &component),
        (text.replace("\"guest\"", "\"guest2\""), &component),
        (text.clone(), &other),
    ];
    let (lines, _) = audited(|| {
        for (text, component) in attempts {
            let error = refused(&host(), &text, component);
            let LoadError::Signature { signer, why } = &error else {
                panic!("{error}: {text}");
            };
            assert_eq!(*signer, key(1).signer().to_string());
            assert_eq!(
                *why,
                "the signature does not match this manifest and this code"
            );
        }
    });
    assert_eq!(lines.len(), 5);
    let line = format!("signer=the component is not signed by {}", key(1).signer());
    assert!(lines.iter().all(|one| one.starts_with(&line)), "{lines:?}");
}

// Made with OpenSSL 3 over the bytes of `component`, with a key that was discarded.
const SIGNER: &str = "3510f5b92696dbaa45ac64e8ace67157cfba6a1ef52a5a2ef0fcee3f8a393cd4";
const SIGNED: &str = "dbf8bf5d331887bcf46c4d99c661fbcb32217742d6c5aa8caeae2d6f1cee247e\
                      281e33b22083f980f37039097701eba601bbc7f23bdd5e5ffd0858253f40e60d";

#[test]
fn signature_of_code_alone_is_reported() {
    let old =
        format!("[component]\nname = \"guest\"\nsigner = \"{SIGNER}\"\nsignature = \"{SIGNED}\"\n");
    let why = |text: &str, component: &[u8]| match refused(&host(), text, component) {
        LoadError::Signature { why, .. } => why,
        error => panic!("{error}"),
    };
    let component = b"octets of a component, perhaps";
    assert!(why(&old, component).contains("covers only the code"));
    assert!(why(&old, &component[1..]).contains("does not match this manifest"));
    let unsigned = format!("[component]\nname = \"guest\"\nsigner = \"{SIGNER}\"");
    assert_eq!(why(&unsigned, component), "its manifest has no signature");
    let unchecked = format!("[component]\nname = \"a\"\nsignature = \"{SIGNED}\"");
    let said = Manifest::parse(&unchecked)
        .expect_err("nobody checks it")
        .to_string();
    assert!(said.contains("component.signer"), "{said}");
    // A manifest built by a program has no text that anybody could have signed.
    let mut made = Manifest::new("guest");
    let parsed = Manifest::parse(&old).expect("it is a manifest");
    (made.component.signer, made.component.signature) =
        (parsed.component.signer, parsed.component.signature);
    let refused = host()
        .load_blocking(component, made)
        .expect_err("there is no text");
    assert!(
        refused.to_string().contains("not loaded from a text"),
        "{refused}"
    );
}

fn trusting(keys: &[(&str, &SigningKey)]) -> Host {
    let mut limits = limits();
    (limits.instances, limits.waiting) = (16, 8);
    let signers = keys
        .iter()
        .map(|(name, key)| ((*name).to_owned(), key.signer()));
    limits.trust.signers = signers.collect();
    Host::new(limits).expect("there is a thread to be had")
}

#[test]
fn untrusted_signers_are_refused() {
    let (release, backup, stranger) = (key(1), key(2), key(3));
    let host = trusting(&[("release", &release), ("backup", &backup)]);
    let component = Guest::new().encode();
    for key in [&release, &backup] {
        let manifest = Manifest::parse(&signed(key, GRANTS, &component)).expect("it parses");
        host.load_blocking(&component, manifest)
            .expect("it is trusted");
    }
    let unsigned = "[component]\nname = \"guest\"";
    let (lines, _) = audited(|| {
        for (text, says) in [
            (unsigned, "names no signer".to_owned()),
            (
                &signed(&stranger, GRANTS, &component),
                format!("names the signer {}", stranger.signer()),
            ),
            // A trusted key with a signature by another key.
            (
                &signed(&stranger, GRANTS, &component).replace(
                    &stranger.signer().to_string(),
                    &release.signer().to_string(),
                ),
                format!("not signed by release ({})", release.signer()),
            ),
        ] {
            let said = refused(&host, text, &component).to_string();
            assert!(said.contains(&says), "{said}");
            let inspected = host.inspect(&component, &Manifest::parse(text).expect("it parses"));
            assert!(inspected.is_err(), "{text}");
        }
    });
    assert_eq!(lines.len(), 6, "{lines:?}");
    let said = refused(&host, unsigned, &component).to_string();
    assert!(
        said.contains("backup, release (`components.trust.signers`)"),
        "{said}"
    );
}

#[test]
fn grant_beyond_the_cap_is_refused_through_links() {
    let place = tempfile::tempdir().expect("a folder of our own");
    let at = |name: &str| place.path().join(name);
    std::fs::create_dir_all(at("data/in")).expect("it is ours");
    std::fs::create_dir_all(at("data-other")).expect("it is ours");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc", at("data/link")).expect("it is ours");
    let mut limits = limits();
    let cap = format!("[grant.files.all]\npath = {:?}\nwrite = true", at("data"));
    let caps: ManifestCaps = toml::from_str(&cap).expect("they are caps");
    limits.caps.grant = caps.grant;
    let host = Host::new(limits).expect("there is a thread to be had");
    let component = Guest::new().encode();
    let load = |path: &str, more: &str| {
        let text = format!(
            "[component]\nname = \"guest\"\n[grant.files.d]\npath = {:?}\n{more}",
            at(path)
        );
        host.load_blocking(
            &component,
            Manifest::parse(&text).expect("it is a manifest"),
        )
    };
    for within in [
        "data",
        "data/in",
        "data/in/..",
        "data/none/yet",
        "data-other/../data",
    ] {
        load(within, "write = true").unwrap_or_else(|error| panic!("{within}: {error}"));
    }
    for beyond in [
        "",
        "data-other",
        "data/..",
        "data/link",
        "data/none/../../data-other",
        "/etc",
    ] {
        let (lines, _) = audited(|| {
            let error = load(beyond, "").map(drop).expect_err(beyond);
            assert!(
                matches!(error, LoadError::CapExceeded(_)),
                "{beyond}: {error}"
            );
            let said = error.to_string();
            assert!(said.contains("components.caps.grant.files"), "{said}");
        });
        assert!(
            lines.len() == 1 && lines[0].starts_with("caps="),
            "{lines:?}"
        );
    }
    load("data", "write = true\nsize = \"1GiB\"")
        .map(drop)
        .expect_err("it is too much");
}

fn registry(testbed: &Testbed) -> ComponentRegistry {
    let starting = ComponentRegistry::start(testbed.system.system(), "components", &testbed.host);
    testbed.system.run(starting).expect("the key is free")
}

#[test]
fn wider_upgrade_needs_to_be_granted() {
    let testbed = Testbed::new();
    let registry = registry(&testbed);
    let image = |more: &str| testbed.image(&counter(), "a", more);
    let narrow = "[grant]\nsend = [\"a.*\"]";
    let wide = "[grant]\nsend = [\"*\"]\nclock = true";
    let run = |image, widening| testbed.system.run(registry.upgrade(image, widening));
    let rollback = |widening| testbed.system.run(registry.rollback("a", widening));
    testbed
        .system
        .run(registry.deploy(image(narrow)))
        .expect("there is room");
    let same = run(image(narrow), WiderAccess::Refused).expect("it is no wider");
    assert_eq!(same, []);
    let (lines, _) = audited(|| {
        let error = run(image(wide), WiderAccess::Refused).expect_err("it is wider");
        let RegistryError::Wider { name, changes } = &error else {
            panic!("{error}");
        };
        assert_eq!((&**name, changes.len()), ("a", 2));
        let said = error.to_string();
        assert!(
            said.contains("grant.send: \"a.*\" -> \"*\" (widened)"),
            "{said}"
        );
        assert!(
            said.contains("grant.clock: nothing -> true (added, wider)"),
            "{said}"
        );
        let changes = run(image(wide), WiderAccess::Granted).expect("it was granted");
        assert_eq!(changes.len(), 2);
    });
    assert_eq!(lines.len(), 2, "the refusal and the grant: {lines:?}");
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("upgrade=grant.send")),
        "{lines:?}"
    );
    // Back to a narrower grant without consent, and forward to a wider one only with it.
    let back = rollback(WiderAccess::Refused).expect("it is narrower");
    assert!(
        back.iter().all(|change| !change.wider) && back.len() == 2,
        "{back:?}"
    );
    let error = rollback(WiderAccess::Refused).expect_err("it is wider");
    assert!(matches!(error, RegistryError::Wider { .. }), "{error}");
    rollback(WiderAccess::Granted).expect("it was granted");
}

#[test]
fn deploying_over_quarantine_does_not_widen_access() {
    let testbed = Testbed::new();
    let registry = registry(&testbed);
    let image = |more: &str| {
        let more = format!("[restart]\nintensity = 0\n{more}");
        testbed.image(&counter(), "a", &more)
    };
    let deploy = |image| testbed.system.run(registry.deploy(image)).map(drop);
    deploy(image("")).expect("there is room");
    let fatal = strowger_wasm::Message([255_u8].as_slice().into());
    let actor = registry.find("a").expect("it was deployed");
    actor.try_tell(fatal).expect("there is room");
    testbed.system.run_until_idle();
    assert!(!registry.list()[0].alive);
    let wider = "[grant]\nclock = true";
    let error = deploy(image(wider)).expect_err("it is wider");
    assert!(matches!(error, RegistryError::Wider { .. }), "{error}");
    assert!(!registry.list()[0].alive, "it is still to be seen");
    deploy(image("")).expect("it is the same");
    testbed
        .system
        .run(registry.remove("a"))
        .expect("it is there");
    deploy(image(wider)).expect("it is another one");
}

#[test]
fn trust_widen_allows_upgrades_up_to_the_cap() {
    let mut limits = limits();
    (limits.instances, limits.waiting) = (16, 8);
    let caps: ManifestCaps = toml::from_str("[grant]\nclock = true").expect("they are caps");
    limits.caps.grant = caps.grant;
    let mut trust = TrustPolicy::default();
    trust.widen = true;
    limits.trust = trust;
    let testbed = Testbed {
        host: Host::new(limits).expect("there is a thread to be had"),
        ..Testbed::new()
    };
    let registry = registry(&testbed);
    let image = |more: &str| testbed.image(&counter(), "a", more);
    testbed
        .system
        .run(registry.deploy(image("")))
        .expect("there is room");
    let (lines, _) = audited(|| {
        let wider = image("[grant]\nclock = true");
        let upgraded = testbed
            .system
            .run(registry.upgrade(wider, WiderAccess::Refused));
        assert_eq!(upgraded.expect("the cap allows it").len(), 1);
    });
    assert_eq!(
        lines,
        ["upgrade=grant.clock: nothing -> true (added, wider)"]
    );
}

#[test]
fn concurrent_upgrades_are_compared_in_turn() {
    let testbed = Testbed::new();
    let registry = registry(&testbed);
    let image = |more: &str| testbed.image(&counter(), "a", more);
    let wide = "[grant]\nclock = true";
    let deployed = testbed.system.run(registry.deploy(image(wide)));
    deployed.expect("there is room");
    // Neither is wider than the running version; the second is wider than the first.
    let (narrow, wide) = (image(""), image(wide));
    let (first, second) = testbed.system.run(async {
        tokio::join!(
            registry.upgrade(narrow, WiderAccess::Refused),
            registry.upgrade(wide, WiderAccess::Refused)
        )
    });
    assert_eq!(first.expect("it is narrower").len(), 1);
    let error = second.expect_err("it is wider than the one that runs by then");
    assert!(matches!(error, RegistryError::Wider { .. }), "{error}");
    let seen = testbed
        .system
        .run(registry.upgrade(image(""), WiderAccess::Refused));
    assert_eq!(seen.expect("it is the same"), []);
}
