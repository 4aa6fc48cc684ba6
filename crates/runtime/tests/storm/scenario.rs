//! The storm itself: the operations applied to the tree from outside, step by step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use strowger::testing::{Hook, InjectedFault, Probe, TestSystem};
use strowger::{
    ActorId, ActorRef, AnyRef, ChildSpec, Dynamic, Event, EventStream, Group, GroupEvent,
    MailboxSpec, Overflow, Restart, Shutdown, Strategy, Supervisor, SupervisorRef, Topic,
};
use tokio::time::Instant;

use crate::accounting::{Accounting, Shared, note};
use crate::actors::{Clock, Partner, Sender, Worker};
use crate::batch_operator::{BatchOperation, BatchOperator};
use crate::parent_asks::{self, ChildRequest, NESTLINGS, ParentActor};
use crate::ring_and_load::{Asker, Bell, BellMessage, Blocker, Flood, Hog, Job, Round};
use crate::rng::Numbers;
use crate::streams_and_groups::{Call, Follower, Listener, PipeWorker, Streamer};
use crate::{
    ASKERS, BELL, BLOCKER, CLOCK, CROWD, GROUP, HOG, INTENSITY, LIMIT, LISTENERS, MS, NEST,
    PARTNER, PERIOD, PIPER, SENDERS, STEPS, STREAMER, SUPERVISORS, TOPIC, WORKERS,
};

/// The time by which every storm is long over.
const END: Duration = Duration::from_secs(60);

pub(crate) struct Storm<'a> {
    system: &'a TestSystem,
    start: Instant,
    numbers: Numbers,
    books: Shared,
    top: SupervisorRef,
    events: EventStream,
    watch: Probe<()>,
    monitors: BTreeMap<ActorId, (String, usize)>,
    hand: ActorRef<BatchOperation>,
    topic: Topic<u64>,
    band: StormGroup,
    /// Number of values published so far, and of listeners started.
    number: u64,
    comers: u64,
    followers: u64,
}

impl<'a> Storm<'a> {
    pub(crate) fn new(system: &'a TestSystem) -> Self {
        let books = Shared::default();
        let start = system.run(async { Instant::now() });
        let events = system.events();
        let worker = |key: &str, overflow| {
            ChildSpec::new::<Worker>(key, Arc::clone(&books))
                .mailbox(MailboxSpec::bounded(3).overflow(overflow))
                .shutdown(Shutdown::Graceful(LIMIT))
        };
        let intensity = u32::try_from(INTENSITY).expect("small");
        let supervisor = |strategy| Supervisor::new(strategy).intensity(intensity, PERIOD);
        let all = supervisor(Strategy::OneForAll)
            .child(worker("wait", Overflow::Wait))
            .child(worker("fail", Overflow::Fail));
        let rest = supervisor(Strategy::RestForOne)
            .child(worker("newest", Overflow::DropNewest))
            .child(worker("oldest", Overflow::DropOldest));
        let one = supervisor(Strategy::OneForOne)
            .child(ChildSpec::new::<Clock>("clock", Arc::clone(&books)))
            .child(ChildSpec::new::<Partner>("partner", Arc::clone(&books)));
        let side = supervisor(Strategy::OneForOne)
            .child(ChildSpec::new::<Streamer>("streamer", Arc::clone(&books)))
            .child(ChildSpec::new::<PipeWorker>("piper", Arc::clone(&books)));
        let round = round(supervisor(Strategy::OneForOne), &books);
        let home = supervisor(Strategy::OneForOne)
            .child(ChildSpec::new::<ParentActor>("nest", Arc::clone(&books)));
        let crowd = Dynamic::<Listener>::new()
            .restart(Restart::Transient)
            .intensity(intensity, PERIOD)
            .max_children(LISTENERS);
        let top = Supervisor::new(Strategy::OneForOne)
            .intensity(u32::MAX, MS)
            .supervisor("all", all)
            .supervisor("rest", rest)
            .supervisor("one", one)
            .child(ChildSpec::dynamic("pool", pool(intensity)))
            .supervisor("side", side)
            .supervisor("round", round)
            .supervisor("home", home)
            .child(ChildSpec::dynamic("crowd", crowd));
        let top = system.supervise("top", top);
        let watch = system.probe();
        let band = StormGroup::new(system);
        let hand = system.spawn::<BatchOperator>("hand", Arc::clone(&books));
        let topic = system.system().topic(TOPIC).expect("it is a name");
        let numbers = Numbers::new(system.seed());
        Self {
            system,
            start,
            numbers,
            books,
            top,
            events,
            watch,
            monitors: BTreeMap::new(),
            hand,
            topic,
            band,
            number: 0,
            comers: 0,
            followers: 0,
        }
    }

