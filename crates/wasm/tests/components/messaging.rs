//! Messages between components, native actors and topics.

use std::sync::Arc;
use std::time::Duration;

use strowger::{Actor, Ask, Context};
use strowger_wasm::message::Event;
use strowger_wasm::{Answer, Call, CallError, Message, Payload};

use crate::kit::{Guest, Testbed, payload, text};

/// A native actor that answers in capitals, and records every tell.
///
/// The ask `keep` is answered at the next tell.
struct Shouter(strowger::Recipient<String>, Option<strowger::Reply<Answer>>);

enum ShouterMsg {
    Told(Message),
    Asked(Ask<Call>),
}

impl strowger::Accepts<Message> for ShouterMsg {
    fn wrap(message: Message) -> Self {
        Self::Told(message)
    }
}

impl strowger::Accepts<Ask<Call>> for ShouterMsg {
    fn wrap(ask: Ask<Call>) -> Self {
        Self::Asked(ask)
    }
}

fn shout(payload: &Payload) -> String {
    String::from_utf8_lossy(payload).to_uppercase()
}

impl Actor for Shouter {
    type Msg = ShouterMsg;
    type Args = strowger::Recipient<String>;
    type Error = std::convert::Infallible;

    async fn pre_start(
        noted: strowger::Recipient<String>,
        _: &mut Context<Self>,
    ) -> Result<Self, Self::Error> {
        Ok(Self(noted, None))
    }

    async fn handle(
        &mut self,
        message: ShouterMsg,
        _: &mut Context<Self>,
    ) -> Result<(), Self::Error> {
        match message {
            ShouterMsg::Told(message) => {
                if let Some(kept) = self.1.take() {
                    kept.send(Ok(payload("too late")));
                }
                drop(self.0.try_tell(shout(&message.0)));
            }
            ShouterMsg::Asked(ask) => {
                let answer = shout(&ask.request.0);
                if answer == "KEEP" {
                    self.1 = Some(ask.reply);
                } else if answer == "HOLD" {
                    std::mem::forget(ask.reply);
                } else {
                    ask.reply.send(Ok(payload(&answer)));
                }
            }
        }
        Ok(())
    }
}

/// A guest that resolves the name at address 1024 when it starts.
pub(crate) fn resolving(name: &str) -> Guest {
    let resolve = format!(
        "(call $resolve (i32.const 1024) (i32.const {}) (i32.const 64))
         (global.set $to (i64.load (i32.const 72)))
         (if (i32.load8_u (i32.const 64)) (then unreachable))
         (call $ok)",
        name.len()
    );
    Guest::new()
        .import("messaging", "resolve")
        .global("(global $to (mut i64) (i64.const 0))")
        .data(name)
        .init(&resolve)
}

/// A guest that forwards every message.
fn forwarder(name: &str) -> Guest {
    resolving(name).import("messaging", "send").handle(
        "(call $send (global.get $to) (local.get $ptr) (local.get $len) (i32.const 64))
         (if (i32.load8_u (i32.const 64))
           (then (return (call $fail (i32.const 65) (i32.const 1)))))
         (call $ok)",
    )
}

/// A guest that forwards each ask to another actor and returns the answer.
pub(crate) fn relay(name: &str) -> Guest {
    resolving(name).import("rpc", "request").handle(
        "(call $request (global.get $to) (local.get $ptr) (local.get $len) (i32.const 64))
         (if (i32.load8_u (i32.const 64))
           (then
             (i32.store8 (i32.const 68) (i32.add (i32.const 48) (i32.load8_u (i32.const 68))))
             (return (call $fail (i32.const 68) (i32.const 1)))))
         (call $answer (i32.load (i32.const 68)) (i32.load (i32.const 72)))",
    )
}

fn shouter(testbed: &Testbed) -> strowger::testing::Probe<String> {
    let noted = testbed.system.probe::<String>();
    let shouter = testbed
        .system
        .spawn::<Shouter>("shouter", noted.recipient());
    testbed.directory.insert("shouter", &shouter);
    noted
}

const SEND: &str = "[grant]\nsend = [\"*\"]";
pub(crate) const REQUEST: &str = "[grant]\nrequest = [\"*\"]";

