//! Implementations of the verbs for files.

use std::hash::{BuildHasher as _, RandomState};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{Fault, FaultCode};
use strowger_gateway::mcp::{ProgressReporter, ToolContent, ToolOutput, ToolRequest};
use strowger_tools::files::{
    AppendRequest, CreateDirectoryRequest, DeleteRequest, EditRequest, EntryKind, ListOrder,
    ListRequest, ReadLinesRequest, ReadMediaRequest, RenameRequest, SearchRequest, SearchResults,
    StatRequest, TextChange, TreeRequest, WriteMode, WriteRequest, file_uri, shown_path,
};

use super::format::{NameAndUri as _, describe_skipped, format_entry, format_line, format_name};

use crate::agent::page::{TextPart, cut_tree, fitting, more_note, text_part};
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
    OffsetParams { offset: Option<usize> }
    PathParams { path: String }
    ReadTextParams {
        path: String, from: Option<u64>, head: Option<u64>, tail: Option<u64>, offset: Option<u64>
    }
    ReadSeveralParams { paths: Vec<String> }
    ListParams { path: String, after: Option<String> }
    ListSizesParams {
        path: String, after: Option<String>, sort_by: Option<ListOrder>, offset: Option<usize>
    }
    TreeParams { path: String, depth: Option<usize>, exclude_patterns: Option<Vec<String>> }
    SearchNamesParams {
        path: String, pattern: String, exclude_patterns: Option<Vec<String>>, offset: Option<usize>
    }
    SearchTextParams {
        path: String, pattern: String, names: Option<String>, most: Option<usize>,
        exclude_patterns: Option<Vec<String>>, offset: Option<usize>
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
    call: ToolRequest,
) -> Result<ToolOutput, Fault> {
    let below = roots.find(&args.path)?;
    let offset = args.offset.unwrap_or_default();
    let lines = ReadLinesRequest {
        from: args.from,
        head: args.head,
        tail: args.tail,
        offset,
        ..whole_file(&below)
    };
    let Some(page) = page_below(call.page_size, below.root.file) else {
        let text = read_lines(&below, &args.path, lines).await?;
        return Ok(ToolOutput::text(text.clone()).with_local_value(json!({ "content": text })));
    };
    let bytes = below.ask(with_length(lines, page)).await?;
    let TextPart { text, next } = text_part(&bytes, &args.path, offset, page)?;
    let answer = ToolOutput::text(text);
    Ok(match next {
        Some(next) => answer.with_text(more_note(next)),
        None => answer,
    })
}

/// Returns the size of a page, unless the limit of a file is smaller: then that decides, and a
/// refusal names it.
fn page_below(page: Option<usize>, file: u64) -> Option<usize> {
    page.filter(|page| (*page as u64) < file)
}

/// Limits a request to a page and one byte, which tells if there is more.
fn with_length(lines: ReadLinesRequest, page: usize) -> ReadLinesRequest {
    let length = Some(page as u64 + 1);
    ReadLinesRequest { length, ..lines }
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
    call: ToolRequest,
) -> Result<ToolOutput, Fault> {
    let progress = &call.progress;
    // Several files together may be no larger than one file may be.
    let most = roots.iter().map(|root| root.file).max().unwrap_or_default();
    if let Some(page) = page_below(call.page_size, most) {
        return Ok(read_page_of_several(&roots, &args.paths, progress, page).await);
    }
    let count = args.paths.len() as f64;
    let (mut left, mut files, mut sections) = (most, Vec::new(), Vec::new());
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
                files.push(json!({ "path": path, "content": text }));
                sections.push(FileSection::new(format!("{path}:\n"), text));
            }
            Err(fault) => {
                sections.push(FileSection::new(format!("{path}: "), fault.message.clone()));
                files.push(json!({ "path": path, "error": fault.message }));
            }
        }
    }
    progress
        .report(count, Some(count), "all files were read")
        .await;
    let answer = answer_of_sections(&sections);
    Ok(answer.with_local_value(json!({ "files": files })))
}