    /// Starts the senders, which report when they are done.
    fn begin(&self) -> Probe<u32> {
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
        end
    }

    /// Drops the system in the middle of the storm, after `steps` steps.
    pub(crate) fn cut_off(mut self, steps: usize) {
        let _end = self.begin();
        for _ in 0..steps {
            self.step();
        }
    }

    pub(crate) fn run(mut self) -> Accounting {
        let end = self.begin();
        for _ in 0..STEPS {
            self.step();
        }
        let mut senders = Vec::new();
        while senders.len() < SENDERS as usize {
            self.pass(MS);
            senders.extend(std::iter::from_fn(|| end.try_next()));
            assert!(self.system.elapsed() < END, "the senders hang");
        }
        self.top.stop();
        // Advances step by step: restarts during the shutdown get their time, too.
        while self.top.erase().is_alive() {
            self.pass(MS);
            assert!(self.system.elapsed() < END, "the tree hangs");
        }
        self.system.run_until_idle();
        self.pass(MS);
        self.check_downs();
        for path in WORKERS.iter().chain(&SUPERVISORS) {
            assert!(
                self.system.system().find(*path).is_none(),
                "{path} outlived its supervisor"
            );
        }
        assert!(self.band.group.is_empty(), "members outlived their end");
        std::mem::take(&mut *self.books.lock().expect("nobody panics with it"))
    }

    fn step(&mut self) {
        let worker = *self.numbers.pick(&WORKERS);
        match self.numbers.below(12) {
            0 => self.with(worker, |worker| worker.kill()),
            1 => self.with(worker, |worker| worker.inject_panic("from outside")),
            2 => self.with(worker, |worker| worker.stop()),
            3..=7 => self.inject(worker),
            8 => {
                let place = *self.numbers.pick(&SUPERVISORS);
                match self.numbers.below(6) {
                    0 => self.with(place, |supervisor| supervisor.stop()),
                    1 | 2 => self.with(place, |supervisor| supervisor.kill()),
                    _ => {}
                }
            }
            9 => self.monitor(worker),
            10 => {
                // At its end the clock records whether it was orderly, and its partner must not be
                // in a handler then: neither is stalled there.
                let one = *self.numbers.pick(&[CLOCK, PARTNER]);
                let hook = *self.numbers.pick(&[Hook::PreStart, Hook::Handle]);
                let fault = match self.fault(hook) {
                    InjectedFault::Stall(_) if hook == Hook::Handle => {
                        InjectedFault::panic("injected")
                    }
                    fault => fault,
                };
                self.system.inject(one, hook, 1, fault);
            }
            _ => {}
        }
        self.refill();
        self.besides(worker);
        let time = u32::try_from(self.numbers.below(5)).expect("small");
        self.pass(MS * time);
    }

    /// Side activities: drains, batches, a topic, a stream and pipes.
    fn besides(&mut self, worker: &'static str) {
        match self.numbers.below(26) {
            0 => {
                let within = MS * u32::try_from(self.numbers.below(40)).expect("small");
                let _sent = self.hand.try_tell(BatchOperation::Drain(worker, within));
            }
            1 | 2 => self.batch(),
            3 => {
                let fault = self.fault(Hook::Handle);
                let listener = self.listener();
                self.system.inject(&*listener, Hook::Handle, 1, fault);
            }
            4 => {
                let listener = self.listener();
                self.with(&listener, |listener| listener.kill());
            }
            5 => self.follow(),
            6 => {
                for back in 0..3 {
                    let name = self.followers.saturating_sub(back);
                    self.with(&format!("/follower-{name}"), |follower| follower.kill());
                }
            }
            7 => {
                let one = *self.numbers.pick(&[PIPER, STREAMER]);
                self.with(one, |one| one.kill());
            }
            8 => {
                let one = *self.numbers.pick(&[PIPER, STREAMER]);
                let fault = self.fault(Hook::Handle);
                self.system.inject(one, Hook::Handle, 1, fault);
            }
            16 | 17 => self.call(),
            18 => self.ask_around(),
            19 => self.give_jobs(),
            20 | 21 => self.flood(),
            22 | 23 => self.nest(),
            24 | 25 => self.ring(),
            _ => {
                let published = self.topic.publish(self.number);
                self.number += 1;
                note(&self.books, |books| {
                    books.published += published.delivered as u64;
                });
            }
        }
    }

