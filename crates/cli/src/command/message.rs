//! `strowger tell`, `ask` and `sub`: messages to actors of a running node.

use std::time::Duration;

use serde_json::{Value, json};
use strowger::{Address, ContentType, FaultCode, Payload};
use strowger_gateway::client::{Client, ClientError};

use crate::command::duration;
use crate::command::observe::printable_lines;
use crate::control::{ControlArgs, block_on, client_failure};
use crate::exit::{CliResult, Failure};
use crate::output::{Output, TextStyle};
use strowger_pfcp_cli::signals::ShutdownSignals;

const TELL_EXAMPLES: &str = "\
Examples:
  strowger tell conformance/echo#add 3
  strowger tell '@(conformance/echo) publish' '{\"price\": 7}'

PATH is an address and the name of a message, separated by # or a space. The name is optional if the
actor accepts only one message for tell, or else only one for ask.

Exit codes:
  1  no actor is exposed at this address
  2  the actor has no such message, or the payload has the wrong type
  3  no node is running, or it refused the message";

const ASK_EXAMPLES: &str = "\
Examples:
  strowger ask conformance/echo#echo '\"hello\"'
  strowger ask conformance/echo#sum --json
  strowger ask conformance/echo#wait '{\"ms\": 2000}' --deadline 500ms
  strowger ask '@(tools/files)' '{\"type\": \"list\", \"path\": \"\"}'
  strowger ask tools/files#read '{\"path\": \"logo.png\"}' > logo.png

PATH is an address and the name of a message, separated by # or a space. The name is optional if the
actor accepts only one message for ask, or if the payload names it as its \"type\".

Without --json, binary replies are written unchanged, and control characters in text other than line
ends and tabs are printed as ?.

Exit codes:
  1  no actor is exposed at this address
  2  the actor has no such message, or the payload has the wrong type
  3  no node is running, it replied with an error, or the deadline expired";

const SUB_EXAMPLES: &str = "\
Examples:
  strowger sub topic/n4/sessions
  strowger sub topic/n4/sessions --max 10 --json | jq -r .kind
  strowger sub conformance/echo#numbers '{\"from\": 1, \"to\": 4}'

PATH is an address and the name of a stream, separated by # or a space. The name is optional if the
actor has only one stream. The command ends with the stream, after --max items, or on Ctrl-C.

Exit codes:
  1  no actor is exposed at this address
  2  the actor has no such stream, or the payload has the wrong type
  3  no node is running, or the stream ended with an error";

/// The arguments that name an actor and a message.
#[derive(Debug, clap::Args)]
struct MessageArgs {
    /// Actor and message, such as conformance/echo#add or '@(conformance/echo) add'.
    path: String,
    /// Payload of the message [default: none]; `-` reads standard input.
    #[arg(value_name = "JSON", allow_hyphen_values = true)]
    payload: Option<String>,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = TELL_EXAMPLES)]
pub(crate) struct TellArgs {
    #[command(flatten)]
    to: MessageArgs,
    /// Maximum time to wait for space in the mailbox.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_deadline)]
    deadline: Duration,
}

#[derive(Debug, clap::Args)]
#[command(after_help = ASK_EXAMPLES)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    to: MessageArgs,
    /// Maximum time to wait for the reply.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_deadline)]
    deadline: Duration,
    /// Print JSON, on one line.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = SUB_EXAMPLES)]
pub(crate) struct SubArgs {
    #[command(flatten)]
    to: MessageArgs,
    /// Stop after this many items [default: no limit].
    #[arg(long, value_name = "N")]
    max: Option<u64>,
    /// Print JSON, one item per line.
    #[arg(long)]
    json: bool,
}

/// Parses a deadline that can be sent.
fn parse_deadline(text: &str) -> Result<Duration, String> {
    let deadline = duration::parse(text).map_err(|error| error.to_string())?;
    match u32::try_from(deadline.as_millis()) {
        Ok(1..) => Ok(deadline),
        _ => Err(ClientError::InvalidDeadline(deadline).to_string()),
    }
}

pub(crate) fn tell(args: &TellArgs, _: &mut Output) -> CliResult {
    block_on(async {
        let (mut client, name, payload) = args.to.resolve("tell").await?;
        client.set_deadline(args.deadline);
        let sent = client.tell(&name, payload).await;
        sent.map_err(|error| refusal(&error))
    })
}

pub(crate) fn ask(args: &AskArgs, output: &mut Output) -> CliResult {
    block_on(async {
        let (mut client, name, payload) = args.to.resolve("ask").await?;
        client.set_deadline(args.deadline);
        let answer = client.ask(&name, payload).await;
        let answer = answer.map_err(|error| refusal(&error))?;
        print(&answer, args.json, output)
    })
}

pub(crate) fn sub(args: &SubArgs, output: &mut Output) -> CliResult {
    block_on(async {
        let mut signals = ShutdownSignals::new()?;
        let (mut client, name, payload) = args.to.resolve("stream").await?;
        let items = client.stream(&name, payload).await;
        let mut items = items.map_err(|error| refusal(&error))?;
        let mut left = args.max.unwrap_or(u64::MAX);
        while left > 0 {
            let item = tokio::select! {
                item = items.next() => item.map_err(|error| refusal(&error))?,
                () = signals.recv() => return Ok(()),
            };
            let Some(item) = item else { return Ok(()) };
            show(&item, args.json, output)?;
            output.flush()?;
            left -= 1;
        }
        Ok(())
    })
}

