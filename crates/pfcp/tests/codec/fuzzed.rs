//! Regression inputs of the fuzz targets, replayed through the checks that fuzzing runs.

mod compare;
mod datagram;
mod endpoint;
mod owned;
mod round_trip;
mod view;

use std::fs;
use std::path::Path;

/// Runs a check on each input of a folder of `fuzz/corpus`. The last name that a failure prints is
/// that of its input.
fn replay(folder: &str, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let files = fs::read_dir(corpus.join(folder)).expect("the folder is there");
    let mut paths: Vec<_> = files.map(|file| file.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no input in {folder}");
    for path in paths {
        eprintln!("{}", path.display());
        check(&fs::read(&path).expect("a readable input"));
    }
}

#[test]
fn frames_stay_within_datagram() {
    replay("message", datagram::check);
}

#[test]
fn views_cover_exactly_the_input() {
    replay("message", view::check);
}

#[test]
fn owned_value_encodes_iff_bytes_are_valid() {
    replay("message", owned::check);
}

#[test]
fn decoded_messages_encode_into_the_same_bytes() {
    replay("message", round_trip::check);
}

#[test]
fn comparison_of_fuzzed_messages_is_symmetric() {
    replay("compare", compare::check);
}

#[test]
fn endpoint_sends_at_most_one_datagram_per_message() {
    replay("endpoint", endpoint::check);
}
