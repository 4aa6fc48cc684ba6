//! Messages between components, native actors and topics.

use std::sync::Arc;
use std::time::Duration;

use strowger::{Actor, Ask, Context};
use strowger_wasm::message::Event;
use strowger_wasm::{Answer, Call, CallError, Message, Payload};

use crate::kit::{Guest, Stand, octets, text};

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
                    kept.send(Ok(octets("too late")));
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
                    ask.reply.send(Ok(octets(&answer)));
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
fn relay(name: &str) -> Guest {
    resolving(name).import("rpc", "request").handle(
        "(call $request (global.get $to) (local.get $ptr) (local.get $len) (i32.const 64))
         (if (i32.load8_u (i32.const 64))
           (then
             (i32.store8 (i32.const 68) (i32.add (i32.const 48) (i32.load8_u (i32.const 68))))
             (return (call $fail (i32.const 68) (i32.const 1)))))
         (call $answer (i32.load (i32.const 68)) (i32.load (i32.const 72)))",
    )
}

fn shouter(stand: &Stand) -> strowger::testing::Probe<String> {
    let noted = stand.system.probe::<String>();
    let shouter = stand.system.spawn::<Shouter>("shouter", noted.recipient());
    stand.directory.insert("shouter", &shouter);
    noted
}

const SEND: &str = "[grant]\nsend = [\"*\"]";
pub(crate) const REQUEST: &str = "[grant]\nrequest = [\"*\"]";

#[test]
fn a_component_tells_a_component_that_tells_a_native_actor() {
    let stand = Stand::new();
    let noted = shouter(&stand);
    stand.start(&forwarder("shouter"), "second", SEND);
    let first = stand.start(&forwarder("second"), "first", SEND);
    stand.tell(&first, "hello");
    assert_eq!(noted.try_next().as_deref(), Some("HELLO"));
}

#[test]
fn a_request_goes_through_components_to_a_native_actor_and_back() {
    let stand = Stand::new();
    let _noted = shouter(&stand);
    stand.start(&relay("shouter"), "second", REQUEST);
    let first = stand.start(&relay("second"), "first", REQUEST);
    assert_eq!(text(stand.ask(&first, "hello")), "HELLO");
}

fn refusal(answer: Answer) -> String {
    match answer {
        Err(CallError::Refused(text)) => text,
        other => panic!("it was not refused: {other:?}"),
    }
}

#[test]
fn a_ring_of_requests_is_refused() {
    let stand = Stand::new();
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
    let itself = stand.start(&guest, "itself", REQUEST);
    assert_eq!(refusal(stand.ask(&itself, "a")), "8", "ring");
    assert_eq!(itself.args.info().faults, 0);
}

#[test]
fn a_request_without_an_answer_is_late_and_the_component_goes_on() {
    let stand = Stand::new();
    let _noted = shouter(&stand);
    let more = format!("{REQUEST}\n[limits]\nanswer = \"2s\"");
    let first = stand.start(&relay("shouter"), "first", &more);
    let asked = stand.system.run(first.actor.ask(Call(octets("hold"))));
    assert_eq!(refusal(asked.expect("it is answered")), "6", "late");
    assert_eq!(text(stand.ask(&first, "a")), "A");
    assert_eq!(first.args.info().faults, 0);
}

#[test]
fn who_is_not_granted_is_not_resolved() {
    let stand = Stand::new();
    let _noted = shouter(&stand);
    let more = "[grant]\nsend = [\"others\"]\n[restart]\nintensity = 0";
    let image = stand.image(&forwarder("shouter"), "first", more);
    let args = stand
        .host
        .component(image, &stand.directory)
        .expect("there is room");
    let top = strowger::Supervisor::new(strowger::Strategy::OneForOne);
    let top = stand.system.supervise("top", top);
    assert!(stand.system.run(top.start_child(args.child())).is_err());
    assert_eq!(
        args.info().fault.map(|fault| fault.kind.word()),
        Some("panic")
    );
}

#[test]
fn a_grant_to_send_is_none_to_request() {
    let stand = Stand::new();
    let _noted = shouter(&stand);
    let more = "[grant]\nsend = [\"shouter\"]\nrequest = [\"others\"]";
    let first = stand.start(&relay("shouter"), "first", more);
    assert_eq!(refusal(stand.ask(&first, "x")), "0", "denied");
}

