//! Guests from text, and systems to run them in.

use std::fmt::Write;
use std::time::Duration;

use strowger::testing::TestSystem;
use strowger::{ActorRef, Supervisor};
use strowger_wasm::manifest::ManifestCaps;
use strowger_wasm::message::ComponentMsg;
use strowger_wasm::{
    Answer, Call, ComponentArgs, Directory, Host, HostLimits, Image, Manifest, Message, Payload,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

const WIT: &str = include_str!("../../../../wit/component.wit");

/// A bump allocator: memory is never freed, but reset after each call.
const BUMP: &str = "\
  (global $top (mut i32) (i32.const 8192))
  (func $bump (param $align i32) (param $size i32) (result i32) (local $at i32)
    (local.set $at (i32.and
      (i32.sub (i32.add (global.get $top) (local.get $align)) (i32.const 1))
      (i32.sub (i32.const 0) (local.get $align))))
    (global.set $top (i32.add (local.get $at) (local.get $size)))
    (block $fits (loop $more
      (br_if $fits
        (i32.le_u (global.get $top) (i32.mul (memory.size) (i32.const 65536))))
      (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))
      (br $more)))
    (local.get $at))";

/// Results for the host: success without a value, an answer, a refusal.
const RESULTS: &str = "\
  (func $result (param $case i32) (param $ptr i32) (param $len i32) (result i32)
    (i32.store (i32.const 16) (local.get $case))
    (i32.store (i32.const 20) (local.get $ptr))
    (i32.store (i32.const 24) (local.get $len))
    (i32.const 16))
  (func $ok (result i32) (call $result (i32.const 0) (i32.const 0) (i32.const 0)))
  (func $answer (param i32 i32) (result i32)
    (call $result (i32.const 0) (local.get 0) (local.get 1)))
  (func $fail (param i32 i32) (result i32)
    (call $result (i32.const 1) (local.get 0) (local.get 1)))";

/// A guest that echoes unless it is told otherwise.
///
/// Its pieces are bodies of functions. They may use `$ok` (success, no value), `$answer` and
/// `$fail` (pointer and length), which give a result for the host; results of imports go to address
/// 64. The text of `data` begins at address 1024.
#[derive(Clone, Default)]
pub(crate) struct Guest {
    imports: String,
    data: String,
    globals: String,
    pages: Option<String>,
    init: Option<String>,
    handle: Option<String>,
    stop: Option<String>,
    health: Option<String>,
    snapshot: Option<String>,
    batch: Option<String>,
    realloc: Option<String>,
    post: Option<String>,
    more: String,
}

macro_rules! piece {
    ($($name:ident),*) => {$(
        pub(crate) fn $name(mut self, text: &str) -> Self {
            self.$name = Some(text.to_owned());
            self
        }
    )*};
}

impl Guest {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    piece!(
        init, handle, stop, health, snapshot, batch, realloc, post, pages
    );

    /// Imports a function of an interface, as `$function`.
    pub(crate) fn import(mut self, interface: &str, function: &str) -> Self {
        let kind = match (interface, function) {
            ("kv", "set") | ("files", "remove") => "(param i32 i32 i32 i32 i32)",
            ("kv", "swap") => "(param i32 i32 i32 i32 i32 i32 i32 i32 i32)",
            ("kv", "keys") => "(param i32 i32 i32 i32 i32 i32)",
            ("files", "read") => "(param i32 i32 i32 i32 i64 i32 i32)",
            ("files", "write") => "(param i32 i32 i32 i32 i64 i32 i32 i32)",
            ("files", "names") => "(param i32 i32 i32 i32 i32 i32 i32 i32)",
            (_, "resolve" | "topic" | "subscribe" | "get" | "write" | "remove") => {
                "(param i32 i32 i32)"
            }
            (_, "send" | "ask" | "publish" | "after" | "request" | "open") => {
                "(param i64 i32 i32 i32)"
            }
            (_, "release" | "close" | "finish") => "(param i64 i32)",
            (_, "bytes") => "(param i32 i32)",
            (_, "now" | "wall") => "(result i64)",
            other => panic!("no such import: {other:?}"),
        };
        let module = format!("strowger:component/{interface}@0.1.0");
        writeln!(
            self.imports,
            "(import \"{module}\" \"{function}\" (func ${function} {kind}))"
        )
        .expect("text grows");
        self
    }