impl MessageArgs {
    /// Connects, and returns the client, the target of the message and its payload.
    async fn resolve(&self, pattern: &str) -> CliResult<(Client, String, Value)> {
        let mut payload = self.payload()?;
        let (address, name) = split_message(&self.path)?;
        let mut client = self.control.connect().await?;
        let name = match name {
            Some(name) => name.to_owned(),
            None => only_message(&mut client, &address, pattern, &mut payload).await?,
        };
        Ok((client, format!("{address} {name}"), payload))
    }

    fn payload(&self) -> CliResult<Value> {
        let text = match self.payload.as_deref() {
            None => return Ok(Value::Null),
            Some("-") => std::io::read_to_string(std::io::stdin())
                .map_err(|error| Failure::outside(format!("standard input: {error}")))?,
            Some(text) => text.to_owned(),
        };
        serde_json::from_str(&text).map_err(|error| {
            Failure::input(format!("the payload is not valid JSON: {error}"))
                .hint("quote a string twice, for the shell and for JSON: '\"hello\"'")
        })
    }
}

/// Splits the text into an address and the name of a message, if it contains one.
fn split_message(text: &str) -> CliResult<(Address, Option<&str>)> {
    let (path, name) = match text
        .strip_prefix("@(")
        .and_then(|rest| rest.split_once(')'))
    {
        Some((path, rest)) => (path, rest.strip_prefix(['#', ' '])),
        None => match text.split_once('#') {
            Some((path, name)) => (path, Some(name)),
            None => (text, None),
        },
    };
    let address = Address::from_path(path.trim_start_matches('/'));
    let address = address.map_err(|fault| Failure::input(fault.message))?;
    Ok((address, name))
}

/// Returns the actor's only message with this pattern. If there are several, returns the one that
/// the `type` member of the payload names, and removes that member from the payload.
async fn only_message(
    client: &mut Client,
    address: &Address,
    pattern: &str,
    payload: &mut Value,
) -> CliResult<String> {
    let exposed = client
        .call("exposed", json!({ "address": address.to_string() }))
        .await;
    let exposed = exposed.map_err(|error| refusal(&error))?;
    let messages = exposed[0]["messages"].as_array();
    let names = |pattern: &str| {
        let messages = messages.into_iter().flatten();
        let fits = messages.filter(|message| message["pattern"] == pattern);
        let names = fits.filter_map(|message| message["name"].as_str());
        names.collect::<Vec<_>>()
    };
    let mut names = match (pattern, names(pattern)) {
        // A message for `ask` can also be told, but messages for `tell` take precedence.
        ("tell", sent) if sent.is_empty() => names("ask"),
        (_, names) => names,
    }
    .into_iter();
    let Some(first) = names.next() else {
        let text = format!("{address} has no message for `{pattern}`");
        return Err(Failure::input(text));
    };
    let others: Vec<&str> = names.collect();
    if others.is_empty() {
        return Ok(first.to_owned());
    }
    if let Value::Object(members) = payload
        && let Some(Value::String(meant)) = members.get("type")
        && (meant == first || others.contains(&meant.as_str()))
    {
        let meant = meant.clone();
        members.remove("type");
        return Ok(meant);
    }
    let path = address.path();
    let text = format!(
        "{address} has several messages: {first}, {}",
        others.join(", ")
    );
    Err(Failure::input(text).hint(format!("name one of them: {path}#{first}")))
}

/// Converts the refusal of a message to a failure for the user.
fn refusal(error: &ClientError) -> Failure {
    let failure = client_failure(error);
    match error {
        ClientError::Fault(fault) if fault.code == FaultCode::UnknownTarget => {
            failure.hint("only exposed actors can be reached, see docs/messages.md")
        }
        _ => failure,
    }
}

/// Prints an answer: bytes as they are, unless JSON is requested.
fn print(answer: &Payload, as_json: bool, output: &mut Output) -> CliResult {
    if answer.content != ContentType::Bytes {
        let value = answer
            .decode()
            .map_err(|fault| Failure::outside(fault.message))?;
        return show(&value, as_json, output);
    }
    if !as_json {
        return output.bytes(&answer.bytes);
    }
    let text = std::str::from_utf8(&answer.bytes);
    let text = text.map_err(|_| {
        let failure = Failure::input("the reply is binary, not JSON");
        failure.hint("leave out --json to write it unchanged")
    })?;
    output.json(&Value::from(text))
}

fn show(value: &Value, as_json: bool, output: &mut Output) -> CliResult {
    match value {
        value if as_json => output.json(value),
        Value::Null => output.line(output.paint(TextStyle::Faint, "nothing")),
        Value::String(text) => output.line(printable_lines(text)),
        value => output.line(format!("{value:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_and_message_have_several_notations() {
        let cases = [
            ("a/b#add", ("@(a/b)", Some("add"))),
            ("/a/b#add", ("@(a/b)", Some("add"))),
            ("@(a/b) add", ("@(a/b)", Some("add"))),
            ("@(a/b)#x#y", ("@(a/b)", Some("x#y"))),
            ("topic/n4/sessions", ("@(topic/n4/sessions)", None)),
        ];
        for (text, (address, name)) in cases {
            let (found, message) = split_message(text).expect(text);
            assert_eq!(
                (found.to_string().as_str(), message),
                (address, name),
                "{text}"
            );
        }
    }
}
