//! `strowger pfcp diff`: what two messages or captures say differently.
//!
//! [`align`] finds for each message of one side the one of the other that has its part, the codec
//! compares the two, and [`ignored`] reads what is left out.

mod align;
mod ignored;

use std::fmt;
use std::path::PathBuf;

use serde_json::{Value, json};
use strowger_pfcp::compare::DifferenceKind;
use strowger_pfcp::vendor::Dictionary;
use strowger_pfcp::{Difference, Error, Ignore, Index, MessageView};
use strowger_pfcp_node::PFCP_PORT;

use self::align::{Part, Side, Spoken};
use super::dictionary::DictionaryArgs;
use super::source;
use crate::exit::{Done, Failure};
use crate::output::{Ink, Output};

const EXAMPLES: &str = "\
Examples:
  strowger pfcp diff before.pcapng after.pcapng --ignore run
  strowger pfcp diff a.json b.json
  strowger pfcp diff 2001000c00000100006000040a0b0c0d 2001000c00000200006000040a0b0c0e
  strowger pfcp diff a.pcapng b.pcapng --ignore seid,sequence,'User ID','PDI / F-TEID' --json

A and B are captures (pcap, pcapng), files of hex or JSON, or hex. The order of elements does not
count, and rules are compared with those of the same ID. In captures the first session of A stands
beside the first of B and so on, and in each the first message of a type beside the first of that
type; messages that were sent again count once.

--ignore takes: seid, time, sequence, address (F-TEID, UE IP address and the like), spare (bits),
run (the first four: what two runs of one scenario choose anew), an element by name or number, a
way of elements such as 'Create PDR / PDI', or a message by its name.

Exit code 1: there is a difference.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A capture, a file of hex or JSON, or hex; `-` reads standard input.
    #[arg(value_name = "A")]
    left: PathBuf,
    /// What it is compared with.
    #[arg(value_name = "B")]
    right: PathBuf,
    /// What is no difference: seid, time, sequence, address, spare, run, elements, messages.
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Takes datagrams of this UDP port for PFCP as well.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Prints one object for each difference, and one at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dictionary: DictionaryArgs,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> Done {
    if args.left == args.right && args.left.as_os_str() == "-" {
        return Err(Failure::input("A and B cannot both be standard input"));
    }
    let vendors = args.dictionary.read()?;
    let ignored = ignored::parse(&args.ignore)?;
    let [left, right] = [&args.left, &args.right].map(|path| {
        let packets = source::open_or_hex(path, &vendors)?;
        let packets = packets.collect::<Done<Vec<_>>>()?;
        let ports = [Some(PFCP_PORT), args.port];
        let side = Side::read(packets, &ports, &ignored.messages);
        match side.spoken.len() + side.left_out {
            0 => Err(
                Failure::input(format!("{}: no PFCP message", path.display()))
                    .hint("PFCP is UDP port 8805; --port names another one"),
            ),
            _ => Ok(side),
        }
    });
    let (left, right) = (left?, right?);
    let mut report = Report {
        args,
        ignore: &ignored.elements,
        vendors: &vendors,
        counts: Counts {
            left: left.spoken.len(),
            right: right.spoken.len(),
            ..Counts::default()
        },
        several: left.spoken.len().max(right.spoken.len()) > 1,
    };
    for (part, left, right) in align::pairs(&left, &right) {
        report.pair(part, left, right, output)?;
    }
    report.end(output)
}

struct Report<'a> {
    args: &'a Args,
    ignore: &'a Ignore,
    vendors: &'a Dictionary,
    counts: Counts,
    /// Whether places in messages need the message before them.
    several: bool,
}

impl Report<'_> {
    fn pair(
        &mut self,
        part: Part,
        left: Option<&Spoken>,
        right: Option<&Spoken>,
        output: &mut Output,
    ) -> Done {
        let found = match (left, right) {
            (Some(left), Some(right)) => match compared(left, right, self.ignore, self.vendors) {
                Ok(found) if found.is_empty() => {
                    self.counts.alike += 1;
                    return Ok(());
                }
                Ok(found) => found.into_iter().map(Found::Difference).collect(),
                Err((which, error)) => vec![Found::Unread(which, error)],
            },
            (Some(_), None) => vec![Found::Only(Which::Left)],
            (None, _) => vec![Found::Only(Which::Right)],
        };
        match &*found {
            [Found::Only(Which::Left)] => self.counts.only_left += 1,
            [Found::Only(Which::Right)] => self.counts.only_right += 1,
            _ => self.counts.differ += 1,
        }
        self.counts.differences += found.len();
        if self.args.json {
            let frame = |side: Option<&Spoken>| side.map(|spoken| spoken.number);
            for found in found {
                let mut object = found.to_json();
                object["message"] = part.message_type.to_string().into();
                object["session"] = part.session.into();
                object["left_frame"] = frame(left).into();
                object["right_frame"] = frame(right).into();
                output.json(&object)?;
            }
            return Ok(());
        }
        if self.several {
            let head = format!("{part}{}", Frames(left, right));
            output.line(output.paint(Ink::Bold, head))?;
        }
        for found in found {
            let indent = if self.several { "  " } else { "" };
            let line = output.paint(found.ink(), format!("{indent}{found}"));
            output.line(line)?;
        }
        Ok(())
    }

    fn end(self, output: &mut Output) -> Done {
        if self.args.json {
            output.json(&self.counts.to_json())?;
        } else {
            let ink = if self.counts.differences == 0 {
                Ink::Green
            } else {
                Ink::Red
            };
            output.line(output.paint(ink, self.counts))?;
        }
        match self.counts.differences {
            0 => Ok(()),
            1 => Err(Failure::found("1 difference")),
            count => Err(Failure::found(format!("{count} differences"))),
        }
    }
}

