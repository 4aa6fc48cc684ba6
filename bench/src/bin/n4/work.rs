//! The measurements, and the checks that the work was done.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use strowger::ActorSystem;
use strowger_pfcp::ie::{PdrId, Precedence, UpdatePdr};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp_node::{
    Client, ClientConfig, Durability, Load, LoadHandle, LoadPace, LoadPlan, LoadStats, Node,
    Session, SessionRules,
};
use tokio::runtime::Runtime;

use crate::node::{self, NodeProcess};

/// Number of requests in flight in a closed loop.
const IN_FLIGHT: usize = 32;

/// Number of sessions, spread over the whole store, that are probed.
const PROBED: usize = 1000;

/// One figure of one run.
pub(crate) struct Figure {
    pub(crate) id: String,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
    pub(crate) done: u64,
    pub(crate) checked: u64,
}

/// The runtime of the loads.
pub(crate) struct N4Bench {
    runtime: Runtime,
}

impl N4Bench {
    pub(crate) fn new() -> Self {
        Self {
            // A load is one actor: a second thread would only take processor time from the node.
            runtime: node::runtime(1),
        }
    }

    /// Establishments per second with a fixed number in flight, and the processor time of each.
    pub(crate) fn establish(
        &self,
        suffix: &str,
        durability: Option<Durability>,
        length: Duration,
    ) -> Vec<Figure> {
        let folder = TempFolder::new();
        let store = durability.map(|durability| (durability, folder.0.as_path()));
        let mut node = NodeProcess::start("127.0.0.1:0", store);
        let before = (node.figure("processor"), node::processor_nanos());
        let mut plan = self.plan(node.address);
        plan.sessions = usize::MAX;
        plan.duration = Some(length);
        let figures = self.runtime.block_on(async {
            let system = system();
            let load = Load::start(&system, plan)
                .await
                .expect("the node associates");
            load.finished().await
        });
        checked(&figures);
        let after = (node.figure("processor"), node::processor_nanos());
        assert_eq!(node.figure("established"), figures.established);
        assert_eq!(node.figure("sessions"), figures.established);
        let done = figures.established;
        let each = |from: u64, to: u64| (to - from) as f64 / done as f64;
        [
            ("rate", "1/s", figures.rate()),
            ("node_processor", "ns", each(before.0, after.0)),
            ("load_processor", "ns", each(before.1, after.1)),
        ]
        .map(|(name, unit, value)| Figure {
            id: format!("establish_{name}{suffix}"),
            unit,
            value,
            done,
            checked: done,
        })
        .into()
    }

    /// Latencies of establishments at a constant rate.
    pub(crate) fn latency(&self, rate: f64, length: Duration) -> Vec<Figure> {
        let node = NodeProcess::start("127.0.0.1:0", None);
        let mut plan = self.plan(node.address);
        plan.pace = LoadPace::Rate(rate);
        plan.sessions = usize::MAX;
        plan.duration = Some(length);
        let figures = self.runtime.block_on(async {
            let system = system();
            let load = Load::start(&system, plan)
                .await
                .expect("the node associates");
            load.finished().await
        });
        checked(&figures);
        assert!(
            figures.rate() > 0.98 * rate,
            "the rate was not kept: {figures:?}"
        );
        [("p50_at_10k", 0.5), ("p99_at_10k", 0.99)]
            .map(|(id, part)| Figure {
                id: id.to_owned(),
                unit: "ns",
                value: figures.latency.value_at_quantile(part) as f64,
                done: figures.answered,
                checked: figures.accepted,
            })
            .into()
    }

    /// Time from a panic in a session to the answer of its next incarnation, while other sessions
    /// are served.
    pub(crate) fn panics(&self, count: usize) -> Vec<Figure> {
        silence_injected_panics();
        let mut took: Vec<Duration> = node::runtime(2).block_on(async {
            let system = system();
            let mut config = node::settings();
            config.listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
            let node = Node::start(&system, config).await;
            let node = node.expect("the node starts");
            let mut plan = self.plan(node.local_addr());
            plan.pace = LoadPace::Rate(1000.0);
            let load = Load::start(&system, plan).await;
            let load = load.expect("the node associates");
            let sessions = establish(&system, node.local_addr(), 1000).await;
            let mut took = Vec::with_capacity(count);
            for session in sessions.iter().cycle().take(count) {
                let began = Instant::now();
                assert!(node.panic_session(session.remote_seid(), PANIC_TEXT));
                name_a_pdr(session).await;
                took.push(began.elapsed());
            }
            load.stop();
            checked(&load.finished().await);
            took
        });
        took.sort();
        [("restart_panic_p50", 50), ("restart_panic_p99", 99)]
            .map(|(id, percent)| Figure {
                id: id.to_owned(),
                unit: "ns",
                value: took[(took.len() - 1) * percent / 100].as_nanos() as f64,
                done: took.len() as u64,
                checked: took.len() as u64,
            })
            .into()
    }

