//! Regression inputs of the fuzz target `frame`, replayed through the check that fuzzing runs.

mod frame;

use std::fs;
use std::path::Path;

#[test]
fn segmentation_changes_no_frame() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/frame");
    let files = fs::read_dir(corpus).expect("the folder is there");
    let mut paths: Vec<_> = files.map(|file| file.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no input");
    for path in paths {
        // The last name that a failure prints is that of its input.
        eprintln!("{}", path.display());
        frame::check(&fs::read(&path).expect("a readable input"));
    }
}