    /// Puts text at address 1024.
    pub(crate) fn data(mut self, text: &str) -> Self {
        self.data = format!("(data (i32.const 1024) {text:?})");
        self
    }

    /// Adds globals, tables or functions.
    pub(crate) fn more(mut self, text: &str) -> Self {
        self.more.push_str(text);
        self
    }

    /// Adds globals.
    pub(crate) fn global(mut self, text: &str) -> Self {
        self.globals.push_str(text);
        self
    }

    /// The core module, as text.
    pub(crate) fn text(&self) -> String {
        let or = |piece: &Option<String>, default: &str| {
            piece.clone().unwrap_or_else(|| default.to_owned())
        };
        let mut text = format!(
            r#"(module {imports}
  (memory (export "memory") {pages}) {data} {globals}
  {BUMP}
  (func (export "cabi_realloc") (param $old i32) (param $was i32) (param $align i32)
    (param $size i32) (result i32) {realloc})
  {RESULTS}
  (func (export "strowger:component/actor@0.1.0#init") (param $reason i32)
    (param $attempt i32) (param $version i32) (param $some i32) (param $ptr i32)
    (param $len i32) (result i32) {init})
  (func (export "strowger:component/actor@0.1.0#handle") (param $kind i32)
    (param $token i64) (param $ptr i32) (param $len i32) (result i32) {handle})
  (func (export "cabi_post_strowger:component/actor@0.1.0#handle") (param i32) {post})
  (func (export "strowger:component/actor@0.1.0#stop") {stop})
  (func (export "strowger:component/actor@0.1.0#health") (result i32) {health})
"#,
            imports = self.imports,
            pages = or(&self.pages, "1"),
            data = self.data,
            globals = self.globals,
            realloc = or(
                &self.realloc,
                "(call $bump (local.get $align) (local.get $size))"
            ),
            init = or(&self.init, "(call $ok)"),
            handle = or(
                &self.handle,
                "(call $answer (local.get $ptr) (local.get $len))"
            ),
            post = or(&self.post, "(global.set $top (i32.const 8192))"),
            stop = or(&self.stop, ""),
            health = or(&self.health, "(call $ok)"),
        );
        if let Some(snapshot) = &self.snapshot {
            write!(
                text,
                r#"(func (export "strowger:component/stateful@0.1.0#snapshot") (result i32)
  {snapshot})
  (func (export "strowger:component/stateful@0.1.0#version") (result i32) (i32.const 7))"#
            )
            .expect("text grows");
        }
        if let Some(batch) = &self.batch {
            write!(
                text,
                r#"(func (export "strowger:component/batch@0.1.0#handle") (param $ptr i32)
  (param $count i32) (result i32) {batch})"#
            )
            .expect("text grows");
        }
        text.push_str(&self.more);
        text.push(')');
        text
    }

    /// The component.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let world = match (&self.snapshot, &self.batch) {
            (None, None) => "plain",
            (Some(_), None) => "durable",
            (None, Some(_)) => "batched",
            (Some(_), Some(_)) => "complete",
        };
        let text = self.text();
        let mut module = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut resolve = Resolve::default();
        let package = resolve
            .push_str("component.wit", WIT)
            .expect("the contract parses");
        let world = resolve
            .select_world(&[package], Some(world))
            .expect("the contract has this world");
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
            .expect("the world fits into a section");
        ComponentEncoder::default()
            .validate(true)
            .module(&module)
            .expect("the module fits the world")
            .encode()
            .expect("the component is valid")
    }
}

