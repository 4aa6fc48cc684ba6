//! `strowger pfcp decode`: the contents of a capture, for people and for scripts.

mod filter;
mod sessions;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};
use strowger_pfcp::ie::descriptor::Descriptor;
use strowger_pfcp::validate::newer;
use strowger_pfcp::vendor::Dictionary;
use strowger_pfcp::wire::Part;
use strowger_pfcp::{Error, Frame, Index, MessageView, Release, frames};
use strowger_pfcp_node::PFCP_PORT;

use super::dictionary::DictionaryArgs;
use super::hex::Hex;
use super::source::{self, Packet, Packets};
use super::time::{iso, utc};
use crate::exit::{CliResult, Failure};
use crate::output::{Output, TextStyle};
use filter::FilterArgs;
use sessions::CaptureSessions;

const EXAMPLES: &str = "\
Examples:
  strowger pfcp decode n4.pcapng
  strowger pfcp decode n4.pcapng --json | jq -r .name | sort | uniq -c
  strowger pfcp decode n4.pcapng --check
  strowger pfcp decode n4.pcapng --type establishment
  strowger pfcp decode n4.pcapng --session 0x2a --ladder
  strowger pfcp decode --hex 2001000c00000100006000040a0b0c0d
  tcpdump -i lo -w - udp port 8805 | strowger pfcp decode -

Input is a capture (pcap, pcapng), hex text with one datagram per line, or the bytes of one message.
`strowger pfcp encode` turns the output of --json into the same bytes again.

Exit codes:
  1  a message cannot be decoded or, with --check, does not encode to the same bytes";

/// The arguments of `decode`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("input").required(true))]
pub struct DecodeArgs {
    /// Capture (pcap, pcapng) or hex text; `-` reads standard input.
    #[arg(group = "input")]
    file: Option<PathBuf>,
    /// Decode this datagram, in hex.
    #[arg(long, value_name = "HEX", group = "input")]
    hex: Option<String>,
    /// Also decode datagrams on this UDP port as PFCP.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Encode each message again, compare the bytes, and print a summary only.
    #[arg(long, conflicts_with = "ladder")]
    check: bool,
    /// Mark elements that this 3GPP release does not define: R17 or R19.
    #[arg(long, value_name = "RELEASE")]
    release: Option<Release>,
    /// Print JSON, one object per message.
    #[arg(long)]
    json: bool,
    /// Draw a ladder diagram of each session instead of printing the messages.
    #[arg(long)]
    ladder: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    dictionary: DictionaryArgs,
}

pub(crate) fn run(args: &DecodeArgs, output: &mut Output) -> CliResult {
    let vendors = args.dictionary.read()?;
    let mut counts = DecodeCounts::default();
    if args.ladder || args.filter.session.is_some() {
        let calls = read_sessions(args, &vendors)?;
        if args.ladder {
            let drawn = calls.draw(&args.filter, args.json, output)?;
            return if drawn == 0 {
                Err(no_messages(args))
            } else {
                Ok(())
            };
        }
        for packet in calls.of(args.filter.session.unwrap_or_default()) {
            handle_datagram(args, &vendors, &packet, &mut counts, output)?;
        }
    } else {
        for packet in read_packets(args, &vendors)? {
            let packet = packet?;
            if is_pfcp(&packet, args.port) {
                handle_datagram(args, &vendors, &packet, &mut counts, output)?;
            }
        }
    }
    if counts.messages == 0 && args.filter.is_set() {
        return Err(no_messages(args));
    }
    if args.check {
        let summary = if args.json {
            json!(counts).to_string()
        } else {
            counts.to_string()
        };
        output.line(summary)?;
        return counts.verdict_of_check();
    }
    counts.verdict_of_decoding()
}

/// Collects the sessions of the input, with all their messages.
fn read_sessions(args: &DecodeArgs, vendors: &Dictionary) -> CliResult<CaptureSessions> {
    let mut calls = CaptureSessions::default();
    for packet in read_packets(args, vendors)? {
        let packet = packet?;
        if !is_pfcp(&packet, args.port) {
            continue;
        }
        for frame in frames(&packet.bytes).flatten() {
            calls.add(&packet, &frame);
        }
    }
    Ok(calls)
}

