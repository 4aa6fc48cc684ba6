//! Streams between components and native actors: order, credit, ends.

use std::task::Poll;

use strowger::{Actor, Ask, Completion, Context, ReadError, Reader, Source, SourceSpec};
use strowger_wasm::directory::DirectoryEntry;
use strowger_wasm::message::OpenStream;
use strowger_wasm::{Call, CallError, LoadError, Message, Payload};

use crate::kit::{Guest, Started, Testbed, manifest, payload};

/// A guest that serves one stream of the first `total` numbers, in four bytes each. It traps on a
/// tell, and answers with the number of items sent and with 1 if its reader has gone.
fn server(total: u32) -> Guest {
    Guest::new()
        .import("streams", "send")
        .import("streams", "finish")
        .global("(global $to (mut i64) (i64.const 0))")
        .global("(global $sent (mut i32) (i32.const 0))")
        .global("(global $gone (mut i32) (i32.const 0))")
        .more(&format!(
            "(func $pump
               (block $stop (loop $next
                 (br_if $stop (i32.eq (global.get $sent) (i32.const {total})))
                 (i32.store (i32.const 1024) (global.get $sent))
                 (call $send (global.get $to) (i32.const 1024) (i32.const 4) (i32.const 64))
                 (if (i32.load8_u (i32.const 64)) (then (return)))
                 (global.set $sent (i32.add (global.get $sent) (i32.const 1)))
                 (br $next)))
               (call $finish (global.get $to) (i32.const 64)))"
        ))
        .handle(
            "(if (i32.eqz (local.get $kind)) (then unreachable))
             (if (i64.eqz (local.get $token)) (then
               (i32.store (i32.const 512) (global.get $sent))
               (i32.store8 (i32.const 516) (global.get $gone))
               (return (call $answer (i32.const 512) (i32.const 5)))))
             (if (i32.eq (local.get $kind) (i32.const 3)) (then
               (global.set $gone (i32.const 1)) (return (call $ok))))
             (if (i32.eq (local.get $kind) (i32.const 1)) (then
               (global.set $to (local.get $token))))
             (call $pump)
             (call $ok)",
        )
}

/// A guest that reads from the actor with this name when it is told to, and traps on items out of
/// order. It answers with the number of items received and with the way in which the stream ended:
/// 2 in order, 3 otherwise.
fn listener(name: &str) -> Guest {
    Guest::new()
        .import("messaging", "resolve")
        .import("streams", "open")
        .global("(global $seen (mut i32) (i32.const 0))")
        .global("(global $ended (mut i32) (i32.const 0))")
        .data(name)
        .handle(&format!(
            "(if (i32.eqz (local.get $kind)) (then
               (call $resolve (i32.const 1024) (i32.const {}) (i32.const 64))
               (if (i32.load8_u (i32.const 64)) (then unreachable))
               (call $open (i64.load (i32.const 72)) (local.get $ptr) (local.get $len)
                 (i32.const 64))
               (if (i32.load8_u (i32.const 64)) (then
                 (return (call $fail (i32.const 0) (i32.const 0)))))
               (return (call $ok))))
             (if (i32.eq (local.get $kind) (i32.const 4)) (then
               (if (i32.ne (i32.load (local.get $ptr)) (global.get $seen)) (then unreachable))
               (global.set $seen (i32.add (global.get $seen) (i32.const 1)))
               (return (call $ok))))
             (if (i64.ne (local.get $token) (i64.const 0)) (then
               (global.set $ended (local.get $kind)) (return (call $ok))))
             (i32.store (i32.const 512) (global.get $seen))
             (i32.store8 (i32.const 516) (global.get $ended))
             (call $answer (i32.const 512) (i32.const 5))",
            name.len()
        ))
}

const SERVE: &str = "[grant]\nserve = true\n";
const READ: &str = "[grant]\nstream = [\"*\"]\n";
const NARROW: &str = "[limits]\nwindow = 4\n";

