//! A process that counts is killed again and again.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use strowger::{ActorSystem, BoxError};
use strowger_durable::store::{Durability, FjallOptions, FjallStore};

use crate::counter::{DurableCounter, Increment, counter, key};
use crate::ledger::{DurableLedger, Write, added, ledger};

const FOLDER: &str = "STROWGER_DURABLE_FOLDER";
const FIRST: &str = "STROWGER_DURABLE_FIRST";
const SYNCS: &str = "STROWGER_DURABLE_SYNCS";
const EVENTS: &str = "STROWGER_DURABLE_EVENTS";

/// Counts from a number until it is killed. The key of each increment is the value that it leads
/// to, so a lost or doubled one shows. With events, each adds an entry.
#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "the parent reads it")]
async fn count(folder: &str, first: u64) -> Result<(), BoxError> {
    let options = FjallOptions {
        durability: match std::env::var_os(SYNCS) {
            Some(_) => Durability::Disk,
            None => Durability::Process,
        },
        ..FjallOptions::default()
    };
    let store = FjallStore::open(folder, options)?;
    let system = ActorSystem::new("child")?;
    let (counter_args, ledger_args) = (counter(&store, "a", None), ledger(&store, "a", None));
    let counter = system.spawn::<DurableCounter>("counter", counter_args)?;
    let ledger = system.spawn::<DurableLedger<7, false>>("ledger", ledger_args)?;
    let has_events = std::env::var_os(EVENTS).is_some();
    for value in first.. {
        let key = key(&value.to_string());
        let answer = match has_events {
            true => ledger.ask(Write(added([value]), key)).await?,
            false => counter.ask(Increment(key)).await?,
        };
        println!("counted {value} {answer}");
    }
    Ok(())
}

/// The program of the child; in the parent, it does nothing.
#[test]
fn counting_child() {
    if let Ok(folder) = std::env::var(FOLDER) {
        let first = std::env::var(FIRST).expect("a number");
        let counted = count(&folder, first.parse().expect("a number"));
        counted.expect("it counts until it is killed");
    }
}

/// Starts a child, kills it after so many increments, and returns the last that it acknowledged.
fn run_child(folder: &std::path::Path, first: u64, settings: &[&str], increments: usize) -> u64 {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command
        .args(["--exact", "kill::counting_child", "--nocapture"])
        .env(FOLDER, folder)
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped());
    for setting in settings {
        command.env(setting, "1");
    }
    let mut child = command.spawn().expect("it starts");
    let mut last = first - 1;
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut seen = 0;
    // After the kill, the pipe still has what was acknowledged before it.
    for line in output.lines() {
        let line = line.expect("text");
        let Some(counted) = line.split("counted ").nth(1) else {
            continue;
        };
        let Some((value, answer)) = counted.split_once(' ') else {
            continue;
        };
        assert_eq!(value, answer, "an increment is lost or doubled");
        last = value.parse().expect("a number");
        seen += 1;
        if seen == increments {
            child.kill().expect("it runs");
        }
    }
    child.wait().expect("it has ended");
    assert!(seen >= increments, "the child ended by itself");
    last
}

fn run_children(form: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut acknowledged = 0;
    for (round, increments) in [1, 30, 7, 100, 2, 50].into_iter().enumerate() {
        // The last one is repeated: its answer was kept.
        let first = acknowledged.max(1);
        let settings = match round % 2 {
            0 => form.to_vec(),
            _ => [form, &[SYNCS]].concat(),
        };
        acknowledged = run_child(folder.path(), first, &settings, increments);
    }
    assert!(acknowledged > 180);
}

#[test]
fn killed_process_loses_and_doubles_nothing() {
    run_children(&[]);
}

#[test]
fn killed_process_loses_and_doubles_no_event() {
    run_children(&[EVENTS]);
}
