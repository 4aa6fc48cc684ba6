//! `strowger component build`: turns a Rust package, or a core module from another compiler, into a
//! component.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata, metadata};
use wit_parser::Resolve;

use crate::component::read_bytes;
use crate::exit::{CliResult, Failure};
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  strowger component build counter
  strowger component build counter --out counter.wasm
  strowger component build upper.core.wasm --out upper.wasm
  strowger component build state.core.wasm --world durable --out state.wasm

A package is built with cargo for wasm32-unknown-unknown and wrapped as a component. This needs the
Rust target (rustup target add wasm32-unknown-unknown), or the sources of Rust: those of a nightly
toolchain (rustup +nightly component add rust-src) or of the distribution (Debian: rustc-web and
rust-web-src). RUSTC overrides the compiler that is used.

A core module from any other compiler exports the functions of a world of wit/component.wit (plain,
durable, batched, complete) under their canonical ABI names; components/upper/upper.c is an example.
If the module names its world, as modules built with wit-bindgen do, --world is ignored.";

const TARGET: &str = "wasm32-unknown-unknown";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ComponentBuildArgs {
    /// Package directory, or a core module.
    #[arg(value_name = "DIR|MODULE")]
    from: PathBuf,
    /// Output file [default: NAME.wasm beside the package's manifest].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// World that a core module exports, unless the module names it.
    #[arg(long, default_value = "plain")]
    world: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ComponentBuildArgs, output: &mut Output) -> CliResult {
    let wrong =
        |module: &Path, why: String| Err(Failure::input(format!("{}: {why}", module.display())));
    let (component, default) = if args.from.is_file() {
        let component = wrap_module(read_bytes(&args.from)?, &args.world);
        let component = component.or_else(|why| wrong(&args.from, why))?;
        (component, args.from.with_extension("component.wasm"))
    } else {
        let (name, target) = find_package(&args.from)?;
        compile(&args.from)?;
        let module = target
            .join(TARGET)
            .join("release")
            .join(format!("{}.wasm", name.replace('-', "_")));
        let component = encode(&read_bytes(&module)?).or_else(|why| wrong(&module, why))?;
        (component, args.from.join(format!("{name}.wasm")))
    };
    let out = args.out.clone().unwrap_or(default);
    std::fs::write(&out, &component).map_err(|error| Failure::file(&out, &error))?;
    let sha256 = strowger_wasm::load::Digest::of(&component).to_string();
    if args.json {
        let (file, bytes) = (out.display().to_string(), component.len());
        return output.json(&json!({ "file": file, "octets": bytes, "sha256": sha256 }));
    }
    let (file, bytes) = (out.display(), component.len());
    output.line(format!("{file}: {bytes} bytes, sha256 {sha256}"))
}

/// The contract, for modules that do not embed it.
const WIT: &str = include_str!("../../../embedded/component.wit");

/// Makes a component of a core module that exports a world of the contract.
fn wrap_module(mut module: Vec<u8>, world: &str) -> Result<Vec<u8>, String> {
    let (own, _) = metadata::decode(&module).map_err(|error| format!("{error:#}"))?;
    if own.is_some() {
        return encode(&module);
    }
    let mut resolve = Resolve::default();
    let package = resolve.push_str("component.wit", WIT);
    let package = package.map_err(|error| format!("{error:#}"))?;
    let world = resolve.select_world(&[package], Some(world));
    let world = world.map_err(|error| format!("{error:#}"))?;
    let embedded = embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8);
    embedded.map_err(|error| format!("{error:#}"))?;
    encode(&module)
}

fn encode(module: &[u8]) -> Result<Vec<u8>, String> {
    let encoder = ComponentEncoder::default().validate(true).module(module);
    let encoded = encoder.and_then(|mut encoder| encoder.encode());
    encoded.map_err(|error| format!("{error:#}"))
}

/// Returns the name of the package in a folder, and the target directory of cargo.
fn find_package(folder: &Path) -> CliResult<(String, PathBuf)> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(folder);
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
    let ran = cargo.output().map_err(|error| no_cargo(folder, &error))?;
    if !ran.status.success() {
        let message = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
        return Err(Failure::input(format!("{}: {message}", folder.display())));
    }
    let metadata: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
    let manifest = std::fs::canonicalize(folder.join("Cargo.toml"));
    let manifest = manifest.map_err(|error| Failure::file(folder, &error))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut here = packages.filter(|one| one["manifest_path"].as_str() == manifest.to_str());
    let name = here.next().and_then(|one| one["name"].as_str());
    let target = metadata["target_directory"].as_str();
    match (name, target) {
        (Some(name), Some(target)) => Ok((name.to_owned(), PathBuf::from(target))),
        _ => Err(Failure::input(format!(
            "{}: not a cargo package",
            folder.display()
        ))),
    }
}

