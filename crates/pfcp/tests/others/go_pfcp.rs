//! Every message that `go-pfcp` knows, in both directions: it decodes and re-encodes what we
//! encode, and we decode what it builds.
//!
//! The program is in `interop/`; it is built once per run of the tests. Differences between the two
//! are listed in `go_pfcp.tsv` with the reason: nothing else may differ, and no row may be unused.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use strowger_pfcp::ie::descriptor::{Leaf, canonical};
use strowger_pfcp::wire::Part;
use strowger_pfcp::{
    IeType, Ignore, Index, Interfaces, Message, MessageType, MessageView, compare, to_json,
    validate,
};

use crate::bytes::{hex, node_message, tlv};
use crate::guarded::Guarded;
use crate::proof::Proof;
use crate::tools;
use crate::values::{self, Choices};

pub(crate) const DIFFERENT: &str = include_str!("go_pfcp.tsv");

/// The messages for which go-pfcp has no type.
const UNKNOWN: [MessageType; 2] = [
    MessageType::SESSION_SET_MODIFICATION_REQUEST,
    MessageType::SESSION_SET_MODIFICATION_RESPONSE,
];

/// Builds the program and sends it lines; returns its answers.
fn ask(lines: &[String]) -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-pfcp");
    let mut go = Command::new("go");
    go.args(["build", "-mod=readonly", "-o"])
        .args([&program, Path::new(".")])
        .current_dir(root);
    assert!(
        Guarded::spawn(&mut go).wait().success(),
        "the program of interop/ does not build"
    );
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = Guarded::spawn(command.stderr(Stdio::null()));
    let mut input = child.stdin.take().expect("piped");
    let text = lines.join("\n");
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let answers = BufReader::new(child.stdout.take().expect("piped")).lines();
    let answers = answers
        .map(|line| line.expect("it writes text"))
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(&line).expect("it writes JSON"))
        .collect();
    writer.join().expect("no panic").expect("it reads all");
    assert!(child.wait().success());
    answers
}

/// Known differences: element or message, difference, reason.
struct Different {
    rows: Vec<[&'static str; 3]>,
    met: BTreeSet<usize>,
    wrong: Vec<String>,
}

impl Different {
    fn read() -> Self {
        let lines = DIFFERENT.lines().filter(|line| !line.starts_with('#'));
        let cells = lines.map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            <[&str; 3]>::try_from(cells).expect("go_pfcp.tsv has three cells")
        });
        Self {
            rows: cells.collect(),
            met: BTreeSet::new(),
            wrong: Vec::new(),
        }
    }

    /// Returns `true` if a difference is listed; records it otherwise.
    fn listed(&mut self, what: &str, of: &str, more: impl FnOnce() -> String) -> bool {
        let row = self
            .rows
            .iter()
            .position(|row| row[0] == of && row[1] == what);
        match row {
            Some(row) => drop(self.met.insert(row)),
            None => self.wrong.push(format!("{of}\t{what}\t{}", more())),
        }
        row.is_some()
    }

    /// Records the rows that matched nothing.
    fn note_idle(&mut self) {
        let idle = (0..self.rows.len()).filter(|row| !self.met.contains(row));
        let idle = idle.map(|row| format!("nothing meets {:?}", self.rows[row]));
        self.wrong.extend(idle.collect::<Vec<_>>());
    }

    fn check(&self) {
        let (count, wrong) = (self.wrong.len(), self.wrong.join("\n"));
        assert!(count == 0, "{count} differ:\n{wrong}");
    }
}

