//! `strowger mcp`: tools for an agent that starts this program.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use strowger::{ActorSystem, Fault};
use strowger_gateway::{Mcp, McpLimits};
use strowger_wasm::Host;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::signals::Signals;
use crate::agent::{self, Roots};
use crate::compose::{Realms, code, tools};
use crate::config::{Config, FilesSection, ToolsSection};
use crate::control::ControlArgs;
use crate::exit::{Done, Failure};
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  strowger mcp --root .
  strowger mcp --root work=/srv/work --root docs=/srv/docs --read-only
  strowger mcp --root . --limit octets=10737418240 --limit entries=1000000
  strowger mcp --root . --streams --code --programs --cache ~/.cache/strowger
  strowger mcp
  strowger mcp --control /tmp/upf.sock

Speaks the Model Context Protocol on standard input and output, to the agent that starts it. With
--root the agent reaches files below these directories, by the verbs of file servers; paths are
resolved by the kernel. With --code it runs JavaScript and TypeScript in a sandbox that reaches
nothing but tools of this list that it is given. What is not asked for is not there. Without any of
these the tools are those of the running node: docs/tools.md, which also says how clients are told
to start this.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A directory that is reached, as DIR or NAME=DIR; may be given several times.
    #[arg(long = "root", value_name = "DIR", conflicts_with = "control")]
    roots: Vec<String>,
    /// Nothing is written.
    #[arg(long, requires = "roots")]
    read_only: bool,
    /// Another limit of these directories, such as `octets=10737418240`; may be given several
    /// times. `strowger init -` names them, below [[tools.files]].
    #[arg(long = "limit", value_name = "KEY=N", requires = "roots")]
    limits: Vec<String>,
    /// Streams are there, from producers to readers and to files.
    #[arg(long, conflicts_with = "control")]
    streams: bool,
    /// Code is run.
    #[arg(long, conflicts_with = "control")]
    code: bool,
    /// Programs are published and called.
    #[arg(long, conflicts_with = "control")]
    programs: bool,
    /// Where the compiled engine for code is kept, so that the next start finds it.
    #[arg(long, value_name = "DIR", conflicts_with = "control")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    control: ControlArgs,
}

pub(crate) fn run(args: &Args, _: &mut Output) -> Done {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::outside(format!("no runtime: {error}")))?;
    let done = runtime.block_on(serve(args));
    // The thread that reads standard input may go on for as long as nothing comes.
    runtime.shutdown_background();
    done
}

async fn serve(args: &Args) -> Done {
    let system = ActorSystem::new("mcp").map_err(|error| Failure::outside(error.to_string()))?;
    let served = serve_in(&system, args).await;
    system.shutdown(Config::default().node.shutdown).await;
    served
}

async fn serve_in(system: &ActorSystem, args: &Args) -> Done {
    let mut signals = Signals::new()?;
    let tools = if !args.has_own() {
        let control = args.control.path()?;
        // A first call says it better that there is no node.
        drop(args.control.connect().await?);
        agent::of_node(&control).await.map_err(failed)?
    } else {
        let section = args.section()?;
        let realms = args.realms(&section).await?;
        let tools = tools::start(system, &section, realms).await?;
        let roots = Roots::of(&tools).await.map_err(failed)?;
        let for_agents = agent::add_tools(agent::none(), &tools, &roots);
        agent::add_code(agent::add_decode(for_agents), system, &tools)
    };
    let mcp = Mcp::open(system, tools, McpLimits::default()).await;
    let mcp = mcp.map_err(|error| Failure::outside(error.to_string()))?;
    let (read, write, written) = standard()?;
    tokio::select! {
        served = mcp.serve(read, write) => {
            // What was answered last has to get out.
            let _ = written.await;
            served.map_err(|error| Failure::input(error.to_string()))
        }
        () = signals.end() => Ok(()),
    }
}

fn failed(fault: Fault) -> Failure {
    Failure::outside(fault.message)
}

impl Args {
    /// Whether tools of its own are asked for; else they are those of the node.
    const fn has_own(&self) -> bool {
        !self.roots.is_empty() || self.streams || self.code || self.programs
    }

    /// Where code runs, if any does.
    async fn realms(&self, section: &ToolsSection) -> Done<Option<Arc<Realms>>> {
        if !section.code.enabled && !section.programs.enabled {
            return Ok(None);
        }
        let mut limits = Config::default().components.limits();
        limits.cache.clone_from(&self.cache);
        let host = Host::new(limits).map_err(|error| Failure::outside(error.to_string()))?;
        code::realms(&host, section).await
    }

    /// What is asked for as a configuration has it.
    fn section(&self) -> Done<ToolsSection> {
        let mut section = ToolsSection::default();
        section.streams.enabled = self.streams;
        section.code.enabled = self.code;
        section.programs.enabled = self.programs;
        section.on_demand = true;
        if self.cache.is_some() && !self.code && !self.programs {
            let text = "--cache: no code is run whose engine could be kept";
            return Err(Failure::input(text).hint("ask for it as well: --code or --programs"));
        }
        for said in &self.roots {
            let (name, root) = match said.split_once('=') {
                Some((name, root)) => (Some(name), root),
                None => (None, said.as_str()),
            };
            let mut files = FilesSection::new(PathBuf::from(root));
            files.read_only = self.read_only;
            for limit in &self.limits {
                let (key, value) = limit.split_once('=').unwrap_or((limit, ""));
                let wrong = |why: String| {
                    Failure::input(format!("--limit {limit}: {why}"))
                        .hint("such as --limit octets=10737418240")
                };
                files.set_limit(key, value).map_err(wrong)?;
            }
            if let Some(name) = name {
                name.clone_into(&mut files.name);
            }
            section.files.push(files);
        }
        match section.said() {
            Some(what) => Err(Failure::input(format!("--root: {what}"))
                .hint("give several directories names: --root work=DIR --root docs=DIR")),
            None => Ok(section),
        }
    }
}

/// Octets on their way to and from the threads that wait for standard input and output.
const AHEAD: usize = 64 * 1024;

/// Standard input and output, and when all that was written to it is out.
///
/// Each has a thread of its own: what waits for a terminal or a pipe would keep a worker up.
fn standard() -> Done<(DuplexStream, DuplexStream, oneshot::Receiver<()>)> {
    let (read, mut came) = tokio::io::duplex(AHEAD);
    let (write, mut goes) = tokio::io::duplex(AHEAD);
    let (out, written) = oneshot::channel();
    let handle = Handle::current();
    let reading = move || {
        let mut octets = [0; 8192];
        loop {
            match io::stdin().lock().read(&mut octets) {
                Ok(0) => return,
                Ok(count) => {
                    if handle.block_on(came.write_all(&octets[..count])).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // An error is an end as well.
                Err(_) => return,
            }
        }
    };
    let handle = Handle::current();
    let writing = move || {
        let mut octets = vec![0; AHEAD];
        while let Ok(count @ 1..) = handle.block_on(goes.read(&mut octets)) {
            let mut stdout = io::stdout().lock();
            let put = stdout.write_all(&octets[..count]);
            if put.and_then(|()| stdout.flush()).is_err() {
                break;
            }
        }
        drop(out);
    };
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
        spawned
            .map(drop)
            .map_err(|error| Failure::outside(format!("no thread: {error}")))
    };
    spawn("stdin", Box::new(reading))?;
    spawn("stdout", Box::new(writing))?;
    Ok((read, write, written))
}
