//! Endpoints: actors that are called by address, name and bytes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as Task, Poll, Waker};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use strowger::testing::TestSystem;
use strowger::{
    ActorRef, ActorSystem, Address, Ask, BoxError, CallReply, CallSink, ChildSpec, Context,
    Delivery, DeliveryHandle, Export, ExportError, Fault, FaultCode, FindActor, KeyedActors,
    MailboxSpec, MessagePattern, Overflow, Payload, PayloadStream, Reader, RemoteEntry, Reply,
    Request, Restart, Source, SourceSpec, Strategy, Supervisor, handlers,
};

#[derive(Deserialize)]
struct Add(u64);
impl Request for Add {
    type Reply = u64;
}

#[derive(Deserialize)]
struct Hold;
impl Request for Hold {
    type Reply = ();
}

#[derive(Deserialize)]
struct Note(String);

#[derive(Deserialize)]
struct Notes;
impl Request for Notes {
    type Reply = Vec<String>;
}

#[derive(Deserialize)]
struct Numbers {
    to: u64,
}
impl Request for Numbers {
    type Reply = Reader<u64>;
}

/// A request whose reply cannot be serialized.
#[derive(Deserialize)]
struct Unwritable;
impl Request for Unwritable {
    type Reply = Vec<(f64, f64)>;
}

#[derive(Deserialize)]
struct Crash;
impl Request for Crash {
    type Reply = ();
}

/// Asks for the number of held replies that are still awaited.
#[derive(Deserialize)]
struct Wanted;
impl Request for Wanted {
    type Reply = usize;
}

#[derive(Default)]
struct Clerk {
    sum: u64,
    notes: Vec<String>,
    held: Vec<Reply<()>>,
    source: Option<Source<u64>>,
}

#[handlers]
impl strowger::Actor for Clerk {
    type Args = ();
    type Error = BoxError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(2);

    async fn pre_start((): (), cx: &mut Context<Self>) -> Result<Self, BoxError> {
        cx.system().export(&cx.actor_ref(), door())?;
        Ok(Self::default())
    }

    async fn add(&mut self, Add(more): Add) -> u64 {
        self.sum += more;
        self.sum
    }

    async fn hold(&mut self, ask: Ask<Hold>) {
        self.held.push(ask.reply);
    }

    async fn settle_budget(&mut self, Note(note): Note) {
        self.notes.push(note);
    }

    async fn notes(&mut self, _: Notes) -> Vec<String> {
        self.notes.clone()
    }

    async fn numbers(&mut self, ask: Ask<Numbers>, cx: &mut Context<Self>) -> Result<(), BoxError> {
        let mut source = cx.source(SourceSpec::DEFAULT);
        ask.reply.send(source.reader()?);
        for number in 0..ask.request.to {
            source.try_send(number).map_err(|error| error.to_string())?;
        }
        match ask.request.to {
            0 => self.source = Some(source),
            _ => source.finish(),
        }
        Ok(())
    }

    async fn unwritable(&mut self, _: Unwritable) -> Vec<(f64, f64)> {
        Vec::new()
    }

    async fn wanted(&mut self, _: Wanted) -> usize {
        self.held.iter().filter(|reply| reply.is_waiting()).count()
    }

    async fn crash(&mut self, ask: Ask<Crash>) {
        let _reply = ask.reply;
        std::panic::resume_unwind(Box::new("told to"));
    }
}

fn door() -> Export<ClerkMessage> {
    Export::new()
        .ask::<Add>("add")
        .ask::<Hold>("hold")
        .tell::<Note>("note")
        .ask::<Notes>("notes")
        .stream::<Numbers, u64>("numbers")
        .ask_with("unwritable", Payload::decode::<Unwritable>, |_| {
            std::panic::resume_unwind(Box::new("cannot be written"))
        })
        .ask::<Crash>("crash")
        .ask::<Wanted>("wanted")
}

/// A caller outside the system that collects the replies.
#[derive(Default)]
struct Outside {
    answers: Mutex<Vec<(u64, Result<CallReply, Fault>)>>,
    gave_up: Mutex<Vec<u64>>,
}

