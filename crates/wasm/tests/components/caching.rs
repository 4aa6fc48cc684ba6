//! The cache of compiled code: kept within limits, and trusted only as far as possible.

use std::fs;
use std::path::{Path, PathBuf};

use strowger_wasm::{Host, HostLimits};

use crate::kit::{Guest, manifest};

fn host(limits: impl FnOnce(&mut HostLimits)) -> Host {
    let mut all = crate::kit::limits();
    (all.instances, all.waiting) = (16, 8);
    limits(&mut all);
    Host::new(all).unwrap_or_else(|error| panic!("{error}"))
}

fn guest(n: usize) -> Guest {
    Guest::new().data(&format!("guest {n}"))
}

fn load(host: &Host, guest: &Guest, more: &str) {
    let loaded = host.load_blocking(&guest.encode(), manifest("guest", more));
    loaded.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn compiled_component_is_cached() {
    let host = host(|_| {});
    for _ in 0..3 {
        load(&host, &guest(0), "");
    }
    assert_eq!(host.info().compiled, 1);
    // Another engine needs another compilation.
    load(&host, &guest(0), "[limits]\nfuel = 1000000");
    assert_eq!(host.info().compiled, 2);
}

#[test]
fn least_recently_used_code_is_evicted_first() {
    let one = host(|_| {});
    load(&one, &guest(0), "");
    let code = one.info().cached;
    assert!(code > 0);
    let host = host(|limits| limits.cached = code * 2 + code / 2);
    load(&host, &guest(0), "");
    load(&host, &guest(1), "");
    load(&host, &guest(0), "");
    load(&host, &guest(2), "");
    assert_eq!(host.info().compiled, 3);
    assert!(host.info().cached <= code * 2 + code / 2);
    load(&host, &guest(0), "");
    assert_eq!(host.info().compiled, 3, "it was wanted not long ago");
    load(&host, &guest(1), "");
    assert_eq!(host.info().compiled, 4, "it had gone");
}

#[test]
fn cache_limit_is_exact_to_the_byte() {
    let one = host(|_| {});
    load(&one, &guest(0), "");
    let code = one.info().cached;
    for room in [code, 2 * code] {
        let host = host(|limits| limits.cached = room);
        for n in [0, 1, 1, 2, 2] {
            load(&host, &guest(n), "");
        }
        assert_eq!((host.info().compiled, host.info().cached), (3, room));
    }
    let host = host(|limits| limits.cached = code - 1);
    load(&host, &guest(0), "");
    assert_eq!(host.info().cached, 0);
}

#[test]
fn unused_code_is_evicted_in_order_of_insertion() {
    let one = host(|_| {});
    load(&one, &guest(0), "");
    let room = one.info().cached * 2;
    let host = host(|limits| limits.cached = room);
    (0..8).for_each(|n| load(&host, &guest(n), ""));
    for n in [7, 6] {
        load(&host, &guest(n), "");
        assert_eq!(host.info().compiled, 8, "{n} came late");
    }
}

#[test]
fn host_without_cache_runs_components() {
    let host = host(|limits| limits.cached = 0);
    load(&host, &guest(0), "");
    load(&host, &guest(0), "");
    let info = host.info();
    assert_eq!((info.compiled, info.cached), (2, 0));
}

/// The files of compiled code.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it is a folder");
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Loads the guests in a new host, which resembles a new process; returns the number of components
/// that it compiled.
fn compiled(folder: &Path, guests: &[Guest]) -> u64 {
    let host = host(|limits| limits.cache = Some(folder.to_owned()));
    for guest in guests {
        load(&host, guest, "");
    }
    host.info().compiled
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("compiled");
    (folder, path)
}

#[test]
fn cache_directory_serves_the_next_process() {
    let (_all, folder) = folder();
    assert_eq!(compiled(&folder, &[guest(0), guest(1)]), 2);
    assert_eq!(compiled(&folder, &[guest(0), guest(1)]), 0);
    assert_eq!(files(&folder).len(), 2);
}

#[test]
fn damaged_or_stale_cache_files_are_recompiled() {
    let (_all, folder) = folder();
    let guests = [guest(0), guest(1)];
    assert_eq!(compiled(&folder, &guests), 2);
    let [one, other] = <[PathBuf; 2]>::try_from(files(&folder)).expect("two");
    let good = fs::read(&one).expect("it is there");
    let edit = |at: usize| {
        let mut edited = good.clone();
        edited[at] ^= 1;
        edited
    };
    let damaged = [
        ("magic", edit(0)),
        ("component", edit(8)),
        ("engine", edit(40)),
        ("sum", edit(41)),
        ("code", edit(100)),
        ("last byte", edit(good.len() - 1)),
        ("cut", good[..good.len() / 2].to_owned()),
        ("empty", Vec::new()),
        ("foreign", fs::read(&other).expect("it is there")),
        ("longer", [&good[..], b"more"].concat()),
    ];
    for (what, bytes) in damaged {
        fs::write(&one, bytes).expect("it is written");
        assert_eq!(compiled(&folder, &guests), 1, "{what}");
        assert_eq!(
            fs::read(&one).expect("it is there").len(),
            good.len(),
            "{what}"
        );
        assert_eq!(compiled(&folder, &guests), 0, "{what}");
    }
}

#[test]
fn cache_directory_size_is_limited() {
    let (_all, folder) = folder();
    assert_eq!(compiled(&folder, &[guest(0)]), 1);
    let one = fs::metadata(&files(&folder)[0]).expect("it is there").len();
    let max = usize::try_from(one * 3).expect("it is small");
    let host = host(|limits| {
        limits.cache = Some(folder.clone());
        limits.cached = max;
    });
    for n in 0..8 {
        load(&host, &guest(n), "");
        let sum: u64 = files(&folder)
            .iter()
            .map(|file| fs::metadata(file).map_or(0, |m| m.len()))
            .sum();
        assert!(sum <= one * 3, "{sum} of {max}");
    }
    assert!(files(&folder).len() >= 2);
}

#[cfg(unix)]
#[test]
fn cache_directory_writable_by_others_is_refused() {
    use std::os::unix::fs::PermissionsExt;

    let (_all, folder) = folder();
    assert_eq!(compiled(&folder, &[guest(0)]), 1);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o770)).expect("it is ours");
    let mut limits = crate::kit::limits();
    limits.cache = Some(folder.clone());
    let said = Host::new(limits).expect_err("others may write").to_string();
    assert!(said.contains("chmod 700"), "{said}");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("it is ours");
    assert_eq!(compiled(&folder, &[guest(0)]), 0);
}
