//! Tools for an agent: files that cannot be escaped from, and a search that is cancelled.
//!
//! A tool is an actor. Every call has a deadline and can be cancelled, and a refusal names the rule
//! that forbids the call.
//!
//! `cargo run -p strowger-examples agent_tools`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use strowger::{ActorSystem, BoxError};
use strowger_tools::files::{
    EditRequest, Files, FilesSpec, ReadRequest, SearchRequest, TextChange, WriteRequest,
};
use tokio::time::timeout;

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let system = ActorSystem::new("agent")?;
    let mut spec = FilesSpec::new(folder.path());
    spec.limits.bytes = 1_000_000;
    let watch = spec.watch.clone();
    let files = system.spawn::<Files>("files", spec)?;

    files
        .ask(WriteRequest::new("plan.txt", "1. call back\n"))
        .await??;
    let edit = EditRequest {
        path: "plan.txt".to_owned(),
        changes: vec![TextChange {
            old: "call back".to_owned(),
            new: "write back".to_owned(),
            all: false,
        }],
        dry_run: false,
    };
    println!("places changed: {}", files.ask(edit).await??.replacements);

    let outside = files.ask(ReadRequest::new("../../etc/passwd")).await?;
    println!("{}", outside.expect_err("it is outside"));
    let large = WriteRequest::new("large", vec![0; 2_000_000]);
    println!("{}", files.ask(large).await?.expect_err("it is too much"));

    // The agent loses its patience: the search is cancelled, and the actor carries on.
    let search = SearchRequest {
        text: Some("back".to_owned()),
        ..SearchRequest::default()
    };
    let _ = timeout(Duration::ZERO, files.ask(search.clone())).await;
    let found = files.ask(search).await??;
    println!("found in {}", found.matches[0].path);

    let usage = watch.usage();
    println!("refused: {}", usage.verbs["read"].refused);
    system.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