/// Returns the failure for an input of which no message is left.
fn no_messages(args: &DecodeArgs) -> Failure {
    let session = args
        .filter
        .session
        .map(|seid| format!(" of session {seid}"));
    let text = format!("no message{} matches", session.unwrap_or_default());
    let hint = match args.ladder && args.filter.session.is_none() {
        true => "--ladder shows only messages of sessions, and there are none",
        false => "leave out --seid, --type and --session to show all messages",
    };
    Failure::check(text).hint(hint)
}

fn read_packets(args: &DecodeArgs, vendors: &Dictionary) -> CliResult<Packets> {
    match (&args.file, &args.hex) {
        (Some(path), _) => source::open(path, vendors),
        (None, Some(text)) => Ok(Box::new(std::iter::once(source::from_hex(text)))),
        (None, None) => unreachable!("pass either a file or --hex"),
    }
}

/// Returns `true` for a packet from or to a PFCP port, and for every packet that is not from a
/// capture.
fn is_pfcp(packet: &Packet, port: Option<u16>) -> bool {
    let matches = |wanted| {
        move |(src, dst): (SocketAddr, SocketAddr)| src.port() == wanted || dst.port() == wanted
    };
    packet.ends.is_none_or(matches(PFCP_PORT))
        || port.is_some_and(|port| packet.ends.is_some_and(matches(port)))
}

/// Handles the messages of one datagram.
fn handle_datagram(
    args: &DecodeArgs,
    vendors: &Dictionary,
    packet: &Packet,
    counts: &mut DecodeCounts,
    output: &mut Output,
) -> CliResult {
    let mut first = true;
    for frame in frames(&packet.bytes) {
        let filter = &args.filter;
        if filter.is_set() && !frame.as_ref().is_ok_and(|frame| filter.passes(frame)) {
            continue;
        }
        counts.messages += 1;
        if !std::mem::take(&mut first) && !args.json && !args.check {
            output.line(output.paint(TextStyle::Faint, "in the same datagram:"))?;
        }
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                report_error(args, packet, &packet.bytes, &error, output)?;
                counts.errors += 1;
                continue;
            }
        };
        handle_message(args, vendors, packet, &frame, counts, output)?;
    }
    Ok(())
}

fn handle_message(
    args: &DecodeArgs,
    vendors: &Dictionary,
    packet: &Packet,
    frame: &Frame<'_>,
    counts: &mut DecodeCounts,
    output: &mut Output,
) -> CliResult {
    let mut index = Index::new();
    let view = match MessageView::of(frame, &mut index) {
        Ok(view) => view,
        Err(error) => {
            counts.errors += 1;
            return report_error(args, packet, frame.bytes, &error, output);
        }
    };
    if args.check {
        return check_message(args, packet, &view, frame.bytes, counts, output);
    }
    counts.decoded += 1;
    if args.json {
        let mut object = vendors.to_json(&view);
        object["frame"] = frame_info(packet);
        if let Some(release) = args.release {
            let newer = newer(&view, release);
            object["frame"]["newer"] = newer.iter().map(ToString::to_string).collect();
        }
        return output.json(&object);
    }
    output.line(output.paint(TextStyle::Faint, describe_packet(packet)))?;
    print_tree(&vendors.show(&view).to_string(), output)?;
    for found in args
        .release
        .iter()
        .flat_map(|release| newer(&view, *release))
    {
        output.line(output.paint(TextStyle::Yellow, found))?;
    }
    Ok(())
}

/// Encodes a message again from its owned values, without the bytes that it came from.
fn check_message(
    args: &DecodeArgs,
    packet: &Packet,
    view: &MessageView<'_>,
    bytes: &[u8],
    counts: &mut DecodeCounts,
    output: &mut Output,
) -> CliResult {
    let again = view.to_message().and_then(|message| message.encode());
    let again = match again {
        Ok(again) => again,
        Err(error) => {
            counts.errors += 1;
            return report_error(args, packet, bytes, &error, output);
        }
    };
    counts.decoded += 1;
    counts.opaque += count_opaque(view.root());
    if again == bytes {
        counts.identical += 1;
        return Ok(());
    }
    let first = again
        .iter()
        .zip(bytes)
        .take_while(|(again, was)| again == was)
        .count();
    let what = format!(
        "{}: encodes to different bytes, from byte {first} on",
        describe_packet(packet)
    );
    if args.json {
        output.json(&json!({ "frame": frame_info(packet), "differs_at": first }))
    } else {
        output.line(output.paint(TextStyle::Red, what))
    }
}

