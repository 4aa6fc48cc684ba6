//! The records of N4 sessions in the store of durable actors, beside the node's own store.
//!
//! ```text
//!  entity `n4/SEID`            State: the session     Answers: a ring of kept responses
//!  entity `association/NODE`   State: the peer
//! ```
//!
//! Keys are short, because the database keeps up to 20 bytes of a key where it compares them.
//!
//! An accepted request is one append to the entity of its session: the session and the response
//! change together, as they do in the node's own store.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger_durable::store::{
    self as durable, Batch, EntityId, EntityRows, Fence, FjallOptions, FjallStore, Row, StoreError,
    Table,
};
use strowger_pfcp::association::Recovery;
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::{
    Cause, DestinationInterface, FSeid, FarId, OuterHeaderCreation, UpdateFar,
    UpdateForwardingParameters,
};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::session::{NoAllocator, RuleSet};
use strowger_pfcp::transaction::ResponseKey;
use strowger_pfcp::{Frame, Header, MessageType, Seid, Sequence};

use super::super::first_seid;
use super::super::format::Record;
use super::{
    ADDRESS, LockedStore, MemoryStore, NOW, OpenParams, SessionRecord, Store, StoreChange,
    StoredResponse, kept_by, owner,
};
use crate::client::{SessionRules, body_of};
use crate::config::{Durability, NodeConfig, StoreConfig};

/// The number of modifications of each session.
const MODIFICATIONS: usize = 3;

/// The number of responses that an entity keeps.
const RING: u64 = 4;

/// A request that the node accepted, as the changes that it stores.
#[derive(Clone)]
struct Accepted {
    change: StoreChange,
    answer: StoredResponse,
}

impl Accepted {
    /// Takes the response as the node would encode it.
    fn new(frame: &Frame<'_>, peer_seid: Seid, elements: &[u8], change: StoreChange) -> Self {
        let header = answer_header(&frame.header, Some(peer_seid));
        let body = BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED);
        let bytes = message(&header, body.bytes(elements).as_slice()).expect("it fits");
        let key = ResponseKey {
            peer: owner().address,
            sequence: frame.header.sequence,
            message_type: frame.header.message_type,
            digest: u64::from(frame.header.sequence.get()),
        };
        let answer = StoredResponse::new((key, Recovery(7)), bytes.into());
        Self { change, answer }
    }
}

/// Encodes a request about a session.
fn request(kind: MessageType, seid: Seid, sequence: u64, body: &[u8]) -> Vec<u8> {
    let sequence = Sequence::new(u32::try_from(sequence).expect("small"));
    let mut header = Header::node(kind, sequence);
    header.seid = Some(seid);
    message(&header, body).expect("it fits")
}

/// Returns a SEID as a node gives them.
fn seid(number: u64) -> Seid {
    Seid(first_seid(Recovery(0x1234)) + number)
}

/// Creates a session with the rules of the load generator, and moves its tunnel back and forth.
/// Returns what the node stores for its establishment, its modifications and its deletion.
fn life(number: u64) -> Vec<Accepted> {
    let seid = seid(number);
    let modifications = MODIFICATIONS as u64;
    let sequence = |step: u64| (number * (modifications + 2) + step) % (1 << 24);
    let small = u32::try_from(number).expect("small");
    let ue = Ipv4Addr::from((10 << 24) | small);
    let gateway = Ipv4Addr::new(127, 0, 0, 7);
    let rules = SessionRules::with_tunnel(small + 1, gateway, ue.into());
    let f_seid = FSeid::new(seid, ADDRESS);
    let body = rules.counted(1 << 30).limited(20_000);
    let body = body.into_request(&owner().node, f_seid).expect("it fits");
    let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
    let bytes = request(kind, Seid(0), sequence(0), &body);
    let frame = Frame::decode(&bytes).expect("a message");
    let established = RuleSet::establish(&frame, &mut NoAllocator).expect("sound");
    let record = |rules| {
        Arc::new(SessionRecord {
            seid,
            peer_seid: seid,
            owner: owner(),
            rules,
            kept: kept_by(number),
            moved: number % 2 == 1,
        })
    };
    let mut last = record(established.rules);
    let put = |record: &Arc<SessionRecord>| StoreChange::Put(Arc::clone(record));
    // The F-SEID of the node, as an element.
    let f_seid = [
        &[0, 57, 0, 13, 2][..],
        &number.to_be_bytes(),
        &[127, 0, 0, 7],
    ]
    .concat();
    let mut steps = vec![Accepted::new(&frame, seid, &f_seid, put(&last))];
    for step in 1..=modifications {
        let tunnel = OuterHeaderCreation::from((small + u32::from(step % 2 == 0), ADDRESS));
        let access = UpdateForwardingParameters::new()
            .destination_interface(DestinationInterface::ACCESS)
            .outer_header_creation(tunnel);
        let far = UpdateFar::new(FarId(2)).update_forwarding_parameters(access);
        let body = body_of(SessionModificationRequest::new().update_fars([far]));
        let kind = MessageType::SESSION_MODIFICATION_REQUEST;
        let bytes = request(kind, seid, sequence(step), &body.expect("it fits"));
        let frame = Frame::decode(&bytes).expect("a message");
        let modified = last.rules.modify(&frame, &mut NoAllocator).expect("sound");
        last = record(modified.rules);
        steps.push(Accepted::new(&frame, seid, &[], put(&last)));
    }
    let kind = MessageType::SESSION_DELETION_REQUEST;
    let bytes = request(kind, seid, sequence(modifications + 1), &[]);
    let frame = Frame::decode(&bytes).expect("a message");
    steps.push(Accepted::new(&frame, seid, &[], StoreChange::Remove(seid)));
    steps
}

