//! What does not compile says why, at the user's own line.
//!
//! Each program in `compile_fail/` fails with exactly the text beside it. After a change of the
//! text, `TRYBUILD=overwrite cargo test -p strowger --test compile_fail` writes it anew; read it
//! before it is committed.

use std::process::Command;

/// The release whose words the texts are.
const RELEASE: &str = concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"), ".");

#[test]
fn errors_point_at_the_users_line() {
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
