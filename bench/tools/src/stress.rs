//! All tools of a node at the same time: a thousand calls in batches of fifty, and an open loop of
//! calls that no answer delays.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use strowger::{ActorRef, ActorSystem};
use strowger_bench::{Plan, Row, workers};
use strowger_tools::code::{Code, CodeMessage, CodeSpec, ExecuteRequest};
use strowger_tools::files::{Files, FilesMessage, FilesSpec, ReadRequest, WriteRequest};
use strowger_tools::program::{PerformRequest, ProgramMessage, Programs, ProgramsSpec};
use strowger_tools::stream::{
    FollowStreamRequest, OpenStreamRequest, PutRequest, StreamPiece, Streams, StreamsMessage,
    StreamsSpec,
};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::code::realms;
use crate::programs::publish;
use crate::sandbox::Realms;

/// Number of calls in a round, as in the documents.
const CALLS: usize = 1000;
/// Number of calls in flight at the same time.
const BATCH: usize = 50;
/// Calls per second of the open loop.
const RATE: u64 = 2000;
/// Number of files, realms and programs that take turns.
const EACH: usize = 8;
/// Bytes of a file.
const FILE: usize = 10_000;
/// Bytes of a piece.
const PIECE: usize = 4096;

/// The tool that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    File,
    Code,
    Program,
    Stream,
}

const TOOLS: [(Tool, &str); 4] = [
    (Tool::File, "file"),
    (Tool::Code, "code"),
    (Tool::Program, "program"),
    (Tool::Stream, "stream"),
];

/// The tool and the duration of one call.
type CallTime = (Tool, Duration);

pub(super) fn run(plan: &Plan, folder: &Path) {
    let runtime = workers(0, 2);
    let rounds = if plan.is_quick() { 3 } else { 20 };
    let seconds = if plan.is_quick() { 5 } else { 60 };
    let tools = Arc::new(runtime.block_on(ToolSystem::open(folder)));
    // Parts that start with the first call of a tool do not count for a call.
    runtime.block_on(round(&tools, 0));
    let before = resident();
    let began = Instant::now();
    let mut took = Vec::new();
    for number in 1..=rounds {
        plan.progress(&format!("round {number} of {rounds}"));
        took.extend(runtime.block_on(round(&tools, number)));
    }
    let rate = took.len() as f64 / began.elapsed().as_secs_f64();
    print(plan, "stress_rate", "messages/s", rate, took.len());
    let grown = resident().saturating_sub(before) as f64;
    print(plan, "stress_growth", "bytes", grown, took.len());
    percentiles(
        plan,
        "stress",
        &took,
        &[("p50", 500), ("p95", 950), ("p99", 990)],
    );
    plan.progress("open loop");
    let took = open_loop(&runtime, &tools, (rounds + 1) * CALLS, seconds);
    percentiles(
        plan,
        "open_loop",
        &took,
        &[("p50", 500), ("p99", 990), ("p999", 999)],
    );
    plan.progress("");
}

/// Prints rows of call durations, of each tool and of all together.
fn percentiles(plan: &Plan, id: &str, took: &[CallTime], wanted: &[(&str, usize)]) {
    let of = |tool: Option<Tool>| {
        let ours = took
            .iter()
            .filter(|(of, _)| tool.is_none_or(|tool| tool == *of));
        let mut times: Vec<Duration> = ours.map(|(_, took)| *took).collect();
        times.sort_unstable();
        times
    };
    let mut each = vec![(String::new(), of(None))];
    each.extend(TOOLS.map(|(tool, name)| (format!("_{name}"), of(Some(tool)))));
    for (name, times) in each {
        for (percentile, permille) in wanted {
            let at = (times.len() * permille / 1000).min(times.len() - 1);
            let id = format!("{id}{name}_{percentile}");
            print(plan, &id, "ns", times[at].as_nanos() as f64, times.len());
        }
    }
}