/// Collects the numbers and texts of a value in the forms that getters return.
fn told(element: IeType, value: &Value, bytes: &[u8]) -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    collect(value, &mut told);
    told.insert(digits(bytes));
    told.insert(digits(bytes.get(1..).unwrap_or_default()));
    let mut number: u64 = 0;
    for byte in bytes.iter().take(8) {
        number = number << 8 | u64::from(*byte);
        told.insert(number.to_string());
    }
    let number = |name: &str| value[name].as_u64();
    if let (Some(count), Some(unit)) = (number("timer_value"), number("timer_unit")) {
        let seconds = [2, 60, 600, 3600, 36_000, 60, 60];
        let seconds = usize::try_from(unit)
            .ok()
            .and_then(|unit| seconds.get(unit));
        told.extend(seconds.map(|seconds| (count * seconds).to_string()));
    }
    // Durations are in microseconds unless they are whole seconds.
    let unit = UNITS.iter().find(|(ie, _)| *ie == element);
    let counts = value.as_object().into_iter().flatten();
    for count in counts.filter_map(|(_, count)| count.as_u64()) {
        told.extend(unit.map(|(_, unit)| (count * unit).to_string()));
        told.extend(unit.map(|(_, unit)| (count * unit / 1_000_000).to_string()));
    }
    // Clock offsets are in nanoseconds, and may be negative.
    if [
        IeType::TIME_OFFSET_THRESHOLD,
        IeType::TIME_OFFSET_MEASUREMENT,
    ]
    .contains(&element)
    {
        let counts = value.as_object().into_iter().flatten();
        for count in counts.filter_map(|(_, count)| count.as_i64()) {
            told.extend([1000, 1_000_000_000].map(|unit| (count / unit).to_string()));
        }
    }
    told
}

/// Elements that count in a unit longer than a microsecond.
const UNITS: [(IeType, u64); 4] = [
    (IeType::DOWNLINK_DATA_NOTIFICATION_DELAY, 50_000),
    (IeType::AVERAGE_PACKET_DELAY, 1000),
    (IeType::MINIMUM_PACKET_DELAY, 1000),
    (IeType::MAXIMUM_PACKET_DELAY, 1000),
];

fn collect(value: &Value, told: &mut BTreeSet<String>) {
    match value {
        Value::Number(number) => drop(told.insert(number.to_string())),
        Value::String(text) => {
            told.insert(digits(text.as_bytes()));
            told.insert(text.replace(':', ""));
            told.insert(text.clone());
            if text.len() % 2 == 0 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                let bytes = hex(text);
                told.insert(String::from_utf8_lossy(&bytes).into_owned());
                // Lists of identifiers and of addresses.
                told.extend(bytes.chunks(6).map(digits));
                let pairs = bytes.chunks_exact(2);
                told.extend(pairs.map(|pair| u16::from_be_bytes([pair[0], pair[1]]).to_string()));
                told.extend(bytes.iter().map(u8::to_string));
            }
        }
        Value::Object(fields) => fields.values().for_each(|value| collect(value, told)),
        Value::Array(values) => values.iter().for_each(|value| collect(value, told)),
        _ => {}
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares elements of a group one by one.
fn elements(
    group: Part<'_>,
    ours: &Value,
    theirs: &Value,
    different: &mut Different,
    proof: &mut Proof,
) {
    let ours = ours["ies"].as_array().into_iter().flatten();
    let theirs = theirs["ies"].as_array().into_iter().flatten();
    for ((part, ours), theirs) in group.parts().zip(ours).zip(theirs) {
        assert_eq!(ours["type"], theirs["type"], "the order of elements");
        let ie = part.ie().0.to_string();
        if theirs.get("ies").is_some() {
            if ours.get("ies").is_some() {
                elements(part, ours, theirs, different, proof);
            }
            continue;
        }
        if let Some(error) = theirs["error"].as_str() {
            different.listed("error", &ie, || format!("{error}: {ours}"));
            continue;
        }
        let told = told(part.ie(), &ours["value"], part.value());
        let values = theirs["values"].as_array().into_iter().flatten();
        let mut right = 0;
        for value in values.filter_map(Value::as_str) {
            if value.is_empty() || value == "0" || told.contains(value) {
                right += 1;
            } else {
                different.listed("value", &ie, || format!("{value}: {ours}"));
            }
        }
        if right > 0 {
            proof.element(part.ie());
        }
    }
}

fn without_spare_bits(leaf: &Leaf, choices: &mut Choices<'_>) -> Vec<u8> {
    let value = values::leaf(leaf, choices);
    canonical(leaf.ie, &value)
        .expect("a row")
        .expect("well-formed")
}

/// Messages of every type, and every leaf alone in a message.
fn messages() -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    for round in 0..6 {
        for message in MessageType::ALL {
            let noise = values::noise(u64::from(message.0) << 8 | round, 1 << 15);
            let mut choices = Choices::readable(&noise);
            messages.push(values::message_of(
                *message,
                &without_spare_bits,
                &mut choices,
            ));
        }
    }
    let alone = values::leaves().into_iter();
    for (ie, what) in alone.filter(|(ie, _)| *ie != IeType::RECOVERY_TIME_STAMP) {
        for value in values::leaf_variety(what, u64::from(ie.0) << 8) {
            let value = canonical(ie, &value).expect("a row").expect("well-formed");
            let known = tlv(96, &[0; 4]);
            messages.push(node_message(1, &[known, tlv(ie.0, &value)].concat()));
        }
    }
    messages
}