#[test]
fn message_passes_through_components_to_a_native_actor() {
    let testbed = Testbed::new();
    let noted = shouter(&testbed);
    testbed.start(&forwarder("shouter"), "second", SEND);
    let first = testbed.start(&forwarder("second"), "first", SEND);
    testbed.tell(&first, "hello");
    assert_eq!(noted.try_next().as_deref(), Some("HELLO"));
}

#[test]
fn request_passes_through_components_and_back() {
    let testbed = Testbed::new();
    let _noted = shouter(&testbed);
    testbed.start(&relay("shouter"), "second", REQUEST);
    let first = testbed.start(&relay("second"), "first", REQUEST);
    assert_eq!(text(testbed.ask(&first, "hello")), "HELLO");
}

fn refusal(answer: Answer) -> String {
    match answer {
        Err(CallError::Refused(text)) => text,
        other => panic!("it was not refused: {other:?}"),
    }
}

#[test]
fn request_cycle_is_refused() {
    let testbed = Testbed::new();
    let guest = Guest::new()
        .import("messaging", "resolve")
        .import("rpc", "request")
        .data("itself")
        .handle(
            "(call $resolve (i32.const 1024) (i32.const 6) (i32.const 64))
             (call $request (i64.load (i32.const 72)) (local.get $ptr) (local.get $len)
               (i32.const 128))
             (i32.store8 (i32.const 132) (i32.add (i32.const 48) (i32.load8_u (i32.const 132))))
             (call $fail (i32.const 132) (i32.load8_u (i32.const 128)))",
        );
    let itself = testbed.start(&guest, "itself", REQUEST);
    assert_eq!(refusal(testbed.ask(&itself, "a")), "8", "ring");
    assert_eq!(itself.args.info().faults, 0);
}

#[test]
fn unanswered_request_times_out() {
    let testbed = Testbed::new();
    let _noted = shouter(&testbed);
    let more = format!("{REQUEST}\n[limits]\nanswer = \"2s\"");
    let first = testbed.start(&relay("shouter"), "first", &more);
    let asked = testbed.system.run(first.actor.ask(Call(payload("hold"))));
    assert_eq!(refusal(asked.expect("it is answered")), "6", "late");
    assert_eq!(text(testbed.ask(&first, "a")), "A");
    assert_eq!(first.args.info().faults, 0);
}

#[test]
fn actor_without_grant_is_not_resolved() {
    let testbed = Testbed::new();
    let _noted = shouter(&testbed);
    let more = "[grant]\nsend = [\"others\"]\n[restart]\nintensity = 0";
    let image = testbed.image(&forwarder("shouter"), "first", more);
    let args = testbed
        .host
        .component(image, &testbed.directory)
        .expect("there is room");
    let top = strowger::Supervisor::new(strowger::Strategy::OneForOne);
    let top = testbed.system.supervise("top", top);
    assert!(testbed.system.run(top.start_child(args.child())).is_err());
    assert_eq!(
        args.info().fault.map(|fault| fault.kind.name()),
        Some("panic")
    );
}

#[test]
fn send_grant_does_not_allow_requests() {
    let testbed = Testbed::new();
    let _noted = shouter(&testbed);
    let more = "[grant]\nsend = [\"shouter\"]\nrequest = [\"others\"]";
    let first = testbed.start(&relay("shouter"), "first", more);
    assert_eq!(refusal(testbed.ask(&first, "x")), "0", "denied");
}

#[test]
fn forged_handle_is_unknown() {
    let testbed = Testbed::new();
    let noted = shouter(&testbed);
    let guest = forwarder("shouter").handle(
        "(call $send (i64.add (global.get $to) (i64.const 1)) (local.get $ptr) (local.get $len)
           (i32.const 64))
         (i32.store8 (i32.const 65) (i32.add (i32.const 48) (i32.load8_u (i32.const 65))))
         (call $fail (i32.const 65) (i32.const 1))",
    );
    let forger = testbed.start(&guest, "forger", SEND);
    assert_eq!(refusal(testbed.ask(&forger, "x")), "1", "unknown");
    assert_eq!(noted.try_next(), None);
}

