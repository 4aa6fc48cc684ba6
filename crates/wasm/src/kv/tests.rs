use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn quota(size: usize, keys: usize) -> KvGrant {
    KvGrant {
        size,
        keys,
        ..KvGrant::default()
    }
}

const WIDE: KvGrant = KvGrant {
    size: 1 << 20,
    keys: 1000,
    rate: 1000,
};

/// Runs one test on both backends.
fn both(test: impl Fn(&KvStore)) {
    test(&KvStore::memory());
    let folder = tempfile::tempdir().expect("there is room for a folder");
    test(&KvStore::open(folder.path().join("kv")).expect("it opens"));
}

#[test]
fn value_is_readable_until_removed() {
    both(|store| {
        let space = store.space("a");
        assert_eq!(space.get("x"), Ok(None));
        assert_eq!(space.set("x", b"1", &WIDE, &mut NoCall), Ok(()));
        assert_eq!(space.get("x"), Ok(Some(b"1".to_vec())));
        assert_eq!(space.remove("x", &WIDE, &mut NoCall), Ok(true));
        assert_eq!(space.remove("x", &WIDE, &mut NoCall), Ok(false));
        assert_eq!(space.get("x"), Ok(None));
    });
}

#[test]
fn spaces_are_separate() {
    both(|store| {
        let (one, other) = (store.space("a"), store.space("a.b"));
        assert_eq!(one.set("x", b"1", &WIDE, &mut NoCall), Ok(()));
        assert_eq!(other.get("x"), Ok(None));
        assert_eq!(other.list("", "", 10), Ok(vec![]));
        assert_eq!(store.space("a").get("x"), Ok(Some(b"1".to_vec())));
        assert_eq!(one.save_state(1, b"state", &WIDE), Ok(()));
        assert_eq!(one.list("", "", 10), Ok(vec!["x".to_owned()]));
        assert_eq!(other.saved_state(), Ok(None));
        let kept = one
            .saved_state()
            .map(|kept| kept.map(|(version, _)| version));
        assert_eq!(kept, Ok(Some(1)));
    });
}

#[test]
fn swap_writes_only_over_the_expected_value() {
    both(|store| {
        let space = store.space("a");
        let swap = |expected: Option<&[u8]>, value: Option<&[u8]>| {
            space.swap("x", expected, value, &WIDE, &mut NoCall)
        };
        assert_eq!(swap(Some(b"0"), Some(b"1")), Ok(false));
        assert_eq!(swap(None, Some(b"1")), Ok(true));
        assert_eq!(swap(None, Some(b"2")), Ok(false));
        assert_eq!(swap(Some(b"1"), Some(b"2")), Ok(true));
        assert_eq!(swap(Some(b"2"), None), Ok(true));
        assert_eq!(space.get("x"), Ok(None));
    });
}

#[test]
fn listing_continues_after_the_last_name() {
    both(|store| {
        let space = store.space("a");
        for key in ["a1", "a2", "a3", "b"] {
            assert_eq!(space.set(key, b"", &WIDE, &mut NoCall), Ok(()));
        }
        let keys = |after, most| space.list("a", after, most).map(|keys| keys.join(" "));
        assert_eq!(keys("", 2), Ok("a1 a2".to_owned()));
        assert_eq!(keys("a2", 2), Ok("a3".to_owned()));
        assert_eq!(keys("a3", 2), Ok(String::new()));
        assert_eq!(keys("", 0), Ok(String::new()));
    });
}

#[test]
fn tiny_keys_count_against_the_quota() {
    both(|store| {
        let space = store.space("a");
        let filled = |quota: &KvGrant| {
            let set = |n: usize| {
                space
                    .set(&format!("{n:03}"), b"", quota, &mut NoCall)
                    .is_ok()
            };
            (0..900).take_while(|n| set(*n)).count()
        };
        assert_eq!(
            filled(&quota(10_000, 1000)),
            10_000 / (3 + 1 + ENTRY_OVERHEAD)
        );
        assert_eq!(filled(&quota(10_000_000, 200)), 200);
        assert_eq!(filled(&quota(10_000_000, 1000)), 900);
    });
}

#[test]
fn space_over_quota_can_be_emptied() {
    both(|store| {
        let space = store.space("a");
        assert_eq!(space.set("x", &[0; 1000], &WIDE, &mut NoCall), Ok(()));
        let tight = quota(100, 10);
        assert_eq!(
            space.set("y", b"", &tight, &mut NoCall),
            Err(Refusal::Limit)
        );
        assert_eq!(
            space.set("x", &[0; 1001], &tight, &mut NoCall),
            Err(Refusal::Limit)
        );
        assert_eq!(space.set("x", &[0; 999], &tight, &mut NoCall), Ok(()));
        assert_eq!(space.remove("x", &tight, &mut NoCall), Ok(true));
        assert_eq!(space.set("y", b"", &tight, &mut NoCall), Ok(()));
    });
}

