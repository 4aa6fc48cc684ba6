//! `strowger mcp`: tools for an agent that starts this program.

mod limits;

use std::io::{self, Read, Write};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use strowger::{ActorSystem, Fault};
use strowger_gateway::mcp::{McpServeError, McpServer};
use strowger_wasm::Host;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, Interest};
use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::agent::{self, Roots};
use crate::compose::agents::{Realms, code, tools};
use crate::config::Config;
use crate::config::agents::{FilesSection, ToolsSection};
use crate::control::ControlArgs;
use crate::exit::{CliResult, Failure};
use crate::output::Output;
use strowger_pfcp_cli::signals::ShutdownSignals;

const EXAMPLES: &str = "\
Examples:
  strowger mcp --root .
  strowger mcp --root work=/srv/work --root docs=/srv/docs --read-only
  strowger mcp --root . --limit octets=10GiB,entries=1000000
  strowger mcp --root . --limit calls=8,deadline=5m,line=64MiB
  strowger mcp --code --limit code.time=5s
  strowger mcp --root . --streams --code --programs --cache ~/.cache/strowger
  strowger mcp
  strowger mcp --control /tmp/upf.sock

Speaks MCP on standard input and output with the agent that starts it. With --root the agent can
access files below these directories; the kernel resolves all paths. With --code it can run
JavaScript and TypeScript in a sandbox without network and files, which can call only the tools of
this server that the agent passes to it. Tools that are not enabled are not offered.

Without --root, --streams, --code and --programs the tools are those of the running node. See
docs/tools.md, also for the configuration of MCP clients.

Keys of --limit:
  calls, deadline, line, answer
                          concurrent calls, time limit of a call, bytes of an input line, bytes of
                          text in an answer
  file, octets, entries, page, scan, searched, matches, depth, path
                          limits of directories, see [[tools.files]] in `strowger init -`
  code.time, code.deadline, code.memory, code.stack, code.jobs, code.output, code.result,
  code.calls, code.source
                          limits of code and programs, see [tools.code.limits]

Times are durations such as 500ms, 1.5s, 2m or 1h; all other values are whole numbers, sizes also
with a unit such as 64MiB.";

/// The description of the command in listings.
pub(super) const ABOUT: &str = "Serve tools to an AI agent over the Model Context Protocol (MCP)";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {
    /// Directory that the agent may access, as DIR or NAME=DIR; may be repeated.
    #[arg(long = "root", value_name = "DIR", conflicts_with = "control")]
    roots: Vec<String>,
    /// Deny all writes.
    #[arg(long, requires = "roots")]
    read_only: bool,
    /// Override limits, such as `calls=8,deadline=5m`; may be repeated.
    #[arg(
        long = "limit",
        value_name = "KEY=VALUE[,KEY=VALUE]",
        value_delimiter = ','
    )]
    limits: Vec<String>,
    /// Enable streams between producers, readers and files.
    #[arg(long, conflicts_with = "control")]
    streams: bool,
    /// Enable running JavaScript and TypeScript in a sandbox.
    #[arg(long, conflicts_with = "control")]
    code: bool,
    /// Enable publishing and calling programs.
    #[arg(long, conflicts_with = "control")]
    programs: bool,
    /// Directory to cache the compiled code engine in, for faster starts.
    #[arg(long, value_name = "DIR", conflicts_with = "control")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    control: ControlArgs,
}

pub(crate) fn run(args: &McpArgs, _: &mut Output) -> CliResult {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::outside(format!("cannot start the async runtime: {error}")))?;
    let done = runtime.block_on(serve(args));
    // The thread that reads standard input may block for as long as no input arrives.
    runtime.shutdown_background();
    done
}

async fn serve(args: &McpArgs) -> CliResult {
    let system = ActorSystem::new("mcp").map_err(|error| Failure::outside(error.to_string()))?;
    let served = serve_in(&system, args).await;
    system.shutdown(Config::default().node.shutdown).await;
    served
}

async fn serve_in(system: &ActorSystem, args: &McpArgs) -> CliResult {
    let mut signals = ShutdownSignals::new()?;
    let (tools, limits) = if !args.has_own_tools() {
        let limits = limits::set(&args.limits, None)?;
        let control = args.control.path()?;
        // Connect first: this error explains better than that of a call that no node is running.
        drop(args.control.connect().await?);
        (
            agent::node_tools(&control).await.map_err(to_failure)?,
            limits,
        )
    } else {
        let mut section = args.section()?;
        let limits = limits::set(&args.limits, Some(&mut section))?;
        let realms = args.realms(&section).await?;
        let tools = tools::start(system, &section, realms).await?;
        let roots = Roots::of(&tools).await.map_err(to_failure)?;
        let for_agents = agent::add_tools(agent::no_tools(), &tools, &roots);
        let for_agents = agent::add_code(agent::add_decode(for_agents), system, &tools);
        (for_agents, limits)
    };
    let mcp = McpServer::open(system, tools, limits).await;
    let mcp = mcp.map_err(|error| Failure::outside(error.to_string()))?;
    let Standard {
        read,
        write,
        ended,
        written,
    } = stdio()?;
    let serving = async {
        let served = mcp.serve(read, write).await;
        // The last answers must reach standard output.
        let written = written.await.unwrap_or(Ok(()));
        served.map_err(|error| match error {
            McpServeError::Handshake(_) => Failure::input(error.to_string()),
            error => Failure::outside(error.to_string()),
        })?;
        written.map_err(|error| Failure::outside(format!("standard output: {error}")))
    };
    tokio::select! {
        done = serving => done,
        () = signals.recv() => Ok(()),
        done = abandoned(ended, limits.deadline + WRITE_TIME) => done,
    }
}