/// One file in an answer about several.
struct FileSection {
    /// The name of the file, and whether its text or an error follows.
    head: String,
    text: String,
}

impl FileSection {
    /// Maximum number of bytes of a head, besides the path.
    const HEAD: usize = 112;

    const fn new(head: String, text: String) -> Self {
        Self { head, text }
    }
}

/// Returns an answer with one block of text for each section.
///
/// Some agents see the blocks joined, so a block alone does not tell a file from a text in another
/// file that looks like the head of a section. Each head therefore begins with a mark that is in
/// no file of the answer.
fn answer_of_sections(sections: &[FileSection]) -> ToolOutput {
    let mark = unused_mark(sections);
    let blocks = sections.iter();
    blocks.fold(ToolOutput::default(), |answer, section| {
        let FileSection { head, text } = section;
        answer.with_text(format!("[{mark}] {head}{text}"))
    })
}

/// Returns a mark that is in none of the sections. It is random, so a file contains it by chance
/// only, and the search ends soon.
fn unused_mark(sections: &[FileSection]) -> String {
    let random = RandomState::new();
    let is_used = |mark: &str| {
        let mut sections = sections.iter();
        sections.any(|section| section.head.contains(mark) || section.text.contains(mark))
    };
    let marks = (0_u64..).map(|turn| format!("file-{:08x}", random.hash_one(turn) >> 32));
    let mut unused = marks.filter(|mark| !is_used(mark));
    unused.next().unwrap_or_default()
}

/// Maximum number of paths to name of files that were not read.
const MAX_NAMED_UNREAD: usize = 10;