impl CallSink for Outside {
    fn answer(&self, call: u64, result: Result<CallReply, Fault>) {
        self.answers
            .lock()
            .expect("not poisoned")
            .push((call, result));
    }

    fn is_waiting(&self, call: u64) -> bool {
        !self.gave_up.lock().expect("not poisoned").contains(&call)
    }
}

impl Outside {
    fn take(&self) -> Vec<(u64, Result<CallReply, Fault>)> {
        std::mem::take(&mut *self.answers.lock().expect("not poisoned"))
    }

    fn one(&self) -> Result<CallReply, Fault> {
        let mut answers = self.take();
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.remove(0).1
    }
}

struct Office {
    system: TestSystem,
    clerk: ActorRef<ClerkMessage>,
    outside: Arc<Outside>,
}

fn office() -> Office {
    let system = TestSystem::new(7);
    let clerk = system.spawn::<Clerk>("clerk", ());
    system.run_until_idle();
    Office {
        system,
        clerk,
        outside: Arc::default(),
    }
}

fn address() -> Address {
    "@(clerk)".parse().expect("an address")
}

impl Office {
    fn entry(&self, name: &str) -> RemoteEntry {
        self.system
            .system()
            .remote_entry(&address(), name)
            .expect(name)
    }

    fn put(&self, call: u64, name: &str, payload: &Payload) -> Delivery {
        let outside = Arc::clone(&self.outside);
        self.entry(name).call(payload, call, outside)
    }

    /// Asks, runs the system until it is idle, and returns the reply.
    fn ask(&self, name: &str, payload: &Value) -> Result<Value, Fault> {
        let payload = Payload::from_json(payload)?;
        in_its_mailbox(self.put(1, name, &payload))?;
        self.system.run_until_idle();
        match self.outside.one()? {
            CallReply::Single(payload) => payload.decode(),
            other => panic!("{other:?}"),
        }
    }

    fn tell(&self, name: &str, payload: &Value) -> Result<(), Fault> {
        let payload = Payload::from_json(payload)?;
        let told = in_its_mailbox(self.entry(name).tell(&payload));
        self.system.run_until_idle();
        told.map(drop)
    }
}

fn in_its_mailbox(put: Delivery) -> Result<DeliveryHandle, Fault> {
    match put {
        Delivery::Settled(done) => done,
        Delivery::Queued(_) => panic!("there is room"),
    }
}

fn next(items: &mut PayloadStream) -> Poll<Option<Result<u64, Fault>>> {
    let item = items.poll_next(&mut Task::from_waker(Waker::noop()));
    item.map(|item| item.map(|item| item.and_then(|item| item.decode())))
}

#[test]
fn call_decodes_the_message_and_encodes_the_reply() {
    let office = office();
    assert_eq!(office.ask("add", &json!(3)), Ok(json!(3)));
    assert_eq!(office.ask("add", &json!(4)), Ok(json!(7)));
    office.tell("note", &json!("first")).expect("there is room");
    office
        .tell("add", &json!(1))
        .expect("what is asked may be told");
    assert_eq!(office.ask("notes", &Value::Null), Ok(json!(["first"])));
    assert_eq!(office.ask("add", &json!(0)), Ok(json!(8)));
}

#[test]
fn text_decodes_as_string_and_empty_as_null() {
    let office = office();
    let text = Payload::new(strowger::ContentType::Text, "as it is");
    in_its_mailbox(office.entry("note").tell(&text)).expect("there is room");
    in_its_mailbox(office.put(1, "notes", &Payload::EMPTY)).expect("there is room");
    office.system.run_until_idle();
    let Ok(CallReply::Single(notes)) = office.outside.one() else {
        panic!("it answers");
    };
    assert_eq!(notes.decode::<Vec<String>>().expect("a list"), ["as it is"]);
}