/// Time to write the answers that remain when the calls have ended.
const WRITE_TIME: Duration = Duration::from_secs(60);

/// Interval at which output is probed for a reader after the input has ended.
const PROBE: Duration = Duration::from_millis(100);

/// Waits until input has ended and output has no reader: then the agent has left, and its calls
/// end. Fails if the reader takes too long.
async fn abandoned(ended: oneshot::Receiver<()>, limit: Duration) -> CliResult {
    let _ = ended.await;
    let reader_gone = async {
        let stdout = io::stdout().as_fd().try_clone_to_owned();
        // Nothing is written through this one. A file has no reader that could leave.
        let Ok(stdout) = stdout.and_then(pipe::Sender::from_owned_fd_unchecked) else {
            return std::future::pending().await;
        };
        // Whether it is writable does not matter, so it is looked at now and then.
        let either = Interest::ERROR | Interest::WRITABLE;
        while let Ok(ready) = stdout.ready(either).await {
            if ready.is_error() || ready.is_write_closed() {
                return;
            }
            sleep(PROBE).await;
        }
    };
    match timeout(limit, reader_gone).await {
        Ok(()) => Ok(()),
        Err(_) => {
            let text = format!("standard output was not read within {limit:?}; answers were lost");
            Err(Failure::outside(text))
        }
    }
}

fn to_failure(fault: Fault) -> Failure {
    Failure::outside(fault.message)
}

impl McpArgs {
    /// Returns `true` if tools of its own are requested; otherwise those of the node are passed on.
    const fn has_own_tools(&self) -> bool {
        !self.roots.is_empty() || self.streams || self.code || self.programs
    }

    /// Returns the realms that code runs in, if any code runs.
    async fn realms(&self, section: &ToolsSection) -> CliResult<Option<Arc<Realms>>> {
        if !section.runs_code() {
            return Ok(None);
        }
        let mut limits = Config::default().components.limits();
        limits.cache.clone_from(&self.cache);
        let host = Host::new(limits).map_err(|error| Failure::outside(error.to_string()))?;
        code::realms(&host, section).await
    }

    /// Returns the requested tools as a section of a configuration.
    fn section(&self) -> CliResult<ToolsSection> {
        let mut section = ToolsSection::default();
        section.streams.enabled = self.streams;
        section.code.enabled = self.code;
        section.programs.enabled = self.programs;
        section.on_demand = true;
        if self.cache.is_some() && !self.code && !self.programs {
            let text = "--cache needs --code or --programs";
            return Err(Failure::input(text).hint("add --code or --programs"));
        }
        for arg in &self.roots {
            let (name, root) = match arg.split_once('=') {
                Some((name, root)) => (Some(name), root),
                None => (None, arg.as_str()),
            };
            let mut files = FilesSection::new(PathBuf::from(root));
            files.read_only = self.read_only;
            if let Some(name) = name {
                name.clone_into(&mut files.name);
            }
            section.files.push(files);
        }
        match section.problem_text() {
            Some(what) => Err(Failure::input(format!("--root: {what}"))
                .hint("name each directory: --root work=DIR --root docs=DIR")),
            None => Ok(section),
        }
    }
}

/// Bytes in transit to and from the threads that wait for standard input and output.
const PIPE_BYTES: usize = 64 * 1024;

/// Standard input and output.
struct Standard {
    read: DuplexStream,
    write: DuplexStream,
    /// Resolves when the input has ended.
    ended: oneshot::Receiver<()>,
    /// Resolves when all output is written, or cannot be.
    written: oneshot::Receiver<io::Result<()>>,
}

/// Opens standard input and output.
///
/// Each has a thread of its own: waiting for a terminal or a pipe would block a worker.
fn stdio() -> CliResult<Standard> {
    let (read, mut input) = tokio::io::duplex(PIPE_BYTES);
    let (write, mut output) = tokio::io::duplex(PIPE_BYTES);
    let (out, written) = oneshot::channel();
    let (recv, ended) = oneshot::channel();
    let handle = Handle::current();
    let reading = move || {
        let _end: oneshot::Sender<()> = recv;
        let mut buffer = [0; 8192];
        loop {
            match io::stdin().lock().read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => {
                    if handle.block_on(input.write_all(&buffer[..count])).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // An error ends the input as well.
                Err(_) => return,
            }
        }
    };
    let handle = Handle::current();
    let writing = move || {
        let mut buffer = vec![0; PIPE_BYTES];
        let mut put = Ok(());
        while let Ok(count @ 1..) = handle.block_on(output.read(&mut buffer)) {
            let mut stdout = io::stdout().lock();
            put = stdout
                .write_all(&buffer[..count])
                .and_then(|()| stdout.flush());
            if put.is_err() {
                break;
            }
        }
        let _ = out.send(put);
    };
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
        spawned
            .map(drop)
            .map_err(|error| Failure::outside(format!("cannot start a thread: {error}")))
    };
    spawn("stdin", Box::new(reading))?;
    spawn("stdout", Box::new(writing))?;
    Ok(Standard {
        read,
        write,
        ended,
        written,
    })
}