/// Reads several files up to a page in all.
async fn read_page_of_several(
    roots: &Roots,
    paths: &[String],
    progress: &ProgressReporter,
    page: usize,
) -> ToolOutput {
    let count = paths.len() as f64;
    let (mut left, mut sections, mut unread) = (page, Vec::new(), Vec::new());
    for (at, path) in paths.iter().enumerate() {
        // The heads count as well.
        left = left.saturating_sub(path.len() + FileSection::HEAD);
        if left == 0 && at > 0 {
            unread.push(path.as_str());
            continue;
        }
        progress.report(at as f64, Some(count), path).await;
        let section = match read_beginning(roots, path, left).await {
            Ok((text, None)) => FileSection::new(format!("{path}:\n"), text),
            Ok((text, Some(next))) => {
                left = 0;
                let more = format!("more follows: call read_text_file with offset={next}");
                FileSection::new(format!("{path} ({more}):\n"), text)
            }
            Err(fault) => FileSection::new(format!("{path}: "), fault.message),
        };
        left = left.saturating_sub(section.text.len());
        sections.push(section);
    }
    if !unread.is_empty() {
        let named = unread.len().min(MAX_NAMED_UNREAD);
        let more = match unread.len() - named {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = unread[..named].join(", ");
        let note = format!("(not read, the answer is full: {named}{more}: call again with these)");
        sections.push(FileSection::new(note, String::new()));
    }
    let read = paths.len() - unread.len();
    let summary = format!("{read} of {count} files were read");
    progress.report(read as f64, Some(count), &summary).await;
    answer_of_sections(&sections)
}

/// Reads the beginning of a text file. Returns the offset of the rest too, if there is one.
async fn read_beginning(
    roots: &Roots,
    path: &str,
    page: usize,
) -> Result<(String, Option<u64>), Fault> {
    let below = roots.find(path)?;
    let bytes = below.ask(with_length(whole_file(&below), page)).await?;
    let part = text_part(&bytes, path, 0, page)?;
    Ok((part.text.to_owned(), part.next))
}

pub(super) async fn list_plain(
    roots: Roots,
    args: ListParams,
    call: ToolRequest,
) -> Result<ToolOutput, Fault> {
    let list = ListRequest {
        after: args.after,
        ..ListRequest::default()
    };
    list_page(&roots, &args.path, list, 0, call.page_size).await
}

pub(super) async fn list_with_sizes(
    roots: Roots,
    args: ListSizesParams,
    call: ToolRequest,
) -> Result<ToolOutput, Fault> {
    let list = ListRequest {
        after: args.after,
        details: true,
        order: args.sort_by.unwrap_or_default(),
        ..ListRequest::default()
    };
    let offset = args.offset.unwrap_or_default();
    list_page(&roots, &args.path, list, offset, call.page_size).await
}

async fn list_page(
    roots: &Roots,
    path: &str,
    mut list: ListRequest,
    offset: usize,
    page: Option<usize>,
) -> Result<ToolOutput, Fault> {
    let below = roots.find(path)?;
    list.path.clone_from(&below.path);
    let by_size = list.order == ListOrder::Size;
    let listing = below.ask(list).await?;
    let lines = listing.entries.iter().skip(offset).map(format_entry);
    let lines: Vec<String> = lines.collect();
    let count = fitting(&lines, page);
    let is_cut = count < lines.len();
    let more = is_cut || listing.more;
    let mut text = lines[..count].join("\n");
    if by_size && is_cut {
        text.push_str(&format!("\n{}", more_note(offset + count)));
    } else if by_size && more {
        text.push_str("\n(more: the order by size has one page; list by name for the rest)");
    } else if more {
        text.push_str("\n(more: for the rest, pass the last name as `after`)");
    }
    let facts = json!({ "count": count, "more": more });
    Ok(ToolOutput::text(text)
        .with_structured(facts)
        .with_local_value(json!(listing)))
}

pub(super) async fn directory_tree(
    roots: Roots,
    args: TreeParams,
    call: ToolRequest,
) -> Result<ToolOutput, Fault> {
    let below = roots.find(&args.path)?;
    let tree = TreeRequest {
        path: below.path.clone(),
        depth: args.depth,
        exclude: args.exclude_patterns.unwrap_or_default(),
    };
    let mut tree = json!(below.ask(tree).await?);
    if cut_tree(&mut tree, call.page_size) {
        let remedy = "request a directory whose `cut_by` is `answer`, exclude directories, or list \
                      one in pages with list_directory";
        let cut = json!({ "by": "answer", "limit": call.page_size, "remedy": remedy });
        match tree.get_mut("cuts").and_then(Value::as_array_mut) {
            Some(cuts) => cuts.push(cut),
            None => tree["cuts"] = json!([cut]),
        }
    }
    Ok(ToolOutput::json(json!({ "tree": tree })))
}

pub(super) async fn search_names(
    roots: Roots,
    args: SearchNamesParams,
    call: ToolRequest,
) -> Result<ToolOutput, Fault> {
    let find_names = |names: String| {
        let exclude = args.exclude_patterns.clone().unwrap_or_default();
        search(&roots, &args.path, |search| {
            search.names = Some(names);
            search.exclude = exclude;
        })
    };
    let part = part_of_name(&args.pattern);
    let is_either = part.is_some() && args.pattern.contains(BRACKETS);
    let mut found = find_names(part.unwrap_or_else(|| args.pattern.clone())).await?;
    // No name contains the pattern. It may be a glob, and need not be one.
    if is_either
        && found.matches.is_empty()
        && let Ok(by_glob) = find_names(args.pattern.clone()).await
    {
        found = by_glob;
    }
    Ok(search_answer(found, args.offset, None, call.page_size))
}

/// Characters that are literal in a part of a name, but not in a glob.
const BRACKETS: [char; 5] = ['[', ']', '{', '}', '\\'];

/// Returns the glob for names that contain a pattern, unless the pattern can only be a glob itself.
fn part_of_name(pattern: &str) -> Option<String> {
    if pattern.contains(['*', '?', '/']) {
        return None;
    }
    let mut literal = String::new();
    for letter in pattern.chars() {
        if BRACKETS.contains(&letter) {
            literal.push('\\');
        }
        literal.push(letter);
    }
    Some(format!("**/*{literal}*"))
}

pub(super) async fn search_text(
    roots: Roots,
    args: SearchTextParams,
    call: ToolRequest,
) -> Result<ToolOutput, Fault> {
    let offset = args.offset.unwrap_or_default();
    let most = args.most.map(|most| most.saturating_add(offset));
    let change = |search: &mut SearchRequest| {
        search.names = args.names;
        search.text = Some(args.pattern);
        search.max_matches = most;
        search.exclude = args.exclude_patterns.unwrap_or_default();
    };
    let found = search(&roots, &args.path, change).await?;
    Ok(search_answer(found, args.offset, most, call.page_size))
}

async fn search(
    roots: &Roots,
    path: &str,
    change: impl FnOnce(&mut SearchRequest),
) -> Result<SearchResults, Fault> {
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
    Ok(found)
}

/// Builds the answer with the matches from an offset on. `most` is the number of matches that the
/// caller wanted, those before the offset included.
fn search_answer(
    mut found: SearchResults,
    offset: Option<usize>,
    most: Option<usize>,
    page: Option<usize>,
) -> ToolOutput {
    let offset = offset.unwrap_or_default();
    found.matches.drain(..offset.min(found.matches.len()));
    let lines = found.matches.iter().map(|found| {
        let path = format_name(found.name_and_uri());
        match (found.line, &found.text) {
            (Some(number), Some(text)) => format!("{path}:{number}: {}", format_line(text)),
            _ if found.kind == Some(EntryKind::Directory) => format!("{path}/"),
            _ => path,
        }
    });
    let lines: Vec<String> = lines.collect();
    let skipped = describe_skipped(&found.skipped).map(|what| format!("\n(not searched: {what})"));
    let skipped = skipped.unwrap_or_default();
    let page = page.map(|page| page.saturating_sub(skipped.len()).max(page / 2));
    let count = fitting(&lines, page);
    let next = offset + count;
    if count < lines.len() {
        (found.cut, found.limit) = (Some("answer".to_owned()), None);
        found.remedy = Some(format!("call again with offset={next}"));
    } else if found.cut.as_deref() == Some("matches") && most == Some(next) {
        found.remedy = Some(format!("call again with offset={next}"));
    }
    found.matches.truncate(count);
    let mut text = lines[..count].join("\n");
    if text.is_empty() {
        let none = if offset == 0 {
            "no matches"
        } else {
            "no more matches"
        };
        none.clone_into(&mut text);
    }
    text.push_str(&skipped);
    if let Some(cut) = &found.cut {
        let limit = found.limit.map(|limit| format!(" = {limit}"));
        let limit = limit.unwrap_or_default();
        let remedy = found.remedy.as_deref().unwrap_or_default();
        text.push_str(&format!("\n(stopped at limit `{cut}`{limit}: {remedy})"));
    }
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
    ToolOutput::text(text)
        .with_structured(facts)
        .with_local_value(whole)
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
    args: OffsetParams,
    call: ToolRequest,
) -> Result<ToolOutput, Fault> {
    let directories: Vec<Value> = roots
        .iter()
        .map(|root| {
            let path = shown_path(&root.path);
            json!({ "name": root.name, "path": path, "read_only": root.read_only })
        })
        .collect();
    let offset = args.offset.unwrap_or_default();
    let lines = roots.iter().skip(offset).map(|root| {
        let read_only = if root.read_only { ", read-only" } else { "" };
        format!("{} ({}{read_only})", shown_path(&root.path), root.name)
    });
    let lines: Vec<String> = lines.collect();
    let count = fitting(&lines, call.page_size);
    let mut text = format!("Allowed directories:\n{}", lines[..count].join("\n"));
    if count < lines.len() {
        text.push_str(&format!("\n{}", more_note(offset + count)));
    }
    Ok(ToolOutput::text(text)
        .with_structured(json!({ "count": count }))
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
