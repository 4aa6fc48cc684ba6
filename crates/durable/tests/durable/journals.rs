//! Stores with several journals: after a kill, with damage, and while a journal is replaced.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use strowger_durable::store::tools::{RepairOptions, StoppedStore, repair};
use strowger_durable::store::{
    Batch, EntityId, Fence, FjallOptions, FjallStore, OpenError, Sequence, Store, Table,
};
use tokio::task::JoinSet;

const FOLDER: &str = "STROWGER_DURABLE_JOURNALS_FOLDER";
/// Bytes in memory until a table is written.
const BUFFER: u64 = 1 << 20;
/// Rows of an append that fills memtables, and their length in bytes.
const ROWS: u64 = 16;
const ROW_LENGTH: usize = 4 << 10;
const APPEND_BYTES: u64 = ROWS * ROW_LENGTH as u64;
/// Maximum time for one write, and for closing a store.
const DEADLINE: Duration = Duration::from_secs(20);

fn open(path: &Path) -> Result<FjallStore, OpenError> {
    let options = FjallOptions {
        buffer: BUFFER,
        // Each write is a commit of its own.
        group: 1,
        write_deadline: DEADLINE,
        ..FjallOptions::default()
    };
    FjallStore::open(path, options)
}

/// Closes a store, which must not take longer than the deadline.
fn close(store: FjallStore) {
    let (closed, is_closed) = mpsc::channel();
    std::thread::spawn(move || {
        drop(store);
        let _ = closed.send(());
    });
    let ended = is_closed.recv_timeout(DEADLINE);
    ended.expect("memtables are written when the store is closed");
}

/// An entity under a lease.
struct Appender<'a> {
    store: &'a FjallStore,
    entity: EntityId,
    fence: Fence,
    sequence: Sequence,
}

impl<'a> Appender<'a> {
    async fn new(store: &'a FjallStore, key: &str) -> Self {
        let entity = EntityId::new("test", key).expect("a short name");
        let fence = store.lease(&entity).await.expect("a lease");
        let sequence = store.read(&entity).await.expect("it is readable").sequence;
        Self {
            store,
            entity,
            fence,
            sequence,
        }
    }

    async fn append(&mut self, batch: Batch) {
        let (expected, fence) = (self.sequence, self.fence);
        let appended = self.store.append(&self.entity, expected, fence, batch);
        self.sequence = appended.await.expect("it is written");
    }

    /// Appends some rows, which differ from those of any other append.
    async fn append_rows(&mut self) {
        let mut batch = Batch::new();
        for number in 0..ROWS {
            let key = (self.sequence.0 * ROWS + number).to_be_bytes();
            batch.put(Table::State, key, key.repeat(ROW_LENGTH / key.len()));
        }
        self.append(batch).await;
    }
}

/// Asserts that an entity has the rows of at least so many appends.
async fn assert_rows(store: &FjallStore, key: &str, appends: u64) {
    let entity = EntityId::new("test", key).expect("a short name");
    let found = store.read(&entity).await.expect("it is readable");
    let Sequence(sequence) = found.sequence;
    assert!(sequence >= appends, "{sequence} of {appends} appends");
    assert_eq!(found.rows.len() as u64, sequence * ROWS);
    for (number, row) in (0_u64..).zip(&found.rows) {
        let key = number.to_be_bytes();
        assert_eq!(row.key, key);
        assert!(
            row.value == key.repeat(ROW_LENGTH / key.len()),
            "row {number}"
        );
    }
}

/// The number of journals that [`split_journal`] makes.
const PARTS: usize = 6;

/// Returns the folder of a store that was killed with many memtables in memory: it has journals
/// with the rows of so many appends, and no tables.
async fn store_without_tables(appends: u64) -> tempfile::TempDir {
    killed_store(0, appends).await
}

