mod seam;

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger_pfcp::association::{NodeName, Recovery};
use strowger_pfcp::ie::{
    ApplyAction, CreateFar, CreatePdr, FSeid, FTeid, NodeId, Pdi, SourceInterface,
};
use strowger_pfcp::message::SessionEstablishmentRequest;
use strowger_pfcp::session::{NoAllocator, RuleSet};
use strowger_pfcp::transaction::ResponseKey;
use strowger_pfcp::{Frame, Message, MessageType, Seid, Sequence};

use super::{
    LockedStore, MemoryStore, OpenParams, SessionRecord, Store, StoreChange, StoreError, StoreLoss,
    StoredPeer, StoredPfds, StoredResponse,
};
use crate::config::{Durability, StoreConfig};
use crate::pool::{AddressClaim, InstanceKey, Ipv6Prefix};

const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 7));

fn owner() -> Arc<StoredPeer> {
    Arc::new(StoredPeer {
        node: NodeName::from(ADDRESS),
        address: (ADDRESS, 8805).into(),
        recovery: Recovery(7),
        local: ADDRESS,
    })
}

/// Addresses that every third session keeps.
fn kept_by(number: u64) -> Box<[AddressClaim]> {
    let instance = InstanceKey::of(b"internet");
    let last = number.to_be_bytes()[7];
    let address = [10, 45, 0, last].into();
    let prefix = Ipv6Prefix::new([0x2001, 0xdb8, 0, last.into(), 0, 0, 0, 0].into(), 64);
    match number % 3 {
        0 => Box::new([
            AddressClaim::Ue { instance, address },
            AddressClaim::Prefix { instance, prefix },
        ]),
        _ => Box::default(),
    }
}

/// Creates a session whose rules encode its number and a version.
fn session(number: u64, version: u32) -> Arc<SessionRecord> {
    let pdi = Pdi::new(SourceInterface::ACCESS).local_f_teid(FTeid::new(version + 1, ADDRESS));
    let name = NodeId::fqdn("smf");
    let body = SessionEstablishmentRequest::new(name, FSeid::new(Seid(number), ADDRESS))
        .create_pdrs([CreatePdr::new(1, pdi).far_id(1)])
        .create_fars([CreateFar::new(1, ApplyAction::DROP)]);
    let bytes = Message::session(Seid(0), Sequence::new(1), body).encode();
    let bytes = bytes.expect("it fits");
    let frame = Frame::decode(&bytes).expect("it is one");
    let change = RuleSet::establish(&frame, &mut NoAllocator).expect("sound");
    Arc::new(SessionRecord {
        seid: Seid(number),
        peer_seid: Seid(number),
        owner: owner(),
        rules: change.rules,
        kept: kept_by(number),
        moved: number % 2 == 1,
    })
}

fn answer(number: u32) -> StoredResponse {
    let key = ResponseKey {
        peer: (ADDRESS, 8805).into(),
        sequence: Sequence::new(number),
        message_type: MessageType::SESSION_DELETION_REQUEST,
        digest: number.into(),
    };
    StoredResponse::new((key, Recovery(7)), Arc::from(&number.to_be_bytes()[..]))
}

fn config(path: &Path) -> StoreConfig {
    StoreConfig {
        path: Some(path.to_owned()),
        durability: Durability::Process,
        reserve: 1 << 16,
        ..StoreConfig::default()
    }
}

/// A store on disk, opened once.
struct Incarnation {
    store: Box<dyn Store>,
    recovery: Recovery,
    next_seid: u64,
}

/// With this time stamp, the first SEID is 1.
const NOW: Recovery = Recovery(61_000 << 16);

fn begin(path: &Path) -> Result<Incarnation, StoreError> {
    let given = OpenParams {
        answers: 4,
        now: NOW,
        seed: 5,
        probe: |seed| seed ^ 1,
    };
    let opened = LockedStore::lock(path)?.open(&config(path), given)?;
    assert_eq!(opened.seed, 5);
    Ok(Incarnation {
        store: Box::new(opened.store),
        recovery: opened.recovery,
        next_seid: opened.next_seid,
    })
}

fn write(store: &dyn Store, changes: Vec<StoreChange>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let written = runtime
        .expect("one thread")
        .block_on(store.write(changes).outcome());
    written.expect("there is room");
}

