//! What is refused is said, and who vouches for a component is checked.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use strowger_wasm::{LoadError, Manifest, Signature, Signer};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, subscriber};

use crate::kit::{Guest, Stand, host, manifest};

/// The audit lines, as `grant=what`, how many they say to omit, and the component's own lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Seen>>);

#[derive(Clone, Default)]
struct Seen {
    audits: Vec<String>,
    omitted: u64,
    own: Vec<String>,
    dropped: u64,
}

#[derive(Default)]
struct Line {
    grant: String,
    what: String,
    omitted: u64,
    message: String,
    dropped: u64,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "grant" => self.grant = value.to_owned(),
            "what" => self.what = value.to_owned(),
            "message" => self.message = value.to_owned(),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "omitted" => self.omitted = value,
            "dropped" => self.dropped = value,
            _ => {}
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("strowger_wasm")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let mut seen = self.0.lock();
        if event.metadata().target() == "strowger_wasm::audit" {
            seen.audits.push(format!("{}={}", line.grant, line.what));
            seen.omitted += line.omitted;
        } else if line.dropped > 0 {
            seen.dropped += line.dropped;
        } else {
            seen.own.push(line.message);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn seen(work: impl FnOnce()) -> Seen {
    let lines = Lines::default();
    subscriber::with_default(lines.clone(), work);
    let seen = lines.0.lock();
    seen.clone()
}

fn audited(work: impl FnOnce()) -> (Vec<String>, u64) {
    let seen = seen(work);
    (seen.audits, seen.omitted)
}

#[test]
fn each_import_that_is_refused_is_a_line() {
    let guest = Guest::new()
        .import("clock", "now")
        .import("log", "write")
        .handle(
            "(drop (call $now)) (call $write (i32.const 0) (i32.const 0) (i32.const 0)) (call $ok)",
        );
    let (mut lines, _) = audited(|| {
        let loaded = host().load_blocking(&guest.octets(), manifest("guest", ""));
        assert!(loaded.is_err());
    });
    lines.sort();
    let expected = ["clock", "log"].map(|name| format!("import=strowger:component/{name}@0.1.0"));
    assert_eq!(lines, expected);
}

/// A guest that does something as often as the first octet of a message says.
fn repeating(guest: Guest, call: &str) -> Guest {
    guest.handle(&format!(
        "(local $n i32)
         (local.set $n (i32.load8_u (local.get $ptr)))
         (block $done (loop $again
           (br_if $done (i32.eqz (local.get $n)))
           {call}
           (local.set $n (i32.sub (local.get $n) (i32.const 1)))
           (br $again)))
         (call $ok)"
    ))
}

#[test]
fn who_tries_and_tries_is_told_of_at_a_rate_with_what_was_omitted() {
    let stand = Stand::new();
    let guest = repeating(
        Guest::new()
            .import("messaging", "resolve")
            .data("vault\u{1b}"),
        "(call $resolve (i32.const 1024) (i32.const 6) (i32.const 64))",
    );
    let more = "[grant]\nsend = [\"mail\"]";
    let guest = stand.start(&guest, "guest", more);
    let (lines, omitted) = audited(|| {
        stand.tell(&guest, "\u{64}");
        stand.system.advance(std::time::Duration::from_secs(2));
        stand.tell(&guest, "\u{1}");
    });
    assert_eq!(lines, vec!["send=vault\\u{1b}"; 11], "ten, and one later");
    assert_eq!(omitted, 90);
}

#[test]
fn a_flood_of_log_lines_hides_no_attempt() {
    let stand = Stand::new();
    let guest = repeating(
        Guest::new()
            .import("messaging", "resolve")
            .import("log", "write")
            .data("vault"),
        "(call $write (i32.const 0) (i32.const 1024) (i32.const 5))",
    );
    let first = "(call $resolve (i32.const 1024) (i32.const 5) (i32.const 64))";
    let guest = guest.stop(first);
    let more = "[limits]\nlog_rate = 1\n[grant]\nsend = [\"mail\"]\nlog = true";
    let started = stand.start(&guest, "guest", more);
    let (lines, _) = audited(|| {
        stand.tell(&started, "\u{64}");
        stand.system.shutdown(std::time::Duration::from_secs(1));
    });
    assert_eq!(lines, ["send=vault"]);
}

#[test]
fn a_flood_of_lines_is_cut_and_no_line_writes_on_a_terminal() {
    for (rate, lines) in [(5, 5), (1000, 100)] {
        let stand = Stand::new();
        let guest = repeating(
            Guest::new()
                .import("log", "write")
                .data("\u{1b}[2J\u{7}\nx"),
            "(call $write (i32.const 2) (i32.const 1024) (i32.const 7))",
        );
        let more = format!("[limits]\nlog_rate = {rate}\n[grant]\nlog = true");
        let guest = stand.start(&guest, "guest", &more);
        let neighbour = stand.start(&Guest::new(), "neighbour", "");
        let seen = seen(|| {
            stand.tell(&guest, "\u{64}");
            stand.tell(&neighbour, "x");
            stand.system.advance(std::time::Duration::from_secs(2));
            stand.tell(&guest, "\u{1}");
        });
        assert_eq!(seen.own, vec!["\\u{1b}[2J\\u{7}\\nx"; lines + 1]);
        assert_eq!(seen.dropped, 100 - lines as u64);
        assert_eq!(neighbour.args.info().calls, 1);
        assert_eq!(guest.args.info().faults, 0);
    }
}

// Made with OpenSSL 3 over the octets `octets` from a key that is gone.
const SIGNER: &str = "3510f5b92696dbaa45ac64e8ace67157cfba6a1ef52a5a2ef0fcee3f8a393cd4";
const SIGNED: &str = "dbf8bf5d331887bcf46c4d99c661fbcb32217742d6c5aa8caeae2d6f1cee247e\
                      281e33b22083f980f37039097701eba601bbc7f23bdd5e5ffd0858253f40e60d";

#[test]
fn a_component_is_loaded_only_with_the_signature_of_its_signer() {
    let octets = b"octets of a component, perhaps";
    let mut signed = Manifest::new("guest");
    signed.component.signer = Signer::parse(SIGNER);
    signed.component.signature = Signature::parse(SIGNED);
    assert!(signed.component.signer.is_some() && signed.component.signature.is_some());
    // They are no component, which is found out only of what is signed.
    let loaded = host().load_blocking(octets, signed.clone());
    let invalid = loaded.expect_err("they are none");
    assert!(matches!(invalid, LoadError::Invalid { .. }), "{invalid}");
    let mut unsigned = signed.clone();
    unsigned.component.signature = None;
    let (lines, _) = audited(|| {
        for (octets, manifest) in [(&octets[1..], signed), (&octets[..], unsigned)] {
            let loaded = host().load_blocking(octets, manifest);
            let refused = loaded.expect_err("it is not signed so");
            assert!(matches!(refused, LoadError::Signature { .. }), "{refused}");
            assert!(refused.to_string().contains(SIGNER), "{refused}");
        }
    });
    let expected = [
        "signer=the signature is not one of these octets",
        "signer=its manifest has no signature",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn an_inspection_says_who_signed() {
    let octets = Guest::new().octets();
    let seen = host().inspect(&octets, &manifest("guest", ""));
    assert_eq!(seen.expect("it is a component").signer, None);
    let text = format!("[component]\nname = \"a\"\nsignature = {SIGNED:?}");
    let said = Manifest::parse(&text)
        .expect_err("nobody checks it")
        .to_string();
    assert!(said.contains("component.signer"), "{said}");
}
