//! The lines of an export: JSON objects with one member, whose name says what the line is.

use std::io::{BufRead, Read as _, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::ToolError;
use crate::store::Batch;

/// The version of the format, which is in the first line.
pub(super) const VERSION: u32 = 1;

/// The name of the format.
pub(super) const FORMAT: &str = "strowger-durable";

/// The maximum length of a line: a value as text, of which each byte may need an escape.
pub(super) const MAX_LINE: usize = 2 * Batch::MAX_VALUE + (1 << 16);

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ExportLine {
    /// The first line.
    Store(FormatLine),
    /// An entity; its rows follow.
    Entity(EntityLine),
    /// A row of the entity before it.
    Row(RowLine),
    /// A row of a list beside the entities.
    Index(RawLine),
    /// A row in the quarantine.
    Quarantined(RawLine),
    /// The last line.
    End(EndLine),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FormatLine {
    pub(super) format: String,
    pub(super) version: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EntityLine {
    pub(super) kind: String,
    pub(super) key: String,
    pub(super) sequence: u64,
    pub(super) fence: u64,
    /// The wake-up time in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) wake_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) quarantined: bool,
    /// The rest of a head that a later version has written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) extra: Option<Bytes>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowLine {
    pub(super) table: u8,
    pub(super) key: Bytes,
    pub(super) sequence: u64,
    pub(super) value: Bytes,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLine {
    pub(super) key: Bytes,
    pub(super) value: Bytes,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndLine {
    pub(super) entities: u64,
    pub(super) rows: u64,
}

/// Bytes, as text if they are text, otherwise as `{"base64": ".."}`.
#[derive(Debug)]
pub(super) struct Bytes(pub(super) Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum BytesForm<'a> {
    Text(std::borrow::Cow<'a, str>),
    Base64(Base64Form),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Base64Form {
    base64: String,
}

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Other control characters take six bytes each, which would make lines too long.
        let is_plain = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t' | '\r');
        let text = std::str::from_utf8(&self.0).ok();
        let form = match text.filter(|text| text.chars().all(is_plain)) {
            Some(text) => BytesForm::Text(text.into()),
            None => BytesForm::Base64(Base64Form {
                base64: STANDARD.encode(&self.0),
            }),
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = BytesForm::deserialize(deserializer);
        let form = form.map_err(|_| {
            serde::de::Error::custom("bytes are neither text nor {\"base64\": \"..\"}")
        })?;
        match form {
            BytesForm::Text(text) => Ok(Self(text.into_owned().into_bytes())),
            BytesForm::Base64(Base64Form { base64 }) => {
                let bytes = STANDARD.decode(base64);
                bytes.map(Self).map_err(serde::de::Error::custom)
            }
        }
    }
}

/// Writes one line.
pub(super) fn write_line(output: &mut dyn Write, line: &ExportLine) -> Result<(), ToolError> {
    let mut text = serde_json::to_vec(line).map_err(|error| ToolError::Output(error.into()))?;
    text.push(b'\n');
    output.write_all(&text).map_err(ToolError::Output)
}

/// Reads lines, and knows their numbers.
pub(super) struct LineReader<'a> {
    input: &'a mut dyn BufRead,
    /// The number of the last line, from 1.
    pub(super) number: u64,
    text: Vec<u8>,
}

impl<'a> LineReader<'a> {
    pub(super) fn new(input: &'a mut dyn BufRead) -> Self {
        Self {
            input,
            number: 0,
            text: Vec::new(),
        }
    }

    pub(super) fn error(&self, detail: impl Into<String>) -> ToolError {
        ToolError::Line {
            line: self.number,
            detail: detail.into(),
        }
    }

    /// Reads the next line; `None` at the end of the input.
    pub(super) fn next(&mut self) -> Result<Option<ExportLine>, ToolError> {
        if !self.read()? {
            return Ok(None);
        }
        let parsed = self.parse();
        parsed.map(Some).map_err(|error| {
            let (text, column) = (error.to_string(), error.column());
            let text = text
                .rsplit_once(" at line ")
                .map_or(&*text, |(text, _)| text);
            self.error(format!("column {column}: {text}; export the store again"))
        })
    }

    /// Returns the line that was read last.
    pub(super) fn parse(&self) -> serde_json::Result<ExportLine> {
        serde_json::from_slice(&self.text)
    }

    /// Reads the text of the next line. Returns `false` at the end of the input.
    pub(super) fn read(&mut self) -> Result<bool, ToolError> {
        self.number += 1;
        self.text.clear();
        let mut limited = (&mut *self.input).take(MAX_LINE as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.text);
        if let Err(error) = read {
            return Err(self.error(format!("input not read: {error}")));
        }
        if self.text.last() == Some(&b'\n') {
            self.text.pop();
        } else if self.text.len() > MAX_LINE {
            return Err(self.error(format!(
                "line is longer than {MAX_LINE} bytes, the limit; check that the file is an export"
            )));
        } else if self.text.is_empty() {
            return Ok(false);
        }
        Ok(true)
    }
}
