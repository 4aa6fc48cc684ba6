//! Implementations of the verbs for files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{Fault, FaultCode};
use strowger_gateway::mcp::{ProgressReporter, ToolContent, ToolOutput};
use strowger_tools::files::{
    AppendRequest, CreateDirectoryRequest, DeleteRequest, EditRequest, ListOrder, ListRequest,
    ReadLinesRequest, ReadMediaRequest, RenameRequest, SearchRequest, StatRequest, TextChange,
    TreeRequest, WriteMode, WriteRequest, file_uri, shown_path,
};

use super::format::{NameAndUri as _, describe_skipped, format_entry, format_line, format_name};

use crate::agent::roots::{RootPath, Roots};

macro_rules! params {
    ($($name:ident { $($member:ident: $kind:ty),* })+) => {
        $(#[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        pub(super) struct $name {
            $($member: $kind,)*
        })+
    };
}

params! {
    NoParams {}
    PathParams { path: String }
    ReadTextParams { path: String, from: Option<u64>, head: Option<u64>, tail: Option<u64> }
    ReadSeveralParams { paths: Vec<String> }
    ListParams { path: String, after: Option<String> }
    ListSizesParams { path: String, after: Option<String>, sort_by: Option<ListOrder> }
    TreeParams { path: String, depth: Option<usize>, exclude_patterns: Option<Vec<String>> }
    SearchNamesParams { path: String, pattern: String, exclude_patterns: Option<Vec<String>> }
    SearchTextParams {
        path: String, pattern: String, names: Option<String>, most: Option<usize>,
        exclude_patterns: Option<Vec<String>>
    }
    ContentParams { path: String, content: String }
    EditParams { path: String, edits: Vec<Replacement>, dry_run: Option<bool> }
    Replacement { old_text: String, new_text: String, all: Option<bool> }
    MoveParams { source: String, destination: String }
    DeleteParams { path: String, recursive: Option<bool> }
}

/// Reads lines of a text file.
async fn read_lines(
    below: &RootPath<'_>,
    path: &str,
    lines: ReadLinesRequest,
) -> Result<String, Fault> {
    let bytes = below.ask(lines).await?;
    String::from_utf8(bytes.into()).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let text = format!("`{path}` is not UTF-8 (at byte {at}): use read_media_file");
        Fault::new(FaultCode::Failed, text)
    })
}

/// Returns a request for all lines of a text file.
fn whole_file(below: &RootPath<'_>) -> ReadLinesRequest {
    ReadLinesRequest {
        path: below.path.clone(),
        ..ReadLinesRequest::default()
    }
}

pub(super) async fn read_text(
    roots: Roots,
    args: ReadTextParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let below = roots.find(&args.path)?;
    let lines = ReadLinesRequest {
        from: args.from,
        head: args.head,
        tail: args.tail,
        ..whole_file(&below)
    };
    let text = read_lines(&below, &args.path, lines).await?;
    Ok(ToolOutput::text(text.clone()).with_local_value(json!({ "content": text })))
}

pub(super) async fn read_media(
    roots: Roots,
    args: PathParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let below = roots.find(&args.path)?;
    let path = below.path.clone();
    let media = below.ask(ReadMediaRequest { path }).await?;
    let (data, mime) = (STANDARD.encode(&media.bytes), media.mime);
    let content = if mime.starts_with("image/") {
        ToolContent::Image { data, mime }
    } else if mime.starts_with("audio/") {
        ToolContent::Audio { data, mime }
    } else {
        let uri = file_uri(&below.absolute());
        ToolContent::Blob { data, mime, uri }
    };
    Ok(ToolOutput::content(content))
}

pub(super) async fn read_several(
    roots: Roots,
    args: ReadSeveralParams,
    progress: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let count = args.paths.len() as f64;
    // Several files together may be no larger than one file may be.
    let most = roots.iter().map(|root| root.file).max().unwrap_or_default();
    let (mut left, mut files, mut texts) = (most, Vec::new(), Vec::new());
    for (at, path) in args.paths.iter().enumerate() {
        progress.report(at as f64, Some(count), path).await;
        let text = async {
            let below = roots.find(path)?;
            read_lines(&below, path, whole_file(&below)).await
        };
        let text = text
            .await
            .and_then(|text| match left.checked_sub(text.len() as u64) {
                Some(rest) => {
                    left = rest;
                    Ok(text)
                }
                None => {
                    let text = format!(
                        "`{path}` is {} bytes, but {} of the {most} bytes of one call are used: \
                         read fewer files at a time, or raise `file` in [[tools.files]] or with \
                         --limit file=N (rule: size)",
                        text.len(),
                        most - left
                    );
                    Err(Fault::new(FaultCode::Refused, text))
                }
            });
        match text {
            Ok(text) => {
                texts.push(format!("{path}:\n{text}"));
                files.push(json!({ "path": path, "content": text }));
            }
            Err(fault) => {
                texts.push(format!("{path}: {}", fault.message));
                files.push(json!({ "path": path, "error": fault.message }));
            }
        }
    }
    progress
        .report(count, Some(count), "all files were read")
        .await;
    let answer = ToolOutput::text(texts.join("\n---\n"));
    Ok(answer.with_local_value(json!({ "files": files })))
}

