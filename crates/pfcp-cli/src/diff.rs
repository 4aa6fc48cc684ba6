//! `strowger pfcp diff`: the differences between two messages or captures.
//!
//! `align` finds for each message of one side its counterpart on the other, the codec compares
//! the two, and `ignored` parses what is left out of the comparison.

mod align;
mod ignored;

use std::fmt;
use std::path::PathBuf;

use serde_json::{Value, json};
use strowger_pfcp::compare::DifferenceKind;
use strowger_pfcp::vendor::Dictionary;
use strowger_pfcp::{Difference, Error, Ignore, Index, MessageView};
use strowger_pfcp_node::PFCP_PORT;

use self::align::{AlignedMessage, MessageKey, SideMessages};
use super::dictionary::DictionaryArgs;
use super::source;
use crate::exit::{CliResult, Failure};
use crate::output::{Output, TextStyle};

const EXAMPLES: &str = "\
Examples:
  strowger pfcp diff before.pcapng after.pcapng --ignore run
  strowger pfcp diff a.json b.json
  strowger pfcp diff 2001000c00000100006000040a0b0c0d 2001000c00000200006000040a0b0c0e
  strowger pfcp diff a.pcapng b.pcapng --ignore seid,sequence,'User ID','PDI / F-TEID' --json

A and B are captures (pcap, pcapng), files of hex or JSON, or hex. The order of elements is ignored,
and rules are matched by ID. In captures, sessions are matched in order of appearance, and messages
of a session by type and order; retransmissions are ignored.

Values of --ignore:
  seid, time, sequence  session IDs, time stamps, sequence numbers
  address               F-TEID, UE IP address and the like
  run                   all four above: what differs between two runs of one scenario
  spare                 spare bits
  NAME or NUMBER        this element, such as 'User ID'
  A / B                 an element within a group, such as 'Create PDR / PDI'
  MESSAGE               a message, by name

Exit codes:
  1  the inputs differ";

/// The arguments of `diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct DiffArgs {
    /// Capture, file of hex or JSON, or hex; `-` reads standard input.
    #[arg(value_name = "A")]
    left: PathBuf,
    /// Input to compare with, in any of these forms.
    #[arg(value_name = "B")]
    right: PathBuf,
    /// Ignore these differences: seid, time, sequence, address, spare, run, an element or a
    /// message; separated by commas.
    #[arg(long, value_name = "DIFFERENCE", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Also decode datagrams on this UDP port as PFCP.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Print JSON, one object per difference, then a summary.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dictionary: DictionaryArgs,
}

pub(crate) fn run(args: &DiffArgs, output: &mut Output) -> CliResult {
    if args.left == args.right && args.left.as_os_str() == "-" {
        return Err(Failure::input("only one of A and B can be standard input"));
    }
    let vendors = args.dictionary.read()?;
    let ignored = ignored::parse(&args.ignore)?;
    let [left, right] = [&args.left, &args.right].map(|path| {
        let packets = source::open_or_hex(path, &vendors)?;
        let packets = packets.collect::<CliResult<Vec<_>>>()?;
        let ports = [Some(PFCP_PORT), args.port];
        let side = SideMessages::read(packets, &ports, &ignored.messages);
        match side.messages.len() + side.left_out {
            0 => Err(
                Failure::input(format!("{}: no PFCP message", path.display()))
                    .hint("PFCP uses UDP port 8805; select another one with --port"),
            ),
            _ => Ok(side),
        }
    });
    let (left, right) = (left?, right?);
    let mut report = DiffReport {
        args,
        ignore: &ignored.elements,
        vendors: &vendors,
        counts: DiffCounts {
            left: left.messages.len(),
            right: right.messages.len(),
            ..DiffCounts::default()
        },
        several: left.messages.len().max(right.messages.len()) > 1,
    };
    for (key, left, right) in align::pair_messages(&left, &right) {
        report.report_pair(key, left, right, output)?;
    }
    report.finish(output)
}

struct DiffReport<'a> {
    args: &'a DiffArgs,
    ignore: &'a Ignore,
    vendors: &'a Dictionary,
    counts: DiffCounts,
    /// `true` if several messages are compared, so that each difference needs its message as a
    /// heading.
    several: bool,
}