/// A session that is stored as an entity.
struct SessionEntity {
    entity: EntityId,
    fence: Fence,
    sequence: durable::Sequence,
}

impl SessionEntity {
    fn new(seid: Seid) -> Self {
        Self {
            entity: EntityId::new("n4", format!("{:x}", seid.0)).expect("short"),
            // That of the first holder. SEIDs are not used again.
            fence: Fence(1),
            sequence: durable::Sequence(0),
        }
    }

    /// Returns the rows that an accepted request changes.
    fn batch(&self, accepted: &Accepted) -> Batch {
        let number = self.sequence.next().0;
        let mut batch = Batch::new();
        match &accepted.change {
            StoreChange::Put(record) => {
                let (bytes, _) = Record::Session(Arc::clone(record)).encode(number);
                batch.put(Table::State, [], bytes);
            }
            _ => batch.remove(Table::State, []),
        }
        let slot = u8::try_from(self.sequence.0 % RING).expect("small");
        batch.put(Table::Answers, [slot], answer_bytes(slot, accepted, number));
        batch
    }

    /// Stores an accepted request. The first one takes the entity in the same group.
    async fn store(&mut self, store: &dyn durable::Store, accepted: &Accepted) {
        let batch = self.batch(accepted);
        let append = store.append(&self.entity, self.sequence, self.fence, batch);
        let appended = match self.sequence.0 {
            0 => {
                // In this order: the batch is refused if it comes before the lease.
                let (fence, appended) = tokio::join!(biased; store.lease(&self.entity), append);
                assert_eq!(fence, Ok(self.fence));
                appended
            }
            _ => append.await,
        };
        self.sequence = appended.expect("it is stored");
    }
}

/// Encodes the response to a request as the node's own store does.
fn answer_bytes(slot: u8, accepted: &Accepted, number: u64) -> Vec<u8> {
    let (slot, answer) = (slot.into(), accepted.answer.clone());
    Record::Answer { slot, answer }.encode(number).0
}

/// Opens a durable store that works in groups of the same size as the node's own.
fn open_durable(path: &Path, durability: Durability) -> FjallStore {
    let own = StoreConfig::default();
    let options = FjallOptions {
        durability: match durability {
            Durability::Process => durable::Durability::Process,
            Durability::Disk => durable::Durability::Disk,
        },
        queue: own.queue,
        group: own.group,
        buffer: own.buffer,
        ..FjallOptions::default()
    };
    FjallStore::open(path, options).expect("it opens")
}

/// Returns the rows of an entity after some accepted requests.
fn rows_after(accepted: &[Accepted]) -> EntityRows {
    let row = |table, key: &[u8], value| Row {
        table,
        key: key.to_vec(),
        value,
    };
    let last = accepted.len() as u64;
    let session = session_after(accepted).into_iter();
    let session = session.map(|record| row(Table::State, &[], record.encode(last).0));
    let mut rows: Vec<Row> = session.collect();
    for slot in 0..RING {
        let of_slot = (1..)
            .zip(accepted)
            .filter(|(number, _)| (number - 1) % RING == slot);
        if let Some((number, accepted)) = of_slot.last() {
            let slot = u8::try_from(slot).expect("small");
            let value = answer_bytes(slot, accepted, number);
            rows.push(row(Table::Answers, &[slot], value));
        }
    }
    EntityRows {
        sequence: durable::Sequence(last),
        rows,
    }
}

