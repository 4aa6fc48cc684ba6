//! The compilers of guests: those installed, else those of a distribution.

use std::path::Path;
use std::process::Command;

use crate::{process, tools};

const TARGET: &str = "wasm32-unknown-unknown";

/// Installs the compilers that are missing, where Debian has them, and reports those still missing.
///
/// # Errors
/// Returns an error that says how to get the missing compilers.
pub(super) fn install() -> Result<(), String> {
    if Rust::find().is_err() {
        DEBIAN.into_iter().for_each(tools::install);
    }
    for packages in C_PACKAGES {
        if C::installed().is_none() {
            packages.into_iter().for_each(tools::install);
        }
    }
    Rust::find()?;
    C::find().map(drop)
}

/// The compiler for guests in Rust: the active one, if it has the target; else Debian's, which is
/// the same everywhere; else a nightly one, as in `strowger component build`.
pub(super) struct Rust {
    pub(super) version: String,
    /// The compiler, unless cargo uses it by default.
    pub(super) rustc: Option<&'static str>,
}

impl Rust {
    pub(super) fn find() -> Result<Self, String> {
        let plain = || Command::new("rustc");
        let nightly = || {
            let mut rustc = Command::new("rustc");
            // `RUSTUP_TOOLCHAIN` may pin the toolchain that runs us, and takes precedence.
            rustc.arg("+nightly").env_remove("RUSTUP_TOOLCHAIN");
            rustc
        };
        let library = output_of(plain(), &["--print", "target-libdir", "--target", TARGET]);
        if library.is_some_and(|folder| Path::new(&folder).is_dir()) {
            return Self::of(plain(), "", None);
        }
        if has_sources("/usr") {
            return Self::of(
                Command::new(DEBIAN_RUSTC),
                LIBRARY_SUFFIX,
                Some(DEBIAN_RUSTC),
            );
        }
        for rustc in [&plain as &dyn Fn() -> Command, &nightly] {
            let root = output_of(rustc(), &["--print", "sysroot"]);
            if root.is_some_and(|root| has_sources(&root)) {
                return Self::of(rustc(), LIBRARY_SUFFIX, None);
            }
        }
        let hint = format!("rustup target add {TARGET}, or cargo xtask setup guests");
        Err(format!("Rust has neither {TARGET} nor its sources: {hint}"))
    }

    fn of(compiler: Command, more: &str, rustc: Option<&'static str>) -> Result<Self, String> {
        let version =
            output_of(compiler, &["--version"]).ok_or("rustc does not say its version")?;
        let version = format!("{version}{more}");
        Ok(Self { version, rustc })
    }
}

/// Suffix of the version of a compiler that builds the standard library as well.
const LIBRARY_SUFFIX: &str = " with its library";
/// The Rust packages of Debian, and the path of their compiler.
const DEBIAN: [&str; 2] = ["rustc-web", "rust-web-src"];
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

fn has_sources(root: &str) -> bool {
    Path::new(root)
        .join("lib/rustlib/src/rust/library")
        .is_dir()
}

/// Runs a command and returns its output if it succeeds.
fn output_of(mut command: Command, args: &[&str]) -> Option<String> {
    let output = process::output(command.args(args)).ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The compiler for guests in C: clang and its linker, recent enough for QuickJS, with the builtins
/// for WebAssembly.
pub(super) struct C {
    pub(super) version: String,
    /// The suffix that a distribution adds to the names of its programs.
    suffix: &'static str,
}

/// The suffixes in distributions: none, or one of many versions. The first suitable one is used.
const SUFFIXES: [&str; 5] = ["", "-16", "-17", "-18", "-19"];
/// The oldest version that links what QuickJS is built with.
const MIN_VERSION: u32 = 16;
/// Debian packages, tried in order: those of version 16, then those of the default version.
const C_PACKAGES: [[&str; 3]; 2] = [
    ["clang-16", "lld-16", "libclang-rt-16-dev-wasm32"],
    ["clang", "lld", "libclang-rt-dev-wasm32"],
];

impl C {
    pub(super) fn find() -> Result<Self, String> {
        Self::installed().ok_or_else(|| {
            format!(
                "guests in C and JavaScript need clang and wasm-ld of version {MIN_VERSION} or \
                 later, and the builtins for wasm32: cargo xtask setup guests"
            )
        })
    }

    fn installed() -> Option<Self> {
        SUFFIXES.into_iter().find_map(|suffix| {
            let clang = format!("clang{suffix}");
            let flags = ["--target=wasm32-wasi", "-print-libgcc-file-name"];
            let builtins = output_of(Command::new(&clang), &flags)?;
            let [clang, linker] = [clang, format!("wasm-ld{suffix}")].map(|program| {
                let version = output_of(Command::new(program), &["--version"])?;
                version.lines().next().map(str::to_owned)
            });
            let (clang, linker) = (clang?, linker?);
            let new = major_version(&clang)? >= MIN_VERSION && Path::new(&builtins).is_file();
            let version = format!("{clang}, {linker}");
            new.then_some(Self { version, suffix })
        })
    }

    /// Passes the names of the programs to a script.
    pub(super) fn set_environment(&self, script: &mut Command) {
        script.env("CLANG", format!("clang{}", self.suffix));
        script.env("WASM_LD", format!("wasm-ld{}", self.suffix));
    }
}

/// Parses the major version after the word `version`.
fn major_version(line: &str) -> Option<u32> {
    let (_, version) = line.split_once("version ")?;
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clang_versions_are_parsed() {
        assert_eq!(
            major_version("Debian clang version 16.0.6 (15~deb12u1)"),
            Some(16)
        );
        assert_eq!(major_version("clang version 19.1.7"), Some(19));
        assert_eq!(major_version("Apple clang"), None);
    }
}