#[test]
fn unknown_target_or_message_is_rejected() {
    let system = TestSystem::new(7);
    let _clerk = system.spawn::<Clerk>("clerk", ());
    let fault = system
        .system()
        .remote_entry(&address(), "add")
        .expect_err("not yet");
    assert_eq!(fault.code, FaultCode::UnknownTarget);
    assert!(system.system().exports().is_empty());
    system.run_until_idle();
    let fault = system
        .system()
        .remote_entry(&address(), "burn")
        .expect_err("no such");
    assert_eq!(fault.code, FaultCode::BadRequest);
    assert!(fault.message.contains("add, crash, hold, note"), "{fault}");
    let exposed = system.system().exports();
    assert_eq!(exposed[0].address, address());
    assert!(
        exposed[0]
            .messages
            .contains(&("numbers".into(), MessagePattern::Stream))
    );
}

#[test]
fn undecodable_payload_is_rejected() {
    let office = office();
    for payload in [json!("three"), json!(-1), json!({})] {
        let fault = office.ask("add", &payload).expect_err("no number");
        assert_eq!(fault.code, FaultCode::BadRequest, "{fault}");
    }
    let bytes = Payload::new(strowger::ContentType::Bytes, vec![0xff]);
    let fault = in_its_mailbox(office.put(1, "add", &bytes)).expect_err("no JSON");
    assert_eq!(fault.code, FaultCode::BadRequest, "{fault}");
    assert_eq!(office.clerk.erase().info().handled, 0);
}

#[test]
fn message_pattern_is_enforced() {
    let office = office();
    let fault = office.ask("note", &json!("x")).expect_err("it is told");
    assert_eq!(fault.code, FaultCode::BadRequest, "{fault}");
    let fault = office
        .tell("numbers", &json!({"to": 1}))
        .expect_err("it is a stream");
    assert_eq!(fault.code, FaultCode::BadRequest, "{fault}");
}

#[test]
fn panic_and_dropped_reply_answer_failed() {
    let office = office();
    in_its_mailbox(office.put(1, "hold", &Payload::EMPTY)).expect("there is room");
    office.system.run_until_idle();
    assert!(office.outside.take().is_empty(), "it holds the reply");
    let fault = office
        .ask("unwritable", &Value::Null)
        .expect_err("it panics");
    assert_eq!(fault.code, FaultCode::Failed, "{fault}");
    in_its_mailbox(office.put(2, "crash", &Payload::EMPTY)).expect("there is room");
    office.system.run_until_idle();
    let mut answers = office.outside.take();
    answers.sort_by_key(|(call, _)| *call);
    let codes = answers
        .iter()
        .map(|(_, answer)| answer.as_ref().map_err(|fault| fault.code));
    let codes: Vec<_> = codes.map(|answer| answer.map(|_| ())).collect();
    assert_eq!(codes[1], Err(FaultCode::Failed), "{answers:?}");
    let fault = office
        .system
        .system()
        .remote_entry(&address(), "add")
        .expect_err("it ended");
    assert_eq!(fault.code, FaultCode::UnknownTarget);
}

#[test]
fn export_survives_restarts() {
    let system = TestSystem::new(7);
    let child = ChildSpec::new::<Clerk>("clerk", ()).restart(Restart::Permanent);
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let supervisor = system.supervise("office", supervisor);
    let clerk = supervisor
        .child::<ClerkMessage>("clerk")
        .expect("it started");
    let address: Address = "@(office/clerk)".parse().expect("an address");
    let outside = Arc::new(Outside::default());
    let entry = system
        .system()
        .remote_entry(&address, "add")
        .expect("it is exposed");
    clerk.erase().inject_panic("for the test");
    let payload = Payload::from_json(&1).expect("it is JSON");
    in_its_mailbox(entry.call(&payload, 1, Arc::clone(&outside) as Arc<dyn CallSink>))
        .expect("there is room");
    system.run_until_idle();
    system.advance(Duration::from_secs(60));
    assert!(outside.one().is_ok(), "it waited for the next incarnation");
}