#[test]
fn handle_released_twice_is_unknown() {
    let testbed = Testbed::new();
    let _noted = shouter(&testbed);
    let guest = resolving("shouter").import("messaging", "release").handle(
        "(call $release (global.get $to) (i32.const 64))
         (call $release (global.get $to) (i32.const 80))
         (i32.store8 (i32.const 65) (i32.add (i32.const 48) (i32.load8_u (i32.const 64))))
         (i32.store8 (i32.const 66) (i32.add (i32.const 48) (i32.load8_u (i32.const 81))))
         (call $answer (i32.const 65) (i32.const 2))",
    );
    let guest = testbed.start(&guest, "guest", SEND);
    assert_eq!(text(testbed.ask(&guest, "x")), "01", "done, then unknown");
}

/// A guest that repeats a call until it is refused, or 100 times, and answers with the number of
/// calls.
fn until_refused(guest: Guest, call: &str) -> Guest {
    guest.handle(&format!(
        "(local $n i32)
         (block $done (loop $again
           (br_if $done (i32.eq (local.get $n) (i32.const 100)))
           {call}
           (br_if $done (i32.load8_u (i32.const 64)))
           (local.set $n (i32.add (local.get $n) (i32.const 1)))
           (br $again)))
         (i32.store8 (i32.const 512) (local.get $n))
         (call $answer (i32.const 512) (i32.const 1))"
    ))
}

fn times(guest: &Guest, more: &str) -> u8 {
    let testbed = Testbed::new();
    let _noted = shouter(&testbed);
    let guest = testbed.start(guest, "guest", &format!("{SEND}\ntimer = true\n{more}"));
    let times = testbed.ask(&guest, "x").expect("it answers")[0];
    assert_eq!(guest.args.info().faults, 0, "a refusal is no fault");
    times
}

#[test]
fn number_of_handles_is_limited() {
    let leak = until_refused(
        resolving("shouter"),
        "(call $resolve (i32.const 1024) (i32.const 7) (i32.const 64))",
    );
    assert_eq!(
        times(&leak, "[limits]\nhandles = 8"),
        7,
        "one was taken at the start"
    );
    assert_eq!(times(&leak, "[limits]\nhandles = 1000"), 100);
}

#[test]
fn flood_of_messages_is_rate_limited() {
    let flood = until_refused(
        resolving("shouter").import("messaging", "send"),
        "(call $send (global.get $to) (i32.const 0) (i32.const 1) (i32.const 64))",
    );
    assert_eq!(times(&flood, "[limits]\nsend_rate = 10"), 10);
    assert_eq!(times(&flood, "[limits]\nsend_rate = 1000"), 100);
}

#[test]
fn asks_and_timers_in_flight_are_limited() {
    let asks = until_refused(
        resolving("shouter").import("messaging", "ask"),
        "(call $ask (global.get $to) (i32.const 0) (i32.const 1) (i32.const 64))",
    );
    let timers = until_refused(
        resolving("shouter").import("messaging", "after"),
        "(call $after (i64.const 1000) (i32.const 0) (i32.const 1) (i32.const 64))",
    );
    for guest in [asks, timers] {
        assert_eq!(times(&guest, "[limits]\nin_flight = 5"), 5);
        assert_eq!(times(&guest, "[limits]\nin_flight = 1000"), 100);
    }
}

/// A guest that forwards everything except plain messages: the kind as a digit, and the payload.
fn reporter(first: &str) -> Guest {
    resolving("shouter")
        .import("messaging", "send")
        .handle(&format!(
            "(if (i32.eqz (local.get $kind)) (then {first} (return (call $ok))))
         (local.set $ptr (i32.sub (local.get $ptr) (i32.const 1)))
         (i32.store8 (local.get $ptr) (i32.add (i32.const 48) (local.get $kind)))
         (call $send (global.get $to) (local.get $ptr)
           (i32.add (local.get $len) (i32.const 1)) (i32.const 64))
         (call $ok)"
        ))
}

