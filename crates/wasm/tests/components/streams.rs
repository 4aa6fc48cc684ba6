//! Streams between components and native actors: order, credit, ends.

use std::task::Poll;

use strowger::{Actor, Ask, Completion, Context, ReadError, Reader, Source, SourceSpec};
use strowger_wasm::directory::Door;
use strowger_wasm::message::Open;
use strowger_wasm::{Call, CallError, LoadError, Message, Payload};

use crate::kit::{Guest, Stand, Started, manifest, octets};

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
fn state(stand: &Stand, guest: &Started) -> (u32, u8) {
    let answer = stand.ask(guest, "").expect("it answers");
    let (number, rest) = answer.split_first_chunk().expect("four octets and one");
    (u32::from_le_bytes(*number), rest[0])
}

fn open(stand: &Stand, guest: &Started) -> Result<Reader<Payload>, CallError> {
    let asked = stand.system.run(guest.actor.ask(Open(octets(""))));
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
                let number = item.first_chunk().expect("four octets");
                items.push(u32::from_le_bytes(*number));
            }
        }
    }
    (items, None)
}

#[test]
fn a_reader_s_credit_is_what_a_component_sends_within() {
    let stand = Stand::new();
    let server = stand.start(&server(50), "server", &format!("{SERVE}{NARROW}"));
    let mut reader = open(&stand, &server).expect("it serves");
    let mut all = Vec::new();
    loop {
        stand.system.run_until_idle();
        let (sent, _) = state(&stand, &server);
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
fn a_component_reads_from_a_component() {
    for total in [0, 1, 4, 300] {
        let stand = Stand::new();
        stand.start(&server(total), "server", &format!("{SERVE}{NARROW}"));
        let listener = stand.start(&listener("server"), "listener", &format!("{READ}{NARROW}"));
        stand.tell(&listener, "go");
        assert_eq!(state(&stand, &listener), (total, 2));
        assert_eq!(listener.args.info().faults, 0);
    }
}

#[test]
fn who_serves_is_told_that_its_reader_went() {
    let stand = Stand::new();
    let server = stand.start(&server(50), "server", &format!("{SERVE}{NARROW}"));
    let reader = open(&stand, &server).expect("it serves");
    assert_eq!(state(&stand, &server), (4, 0));
    drop(reader);
    stand.system.run_until_idle();
    assert_eq!(state(&stand, &server), (4, 1));
}

#[test]
fn a_fault_ends_the_streams_of_its_life() {
    let stand = Stand::new();
    let server = stand.start(&server(50), "server", &format!("{SERVE}{NARROW}"));
    let listener = stand.start(&listener("server"), "listener", READ);
    let mut reader = open(&stand, &server).expect("it serves");
    stand.tell(&server, "trap");
    let (items, end) = read(&mut reader, 10);
    assert_eq!(items, [0, 1, 2, 3], "what was sent before");
    let ended = matches!(
        end,
        Some(Some(ReadError::Ended { .. } | ReadError::Dropped))
    );
    assert!(ended, "{end:?}");
    stand.tell(&listener, "go");
    assert_eq!(state(&stand, &listener), (50, 2), "the next life serves");
}

#[test]
fn streams_end_at_their_limit() {
    for (streams, second) in [(1, false), (2, true)] {
        let stand = Stand::new();
        let more = format!("{SERVE}{NARROW}streams = {streams}");
        let server = stand.start(&server(50), "server", &more);
        let _first = open(&stand, &server).expect("it serves");
        assert_eq!(open(&stand, &server).is_ok(), second);
        assert_eq!(server.args.info().faults, 0);
    }
}

#[test]
fn what_is_not_granted_is_neither_served_nor_read() {
    let stand = Stand::new();
    let loaded = stand
        .host
        .load_blocking(&server(1).octets(), manifest("server", ""));
    let denied = loaded.expect_err("it is not granted");
    assert!(matches!(denied, LoadError::Denied(_)), "{denied}");
    let server = stand.start(&server(1), "server", "[grant]\nstream = [\"x\"]");
    let refused = open(&stand, &server).map(drop);
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
    Open(Ask<Open>),
    Room,
    Other,
}

impl strowger::Accepts<Ask<Open>> for FeederMsg {
    fn wrap(ask: Ask<Open>) -> Self {
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
fn a_component_reads_from_a_native_actor() {
    for (total, end) in [(0, 3), (1, 2), (500, 2)] {
        let stand = Stand::new();
        let feeder = stand.system.spawn::<Feeder>("feeder", total);
        stand.directory.insert("feeder", Door::streaming(&feeder));
        let listener = stand.start(&listener("feeder"), "listener", &format!("{READ}{NARROW}"));
        stand.tell(&listener, "go");
        assert_eq!(state(&stand, &listener), (total, end));
    }
}

#[test]
fn an_actor_without_streams_is_not_asked_for_one() {
    let stand = Stand::new();
    let feeder = stand.system.spawn::<Feeder>("feeder", 5);
    stand.directory.insert("feeder", &feeder);
    let listener = stand.start(&listener("feeder"), "listener", READ);
    stand.tell(&listener, "go");
    assert_eq!(listener.args.info().refused, 1);
}