/// The contents of a store, in a fixed order.
type Listed = (
    Vec<Arc<SessionRecord>>,
    Vec<Arc<StoredPeer>>,
    Vec<StoredResponse>,
);

fn listed(store: &dyn Store) -> Listed {
    let mut answers = store.answers();
    // Responses of the same millisecond have no order.
    answers.sort_by_key(|answer| (answer.at, answer.key.sequence));
    (store.sessions(&|_| true), store.associations(), answers)
}

/// Writes all kinds of changes, each in its own group.
fn fill(store: &dyn Store) {
    write(store, vec![StoreChange::Associate(owner())]);
    for number in 1..=6 {
        let first = answer(u32::try_from(number).expect("small"));
        write(
            store,
            vec![
                StoreChange::Put(session(number, 0)),
                StoreChange::Answer(first),
            ],
        );
    }
    write(
        store,
        vec![
            StoreChange::Put(session(2, 1)),
            StoreChange::Put(session(2, 2)),
        ],
    );
    write(
        store,
        vec![
            StoreChange::Put(session(7, 0)),
            StoreChange::Remove(Seid(7)),
        ],
    );
    write(store, described().map(StoreChange::PutPfds).to_vec());
    write(store, vec![StoreChange::Remove(Seid(3))]);
}

/// Returns the packet flow descriptions that `fill` writes.
fn described() -> [Arc<StoredPfds>; 2] {
    [b"games", b"video"].map(|name| {
        let (application, contents) = (name.to_vec(), vec![0, 61, 0, 1, 7]);
        Arc::new(StoredPfds {
            application,
            contents,
        })
    })
}

fn expected() -> Listed {
    let sessions = [(1, 0), (2, 2), (4, 0), (5, 0), (6, 0)];
    let sessions = sessions.map(|(number, version)| session(number, version));
    (sessions.to_vec(), vec![owner()], Vec::new())
}

/// Removes the responses, whose times are not known beforehand.
fn without_times((sessions, owners, _): Listed) -> Listed {
    (sessions, owners, Vec::new())
}

/// Returns `true` if the database has written a table within a time.
fn has_table_within(path: &Path, limit: Duration) -> bool {
    let tables = path.join("db/keyspaces/1/tables");
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if fs::read_dir(&tables).is_ok_and(|mut files| files.next().is_some()) {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

#[test]
fn records_beyond_the_buffer_are_written_to_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = begin(folder.path()).expect("it opens").store;
    let pfds = Arc::new(StoredPfds {
        application: b"games".to_vec(),
        contents: vec![7; 60_000],
    });
    let writes = StoreConfig::default().buffer / 60_000;
    for _ in 0..=writes {
        write(&*store, vec![StoreChange::PutPfds(Arc::clone(&pfds))]);
    }
    assert!(has_table_within(folder.path(), Duration::from_secs(30)));
}

#[test]
fn memory_and_disk_stores_keep_exactly_what_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let forms: [Box<dyn Store>; 2] = [
        Box::new(MemoryStore::new(4)),
        begin(folder.path()).expect("it opens").store,
    ];
    for store in forms {
        fill(&*store);
        assert_eq!(without_times(listed(&*store)), expected());
        assert_eq!(store.descriptions(), described());
        write(&*store, vec![StoreChange::RemovePfds(b"games".to_vec())]);
        assert_eq!(store.descriptions(), described()[1..]);
        assert_eq!(store.len(), 5);
        assert_eq!(store.session(Seid(2)), Some(session(2, 2)));
        assert_eq!(store.session(Seid(3)), None);
        let numbers = store
            .answers()
            .into_iter()
            .map(|one| one.key.sequence.get());
        assert_eq!(numbers.collect::<Vec<_>>(), [3, 4, 5, 6]);
        write(&*store, vec![StoreChange::Release(owner().node.clone())]);
        assert_eq!(store.associations(), []);
    }
}