#[test]
fn answer_to_an_ask_arrives_as_a_message() {
    let testbed = Testbed::new();
    let noted = shouter(&testbed);
    let guest =
        reporter("(call $ask (global.get $to) (local.get $ptr) (local.get $len) (i32.const 64))");
    let guest = testbed.start(&guest.import("messaging", "ask"), "guest", SEND);
    testbed.tell(&guest, "hello");
    assert_eq!(noted.try_next().as_deref(), Some("2HELLO"));
    testbed.tell(&guest, "hold");
    assert_eq!(noted.try_next(), None);
    testbed.system.advance(Duration::from_secs(6));
    assert_eq!(
        noted.try_next().as_deref(),
        Some("3NO REPLY WITHIN THE DEADLINE")
    );
}

#[test]
fn timer_fires_when_due() {
    let testbed = Testbed::new();
    let noted = shouter(&testbed);
    let guest =
        reporter("(call $after (i64.const 500) (local.get $ptr) (local.get $len) (i32.const 64))");
    let more = format!("{SEND}\ntimer = true");
    let guest = testbed.start(&guest.import("messaging", "after"), "guest", &more);
    testbed.tell(&guest, "tick");
    testbed.system.advance(Duration::from_millis(499));
    assert_eq!(noted.try_next(), None);
    testbed.system.advance(Duration::from_millis(1));
    assert_eq!(noted.try_next().as_deref(), Some("5TICK"));
}

/// A reporter that subscribes to `orders/**` when it starts.
fn subscriber() -> Guest {
    reporter("")
        .import("messaging", "subscribe")
        .init(
            "(call $resolve (i32.const 1024) (i32.const 7) (i32.const 64))
         (global.set $to (i64.load (i32.const 72)))
         (call $subscribe (i32.const 1031) (i32.const 9) (i32.const 64))
         (if (i32.load8_u (i32.const 64)) (then unreachable))
         (call $ok)",
        )
        .data("shouterorders/**")
}

const SUBSCRIBE: &str = "[grant]\nsend = [\"shouter\"]\nsubscribe = [\"orders/*\"]";

fn publish(testbed: &Testbed, name: &str, text: &str) -> usize {
    let topic = testbed
        .system
        .system()
        .topic::<Event>(name)
        .expect("it is a name");
    let published = topic.publish(Event {
        topic: Arc::from(name),
        payload: payload(text),
    });
    testbed.system.run_until_idle();
    published.delivered
}

#[test]
fn published_event_is_delivered() {
    let testbed = Testbed::new();
    let noted = shouter(&testbed);
    testbed.start(&subscriber(), "one", SUBSCRIBE);
    testbed.start(&subscriber(), "two", SUBSCRIBE);
    let publisher = Guest::new()
        .import("messaging", "topic")
        .import("messaging", "publish")
        .data("orders/new")
        .handle(
            "(call $topic (i32.const 1024) (i32.const 10) (i32.const 64))
             (call $publish (i64.load (i32.const 72)) (local.get $ptr) (local.get $len)
               (i32.const 64))
             (i32.store8 (i32.const 512) (i32.load (i32.const 68)))
             (call $answer (i32.const 512) (i32.const 1))",
        );
    let publisher = testbed.start(
        &publisher,
        "publisher",
        "[grant]\npublish = [\"orders/new\"]",
    );
    let reached = testbed.ask(&publisher, "tea").expect("it answers");
    assert_eq!(*reached, [2]);
    testbed.system.run_until_idle();
    assert_eq!(noted.drain(), ["4TEA", "4TEA"]);
}

#[test]
fn subscription_ends_with_its_incarnation() {
    let testbed = Testbed::new();
    let noted = shouter(&testbed);
    let guest = subscriber();
    let one = testbed.start(&guest, "one", SUBSCRIBE);
    assert_eq!(publish(&testbed, "orders/new", "tea"), 1);
    assert_eq!(noted.drain(), ["4TEA"]);
    let upgrade = strowger_wasm::message::Upgrade::to(testbed.image(&guest, "one", SUBSCRIBE));
    let upgraded = testbed
        .system
        .run(one.actor.ask(upgrade))
        .expect("it is answered");
    assert_eq!(upgraded, Ok(()));
    assert_eq!(publish(&testbed, "orders/new", "tea"), 1);
    assert_eq!(noted.drain(), ["4TEA"]);
    let silent =
        strowger_wasm::message::Upgrade::to(testbed.image(&Guest::new(), "one", SUBSCRIBE));
    let upgraded = testbed
        .system
        .run(one.actor.ask(silent))
        .expect("it is answered");
    assert_eq!(upgraded, Ok(()));
    assert_eq!(publish(&testbed, "orders/new", "tea"), 0);
}