/// Counts the elements that no table describes, at every depth.
fn count_opaque(group: Part<'_>) -> u64 {
    let count = |part: Part<'_>| match part.descriptor() {
        None => 1,
        Some(Descriptor::Leaf(_)) => 0,
        Some(Descriptor::Group(_)) => count_opaque(part),
    };
    group.parts().map(count).sum()
}

/// Prints a message, with the part before the first colon of each line in colour.
fn print_tree(text: &str, output: &mut Output) -> CliResult {
    let mut lines = text.lines();
    if let Some(head) = lines.next() {
        output.line(output.paint(TextStyle::Bold, head))?;
    }
    for line in lines {
        let (name, value) = line.split_at(line.find(": ").unwrap_or(line.len()));
        let name = output.paint(TextStyle::Cyan, name);
        output.line(format_args!("{name}{value}"))?;
    }
    Ok(())
}

/// Reports bytes that are not a valid message.
fn report_error(
    args: &DecodeArgs,
    packet: &Packet,
    bytes: &[u8],
    error: &Error,
    output: &mut Output,
) -> CliResult {
    if args.json {
        let mut object = json!({
            "error": error.to_string(),
            "offset": error.offset(),
            "octets": Hex(bytes).to_string(),
        });
        object["frame"] = frame_info(packet);
        output.json(&object)
    } else {
        let line = format!(
            "{}: {error} (at byte {})",
            describe_packet(packet),
            error.offset()
        );
        output.line(output.paint(TextStyle::Red, line))
    }
}

/// Returns the origin of a datagram, as the object that encoding ignores.
fn frame_info(packet: &Packet) -> Value {
    let mut info = json!({ "number": packet.number });
    if let Some(time) = packet.time {
        info["time"] = iso(time).into();
    }
    if let Some((src, dst)) = packet.ends {
        info["src"] = src.to_string().into();
        info["dst"] = dst.to_string().into();
    }
    if packet.quoted {
        info["quoted"] = true.into();
    }
    info
}

fn describe_packet(packet: &Packet) -> String {
    let mut text = format!("Frame {}", packet.number);
    if let Some((src, dst)) = packet.ends {
        text.push_str(&format!(": {src} > {dst}"));
    }
    if let Some(time) = packet.time {
        text.push_str(&format!(", {}", utc(time)));
    }
    if packet.quoted {
        text.push_str(", quoted by an ICMP error");
    }
    text
}

/// The result of a check.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct DecodeCounts {
    messages: u64,
    decoded: u64,
    errors: u64,
    identical: u64,
    opaque: u64,
}

impl DecodeCounts {
    /// Returns an error unless every message decodes.
    fn verdict_of_decoding(self) -> CliResult {
        match (self.messages, self.errors) {
            (0, _) => Err(Failure::check("no PFCP message")
                .hint("PFCP uses UDP port 8805; select another one with --port")),
            (_, 0) => Ok(()),
            (messages, errors) => {
                let text = format!("{errors} of {messages} messages cannot be decoded");
                Err(Failure::check(text))
            }
        }
    }

    /// Returns an error unless every message decodes, and encodes to the same bytes.
    fn verdict_of_check(self) -> CliResult {
        self.verdict_of_decoding()?;
        match self.decoded - self.identical {
            0 => Ok(()),
            changed => Err(Failure::check(format!(
                "{changed} messages encode to different bytes"
            ))),
        }
    }
}

impl fmt::Display for DecodeCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            messages,
            decoded,
            errors,
            identical,
            opaque,
        } = self;
        write!(
            f,
            "{messages} messages: {decoded} decoded, {errors} errors; {identical} encode to the \
             same bytes; {opaque} opaque elements"
        )
    }
}
