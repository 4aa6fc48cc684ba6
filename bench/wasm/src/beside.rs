//! A native actor beside components that compute all the time.

use std::time::{Duration, Instant};

use strowger::{Accepts, Actor, ActorRef, ActorSystem, Ask, BoxError, Context, Request};
use strowger_bench::Counted;
use strowger_wasm::{ComponentRegistry, Manifest, Message};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::component::host;
use crate::{counted, payload};

/// A component that spins 200 000 times for each message, and sends itself the next one.
const HOG: &str = r#"(module
  (import "strowger:component/messaging@0.1.0" "resolve" (func $resolve (param i32 i32 i32)))
  (import "strowger:component/messaging@0.1.0" "send" (func $send (param i64 i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 512) "NAME")
  (func $spin (param $n i32)
    (loop $again
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n))))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "strowger:component/actor@0.1.0#init")
    (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 16))
  (func (export "strowger:component/actor@0.1.0#handle")
    (param i32 i64 i32 i32) (result i32)
    (call $resolve (i32.const 512) (i32.const 6) (i32.const 64))
    (call $spin (i32.const 200000))
    (call $send (i64.load (i32.const 72)) (i32.const 0) (i32.const 0) (i32.const 96))
    (i32.const 16))
  (func (export "strowger:component/actor@0.1.0#stop"))
  (func (export "strowger:component/actor@0.1.0#health") (result i32) (i32.const 16)))"#;

const WIT: &str = include_str!("../../../wit/component.wit");

fn hog(name: &str) -> Vec<u8> {
    let module = wat::parse_str(HOG.replace("NAME", name));
    let mut module = module.expect("it parses");
    let mut resolve = Resolve::default();
    let package = resolve.push_str("component.wit", WIT);
    let package = package.expect("the contract parses");
    let world = resolve.select_world(&[package], Some("plain"));
    let world = world.expect("the contract has this world");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .expect("the world fits into a section");
    let mut encoder = ComponentEncoder::default();
    encoder = encoder.module(&module).expect("the module fits the world");
    encoder.encode().expect("it is a component")
}

struct Native;

struct Ping;

impl Request for Ping {
    type Reply = ();
}

struct NativeMsg(Ask<Ping>);

impl Accepts<Ask<Ping>> for NativeMsg {
    fn wrap(ask: Ask<Ping>) -> Self {
        Self(ask)
    }
}

impl Actor for Native {
    type Msg = NativeMsg;
    type Args = ();
    type Error = BoxError;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }

    async fn handle(
        &mut self,
        NativeMsg(ask): NativeMsg,
        _: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        ask.reply.send(());
        Ok(())
    }
}

/// Returns the 99th percentile of the time that a native actor takes to answer a task, in
/// microseconds, beside this number of hogs, which have had time to be recognized as such. The asks
/// are half a millisecond apart.
pub async fn p99(hogs: usize, milliseconds: u64) -> Counted {
    const SETTLING_TIME: Duration = Duration::from_millis(500);
    let system = ActorSystem::new("beside").expect("inside a runtime");
    let host = host(hogs + 8);
    let registry = ComponentRegistry::start(&system, "components", &host).await;
    let registry = registry.expect("the key is unused");
    for number in 0..hogs {
        let name = format!("hog-{number:02}");
        let text = format!("[component]\nname = {name:?}\n[grant]\nsend = [{name:?}]\n");
        let manifest = Manifest::parse(&text).expect("a good manifest");
        let image = host.load_blocking(&hog(&name), manifest);
        let deployed = registry.deploy(image.expect("a good component")).await;
        let told = deployed.expect("it starts").try_tell(Message(payload()));
        told.expect("there is room");
    }
    tokio::time::sleep(SETTLING_TIME).await;
    let native = system
        .spawn::<Native>("native", ())
        .expect("the key is unused");
    let asking = tokio::spawn(ask(native, Duration::from_millis(milliseconds)));
    let mut times = asking.await.expect("it does not panic");
    times.sort_unstable();
    let at = times[times.len() * 99 / 100];
    for one in registry.list() {
        assert!(
            one.info.calls > 0 && one.info.faults == 0,
            "each has its turn"
        );
    }
    system.shutdown(Duration::from_secs(10)).await;
    counted(at.as_secs_f64() * 1e6, times.len() as u64)
}

async fn ask(native: ActorRef<NativeMsg>, span: Duration) -> Vec<Duration> {
    const PAUSE: Duration = Duration::from_micros(500);
    let mut times = Vec::new();
    let until = Instant::now() + span;
    while Instant::now() < until {
        let began = Instant::now();
        native.ask(Ping).await.expect("it answers");
        times.push(began.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    times
}