#[test]
fn quota_is_exact_to_the_byte() {
    both(|store| {
        let entry = 1 + 3 + "key".len() + ENTRY_OVERHEAD;
        let space = store.space("a");
        assert_eq!(
            space.set("key", b"123", &quota(entry - 1, 9), &mut NoCall),
            Err(Refusal::Limit)
        );
        assert_eq!(
            space.set("key", b"123", &quota(entry, 9), &mut NoCall),
            Ok(())
        );
        // A write that does not increase the usage succeeds, however small the quota has become.
        assert_eq!(space.set("key", b"456", &quota(1, 9), &mut NoCall), Ok(()));
        assert_eq!(
            space.set("key", b"4567", &quota(entry, 9), &mut NoCall),
            Err(Refusal::Limit)
        );
        // Without a cached usage, the next write measures again.
        store
            .space("other")
            .set("key", b"1", &WIDE, &mut NoCall)
            .expect("there is room");
        *space.usage.lock() = None;
        assert_eq!(
            space.set("kez", b"123", &quota(2 * entry - 1, 9), &mut NoCall),
            Err(Refusal::Limit)
        );
        *space.usage.lock() = None;
        assert_eq!(
            space.set("kez", b"123", &quota(2 * entry, 9), &mut NoCall),
            Ok(())
        );
    });
}

#[test]
fn key_length_is_limited() {
    both(|store| {
        let space = store.space("a");
        let (fits, long) = ("x".repeat(MAX_KEY), "x".repeat(MAX_KEY + 1));
        assert_eq!(space.set(&fits, b"", &WIDE, &mut NoCall), Ok(()));
        assert_eq!(
            space.set(&long, b"", &WIDE, &mut NoCall),
            Err(Refusal::Limit)
        );
        assert_eq!(space.get(&long), Err(Refusal::Limit));
    });
}

#[test]
fn disk_store_keeps_values_and_usage() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let tight = quota(200, 10);
    let store = KvStore::open(folder.path()).expect("it opens");
    assert_eq!(
        store.space("a").set("x", &[7; 50], &tight, &mut NoCall),
        Ok(())
    );
    let second = KvStore::open(folder.path());
    assert!(matches!(second, Err(KvError::Locked { .. })), "{second:?}");
    drop(store);
    let space = KvStore::open(folder.path()).expect("it opens").space("a");
    assert_eq!(space.get("x"), Ok(Some(vec![7; 50])));
    assert_eq!(
        space.set("y", &[7; 50], &tight, &mut NoCall),
        Err(Refusal::Limit)
    );
}

#[test]
fn data_beyond_the_buffer_is_written_to_a_table() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let backend = DiskBackend::open(folder.path()).expect("it opens");
    for number in 0..10_u8 {
        let value = vec![number; 1 << 20];
        backend.put(&[number], &value).expect("it is written");
    }
    let tables = folder.path().join("keyspaces/1/tables");
    let end = Instant::now() + Duration::from_secs(30);
    while !std::fs::read_dir(&tables).is_ok_and(|mut files| files.next().is_some()) {
        assert!(Instant::now() < end, "no table in {tables:?}");
        std::thread::yield_now();
    }
}

#[test]
fn store_path_that_is_a_file_is_unusable() {
    let file = tempfile::NamedTempFile::new().expect("there is room for a file");
    let opened = KvStore::open(file.path());
    let error = opened.expect_err("it is no folder").to_string();
    assert!(
        error.contains(&file.path().display().to_string()),
        "{error}"
    );
}

proptest! {
    /// The counted usage is the measured one, whatever is overwritten.
    #[test]
    fn usage_matches_content(
        writes in proptest::collection::vec((0..6_u8, proptest::option::of(0..200_usize)), 0..60),
    ) {
        let store = KvStore::memory();
        let space = store.space("a");
        let tight = quota(600, 5);
        for (key, value) in writes {
            let key = key.to_string();
            // Writes beyond the quota are refused.
            let _ = match value {
                Some(bytes) => space.set(&key, &vec![0; bytes], &tight, &mut NoCall),
                None => space.remove(&key, &tight, &mut NoCall).map(drop),
            };
            let measured = space.measure(&AtomicBool::new(false)).expect("memory does not fail");
            if let Some(used) = *space.usage.lock() {
                prop_assert_eq!((used.bytes, used.keys), (measured.bytes, measured.keys));
            }
            prop_assert!(measured.bytes <= tight.size && measured.keys <= tight.keys);
        }
    }
}
