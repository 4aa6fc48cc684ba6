//! The external interface of a files actor: message names and their JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strowger::{Accepts, Ask, ContentType, Export, Fault, FaultCode, Payload, Request};

use super::error::FileError;
use super::message::{
    AppendRequest, BeginWriteRequest, CommitWriteRequest, CreateDirectoryRequest, DeleteRequest,
    EditRequest, FilesUsageRequest, ListRequest, MediaFile, ReadLinesRequest, ReadManyRequest,
    ReadMediaRequest, ReadRequest, RenameRequest, RootRequest, SearchRequest, StatRequest,
    TreeRequest, WriteMode, WriteRequest,
};
use super::{Files, FilesMessage};

impl Files {
    /// The messages that the actor accepts from external callers.
    ///
    /// | message | payload | answer |
    /// |---|---|---|
    /// | `read` | `{path, offset?, length?}` | the bytes, as binary content |
    /// | `read-lines` | `{path, from?, head?, tail?, offset?, length?}` | bytes of these lines |
    /// | `read-many` | `{paths}` | a list of `{text}`, `{base64}` or `{error}` |
    /// | `media` | `{path}` | `{mime, base64}` |
    /// | `write` | `{path, text or base64, mode?}`: `inplace`, `atomic`, `durable` | nothing |
    /// | `append` | `{path, text or base64}` | nothing |
    /// | `begin` | `{path}` | `{part}`, a temporary file to append to |
    /// | `commit` | `{part, path, length, durable?}` | nothing |
    /// | `edit` | `{path, changes: [{old, new, all?}], dry_run?}` | `{places, diff}` |
    /// | `list` | `{path?, after?, most?, details?, order?}` | `{entries: [{name, ...}], more}` |
    /// | `tree` | `{path?, depth?, exclude?}` | `{name, kind, entries?, cut?}` |
    /// | `search` | `{path?, names?, exclude?, text?, most?}` | `{matches, files, skipped?, ...}` |
    /// | `stat` | `{path?}` | `{name, kind, size, modified_ms, links}` |
    /// | `make` | `{path}` | nothing |
    /// | `rename` | `{from, to, replace?}` | nothing |
    /// | `delete` | `{path, recursive?}` | nothing |
    /// | `root` | none | `{path, read_only}` |
    /// | `usage` | none | `{bytes, entries, their limits, verbs}` |
    pub fn export() -> Export<FilesMessage> {
        let many = |outcome: <ReadManyRequest as Request>::Reply| {
            let outcomes = outcome.map_err(|error| error.to_fault())?;
            let items = outcomes.into_iter().map(|outcome| match outcome {
                Ok(bytes) => text_or_base64(&bytes),
                Err(error) => json!({ "error": error.to_fault().to_json() }),
            });
            Payload::from_json(&items.collect::<Vec<_>>())
        };
        let media = |outcome: Result<MediaFile, FileError>| {
            let MediaFile { mime, bytes } = outcome.map_err(|error| error.to_fault())?;
            Payload::from_json(&json!({ "mime": mime, "base64": STANDARD.encode(bytes) }))
        };
        let bytes = |outcome: Result<Bytes, FileError>| {
            let bytes = outcome.map_err(|error| error.to_fault())?;
            Ok(Payload::new(ContentType::Bytes, bytes))
        };
        let write = |payload: &Payload| payload.decode::<WritePayload>()?.write();
        let append = |payload: &Payload| payload.decode::<WritePayload>()?.append();
        let export = Export::new()
            .ask_with("read", Payload::decode::<ReadRequest>, bytes)
            .ask_with("read-lines", Payload::decode::<ReadLinesRequest>, bytes)
            .ask_with("read-many", Payload::decode::<ReadManyRequest>, many)
            .ask_with("media", Payload::decode::<ReadMediaRequest>, media)
            .ask_with("write", write, plain)
            .ask_with("append", append, plain);
        let export = json_ask::<BeginWriteRequest, _>(export, "begin");
        let export = json_ask::<CommitWriteRequest, _>(export, "commit");
        let export = json_ask::<EditRequest, _>(export, "edit");
        let export = json_ask::<ListRequest, _>(export, "list");
        let export = json_ask::<TreeRequest, _>(export, "tree");
        let export = json_ask::<SearchRequest, _>(export, "search");
        let export = json_ask::<StatRequest, _>(export, "stat");
        let export = json_ask::<CreateDirectoryRequest, _>(export, "make");
        let export = json_ask::<RenameRequest, _>(export, "rename");
        let export = json_ask::<DeleteRequest, _>(export, "delete");
        json_ask::<RootRequest, _>(export, "root").ask::<FilesUsageRequest>("usage")
    }
}

/// Adds a request whose payload and answer are both JSON.
fn json_ask<R, T>(export: Export<FilesMessage>, name: &str) -> Export<FilesMessage>
where
    FilesMessage: Accepts<Ask<R>>,
    R: Request<Reply = Result<T, FileError>> + DeserializeOwned,
    T: Serialize + 'static,
{
    export.ask_with(name, read::<R>, plain)
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
    fn write(self) -> Result<WriteRequest, Fault> {
        Ok(WriteRequest {
            bytes: decode(self.text, self.base64)?,
            path: self.path,
            mode: self.mode.unwrap_or_default(),
        })
    }

    fn append(self) -> Result<AppendRequest, Fault> {
        if self.mode.is_some() {
            return Err(bad("`append` does not accept `mode`"));
        }
        Ok(AppendRequest {
            bytes: decode(self.text, self.base64)?,
            path: self.path,
        })
    }
}

fn decode(text: Option<String>, base64: Option<String>) -> Result<Bytes, Fault> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into()),
        (None, Some(base64)) => match STANDARD.decode(base64) {
            Ok(bytes) => Ok(bytes.into()),
            Err(error) => Err(bad(&format!("`base64`: {error}"))),
        },
        _ => Err(bad("needs either `text` or `base64`")),
    }
}

fn bad(what: &str) -> Fault {
    Fault::new(FaultCode::BadRequest, format!("payload: {what}"))
}

fn text_or_base64(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}