    /// Calls one member of the group, or all.
    fn call(&mut self) {
        let key = self.numbers.below(4);
        let call = Call(Some((key, self.band.changes)));
        let band = &self.band.group;
        let (name, taken) = match self.numbers.below(3) {
            0 => {
                let taken = band.broadcast(&Call(None)).delivered;
                ("call of all members", taken as u64)
            }
            1 => {
                let taken = band.send_round_robin(Call(None)).is_ok();
                ("call of a member in turn", u64::from(taken))
            }
            _ => {
                let taken = (0..2).filter(|_| band.send_by_key(key, call.clone()).is_ok());
                ("call of a member by its key", taken.count() as u64)
            }
        };
        note(&self.books, |books| {
            books.count_many(name, taken);
            books.published += taken;
        });
    }

    /// Makes some actors ask around the ring; one of them may end meanwhile.
    fn ask_around(&mut self) {
        for _ in 0..2 {
            let asker = *self.numbers.pick(&ASKERS);
            let left = u32::try_from(1 + self.numbers.below(5)).expect("small");
            self.with(asker, |asker| {
                let asker: ActorRef<Round> = asker.downcast().expect("askers walk");
                let _sent = asker.try_tell(Round::Go(left));
            });
        }
        let asker = *self.numbers.pick(&ASKERS);
        if self.numbers.below(4) == 0 {
            self.with(asker, |asker| asker.kill());
        } else {
            let nth = 1 + self.numbers.below(3);
            let fault = self.fault(Hook::Handle);
            self.system.inject(asker, Hook::Handle, nth, fault);
        }
    }

    fn give_jobs(&mut self) {
        let many = 1 + self.numbers.below(3);
        for _ in 0..many {
            let job = Job(self.number);
            self.number += 1;
            self.with(BLOCKER, |blocker| {
                let blocker: ActorRef<Job> = blocker.downcast().expect("it takes jobs");
                let given = blocker.try_tell(job).is_ok();
                note(&self.books, |books| books.published += u64::from(given));
            });
        }
        match self.numbers.below(3) {
            0 => self.with(BLOCKER, |blocker| blocker.kill()),
            1 => {
                let fault = self.fault(Hook::Handle);
                self.system.inject(BLOCKER, Hook::Handle, 2, fault);
            }
            _ => {}
        }
    }

    /// Makes the hog flood itself, and injects a fault in the middle.
    fn flood(&mut self) {
        let (name, left) = (self.number, 200 + self.numbers.below(200));
        self.number += 1;
        self.with(HOG, |hog| {
            let hog: ActorRef<Flood> = hog.downcast().expect("it floods itself");
            let given = hog.try_tell(Flood { name, left }).is_ok();
            note(&self.books, |books| books.published += u64::from(given));
        });
        let nth = 1 + self.numbers.below(199);
        match self.numbers.below(3) {
            0 => {}
            1 => {
                let fault = self.fault(Hook::Handle);
                self.system.inject(HOG, Hook::Handle, nth, fault);
            }
            _ => self
                .system
                .inject(HOG, Hook::Handle, nth, InjectedFault::panic("injected")),
        }
    }

    /// Makes the children of an actor ask it, which ends meanwhile.
    fn nest(&mut self) {
        let busy = MS * u32::try_from(self.numbers.below(6)).expect("small");
        self.with(NEST, |nest| beg(&nest, ChildRequest::After(busy)));
        for key in NESTLINGS {
            let care = match self.numbers.below(3) {
                0 => ChildRequest::Sibling,
                1 => ChildRequest::Parent,
                _ => ChildRequest::After(busy),
            };
            self.with(&format!("{NEST}/{key}"), |one| beg(&one, care));
        }
        match self.numbers.below(6) {
            0 => self.with(NEST, |nest| nest.kill()),
            1 => {
                let fault = self.fault(Hook::Handle);
                let nth = 1 + self.numbers.below(2);
                self.system.inject(NEST, Hook::Handle, nth, fault);
            }
            _ => {
                let time = MS * u32::try_from(self.numbers.below(3)).expect("small");
                self.pass(time);
                self.with(NEST, |nest| nest.stop());
            }
        }
    }

