//! `strowger top`: the busiest actors of a running node, live.

mod draw;
mod screen;
mod snapshot;
mod view;

use std::io::{IsTerminal, stdout};
use std::time::Duration;

use serde_json::{Value, json};
use strowger_gateway::client::{Client, ClientError};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use self::screen::{KeyInput, Screen};
use self::snapshot::TopSnapshot;
use self::view::{KeyOutcome, Sort, View};
use super::duration;
use super::observe::printable;
use crate::control::{ControlArgs, block_on, client_failure};
use crate::exit::{CliResult, Failure};
use crate::output::{Output, Table};
use strowger_pfcp_cli::signals::ShutdownSignals;

const EXAMPLES: &str = "\
Examples:
  strowger top
  strowger top '/node/n4/**' --sort rate
  strowger top --once
  strowger top --once --json | jq '.rows[] | {path, depth, rate}'

Keys:
  d r b m x  sort by waiting, rate, busy, memory, restarts
  t          switch between tree and flat list
  /          edit the filter
  space      pause
  arrows     scroll
  q          quit

Mailboxes, sessions and memory above 85 % of their limit are red. Busy is the share of one CPU since
the last reading. Memory is an estimate and includes that of an actor's component. Calls and faults
of components and tools are shown after the path. Asks without a reply for a second or longer are
listed below the actors, oldest first.

The node spends at most 1 % of one CPU on readings; with very many actors it answers less often than
--every.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// Show only actors that match: a path pattern with * and **, or part of a key.
    filter: Option<String>,
    /// Column to sort by.
    #[arg(long, value_name = "COLUMN", value_enum, default_value_t = Sort::Depth)]
    sort: Sort,
    /// Maximum number of actors to show, up to 1024.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
    /// Interval between readings, at least 100ms.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    every: Duration,
    /// Print one reading as a table and exit.
    #[arg(long)]
    once: bool,
    /// Print JSON, one object per reading.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

/// Minimum time between two readings.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &TopArgs, output: &mut Output) -> CliResult {
    let drawn = !args.once && !args.json;
    if drawn && !stdout().is_terminal() {
        let failure = Failure::input("top needs a terminal for the live view");
        return Err(failure.hint("use --once for a table, or --json"));
    }
    block_on(async {
        let client = args.control.connect().await?;
        match drawn {
            true => live(args, client).await,
            false => print(args, client, output).await,
        }
    })
}

impl TopArgs {
    fn view(&self) -> View {
        View::new(self.sort, self.filter.clone().unwrap_or_default())
    }

    fn interval(&self) -> Duration {
        self.every.max(MIN_INTERVAL)
    }
}

fn params(view: &View, limit: u64) -> Value {
    json!({ "sort": view.sort.name(), "limit": limit, "path": view.pattern() })
}

/// Prints readings: one, or one after the other.
async fn print(args: &TopArgs, mut client: Client, output: &mut Output) -> CliResult {
    let params = params(&args.view(), args.limit);
    loop {
        let answer = client.call("top", params.clone()).await;
        let answer = answer.map_err(|error| client_failure(&error))?;
        if args.json {
            output.json(&answer)?;
        } else {
            table(&TopSnapshot::of(answer)?, output)?;
        }
        output.flush()?;
        if args.once {
            return Ok(());
        }
        sleep(args.interval()).await;
    }
}

fn table(snapshot: &TopSnapshot, output: &mut Output) -> CliResult {
    output.line(snapshot.summary())?;
    output.line(snapshot.usages())?;
    let heads = ["path", "waiting", "msg/s", "busy", "memory", "restarts"];
    let mut table = Table::new(heads);
    for row in &snapshot.rows {
        let path = printable(&row.path);
        let path = row
            .note()
            .map_or_else(|| path.clone(), |note| format!("{path} ({note})"));
        table.row([
            path,
            row.mailbox_text(),
            snapshot::number(row.rate),
            row.load_text(),
            row.memory_text(),
            row.restarts.to_string(),
        ]);
    }
    table.print(output)?;
    late_asks(snapshot, output)
}

/// Prints the asks that wait for long, if there are any.
fn late_asks(snapshot: &TopSnapshot, output: &mut Output) -> CliResult {
    if snapshot.late_asks.is_empty() {
        return Ok(());
    }
    output.line("")?;
    let mut table = Table::new(["asker", "callee", "waiting for"]);
    for ask in &snapshot.late_asks {
        table.row(ask.cells().map(|cell| printable(&cell)));
    }
    table.print(output)
}

type TopResult = Result<Value, ClientError>;

/// Draws until the user quits.
async fn live(args: &TopArgs, client: Client) -> CliResult {
    let mut signals = ShutdownSignals::new()?;
    let mut view = args.view();
    let (wish, wishes) = watch::channel(params(&view, args.limit));
    let (answers, mut answered) = mpsc::channel(1);
    let reader = read(
        client,
        args.control.clone(),
        wishes,
        answers,
        args.interval(),
    );
    let mut screen = Screen::enter()?;
    let mut keys = KeyInput::listen()?;
    let mut reader = std::pin::pin!(reader);
    loop {
        screen.draw(&view)?;
        let next = tokio::select! {
            () = signals.recv() => return Ok(()),
            () = &mut reader => return Err(Failure::outside("the reader stopped")),
            answer = answered.recv() => {
                if let Some(answer) = answer {
                    let read = |answer| TopSnapshot::of(answer).map_err(|error| error.to_string());
                    view.set_answer(answer.and_then(read));
                }
                KeyOutcome::Stay
            }
            key = keys.next() => match key {
                Some(event) => view.event(&event),
                None => return Err(Failure::outside("the terminal was closed")),
            },
        };
        match next {
            KeyOutcome::Stay => {}
            KeyOutcome::Quit => return Ok(()),
            KeyOutcome::Ask => {
                // Cannot fail: the reader holds the receiver for as long as this loop runs.
                let _ = wish.send(params(&view, args.limit));
            }
        }
    }
}

/// Time to wait for a lost node to come back.
const RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// Polls the node, at once when the parameters change, and reconnects when the connection is lost.
async fn read(
    client: Client,
    control: ControlArgs,
    mut wishes: watch::Receiver<Value>,
    answers: mpsc::Sender<Result<Value, String>>,
    every: Duration,
) {
    let mut client = Some(client);
    loop {
        let wish = wishes.borrow_and_update().clone();
        let answer = match &mut client {
            Some(client) => client.call("top", wish).await,
            None => Err(ClientError::Closed),
        };
        let lost = matches!(&answer, Err(error) if !matches!(error, ClientError::Fault(_)));
        if lost {
            let again = timeout(RECONNECT_DELAY, control.connect()).await;
            client = again.ok().and_then(Result::ok);
        }
        let shown = displayed(answer, client.is_some());
        if let Some(shown) = shown
            && answers.send(shown).await.is_err()
        {
            return;
        }
        // A change of the parameters ends the wait early.
        let _ = timeout(every, wishes.changed()).await;
    }
}

/// Returns what to show of an answer: nothing if the connection was lost and is back.
fn displayed(answer: TopResult, back: bool) -> Option<Result<Value, String>> {
    match answer {
        Ok(answer) => Some(Ok(answer)),
        Err(ClientError::Fault(fault)) => Some(Err(fault.message)),
        Err(_) if back => None,
        Err(error) => Some(Err(format!("{error}; figures are stale"))),
    }
}