/// The number and the byte in such a guest's answer.
fn state(testbed: &Testbed, guest: &Started) -> (u32, u8) {
    let answer = testbed.ask(guest, "").expect("it answers");
    let (number, rest) = answer.split_first_chunk().expect("four bytes and one");
    (u32::from_le_bytes(*number), rest[0])
}

fn open(testbed: &Testbed, guest: &Started) -> Result<Reader<Payload>, CallError> {
    let asked = testbed.system.run(guest.actor.ask(OpenStream(payload(""))));
    asked.expect("it is answered")
}

/// All items that are available now, as numbers, and the end, if it has arrived.
fn read(reader: &mut Reader<Payload>, most: usize) -> (Vec<u32>, Option<Option<ReadError>>) {
    let mut items = Vec::new();
    while items.len() < most {
        match reader.try_recv() {
            Poll::Pending => break,
            Poll::Ready(None) => return (items, Some(None)),
            Poll::Ready(Some(Err(error))) => return (items, Some(Some(error))),
            Poll::Ready(Some(Ok(item))) => {
                let number = item.first_chunk().expect("four bytes");
                items.push(u32::from_le_bytes(*number));
            }
        }
    }
    (items, None)
}

#[test]
fn component_sends_within_the_reader_s_credit() {
    let testbed = Testbed::new();
    let server = testbed.start(&server(50), "server", &format!("{SERVE}{NARROW}"));
    let mut reader = open(&testbed, &server).expect("it serves");
    let mut all = Vec::new();
    loop {
        testbed.system.run_until_idle();
        let (sent, _) = state(&testbed, &server);
        assert!(sent as usize <= all.len() + 4, "{sent} after {}", all.len());
        let (items, end) = read(&mut reader, 3);
        assert!(!items.is_empty() || end.is_some(), "it goes on");
        all.extend(items);
        if let Some(end) = end {
            assert!(end.is_none(), "in order: {end:?}");
            break;
        }
    }
    assert_eq!(all, (0..50).collect::<Vec<_>>());
    assert_eq!(server.args.info().faults, 0);
}

#[test]
fn component_reads_a_stream_of_a_component() {
    for total in [0, 1, 4, 300] {
        let testbed = Testbed::new();
        testbed.start(&server(total), "server", &format!("{SERVE}{NARROW}"));
        let listener = testbed.start(&listener("server"), "listener", &format!("{READ}{NARROW}"));
        testbed.tell(&listener, "go");
        assert_eq!(state(&testbed, &listener), (total, 2));
        assert_eq!(listener.args.info().faults, 0);
    }
}

#[test]
fn server_is_notified_when_its_reader_leaves() {
    let testbed = Testbed::new();
    let server = testbed.start(&server(50), "server", &format!("{SERVE}{NARROW}"));
    let reader = open(&testbed, &server).expect("it serves");
    assert_eq!(state(&testbed, &server), (4, 0));
    drop(reader);
    testbed.system.run_until_idle();
    assert_eq!(state(&testbed, &server), (4, 1));
}

#[test]
fn fault_ends_the_streams_of_the_incarnation() {
    let testbed = Testbed::new();
    let server = testbed.start(&server(50), "server", &format!("{SERVE}{NARROW}"));
    let listener = testbed.start(&listener("server"), "listener", READ);
    let mut reader = open(&testbed, &server).expect("it serves");
    testbed.tell(&server, "trap");
    let (items, end) = read(&mut reader, 10);
    assert_eq!(items, [0, 1, 2, 3], "what was sent before");
    let ended = matches!(
        end,
        Some(Some(ReadError::Ended { .. } | ReadError::Dropped))
    );
    assert!(ended, "{end:?}");
    testbed.tell(&listener, "go");
    assert_eq!(state(&testbed, &listener), (50, 2), "the next life serves");
}