    /// Floods an actor with timers and messages, and ends it in the middle.
    fn ring(&mut self) {
        let timers = u32::try_from(10 + self.numbers.below(10)).expect("small");
        self.with(BELL, |bell| {
            let bell: ActorRef<BellMessage> = bell.downcast().expect("it rings");
            let _sent = bell.try_tell(BellMessage::Ring(timers));
            for _ in 0..timers / 2 {
                let _sent = bell.try_tell(BellMessage::Call);
            }
        });
        let nth = 1 + self.numbers.below(15);
        match self.numbers.below(4) {
            0 => {
                let fault = self.fault(Hook::Handle);
                self.system.inject(BELL, Hook::Handle, nth, fault);
            }
            1 => {
                self.pass(MS * 3);
                self.with(BELL, |bell| bell.stop());
            }
            _ => {}
        }
    }

    /// One of the latest listeners.
    fn listener(&mut self) -> String {
        let last = self.numbers.below(LISTENERS as u64);
        format!("{CROWD}/{}", self.comers.saturating_sub(last))
    }

    /// Starts three more listeners, one of which may have a name that is taken.
    fn batch(&mut self) {
        let crowd = self.top.any_child("crowd");
        let Some(crowd) = crowd.and_then(|crowd| crowd.dynamic::<Listener>()) else {
            return;
        };
        let first = self.comers;
        let repeats = u64::from(self.numbers.below(3) == 0);
        self.comers += 3 - repeats;
        let keys = (first + 1 - repeats..=self.comers).rev();
        let keys: Vec<_> = keys.map(|key| key.to_string()).collect();
        if self.numbers.below(2) == 0 {
            let _sent = self.hand.try_tell(BatchOperation::Together(crowd, keys));
            return;
        }
        let children = keys.into_iter().map(|key| (key, Arc::clone(&self.books)));
        let started = crowd.start_children(children);
        note(&self.books, |books| {
            books.count("batch started");
            let refused = started.iter().filter(|one| one.is_err()).count();
            books.count_many("child refused in a batch", refused as u64);
        });
    }

    fn follow(&mut self) {
        self.followers += 1;
        let pace = MS * u32::try_from(self.numbers.below(8)).expect("small");
        let key = format!("follower-{}", self.followers);
        let args = (Arc::clone(&self.books), pace);
        self.system.spawn::<Follower>(key, args);
    }

    fn inject(&mut self, path: &str) {
        let hooks = [
            Hook::PreStart,
            Hook::Handle,
            Hook::Signal,
            Hook::PostStop,
            Hook::PostStop,
        ];
        let hook = *self.numbers.pick(&hooks);
        let nth = 1 + self.numbers.below(2);
        let fault = self.fault(hook);
        self.system.inject(path, hook, nth, fault);
    }

    fn fault(&mut self, hook: Hook) -> InjectedFault {
        match self.numbers.below(3) {
            0 => InjectedFault::panic("injected"),
            1 if hook != Hook::PostStop => InjectedFault::error("injected"),
            _ => {
                InjectedFault::Stall(MS * 10 * u32::try_from(self.numbers.below(9)).expect("small"))
            }
        }
    }

    fn with(&self, path: &str, act: impl FnOnce(AnyRef)) {
        if let Some(actor) = self.system.system().find(path) {
            act(actor);
        }
    }

