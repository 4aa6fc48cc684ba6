//! The examples, each by its name: `cargo run -p strowger-examples ask`.
//!
//! They share one program, so that it is linked once. Each file is complete and can be read, or
//! copied as a `main.rs`, without the others.

mod agent_tools;
mod ask;
mod blocking;
mod counter;
mod durable;
mod entities;
mod event_sourced;
mod first;
mod machine;
mod outbox;
mod pfcp_association;
mod pfcp_node;
mod pfcp_pfd;
mod pfcp_report;
mod pfcp_session;
mod pfcp_sets;
mod pfcp_vendor;
mod pipeline;
mod pubsub;
mod reminder;
mod smf;
mod storm;
mod stream_to_file;
mod supervision;
mod timers;
mod virtual_time;
mod workers;

use std::process::{ExitCode, Termination};

/// The name of an example, and its `main`.
type Lesson = (&'static str, fn() -> ExitCode);

const LESSONS: [Lesson; 27] = [
    ("agent_tools", || agent_tools::main().report()),
    ("ask", || ask::main().report()),
    ("blocking", || blocking::main().report()),
    ("counter", || counter::main().report()),
    ("durable", || durable::main().report()),
    ("entities", || entities::main().report()),
    ("event_sourced", || event_sourced::main().report()),
    ("first", || first::main().report()),
    ("machine", || machine::main().report()),
    ("outbox", || outbox::main().report()),
    ("pfcp_association", || pfcp_association::main().report()),
    ("pfcp_node", || pfcp_node::main().report()),
    ("pfcp_pfd", || pfcp_pfd::main().report()),
    ("pfcp_report", || pfcp_report::main().report()),
    ("pfcp_session", || pfcp_session::main().report()),
    ("pfcp_sets", || pfcp_sets::main().report()),
    ("pfcp_vendor", || pfcp_vendor::main().report()),
    ("pipeline", || pipeline::main().report()),
    ("pubsub", || pubsub::main().report()),
    ("reminder", || reminder::main().report()),
    ("smf", || smf::main().report()),
    ("storm", || storm::main().report()),
    ("stream_to_file", || stream_to_file::main().report()),
    ("supervision", || supervision::main().report()),
    ("timers", || timers::main().report()),
    ("virtual_time", || {
        virtual_time::main();
        ExitCode::SUCCESS
    }),
    ("workers", || workers::main().report()),
];

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    let lesson = LESSONS
        .iter()
        .find(|(name, _)| wanted.as_deref() == Some(name));
    if let Some((_, run)) = lesson {
        return run();
    }
    eprintln!("cargo run -p strowger-examples NAME, where NAME is one of:");
    for (name, _) in LESSONS {
        eprintln!("  {name}");
    }
    ExitCode::FAILURE
}