/// A guest that counts the messages that it handles, answers with the count in one byte, keeps it
/// as its state, and traps on the byte 255.
pub(crate) fn counter() -> Guest {
    Guest::new()
        .global("(global $count (mut i32) (i32.const 0))")
        .init(
            "(if (local.get $some) (then
               (global.set $count (i32.load8_u (local.get $ptr)))))
             (call $ok)",
        )
        .handle(
            "(if (local.get $len) (then
               (if (i32.eq (i32.load8_u (local.get $ptr)) (i32.const 255)) (then unreachable))))
             (global.set $count (i32.add (global.get $count) (i32.const 1)))
             (i32.store8 (i32.const 512) (global.get $count))
             (call $answer (i32.const 512) (i32.const 1))",
        )
        .snapshot(
            "(i32.store8 (i32.const 520) (global.get $count))
             (i32.store (i32.const 16) (i32.const 520))
             (i32.store (i32.const 20) (i32.const 1))
             (i32.const 16)",
        )
}

/// Limits of hosts whose manifests may ask for anything: separate tests cover what a host allows.
pub(crate) fn limits() -> HostLimits {
    let mut limits = HostLimits::default();
    limits.caps = ManifestCaps::unlimited();
    limits
}

/// A host for a single test. Its deadlines run on the real clock, so tests that are not about
/// deadlines give calls a long time.
pub(crate) fn host() -> Host {
    let mut limits = limits();
    limits.instances = 16;
    limits.waiting = 8;
    Host::new(limits).expect("there is a thread to be had")
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

/// The payload of a message.
pub(crate) fn payload(text: &str) -> Payload {
    Payload::from(text.as_bytes())
}

/// A host, a directory and a system for components.
pub(crate) struct Testbed {
    pub(crate) host: Host,
    pub(crate) directory: Directory,
    pub(crate) system: TestSystem,
}

/// A component that was started.
pub(crate) struct Started {
    pub(crate) actor: ActorRef<ComponentMsg>,
    pub(crate) args: ComponentArgs,
}

impl Testbed {
    pub(crate) fn new() -> Self {
        Self {
            host: host(),
            directory: Directory::new(),
            system: TestSystem::new(1),
        }
    }

    pub(crate) fn image(&self, guest: &Guest, name: &str, more: &str) -> Image {
        self.host
            .load_blocking(&guest.encode(), manifest(name, more))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a component below a supervisor of its own, and adds it to the directory.
    pub(crate) fn start(&self, guest: &Guest, name: &str, more: &str) -> Started {
        let image = self.image(guest, name, more);
        let args = self
            .host
            .component(image, &self.directory)
            .expect("there is room");
        self.start_args(args)
    }

    pub(crate) fn start_args(&self, args: ComponentArgs) -> Started {
        let name = args.name().to_owned();
        let top = Supervisor::new(strowger::Strategy::OneForOne).child(args.child());
        self.system.supervise(format!("top-{name}"), top);
        let place = format!("/top-{name}/{name}/guest");
        let actor = self.system.system().find(place.as_str());
        let actor = actor.and_then(|actor| actor.downcast::<ComponentMsg>());
        let actor = actor.expect("it was started");
        self.directory.insert(
            name,
            strowger_wasm::directory::DirectoryEntry::with_streams(&actor),
        );
        Started { actor, args }
    }

    pub(crate) fn ask(&self, to: &Started, text: &str) -> Answer {
        let asked = self.system.run(to.actor.ask(Call(payload(text))));
        asked.expect("it is answered")
    }

    pub(crate) fn tell(&self, to: &Started, text: &str) {
        to.actor
            .try_tell(Message(payload(text)))
            .expect("there is room");
        self.system.run_until_idle();
    }
}

/// An answer as text.
pub(crate) fn text(answer: Answer) -> String {
    let payload = answer.expect("it answers");
    String::from_utf8(payload.to_vec()).expect("it answers in text")
}
