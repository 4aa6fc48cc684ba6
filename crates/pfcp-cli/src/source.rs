//! Sources of messages: a capture, hex text, JSON, or raw bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use strowger_pfcp::vendor::Dictionary;
use strowger_pfcp_node::{CaptureError, CaptureReader, CapturedDatagram};

use super::{encode, hex, time};
use crate::exit::{CliResult, Failure};

/// A datagram with its origin, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// The number of the captured frame or of the line of hex text, counted from 1.
    pub(crate) number: u64,
    /// The time of capture, since 1970.
    pub(crate) time: Option<Duration>,
    /// The sender and the receiver.
    pub(crate) ends: Option<(SocketAddr, SocketAddr)>,
    /// `true` if an ICMP error quotes the datagram.
    pub(crate) quoted: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Packet {
    fn without_origin(number: u64, bytes: Vec<u8>) -> Self {
        Self {
            number,
            time: None,
            ends: None,
            quoted: false,
            bytes,
        }
    }
}

/// The datagrams of a source, one at a time.
pub(crate) type Packets = Box<dyn Iterator<Item = CliResult<Packet>>>;

/// Opens a file, or standard input for `-`, and detects its format. JSON objects may contain vendor
/// elements by the fields of a dictionary.
pub(crate) fn open(path: &Path, vendors: &Dictionary) -> CliResult<Packets> {
    let name = source_name(path);
    let reader: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(|error| Failure::file(path, &error))?)
    };
    detect(BufReader::new(reader), name, vendors)
}

/// Parses one line of hex.
pub(crate) fn from_hex(text: &str) -> CliResult<Packet> {
    let bytes = hex::parse(text)
        .map_err(|error| Failure::input(format!("--hex: {error}")).hint(HEX_HINT))?;
    Ok(Packet::without_origin(1, bytes))
}

const HEX_HINT: &str = "expected one datagram per line, such as 2001000c00000100006000040a0b0c0d";

/// The format of a source, detected from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SourceFormat {
    Capture,
    Text,
    /// JSON objects as `decode --json` prints them.
    Json,
    /// The bytes of one datagram.
    Datagram,
}

impl SourceFormat {
    fn of(first: &[u8]) -> Self {
        const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
        const PCAP: [[u8; 4]; 4] = [
            [0xa1, 0xb2, 0xc3, 0xd4],
            [0xd4, 0xc3, 0xb2, 0xa1],
            [0xa1, 0xb2, 0x3c, 0x4d],
            [0x4d, 0x3c, 0xb2, 0xa1],
        ];
        let text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        match first.first_chunk() {
            Some(magic) if *magic == PCAPNG || PCAP.contains(magic) => Self::Capture,
            _ if first.trim_ascii_start().starts_with(b"{") => Self::Json,
            _ if first.iter().all(text) => Self::Text,
            _ => Self::Datagram,
        }
    }
}

fn detect(
    mut reader: BufReader<Box<dyn Read>>,
    name: String,
    vendors: &Dictionary,
) -> CliResult<Packets> {
    let failed = |error: io::Error| Failure::outside(format!("{name}: {error}"));
    let mut first = [0; 8];
    let mut length = 0;
    while length < first.len() {
        match reader.read(&mut first[length..]).map_err(failed)? {
            0 => break,
            read => length += read,
        }
    }
    let reader = io::Cursor::new(first).take(length as u64).chain(reader);
    match SourceFormat::of(&first[..length]) {
        SourceFormat::Capture => Ok(Box::new(CaptureReader::new(name, reader).map(from_capture))),
        SourceFormat::Text => Ok(Box::new(read_hex_lines(BufReader::new(reader), name))),
        SourceFormat::Json => {
            let mut text = String::new();
            BufReader::new(reader)
                .read_to_string(&mut text)
                .map_err(|error| Failure::input(format!("{name}: {error}")))?;
            Ok(Box::new(
                read_objects(&name, &text, vendors)?.into_iter().map(Ok),
            ))
        }
        SourceFormat::Datagram => {
            let mut bytes = Vec::new();
            let mut reader = reader.take(MAX_DATAGRAM_BYTES + 1);
            reader.read_to_end(&mut bytes).map_err(failed)?;
            if bytes.len() as u64 > MAX_DATAGRAM_BYTES || bytes[0] >> 5 != 1 {
                let what = format!("{name}: not a capture, hex text or PFCP message");
                return Err(Failure::input(what).hint("captures are pcap or pcapng files"));
            }
            Ok(Box::new(std::iter::once(Ok(Packet::without_origin(
                1, bytes,
            )))))
        }
    }
}

/// Maximum size of a UDP datagram.
const MAX_DATAGRAM_BYTES: u64 = 65_535;

fn from_capture(datagram: Result<CapturedDatagram, CaptureError>) -> CliResult<Packet> {
    let datagram = datagram.map_err(|error| Failure::input(error.to_string()))?;
    Ok(Packet {
        number: datagram.number,
        time: Some(datagram.timestamp),
        ends: Some((datagram.src, datagram.dst)),
        quoted: datagram.quoted,
        bytes: datagram.payload.into(),
    })
}

/// Reads a datagram from each line; empty lines and those that start with `#` are skipped.
fn read_hex_lines(reader: impl BufRead, name: String) -> impl Iterator<Item = CliResult<Packet>> {
    (1..).zip(reader.lines()).filter_map(move |(number, line)| {
        let line = match line {
            Ok(line) => line,
            Err(error) => return Some(Err(Failure::outside(format!("{name}: {error}")))),
        };
        if line.trim().is_empty() || line.starts_with('#') {
            return None;
        }
        let wrong = |error| Failure::input(format!("{name}: line {number}: {error}"));
        let bytes = hex::parse(&line).map_err(|error| wrong(error).hint(HEX_HINT));
        Some(bytes.map(|bytes| Packet::without_origin(number, bytes)))
    })
}

/// Encodes the objects of a text. Their `frame`, if present, gives the time, the sender and the
/// receiver.
fn read_objects(name: &str, text: &str, vendors: &Dictionary) -> CliResult<Vec<Packet>> {
    let mut packets = Vec::new();
    encode::encode_all(name, text, vendors, |bytes, frame| {
        let end = |key: &str| frame[key].as_str().and_then(|text| text.parse().ok());
        let number = frame["number"].as_u64();
        packets.push(Packet {
            number: number.unwrap_or(packets.len() as u64 + 1),
            time: frame["time"].as_str().and_then(time::from_iso),
            ends: end("src").zip(end("dst")),
            quoted: frame["quoted"] == true,
            bytes,
        });
        Ok(())
    })?;
    Ok(packets)
}

/// Opens a file or, if no file has that name, parses the name as hex.
pub(crate) fn open_or_hex(given: &Path, vendors: &Dictionary) -> CliResult<Packets> {
    let text = given.to_str().unwrap_or_default();
    if given == Path::new("-") || given.exists() {
        return open(given, vendors);
    }
    match hex::parse(text) {
        Ok(bytes) if !bytes.is_empty() => Ok(Box::new(std::iter::once(Ok(
            Packet::without_origin(1, bytes),
        )))),
        _ => open(given, vendors),
    }
}

/// Returns the name of a source for error messages.
fn source_name(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}