#[test]
fn reopened_store_has_same_contents() {
    let folder = tempfile::tempdir().expect("a folder");
    let life = begin(folder.path()).expect("it opens");
    assert_eq!((life.recovery, life.next_seid), (NOW, 1));
    fill(&*life.store);
    let before = listed(&*life.store);
    drop(life);
    for _ in 0..3 {
        let life = begin(folder.path()).expect("it opens");
        assert_eq!(life.store.health().loss, None);
        assert_eq!(listed(&*life.store), before);
        // Session 7 is gone, but a peer may still refer to it.
        assert_eq!((life.recovery, life.next_seid), (NOW, 8));
    }
}

#[test]
fn oldest_response_is_evicted_also_after_reopening() {
    let folder = tempfile::tempdir().expect("a folder");
    // One group, whose responses were written in a different order than they were created.
    let (mut first, mut second) = (answer(1), answer(2));
    (first.at, second.at) = (9, 8);
    let life = begin(folder.path()).expect("it opens");
    write(
        &*life.store,
        vec![StoreChange::Answer(first), StoreChange::Answer(second)],
    );
    drop(life);
    for number in 3..=5 {
        let life = begin(folder.path()).expect("it opens");
        write(&*life.store, vec![StoreChange::Answer(answer(number))]);
    }
    let life = begin(folder.path()).expect("it opens");
    let answers = life.store.answers().into_iter();
    let numbers: Vec<u32> = answers.map(|one| one.key.sequence.get()).collect();
    assert_eq!(numbers, [2, 3, 4, 5]);
}

/// Returns a store as a killed process leaves it.
fn killed() -> (tempfile::TempDir, Vec<(PathBuf, Vec<u8>)>) {
    let folder = tempfile::tempdir().expect("a folder");
    let life = begin(folder.path()).expect("it opens");
    fill(&*life.store);
    // The files have the same contents as after `kill -9`.
    let files = files(folder.path());
    drop(life);
    (folder, files)
}

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mut bytes = fs::read(&path).expect("a file");
            // The journal is preallocated and mostly empty.
            if bytes.len() > 1 << 20 {
                let end = bytes.iter().rposition(|&byte| byte != 0);
                bytes.truncate(end.map_or(0, |last| last + 1));
            }
            let name = path.strip_prefix(folder).expect("below it").to_owned();
            found.push((name, bytes));
        }
    }
    found.sort();
    found
}

fn put(folder: &Path, files: &[(PathBuf, Vec<u8>)]) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("below")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
}

fn journal(files: &mut [(PathBuf, Vec<u8>)]) -> &mut Vec<u8> {
    let is_journal = |name: &Path| name.extension().is_some_and(|it| it == "jnl");
    let mut journals = files.iter_mut().filter(|(name, _)| is_journal(name));
    &mut journals.next().expect("a journal").1
}

#[test]
fn killed_store_keeps_acknowledged_writes() {
    let (_folder, files) = killed();
    let next = tempfile::tempdir().expect("a folder");
    put(next.path(), &files);
    let life = begin(next.path()).expect("it opens");
    assert_eq!(without_times(listed(&*life.store)), expected());
    assert_eq!(life.store.descriptions(), described());
    assert_eq!((life.recovery, life.store.health().loss), (NOW, None));
}

#[test]
fn torn_tail_is_reported_and_prefix_survives() {
    let (_folder, files) = killed();
    let whole = journal(&mut files.clone()).len();
    let mut told = 0;
    for cut in (1..400).step_by(21) {
        let next = tempfile::tempdir().expect("a folder");
        let mut files = files.clone();
        journal(&mut files).truncate(whole - cut);
        put(next.path(), &files);
        let life = begin(next.path()).expect("it opens");
        let recovery = life.recovery;
        match life.store.health().loss {
            // If the cut only removes data of the database itself, all records exist.
            None => {
                assert_eq!(without_times(listed(&*life.store)), expected(), "{cut}");
                assert_eq!(recovery, NOW, "{cut}: nothing is lost");
            }
            Some(loss) => {
                told += 1;
                assert!(loss.groups_missing >= 1, "{cut}: {loss}");
                assert_ne!(recovery, NOW, "{cut}: peers are told");
                assert!(life.store.len() >= 5, "{cut}: {loss}");
            }
        }
        // A loss is reported only once.
        drop(life);
        let life = begin(next.path()).expect("it opens");
        assert_eq!((life.recovery, life.store.health().loss), (recovery, None));
    }
    assert!(told > 10, "{told}");
}

