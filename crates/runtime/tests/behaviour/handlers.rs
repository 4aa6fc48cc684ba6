//! The glue that `#[handlers]` generates behaves like glue written by hand.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Debug;
use std::time::Duration;

use strowger::testing::TestSystem;
use strowger::{
    Accepts, Actor, ActorRef, Ask, AskError, BoxError, Completion, Context, Exit, MailboxSpec,
    Overflow, Recipient, Reply, Request, SendError, Signal, handlers,
};

struct Add(u64);
struct Get;
struct Divide(u64);
struct Reserve(u64);
struct Flush;
struct Later;
struct Answer;

impl Request for Get {
    type Reply = u64;
}

impl Request for Divide {
    type Reply = u64;
}

impl Request for Reserve {
    type Reply = Result<(), u64>;
}

impl Request for Flush {
    type Reply = ();
}

impl Request for Later {
    type Reply = u64;
}

/// Counts, and can keep an asker waiting.
struct Counter {
    sum: u64,
    waiting: Option<Reply<u64>>,
}

impl Counter {
    fn add_to(&mut self, more: u64) -> Result<(), BoxError> {
        self.sum = self.sum.checked_add(more).ok_or("counted too far")?;
        Ok(())
    }
}

#[handlers]
impl Actor for Counter {
    type Args = u64;
    type Error = BoxError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(2).overflow(Overflow::Fail);

    async fn pre_start(sum: u64, _: &mut Context<Self>) -> Result<Self, BoxError> {
        let waiting = None;
        Ok(Self { sum, waiting })
    }

    /// An error of the actor's own type, spelled as in the trait.
    async fn add(&mut self, Add(more): Add, _: &mut Context<Self>) -> Result<(), Self::Error> {
        let failed: Result<(), Self::Error> = self.add_to(more);
        failed
    }

    async fn get(&mut self, _: Get) -> u64 {
        self.sum
    }

    async fn divide(&mut self, Divide(by): Divide) -> Result<u64, BoxError> {
        Ok(self.sum.checked_div(by).ok_or("divided by zero")?)
    }

    #[ask]
    async fn reserve(&mut self, Reserve(some): Reserve) -> Result<(), u64> {
        self.sum = self.sum.checked_sub(some).ok_or(self.sum)?;
        Ok(())
    }

    #[ask]
    async fn flush(&mut self, _: Flush) {
        self.sum = 0;
    }

    async fn defer(&mut self, ask: Ask<Later>) {
        self.waiting = Some(ask.reply);
    }

    async fn reply(&mut self, _: Answer) {
        let sum = self.get(Get).await;
        if let Some(reply) = self.waiting.take() {
            reply.send(sum);
        }
    }

    #[cfg(any())]
    async fn never(&mut self, no_such_type: NoSuchType) {}

    async fn post_stop(self, exit: &Exit, _: &mut Context<Self>) {
        assert!(!matches!(exit, Exit::Killed), "nobody kills it here");
    }
}

#[test]
fn tells_and_asks_reach_their_handlers() {
    TestSystem::check(0..8, |system| {
        let counter = system.spawn::<Counter>("counter", 40);
        system.run(async {
            counter.tell(Add(2)).await.expect("it runs");
            assert_eq!(counter.ask(Get).await, Ok(42));
            assert_eq!(counter.ask(Divide(2)).await, Ok(21));
            assert_eq!(counter.ask(Reserve(43)).await, Ok(Err(42)));
            assert_eq!(counter.ask(Reserve(40)).await, Ok(Ok(())));
            assert_eq!(counter.ask(Flush).await, Ok(()));
            assert_eq!(counter.ask(Get).await, Ok(0));
        });
    });
}

#[test]
fn tell_handler_error_ends_the_incarnation() {
    let system = TestSystem::new(1);
    let counter = system.spawn::<Counter>("counter", 1);
    counter.try_tell(Add(u64::MAX)).expect("there is room");
    let exit = system.run(counter.stopped());
    assert_eq!(exit.to_string(), "failed: counted too far");
}

#[test]
fn ask_handler_error_drops_the_reply_and_ends_the_incarnation() {
    let system = TestSystem::new(1);
    let counter = system.spawn::<Counter>("counter", 1);
    assert_eq!(system.run(counter.ask(Divide(0))), Err(AskError::Dropped));
    let exit = system.run(counter.stopped());
    assert_eq!(exit.to_string(), "failed: divided by zero");
}

#[test]
fn handler_may_keep_the_reply_and_answer_later() {
    let system = TestSystem::new(1);
    let counter = system.spawn::<Counter>("counter", 7);
    let answering = counter.clone();
    let answer = system.run(async move {
        let asking = counter.ask(Later);
        let telling = async {
            tokio::task::yield_now().await;
            answering.tell(Answer).await.expect("it runs");
        };
        tokio::join!(asking, telling).0
    });
    assert_eq!(answer, Ok(7));
}

