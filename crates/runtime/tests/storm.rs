//! A storm over a tree of supervisors: kills, panics in every hook, slow stops and overflow, from
//! many seeds, while senders keep sending. Afterwards the books must balance.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use strowger::testing::{Fault, Hook, Probe, TestSystem, Trace};
use strowger::{
    Accepts, Actor, ActorId, ActorRef, Ask, AskError, BoxError, ChildSpec, Context, Dynamic, Event,
    EventStream, MailboxSpec, Overflow, Recipient, Reply, Request, Restart, Shutdown, Strategy,
    Supervisor, SupervisorRef,
};

const MS: Duration = Duration::from_millis(1);

const SEEDS: u64 = 100;
const STEPS: usize = 120;
const SENDERS: u32 = 3;
const LETTERS: u64 = 60;

const WORKERS: [&str; 5] = [
    "/top/all/wait",
    "/top/all/fail",
    "/top/rest/newest",
    "/top/rest/oldest",
    "/top/pool/latest",
];

/// Marsaglia's xorshift: the storm's own numbers, apart from those of the schedule.
#[derive(Clone)]
struct Numbers(u64);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let place = self.below(from.len() as u64);
        &from[usize::try_from(place).expect("below a usize")]
    }
}

struct Letter {
    sender: u32,
    number: u64,
    deed: Deed,
    /// Present if the letter is a question.
    reply: Option<Reply<u64>>,
}

/// A letter whose sender waits for its number to come back.
struct Question(Letter);

impl Request for Question {
    type Reply = u64;
}

impl Accepts<Ask<Question>> for Letter {
    fn wrap(
        Ask {
            request: Question(letter),
            reply,
        }: Ask<Question>,
    ) -> Self {
        Self {
            reply: Some(reply),
            ..letter
        }
    }
}

/// What handling a letter comes to.
enum Deed {
    Nothing,
    Sleep(Duration),
    Panic,
    Fail,
}

/// What happened, as those to whom it happened tell it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Books {
    /// Letters that a mailbox took, by worker.
    accepted: BTreeMap<String, u64>,
    /// Letters whose handling began, in this order: worker, sender, number.
    begun: Vec<(String, u32, u64)>,
    /// Letters whose handling came to its end, by worker.
    done: BTreeMap<String, u64>,
    /// Letters that the system reported as lost, by worker.
    reported: BTreeMap<String, u64>,
}

type Shared = Arc<Mutex<Books>>;

fn note(books: &Shared, note: impl FnOnce(&mut Books)) {
    note(&mut books.lock().expect("nobody panics with it"));
}

struct Worker {
    books: Shared,
    path: String,
}

impl Actor for Worker {
    type Msg = Letter;
    type Args = Shared;
    type Error = BoxError;

    async fn pre_start(books: Shared, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self {
            books,
            path: cx.path().to_string(),
        })
    }

    async fn handle(&mut self, letter: Letter, _: &mut Context<Self>) -> Result<(), BoxError> {
        let Letter {
            sender,
            number,
            deed,
            reply,
        } = letter;
        note(&self.books, |books| {
            books.begun.push((self.path.clone(), sender, number))
        });
        match deed {
            Deed::Nothing => {}
            Deed::Sleep(time) => tokio::time::sleep(time).await,
            Deed::Panic => std::panic::resume_unwind(Box::new("in the storm")),
            Deed::Fail => return Err("in the storm".into()),
        }
        note(&self.books, |books| {
            *books.done.entry(self.path.clone()).or_default() += 1
        });
        if let Some(reply) = reply {
            reply.send(number);
        }
        Ok(())
    }
}

/// Sends numbered letters to workers of its choice, one for each tick, and then ends.
struct Sender {
    name: u32,
    numbers: Numbers,
    next: u64,
    books: Shared,
    end: Recipient<u32>,
}

impl Sender {
    fn letter(&mut self) -> Letter {
        let number = self.next;
        self.next += 1;
        let deed = match self.numbers.below(12) {
            0 => Deed::Panic,
            1 => Deed::Fail,
            2..=5 => Deed::Sleep(MS * u32::try_from(self.numbers.below(20)).expect("small")),
            _ => Deed::Nothing,
        };
        Letter {
            sender: self.name,
            number,
            deed,
            reply: None,
        }
    }
}

impl Actor for Sender {
    type Msg = ();
    type Args = (u32, u64, Shared, Recipient<u32>);
    type Error = BoxError;

    async fn pre_start(args: Self::Args, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let (name, seed, books, end) = args;
        cx.send_every(MS * 3, || ());
        let numbers = Numbers::new(seed ^ u64::from(name) << 32);
        Ok(Self {
            name,
            numbers,
            next: 0,
            books,
            end,
        })
    }