#[test]
fn failed_upgrade_keeps_the_old_subscriptions() {
    let testbed = Testbed::new();
    let noted = shouter(&testbed);
    let one = testbed.start(&subscriber(), "one", SUBSCRIBE);
    let ill = subscriber().health("(call $fail (i32.const 0) (i32.const 0))");
    let upgrade = strowger_wasm::message::Upgrade::to(testbed.image(&ill, "one", SUBSCRIBE));
    let upgraded = testbed
        .system
        .run(one.actor.ask(upgrade))
        .expect("it is answered");
    assert!(upgraded.is_err());
    assert_eq!(publish(&testbed, "orders/new", "tea"), 1);
    assert_eq!(noted.drain(), ["4TEA"]);
}

#[test]
fn subscription_wider_than_the_grant_is_refused() {
    let testbed = Testbed::new();
    let _noted = shouter(&testbed);
    let more = "[grant]\nsend = [\"shouter\"]\nsubscribe = [\"orders/new\"]\n\
                [restart]\nintensity = 0";
    let image = testbed.image(&subscriber(), "one", more);
    let args = testbed
        .host
        .component(image, &testbed.directory)
        .expect("there is room");
    let top = strowger::Supervisor::new(strowger::Strategy::OneForOne);
    let top = testbed.system.supervise("top", top);
    assert!(testbed.system.run(top.start_child(args.child())).is_err());
}

#[test]
fn messages_without_reply_arrive_in_batches() {
    let testbed = Testbed::new();
    let guest = Guest::new()
        .global("(global $largest (mut i32) (i32.const 0))")
        .batch(
            "(if (i32.gt_u (local.get $count) (global.get $largest))
               (then (global.set $largest (local.get $count))))
             (call $ok)",
        )
        .handle(
            "(i32.store8 (i32.const 512) (global.get $largest))
             (call $answer (i32.const 512) (i32.const 1))",
        );
    let guest = testbed.start(&guest, "guest", "[run]\nbatch = 4");
    for _ in 0..10 {
        guest
            .actor
            .try_tell(Message(payload("x")))
            .expect("there is room");
    }
    let largest = testbed.ask(&guest, "x").expect("it answers");
    assert_eq!(*largest, [4]);
    assert_eq!(
        guest.args.info().calls,
        11,
        "all of them, before the question"
    );
}

#[test]
fn request_to_an_ended_actor_is_refused() {
    let testbed = Testbed::new();
    let _noted = shouter(&testbed);
    let relay = testbed.start(&relay("shouter"), "relay", REQUEST);
    assert_eq!(text(testbed.ask(&relay, "hello")), "HELLO");
    let shouter = testbed.system.system().find("/shouter").expect("it lives");
    shouter.stop();
    testbed.system.run_until_idle();
    assert_eq!(refusal(testbed.ask(&relay, "hello")), "3", "closed");
    assert_eq!(relay.args.info().faults, 0);
}

#[test]
fn answer_after_the_deadline_is_not_delivered() {
    let testbed = Testbed::new();
    let noted = shouter(&testbed);
    let guest =
        reporter("(call $ask (global.get $to) (local.get $ptr) (local.get $len) (i32.const 64))");
    let guest = testbed.start(&guest.import("messaging", "ask"), "guest", SEND);
    testbed.tell(&guest, "keep");
    testbed.system.advance(Duration::from_secs(6));
    let late = "3NO REPLY WITHIN THE DEADLINE";
    // The guest's report about it makes the shouter answer.
    assert_eq!(noted.drain(), [late]);
    testbed.system.run_until_idle();
    assert_eq!(noted.drain(), [""; 0]);
    assert_eq!(
        guest.args.info().calls,
        2,
        "the message, and that there is no answer"
    );
}
