//! `strowger component run`: runs a component in an actor system of its own, and asks it line by
//! line.

use std::io::BufRead;
use std::time::Duration;

use serde_json::{Value, json};
use strowger::{ActorSystem, Strategy, Supervisor};
use strowger_wasm::manifest::ManifestCaps;
use strowger_wasm::signature::TrustPolicy;
use strowger_wasm::{Call, ComponentArgs, Directory};

use super::{ComponentFileArgs, host, load_refusal};
use crate::command::observe::printable_lines;
use crate::exit::{CliResult, Failure};
use crate::output::{Output, TextStyle};

const EXAMPLES: &str = "\
Examples:
  echo hello | strowger component run echo.wasm
  strowger component run counter.toml --json < questions.txt

Each line of standard input is a request; its reply is a line of standard output. A component that
fails is restarted as its manifest says, and the next line goes to the new incarnation.

Exit codes:
  1  a request was refused or failed";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ComponentRunArgs {
    #[command(flatten)]
    component: ComponentFileArgs,
    /// Print JSON, one object per reply, then one with statistics.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ComponentRunArgs, output: &mut Output) -> CliResult {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::outside(format!("cannot start worker threads: {error}")))?;
    runtime.block_on(ask(args, output))
}

async fn ask(args: &ComponentRunArgs, output: &mut Output) -> CliResult {
    let (bytes, manifest) = args.component.read()?;
    let answer = manifest.limits.answer;
    // The user decides here, not a node: no caps, and the default trust.
    let host = host(ManifestCaps::unlimited(), TrustPolicy::default())?;
    let image = host.load(bytes, manifest).await;
    let image = image.map_err(|error| load_refusal(&args.component, &error))?;
    let component = host.component(image, &Directory::new());
    let component = component.map_err(|full| Failure::outside(full.to_string()))?;
    let system =
        ActorSystem::new("component").map_err(|error| Failure::outside(error.to_string()))?;
    let top = Supervisor::new(Strategy::OneForOne);
    let top = system.supervise("components", top).await;
    let top = top.map_err(|error| Failure::outside(error.to_string()))?;
    let child = top.start_child(component.child()).await;
    let not_started = |component: &ComponentArgs| {
        let fault = component.info().fault;
        let why = fault.map_or_else(
            || "it exited immediately".to_owned(),
            |fault| fault.to_string(),
        );
        Failure::check(format!("the component failed to start: {why}"))
    };
    let child = child.map_err(|_| not_started(&component))?;
    let actor = ComponentArgs::find(&system, &child).ok_or_else(|| not_started(&component))?;
    let mut failed = 0_u64;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| Failure::outside(format!("standard input: {error}")))?;
        let call = Call(line.as_bytes().into());
        let reply = match actor.ask_within(call, answer).await {
            Ok(Ok(payload)) => Ok(String::from_utf8_lossy(&payload).into_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        failed += u64::from(reply.is_err());
        show(&line, &reply, args.json, output)?;
    }
    system.shutdown(Duration::from_secs(5)).await;
    // An answer is delivered before its call has been counted.
    let info = component.info();
    if args.json {
        let fault = info.fault.as_ref();
        output.json(&json!({
            "calls": info.calls,
            "faults": info.faults,
            "lives": info.incarnations,
            "memory": info.memory,
            "fault": fault.map_or(Value::Null, |fault| json!(fault.to_string())),
        }))?;
    }
    match failed {
        0 => Ok(()),
        1 => Err(Failure::check("1 request failed")),
        count => Err(Failure::check(format!("{count} requests failed"))),
    }
}

fn show(line: &str, reply: &Result<String, String>, json: bool, output: &mut Output) -> CliResult {
    match (reply, json) {
        (Ok(answer), false) => output.line(printable_lines(answer))?,
        (Err(why), false) => {
            let why = output.paint(TextStyle::Red, format!("! {why}"));
            output.line(why)?;
        }
        (Ok(answer), true) => output.json(&json!({ "request": line, "answer": answer }))?,
        (Err(why), true) => output.json(&json!({ "request": line, "failed": why }))?,
    }
    output.flush()
}