#[test]
fn torn_removal_is_atomic_or_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let life = begin(folder.path()).expect("it opens");
    fill(&*life.store);
    let before = listed(&*life.store);
    let removal = vec![
        StoreChange::RemovePfds(b"games".to_vec()),
        StoreChange::Release(owner().node.clone()),
        StoreChange::Remove(Seid(1)),
        StoreChange::Remove(Seid(2)),
        StoreChange::Remove(Seid(4)),
        StoreChange::Remove(Seid(5)),
        StoreChange::Remove(Seid(6)),
    ];
    write(&*life.store, removal);
    let files = files(folder.path());
    drop(life);
    let whole = journal(&mut files.clone()).len();
    let (mut done, mut missing) = (0, 0);
    for cut in (1..200).step_by(7) {
        let next = tempfile::tempdir().expect("a folder");
        let mut files = files.clone();
        journal(&mut files).truncate(whole - cut);
        put(next.path(), &files);
        let life = begin(next.path()).expect("it opens");
        match life.store.health().loss {
            None => {
                done += 1;
                assert_eq!(life.store.descriptions(), described()[1..], "{cut}");
                assert_eq!((life.store.associations(), life.store.len()), (vec![], 0));
                assert_eq!(life.recovery, NOW, "{cut}: nothing is lost");
            }
            Some(loss) => {
                missing += 1;
                assert_eq!(loss.groups_missing, 1, "{cut}: {loss}");
                assert_eq!(listed(&*life.store), before, "{cut}: {loss}");
                assert_ne!(life.recovery, NOW, "{cut}: peers are told");
            }
        }
    }
    assert!(done > 0 && missing > 0, "{done} done, {missing} missing");
}

/// The effect of a flipped bit.
#[derive(Debug, PartialEq, Eq)]
enum FlipOutcome {
    /// All records exist.
    Whole,
    /// Records are missing, and the node reports the loss.
    Told(StoreLoss),
    /// The store does not open.
    WriteRefused,
}

fn flipped(files: &[(PathBuf, Vec<u8>)], file: usize, bit: usize) -> FlipOutcome {
    let next = tempfile::tempdir().expect("a folder");
    let mut files = files.to_vec();
    files[file].1[bit / 8] ^= 1 << (bit % 8);
    put(next.path(), &files);
    let Ok(life) = begin(next.path()) else {
        return FlipOutcome::WriteRefused;
    };
    let (sessions, owners, _) = expected();
    let whole = life.store.sessions(&|_| true) == sessions && life.store.associations() == owners;
    let at = (&files[file].0, bit);
    match life.store.health().loss {
        Some(loss) => {
            assert_ne!(life.recovery, NOW, "{at:?}: peers are told");
            assert!(
                life.store.len() >= 4,
                "{at:?}: the rest is salvaged: {loss}"
            );
            FlipOutcome::Told(loss)
        }
        None => {
            assert!(whole, "{at:?}: something is missing and nobody is told");
            assert_eq!(
                life.recovery, NOW,
                "{at:?}: nothing is lost, so nobody is told"
            );
            FlipOutcome::Whole
        }
    }
}

/// Flips one bit in each stretch of bytes of each file.
fn flip_all(stretch: usize) {
    let (_folder, files) = killed();
    let (mut whole, mut told, mut refused) = (0, 0, 0);
    for (file, (name, bytes)) in files.iter().enumerate() {
        if name.ends_with("reserve") {
            continue;
        }
        for byte in (0..bytes.len()).step_by(stretch) {
            // A different bit of the byte each time.
            match flipped(&files, file, byte * 8 + byte % 8) {
                FlipOutcome::Whole => whole += 1,
                FlipOutcome::Told(_) => told += 1,
                FlipOutcome::WriteRefused => refused += 1,
            }
        }
    }
    println!("{whole} whole, {told} told, {refused} refused to open, 0 silent");
    assert_eq!(refused, 0, "a store that is damaged is salvaged");
}

#[test]
fn bit_flip_is_always_reported() {
    // 1 flips a bit in every byte, which takes minutes.
    let stretch = std::env::var("STROWGER_FLIP_STRETCH").ok();
    flip_all(stretch.and_then(|text| text.parse().ok()).unwrap_or(149));
}