#[test]
fn number_of_streams_is_limited() {
    for (streams, second) in [(1, false), (2, true)] {
        let testbed = Testbed::new();
        let more = format!("{SERVE}{NARROW}streams = {streams}");
        let server = testbed.start(&server(50), "server", &more);
        let _first = open(&testbed, &server).expect("it serves");
        assert_eq!(open(&testbed, &server).is_ok(), second);
        assert_eq!(server.args.info().faults, 0);
    }
}

#[test]
fn streams_need_grants_to_serve_and_read() {
    let testbed = Testbed::new();
    let loaded = testbed
        .host
        .load_blocking(&server(1).encode(), manifest("server", ""));
    let denied = loaded.expect_err("it is not granted");
    assert!(matches!(denied, LoadError::Denied(_)), "{denied}");
    let server = testbed.start(&server(1), "server", "[grant]\nstream = [\"x\"]");
    let refused = open(&testbed, &server).map(drop);
    let why = "the component serves no streams".to_owned();
    assert_eq!(refused, Err(CallError::Refused(why)));
}

/// A native actor that serves the first `total` numbers; refuses if `total` is 0.
struct Feeder {
    total: u32,
    sent: u32,
    source: Option<Source<Payload>>,
}

enum FeederMsg {
    Open(Ask<OpenStream>),
    Room,
    Other,
}

impl strowger::Accepts<Ask<OpenStream>> for FeederMsg {
    fn wrap(ask: Ask<OpenStream>) -> Self {
        Self::Open(ask)
    }
}

impl strowger::Accepts<Completion<()>> for FeederMsg {
    fn wrap(_: Completion<()>) -> Self {
        Self::Room
    }
}

impl strowger::Accepts<Message> for FeederMsg {
    fn wrap(_: Message) -> Self {
        Self::Other
    }
}

impl strowger::Accepts<Ask<Call>> for FeederMsg {
    fn wrap(_: Ask<Call>) -> Self {
        Self::Other
    }
}

impl Actor for Feeder {
    type Msg = FeederMsg;
    type Args = u32;
    type Error = std::convert::Infallible;

    async fn pre_start(total: u32, _: &mut Context<Self>) -> Result<Self, Self::Error> {
        Ok(Self {
            total,
            sent: 0,
            source: None,
        })
    }

    async fn handle(
        &mut self,
        message: FeederMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), Self::Error> {
        match message {
            FeederMsg::Open(ask) if self.total == 0 => {
                ask.reply
                    .send(Err(CallError::Refused("nothing".to_owned())));
            }
            FeederMsg::Open(ask) => {
                let source = self.source.insert(cx.source(SourceSpec::DEFAULT));
                ask.reply
                    .send(Ok(source.reader().expect("it is the first")));
            }
            FeederMsg::Room | FeederMsg::Other => {}
        }
        while let Some(source) = &mut self.source {
            if self.sent == self.total {
                self.source.take().into_iter().for_each(Source::finish);
                break;
            }
            let item = self.sent.to_le_bytes().as_slice().into();
            if source.try_send(item).is_err() {
                source.notify_when_ready(cx.lane().reply(0));
                break;
            }
            self.sent += 1;
        }
        Ok(())
    }
}

#[test]
fn component_reads_a_stream_of_a_native_actor() {
    for (total, end) in [(0, 3), (1, 2), (500, 2)] {
        let testbed = Testbed::new();
        let feeder = testbed.system.spawn::<Feeder>("feeder", total);
        testbed
            .directory
            .insert("feeder", DirectoryEntry::with_streams(&feeder));
        let listener = testbed.start(&listener("feeder"), "listener", &format!("{READ}{NARROW}"));
        testbed.tell(&listener, "go");
        assert_eq!(state(&testbed, &listener), (total, end));
    }
}

#[test]
fn actor_without_streams_is_unknown_to_open() {
    let testbed = Testbed::new();
    let feeder = testbed.system.spawn::<Feeder>("feeder", 5);
    testbed.directory.insert("feeder", &feeder);
    let listener = testbed.start(&listener("feeder"), "listener", READ);
    testbed.tell(&listener, "go");
    assert_eq!(listener.args.info().refused, 1);
}