    async fn handle(&mut self, (): (), cx: &mut Context<Self>) -> Result<(), BoxError> {
        if self.next == LETTERS {
            let _sent = self.end.try_tell(self.name);
            cx.stop();
            return Ok(());
        }
        let path = *self.numbers.pick(&WORKERS);
        let manner = self.numbers.below(3);
        let letter = self.letter();
        // Between two incarnations of its supervisor, a worker has no address.
        let Some(worker) = cx.system().find(path) else {
            return Ok(());
        };
        let worker: ActorRef<Letter> = worker.downcast().expect("workers take letters");
        let accepted = match manner {
            0 => worker.tell(letter).await.is_ok(),
            1 => worker.try_tell(letter).is_ok(),
            _ => ask(&worker, letter).await,
        };
        if accepted {
            note(&self.books, |books| {
                *books.accepted.entry(path.to_owned()).or_default() += 1
            });
        }
        Ok(())
    }
}

/// Asks; whether the letter was accepted. Whatever becomes of it, there is an answer in time.
async fn ask(worker: &ActorRef<Letter>, letter: Letter) -> bool {
    let number = letter.number;
    match worker.ask(Question(letter)).await {
        Ok(answer) => {
            assert_eq!(answer, number);
            true
        }
        Err(AskError::Dropped | AskError::Panicked) => true,
        Err(AskError::Closed | AskError::Full) => false,
        Err(error) => panic!("{error}"),
    }
}

struct Storm<'a> {
    system: &'a TestSystem,
    numbers: Numbers,
    books: Shared,
    top: SupervisorRef,
    events: EventStream,
    watch: Probe<()>,
    monitors: BTreeMap<ActorId, usize>,
}

impl<'a> Storm<'a> {
    fn new(system: &'a TestSystem) -> Self {
        let books = Shared::default();
        let events = system.events();
        let worker = |key: &str, overflow| {
            ChildSpec::new::<Worker>(key, Arc::clone(&books))
                .mailbox(MailboxSpec::bounded(3).overflow(overflow))
                .shutdown(Shutdown::Graceful(MS * 40))
        };
        let supervisor = |strategy| Supervisor::new(strategy).intensity(6, MS * 100);
        let all = supervisor(Strategy::OneForAll)
            .child(worker("wait", Overflow::Wait))
            .child(worker("fail", Overflow::Fail));
        let rest = supervisor(Strategy::RestForOne)
            .child(worker("newest", Overflow::DropNewest))
            .child(worker("oldest", Overflow::DropOldest));
        let pool = Dynamic::<Worker>::new()
            .restart(Restart::Permanent)
            .intensity(6, MS * 100)
            .mailbox(MailboxSpec::bounded(3).overflow(Overflow::KeepLatest));
        let top = Supervisor::new(Strategy::OneForOne)
            .intensity(u32::MAX, MS)
            .supervisor("all", all)
            .supervisor("rest", rest)
            .child(ChildSpec::dynamic("pool", pool));
        let top = system.supervise("top", top);
        let watch = system.probe();
        let numbers = Numbers::new(system.seed());
        Self {
            system,
            numbers,
            books,
            top,
            events,
            watch,
            monitors: BTreeMap::new(),
        }
    }

    fn step(&mut self) {
        let path = *self.numbers.pick(&WORKERS);
        let hooks = [Hook::PreStart, Hook::Handle, Hook::PostStop];
        match self.numbers.below(10) {
            0 => self.with(path, |worker| worker.kill()),
            1 => self.with(path, |worker| worker.inject_panic("from outside")),
            2 => self.with(path, |worker| worker.stop()),
            3 | 4 => {
                let hook = *self.numbers.pick(&hooks);
                let nth = 1 + self.numbers.below(4);
                self.system
                    .inject(path, hook, nth, Fault::panic("injected"));
            }
            5 => {
                let time = MS * 10 * u32::try_from(self.numbers.below(10)).expect("small");
                let hook = *self.numbers.pick(&hooks);
                self.system.inject(path, hook, 1, Fault::Stall(time));
            }
            6 if self.numbers.below(3) == 0 => {
                let place = *self.numbers.pick(&["/top/all", "/top/rest", "/top/pool"]);
                self.with(place, |supervisor| supervisor.kill());
            }
            7 => self.monitor(path),
            _ => {}
        }
        self.refill();
        let time = u32::try_from(self.numbers.below(6)).expect("small");
        self.system.advance(MS * time);
        self.read_events();
    }

