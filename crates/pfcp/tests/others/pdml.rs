//! tshark's description of a capture: one tree of fields for each PFCP message.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::guarded::Guarded;

/// One field, with those inside it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Field {
    /// tshark's name, such as `pfcp.f_teid.teid`; empty for an element.
    pub(crate) name: String,
    /// The line that people see, such as `TEID: 0x00000001`.
    pub(crate) label: String,
    /// The value as filters compare it.
    pub(crate) show: String,
    /// The bytes in hex, reduced to a bit field by its mask.
    pub(crate) bytes: String,
    pub(crate) fields: Vec<Self>,
}

/// One message of a frame.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) frame: u64,
    pub(crate) fields: Vec<Field>,
    /// Tshark's complaints about it; `malformed` where it gave up.
    pub(crate) complaints: Vec<String>,
}

impl Field {
    /// Finds a direct member.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// Asks tshark for the PFCP messages of a capture and passes them on one at a time.
pub(crate) fn each_message(capture: &Path, mut take: impl FnMut(Message)) {
    let mut command = Command::new("tshark");
    command
        .args(["-n", "-Y", "pfcp", "-T", "pdml", "-J", "pfcp", "-r"])
        .arg(capture)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut tshark = Guarded::spawn(&mut command);
    let lines = BufReader::new(tshark.stdout.take().expect("piped")).lines();
    let mut frame = 0;
    // The messages of the frame, and the open fields from the outside to the inside; the first one
    // stands for the message.
    let mut messages: Vec<Message> = Vec::new();
    let mut open: Vec<Field> = Vec::new();
    for line in lines {
        let line = line.expect("tshark writes text");
        let tag = line.trim_start();
        if tag.starts_with("<proto name=\"pfcp\"") {
            open = vec![Field::default()];
            messages.push(Message {
                frame,
                fields: Vec::new(),
                complaints: Vec::new(),
            });
        } else if tag.starts_with("<proto name=\"_ws.malformed\"") && open.is_empty() {
            let message = messages.last_mut().expect("it stands after the message");
            message.complaints.push("malformed".to_owned());
        } else if tag.starts_with("</proto>") {
            if let (Some(message), Some(told)) = (messages.last_mut(), open.pop()) {
                message.fields = told.fields;
            }
        } else if tag.starts_with("</packet>") {
            messages.drain(..).for_each(&mut take);
        } else if tag.starts_with("</field>") {
            if let (Some(done), Some(parent)) = (open.pop(), open.last_mut()) {
                parent.fields.push(done);
            }
        } else if tag.starts_with("<field name=\"num\"") {
            frame = attribute(tag, "show").parse().expect("a frame number");
        } else if tag.starts_with("<field") && !open.is_empty() {
            let field = Field {
                name: attribute(tag, "name"),
                label: attribute(tag, "showname"),
                show: attribute(tag, "show"),
                bytes: attribute(tag, "value"),
                fields: Vec::new(),
            };
            if field.name == "_ws.expert.message" {
                let message = messages.last_mut().expect("it stands in the message");
                message.complaints.push(field.show.clone());
            }
            if tag.ends_with("/>") {
                open.last_mut().expect("not empty").fields.push(field);
            } else {
                open.push(field);
            }
        }
    }
    assert!(tshark.wait().success(), "{}", capture.display());
}

/// Reads an attribute; an absent one is empty.
fn attribute(tag: &str, name: &str) -> String {
    let start = format!(" {name}=\"");
    let Some(at) = tag.find(&start) else {
        return String::new();
    };
    let value = &tag[at + start.len()..];
    let value = value.split('"').next().unwrap_or_default();
    if !value.contains('&') {
        return value.to_owned();
    }
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(value.to_owned(), |text, (from, to)| text.replace(from, to))
}
