//! A process whose entities send to each other is killed again and again.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use strowger::{ActorSystem, BoxError};
use strowger_durable::store::{FjallOptions, FjallStore};
use strowger_durable::{Entities, EntityKind};

use super::{Look, Node, SendTo, Trouble, node, taken};

const FOLDER: &str = "STROWGER_DURABLE_OUTBOX_FOLDER";

fn open(folder: &Path) -> Result<(ActorSystem, EntityKind<Node<false>>), BoxError> {
    let store = Arc::new(FjallStore::open(folder, FjallOptions::default())?);
    let system = ActorSystem::new("node")?;
    let nodes = Entities::new(store).start(&system, "nodes", Trouble::default())?;
    Ok((system, nodes))
}

/// Sends until it is killed.
#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "the parent reads it")]
async fn send(folder: &Path) -> Result<(), BoxError> {
    let (_system, nodes) = open(folder)?;
    let sender = nodes.get("a")?;
    loop {
        let receiver = node("b");
        let (count, size) = (1, 0);
        let sent = sender.ask(SendTo {
            receiver,
            count,
            size,
        });
        match sent.await? {
            Ok(_) => println!("sent one"),
            // The outbox is full.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// The program of the child; in the parent, it does nothing.
#[test]
fn sending_child() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        send(Path::new(&folder)).expect("it sends until it is killed");
    }
}

/// Starts a child, kills it after so many messages, and returns the number that it acknowledged.
fn run_child(folder: &Path, messages: u64) -> u64 {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program)
        .args(["--exact", "outbox::kill::sending_child", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut seen = 0;
    // After the kill, the pipe still has what was acknowledged before it.
    for line in output.lines() {
        seen += u64::from(line.expect("text").contains("sent one"));
        if seen == messages {
            child.kill().expect("it runs");
        }
    }
    child.wait().expect("it has ended");
    assert!(seen >= messages, "the child ended by itself");
    seen
}

#[tokio::test]
async fn killed_process_loses_and_doubles_no_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let rounds = [1, 40, 3, 150];
    let acknowledged: u64 = rounds
        .map(|messages| run_child(folder.path(), messages))
        .iter()
        .sum();
    let (system, nodes) = open(folder.path()).expect("it opens");
    let [sender, receiver] = ["a", "b"].map(|key| nodes.get(key).expect("a short key"));
    let all_delivered = async {
        while sender.ask(Look).await.expect("an answer").1 > 0 {
            tokio::task::yield_now().await;
        }
    };
    let limit = Duration::from_secs(60);
    let delivered = tokio::time::timeout(limit, all_delivered).await;
    delivered.expect("the outbox becomes empty");
    let (found, _) = receiver.ask(Look).await.expect("an answer");
    let count = found.len() as u64;
    assert_eq!(found, taken("node/a", count), "lost, doubled or reordered");
    // Of each child, one message may be stored and not acknowledged.
    let stored = acknowledged..=acknowledged + rounds.len() as u64;
    assert!(stored.contains(&count), "{count} of {acknowledged} taken");
    system.shutdown(Duration::from_secs(1)).await;
}