fn print(plan: &Plan, id: &str, unit: &'static str, value: f64, of: usize) {
    plan.print(&Row {
        part: plan.part(),
        id: id.to_owned(),
        subject: "strowger",
        value: Ok(value),
        unit,
        iterations: of as u64,
        checked: of as u64,
        notes: Vec::new(),
    });
}

/// Makes calls in batches, each of which is answered before the next one begins.
async fn round(tools: &Arc<ToolSystem>, round: usize) -> Vec<CallTime> {
    let mut took = Vec::with_capacity(CALLS);
    for batch in 0..CALLS / BATCH {
        let calls = (0..BATCH).map(|call| {
            let (tools, number) = (Arc::clone(tools), (round * CALLS) + batch * BATCH + call);
            // The time that the task waits for a worker counts, too.
            let began = Instant::now();
            tokio::spawn(async move {
                let tool = tools.call(number).await;
                (tool, began.elapsed())
            })
        });
        let calls: Vec<_> = calls.collect();
        for call in calls {
            took.push(call.await.expect("it is answered"));
        }
    }
    took
}

/// Makes calls at fixed times, however long answers take; each is timed from when it was due.
fn open_loop(
    runtime: &Runtime,
    tools: &Arc<ToolSystem>,
    first: usize,
    seconds: u64,
) -> Vec<CallTime> {
    let calls = usize::try_from(RATE * seconds).expect("a few");
    let pause = Duration::from_nanos(1_000_000_000 / RATE);
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let began = Instant::now();
    for number in 0..calls {
        let due = began + pause * u32::try_from(number).expect("a few");
        let early = due.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            thread::sleep(early);
        }
        let (tools, sender) = (Arc::clone(tools), sender.clone());
        runtime.spawn(async move {
            let tool = tools.call(first + number).await;
            // The receiver is only gone if it panicked.
            let _ = sender.send((tool, due.elapsed()));
        });
    }
    drop(sender);
    let mut took = Vec::with_capacity(calls);
    runtime.block_on(async {
        while let Some(one) = receiver.recv().await {
            took.push(one);
        }
    });
    assert_eq!(took.len(), calls, "some were not answered");
    took
}

/// The tools of a node.
struct ToolSystem {
    files: ActorRef<FilesMessage>,
    code: ActorRef<CodeMessage>,
    programs: Vec<ActorRef<ProgramMessage>>,
    streams: ActorRef<StreamsMessage>,
    arrivals: Arc<Arrivals>,
    _system: ActorSystem,
}

/// The calls to notify when a piece arrives at the reader, by the number of the piece.
type Arrivals = Mutex<HashMap<u64, oneshot::Sender<()>>>;

/// A program that keeps no state, so that its answer depends only on the message.
const TWICE: &str = "function handle(n) { return n * 2 }";

/// The name of the stream.
const STREAM: &str = "bench";

impl ToolSystem {
    async fn open(folder: &Path) -> Self {
        for number in 0..EACH {
            std::fs::write(folder.join(number.to_string()), content(number))
                .expect("the file is accessible");
        }
        let system = ActorSystem::new("bench").expect("it starts");
        let (realms, spec) = (realms(), FilesSpec::new(folder));
        let files = system.spawn::<Files>("files", spec).expect("it starts");
        let sandbox: Arc<Realms> = Arc::clone(&realms);
        let code = system.spawn::<Code>("code", CodeSpec::new(sandbox));
        let desk = system.spawn::<Programs>("programs", ProgramsSpec::new(realms));
        let desk = desk.expect("it starts");
        let mut programs = Vec::new();
        for number in 0..EACH {
            let name = format!("twice-{number}");
            programs.push(publish(&system, &desk, &name, TWICE).await);
        }
        let streams = system.spawn::<Streams>("streams", StreamsSpec::default());
        let streams = streams.expect("it starts");
        let open = streams
            .ask(OpenStreamRequest::new(STREAM).with_replay(0))
            .await;
        open.expect("it answers").expect("there is room");
        let reader = streams.ask(FollowStreamRequest::new(STREAM)).await;
        let mut reader = reader.expect("it answers").expect("there is room");
        let arrivals = Arc::new(Arrivals::default());
        let told = Arc::clone(&arrivals);
        tokio::spawn(async move {
            while let Some(piece) = reader.recv().await {
                let StreamPiece::Bytes(bytes) = piece.expect("none is missed") else {
                    panic!("it was bytes")
                };
                let number = number_of(&bytes, PIECE);
                let waits = told.lock().expect("nobody panicked").remove(&number);
                // The call is only gone if it panicked.
                let _ = waits.expect("it comes once").send(());
            }
        });
        Self {
            files,
            code: code.expect("it starts"),
            programs,
            streams,
            arrivals,
            _system: system,
        }
    }