/// Returns the session after some accepted requests, unless it is deleted.
fn session_after(accepted: &[Accepted]) -> Option<Record> {
    match &accepted.last()?.change {
        StoreChange::Put(record) => Some(Record::Session(Arc::clone(record))),
        _ => None,
    }
}

/// Stores sessions, of which every fourth is deleted, and reads them after the store was opened
/// again.
async fn session_records_are_kept(durability: Durability) {
    let lives: Vec<Vec<Accepted>> = (1..=40)
        .map(|number| {
            let mut steps = life(number);
            if number % 4 != 0 {
                steps.pop();
            }
            steps
        })
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let store: Box<dyn durable::Store> = Box::new(open_durable(folder.path(), durability));
    let peer = EntityId::new("association", "127.0.0.7").expect("short");
    let (peer_bytes, _) = Record::Association(owner()).encode(1);
    let fence = store.lease(&peer).await.expect("a lease");
    let mut batch = Batch::new();
    batch.put(Table::State, [], peer_bytes.clone());
    let appended = store
        .append(&peer, durable::Sequence(0), fence, batch)
        .await;
    assert_eq!(appended, Ok(durable::Sequence(1)));
    for (steps, number) in lives.iter().zip(1..) {
        let mut session = SessionEntity::new(seid(number));
        for accepted in steps {
            session.store(&*store, accepted).await;
        }
    }
    drop(store);

    let store: Box<dyn durable::Store> = Box::new(open_durable(folder.path(), durability));
    let found = store.read(&peer).await.expect("it is readable");
    assert_eq!(found.rows[0].value, peer_bytes);
    let keys = store.list("n4", None, 1000).await.expect("a list");
    assert_eq!(keys.len(), lives.len());
    for ((key, steps), number) in keys.into_iter().zip(&lives).zip(1..) {
        let session = SessionEntity::new(seid(number));
        assert_eq!(session.entity.key(), &*key);
        let found = store.read(&session.entity).await.expect("it is readable");
        assert_eq!(found, rows_after(steps), "session {number}");
        let state = found.rows.iter().find(|row| row.table == Table::State);
        let record = state.map(|row| Record::decode(&row.value).expect("a record").record);
        assert_eq!(record, session_after(steps), "session {number}");
        others_are_refused(&*store, session, steps).await;
    }
}

/// Checks that neither an earlier holder nor one that has missed a request can change a session.
async fn others_are_refused(
    store: &dyn durable::Store,
    session: SessionEntity,
    steps: &[Accepted],
) {
    let entity = &session.entity;
    let last = durable::Sequence(steps.len() as u64);
    let current = store.lease(entity).await.expect("a lease");
    assert_eq!(current, session.fence.next());
    let batch = || session.batch(&steps[0]);
    let refused = store.append(entity, last, session.fence, batch()).await;
    let stale = StoreError::StaleFence {
        entity: entity.clone(),
        fence: session.fence,
        current,
    };
    assert_eq!(refused, Err(stale));
    for expected in [durable::Sequence(last.0 - 1), last.next()] {
        let refused = store.append(entity, expected, current, batch()).await;
        let wrong = StoreError::WrongSequence {
            entity: entity.clone(),
            expected,
            found: last,
        };
        assert_eq!(refused, Err(wrong));
    }
    let found = store.read(entity).await.expect("it is readable");
    assert_eq!(found, rows_after(steps), "nothing has changed");
}

#[tokio::test]
async fn session_records_fit_the_store_of_durable_actors() {
    for durability in [Durability::Process, Durability::Disk] {
        session_records_are_kept(durability).await;
    }
}

/// A store that a measurement writes to.
enum Target {
    Node(Box<dyn Store>),
    /// The durable store, with the tables in memory that serve the reads of a node.
    Durable(FjallStore, MemoryStore),
}

impl Target {
    fn open_node(path: &Path, durability: Durability) -> Self {
        let config = StoreConfig {
            path: Some(path.to_owned()),
            durability,
            reserve: 1 << 16,
            ..StoreConfig::default()
        };
        let given = OpenParams {
            answers: answers(),
            now: NOW,
            seed: 5,
            probe: |seed| seed ^ 1,
        };
        let locked = LockedStore::lock(path).expect("a folder");
        let opened = locked.open(&config, given).expect("it opens");
        Self::Node(Box::new(opened.store))
    }

    async fn store(&self, session: &mut SessionEntity, accepted: Accepted) {
        match self {
            Self::Node(store) => {
                let changes = vec![accepted.change, StoreChange::Answer(accepted.answer)];
                store.write(changes).outcome().await.expect("there is room");
            }
            Self::Durable(store, table) => {
                session.store(store, &accepted).await;
                table.apply([accepted.change, StoreChange::Answer(accepted.answer)]);
            }
        }
    }
}