/// Returns the folder of a store that was killed with many memtables in memory: it has tables with
/// the rows of so many appends, and journals with those of so many later ones.
async fn killed_store(in_tables: u64, appends: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let (written, killed) = (folder.path().join("written"), folder.path().join("killed"));
    let store = open(&written).expect("it opens");
    if in_tables > 0 {
        let mut appender = Appender::new(&store, "large").await;
        for _ in 0..in_tables {
            appender.append_rows().await;
        }
    }
    close(store);
    assert_eq!(table_bytes(&written) > 0, in_tables > 0);
    copy(&written, &killed);
    let store = open(&written).expect("it opens");
    let mut appender = Appender::new(&store, "large").await;
    for _ in 0..appends {
        appender.append_rows().await;
    }
    // As a kill leaves them: all commits are in the journal, which has not been replaced yet.
    for name in ["mark", "db/0.jnl"] {
        std::fs::copy(written.join(name), killed.join(name)).expect("it is there");
    }
    close(store);
    split_journal(&killed.join("db"));
    folder
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("it is readable");
        }
    }
}

/// Distributes the batches of a journal over several. The database fills a journal with 64 MB
/// before it begins the next one, and seals the memtable with it.
fn split_journal(database: &Path) {
    let bytes = std::fs::read(database.join("0.jnl")).expect("a journal");
    let mut ends = Vec::new();
    for (at, part) in bytes.windows(4).enumerate() {
        if part == b"FJL\x03" {
            ends.push(at + 4);
        }
    }
    let mut start = 0;
    for part in 0..PARTS {
        let end = ends[(part + 1) * ends.len() / PARTS - 1];
        let path = database.join(format!("{part}.jnl"));
        std::fs::write(path, &bytes[start..end]).expect("it is written");
        start = end;
    }
}

#[tokio::test]
async fn store_killed_with_many_memtables_in_memory_has_all_writes_and_takes_more() {
    const APPENDS: u64 = 36;
    let folder = store_without_tables(APPENDS).await;
    let killed = folder.path().join("killed");
    let store = open(&killed).expect("it opens");
    assert_rows(&store, "large", APPENDS).await;
    let mut appender = Appender::new(&store, "large").await;
    for _ in 0..APPENDS {
        appender.append_rows().await;
    }
    close(store);
    let store = open(&killed).expect("it opens");
    assert_rows(&store, "large", 2 * APPENDS).await;
}

/// Appends so many batches, each of which removes so many rows that do not exist. Tasks do so for
/// an entity each, so that one waits while another is served.
async fn append_removals(store: &FjallStore, round: u64, appends: u64, removals: u64) {
    const TASKS: u64 = 4;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let store = store.clone();
        tasks.spawn(async move {
            let key = format!("{round}-{removals}-{task}");
            let mut appender = Appender::new(&store, &key).await;
            for _ in 0..appends / TASKS {
                let mut batch = Batch::new();
                for row in 0..removals {
                    batch.remove(Table::State, row.to_be_bytes());
                }
                appender.append(batch).await;
            }
        });
    }
    let written = tokio::time::timeout(DEADLINE, tasks.join_all());
    written.await.expect("writes end");
}

#[tokio::test]
async fn tables_are_written_while_thousands_of_commits_arrive() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path()).expect("it opens");
    let mut appender = Appender::new(&store, "large").await;
    for round in 0..2 {
        // A memtable whose table takes a while, and rows behind it that need a table too.
        for _ in 0..160 {
            appender.append_rows().await;
        }
        // More commits than the database queues for its worker, then long ones, one of which is
        // under way when the table is written.
        append_removals(&store, round, 1200, 0).await;
        append_removals(&store, round, 400, 60).await;
    }
    close(store);
}

/// Appends rows until some tables have been written and the last rows are not in them, and kills
/// this process. Its parent might read what it says much later.
#[expect(clippy::print_stdout, reason = "the parent reads it")]
async fn append_until_killed(folder: &Path) {
    const MAX_APPENDS: u64 = 1000;
    let store = open(folder).expect("it opens");
    let mut appender = Appender::new(&store, "large").await;
    for appends in 1..=MAX_APPENDS {
        appender.append_rows().await;
        println!("appended {appends}");
        let tables = table_bytes(folder);
        if tables > 0 && appends * APPEND_BYTES > tables + 2 * APPEND_BYTES {
            kill_process(getpid(), Signal::KILL).expect("it may");
        }
    }
}