    /// Makes a call, and checks its result.
    async fn call(&self, number: usize) -> Tool {
        let (tool, _) = TOOLS[number % TOOLS.len()];
        let turn = number / TOOLS.len();
        match tool {
            Tool::File => self.file(turn).await,
            Tool::Code => self.code(turn).await,
            Tool::Program => self.program(turn).await,
            Tool::Stream => self.stream(turn as u64).await,
        }
        tool
    }

    async fn file(&self, turn: usize) {
        let name = (turn / 2 % EACH).to_string();
        if turn.is_multiple_of(2) {
            let written = self.files.ask(WriteRequest::new(name, content(turn))).await;
            written.expect("it answers").expect("there is room");
        } else {
            let bytes = self.files.ask(ReadRequest::new(name)).await;
            number_of(&bytes.expect("it answers").expect("it exists"), FILE);
        }
    }

    async fn code(&self, turn: usize) {
        let execute =
            ExecuteRequest::new(format!("({turn} + 7) * 2")).in_realm((turn % EACH).to_string());
        let executed = self.code.ask(execute).await.expect("it answers");
        assert_eq!(executed.expect("it runs").value, json!((turn + 7) * 2));
    }

    async fn program(&self, turn: usize) {
        let answered = self.programs[turn % EACH]
            .ask(PerformRequest(json!(turn)))
            .await;
        assert_eq!(answered.expect("it answers"), Ok(json!(turn * 2)));
    }

    /// Sends a piece, and waits until the reader has it.
    async fn stream(&self, turn: u64) {
        let (sender, arrived) = oneshot::channel();
        self.expect(turn, sender);
        let mut bytes = vec![7; PIECE];
        mark(&mut bytes, turn);
        let put = self.streams.ask(PutRequest::bytes(STREAM, bytes)).await;
        assert_eq!(put.expect("it answers"), Ok(1));
        arrived.await.expect("it came");
    }

    /// Registers the sender to be notified when a piece arrives.
    fn expect(&self, number: u64, sender: oneshot::Sender<()>) {
        let mut arrivals = self.arrivals.lock().expect("nobody panicked");
        let before = arrivals.insert(number, sender);
        assert!(before.is_none(), "two calls have the same number");
    }
}

/// Returns the content of a file, with the number at both ends.
fn content(number: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; FILE];
    mark(&mut bytes, number as u64);
    bytes
}

fn mark(bytes: &mut [u8], number: u64) {
    let (first, last) = (0..8, bytes.len() - 8..bytes.len());
    bytes[first].copy_from_slice(&number.to_be_bytes());
    bytes[last].copy_from_slice(&number.to_be_bytes());
}

/// Returns the number that the bytes are marked with; panics if they are not complete.
fn number_of(bytes: &[u8], length: usize) -> u64 {
    assert_eq!(bytes.len(), length, "some are missing");
    let (first, last) = (&bytes[..8], &bytes[length - 8..]);
    assert_eq!(first, last, "they are of two writers");
    u64::from_be_bytes(first.try_into().expect("eight bytes"))
}

/// Returns the resident memory of the process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("there is /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.expect("VmRSS is in kB") * 1024
}