#[test]
fn refused_message_is_returned_as_sent() {
    let system = TestSystem::new(1);
    let counter = system.spawn::<Counter>("counter", 0);
    counter.try_tell(Add(1)).expect("there is room for two");
    counter.try_tell(Add(2)).expect("there is room for two");
    let Err(SendError::Full(Add(3))) = counter.try_tell(Add(3)) else {
        panic!("the block's own mailbox has room for two");
    };
}

#[test]
fn variant_is_named_and_debugged_like_its_handler() {
    let message: CounterMessage = Accepts::wrap(Add(1));
    assert!(matches!(message, CounterMessage::Add(Add(1))));
    assert_eq!(format!("{message:?}"), "Add");
}

/// Keeps values by key; two of its type parameters occur in its messages.
struct Table<K, V, const LIMIT: usize, L> {
    values: BTreeMap<K, V>,
    log: L,
}

struct Insert<K, V>(K, V);
struct Find<K, V>(K, std::marker::PhantomData<fn() -> V>);

impl<K: Send + 'static, V: Send + 'static> Request for Find<K, V> {
    type Reply = Option<V>;
}

#[handlers(message = Entry)]
impl<K, V: Clone + Send + 'static, const LIMIT: usize, L> Actor for Table<K, V, LIMIT, L>
where
    K: Ord + Send + 'static,
    L: Fn(usize) + Clone + Send + Sync + 'static,
{
    type Args = L;
    type Error = Infallible;

    async fn pre_start(log: L, _: &mut Context<Self>) -> Result<Self, Infallible> {
        let values = BTreeMap::new();
        Ok(Self { values, log })
    }

    async fn insert(&mut self, Insert(key, value): Insert<K, V>) {
        if self.values.len() < LIMIT {
            self.values.insert(key, value);
        }
        (self.log)(self.values.len());
    }

    async fn find(&mut self, wanted: Find<K, V>) -> Option<V> {
        self.values.get(&wanted.0).cloned()
    }
}

#[test]
fn generic_actor_generates_a_generic_message_enum() {
    let system = TestSystem::new(1);
    let sizes = system.probe::<usize>();
    let to = sizes.recipient();
    let log = move |size| assert!(to.try_tell(size).is_ok(), "the probe has room");
    let table: ActorRef<Entry<&str, u32>> =
        system.spawn::<Table<&'static str, u32, 1, _>>("table", log);
    table.try_tell(Insert("a", 1)).expect("there is room");
    table.try_tell(Insert("b", 2)).expect("there is room");
    let find = |key| system.run(table.ask(Find(key, std::marker::PhantomData)));
    assert_eq!(find("a"), Ok(Some(1)));
    assert_eq!(find("b"), Ok(None));
    assert_eq!(sizes.drain(), [1, 1]);
}

mod elsewhere {
    /// The crate under another name.
    pub(super) mod renamed {
        pub(crate) use strowger::{Accepts, Actor, Context, macro_support};
    }
}

/// Forwards replies, numbers and text.
struct Clerk {
    asked: ActorRef<CounterMessage>,
    to: Recipient<String>,
}

#[handlers(message = Note, crate = elsewhere::renamed)]
impl Actor for Clerk {
    type Args = (ActorRef<CounterMessage>, Recipient<String>);
    type Error = Infallible;

    async fn pre_start(
        (asked, to): Self::Args,
        cx: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        cx.monitor(&asked);
        Ok(Self { asked, to })
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), Infallible> {
        if let Signal::Down { exit, .. } = signal {
            self.text(format!("down: {exit}")).await;
            cx.stop();
        }
        Ok(())
    }

    async fn number(&mut self, token: u64, cx: &mut Context<Self>) {
        let reply = cx.lane::<u64>().reply(token);
        let request = Get;
        let _ = self.asked.try_tell(Ask { request, reply });
    }

    async fn completed(&mut self, done: Completion<u64>) {
        self.text(format!("{}: {:?}", done.token, done.result))
            .await;
    }

    async fn text(&mut self, text: String) {
        let _ = self.to.try_tell(text);
    }
}

#[test]
fn lanes_and_signals_work_as_without_the_macro() {
    let system = TestSystem::new(1);
    let said = system.probe::<String>();
    let counter = system.spawn::<Counter>("counter", 5);
    let clerk = system.spawn::<Clerk>("clerk", (counter.clone(), said.recipient()));
    clerk.try_tell(9_u64).expect("there is room");
    clerk
        .recipient::<String>()
        .try_tell("hello".to_owned())
        .expect("there is room");
    system.run_until_idle();
    counter.stop();
    let exit = system.run(clerk.stopped());
    assert!(matches!(exit, Exit::Normal));
    assert_eq!(said.drain(), ["hello", "9: Ok(5)", "down: shutdown"]);
    assert!(system.elapsed() < Duration::from_secs(1));
    let debug: &dyn Debug = &Note::Number(1);
    assert_eq!(format!("{debug:?}"), "Number");
}