/// The program of a child; in the parent, it does nothing.
#[tokio::test]
async fn appending_child() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        append_until_killed(Path::new(&folder)).await;
    }
}

/// The program of another one.
#[test]
fn accepting_child() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let options = FjallOptions {
            accept_loss: true,
            ..FjallOptions::default()
        };
        let _store = FjallStore::open(folder, options).expect("it opens");
        kill_process(getpid(), Signal::KILL).expect("it may");
    }
}

/// Starts a child, which kills itself, and returns its output.
fn run_child(program: &str, folder: &Path) -> String {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", &format!("journals::{program}"), "--nocapture"]);
    let output = child.env(FOLDER, folder).output().expect("it runs");
    let killed = Some(Signal::KILL.as_raw());
    assert_eq!(output.status.signal(), killed, "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Starts a child that is killed while a memtable is not written to a table yet, and returns the
/// last append that it acknowledged.
fn run_appending_child(folder: &Path) -> u64 {
    let output = run_child("appending_child", folder);
    let (_, last) = output.rsplit_once("appended ").expect("an append");
    last.trim_end().parse().expect("a number")
}

/// Returns the bytes of the tables of a store that may be open.
fn table_bytes(path: &Path) -> u64 {
    let tables = std::fs::read_dir(path.join("db/keyspaces/1/tables")).expect("a folder");
    // A compaction may remove a table meanwhile.
    let lengths = tables.filter_map(|table| Some(table.ok()?.metadata().ok()?.len()));
    lengths.sum()
}

#[tokio::test]
async fn process_killed_before_a_memtable_is_written_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let acknowledged = run_appending_child(folder.path());
    let store = open(folder.path()).expect("it opens");
    assert_rows(&store, "large", acknowledged).await;
    let mut appender = Appender::new(&store, "large").await;
    for _ in 0..20 {
        appender.append_rows().await;
    }
    close(store);
    let store = open(folder.path()).expect("it opens");
    assert_rows(&store, "large", acknowledged + 20).await;
}

#[tokio::test]
async fn damaged_byte_in_one_of_several_journals_is_refused_with_the_remedy() {
    let folder = store_without_tables(30).await;
    let killed = folder.path().join("killed");
    let journal = |number| killed.join(format!("db/{number}.jnl"));
    for number in [0, 2, PARTS - 1] {
        let intact = std::fs::read(journal(number)).expect("a journal");
        // In a batch with others behind it, and in the last one.
        for at in [intact.len() / 2, intact.len() - 1, intact.len() - 40] {
            let mut damaged = intact.clone();
            damaged[at] ^= 1;
            std::fs::write(journal(number), &damaged).expect("it is written");
            let refused = open(&killed).expect_err("acknowledged writes are damaged");
            assert!(
                matches!(refused, OpenError::Damaged { .. } | OpenError::Lost { .. }),
                "{refused:?}"
            );
            let text = refused.to_string();
            assert!(text.contains("strowger store repair"), "{text}");
            if let OpenError::Damaged { detail, .. } = refused {
                assert!(
                    detail.contains(&format!("journal {number}.jnl")),
                    "{detail}"
                );
            }
            std::fs::write(journal(number), &intact).expect("it is written");
        }
    }
    let store = open(&killed).expect("it is intact again");
    assert_rows(&store, "large", 30).await;
}

/// Returns a journal without its last batch.
fn without_last_batch(journal: &[u8]) -> &[u8] {
    let end = journal[..journal.len() - 1]
        .windows(4)
        .rposition(|part| part == b"FJL\x03");
    &journal[..end.expect("several batches") + 4]
}

#[tokio::test]
async fn journal_that_ends_early_is_refused_with_the_remedy() {
    let folder = store_without_tables(30).await;
    let killed = folder.path().join("killed");
    for number in [0, 2, PARTS - 2] {
        let journal = killed.join(format!("db/{number}.jnl"));
        let intact = std::fs::read(&journal).expect("a journal");
        // The rest may also be zeros, as if it had never reached the disk.
        let cut = without_last_batch(&intact);
        let mut zeroed = cut.to_vec();
        zeroed.resize(intact.len(), 0);
        for damaged in [cut, &zeroed, &[]] {
            std::fs::write(&journal, damaged).expect("it is written");
            let refused = open(&killed).expect_err("acknowledged writes are missing");
            let text = refused.to_string();
            let at = damaged.len().min(cut.len());
            let detail =
                format!("journal {number}.jnl ends at byte {at}, and groups are missing behind it");
            assert!(text.contains(&detail), "{text}");
            assert!(text.contains("strowger store repair"), "{text}");
            let stopped = StoppedStore::open(&killed).expect("it is stopped");
            let report = stopped.check(&mut |_| {}).expect("it is readable");
            assert_eq!(report.damaged_journals, [detail]);
            assert!(report.lost_groups > 0);
        }
        std::fs::write(&journal, &intact).expect("it is written");
    }
    let journal = killed.join("db/2.jnl");
    let intact = std::fs::read(&journal).expect("a journal");
    std::fs::remove_file(&journal).expect("it is there");
    let refused = open(&killed).expect_err("acknowledged writes are missing");
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused:?}");
    std::fs::write(&journal, &intact).expect("it is written");
    let store = open(&killed).expect("it is intact again");
    assert_rows(&store, "large", 30).await;
}