#[test]
fn a_forged_handle_reaches_nobody() {
    let stand = Stand::new();
    let noted = shouter(&stand);
    let guest = forwarder("shouter").handle(
        "(call $send (i64.add (global.get $to) (i64.const 1)) (local.get $ptr) (local.get $len)
           (i32.const 64))
         (i32.store8 (i32.const 65) (i32.add (i32.const 48) (i32.load8_u (i32.const 65))))
         (call $fail (i32.const 65) (i32.const 1))",
    );
    let forger = stand.start(&guest, "forger", SEND);
    assert_eq!(refusal(stand.ask(&forger, "x")), "1", "unknown");
    assert_eq!(noted.try_next(), None);
}

#[test]
fn a_handle_that_was_released_twice_is_unknown() {
    let stand = Stand::new();
    let _noted = shouter(&stand);
    let guest = resolving("shouter").import("messaging", "release").handle(
        "(call $release (global.get $to) (i32.const 64))
         (call $release (global.get $to) (i32.const 80))
         (i32.store8 (i32.const 65) (i32.add (i32.const 48) (i32.load8_u (i32.const 64))))
         (i32.store8 (i32.const 66) (i32.add (i32.const 48) (i32.load8_u (i32.const 81))))
         (call $answer (i32.const 65) (i32.const 2))",
    );
    let guest = stand.start(&guest, "guest", SEND);
    assert_eq!(text(stand.ask(&guest, "x")), "01", "done, then unknown");
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
    let stand = Stand::new();
    let _noted = shouter(&stand);
    let guest = stand.start(guest, "guest", &format!("{SEND}\ntimer = true\n{more}"));
    let times = stand.ask(&guest, "x").expect("it answers")[0];
    assert_eq!(guest.args.info().faults, 0, "a refusal is no fault");
    times
}

