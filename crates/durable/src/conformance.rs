//! The conformance suite that every [`Store`] must pass.
//!
//! [`check`] panics with the name of the case and the difference. It runs on any tokio runtime.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::store::{
    Batch, EntityId, EntityRows, EventNumber, Fence, Row, RowSelection, Sequence, Store,
    StoreError, StoreFault, Table, Wake,
};

/// A store that the suite can restart and inject faults into.
pub trait StoreUnderTest {
    /// Returns the open store.
    fn store(&self) -> Arc<dyn Store>;

    /// Closes the store and opens it again, as a restart of the process does.
    fn reopen(&mut self) -> impl Future<Output = ()>;

    /// Injects a fault into the next append.
    fn inject(&self, fault: StoreFault) -> impl Future<Output = ()>;
}

/// Tests an implementation. `make` returns an empty store each time.
///
/// # Panics
/// Panics if the implementation does not conform.
pub async fn check<S: StoreUnderTest>(mut make: impl FnMut() -> S) {
    rows_are_those_of_the_last_batches(make()).await;
    events_are_read_from_a_number(make()).await;
    batches_of_any_kind_count(make()).await;
    wrong_sequence_changes_nothing(make()).await;
    stale_fence_changes_nothing(make()).await;
    entities_do_not_affect_each_other(make()).await;
    oversized_rows_are_refused(make()).await;
    concurrent_appends_have_one_winner(make()).await;
    full_disk_refuses_and_recovers(make()).await;
    failed_sync_ends_the_service(make()).await;
    damaged_entity_is_refused_alone(make()).await;
    tables_are_separate(make()).await;
    stored_keys_are_listed_in_pages(make()).await;
    wake_up_times_are_listed_in_order(make()).await;
}

fn entity(key: &str) -> EntityId {
    EntityId::new("test", key).expect("a short name")
}

/// Returns a batch that writes a state.
fn state(value: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.put(Table::State, [], value);
    batch
}

fn row(table: Table, key: &[u8], value: &[u8]) -> Row {
    Row {
        table,
        key: key.to_vec(),
        value: value.to_vec(),
    }
}

async fn lease(test: &impl StoreUnderTest, entity: &EntityId) -> Fence {
    test.store().lease(entity).await.expect("a lease")
}

async fn read(test: &impl StoreUnderTest, entity: &EntityId) -> EntityRows {
    test.store().read(entity).await.expect("it can be read")
}

async fn append(
    test: &impl StoreUnderTest,
    entity: &EntityId,
    expected: u64,
    fence: Fence,
    batch: Batch,
) -> Result<Sequence, StoreError> {
    let store = test.store();
    store.append(entity, Sequence(expected), fence, batch).await
}

async fn rows_are_those_of_the_last_batches(mut test: impl StoreUnderTest) {
    let entity = entity("rows");
    assert_eq!(read(&test, &entity).await, EntityRows::default());
    let fence = lease(&test, &entity).await;
    let mut first = state(b"one");
    first.put(Table::Answers, *b"a", *b"1");
    first.put(Table::Answers, *b"b", *b"2");
    first.put(Table::Answers, *b"b", *b"3");
    assert_eq!(
        append(&test, &entity, 0, fence, first).await,
        Ok(Sequence(1))
    );
    let mut second = state(b"two");
    second.remove(Table::Answers, *b"a");
    second.remove(Table::Answers, *b"absent");
    assert_eq!(
        append(&test, &entity, 1, fence, second).await,
        Ok(Sequence(2))
    );
    let empty = append(&test, &entity, 2, fence, Batch::new()).await;
    assert_eq!(empty, Ok(Sequence(3)), "an empty batch counts");
    let expected = EntityRows {
        sequence: Sequence(3),
        rows: vec![
            row(Table::State, b"", b"two"),
            row(Table::Answers, b"b", b"3"),
        ],
    };
    assert_eq!(read(&test, &entity).await, expected);
    test.reopen().await;
    assert_eq!(read(&test, &entity).await, expected, "after a restart");
    assert!(
        lease(&test, &entity).await > fence,
        "fences rise across restarts"
    );
}