#[tokio::test]
async fn missing_oldest_journals_are_refused_with_the_remedy() {
    for in_tables in [0, 20] {
        let folder = killed_store(in_tables, 30).await;
        let killed = folder.path().join("killed");
        for oldest in [1, 3, PARTS - 1] {
            let damaged = folder.path().join(format!("without-{oldest}"));
            copy(&killed, &damaged);
            for number in 0..oldest {
                std::fs::remove_file(damaged.join(format!("db/{number}.jnl"))).expect("there");
            }
            let detail = format!("groups before journal {oldest}.jnl are missing");
            // The first attempt changes nothing.
            for _ in 0..2 {
                let text = open(&damaged).expect_err("writes are missing").to_string();
                assert!(text.contains(&detail), "{text}");
                assert!(text.contains("strowger store repair"), "{text}");
            }
            let stopped = StoppedStore::open(&damaged).expect("it is stopped");
            let report = stopped.check(&mut |_| {}).expect("it is readable");
            assert_eq!(report.damaged_journals, [detail]);
            assert!(report.lost_groups >= 30, "{}", report.lost_groups);
            drop(stopped);

            let accepted = folder.path().join(format!("accepted-{oldest}"));
            copy(&damaged, &accepted);
            run_child("accepting_child", &accepted);
            close(open(&accepted).expect("its loss was accepted"));

            let report = repair(&damaged, RepairOptions::default(), &mut |_| {});
            assert!(report.expect("it is repaired").is_needed);
            let store = open(&damaged).expect("it was repaired");
            assert_rows(&store, "large", in_tables).await;
            close(store);
        }
        let store = open(&killed).expect("it is intact");
        assert_rows(&store, "large", in_tables + 30).await;
        close(store);
    }
}

/// Removes all journals of a store.
fn remove_journals(path: &Path) {
    for entry in std::fs::read_dir(path.join("db")).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|end| end == "jnl") {
            std::fs::remove_file(path).expect("it is there");
        }
    }
}