    /// Refills a pool that is empty after a restart.
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
            let monitors = self.monitors.entry(actor.id());
            monitors.or_insert_with(|| (path.to_owned(), 0)).1 += 1;
            self.watch.monitor(&actor);
        }
    }

    /// Advances time. Events are read before it advances, so that their time is known.
    fn pass(&mut self, time: Duration) {
        let (events, books, start) = (&mut self.events, &self.books, self.start);
        self.system.run(async {
            let mut end = std::pin::pin!(tokio::time::sleep(time));
            loop {
                tokio::select! {
                    biased;
                    Some(event) = events.next() => enter(books, &event, start),
                    () = &mut end => break,
                }
            }
        });
        self.system.run_until_idle();
        while let Some(event) = self.events.try_next() {
            self.system.run(async { enter(&self.books, &event, start) });
        }
        assert_eq!(self.events.lost(), 0, "the books need all events");
        self.band.check(&self.books);
        for (hook, fault) in self.system.take_injected_faults() {
            note(&self.books, |books| books.note_fault(hook, &fault, LIMIT));
        }
        // A storm that has gone wrong need not continue: the rest may take long, or never end.
        assert_eq!(note(&self.books, |books| books.faults()), [""; 0]);
    }

    fn check_downs(&self) {
        let mut left = note(&self.books, |books| books.ends.clone());
        let mut downs: BTreeMap<ActorId, usize> = BTreeMap::new();
        for (id, exit) in self.watch.take_downs() {
            let count = downs.entry(id).or_default();
            *count += 1;
            let Some((path, _)) = self.monitors.get(&id) else {
                panic!("a Down of {id} that was not asked for");
            };
            if *count == 1 {
                let end = left.get_mut(&(path.clone(), exit.to_string()));
                let end = end.unwrap_or_else(|| panic!("{path} did not end so: {exit}"));
                *end = end.checked_sub(1).expect("as many Downs as ends");
            }
        }
        let wanted: BTreeMap<ActorId, usize> = self
            .monitors
            .iter()
            .map(|(id, (_, count))| (*id, *count))
            .collect();
        assert_eq!(downs, wanted, "exactly one Down for each monitor");
    }
}

/// Adds the actors that ask each other in a ring, and those that make others wait.
fn round(supervisor: Supervisor, books: &Shared) -> Supervisor {
    let asker =
        |number: usize| ChildSpec::new::<Asker>(number.to_string(), (Arc::clone(books), number));
    supervisor
        .child(asker(0))
        .child(asker(1))
        .child(asker(2))
        .child(ChildSpec::new::<Blocker>("blocker", Arc::clone(books)))
        .child(ChildSpec::new::<Hog>("hog", Arc::clone(books)))
        .child(ChildSpec::new::<Bell>("bell", Arc::clone(books)))
}

/// The group of the listeners, and its watcher.
struct StormGroup {
    group: Group<Call>,
    watch: Probe<GroupEvent>,
    /// The members, according to the events.
    members: BTreeSet<ActorId>,
    /// Number of events received.
    changes: u64,
}

impl StormGroup {
    fn new(system: &TestSystem) -> Self {
        let group = system.system().group(GROUP);
        let watch = system.probe();
        let members = group.monitor(watch.recipient()).expect("the probe lives");
        assert_eq!(members.len(), 0);
        Self {
            group,
            watch,
            members: BTreeSet::new(),
            changes: 0,
        }
    }

    /// Checks, when nothing is runnable, that the group matches its events and that all members are
    /// alive.
    fn check(&mut self, books: &Shared) {
        while let Some(event) = self.watch.try_next() {
            self.changes += 1;
            let fits = match &event {
                GroupEvent::Joined { member, .. } => self.members.insert(member.id()),
                GroupEvent::Left { member, .. } => {
                    note(books, |books| books.count("end of a member"));
                    self.members.remove(&member.id())
                }
                _ => false,
            };
            if !fits {
                note(books, |books| {
                    books.note_violation(format!("the group tells {event:?}"))
                });
            }
        }
        let members = self.group.members();
        let all: BTreeSet<_> = members.iter().map(|one| one.actor().id()).collect();
        if all != self.members || !members.iter().all(|one| one.actor().is_alive()) {
            let text = format!("in the group are {all:?}, not {:?}", self.members);
            note(books, |books| books.note_violation(text));
        }
    }
}

fn enter(books: &Shared, event: &Event, start: Instant) {
    let at = Instant::now() - start;
    note(books, |books| books.event(event, at));
}

/// A pool of workers that keep only the latest letter.
fn pool(intensity: u32) -> Dynamic<Worker> {
    Dynamic::new()
        .restart(Restart::Permanent)
        .intensity(intensity, PERIOD)
        .mailbox(MailboxSpec::bounded(3).overflow(Overflow::KeepLatest))
}

/// Makes an actor of the nest ask, or answer late.
fn beg(actor: &AnyRef, care: ChildRequest) {
    let actor: ActorRef<parent_asks::Call> = actor.downcast().expect("it is of the nest");
    let _sent = actor.try_tell(parent_asks::Call::AskParent(care));
}
