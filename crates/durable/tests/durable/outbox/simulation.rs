//! Accounts that send each other money, under failures and restarts, from a seed; a checker reads
//! what each account has taken.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};
use strowger::testing::TestSystem;
use strowger::{Accepts, Ask, BoxError, Request};
use strowger_durable::store::{EntityId, MemoryStore, StoreFault};
use strowger_durable::{
    Delivery, DurableActor, DurableContext, Entities, EntityKind, IdempotencyKey, OutboxLimits,
};

use crate::simulation::seeds;

const ACCOUNTS: [&str; 4] = ["a", "b", "c", "d"];
const TRANSFERS: usize = 8;
const CRASHES: usize = 2;
const MAX_DELAY: Duration = Duration::from_millis(5);
/// The time after the last fault in which everything has to be delivered: an attempt that hangs,
/// and a few of the longest backoffs.
const SETTLED: Duration = Duration::from_secs(60);

/// Moves money to another account.
#[derive(Clone)]
struct Transfer {
    to: EntityId,
    amount: i64,
    key: IdempotencyKey,
}
impl Request for Transfer {
    type Reply = ();
}

struct Read;
impl Request for Read {
    type Reply = Books;
}

enum AccountMessage {
    Transfer(Ask<Transfer>),
    Read(Ask<Read>),
}

impl Accepts<Ask<Transfer>> for AccountMessage {
    fn wrap(ask: Ask<Transfer>) -> Self {
        Self::Transfer(ask)
    }
}

impl Accepts<Ask<Read>> for AccountMessage {
    fn wrap(ask: Ask<Read>) -> Self {
        Self::Read(ask)
    }
}

/// The books of an account.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Books {
    balance: i64,
    /// The number of transfers to each account.
    sent: BTreeMap<String, u64>,
    /// The transfers from each account, by their number.
    taken: BTreeMap<String, Vec<u64>>,
    #[serde(skip)]
    undelivered: usize,
}

/// Decides from a seed what goes wrong in an account.
struct Faults {
    are_active: AtomicBool,
    random: Mutex<SplitMix64>,
}

impl Faults {
    fn draw(&self) -> u64 {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        random.next_u64()
    }

    /// Fails in one of so many calls.
    fn strike_one_in(&self, calls: u64) -> Result<(), BoxError> {
        match self.are_active.load(Ordering::Relaxed) && self.draw().is_multiple_of(calls) {
            true => Err("injected".into()),
            false => Ok(()),
        }
    }
}

struct Account(Arc<Faults>);
type Cx<'a> = DurableContext<'a, Account>;

impl DurableActor for Account {
    const KIND: &'static str = "account";
    const IDLE: Duration = Duration::from_millis(15);
    const MAX_AWAKE: usize = 3;
    const OUTBOX: OutboxLimits = OutboxLimits {
        messages: 4,
        ..OutboxLimits::DEFAULT
    };

    type State = Books;
    type Msg = AccountMessage;
    type Args = Arc<Faults>;
    type Error = BoxError;

    async fn pre_start(
        faults: Arc<Faults>,
        _: &mut Books,
        _: &mut Cx<'_>,
    ) -> Result<Self, BoxError> {
        faults.strike_one_in(12)?;
        Ok(Self(faults))
    }

    async fn handle(
        &mut self,
        message: AccountMessage,
        books: &mut Books,
        cx: &mut Cx<'_>,
    ) -> Result<(), BoxError> {
        match message {
            AccountMessage::Transfer(Ask { request, reply }) => {
                let Transfer { to, amount, key } = request;
                if cx.undelivered() >= Self::OUTBOX.messages {
                    // The client repeats the request.
                    return Ok(());
                }
                let mut number = None;
                cx.reply_once(&key, reply, || {
                    books.balance -= amount;
                    let sent = books.sent.entry(to.key().to_owned()).or_default();
                    *sent += 1;
                    number = Some(*sent);
                });
                if let Some(number) = number {
                    cx.send_durable(&to, &(number, amount))?;
                }
                self.0.strike_one_in(12)?;
            }
            AccountMessage::Read(ask) => {
                let mut read = books.clone();
                read.undelivered = cx.undelivered();
                cx.reply(ask.reply, read);
            }
        }
        Ok(())
    }

    async fn receive(
        &mut self,
        delivery: Delivery,
        books: &mut Books,
        cx: &mut Cx<'_>,
    ) -> Result<(), BoxError> {
        let (number, amount) = delivery.decode::<(u64, i64)>()?;
        books.balance += amount;
        let taken = books.taken.entry(delivery.sender().key().to_owned());
        taken.or_default().push(number);
        if self.0.draw().is_multiple_of(8) {
            cx.stop();
        }
        self.0.strike_one_in(6)
    }
}

/// The transfers of an account that its client has still to make; it makes them in order, and
/// repeats each until it is answered.
struct Client {
    account: &'static str,
    left: Vec<Transfer>,
    random: SplitMix64,
}