    fn with(&self, path: &str, act: impl FnOnce(strowger::AnyRef)) {
        if let Some(actor) = self.system.system().find(path) {
            act(actor);
        }
    }

    /// A pool that was restarted is empty.
    fn refill(&self) {
        let Some(pool) = self.top.any_child("pool") else {
            return;
        };
        let pool = pool.dynamic::<Worker>().expect("it is a pool of workers");
        if pool.is_empty() {
            let _started = pool.start_child("latest", Arc::clone(&self.books));
        }
    }

    fn monitor(&mut self, path: &str) {
        if let Some(actor) = self.system.system().find(path) {
            *self.monitors.entry(actor.id()).or_default() += 1;
            self.watch.monitor(&actor);
        }
    }

    fn read_events(&mut self) {
        while let Some(event) = self.events.try_next() {
            let count = match &event {
                Event::DeadLetter { count, .. } | Event::Overflow { count, .. } => *count,
                _ => continue,
            };
            let path = event.path().to_string();
            if WORKERS.contains(&path.as_str()) {
                note(&self.books, |books| {
                    *books.reported.entry(path).or_default() += count
                });
            }
        }
        assert_eq!(self.events.lost(), 0, "the books need all events");
    }

    fn run(mut self) -> Books {
        let end = self.system.probe();
        for name in 0..SENDERS {
            let args = (
                name,
                self.system.seed(),
                Arc::clone(&self.books),
                end.recipient(),
            );
            self.system.spawn::<Sender>(format!("sender-{name}"), args);
        }
        for _ in 0..STEPS {
            self.step();
        }
        let mut senders: Vec<u32> = (0..SENDERS)
            .map(|_| end.expect(Duration::from_secs(60)))
            .collect();
        senders.sort_unstable();
        assert_eq!(senders, (0..SENDERS).collect::<Vec<_>>());
        self.read_events();
        self.top.stop();
        self.system.run(self.top.stopped());
        self.system.run_until_idle();
        self.read_events();
        self.check_downs();
        for path in WORKERS {
            assert!(
                self.system.system().find(path).is_none(),
                "{path} outlived its supervisor"
            );
        }
        std::mem::take(&mut *self.books.lock().expect("nobody panics with it"))
    }

    fn check_downs(&self) {
        let mut downs: BTreeMap<ActorId, usize> = BTreeMap::new();
        for (id, _) in self.watch.downs() {
            *downs.entry(id).or_default() += 1;
        }
        assert_eq!(downs, self.monitors, "exactly one Down for each monitor");
    }
}

fn check(books: &Books) {
    let mut last: BTreeMap<(&str, u32), u64> = BTreeMap::new();
    for (path, sender, number) in &books.begun {
        // Rising numbers: in order, and none twice.
        if let Some(before) = last.insert((path.as_str(), *sender), *number) {
            assert!(
                before < *number,
                "{path} got {number} of {sender} after {before}"
            );
        }
    }
    let count = |of: &BTreeMap<String, u64>, path: &str| of.get(path).copied().unwrap_or(0);
    for path in WORKERS {
        let accepted = count(&books.accepted, path);
        let (done, reported) = (count(&books.done, path), count(&books.reported, path));
        assert_eq!(
            accepted,
            done + reported,
            "{path}: {done} done and {reported} reported"
        );
    }
}

fn storm(system: &TestSystem) -> (Trace, Books) {
    let books = Storm::new(system).run();
    (system.trace(), books)
}

#[test]
fn no_letter_is_handled_twice_or_lost_without_report_and_each_sender_keeps_its_order() {
    let totals = Mutex::new((0, 0));
    TestSystem::check(0..SEEDS, |system| {
        let (_, books) = storm(system);
        check(&books);
        let mut totals = totals.lock().expect("no panic before");
        totals.0 += books.done.values().sum::<u64>();
        totals.1 += books.reported.values().sum::<u64>();
    });
    let (done, reported) = *totals.lock().expect("no panic before");
    // A storm in which nothing is lost, or nothing gets through, would prove nothing.
    assert!(
        done > SEEDS * 50 && reported > SEEDS * 10,
        "{done} done, {reported} reported"
    );
}

#[test]
fn one_seed_gives_the_same_storm_twice() {
    for seed in 0..10 {
        let first = storm(&TestSystem::new(seed));
        let second = storm(&TestSystem::new(seed));
        assert_eq!(first.1, second.1, "seed {seed}");
        assert_eq!(first.0, second.0, "seed {seed}");
    }
}

#[test]
fn different_seeds_give_different_storms() {
    let mut digests: Vec<_> = (0..20)
        .map(|seed| storm(&TestSystem::new(seed)).0.digest())
        .collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 20);
}
