//! `strowger pfcp encode`: encodes the output of `decode --json`, or objects written by hand.

mod expected;

use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use strowger_pfcp::vendor::Dictionary;
use strowger_pfcp_node::{CaptureWriter, PFCP_PORT};

use super::dictionary::DictionaryArgs;
use super::hex::{self, Hex};
use super::time;
use crate::exit::{CliResult, Failure};
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  strowger pfcp decode n4.pcapng --json | strowger pfcp encode
  strowger pfcp decode n4.pcapng --json | sed s/10.45.0.2/10.45.0.9/ |
    strowger pfcp encode --pcap changed.pcapng
  strowger pfcp encode heartbeat.json | strowger pfcp decode -

Input is one object per message, as printed by `strowger pfcp decode --json`. The member \"frame\"
is used only with --pcap, for times and addresses. Output is one datagram per line, in hex. A
message with \"follow_on\": true shares a datagram with the next one.";

/// The arguments of `encode`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct EncodeArgs {
    /// File of JSON objects; `-` reads standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Write a capture (pcapng) instead of hex.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    #[command(flatten)]
    dictionary: DictionaryArgs,
}

pub(crate) fn run(args: &EncodeArgs, output: &mut Output) -> CliResult {
    let vendors = args.dictionary.read()?;
    let (name, text) = read_input(&args.file)?;
    let mut sink = match &args.pcap {
        Some(path) => DatagramSink::capture(path)?,
        None => DatagramSink::Hex,
    };
    encode_all(&name, &text, &vendors, |bytes, frame| {
        sink.take(&bytes, frame, output)
    })?;
    sink.finish()
}

/// Encodes the objects of a text and passes each datagram to `take`, with the `frame` of its
/// object.
pub(crate) fn encode_all(
    name: &str,
    text: &str,
    vendors: &Dictionary,
    mut take: impl FnMut(Vec<u8>, &Value) -> CliResult,
) -> CliResult {
    let mut datagram = Vec::new();
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let start = objects.byte_offset();
        let Some(object) = objects.next() else { break };
        let at = InputPosition { name, text, start };
        let object = object.map_err(|error| at.not_json(&error))?;
        let more = object["follow_on"] == true;
        datagram.extend(encode_object(&object, vendors).map_err(|wrong| at.not_a_message(&wrong))?);
        if !more {
            take(std::mem::take(&mut datagram), &object["frame"])?;
        }
    }
    if !datagram.is_empty() {
        take(datagram, &Value::Null)?;
    }
    Ok(())
}

/// Encodes one object. An object for bytes that could not be decoded contains those bytes.
fn encode_object(object: &Value, vendors: &Dictionary) -> Result<Vec<u8>, String> {
    match (&object["octets"], object.get("type")) {
        (Value::String(bytes), None) => hex::parse(bytes).map_err(|e| format!("bytes: {e}")),
        _ => vendors
            .from_json(object)
            .map_err(|error| expected::explain(object, &error, vendors)),
    }
}

/// The position of an object in the input.
struct InputPosition<'a> {
    name: &'a str,
    text: &'a str,
    start: usize,
}

impl InputPosition<'_> {
    /// Returns the line on which the object begins, counted from 1.
    fn line(&self) -> usize {
        let rest = &self.text[self.start..];
        let blank = rest.len() - rest.trim_start().len();
        self.text[..self.start + blank].matches('\n').count() + 1
    }

    fn not_json(&self, error: &serde_json::Error) -> Failure {
        Failure::input(format!("{}: {error}", self.name)).hint(
            "expected one JSON object per message, as printed by `strowger pfcp decode --json`",
        )
    }

    fn not_a_message(&self, wrong: &str) -> Failure {
        Failure::input(format!("{}: line {}: {wrong}", self.name, self.line()))
            .hint("see `strowger pfcp decode --json` for the format")
    }
}

fn read_input(path: &Path) -> CliResult<(String, String)> {
    let mut text = String::new();
    if path == Path::new("-") {
        let name = "standard input".to_owned();
        let read = io::stdin().read_to_string(&mut text);
        read.map_err(|error| Failure::input(format!("{name}: {error}")))?;
        return Ok((name, text));
    }
    File::open(path)
        .and_then(|mut file| file.read_to_string(&mut text))
        .map_err(|error| Failure::file(path, &error))?;
    Ok((path.display().to_string(), text))
}

/// The destination of the datagrams.
enum DatagramSink {
    Hex,
    Capture {
        path: PathBuf,
        writer: CaptureWriter<io::BufWriter<File>>,
        written: u32,
    },
}

impl DatagramSink {
    fn capture(path: &Path) -> CliResult<Self> {
        let writer = CaptureWriter::create(path).map_err(|error| Failure::file(path, &error))?;
        Ok(Self::Capture {
            path: path.to_owned(),
            writer,
            written: 0,
        })
    }

    fn take(&mut self, bytes: &[u8], frame: &Value, output: &mut Output) -> CliResult {
        match self {
            Self::Hex => output.line(Hex(bytes)),
            Self::Capture {
                path,
                writer,
                written,
            } => {
                *written += 1;
                let end = |key: &str, last| {
                    let given = frame[key].as_str().and_then(|text| text.parse().ok());
                    let loopback = Ipv4Addr::new(127, 0, 0, last);
                    given.unwrap_or_else(|| SocketAddr::from((loopback, PFCP_PORT)))
                };
                let given = frame["time"].as_str().and_then(time::from_iso);
                let time = given.unwrap_or_else(|| Duration::from_millis(u64::from(*written)));
                writer
                    .write(time, end("src", 1), end("dst", 2), bytes)
                    .map_err(|error| Failure::file(path, &error))
            }
        }
    }

    fn finish(self) -> CliResult {
        match self {
            Self::Hex => Ok(()),
            Self::Capture {
                path, mut writer, ..
            } => writer.flush().map_err(|error| Failure::file(&path, &error)),
        }
    }
}