#[test]
fn handles_end_at_their_limit() {
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
fn a_flood_of_messages_ends_at_its_rate() {
    let flood = until_refused(
        resolving("shouter").import("messaging", "send"),
        "(call $send (global.get $to) (i32.const 0) (i32.const 1) (i32.const 64))",
    );
    assert_eq!(times(&flood, "[limits]\nsend_rate = 10"), 10);
    assert_eq!(times(&flood, "[limits]\nsend_rate = 1000"), 100);
}

#[test]
fn asks_and_timers_under_way_end_at_their_limit() {
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
fn the_answer_to_an_ask_comes_as_a_message() {
    let stand = Stand::new();
    let noted = shouter(&stand);
    let guest =
        reporter("(call $ask (global.get $to) (local.get $ptr) (local.get $len) (i32.const 64))");
    let guest = stand.start(&guest.import("messaging", "ask"), "guest", SEND);
    stand.tell(&guest, "hello");
    assert_eq!(noted.try_next().as_deref(), Some("2HELLO"));
    stand.tell(&guest, "hold");
    assert_eq!(noted.try_next(), None);
    stand.system.advance(Duration::from_secs(6));
    assert_eq!(
        noted.try_next().as_deref(),
        Some("3NO REPLY WITHIN THE DEADLINE")
    );
}

#[test]
fn a_timer_comes_when_it_is_due() {
    let stand = Stand::new();
    let noted = shouter(&stand);
    let guest =
        reporter("(call $after (i64.const 500) (local.get $ptr) (local.get $len) (i32.const 64))");
    let more = format!("{SEND}\ntimer = true");
    let guest = stand.start(&guest.import("messaging", "after"), "guest", &more);
    stand.tell(&guest, "tick");
    stand.system.advance(Duration::from_millis(499));
    assert_eq!(noted.try_next(), None);
    stand.system.advance(Duration::from_millis(1));
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

fn publish(stand: &Stand, name: &str, payload: &str) -> usize {
    let topic = stand
        .system
        .system()
        .topic::<Event>(name)
        .expect("it is a name");
    let published = topic.publish(Event {
        topic: Arc::from(name),
        payload: octets(payload),
    });
    stand.system.run_until_idle();
    published.delivered
}

#[test]
fn a_component_publishes_and_others_get_it() {
    let stand = Stand::new();
    let noted = shouter(&stand);
    stand.start(&subscriber(), "one", SUBSCRIBE);
    stand.start(&subscriber(), "two", SUBSCRIBE);
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
    let publisher = stand.start(
        &publisher,
        "publisher",
        "[grant]\npublish = [\"orders/new\"]",
    );
    let reached = stand.ask(&publisher, "tea").expect("it answers");
    assert_eq!(*reached, [2]);
    stand.system.run_until_idle();
    assert_eq!(noted.drain(), ["4TEA", "4TEA"]);
}

#[test]
fn a_subscription_is_that_of_one_life() {
    let stand = Stand::new();
    let noted = shouter(&stand);
    let guest = subscriber();
    let one = stand.start(&guest, "one", SUBSCRIBE);
    assert_eq!(publish(&stand, "orders/new", "tea"), 1);
    assert_eq!(noted.drain(), ["4TEA"]);
    let upgrade = strowger_wasm::message::Upgrade::to(stand.image(&guest, "one", SUBSCRIBE));
    let upgraded = stand
        .system
        .run(one.actor.ask(upgrade))
        .expect("it is answered");
    assert_eq!(upgraded, Ok(()));
    assert_eq!(publish(&stand, "orders/new", "tea"), 1);
    assert_eq!(noted.drain(), ["4TEA"]);
    let silent = strowger_wasm::message::Upgrade::to(stand.image(&Guest::new(), "one", SUBSCRIBE));
    let upgraded = stand
        .system
        .run(one.actor.ask(silent))
        .expect("it is answered");
    assert_eq!(upgraded, Ok(()));
    assert_eq!(publish(&stand, "orders/new", "tea"), 0);
}

#[test]
fn an_upgrade_that_fails_leaves_the_subscriptions_of_the_old_version() {
    let stand = Stand::new();
    let noted = shouter(&stand);
    let one = stand.start(&subscriber(), "one", SUBSCRIBE);
    let ill = subscriber().health("(call $fail (i32.const 0) (i32.const 0))");
    let upgrade = strowger_wasm::message::Upgrade::to(stand.image(&ill, "one", SUBSCRIBE));
    let upgraded = stand
        .system
        .run(one.actor.ask(upgrade))
        .expect("it is answered");
    assert!(upgraded.is_err());
    assert_eq!(publish(&stand, "orders/new", "tea"), 1);
    assert_eq!(noted.drain(), ["4TEA"]);
}

#[test]
fn a_wider_subscription_than_was_granted_is_refused() {
    let stand = Stand::new();
    let _noted = shouter(&stand);
    let more = "[grant]\nsend = [\"shouter\"]\nsubscribe = [\"orders/new\"]\n\
                [restart]\nintensity = 0";
    let image = stand.image(&subscriber(), "one", more);
    let args = stand
        .host
        .component(image, &stand.directory)
        .expect("there is room");
    let top = strowger::Supervisor::new(strowger::Strategy::OneForOne);
    let top = stand.system.supervise("top", top);
    assert!(stand.system.run(top.start_child(args.child())).is_err());
}

#[test]
fn what_nobody_waits_for_comes_in_batches() {
    let stand = Stand::new();
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
    let guest = stand.start(&guest, "guest", "[run]\nbatch = 4");
    for _ in 0..10 {
        guest
            .actor
            .try_tell(Message(octets("x")))
            .expect("there is room");
    }
    let largest = stand.ask(&guest, "x").expect("it answers");
    assert_eq!(*largest, [4]);
    assert_eq!(
        guest.args.info().calls,
        11,
        "all of them, before the question"
    );
}

#[test]
fn a_request_to_an_actor_that_ended_is_refused() {
    let stand = Stand::new();
    let _noted = shouter(&stand);
    let relay = stand.start(&relay("shouter"), "relay", REQUEST);
    assert_eq!(text(stand.ask(&relay, "hello")), "HELLO");
    let shouter = stand.system.system().find("/shouter").expect("it lives");
    shouter.stop();
    stand.system.run_until_idle();
    assert_eq!(refusal(stand.ask(&relay, "hello")), "3", "closed");
    assert_eq!(relay.args.info().faults, 0);
}

#[test]
fn an_answer_after_the_deadline_is_not_delivered() {
    let stand = Stand::new();
    let noted = shouter(&stand);
    let guest =
        reporter("(call $ask (global.get $to) (local.get $ptr) (local.get $len) (i32.const 64))");
    let guest = stand.start(&guest.import("messaging", "ask"), "guest", SEND);
    stand.tell(&guest, "keep");
    stand.system.advance(Duration::from_secs(6));
    let late = "3NO REPLY WITHIN THE DEADLINE";
    // The guest's report about it makes the shouter answer.
    assert_eq!(noted.drain(), [late]);
    stand.system.run_until_idle();
    assert_eq!(noted.drain(), [""; 0]);
    assert_eq!(
        guest.args.info().calls,
        2,
        "the message, and that there is no answer"
    );
}