#[test]
fn call_to_a_full_mailbox_is_queued() {
    let office = office();
    let add = |more: u64| Payload::from_json(&more).expect("it is JSON");
    for call in [1, 2] {
        in_its_mailbox(office.put(call, "add", &add(1))).expect("there is room");
    }
    let Delivery::Queued(third) = office.put(3, "add", &add(1)) else {
        panic!("there is no room");
    };
    let Delivery::Queued(fourth) = office.put(4, "add", &add(1)) else {
        panic!("there is no room");
    };
    drop(third);
    let ticket = office.system.run(fourth);
    assert!(ticket.is_ok());
    office.system.run_until_idle();
    let answers = office.outside.take();
    let mut calls: Vec<u64> = answers.iter().map(|(call, _)| *call).collect();
    // The reply of the cancelled call was dropped, which its connection ignores.
    calls.retain(|call| *call != 3);
    assert_eq!(calls, [1, 2, 4]);
    assert_eq!(office.ask("add", &json!(0)), Ok(json!(3)));
}

#[test]
fn cancelled_message_is_not_handled() {
    let office = office();
    let payload = Payload::from_json(&1).expect("it is JSON");
    let ticket = in_its_mailbox(office.put(1, "add", &payload)).expect("there is room");
    ticket.cancel();
    office.system.run_until_idle();
    // Its reply was dropped; the connection has already answered, and ignores it.
    office.outside.take();
    assert_eq!(office.ask("add", &json!(0)), Ok(json!(0)));
}

#[test]
fn handler_sees_a_cancelled_remote_ask() {
    let office = office();
    in_its_mailbox(office.put(1, "hold", &Payload::EMPTY)).expect("there is room");
    assert_eq!(office.ask("wanted", &Value::Null), Ok(json!(1)));
    office.outside.gave_up.lock().expect("not poisoned").push(1);
    assert_eq!(office.ask("wanted", &Value::Null), Ok(json!(0)));
}

#[test]
fn handler_sees_a_cancelled_local_ask() {
    let office = office();
    office.system.run(async {
        let asked = office.clerk.ask_within(Hold, Duration::from_secs(1));
        assert!(asked.await.is_err(), "it is held");
    });
    assert_eq!(office.ask("wanted", &Value::Null), Ok(json!(0)));
}

#[test]
fn exported_stream_yields_items_then_ends() {
    let office = office();
    let payload = Payload::from_json(&json!({"to": 3})).expect("it is JSON");
    in_its_mailbox(office.put(1, "numbers", &payload)).expect("there is room");
    office.system.run_until_idle();
    let Ok(CallReply::Stream(mut items)) = office.outside.one() else {
        panic!("it is a stream");
    };
    for number in 0..3 {
        assert_eq!(next(&mut items), Poll::Ready(Some(Ok(number))));
    }
    assert_eq!(next(&mut items), Poll::Ready(None));
    assert_eq!(next(&mut items), Poll::Ready(None));
}