impl Client {
    fn new(account: &'static str, seed: u64) -> Self {
        let mut random = SplitMix64::seed_from_u64(seed);
        let transfer = |number: usize| {
            let to = usize::try_from(random.next_u64() % ACCOUNTS.len() as u64);
            Transfer {
                to: EntityId::new("account", ACCOUNTS[to.expect("small")]).expect("a short key"),
                amount: i64::try_from(random.next_u64() % 100).expect("small"),
                key: IdempotencyKey::new(number.to_string()).expect("a short key"),
            }
        };
        Self {
            account,
            left: (0..TRANSFERS).map(transfer).rev().collect(),
            random,
        }
    }

    async fn run(&mut self, accounts: &EntityKind<Account>) {
        let account = accounts.get(self.account).expect("a short key");
        while let Some(transfer) = self.left.last() {
            let within = Duration::from_millis(20 + self.random.next_u64() % 80);
            if account.ask_within(transfer.clone(), within).await.is_ok() {
                self.left.pop();
            }
            let pause = Duration::from_micros(self.random.next_u64() % 10_000);
            tokio::time::sleep(pause).await;
        }
    }
}

/// Runs clients and faults in one process, until the clients are done, or for this time.
fn process(
    system: &TestSystem,
    (store, faults): (&MemoryStore, &Arc<Faults>),
    clients: &mut [Client],
    limit: Option<Duration>,
) -> EntityKind<Account> {
    let entities = Entities::new(Arc::new(store.clone()));
    let accounts = entities.start(system.system(), "accounts", Arc::clone(faults));
    let accounts: EntityKind<Account> = accounts.expect("the key is free");
    let full_disk = async {
        // Bounded, because faults wait for appends: while there are few, they would pile up.
        for _ in 0..8 {
            tokio::time::sleep(Duration::from_millis(10 + faults.draw() % 60)).await;
            store.inject(StoreFault::DiskFull);
        }
        std::future::pending().await
    };
    let work = async {
        let [first, second, third, fourth] = clients else {
            panic!("four clients")
        };
        tokio::join!(
            first.run(&accounts),
            second.run(&accounts),
            third.run(&accounts),
            fourth.run(&accounts)
        )
    };
    system.run(async {
        tokio::select! {
            _ = work => {}
            () = full_disk => {}
            () = tokio::time::sleep(limit.unwrap_or(Duration::MAX)) => {}
        }
    });
    accounts
}

/// Every transfer was taken once and in order, and no money was made or lost.
fn check_books(books: &BTreeMap<&str, Books>) {
    for (sender, sending) in books {
        assert_eq!(sending.undelivered, 0, "{sender} has messages left");
        for (receiver, count) in &sending.sent {
            let receiving = books.get(&**receiver).expect("it was read");
            let taken = receiving.taken.get(*sender).cloned().unwrap_or_default();
            let sent: Vec<u64> = (1..=*count).collect();
            assert_eq!(
                taken, sent,
                "lost, doubled or reordered: {sender} to {receiver}"
            );
        }
    }
    let sent: u64 = books.values().flat_map(|one| one.sent.values()).sum();
    assert_eq!(sent, (ACCOUNTS.len() * TRANSFERS) as u64);
    let taken: usize = books
        .values()
        .flat_map(|one| one.taken.values())
        .map(Vec::len)
        .sum();
    assert_eq!(taken, ACCOUNTS.len() * TRANSFERS);
    let total: i64 = books.values().map(|one| one.balance).sum();
    assert_eq!(total, 0, "money was made or lost");
}

fn scenario(first: &TestSystem) {
    let seed = first.seed();
    let mut random = SplitMix64::seed_from_u64(seed);
    let mut store = MemoryStore::seeded(random.next_u64(), MAX_DELAY);
    let faults = Arc::new(Faults {
        are_active: AtomicBool::new(true),
        random: Mutex::new(SplitMix64::seed_from_u64(random.next_u64())),
    });
    let mut clients = ACCOUNTS.map(|account| Client::new(account, random.next_u64()));
    for _ in 0..CRASHES {
        let system = TestSystem::new(random.next_u64());
        let limit = Duration::from_millis(20 + random.next_u64() % 300);
        process(&system, (&store, &faults), &mut clients, Some(limit));
        let now = system.run(async { strowger_durable::store::Store::wall_clock(&store) });
        drop(system);
        store = store.reopen();
        store.set_wall_clock(now);
    }
    let accounts = process(first, (&store, &faults), &mut clients, None);
    faults.are_active.store(false, Ordering::Relaxed);
    first.advance(SETTLED);
    let books = ACCOUNTS.map(|key| {
        let account = accounts.get(key).expect("a short key");
        (key, first.run(account.ask(Read)).expect("an answer"))
    });
    check_books(&BTreeMap::from(books));
}

#[test]
fn no_transfer_is_lost_doubled_or_reordered() {
    TestSystem::check(seeds(0..20), scenario);
}
