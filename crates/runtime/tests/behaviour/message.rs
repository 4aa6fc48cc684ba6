//! Endpoints: actors that are called by address, name and bytes.

use std::sync::{Arc, Mutex};
use std::task::{Context as Task, Poll, Waker};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use strowger::testing::TestSystem;
use strowger::{
    ActorRef, Address, Answer, Ask, BoxError, Calls, ChildSpec, Code, Context, Door, Entry,
    ExposeError, Fault, Items, MailboxSpec, Overflow, Pattern, Payload, Put, Reader, Reply,
    Request, Restart, Source, SourceSpec, Strategy, Supervisor, Ticket, handlers,
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
        cx.system().expose(&cx.me(), door())?;
        Ok(Self::default())
    }

    async fn add(&mut self, Add(more): Add) -> u64 {
        self.sum += more;
        self.sum
    }

    async fn hold(&mut self, ask: Ask<Hold>) {
        self.held.push(ask.reply);
    }

    async fn note(&mut self, Note(note): Note) {
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
        self.held.iter().filter(|reply| reply.is_wanted()).count()
    }

    async fn crash(&mut self, ask: Ask<Crash>) {
        let _reply = ask.reply;
        std::panic::resume_unwind(Box::new("told to"));
    }
}

fn door() -> Door<ClerkMessage> {
    Door::new()
        .ask::<Add>("add")
        .ask::<Hold>("hold")
        .tell::<Note>("note")
        .ask::<Notes>("notes")
        .stream::<Numbers, u64>("numbers")
        .ask_with("unwritable", Payload::read::<Unwritable>, |_| {
            std::panic::resume_unwind(Box::new("cannot be written"))
        })
        .ask::<Crash>("crash")
        .ask::<Wanted>("wanted")
}

/// A caller outside the system that collects the replies.
#[derive(Default)]
struct Outside {
    answers: Mutex<Vec<(u64, Result<Answer, Fault>)>>,
    gave_up: Mutex<Vec<u64>>,
}

impl Calls for Outside {
    fn answer(&self, call: u64, result: Result<Answer, Fault>) {
        self.answers
            .lock()
            .expect("not poisoned")
            .push((call, result));
    }

    fn is_wanted(&self, call: u64) -> bool {
        !self.gave_up.lock().expect("not poisoned").contains(&call)
    }
}

impl Outside {
    fn take(&self) -> Vec<(u64, Result<Answer, Fault>)> {
        std::mem::take(&mut *self.answers.lock().expect("not poisoned"))
    }