pub(super) async fn list_plain(
    roots: Roots,
    args: ListParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let list = ListRequest {
        after: args.after,
        ..ListRequest::default()
    };
    list_page(&roots, &args.path, list).await
}

pub(super) async fn list_with_sizes(
    roots: Roots,
    args: ListSizesParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let list = ListRequest {
        after: args.after,
        details: true,
        order: args.sort_by.unwrap_or_default(),
        ..ListRequest::default()
    };
    list_page(&roots, &args.path, list).await
}

async fn list_page(roots: &Roots, path: &str, mut list: ListRequest) -> Result<ToolOutput, Fault> {
    let below = roots.find(path)?;
    list.path.clone_from(&below.path);
    let listing = below.ask(list).await?;
    let lines = listing.entries.iter().map(format_entry);
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if listing.more {
        text.push_str("\n(more)");
    }
    let facts = json!({ "count": listing.entries.len(), "more": listing.more });
    Ok(ToolOutput::text(text)
        .with_structured(facts)
        .with_local_value(json!(listing)))
}

pub(super) async fn directory_tree(
    roots: Roots,
    args: TreeParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let below = roots.find(&args.path)?;
    let tree = TreeRequest {
        path: below.path.clone(),
        depth: args.depth,
        exclude: args.exclude_patterns.unwrap_or_default(),
    };
    let tree = below.ask(tree).await?;
    Ok(ToolOutput::json(json!({ "tree": tree })))
}

pub(super) async fn search_names(
    roots: Roots,
    args: SearchNamesParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let is_glob = args.pattern.contains(['*', '?', '[', '{', '/']);
    let names = match is_glob {
        true => args.pattern,
        false => format!("**/*{}*", args.pattern),
    };
    let change = |search: &mut SearchRequest| {
        search.names = Some(names);
        search.exclude = args.exclude_patterns.unwrap_or_default();
    };
    search(&roots, &args.path, change).await
}

pub(super) async fn search_text(
    roots: Roots,
    args: SearchTextParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let change = |search: &mut SearchRequest| {
        search.names = args.names;
        search.text = Some(args.pattern);
        search.max_matches = args.most;
        search.exclude = args.exclude_patterns.unwrap_or_default();
    };
    search(&roots, &args.path, change).await
}

async fn search(
    roots: &Roots,
    path: &str,
    change: impl FnOnce(&mut SearchRequest),
) -> Result<ToolOutput, Fault> {
    let below = roots.find(path)?;
    let mut search = SearchRequest {
        path: below.path.clone(),
        ..SearchRequest::default()
    };
    change(&mut search);
    let mut found = below.ask(search).await?;
    for found in &mut found.matches {
        found.path = roots.display_path(below.root, &found.path);
    }
    for skipped in &mut found.skipped.paths {
        skipped.path = roots.display_path(below.root, &skipped.path);
    }
    let lines = found.matches.iter().map(|found| {
        let path = format_name(found.name_and_uri());
        match (found.line, &found.text) {
            (Some(number), Some(text)) => format!("{path}:{number}: {}", format_line(text)),
            _ => path,
        }
    });
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        "no matches".clone_into(&mut text);
    }
    if let Some(what) = describe_skipped(&found.skipped) {
        text.push_str(&format!("\n(not searched: {what})"));
    }
    if let Some(cut) = &found.cut {
        let limit = found.limit.unwrap_or_default();
        let remedy = found.remedy.as_deref().unwrap_or_default();
        text.push_str(&format!("\n(stopped at limit `{cut}` = {limit}: {remedy})"));
    }
    let count = found.matches.len();
    let whole = json!(found);
    // Paths and lines are in the text only.
    found.matches.clear();
    let mut facts = json!(found);
    if let Some(facts) = facts.as_object_mut() {
        facts.remove("matches");
        facts.insert("count".to_owned(), json!(count));
        let skipped = facts.get_mut("skipped").and_then(Value::as_object_mut);
        skipped.map(|skipped| skipped.remove("paths"));
    }
    Ok(ToolOutput::text(text)
        .with_structured(facts)
        .with_local_value(whole))
}