async fn events_are_read_from_a_number(mut test: impl StoreUnderTest) {
    let entity = entity("events");
    let fence = lease(&test, &entity).await;
    let numbers = [1, 2, 255, 256, 257, 65536, u64::MAX];
    let mut batch = state(b"one");
    batch.put(Table::Answers, *b"a", *b"1");
    batch.put(Table::Snapshot, [], *b"2");
    for number in numbers {
        let value = number.to_string();
        batch.put(Table::Events, EventNumber(number).row_key(), value);
    }
    let appended = append(&test, &entity, 0, fence, batch).await;
    assert_eq!(appended, Ok(Sequence(1)));
    // The next entity in order.
    let next = EntityId::new("test", "eventt").expect("a short name");
    let fence = lease(&test, &next).await;
    let mut batch = Batch::new();
    batch.put(Table::Events, EventNumber(300).row_key(), *b"other");
    let appended = append(&test, &next, 0, fence, batch).await;
    assert_eq!(appended, Ok(Sequence(1)));
    test.reopen().await;
    let event = |number: u64| {
        let value = number.to_string();
        row(
            Table::Events,
            &EventNumber(number).row_key(),
            value.as_bytes(),
        )
    };
    for from in [0, 1, 3, 256, 258, u64::MAX] {
        let selection = RowSelection::EventsFrom(EventNumber(from));
        let found = test.store().read_selected(&entity, selection).await;
        let expected = numbers.into_iter().filter(|number| *number >= from);
        let expected = EntityRows {
            sequence: Sequence(1),
            rows: expected.map(event).collect(),
        };
        assert_eq!(found, Ok(expected), "from {from}");
    }
    let others = test
        .store()
        .read_selected(&entity, RowSelection::AllButEvents)
        .await;
    let others = others.expect("it can be read").rows;
    let expected = [
        row(Table::State, b"", b"one"),
        row(Table::Answers, b"a", b"1"),
        row(Table::Snapshot, b"", b"2"),
    ];
    assert_eq!(others, expected);
    let all = read(&test, &entity).await.rows;
    assert_eq!(all.len(), others.len() + numbers.len());
    assert_eq!(all[2..9], numbers.map(event));
}

/// Batches that write the state, remove it or do not touch it are counted, and the count survives a
/// restart after each of them.
async fn batches_of_any_kind_count(mut test: impl StoreUnderTest) {
    let entity = entity("count");
    let mut removed = Batch::new();
    removed.remove(Table::State, []);
    let mut removed_after_all = state(b"four");
    removed_after_all.remove(Table::State, []);
    let mut answer = Batch::new();
    answer.put(Table::Answers, *b"a", *b"1");
    let mut beside_the_state = Batch::new();
    beside_the_state.put(Table::State, *b"part", *b"1");
    let mut wake = state(b"nine");
    wake.set_wake(Some(Duration::from_secs(9)));
    let batches = [
        state(b"one"),
        state(b"two"),
        removed,
        removed_after_all,
        answer,
        state(b"six"),
        state(b"seven"),
        beside_the_state,
        wake,
        state(b"ten"),
        Batch::new(),
    ];
    for (batch, number) in batches.into_iter().zip(1..) {
        let fence = lease(&test, &entity).await;
        let appended = append(&test, &entity, number - 1, fence, batch).await;
        assert_eq!(appended, Ok(Sequence(number)));
        assert_eq!(read(&test, &entity).await.sequence, Sequence(number));
        let listed = test.store().list("test", None, 10).await.expect("a list");
        assert_eq!(listed.len(), 1, "after batch {number}");
        test.reopen().await;
        let found = read(&test, &entity).await.sequence;
        assert_eq!(found, Sequence(number), "after a restart");
    }
    let wakes = test.store().wakes("test", None, 10).await.expect("a list");
    assert_eq!(wakes[0].at, Duration::from_secs(9));
}

async fn wrong_sequence_changes_nothing(test: impl StoreUnderTest) {
    let entity = entity("sequence");
    let fence = lease(&test, &entity).await;
    append(&test, &entity, 0, fence, state(b"one"))
        .await
        .expect("it is the first");
    for expected in [0, 2] {
        let refused = append(&test, &entity, expected, fence, state(b"two")).await;
        let error = StoreError::WrongSequence {
            entity: entity.clone(),
            expected: Sequence(expected),
            found: Sequence(1),
        };
        assert_eq!(refused, Err(error));
    }
    let found = read(&test, &entity).await;
    assert_eq!(
        (found.sequence, &*found.rows[0].value),
        (Sequence(1), &b"one"[..])
    );
}

async fn stale_fence_changes_nothing(mut test: impl StoreUnderTest) {
    let entity = entity("fence");
    let first = lease(&test, &entity).await;
    let second = lease(&test, &entity).await;
    assert!(second > first);
    test.reopen().await;
    let refused = append(&test, &entity, 0, first, state(b"late")).await;
    let error = StoreError::StaleFence {
        entity: entity.clone(),
        fence: first,
        current: second,
    };
    assert_eq!(refused, Err(error));
    assert_eq!(read(&test, &entity).await.sequence, Sequence(0));
    let appended = append(&test, &entity, 0, second, state(b"one")).await;
    assert_eq!(appended, Ok(Sequence(1)));
}