#[test]
fn go_pfcp_reads_and_encodes_what_we_encode() {
    if !tools::is_here("go") {
        return;
    }
    let messages = messages();
    let lines: Vec<String> = messages.iter().map(|bytes| digits(bytes)).collect();
    let mut different = Different::read();
    let mut proof = Proof::by("go-pfcp");
    for (bytes, theirs) in messages.iter().zip(ask(&lines)) {
        let again = Message::decode(bytes).and_then(|message| message.encode());
        assert_eq!(again.as_ref(), Ok(bytes), "our encoder");
        let mut index = Index::new();
        let view = MessageView::decode(bytes, &mut index).expect("our own");
        let name = view.message_type().to_string();
        if let Some(error) = theirs["error"].as_str() {
            different.listed("error", &name, || error.to_owned());
            continue;
        }
        let ours = to_json(&view);
        assert_eq!(theirs["sequence"], ours["sequence"]);
        assert_eq!(theirs["seid"].as_u64(), ours["seid"].as_u64().or(Some(0)));
        let again = hex(theirs["again"].as_str().expect("octets"));
        let mut second = Index::new();
        let again = MessageView::decode(&again, &mut second).expect("it is well-formed");
        let lost = compare(&view, &again, &Ignore::nothing());
        let same = lost.is_empty();
        for difference in lost {
            let place = difference.to_string();
            let place = place.split([':', '[']).next().unwrap_or_default();
            different.listed("lost", place, || difference.to_string());
        }
        if same && !UNKNOWN.contains(&view.message_type()) {
            proof.message(view.message_type());
        }
        elements(view.root(), &ours, &theirs, &mut different, &mut proof);
    }
    different.note_idle();
    different.check();
    proof.record();
}

#[test]
fn go_pfcp_messages_round_trip() {
    if !tools::is_here("go") {
        return;
    }
    let mut different = Different::read();
    let mut proof = Proof::by("go-pfcp");
    let built = ask(&["build".to_owned()]);
    let mut types = BTreeSet::new();
    for theirs in &built {
        let bytes = hex(theirs["octets"].as_str().expect("octets"));
        let message = Message::decode(&bytes).expect("it is complete");
        assert_eq!(message.encode().as_ref(), Ok(&bytes));
        let mut index = Index::new();
        let view = MessageView::decode(&bytes, &mut index).expect("it is well-formed");
        let ours = to_json(&view);
        assert_eq!(theirs["sequence"], ours["sequence"]);
        assert_eq!(theirs["seid"].as_u64(), ours["seid"].as_u64().or(Some(0)));
        elements(view.root(), &ours, theirs, &mut different, &mut proof);
        assert_eq!(validate(&view, Interfaces::ALL).err(), None, "{view}");
        types.insert(view.message_type());
        proof.message(view.message_type());
    }
    different.check();
    let missing = MessageType::ALL.iter().filter(|one| !types.contains(one));
    assert_eq!(missing.copied().collect::<Vec<_>>(), UNKNOWN);
    proof.record();
}