    /// Time from the start of a process with `sessions` stored sessions, whose predecessor was
    /// killed, to its first heartbeat, and until sessions from all over the store accept a
    /// modification.
    pub(crate) fn recovery(&self, sessions: usize) -> Vec<Figure> {
        let folder = TempFolder::new();
        let store = Some((Durability::Process, folder.0.as_path()));
        let node = NodeProcess::start("127.0.0.1:0", store);
        let address = node.address;
        let (heartbeat, usable) = self.runtime.block_on(async {
            let system = system();
            let held = establish(&system, address, sessions).await;
            node.kill();
            let began = Instant::now();
            let starting = StartingNode::new(address, &folder.0);
            let heartbeat = tokio::task::spawn_blocking(move || heartbeat(address, began));
            let heartbeat = heartbeat.await.expect("the heartbeat is answered");
            for session in held.iter().step_by(held.len() / PROBED) {
                name_a_pdr(session).await;
            }
            let usable = began.elapsed();
            let mut node = starting.wait();
            assert_eq!(node.figure("sessions"), sessions as u64);
            (heartbeat, usable)
        });
        [
            ("recovery_100k", heartbeat, 1),
            ("recovery_100k_usable", usable, PROBED),
        ]
        .map(|(id, took, checked)| Figure {
            id: id.to_owned(),
            unit: "ns",
            value: took.as_nanos() as f64,
            done: sessions as u64,
            checked: checked as u64,
        })
        .into()
    }

    /// The cost of sessions when there are many: the memory of each, and the time of a request.
    pub(crate) fn many(&self, live: usize, length: Duration) -> Vec<Figure> {
        let mut node = NodeProcess::start("127.0.0.1:0", None);
        let (before, resident, requests, each) = self.runtime.block_on(async {
            let system = system();
            self.fill_answers(&system, node.address).await;
            let before = node.figure("resident");
            let load = hold(&system, self.plan(node.address), live).await;
            probe(&load).await;
            let resident = node.figure("resident");
            // From here on, each establishment is paired with a deletion.
            let (from, began) = (load.snapshot(), Instant::now());
            tokio::time::sleep(length).await;
            let (to, took) = (load.snapshot(), began.elapsed());
            load.stop();
            let requests = to.answered - from.answered;
            let each = took.as_nanos() as f64 / requests as f64;
            (before, resident, requests, each)
        });
        let bytes = resident.saturating_sub(before) as f64 / live as f64;
        let figure = |id: String, unit, value, done: u64| Figure {
            id,
            unit,
            value,
            done,
            checked: done,
        };
        let mut figures = vec![
            figure(format!("turnover/{live}"), "ns", each, requests),
            figure(format!("resident/{live}"), "bytes", bytes, live as u64),
        ];
        if live == 1_000_000 {
            figures.push(figure(
                "bytes_per_session".to_owned(),
                "bytes",
                bytes,
                live as u64,
            ));
        }
        figures
    }