/// Compares two messages of the same part; an error says that one of them cannot be read.
fn compared(
    left: &Spoken,
    right: &Spoken,
    ignore: &Ignore,
    vendors: &Dictionary,
) -> Result<Vec<Difference>, (Which, Error)> {
    if left.octets == right.octets {
        return Ok(Vec::new());
    }
    let mut indexes = [Index::new(), Index::new()];
    let [first, second] = &mut indexes;
    let left = read(&left.octets, first).map_err(|error| (Which::Left, error))?;
    let right = read(&right.octets, second).map_err(|error| (Which::Right, error))?;
    Ok(vendors.compare(&left, &right, ignore))
}

fn read<'a>(octets: &'a [u8], index: &'a mut Index) -> Result<MessageView<'a>, Error> {
    // A message of a bundle says that another one follows: here it stands alone.
    match strowger_pfcp::frames(octets).next() {
        Some(frame) => MessageView::of(&frame?, index),
        None => MessageView::decode(octets, index),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Left,
    Right,
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "A",
            Self::Right => "B",
        })
    }
}

/// What two messages, or one without the other, are found to be.
enum Found {
    Difference(Difference),
    Only(Which),
    Unread(Which, Error),
}

impl Found {
    fn ink(&self) -> Ink {
        match self {
            Self::Difference(difference) => match difference.kind {
                DifferenceKind::Added { .. } => Ink::Green,
                DifferenceKind::Removed { .. } => Ink::Red,
                _ => Ink::Yellow,
            },
            Self::Only(Which::Left) | Self::Unread(..) => Ink::Red,
            Self::Only(Which::Right) => Ink::Green,
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Only(which) => json!({ "kind": "message", "only": which.to_string() }),
            Self::Unread(which, error) => json!({
                "kind": "unread",
                "side": which.to_string(),
                "error": error.to_string(),
                "offset": error.offset(),
            }),
            Self::Difference(difference) => {
                let mut object = match &difference.kind {
                    DifferenceKind::Changed { field, left, right } => {
                        json!({ "kind": "changed", "field": field, "left": left, "right": right })
                    }
                    DifferenceKind::Added { value } => json!({ "kind": "added", "right": value }),
                    DifferenceKind::Removed { value } => {
                        json!({ "kind": "removed", "left": value })
                    }
                    _ => json!({ "kind": "other" }),
                };
                object["path"] = difference.steps().collect();
                object["ies"] = difference.path.steps().map(|step| step.ie.0).collect();
                object
            }
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Difference(difference) => difference.fmt(f),
            Self::Only(which) => write!(f, "only in {which}"),
            Self::Unread(which, error) => write!(f, "{which} does not decode: {error}"),
        }
    }
}

/// The frames that two messages are in.
struct Frames<'a>(Option<&'a Spoken>, Option<&'a Spoken>);

impl fmt::Display for Frames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(left), Some(right)) => {
                write!(f, " (frame {} of A, {} of B)", left.number, right.number)
            }
            (Some(left), None) => write!(f, " (frame {} of A)", left.number),
            (None, Some(right)) => write!(f, " (frame {} of B)", right.number),
            (None, None) => Ok(()),
        }
    }
}

/// What was compared, and how it went.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    left: usize,
    right: usize,
    alike: usize,
    differ: usize,
    only_left: usize,
    only_right: usize,
    differences: usize,
}

impl Counts {
    fn to_json(self) -> Value {
        let Self {
            left,
            right,
            alike,
            differ,
            only_left,
            only_right,
            differences,
        } = self;
        json!({ "summary": {
            "left": left,
            "right": right,
            "alike": alike,
            "differ": differ,
            "only_left": only_left,
            "only_right": only_right,
            "differences": differences,
        } })
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages in A, {} in B: {} alike, {} differ, {} only in A, {} only in B",
            self.left, self.right, self.alike, self.differ, self.only_left, self.only_right
        )
    }
}
