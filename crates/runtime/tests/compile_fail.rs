//! Compile errors explain themselves, at the user's own line.
//!
//! Each program in `compile_fail/` must fail with exactly the text beside it. After a change of a
//! message, `TRYBUILD=overwrite cargo test -p strowger --test compile_fail` writes the texts anew;
//! read them before committing.

use std::process::Command;

/// The compiler release that produced the expected texts.
const RELEASE: &str = concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"), ".");

#[test]
fn macro_errors_point_at_user_code() {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(compiler).arg("--version").output();
    let version = version.expect("what built this test is still there").stdout;
    let version = String::from_utf8_lossy(&version);
    if !version.starts_with(RELEASE) {
        eprintln!("left out: the texts are those of {RELEASE}x, this is {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