#[tokio::test]
async fn tables_are_read_although_all_journals_are_missing() {
    const IN_TABLES: u64 = 20;
    let folder = killed_store(IN_TABLES, 30).await;
    let (killed, stopped) = (folder.path().join("killed"), folder.path().join("written"));
    // After a clean stop, nothing is missing.
    remove_journals(&stopped);
    {
        let stopped = StoppedStore::open(&stopped).expect("it is stopped");
        let report = stopped.check(&mut |_| {}).expect("it is readable");
        assert!(report.is_intact(), "{report:?}");
    }
    let store = open(&stopped).expect("it opens");
    assert_rows(&store, "large", IN_TABLES + 30).await;
    Appender::new(&store, "large").await.append_rows().await;
    close(store);
    let store = open(&stopped).expect("it opens");
    assert_rows(&store, "large", IN_TABLES + 31).await;
    close(store);

    remove_journals(&killed);
    for _ in 0..2 {
        let refused = open(&killed).expect_err("acknowledged writes are missing");
        let OpenError::Lost { groups, .. } = refused else {
            panic!("{refused:?}");
        };
        assert!((30..40).contains(&groups), "{groups}");
    }
    let repaired = folder.path().join("repaired");
    copy(&killed, &repaired);
    repair(&repaired, RepairOptions::default(), &mut |_| {}).expect("it is repaired");
    run_child("accepting_child", &killed);
    for path in [&repaired, &killed] {
        let store = open(path).expect("the loss was accepted");
        assert_rows(&store, "large", IN_TABLES).await;
        Appender::new(&store, "large").await.append_rows().await;
        close(store);
        let store = open(path).expect("it opens");
        assert_rows(&store, "large", IN_TABLES + 1).await;
        close(store);
    }
}

#[tokio::test]
async fn loss_in_a_sealed_journal_is_accepted_once() {
    let folder = store_without_tables(30).await;
    let killed = folder.path().join("killed");
    let journal = |copy: &Path| copy.join("db/2.jnl");
    let intact = std::fs::read(journal(&killed)).expect("a journal");
    let mut flipped = intact.clone();
    flipped[intact.len() - 40] ^= 1;
    for (number, damaged) in [without_last_batch(&intact), &flipped]
        .into_iter()
        .enumerate()
    {
        let accepted = folder.path().join(format!("accepted-{number}"));
        let repaired = folder.path().join(format!("repaired-{number}"));
        for copied in [&accepted, &repaired] {
            copy(&killed, copied);
            std::fs::write(journal(copied), damaged).expect("it is written");
            open(copied).expect_err("acknowledged writes are missing");
        }
        run_child("accepting_child", &accepted);
        let store = open(&accepted).expect("its loss was accepted");
        let mut appender = Appender::new(&store, "another").await;
        appender.append_rows().await;
        close(store);

        let report = repair(&repaired, RepairOptions::default(), &mut |_| {});
        assert!(report.expect("it is repaired").is_needed);
        // All groups up to the first one that is missing.
        let store = open(&repaired).expect("it was repaired");
        assert_rows(&store, "large", 10).await;
        close(store);
    }
}

#[tokio::test]
async fn writes_are_acknowledged_within_the_deadline_while_a_journal_is_replaced() {
    const LENGTH: usize = 4 << 20;
    let folder = tempfile::tempdir().expect("a folder");
    let options = FjallOptions {
        buffer: 16 << 20,
        write_deadline: Duration::from_secs(10),
        ..FjallOptions::default()
    };
    let open = || FjallStore::open(folder.path(), options).expect("it opens");
    let value = |sequence: Sequence| vec![sequence.0.to_le_bytes()[0]; LENGTH];
    let store = open();
    let mut appender = Appender::new(&store, "a").await;
    let second = folder.path().join("db/1.jnl");
    // A write that takes longer than the deadline is an error.
    while !second.exists() {
        let mut batch = Batch::new();
        batch.put(Table::State, [], value(appender.sequence));
        appender.append(batch).await;
        assert!(appender.sequence.0 < 100, "the journal is never replaced");
    }
    appender.append(Batch::new()).await;
    let (entity, last) = (appender.entity, appender.sequence);
    close(store);
    let found = open().read(&entity).await.expect("it is readable");
    assert_eq!(found.sequence, last);
    assert!(found.rows[0].value == value(Sequence(last.0 - 2)));
}
