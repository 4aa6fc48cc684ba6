//! From a file through untrusted code into another file, and a run that is cancelled.
//!
//! The code has no access to anything: no files, no network, no clock. It is given two functions
//! that ask a files actor, whose rules apply to the code as to every caller, and one function of
//! this program. Its resource limits cannot be caught, and it is cancelled when its caller goes
//! away.
//!
//! `cargo run -p strowger-examples-code`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use serde_json::json;
use strowger::{ActorRef, ActorSystem, BoxError};
use strowger_tools::code::{
    Code, CodeSpec, ExecuteRequest, FollowRunRequest, GrantedFunctions, RunEvent,
};
use strowger_tools::files::{Files, FilesMessage, FilesSpec, ReadRequest, WriteRequest};
use strowger_wasm::{Host, HostLimits};

// The sandbox in which a node runs code: that of components, adapted to the code actor.
#[path = "../../crates/cli/src/compose/agents/sandbox.rs"]
mod sandbox;

const REPORT: &str = "
    type Call = { name: string; seconds: number };
    const calls: Call[] = (await fns.read(args.from)).trim().split('\\n')
        .map((line) => line.split(','))
        .map(([name, seconds]) => ({ name, seconds: Number(seconds) }));
    const sums = new Map<string, number>();
    for (const { name, seconds } of calls) sums.set(name, (sums.get(name) ?? 0) + seconds);
    const lines = [...sums].map(([name, seconds]) => `${name} owes ${fns.price(seconds)}\\n`);
    await fns.write(args.to, lines.join(''));
    console.log(`${calls.length} calls`);";

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let system = ActorSystem::new("exchange")?;
    let files = system.spawn::<Files>("files", FilesSpec::new(folder.path()))?;
    let host = Host::new(HostLimits::default())?;
    let realms = sandbox::Realms::new_blocking(&host)?;
    let mut spec = CodeSpec::new(realms).with_typescript(sandbox::TYPESCRIPT);
    spec.limits.time = Duration::from_secs(600);
    spec.limits.deadline = spec.limits.time;
    let watch = spec.watch.clone();
    let code = system.spawn::<Code>("code", spec)?;

    let calls = WriteRequest::new("calls.csv", "Almon,120\nEmma,80\nAlmon,40\n");
    files.ask(calls).await??;
    let report = ExecuteRequest::new(REPORT)
        .typescript()
        .with_args(json!({ "from": "calls.csv", "to": "bill.txt" }))
        .with_functions(granted_functions(&files));
    let executed = code.ask_within(report, TIMEOUT).await??;
    println!("{}", executed.output[0].text);
    let bill = files.ask(ReadRequest::new("bill.txt")).await??;
    print!("{}", String::from_utf8(bill.into())?);

    // Functions that are not given do not exist, and limits cannot be caught.
    for attempt in ["fetch('/')", "try { 'x'.repeat(2 ** 28) } catch {}"] {
        let failed = code
            .ask_within(ExecuteRequest::new(attempt), TIMEOUT)
            .await?;
        println!("{}", failed.expect_err("it is not granted"));
    }

    // When the caller stops listening, the run is cancelled, wherever it is.
    let endless = ExecuteRequest::new("console.log('round and round'); for (;;);");
    let mut told = code
        .ask_within(FollowRunRequest::new(endless), TIMEOUT)
        .await??;
    if let Some(Ok(RunEvent::Line(line))) = told.recv().await {
        println!("{}", line.text);
    }
    drop(told);
    while watch.usage().running > 0 {
        tokio::task::yield_now().await;
    }
    let usage = watch.usage();
    println!(
        "given up: {}, under way: {}",
        usage.cancelled, usage.running
    );
    system.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

const TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the functions given to the code. Its files are those of the actor, under the actor's
/// rules.
fn granted_functions(files: &ActorRef<FilesMessage>) -> GrantedFunctions {
    let (reads, writes) = (files.clone(), files.clone());
    GrantedFunctions::new()
        .promise("read", move |values| {
            let files = reads.clone();
            async move {
                let [path] = &*values else {
                    return Err("read(path)".to_owned());
                };
                let read = ReadRequest::new(path.as_str().unwrap_or_default());
                let bytes = files.ask(read).await.map_err(|error| error.to_string())?;
                let bytes = bytes.map_err(|error| error.to_string())?;
                String::from_utf8(bytes.into()).map_err(|error| error.to_string())
            }
        })
        .promise("write", move |values| {
            let files = writes.clone();
            async move {
                let [path, text] = &*values else {
                    return Err("write(path, text)".to_owned());
                };
                let [path, text] = [path, text].map(|value| value.as_str().unwrap_or_default());
                let write = WriteRequest::new(path, text.to_owned());
                let written = files.ask(write).await.map_err(|error| error.to_string())?;
                written.map_err(|error| error.to_string())
            }
        })
        .waiting("price", |values| {
            let seconds = values.first().and_then(|value| value.as_f64());
            std::future::ready(Ok(seconds.unwrap_or(0.0) * 2.0))
        })
}