    /// Sends requests until the node caches as many responses as it may, so that their memory is
    /// not counted as that of sessions.
    async fn fill_answers(&self, system: &ActorSystem, to: SocketAddr) {
        let mut plan = self.plan(to);
        plan.keep = false;
        let answers = node::settings().limits.response_cache as u64;
        let load = hold(system, plan, IN_FLIGHT).await;
        while load.snapshot().answered < answers {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        load.stop();
        checked(&load.finished().await);
    }

    fn plan(&self, to: SocketAddr) -> LoadPlan {
        let mut plan = LoadPlan::new(to);
        plan.pace = LoadPace::InFlight(IN_FLIGHT);
        // The sessions end with the process of the node.
        plan.keep = true;
        plan
    }
}

fn system() -> ActorSystem {
    ActorSystem::new("load").expect("a runtime is here")
}

fn checked(figures: &LoadStats) {
    assert_eq!((figures.rejected, figures.lost), (0, 0), "{figures:?}");
    assert!(figures.established > 0, "{figures:?}");
}

/// Establishes this number of sessions; the load keeps running.
async fn hold(system: &ActorSystem, mut plan: LoadPlan, sessions: usize) -> LoadHandle {
    plan.sessions = sessions;
    let load = Load::start(system, plan)
        .await
        .expect("the node associates");
    while load.snapshot().established < sessions as u64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    load
}

/// Modifies sessions spread over the whole store, to check that they exist.
async fn probe(load: &LoadHandle) {
    let held = load.held().await.expect("the load runs");
    for &(ours, _) in held.iter().step_by((held.len() / PROBED).max(1)) {
        let cause = load.modify(ours).await.expect("the node answers");
        // A session that is gone by now was deleted in its turn.
        assert!(cause.is_none_or(|cause| cause.is_acceptance()), "{cause:?}");
    }
}

/// Establishes this number of sessions, one like the other, with as many in flight as a load has.
async fn establish(system: &ActorSystem, to: SocketAddr, sessions: usize) -> Vec<Session> {
    let mut config = ClientConfig::default();
    config.node_id = Some("smf.bench".to_owned());
    let client = Client::bind(system, config).await;
    let client = client.expect("a port is free");
    let association = client.associate(to).await.expect("the node associates");
    let mut tasks = Vec::new();
    for task in 0..IN_FLIGHT {
        let association = association.clone();
        tasks.push(tokio::spawn(async move {
            let mut held = Vec::new();
            for number in (task..sessions).step_by(IN_FLIGHT) {
                let number = u32::try_from(number + 1).expect("fewer than four billion");
                let [_, high, middle, low] = number.to_be_bytes();
                let ue = Ipv4Addr::new(11, high, middle, low);
                let rules = SessionRules::with_tunnel(number, Ipv4Addr::LOCALHOST, ue.into());
                held.push(association.establish(rules).await.expect("it is accepted"));
            }
            held
        }));
    }
    let mut held = Vec::with_capacity(sessions);
    for task in tasks {
        held.extend(task.await.expect("every session was established"));
    }
    held
}

/// Modifies a session in a way that only a session which has its PDRs accepts.
async fn name_a_pdr(session: &Session) {
    let update = UpdatePdr::new(PdrId(1)).precedence(Precedence(255));
    let request = SessionModificationRequest::new().update_pdrs([update]);
    session.modify(request).await.expect("it is accepted");
}

const PANIC_TEXT: &str = "a drill of the benchmark";

/// Silences seeded panics: the default hook writes to the terminal, which costs more than the
/// restart that is measured.
fn silence_injected_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some(PANIC_TEXT) {
            default(panic);
        }
    }));
}

/// A node that is starting, and the thread that waits for it.
struct StartingNode(std::thread::JoinHandle<NodeProcess>);

impl StartingNode {
    fn new(address: SocketAddr, folder: &Path) -> Self {
        let folder = folder.to_owned();
        let start =
            move || NodeProcess::start(&address.to_string(), Some((Durability::Process, &folder)));
        Self(std::thread::spawn(start))
    }

    fn wait(self) -> NodeProcess {
        self.0.join().expect("the node starts")
    }
}

/// Sends heartbeats until one is answered.
fn heartbeat(to: SocketAddr, began: Instant) -> Duration {
    // Version 1, Heartbeat Request, twelve more bytes: sequence 1, Recovery Time Stamp.
    const REQUEST: [u8; 16] = [
        0x20, 1, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 0xe8, 0x1f, 0xdc, 0x30,
    ];
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    socket.connect(to).expect("an address of this machine");
    socket
        .set_read_timeout(Some(Duration::from_millis(1)))
        .expect("a millisecond is not zero");
    let mut answer = [0; 64];
    loop {
        // The node may not listen yet.
        let _ = socket.send(&REQUEST);
        if let Ok(length) = socket.recv(&mut answer) {
            assert_eq!(answer[..length][1], 2, "a Heartbeat Response");
            return began.elapsed();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no heartbeat");
    }
}

/// A folder that is deleted when this is dropped.
struct TempFolder(PathBuf);

impl TempFolder {
    fn new() -> Self {
        let name = format!("strowger-bench-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // An interrupted run may have left the folder behind.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("there is room for a folder");
        Self(folder)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // If this fails, the system cleans up its temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