impl DiffReport<'_> {
    fn report_pair(
        &mut self,
        key: MessageKey,
        left: Option<&AlignedMessage>,
        right: Option<&AlignedMessage>,
        output: &mut Output,
    ) -> CliResult {
        let found = match (left, right) {
            (Some(left), Some(right)) => match compare(left, right, self.ignore, self.vendors) {
                Ok(found) if found.is_empty() => {
                    self.counts.alike += 1;
                    return Ok(());
                }
                Ok(found) => found.into_iter().map(DiffResult::Difference).collect(),
                Err((side, error)) => vec![DiffResult::Unread(side, error)],
            },
            (Some(_), None) => vec![DiffResult::Only(DiffSide::Left)],
            (None, _) => vec![DiffResult::Only(DiffSide::Right)],
        };
        match &*found {
            [DiffResult::Only(DiffSide::Left)] => self.counts.only_left += 1,
            [DiffResult::Only(DiffSide::Right)] => self.counts.only_right += 1,
            _ => self.counts.differ += 1,
        }
        self.counts.differences += found.len();
        if self.args.json {
            let frame = |side: Option<&AlignedMessage>| side.map(|message| message.number);
            for found in found {
                let mut object = found.to_json();
                object["message"] = key.message_type.to_string().into();
                object["session"] = key.session.into();
                object["left_frame"] = frame(left).into();
                object["right_frame"] = frame(right).into();
                output.json(&object)?;
            }
            return Ok(());
        }
        if self.several {
            let head = format!("{key}{}", FrameNumbers(left, right));
            output.line(output.paint(TextStyle::Bold, head))?;
        }
        for found in found {
            let indent = if self.several { "  " } else { "" };
            let line = output.paint(found.style(), format!("{indent}{found}"));
            output.line(line)?;
        }
        Ok(())
    }

    fn finish(self, output: &mut Output) -> CliResult {
        if self.args.json {
            output.json(&self.counts.to_json())?;
        } else {
            let style = if self.counts.differences == 0 {
                TextStyle::Green
            } else {
                TextStyle::Red
            };
            output.line(output.paint(style, self.counts))?;
        }
        match self.counts.differences {
            0 => Ok(()),
            1 => Err(Failure::check("1 difference")),
            count => Err(Failure::check(format!("{count} differences"))),
        }
    }
}

/// Compares two corresponding messages. An error says which of them cannot be read.
fn compare(
    left: &AlignedMessage,
    right: &AlignedMessage,
    ignore: &Ignore,
    vendors: &Dictionary,
) -> Result<Vec<Difference>, (DiffSide, Error)> {
    if left.bytes == right.bytes {
        return Ok(Vec::new());
    }
    let mut indexes = [Index::new(), Index::new()];
    let [first, second] = &mut indexes;
    let left = read(&left.bytes, first).map_err(|error| (DiffSide::Left, error))?;
    let right = read(&right.bytes, second).map_err(|error| (DiffSide::Right, error))?;
    Ok(vendors.compare(&left, &right, ignore))
}

fn read<'a>(bytes: &'a [u8], index: &'a mut Index) -> Result<MessageView<'a>, Error> {
    // In a bundle, the header says that another message follows: here the message stands alone.
    match strowger_pfcp::frames(bytes).next() {
        Some(frame) => MessageView::of(&frame?, index),
        None => MessageView::decode(bytes, index),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffSide {
    Left,
    Right,
}

impl fmt::Display for DiffSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "A",
            Self::Right => "B",
        })
    }
}

/// A result for a pair of messages, or for a message without counterpart.
enum DiffResult {
    Difference(Difference),
    Only(DiffSide),
    Unread(DiffSide, Error),
}

impl DiffResult {
    fn style(&self) -> TextStyle {
        match self {
            Self::Difference(difference) => match difference.kind {
                DifferenceKind::Added { .. } => TextStyle::Green,
                DifferenceKind::Removed { .. } => TextStyle::Red,
                _ => TextStyle::Yellow,
            },
            Self::Only(DiffSide::Left) | Self::Unread(..) => TextStyle::Red,
            Self::Only(DiffSide::Right) => TextStyle::Green,
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Only(side) => json!({ "kind": "message", "only": side.to_string() }),
            Self::Unread(side, error) => json!({
                "kind": "unread",
                "side": side.to_string(),
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

impl fmt::Display for DiffResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Difference(difference) => difference.fmt(f),
            Self::Only(side) => write!(f, "only in {side}"),
            Self::Unread(side, error) => write!(f, "{side} cannot be decoded: {error}"),
        }
    }
}

/// The frames of two messages.
struct FrameNumbers<'a>(Option<&'a AlignedMessage>, Option<&'a AlignedMessage>);

impl fmt::Display for FrameNumbers<'_> {
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

/// Counts of what was compared, with the results.
#[derive(Clone, Copy, Debug, Default)]
struct DiffCounts {
    left: usize,
    right: usize,
    alike: usize,
    differ: usize,
    only_left: usize,
    only_right: usize,
    differences: usize,
}

impl DiffCounts {
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

impl fmt::Display for DiffCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages in A, {} in B: {} equal, {} different, {} only in A, {} only in B",
            self.left, self.right, self.alike, self.differ, self.only_left, self.only_right
        )
    }
}
