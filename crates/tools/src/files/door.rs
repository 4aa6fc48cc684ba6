//! The external interface of a files actor: message names and their JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strowger::{Accepts, Ask, ContentType, Export, Fault, FaultCode, Payload, Request};

use super::FilesMessage;
use super::error::FileError;
use super::message::{
    Append, Delete, Edit, GetMedia, GetRoot, GetUsage, List, Make, Media, Read, ReadLines,
    ReadMany, Rename, Search, Stat, Tree, Write, WriteMode,
};

/// The messages that a [`Files`](crate::Files) actor accepts from external callers.
///
/// | message | payload | answer |
/// |---|---|---|
/// | `read` | `{path, offset?, length?}` | the bytes, as binary content |
/// | `read-lines` | `{path, from?, head?, tail?, offset?, length?}` | the bytes of these lines, as binary content |
/// | `read-many` | `{paths}` | a list of `{text}`, `{base64}` or `{error}` |
/// | `media` | `{path}` | `{mime, base64}` |
/// | `write` | `{path, text or base64, mode?}`: `inplace`, `atomic`, `durable` | nothing |
/// | `append` | `{path, text or base64}` | nothing |
/// | `edit` | `{path, changes: [{old, new, all?}], dry_run?}` | `{places, diff}` |
/// | `list` | `{path?, after?, most?, details?, order?}` | `{entries: [{name, ...}], more}` |
/// | `tree` | `{path?, depth?, exclude?}` | `{name, kind, entries?, cut?}` |
/// | `search` | `{path?, names?, exclude?, text?, most?}` | `{matches, files, skipped?, cut?}` |
/// | `stat` | `{path?}` | `{name, kind, size, modified_ms, links}` |
/// | `make` | `{path}` | nothing |
/// | `rename` | `{from, to, replace?}` | nothing |
/// | `delete` | `{path, recursive?}` | nothing |
/// | `root` | none | `{path, read_only}` |
/// | `usage` | none | `{octets, entries, their limits, verbs}` |
pub fn files_door() -> Export<FilesMessage> {
    let many = |outcome: <ReadMany as Request>::Reply| {
        let outcomes = outcome.map_err(|error| error.to_fault())?;
        let items = outcomes.into_iter().map(|outcome| match outcome {
            Ok(octets) => text_or_base64(&octets),
            Err(error) => json!({ "error": error.to_fault().to_json() }),
        });
        Payload::from_json(&items.collect::<Vec<_>>())
    };
    let media = |outcome: Result<Media, FileError>| {
        let Media { mime, octets } = outcome.map_err(|error| error.to_fault())?;
        Payload::from_json(&json!({ "mime": mime, "base64": STANDARD.encode(octets) }))
    };
    let octets = |outcome: Result<Bytes, FileError>| {
        let octets = outcome.map_err(|error| error.to_fault())?;
        Ok(Payload::new(ContentType::Bytes, octets))
    };
    let write = |payload: &Payload| payload.decode::<WritePayload>()?.write();
    let append = |payload: &Payload| payload.decode::<WritePayload>()?.append();
    let door = Export::new()
        .ask_with("read", Payload::decode::<Read>, octets)
        .ask_with("read-lines", Payload::decode::<ReadLines>, octets)
        .ask_with("read-many", Payload::decode::<ReadMany>, many)
        .ask_with("media", Payload::decode::<GetMedia>, media)
        .ask_with("write", write, plain)
        .ask_with("append", append, plain);
    let door = json_ask::<Edit, _>(door, "edit");
    let door = json_ask::<List, _>(door, "list");
    let door = json_ask::<Tree, _>(door, "tree");
    let door = json_ask::<Search, _>(door, "search");
    let door = json_ask::<Stat, _>(door, "stat");
    let door = json_ask::<Make, _>(door, "make");
    let door = json_ask::<Rename, _>(door, "rename");
    let door = json_ask::<Delete, _>(door, "delete");
    json_ask::<GetRoot, _>(door, "root").ask::<GetUsage>("usage")
}

/// Adds a request whose payload and answer are both JSON.
fn json_ask<R, T>(door: Export<FilesMessage>, name: &str) -> Export<FilesMessage>
where
    FilesMessage: Accepts<Ask<R>>,
    R: Request<Reply = Result<T, FileError>> + DeserializeOwned,
    T: Serialize + 'static,
{
    door.ask_with(name, read::<R>, plain)
}

/// Parses a request; without a payload, all fields have their defaults.
fn read<R: DeserializeOwned>(payload: &Payload) -> Result<R, Fault> {
    if payload.content == ContentType::None
        && let Ok(request) = serde_json::from_value(json!({}))
    {
        return Ok(request);
    }
    payload.decode()
}

fn plain<T: Serialize + 'static>(outcome: Result<T, FileError>) -> Result<Payload, Fault> {
    Payload::from_json(&outcome.map_err(|error| error.to_fault())?)
}

/// The JSON of a write or append request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WritePayload {
    path: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    base64: Option<String>,
    #[serde(default)]
    mode: Option<WriteMode>,
}

impl WritePayload {
    fn write(self) -> Result<Write, Fault> {
        Ok(Write {
            octets: decode(self.text, self.base64)?,
            path: self.path,
            mode: self.mode.unwrap_or_default(),
        })
    }

    fn append(self) -> Result<Append, Fault> {
        if self.mode.is_some() {
            return Err(bad("`append` does not accept `mode`"));
        }
        Ok(Append {
            octets: decode(self.text, self.base64)?,
            path: self.path,
        })
    }
}

fn decode(text: Option<String>, base64: Option<String>) -> Result<Bytes, Fault> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into()),
        (None, Some(base64)) => match STANDARD.decode(base64) {
            Ok(octets) => Ok(octets.into()),
            Err(error) => Err(bad(&format!("`base64`: {error}"))),
        },
        _ => Err(bad("needs either `text` or `base64`")),
    }
}

fn bad(what: &str) -> Fault {
    Fault::new(FaultCode::BadRequest, format!("payload: {what}"))
}

fn text_or_base64(octets: &[u8]) -> Value {
    match std::str::from_utf8(octets) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "base64": STANDARD.encode(octets) }),
    }
}