    fn one(&self) -> Result<Answer, Fault> {
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
    fn entry(&self, name: &str) -> Entry {
        self.system.system().entry(&address(), name).expect(name)
    }

    fn put(&self, call: u64, name: &str, payload: &Payload) -> Put {
        let outside = Arc::clone(&self.outside);
        self.entry(name).call(payload, call, outside)
    }

    /// Asks, runs the system until it is idle, and returns the reply.
    fn ask(&self, name: &str, payload: &Value) -> Result<Value, Fault> {
        let payload = Payload::json(payload)?;
        in_its_mailbox(self.put(1, name, &payload))?;
        self.system.run_until_idle();
        match self.outside.one()? {
            Answer::One(payload) => payload.read(),
            other => panic!("{other:?}"),
        }
    }

    fn tell(&self, name: &str, payload: &Value) -> Result<(), Fault> {
        let payload = Payload::json(payload)?;
        let told = in_its_mailbox(self.entry(name).tell(&payload));
        self.system.run_until_idle();
        told.map(drop)
    }
}

fn in_its_mailbox(put: Put) -> Result<Ticket, Fault> {
    match put {
        Put::Done(done) => done,
        Put::Waits(_) => panic!("there is room"),
    }
}

fn next(items: &mut Items) -> Poll<Option<Result<u64, Fault>>> {
    let item = items.poll_next(&mut Task::from_waker(Waker::noop()));
    item.map(|item| item.map(|item| item.and_then(|item| item.read())))
}

#[test]
fn a_name_and_octets_become_the_actors_own_message_and_its_reply_octets() {
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
fn a_text_is_read_as_such_and_nothing_as_null() {
    let office = office();
    let text = Payload::new(strowger::Content::Text, "as it is");
    in_its_mailbox(office.entry("note").tell(&text)).expect("there is room");
    in_its_mailbox(office.put(1, "notes", &Payload::NONE)).expect("there is room");
    office.system.run_until_idle();
    let Ok(Answer::One(notes)) = office.outside.one() else {
        panic!("it answers");
    };
    assert_eq!(notes.read::<Vec<String>>().expect("a list"), ["as it is"]);
}

#[test]
fn what_is_not_exposed_is_not_there() {
    let system = TestSystem::new(7);
    let _clerk = system.spawn::<Clerk>("clerk", ());
    let fault = system
        .system()
        .entry(&address(), "add")
        .expect_err("not yet");
    assert_eq!(fault.code, Code::UnknownTarget);
    assert!(system.system().exposed().is_empty());
    system.run_until_idle();
    let fault = system
        .system()
        .entry(&address(), "burn")
        .expect_err("no such");
    assert_eq!(fault.code, Code::BadRequest);
    assert!(fault.message.contains("add, crash, hold, note"), "{fault}");
    let exposed = system.system().exposed();
    assert_eq!(exposed[0].address, address());
    assert!(
        exposed[0]
            .messages
            .contains(&("numbers".into(), Pattern::Stream))
    );
}

#[test]
fn a_payload_that_cannot_be_understood_reaches_nobody() {
    let office = office();
    for payload in [json!("three"), json!(-1), json!({})] {
        let fault = office.ask("add", &payload).expect_err("no number");
        assert_eq!(fault.code, Code::BadRequest, "{fault}");
    }
    let octets = Payload::new(strowger::Content::Octets, vec![0xff]);
    let fault = in_its_mailbox(office.put(1, "add", &octets)).expect_err("no JSON");
    assert_eq!(fault.code, Code::BadRequest, "{fault}");
    assert_eq!(office.clerk.erase().info().handled, 0);
}

#[test]
fn a_message_is_sent_as_its_pattern_says() {
    let office = office();
    let fault = office.ask("note", &json!("x")).expect_err("it is told");
    assert_eq!(fault.code, Code::BadRequest, "{fault}");
    let fault = office
        .tell("numbers", &json!({"to": 1}))
        .expect_err("it is a stream");
    assert_eq!(fault.code, Code::BadRequest, "{fault}");
}

#[test]
fn a_panic_and_a_dropped_reply_are_failures() {
    let office = office();
    in_its_mailbox(office.put(1, "hold", &Payload::NONE)).expect("there is room");
    office.system.run_until_idle();
    assert!(office.outside.take().is_empty(), "it holds the reply");
    let fault = office
        .ask("unwritable", &Value::Null)
        .expect_err("it panics");
    assert_eq!(fault.code, Code::Failed, "{fault}");
    in_its_mailbox(office.put(2, "crash", &Payload::NONE)).expect("there is room");
    office.system.run_until_idle();
    let mut answers = office.outside.take();
    answers.sort_by_key(|(call, _)| *call);
    let codes = answers
        .iter()
        .map(|(_, answer)| answer.as_ref().map_err(|fault| fault.code));
    let codes: Vec<_> = codes.map(|answer| answer.map(|_| ())).collect();
    assert_eq!(codes[1], Err(Code::Failed), "{answers:?}");
    let fault = office
        .system
        .system()
        .entry(&address(), "add")
        .expect_err("it ended");
    assert_eq!(fault.code, Code::UnknownTarget);
}

#[test]
fn a_door_stays_open_over_restarts() {
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
        .entry(&address, "add")
        .expect("it is exposed");
    clerk.erase().inject_panic("for the test");
    let payload = Payload::json(&1).expect("it is JSON");
    in_its_mailbox(entry.call(&payload, 1, Arc::clone(&outside) as Arc<dyn Calls>))
        .expect("there is room");
    system.run_until_idle();
    system.advance(Duration::from_secs(60));
    assert!(outside.one().is_ok(), "it waited for the next incarnation");
}

#[test]
fn a_full_mailbox_is_waited_for_in_line() {
    let office = office();
    let add = |more: u64| Payload::json(&more).expect("it is JSON");
    for call in [1, 2] {
        in_its_mailbox(office.put(call, "add", &add(1))).expect("there is room");
    }
    let Put::Waits(third) = office.put(3, "add", &add(1)) else {
        panic!("there is no room");
    };
    let Put::Waits(fourth) = office.put(4, "add", &add(1)) else {
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
fn a_message_that_was_given_up_is_not_handled() {
    let office = office();
    let payload = Payload::json(&1).expect("it is JSON");
    let ticket = in_its_mailbox(office.put(1, "add", &payload)).expect("there is room");
    ticket.give_up();
    office.system.run_until_idle();
    // Its reply was dropped; the connection has already answered, and ignores it.
    office.outside.take();
    assert_eq!(office.ask("add", &json!(0)), Ok(json!(0)));
}

#[test]
fn a_handler_sees_that_its_asker_gave_up() {
    let office = office();
    in_its_mailbox(office.put(1, "hold", &Payload::NONE)).expect("there is room");
    assert_eq!(office.ask("wanted", &Value::Null), Ok(json!(1)));
    office.outside.gave_up.lock().expect("not poisoned").push(1);
    assert_eq!(office.ask("wanted", &Value::Null), Ok(json!(0)));
}

#[test]
fn a_handler_sees_that_an_asker_inside_gave_up() {
    let office = office();
    office.system.run(async {
        let asked = office.clerk.ask_within(Hold, Duration::from_secs(1));
        assert!(asked.await.is_err(), "it is held");
    });
    assert_eq!(office.ask("wanted", &Value::Null), Ok(json!(0)));
}

#[test]
fn a_stream_has_its_items_and_its_end() {
    let office = office();
    let payload = Payload::json(&json!({"to": 3})).expect("it is JSON");
    in_its_mailbox(office.put(1, "numbers", &payload)).expect("there is room");
    office.system.run_until_idle();
    let Ok(Answer::Items(mut items)) = office.outside.one() else {
        panic!("it is a stream");
    };
    for number in 0..3 {
        assert_eq!(next(&mut items), Poll::Ready(Some(Ok(number))));
    }
    assert_eq!(next(&mut items), Poll::Ready(None));
    assert_eq!(next(&mut items), Poll::Ready(None));
}

#[test]
fn a_stream_whose_actor_ends_says_so() {
    let office = office();
    let payload = Payload::json(&json!({"to": 0})).expect("it is JSON");
    in_its_mailbox(office.put(1, "numbers", &payload)).expect("there is room");
    office.system.run_until_idle();
    let Ok(Answer::Items(mut items)) = office.outside.one() else {
        panic!("it is a stream");
    };
    assert_eq!(next(&mut items), Poll::Pending);
    office.clerk.kill();
    office.system.run_until_idle();
    match next(&mut items) {
        Poll::Ready(Some(Err(fault))) => assert_eq!(fault.code, Code::Failed, "{fault}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(next(&mut items), Poll::Ready(None));
}

#[test]
fn a_mailbox_whose_rule_is_to_fail_refuses() {
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
    let door = || Door::new().tell::<Note>("note");
    let address = system.system().expose_as("notes/all", &narrow, door());
    let address = address.expect("nobody else is there");
    assert_eq!(address.to_string(), "@(notes/all)");
    let entry = system
        .system()
        .entry(&address, "note")
        .expect("it is exposed");
    let note = Payload::json(&"x").expect("it is JSON");
    in_its_mailbox(entry.tell(&note)).expect("there is room");
    let fault = in_its_mailbox(entry.tell(&note)).expect_err("there is none");
    assert_eq!((fault.code, fault.retryable), (Code::Full, true));
    let other = system.spawn::<Narrow>("other", ());
    let taken = system.system().expose_as("notes/all", &other, door());
    assert_eq!(taken, Err(ExposeError::Taken { address }));
    narrow.kill();
    system.run_until_idle();
    assert!(!entry.is_alive());
    let fault = in_its_mailbox(entry.tell(&note)).expect_err("it has ended");
    assert_eq!(fault.code, Code::UnknownTarget);
    let again = system.system().expose_as("notes/all", &other, door());
    assert!(again.is_ok(), "{again:?}");
}

#[test]
fn doors_of_actors_that_ended_are_forgotten() {
    let system = TestSystem::new(7);
    for number in 0..1000 {
        let clerk = system.spawn::<Clerk>(format!("clerk-{number}").as_str(), ());
        system.run_until_idle();
        clerk.kill();
        system.run_until_idle();
    }
    assert!(system.system().exposed().is_empty());
}
