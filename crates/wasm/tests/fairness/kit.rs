//! Guests from text, for tests about time.

use std::fmt::Write;
use std::time::Duration;

use strowger_wasm::manifest::ManifestCaps;
use strowger_wasm::{HostLimits, Manifest, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

const WIT: &str = include_str!("../../../../wit/component.wit");

/// A guest whose functions have the given bodies, and do nothing else.
///
/// The bodies may use `$spin` with a number of turns, and `$ok` for a result. The text of `data`
/// begins at address 1024.
#[derive(Clone, Default)]
pub(crate) struct Guest {
    imports: String,
    data: String,
    pages: Option<u32>,
    init: String,
    handle: String,
}

/// The imports with which a guest sends messages.
const MESSAGING: &str = r#"
  (import "strowger:component/messaging@0.1.0" "resolve" (func $resolve (param i32 i32 i32)))
  (import "strowger:component/messaging@0.1.0" "send" (func $send (param i64 i32 i32 i32)))"#;

/// The imports with which a guest keeps data.
const STORES: &str = r#"
  (import "strowger:component/files@0.1.0" "read"
    (func $read (param i32 i32 i32 i32 i64 i32 i32)))
  (import "strowger:component/files@0.1.0" "write"
    (func $write (param i32 i32 i32 i32 i64 i32 i32 i32)))
  (import "strowger:component/files@0.1.0" "remove" (func $remove (param i32 i32 i32 i32 i32)))
  (import "strowger:component/files@0.1.0" "names"
    (func $names (param i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "strowger:component/kv@0.1.0" "set" (func $set (param i32 i32 i32 i32 i32)))
  (import "strowger:component/kv@0.1.0" "keys" (func $keys (param i32 i32 i32 i32 i32 i32)))"#;

impl Guest {
    /// A guest that returns at once, without a value.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn init(mut self, text: &str) -> Self {
        text.clone_into(&mut self.init);
        self
    }

    pub(crate) fn handle(mut self, text: &str) -> Self {
        text.clone_into(&mut self.handle);
        self
    }

    /// Imports the functions for sending, and puts a name at address 1024.
    pub(crate) fn sends_to(mut self, name: &str) -> Self {
        self.imports.push_str(MESSAGING);
        write!(self.data, "(data (i32.const 1024) {name:?})").expect("text grows");
        self
    }

    /// Imports the functions for files and keys, and puts the names `data` and `file` at addresses
    /// 1200 and 1204.
    pub(crate) fn stores(mut self, pages: u32) -> Self {
        self.imports.push_str(STORES);
        self.data.push_str("(data (i32.const 1200) \"datafile\")");
        self.pages = Some(pages);
        self
    }

    /// The component.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Self {
            imports,
            data,
            pages,
            init,
            handle,
        } = self;
        let pages = pages.unwrap_or(1);
        let text = format!(
            r#"(module {imports}
  (memory (export "memory") {pages}) {data}
  (func $ok (result i32) (i32.const 16))
  (func $spin (param $n i32)
    (loop $again
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n))))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 2048))
  (func (export "strowger:component/actor@0.1.0#init") (param $reason i32)
    (param $attempt i32) (param $version i32) (param $some i32) (param $ptr i32)
    (param $len i32) (result i32) {init} (call $ok))
  (func (export "strowger:component/actor@0.1.0#handle") (param $kind i32)
    (param $token i64) (param $ptr i32) (param $len i32) (result i32) {handle} (call $ok))
  (func (export "strowger:component/actor@0.1.0#stop"))
  (func (export "strowger:component/actor@0.1.0#health") (result i32) (call $ok)))"#
        );
        let mut module = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut resolve = Resolve::default();
        let package = resolve.push_str("component.wit", WIT);
        let package = package.expect("the contract parses");
        let world = resolve.select_world(&[package], Some("plain"));
        let world = world.expect("the contract has this world");
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
            .expect("the world fits into a section");
        let encoder = ComponentEncoder::default().module(&module);
        let mut encoder = encoder.expect("the module fits the world");
        encoder.encode().expect("the component is valid")
    }
}

/// A manifest with long deadlines and additional text.
pub(crate) fn manifest(name: &str, more: &str) -> Manifest {
    let mut manifest = Manifest::parse(&format!("[component]\nname = {name:?}\n{more}"))
        .unwrap_or_else(|error| panic!("{error}: {more}"));
    if !more.contains("deadline") {
        manifest.limits.deadline = Duration::from_secs(60);
    }
    if !more.contains("init =") {
        manifest.limits.init = Duration::from_secs(60);
    }
    manifest
}

/// Bytes of a message.
pub(crate) fn payload(text: &str) -> Payload {
    Payload::from(text.as_bytes())
}

/// Limits for a few components whose manifests may ask for anything. Guest threads have the normal
/// priority, so that tests that are not about neighbours finish in time on a busy machine.
pub(crate) fn limits() -> HostLimits {
    let mut limits = HostLimits::default();
    (limits.instances, limits.waiting, limits.nice) = (100, 20, 0);
    limits.caps = ManifestCaps::unlimited();
    limits
}