pub(super) async fn file_info(
    roots: Roots,
    args: PathParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let below = roots.find(&args.path)?;
    let path = below.path.clone();
    let entry = below.ask(StatRequest { path }).await?;
    Ok(ToolOutput::structured(json!(entry)))
}

pub(super) async fn allowed_directories(
    roots: Roots,
    _: NoParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let directories: Vec<Value> = roots
        .iter()
        .map(|root| {
            let path = shown_path(&root.path);
            json!({ "name": root.name, "path": path, "read_only": root.read_only })
        })
        .collect();
    let lines = roots.iter().map(|root| {
        let read_only = if root.read_only { ", read-only" } else { "" };
        format!("{} ({}{read_only})", shown_path(&root.path), root.name)
    });
    let text = format!(
        "Allowed directories:\n{}",
        lines.collect::<Vec<_>>().join("\n")
    );
    Ok(ToolOutput::text(text)
        .with_structured(json!({ "count": directories.len() }))
        .with_local_value(json!({ "directories": directories })))
}

pub(super) async fn write_file(
    roots: Roots,
    args: ContentParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let below = roots.find(&args.path)?;
    let bytes = args.content.len();
    let write = WriteRequest::new(&below.path, args.content).with_mode(WriteMode::Atomic);
    below.ask(write).await?;
    Ok(written_answer(&args.path, bytes))
}

pub(super) async fn append_file(
    roots: Roots,
    args: ContentParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let below = roots.find(&args.path)?;
    let bytes = args.content.len();
    let append = AppendRequest {
        path: below.path.clone(),
        bytes: args.content.into(),
    };
    below.ask(append).await?;
    Ok(written_answer(&args.path, bytes))
}

fn written_answer(path: &str, bytes: usize) -> ToolOutput {
    let text = format!("Wrote {bytes} bytes to {path}.");
    ToolOutput::text(text).with_structured(json!({ "path": path, "octets": bytes }))
}

pub(super) async fn edit_file(
    roots: Roots,
    args: EditParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let below = roots.find(&args.path)?;
    let changes = args.edits.into_iter().map(|edit| TextChange {
        old: edit.old_text,
        new: edit.new_text,
        all: edit.all.unwrap_or_default(),
    });
    let edit = EditRequest {
        path: below.path.clone(),
        changes: changes.collect(),
        dry_run: args.dry_run.unwrap_or_default(),
    };
    let edited = below.ask(edit).await?;
    Ok(ToolOutput::text(edited.diff.clone())
        .with_structured(json!({ "places": edited.replacements }))
        .with_local_value(json!(edited)))
}

pub(super) async fn create_directory(
    roots: Roots,
    args: PathParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let below = roots.find(&args.path)?;
    let path = below.path.clone();
    below.ask(CreateDirectoryRequest { path }).await?;
    Ok(ToolOutput::text(format!("Created {}.", args.path)))
}

pub(super) async fn move_file(
    roots: Roots,
    args: MoveParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let (from, to) = (roots.find(&args.source)?, roots.find(&args.destination)?);
    if from.root.name != to.root.name {
        let text = format!(
            "`{}` and `{}` are in different allowed directories: copy the file, then delete the \
             original",
            args.source, args.destination
        );
        return Err(Fault::new(FaultCode::Refused, text));
    }
    let rename = RenameRequest {
        from: from.path.clone(),
        to: to.path,
        replace: false,
    };
    from.ask(rename).await?;
    let text = format!("Moved {} to {}.", args.source, args.destination);
    Ok(ToolOutput::text(text))
}

pub(super) async fn delete_file(
    roots: Roots,
    args: DeleteParams,
    _: ProgressReporter,
) -> Result<ToolOutput, Fault> {
    let below = roots.find(&args.path)?;
    let delete = DeleteRequest {
        path: below.path.clone(),
        recursive: args.recursive.unwrap_or_default(),
    };
    below.ask(delete).await?;
    Ok(ToolOutput::text(format!("Deleted {}.", args.path)))
}