/// Returns the number of responses that a node keeps.
fn answers() -> usize {
    NodeConfig::default().limits.response_cache
}

/// A session under way: its entity, and the requests that are still to be stored.
type Pending = (SessionEntity, std::vec::IntoIter<Accepted>);

/// Stores the next requests of all sessions, of which `under_way` have one at a time. Returns the
/// time.
async fn store_next(
    target: &Arc<Target>,
    sessions: &mut Vec<Vec<Pending>>,
    requests: usize,
) -> Duration {
    let began = Instant::now();
    let tasks = sessions.drain(..).map(|mut share: Vec<Pending>| {
        let target = Arc::clone(target);
        tokio::spawn(async move {
            for (session, pending) in &mut share {
                for accepted in pending.take(requests) {
                    target.store(session, accepted).await;
                }
            }
            share
        })
    });
    let tasks: Vec<_> = tasks.collect();
    for task in tasks {
        sessions.push(task.await.expect("it stores"));
    }
    began.elapsed()
}

/// The requests that are measured on their own: establishments, modifications and deletions.
const PHASES: [(&str, usize); 3] = [("establish", 1), ("modify", MODIFICATIONS), ("delete", 1)];

/// Stores the lives of sessions, and returns the time of each phase.
async fn measure(target: Target, lives: &[Vec<Accepted>], under_way: usize) -> [Duration; 3] {
    let target = Arc::new(target);
    let mut sessions: Vec<Vec<Pending>> = Vec::new();
    sessions.resize_with(under_way, Vec::new);
    for (number, steps) in lives.iter().enumerate() {
        let session = SessionEntity::new(seid(number as u64 + 1));
        sessions[number % under_way].push((session, steps.clone().into_iter()));
    }
    let mut took = [Duration::ZERO; 3];
    for (took, (_, requests)) in took.iter_mut().zip(PHASES) {
        *took = store_next(&target, &mut sessions, requests).await;
    }
    took
}

/// Measures both stores in turn, prints their rates, and returns the ratio of the durable store's
/// rate to that of the node's, over all requests.
async fn compare(durability: Durability, under_way: usize, lives: &[Vec<Accepted>]) -> f64 {
    let mut took = [[Duration::ZERO; 3]; 2];
    for round in 0..ROUNDS {
        for side in [round % 2, (round + 1) % 2] {
            let folder = tempfile::tempdir().expect("a folder");
            let target = match side {
                0 => Target::open_node(folder.path(), durability),
                _ => Target::Durable(
                    open_durable(folder.path(), durability),
                    MemoryStore::new(answers()),
                ),
            };
            let phases = measure(target, lives, under_way).await;
            for (sum, phase) in took[side].iter_mut().zip(phases) {
                *sum += phase;
            }
        }
    }
    let [node, durable] = took;
    let requests = |each: usize| (each * lives.len() * ROUNDS) as f64;
    let line = |name: &str, each: usize, node: Duration, durable: Duration| {
        let rate = |took: Duration| requests(each) / took.as_secs_f64();
        let ratio = rate(durable) / rate(node);
        println!(
            "{durability:?}, {under_way} under way, {name}: node {:.0}/s, durable {:.0}/s, \
             {ratio:.2}",
            rate(node),
            rate(durable),
        );
        ratio
    };
    for (phase, (name, each)) in PHASES.into_iter().enumerate() {
        line(name, each, node[phase], durable[phase]);
    }
    let all = PHASES.iter().map(|(_, each)| each).sum();
    line("all", all, node.iter().sum(), durable.iter().sum())
}

/// The number of measurements of each store.
const ROUNDS: usize = 4;

/// The ratio below which the durable store is too slow, on a machine that is busy with other tests.
const MIN_RATIO: f64 = 0.25;

#[test]
fn durable_store_keeps_up_with_that_of_the_node() {
    // More sessions give steadier figures, for a build with optimizations.
    let sessions = std::env::var("STROWGER_SEAM_SESSIONS").ok();
    let sessions = sessions.and_then(|text| text.parse().ok()).unwrap_or(300);
    let lives: Vec<Vec<Accepted>> = (1..=sessions).map(life).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build();
    let runtime = runtime.expect("two threads");
    for durability in [Durability::Process, Durability::Disk] {
        for under_way in [64, 1000] {
            // A machine that is busy with other programs may miss it; a slow store always does.
            let measure = || runtime.block_on(compare(durability, under_way, &lives));
            let is_fast = (0..3).any(|_| measure() >= MIN_RATIO);
            assert!(is_fast, "{durability:?}, {under_way} sessions under way");
        }
    }
}