async fn entities_do_not_affect_each_other(test: impl StoreUnderTest) {
    // Concatenated, the parts of these names are the same.
    let names = [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc")];
    let names = names.map(|(kind, key)| EntityId::new(kind, key).expect("a short name"));
    for name in &names {
        let fence = lease(&test, name).await;
        let appended = append(&test, name, 0, fence, state(name.kind().as_bytes())).await;
        assert_eq!(appended, Ok(Sequence(1)));
    }
    for name in &names {
        let expected = [row(Table::State, b"", name.kind().as_bytes())];
        assert_eq!(read(&test, name).await.rows, expected);
    }
}

async fn oversized_rows_are_refused(test: impl StoreUnderTest) {
    let entity = entity("large");
    let fence = lease(&test, &entity).await;
    let large = vec![0; Batch::MAX_VALUE + 1];
    let refused = append(&test, &entity, 0, fence, state(&large)).await;
    assert!(
        matches!(refused, Err(StoreError::TooLarge { limit, .. }) if limit == Batch::MAX_VALUE)
    );
    let mut batch = Batch::new();
    batch.put(Table::Answers, vec![0; Batch::MAX_KEY + 1], []);
    let refused = append(&test, &entity, 0, fence, batch).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { limit, .. }) if limit == Batch::MAX_KEY));
    assert_eq!(read(&test, &entity).await, EntityRows::default());
}

async fn concurrent_appends_have_one_winner(test: impl StoreUnderTest) {
    let entity = entity("race");
    let fence = lease(&test, &entity).await;
    let tasks: Vec<_> = (0..16_u8)
        .map(|number| {
            let batch = state(&[number]);
            let append = test.store().append(&entity, Sequence(0), fence, batch);
            tokio::spawn(async move { (number, append.await) })
        })
        .collect();
    let mut winners = Vec::new();
    for task in tasks {
        match task.await.expect("no panic") {
            (number, Ok(_)) => winners.push(number),
            (_, Err(error)) => assert!(matches!(error, StoreError::WrongSequence { .. })),
        }
    }
    let found = read(&test, &entity).await;
    assert_eq!(found.rows, [row(Table::State, b"", &winners)]);
}

