//! This build reads a store that an earlier build of the host wrote.
//!
//! Two components wrote the directory of the fixture: `keeper` was told `=tea`, and `counter` was
//! asked three times, with `state.mode = "kv"`. A different form gets a directory of its own beside
//! it, written by the first build that uses it.

use std::fs;
use std::path::{Path, PathBuf};

use strowger_wasm::kv::KvStore;

use crate::kit::{counter, text};
use crate::kv::{KV, keeper, testbed};

/// The directory that has a subdirectory for each version of the store's form.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stores")
}

/// The form that this build writes.
const FORM: &str = "components-1";
/// The length of a journal, in bytes.
const JOURNAL: u64 = 64 << 20;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the folder is ours");
    for entry in fs::read_dir(from).expect("the fixture is there") {
        let entry = entry.expect("it can be read");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).expect("there is room");
            if to.extension().is_some_and(|end| end == "jnl") {
                // The database makes its journal this long, and the fixture omits the zeros.
                let file = fs::File::options().write(true).open(&to);
                let whole = file.and_then(|file| file.set_len(JOURNAL));
                whole.expect("the folder is ours");
            }
        }
    }
}

#[test]
fn store_of_an_earlier_build_is_readable() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    copy(&fixtures().join(FORM), folder.path());
    let store = KvStore::open(folder.path()).expect("it opens");
    let testbed = testbed(&store);
    let keeper = testbed.start(&keeper(), "keeper", KV);
    assert_eq!(text(testbed.ask(&keeper, "?")), "tea");
    assert_eq!(text(testbed.ask(&keeper, "=milk")), "");
    let more = format!("{KV}[state]\nmode = \"kv\"");
    let counter = testbed.start(&counter(), "counter", &more);
    assert_eq!(testbed.ask(&counter, "x").expect("it counts")[0], 4);
}
