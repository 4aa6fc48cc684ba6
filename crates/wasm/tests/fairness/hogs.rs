//! Hogs: components within every limit that compute all the time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use strowger_wasm::HostLimits;
use tokio::net::UdpSocket;

use crate::kit::{Guest, limits};
use crate::node::{Native, Node, One, Ping, Times, cores, run};

/// A guest that spins this often for each message and sends itself the next one; its own name is
/// its only grant.
pub(crate) fn hog(name: &str, turns: u32) -> Guest {
    Guest::new().sends_to(name).handle(&format!(
        "(call $resolve (i32.const 1024) (i32.const {}) (i32.const 64))
         (call $spin (i32.const {turns}))
         (call $send (i64.load (i32.const 72)) (i32.const 0) (i32.const 0) (i32.const 96))",
        name.len()
    ))
}

/// A guest that spins this often for each message.
pub(crate) fn spinner(turns: u32) -> Guest {
    Guest::new().handle(&format!("(call $spin (i32.const {turns}))"))
}

/// Deploys so many hogs, and begins with them.
pub(crate) async fn hogs(node: &Node, count: usize, turns: u32, deadline: &str) -> Vec<One> {
    let mut hogs = Vec::new();
    for number in 0..count {
        let name = format!("hog-{number:02}");
        let more = format!("[grant]\nsend = [{name:?}]\n[limits]\ndeadline = {deadline:?}");
        hogs.push(node.deploy(&hog(&name, turns), &name, &more).await);
    }
    for hog in &hogs {
        hog.tell("x");
    }
    hogs
}

/// What neighbours of hogs notice.
#[derive(Debug)]
struct Noticed {
    /// A native actor that is asked.
    native: Duration,
    /// A datagram there and back.
    socket: Duration,
    /// A component that is asked.
    component: Duration,
    /// A timer of a millisecond.
    timer: Duration,
}

/// How long neighbours are watched.
const SPAN: Duration = Duration::from_millis(1500);

/// Does something again and again for a while, a millisecond apart; how long it took each time.
async fn repeat<F: Future<Output = ()>>(mut work: impl FnMut() -> F) -> Times {
    let mut times = Times::default();
    let until = Instant::now() + SPAN;
    while Instant::now() < until {
        let began = Instant::now();
        work().await;
        times.add(began);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    times
}

/// Sends back what comes, for as long as the runtime is there; where.
async fn echo() -> SocketAddr {
    let echo = UdpSocket::bind("127.0.0.1:0").await;
    let echo = echo.expect("a port is free");
    let place = echo.local_addr().expect("it is bound");
    // It ends with the runtime of the test.
    drop(tokio::spawn(async move {
        let mut room = [0; 16];
        while let Ok((length, from)) = echo.recv_from(&mut room).await {
            let _ = echo.send_to(&room[..length], from).await;
        }
    }));
    place
}

/// The delays of neighbours, at the 99th percentile. Each is watched from a task on the workers.
async fn notice(node: &Node) -> Noticed {
    let native = node.system.spawn::<Native>("native", ());
    let native = native.expect("the key is free");
    let benign = node.deploy(&Guest::new(), "benign", "").await;
    let place = echo().await;
    let actor = tokio::spawn(repeat(move || {
        let native = native.clone();
        async move { native.ask(Ping).await.expect("it answers") }
    }));
    let socket = tokio::spawn(async move {
        let own = UdpSocket::bind("127.0.0.1:0").await;
        let own = &own.expect("a port is free");
        repeat(|| async move {
            own.send_to(b"x", place).await.expect("it is loopback");
            own.recv_from(&mut [0; 16]).await.expect("it comes back");
        })
        .await
    });
    let timer = tokio::spawn(repeat(|| tokio::time::sleep(Duration::from_millis(1))));
    let benign = &benign;
    let mut component = repeat(|| async move {
        benign.ask("x").await.expect("it answers");
    })
    .await;
    let [mut actor, mut socket, mut timer] = [
        actor.await.expect("it does not panic"),
        socket.await.expect("it does not panic"),
        timer.await.expect("it does not panic"),
    ];
    assert!(
        actor.count() > 10 && socket.count() > 10,
        "{actor:?} {socket:?}"
    );
    Noticed {
        native: actor.p99(),
        socket: socket.p99(),
        component: component.p99(),
        timer: timer.p99(),
    }
}

/// No neighbour waits this long, at the 99th percentile, on a machine that does other things too.
const BEARABLE: Duration = Duration::from_millis(250);

fn assert_bearable(noticed: &Noticed) {
    eprintln!("{noticed:?}");
    assert!(noticed.native < BEARABLE, "{noticed:?}");
    assert!(noticed.socket < BEARABLE, "{noticed:?}");
    assert!(noticed.component < BEARABLE, "{noticed:?}");
    assert!(noticed.timer < BEARABLE, "{noticed:?}");
}

fn beside(count: usize, turns: u32, deadline: &str) {
    run(async {
        let mut limits = limits();
        limits.nice = HostLimits::default().nice;
        let node = Node::start(limits).await;
        let hogs = hogs(&node, count, turns, deadline).await;
        assert_bearable(&notice(&node).await);
        for hog in &hogs {
            // Each has its turn, if not soon.
            while node.info(hog).calls == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let info = node.info(hog);
            assert!(info.cpu > Duration::ZERO, "{info:?}");
            assert!(info.heavy || turns == SHORT, "{info:?}");
            assert_eq!(info.faults, 0, "they are within every limit: {info:?}");
        }
        node.end().await;
    });
}

/// Calls of a fraction of a millisecond, with which a component may come back to the workers for a
/// moment.
const SHORT: u32 = 200_000;
/// Calls of a good part of a second, which a manifest may ask for.
const LONG: u32 = 400_000_000;

#[test]
fn neighbours_without_hogs_wait_for_nobody() {
    run(async {
        let node = Node::start(limits()).await;
        assert_bearable(&notice(&node).await);
        node.end().await;
    });
}

#[test]
fn one_hog_for_each_processor_delays_nobody() {
    beside(cores(), SHORT, "10ms");
}

#[test]
fn ten_hogs_for_each_processor_delay_nobody() {
    beside(10 * cores(), SHORT, "10ms");
}

#[test]
fn calls_that_take_long_delay_nobody() {
    beside(2 * cores(), LONG, "60s");
}

#[test]
fn a_component_that_is_quick_again_comes_back() {
    run(async {
        let node = Node::start(limits()).await;
        let moody =
            spinner(1).handle("(if (local.get $len) (then (call $spin (i32.const 50000000))))");
        let moody = node.deploy(&moody, "moody", "").await;
        moody.ask("long").await.expect("it answers");
        assert!(node.info(&moody).heavy);
        let since = Instant::now();
        while node.info(&moody).heavy {
            moody.ask("").await.expect("it answers");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert!(since.elapsed() > Duration::from_millis(500), "not at once");
        node.end().await;
    });
}

#[test]
fn a_component_that_is_killed_leaves_its_guest_thread() {
    run(async {
        let mut limits = limits();
        limits.threads = 1;
        let node = Node::start(limits).await;
        let endless = spinner(1).handle("(loop $again (br $again))");
        let more = "[limits]\ndeadline = \"600s\"";
        let endless = node.deploy(&endless, "endless", more).await;
        endless.tell("x");
        while !node.info(&endless).heavy {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The call under way is on its worker's stack; the next one is not.
        endless.actor.kill();
        node.end().await;
    });
}