async fn full_disk_refuses_and_recovers(mut test: impl StoreUnderTest) {
    let entity = entity("full");
    let fence = lease(&test, &entity).await;
    append(&test, &entity, 0, fence, state(b"one"))
        .await
        .expect("there is room");
    test.inject(StoreFault::DiskFull).await;
    let refused = append(&test, &entity, 1, fence, state(b"two")).await;
    assert!(
        matches!(refused, Err(StoreError::DiskFull { .. })),
        "{refused:?}"
    );
    // The store decides when it looks for room again; the caller repeats.
    let mut patience = 300;
    let found = loop {
        match test.store().read(&entity).await {
            Ok(found) => break found,
            Err(error) => assert!(
                matches!(error, StoreError::DiskFull { .. }) && patience > 0,
                "{error}"
            ),
        }
        patience -= 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let next = append(&test, &entity, found.sequence.0, fence, state(b"three")).await;
    assert_eq!(next, Ok(found.sequence.next()));
    test.reopen().await;
    let expected = [row(Table::State, b"", b"three")];
    assert_eq!(read(&test, &entity).await.rows, expected);
}

async fn failed_sync_ends_the_service(mut test: impl StoreUnderTest) {
    let entity = entity("sync");
    let fence = lease(&test, &entity).await;
    append(&test, &entity, 0, fence, state(b"one"))
        .await
        .expect("it is written");
    test.inject(StoreFault::SyncFailed).await;
    let failed = append(&test, &entity, 1, fence, state(b"two")).await;
    assert!(
        matches!(failed, Err(StoreError::Failed { .. })),
        "{failed:?}"
    );
    for _ in 0..2 {
        let refused = append(&test, &entity, 1, fence, state(b"three")).await;
        assert_eq!(refused, failed, "it is not tried again");
        let refused = test.store().read(&entity).await;
        assert!(matches!(refused, Err(StoreError::Failed { .. })));
        let refused = test.store().lease(&entity).await;
        assert!(matches!(refused, Err(StoreError::Failed { .. })));
    }
    test.reopen().await;
    let found = read(&test, &entity).await;
    assert!(
        matches!(found.sequence, Sequence(1 | 2)),
        "the acknowledged one survives"
    );
}

async fn damaged_entity_is_refused_alone(test: impl StoreUnderTest) {
    let [damaged, sound] = ["damaged", "sound"].map(entity);
    let fence = lease(&test, &damaged).await;
    test.inject(StoreFault::Damage).await;
    append(&test, &damaged, 0, fence, state(b"one"))
        .await
        .expect("it is written");
    match test.store().read(&damaged).await {
        Err(StoreError::Damaged {
            entity, sequence, ..
        }) => {
            assert_eq!((entity, sequence), (damaged, Sequence(1)));
        }
        read => panic!("{read:?}"),
    }
    let fence = lease(&test, &sound).await;
    append(&test, &sound, 0, fence, state(b"one"))
        .await
        .expect("it is written");
    assert_eq!(read(&test, &sound).await.sequence, Sequence(1));
}

async fn tables_are_separate(mut test: impl StoreUnderTest) {
    let entity = entity("tables");
    let tables = [
        Table::State,
        Table::Answers,
        Table::Reminders,
        Table::Outbox,
        Table::Inbox,
    ];
    let fence = lease(&test, &entity).await;
    let mut batch = Batch::new();
    // In another order than that of the tables.
    for table in tables.iter().rev() {
        batch.put(*table, [], [*table as u8]);
        batch.put(*table, [1], [*table as u8, 1]);
    }
    batch.remove(Table::Outbox, [1]);
    let appended = append(&test, &entity, 0, fence, batch).await;
    assert_eq!(appended, Ok(Sequence(1)));
    test.reopen().await;
    let mut expected: Vec<Row> = tables
        .iter()
        .flat_map(|table| {
            let number = *table as u8;
            [row(*table, &[], &[number]), row(*table, &[1], &[number, 1])]
        })
        .collect();
    expected.retain(|row| row.table != Table::Outbox || row.key.is_empty());
    assert_eq!(read(&test, &entity).await.rows, expected);
}

async fn stored_keys_are_listed_in_pages(mut test: impl StoreUnderTest) {
    let keys = ["", "a", "b", "ab", "abc", "z/%", "\u{fc}"];
    for (kind, keys) in [("test", &keys[..]), ("tes", &["other"]), ("", &["none"])] {
        for key in keys {
            let name = EntityId::new(kind, *key).expect("a short name");
            let fence = lease(&test, &name).await;
            for expected in 0..2 {
                append(&test, &name, expected, fence, state(b"one"))
                    .await
                    .expect("it is written");
            }
        }
    }
    lease(&test, &entity("only leased")).await;
    test.reopen().await;
    let mut expected = keys.map(str::to_owned);
    expected.sort();
    for limit in [1, 3, 100] {
        let mut listed = Vec::new();
        loop {
            let after = listed.last().map(String::as_str);
            let page = test.store().list("test", after, limit).await;
            let page = page.expect("it can be listed");
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            listed.extend(page.iter().map(ToString::to_string));
        }
        listed.sort();
        assert_eq!(listed, expected, "in pages of {limit}");
    }
    let listed = test.store().list("", None, 10).await;
    assert_eq!(listed, Ok(vec![Arc::from("none")]));
}

async fn wake_up_times_are_listed_in_order(mut test: impl StoreUnderTest) {
    let wake = |seconds: u64, key: &str| Wake {
        at: Duration::from_secs(seconds),
        key: key.into(),
    };
    let set = |at: Option<u64>| {
        let mut batch = state(b"one");
        batch.set_wake(at.map(Duration::from_secs));
        batch
    };
    let mut fences = Vec::new();
    for (key, at) in [
        ("zero", 0),
        ("late", 9),
        ("early", 1),
        ("moved", 2),
        ("cleared", 3),
        ("same", 9),
    ] {
        let name = entity(key);
        let fence = lease(&test, &name).await;
        let appended = append(&test, &name, 0, fence, set(Some(at))).await;
        assert_eq!(appended, Ok(Sequence(1)));
        fences.push((name, fence));
    }
    let other = EntityId::new("other", "early").expect("a short name");
    let fence = lease(&test, &other).await;
    append(&test, &other, 0, fence, set(Some(1)))
        .await
        .expect("it is written");
    for (key, at) in [("moved", Some(5)), ("cleared", None)] {
        let (name, fence) = fences
            .iter()
            .find(|(name, _)| name.key() == key)
            .expect("it was written");
        append(&test, name, 1, *fence, set(at))
            .await
            .expect("it is written");
        let kept = append(&test, name, 2, *fence, state(b"two")).await;
        kept.expect("it is written");
        let refused = append(&test, name, 2, *fence, set(Some(7))).await;
        refused.expect_err("it does not follow");
    }
    test.reopen().await;
    let expected = [
        wake(0, "zero"),
        wake(1, "early"),
        wake(5, "moved"),
        wake(9, "late"),
        wake(9, "same"),
    ];
    for limit in [1, 3, 100] {
        let mut listed: Vec<Wake> = Vec::new();
        loop {
            let page = test.store().wakes("test", listed.last(), limit).await;
            let page = page.expect("it can be listed");
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            listed.extend(page);
        }
        assert_eq!(listed, expected, "in pages of {limit}");
    }
}