#[test]
fn exported_stream_fails_when_its_actor_ends() {
    let office = office();
    let payload = Payload::from_json(&json!({"to": 0})).expect("it is JSON");
    in_its_mailbox(office.put(1, "numbers", &payload)).expect("there is room");
    office.system.run_until_idle();
    let Ok(CallReply::Stream(mut items)) = office.outside.one() else {
        panic!("it is a stream");
    };
    assert_eq!(next(&mut items), Poll::Pending);
    office.clerk.kill();
    office.system.run_until_idle();
    match next(&mut items) {
        Poll::Ready(Some(Err(fault))) => assert_eq!(fault.code, FaultCode::Failed, "{fault}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(next(&mut items), Poll::Ready(None));
}

#[test]
fn full_mailbox_under_fail_rule_rejects_calls() {
    struct Narrow;
    impl strowger::Actor for Narrow {
        type Msg = Note;
        type Args = ();
        type Error = BoxError;

        const MAILBOX: MailboxSpec = MailboxSpec::bounded(1).overflow(Overflow::Fail);

        async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
            Ok(Self)
        }

        async fn handle(&mut self, _: Note, _: &mut Context<Self>) -> Result<(), BoxError> {
            Ok(())
        }
    }
    let system = TestSystem::new(7);
    let narrow = system.spawn::<Narrow>("narrow", ());
    let door = || Export::new().tell::<Note>("note");
    let address = system.system().export_as("notes/all", &narrow, door());
    let address = address.expect("nobody else is there");
    assert_eq!(address.to_string(), "@(notes/all)");
    let entry = system
        .system()
        .remote_entry(&address, "note")
        .expect("it is exposed");
    let note = Payload::from_json(&"x").expect("it is JSON");
    in_its_mailbox(entry.tell(&note)).expect("there is room");
    let fault = in_its_mailbox(entry.tell(&note)).expect_err("there is none");
    assert_eq!((fault.code, fault.retryable), (FaultCode::Full, true));
    let other = system.spawn::<Narrow>("other", ());
    let taken = system.system().export_as("notes/all", &other, door());
    assert_eq!(taken, Err(ExportError::Taken { address }));
    narrow.kill();
    system.run_until_idle();
    assert!(!entry.is_alive());
    let fault = in_its_mailbox(entry.tell(&note)).expect_err("it has ended");
    assert_eq!(fault.code, FaultCode::UnknownTarget);
    let again = system.system().export_as("notes/all", &other, door());
    assert!(again.is_ok(), "{again:?}");
}

#[test]
fn exports_of_ended_actors_are_removed() {
    let system = TestSystem::new(7);
    for number in 0..1000 {
        let clerk = system.spawn::<Clerk>(format!("clerk-{number}").as_str(), ());
        system.run_until_idle();
        clerk.kill();
        system.run_until_idle();
    }
    assert!(system.system().exports().is_empty());
}

/// Clerks that are hired when the first message for them arrives, after a while.
struct Agency {
    system: ActorSystem,
    held: Arc<()>,
    is_open: Arc<AtomicBool>,
}

impl KeyedActors<ClerkMessage> for Agency {
    type Hold = Arc<()>;

    fn find(&self, key: &str) -> FindActor<ClerkMessage, Arc<()>> {
        let (system, held) = (self.system.clone(), Arc::clone(&self.held));
        let key = key.to_owned();
        Box::pin(async move {
            if key == "nobody" {
                return Err(Fault::new(FaultCode::Refused, "nobody is not hired"));
            }
            if let Some(clerk) = system.find(format!("/{key}").as_str()) {
                return Ok((clerk.downcast().expect("a clerk"), held));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            let clerk = system.spawn::<Clerk>(key, ()).expect("the key is free");
            Ok((clerk, held))
        })
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }
}

struct KeyedOffice {
    system: TestSystem,
    held: Arc<()>,
    is_open: Arc<AtomicBool>,
    outside: Arc<Outside>,
}

fn keyed_office() -> KeyedOffice {
    let system = TestSystem::new(7);
    let (held, is_open) = (Arc::new(()), Arc::new(AtomicBool::new(true)));
    let agency = Agency {
        system: system.system().clone(),
        held: Arc::clone(&held),
        is_open: Arc::clone(&is_open),
    };
    let export = Export::new().ask::<Add>("add").ask::<Hold>("hold");
    let exported = system
        .system()
        .export_keyed("agency/clerks", agency, export);
    assert_eq!(exported.expect("the name is free").path(), "agency/clerks");
    KeyedOffice {
        system,
        held,
        is_open,
        outside: Arc::default(),
    }
}

impl KeyedOffice {
    fn entry(&self, key: &str, name: &str) -> Result<RemoteEntry, Fault> {
        let address = Address::from_path(&format!("agency/clerks/{key}"))?;
        self.system.system().remote_entry(&address, name)
    }

    /// Delivers a message, and returns once it is in its mailbox or refused.
    fn settle(&self, put: impl FnOnce() -> Delivery) -> Result<DeliveryHandle, Fault> {
        self.system.run(async {
            match put() {
                Delivery::Settled(done) => done,
                Delivery::Queued(turn) => turn.await,
            }
        })
    }

    fn add(&self, key: &str, number: u64) -> Result<Value, Fault> {
        let payload = Payload::from_json(&number)?;
        let sink = Arc::clone(&self.outside) as Arc<dyn CallSink>;
        let add = self.entry(key, "add")?;
        self.settle(|| add.call(&payload, 1, sink))?;
        self.system.run_until_idle();
        match self.outside.one()? {
            CallReply::Single(payload) => payload.decode(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn keyed_actors_are_found_by_the_end_of_their_address() {
    let office = keyed_office();
    assert_eq!(office.add("anna", 3), Ok(json!(3)));
    assert_eq!(office.add("bert", 4), Ok(json!(4)));
    assert_eq!(office.add("anna", 5), Ok(json!(8)));
    let seven = Payload::from_json(&7).expect("a number");
    let told = office.entry("anna", "add").expect("it is open");
    office.settle(|| told.tell(&seven)).expect("there is room");
    assert_eq!(office.add("anna", 0), Ok(json!(15)));
    assert_eq!(
        Arc::strong_count(&office.held),
        2,
        "nothing is held any more"
    );

    // The messages to one address share an order, and no other.
    let order = |key, name| office.entry(key, name).expect("it is open").order();
    assert_eq!(order("anna", "add"), order("anna", "hold"));
    assert_ne!(order("anna", "add"), order("bert", "add"));

    let exports = office.system.system().exports();
    let row = exports.iter().find(|row| row.is_keyed).expect("a row");
    let covers = |path: &str| row.covers(&Address::from_path(path).expect("a path"));
    assert!(covers("agency/clerks/anna"));
    assert!(!covers("agency/clerks") && !covers("agency/clerks/anna/desk"));
    assert_eq!(row.messages.len(), 2);
}

#[test]
fn keyed_actor_is_held_until_it_has_answered() {
    let office = keyed_office();
    let hold = office.entry("anna", "hold").expect("it is open");
    let sink = Arc::clone(&office.outside) as Arc<dyn CallSink>;
    let put = office.settle(|| hold.call(&Payload::EMPTY, 1, sink));
    put.expect("there is room");
    office.system.run_until_idle();
    assert!(office.outside.take().is_empty(), "the reply is held");
    assert_eq!(Arc::strong_count(&office.held), 3);
    let anna = office.system.system().find("/anna").expect("she is hired");
    anna.kill();
    office.system.run_until_idle();
    let fault = office.outside.one().expect_err("she has ended");
    assert_eq!(
        fault.code,
        FaultCode::Failed,
        "the message may have been handled"
    );
    assert_eq!(Arc::strong_count(&office.held), 2);
}

#[test]
fn keyed_actor_that_is_not_found_has_a_fault() {
    let office = keyed_office();
    let fault = office.add("nobody", 1).expect_err("not hired");
    assert_eq!(fault.code, FaultCode::Refused);
    let fault = office.entry("anna", "burn").expect_err("no such message");
    assert_eq!(fault.code, FaultCode::BadRequest);
    assert!(fault.message.contains("add, hold"), "{fault}");
    // A sender that gives up while the actor is being found leaves nothing behind.
    let add = office.entry("carl", "add").expect("it is open");
    let sink = Arc::clone(&office.outside) as Arc<dyn CallSink>;
    office.system.run(async {
        let put = add.call(&Payload::EMPTY, 1, sink);
        assert!(matches!(put, Delivery::Queued(_)), "hiring takes a while");
    });
    assert_eq!(Arc::strong_count(&office.held), 2);

    let second = Agency {
        system: office.system.system().clone(),
        held: Arc::default(),
        is_open: Arc::new(AtomicBool::new(true)),
    };
    let system = office.system.system().clone();
    let taken = system.export_keyed("agency/clerks", second, Export::new());
    assert!(matches!(taken, Err(ExportError::Taken { .. })), "{taken:?}");
    office.is_open.store(false, Ordering::Relaxed);
    assert!(!add.is_alive());
    let fault = office.entry("anna", "add").expect_err("it has closed");
    assert_eq!(fault.code, FaultCode::UnknownTarget);
}