fn no_cargo(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::outside(format!("{}: cannot run cargo: {error}", folder.display()))
        .hint("install Rust with rustup, and check the directory")
}

/// Builds with the active Rust toolchain if it has the target or the sources of the standard
/// library, else with a nightly toolchain that has the sources.
fn compile(folder: &Path) -> CliResult {
    let mut cargo = Command::new("cargo");
    let mut hidden = vec![(cargo_home(), "/cargo")];
    let mut rustc = rustc();
    if !has_target(&mut rustc) {
        let Some(Sources { root, compiler }) = find_sources() else {
            let what = format!("the Rust target {TARGET} is not installed");
            let hint = format!("rustup target add {TARGET}");
            return Err(Failure::outside(what).hint(hint));
        };
        match compiler {
            // `RUSTUP_TOOLCHAIN` may pin the toolchain that runs us, and takes precedence over the
            // argument.
            Compiler::Nightly => cargo.arg("+nightly").env_remove("RUSTUP_TOOLCHAIN"),
            Compiler::System => cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTC", SYSTEM),
            Compiler::Own => cargo.env("RUSTC_BOOTSTRAP", "1"),
        };
        cargo.arg("-Zbuild-std=std,panic_abort");
        if lld(&root).is_none()
            && let Some(linker) = sysroot(&mut Command::new("rustc")).and_then(|root| lld(&root))
        {
            cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        hidden.push((Some(root), "/rust"));
    }
    cargo.args(["build", "--release", "--target", TARGET]);
    // Panic messages contain file names: those of this machine would make each machine's build
    // differ.
    let flags = hidden.iter().filter_map(|(path, name)| {
        let path = path.as_ref()?.display();
        Some(format!("--remap-path-prefix={path}={name}"))
    });
    let flags: Vec<String> = flags.collect();
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    let ran = cargo.current_dir(folder).status();
    match ran {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::input("cargo failed to build the package")),
        Err(error) => Err(no_cargo(folder, &error)),
    }
}

/// The compiler that cargo uses.
fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

fn has_target(rustc: &mut Command) -> bool {
    rustc.args(["--print", "target-libdir", "--target", TARGET]);
    printed_path(rustc).is_some_and(|folder| folder.is_dir())
}

/// A Rust toolchain that can build its standard library for any target.
struct Sources {
    root: PathBuf,
    compiler: Compiler,
}

#[derive(Clone, Copy)]
enum Compiler {
    /// The toolchain that cargo uses.
    Own,
    Nightly,
    /// The toolchain of the distribution.
    System,
}

/// The path at which distributions install `rustc`.
const SYSTEM: &str = "/usr/bin/rustc";

fn find_sources() -> Option<Sources> {
    let mut nightly = Command::new("rustc");
    nightly.arg("+nightly").env_remove("RUSTUP_TOOLCHAIN");
    let found = [
        (rustc(), Compiler::Own),
        (nightly, Compiler::Nightly),
        (Command::new(SYSTEM), Compiler::System),
    ];
    found.into_iter().find_map(|(mut rustc, compiler)| {
        let root = sysroot(&mut rustc)?;
        let has_sources = root.join("lib/rustlib/src/rust/library").is_dir();
        has_sources.then_some(Sources { root, compiler })
    })
}

fn sysroot(rustc: &mut Command) -> Option<PathBuf> {
    printed_path(rustc.args(["--print", "sysroot"]))
}

/// Finds the linker that a Rust toolchain bundles; those of distributions bundle none.
fn lld(root: &Path) -> Option<PathBuf> {
    let hosts = std::fs::read_dir(root.join("lib/rustlib")).ok()?;
    let mut linkers = hosts.filter_map(|host| Some(host.ok()?.path().join("bin/rust-lld")));
    linkers.find(|linker| linker.is_file())
}

/// The directory in which cargo keeps the sources of packages.
fn cargo_home() -> Option<PathBuf> {
    let set = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    set.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
}

/// Runs a command and returns the path that it prints.
fn printed_path(command: &mut Command) -> Option<PathBuf> {
    let ran = command.output().ok().filter(|ran| ran.status.success())?;
    let text = String::from_utf8(ran.stdout).ok()?;
    Some(PathBuf::from(text.trim()))
}
