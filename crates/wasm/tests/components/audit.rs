//! Every refusal is logged.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, subscriber};

use crate::kit::{Guest, Testbed, host, manifest};

/// The audit lines as `grant=what`, the number of omitted ones that they report, and the
/// component's own lines.
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
        if field.name() == "omitted" {
            self.omitted = value;
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
        } else if line.omitted > 0 {
            seen.dropped += line.omitted;
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

pub(crate) fn audited(work: impl FnOnce()) -> (Vec<String>, u64) {
    let seen = seen(work);
    (seen.audits, seen.omitted)
}

#[test]
fn each_denied_import_is_logged() {
    let guest = Guest::new()
        .import("clock", "now")
        .import("log", "write")
        .handle(
            "(drop (call $now)) (call $write (i32.const 0) (i32.const 0) (i32.const 0)) (call $ok)",
        );
    let (mut lines, _) = audited(|| {
        let loaded = host().load_blocking(&guest.encode(), manifest("guest", ""));
        assert!(loaded.is_err());
    });
    lines.sort();
    let expected = ["clock", "log"].map(|name| format!("import=strowger:component/{name}@0.1.0"));
    assert_eq!(lines, expected);
}

#[test]
fn ten_thousand_denied_imports_log_ten_lines() {
    let imports: String = (0..10_000)
        .map(|n| format!("(import \"a{n}\" (func))"))
        .collect();
    let bytes = wat::parse_str(format!("(component {imports})")).expect("it is text");
    let host = host();
    let (lines, omitted) = audited(|| {
        let refused = host.load_blocking(&bytes, manifest("guest", ""));
        let refused = refused.expect_err("it is granted nothing");
        let text = refused.to_string();
        assert!(
            text.ends_with("and 9984 more") && text.len() < 4000,
            "{text}"
        );
    });
    assert_eq!((lines.len(), omitted), (10, 9991), "{lines:?}");
    // All loads of a host share this rate.
    let (lines, _) = audited(|| {
        for name in ["a", "b", "c"] {
            let refused = host.load_blocking(&bytes, manifest(name, ""));
            assert!(refused.is_err());
        }
    });
    assert!(lines.len() <= 10, "{lines:?}");
}

#[test]
fn repeated_faults_are_logged_at_a_rate() {
    let testbed = Testbed::new();
    let guest = Guest::new()
        .import("messaging", "resolve")
        .data("vault")
        .init("(call $resolve (i32.const 1024) (i32.const 5) (i32.const 64)) (call $ok)")
        .handle("unreachable");
    let more = "[grant]\nsend = [\"mail\"]\n[restart]\nintensity = 100\nbackoff = \"1ms\"\n\
                backoff_max = \"1ms\"\npoison = 2";
    let seen = seen(|| {
        let started = testbed.start(&guest, "guest", more);
        for _ in 0..30 {
            testbed.tell(&started, "x");
            testbed.system.advance(std::time::Duration::from_millis(5));
        }
        assert!(
            started.args.info().incarnations > 25,
            "{:?}",
            started.args.info()
        );
    });
    // The attempts of one incarnation count for the next one.
    assert!((10..=15).contains(&seen.audits.len()), "{:?}", seen.audits);
    let gave_up = seen.own.iter().filter(|line| *line == "message dropped");
    assert!((10..=15).contains(&gave_up.count()), "{:?}", seen.own);
    assert!(seen.omitted + seen.dropped > 0);
}

#[cfg(unix)]
#[test]
fn missing_directory_is_logged_at_a_rate() {
    let testbed = Testbed::new();
    let guest = repeating(
        Guest::new().import("files", "names").data("room"),
        "(call $names (i32.const 1024) (i32.const 4) (i32.const 1024) (i32.const 4)
           (i32.const 1024) (i32.const 0) (i32.const 1) (i32.const 64))",
    );
    let more = "[grant.files.room]\npath = \"/nowhere/at/all\"";
    let guest = testbed.start(&guest, "guest", more);
    let seen = seen(|| testbed.tell(&guest, "\u{64}"));
    assert_eq!(seen.own.len(), 10, "{:?}", seen.own);
    assert_eq!(guest.args.info().faults, 0, "{:?}", guest.args.info().fault);
}

/// A guest that repeats a call as often as the first byte of a message says.
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
fn repeated_denials_are_logged_at_a_rate_with_omissions() {
    let testbed = Testbed::new();
    let guest = repeating(
        Guest::new()
            .import("messaging", "resolve")
            .data("vault\u{1b}"),
        "(call $resolve (i32.const 1024) (i32.const 6) (i32.const 64))",
    );
    let more = "[grant]\nsend = [\"mail\"]";
    let guest = testbed.start(&guest, "guest", more);
    let (lines, omitted) = audited(|| {
        testbed.tell(&guest, "\u{64}");
        testbed.system.advance(std::time::Duration::from_secs(2));
        testbed.tell(&guest, "\u{1}");
    });
    assert_eq!(lines, vec!["send=vault\\u{1b}"; 11], "ten, and one later");
    assert_eq!(omitted, 90);
}

#[test]
fn flood_of_own_lines_does_not_hide_denials() {
    let testbed = Testbed::new();
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
    let started = testbed.start(&guest, "guest", more);
    let (lines, _) = audited(|| {
        testbed.tell(&started, "\u{64}");
        testbed.system.shutdown(std::time::Duration::from_secs(1));
    });
    assert_eq!(lines, ["send=vault"]);
}

#[test]
fn own_lines_are_rate_limited_and_escaped() {
    for (rate, lines) in [(5, 5), (1000, 100)] {
        let testbed = Testbed::new();
        let guest = repeating(
            Guest::new()
                .import("log", "write")
                .data("\u{1b}[2J\u{7}\nx"),
            "(call $write (i32.const 2) (i32.const 1024) (i32.const 7))",
        );
        let more = format!("[limits]\nlog_rate = {rate}\n[grant]\nlog = true");
        let guest = testbed.start(&guest, "guest", &more);
        let neighbour = testbed.start(&Guest::new(), "neighbour", "");
        let seen = seen(|| {
            testbed.tell(&guest, "\u{64}");
            testbed.tell(&neighbour, "x");
            testbed.system.advance(std::time::Duration::from_secs(2));
            testbed.tell(&guest, "\u{1}");
        });
        assert_eq!(seen.own, vec!["\\u{1b}[2J\\u{7}\\nx"; lines + 1]);
        assert_eq!(seen.dropped, 100 - lines as u64);
        assert_eq!(neighbour.args.info().calls, 1);
        assert_eq!(guest.args.info().faults, 0);
    }
}
