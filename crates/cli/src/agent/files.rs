//! The usual verbs of file servers, answered by files actors.

mod shown;
mod work;

use std::future::Future;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use strowger::Fault;
use strowger_gateway::{McpAnswer, McpEffect, McpTool, McpTools, Progress};

use super::roots::Roots;
use super::{a, list, object, one_of};

/// Adds the verbs. Those that write are added only if some root may be written to.
pub(super) fn add(tools: McpTools, roots: &Roots) -> McpTools {
    let tools = looking(tools, roots);
    match roots.iter().all(|root| root.read_only) {
        true => tools,
        false => changing(tools, roots),
    }
}

/// Adds a verb.
fn verb<A, F>(
    tools: McpTools,
    roots: &Roots,
    tool: McpTool,
    run: fn(Roots, A, Progress) -> F,
) -> McpTools
where
    A: DeserializeOwned + Send + 'static,
    F: Future<Output = Result<McpAnswer, Fault>> + Send + 'static,
{
    let roots = roots.clone();
    tools.register(tool, move |call| {
        let roots = roots.clone();
        async move {
            let roots = roots.within(&call.caller)?;
            run(roots, call.read()?, call.progress).await
        }
    })
}

const PATH_ABOUT: &str = "Path, absolute or relative to the allowed directory. With several \
                          allowed directories, a relative path starts with the name of one of \
                          them.";

fn path() -> (&'static str, Value) {
    ("path", a("string", PATH_ABOUT))
}

fn reads(name: &'static str, about: &'static str, input: Value, output: Value) -> McpTool {
    let tool = McpTool::new(name, about, input).with_effect(McpEffect::Reads);
    tool.with_output(output)
}

/// Returns a tool that answers with texts of any length and no facts beside them. It has no output
/// schema, because structured content would be sent in addition to the same text.
fn texts(name: &'static str, about: &'static str, input: Value) -> McpTool {
    McpTool::new(name, about, input).with_effect(McpEffect::Reads)
}

/// Returns the schema of the facts of a page, whose entries are in the text.
fn page_facts() -> Value {
    let more = "`true` if there are more entries: pass the last name, as printed, as `after`.";
    object(
        [
            ("count", a("integer", "Number of entries listed.")),
            ("more", a("boolean", more)),
        ],
        &["count", "more"],
    )
}

fn looking(tools: McpTools, roots: &Roots) -> McpTools {
    let text = || {
        let members = [
            path(),
            (
                "head",
                count(
                    0,
                    "Return only this many lines, from the start or from `from`.",
                ),
            ),
            (
                "tail",
                count(0, "Return only this many lines, from the end."),
            ),
            (
                "from",
                count(1, "Number of the first line to return, from 1."),
            ),
        ];
        object(members, &["path"])
    };
    let about = "Reads a text file, or a range of its lines; a range also of a file that is too \
                 large to read at once. Use read_media_file for content that is not UTF-8.";
    let tools = verb(
        tools,
        roots,
        texts("read_text_file", about, text()),
        work::read_text,
    );
    let about = "Alias of read_text_file.";
    let tools = verb(
        tools,
        roots,
        texts("read_file", about, text()),
        work::read_text,
    );
    let about = "Reads an image, audio or other binary file, as base64 with its media type.";
    let media = McpTool::new("read_media_file", about, object([path()], &["path"]));
    let tools = verb(
        tools,
        roots,
        media.with_effect(McpEffect::Reads),
        work::read_media,
    );
    let several = texts(
        "read_multiple_files",
        "Reads several text files at once. A file that cannot be read does not affect the others.",
        object(
            [(
                "paths",
                list(&a("string", PATH_ABOUT), "Paths of the files."),
            )],
            &["paths"],
        ),
    );
    let tools = verb(tools, roots, several, work::read_several);
    listing(tools, roots)
}

/// Returns the schema of a number of lines.
fn count(least: u64, about: &str) -> Value {
    json!({ "type": "integer", "minimum": least, "description": about })
}

fn listing(tools: McpTools, roots: &Roots) -> McpTools {
    let after = "Continue after this entry: the last name of the previous page, or its `uri` if \
                 it has one.";
    let after = || ("after", a("string", after));
    let page = || object([path(), after()], &["path"]);
    let about = "Lists a directory by name, one page at a time, one line per entry: its kind and \
                 its name, or a URI if the name does not fit on a line.";
    let tools = verb(
        tools,
        roots,
        reads("list_directory", about, page(), page_facts()),
        work::list_plain,
    );
    let about = "Lists a directory with sizes and modification times, by name one page at a time, \
                 or largest first.";
    let order = "Sort order, by default `name`. `size` returns one page.";
    let order = one_of(&["name", "size"], order);
    let by = object([path(), after(), ("sortBy", order)], &["path"]);
    let sizes = reads("list_directory_with_sizes", about, by, page_facts());
    let tools = verb(tools, roots, sizes, work::list_with_sizes);
    let levels = "Number of levels to descend, by default as many as the limit allows.";
    let tree = texts(
        "directory_tree",
        "Returns the tree below a directory, as JSON.",
        object([path(), ("depth", count(0, levels)), excluded()], &["path"]),
    );
    let tools = verb(tools, roots, tree, work::directory_tree);
    let tools = searching(tools, roots);
    let info = reads(
        "get_file_info",
        "Returns the type, size, modification time and number of links of a file or directory.",
        object([path()], &["path"]),
        json!({ "type": "object" }),
    );
    let tools = verb(tools, roots, info, work::file_info);
    let allowed = reads(
        "list_allowed_directories",
        "Lists the allowed directories and the name of each that paths may start with. Everything \
         else is inaccessible.",
        object([], &[]),
        object(
            [("count", a("integer", "Number of directories."))],
            &["count"],
        ),
    );
    verb(tools, roots, allowed, work::allowed_directories)
}

/// Returns the schema of the patterns that a search excludes.
fn excluded() -> (&'static str, Value) {
    let pattern = a("string", "A glob, or a name that matches at every level.");
    let about = "Globs to exclude, with everything below them: target, **/*.min.js.";
    ("excludePatterns", list(&pattern, about))
}

fn searching(tools: McpTools, roots: &Roots) -> McpTools {
    let found = || {
        let skipped = "Files that were not searched: counts by reason.";
        let cut = "The limit that ended the search; there may be more matches.";
        let members = [
            ("count", a("integer", "Number of matches.")),
            (
                "files",
                a("integer", "Number of files that were searched completely."),
            ),
            (
                "skipped",
                json!({ "type": "object", "description": skipped }),
            ),
            ("cut", a("string", cut)),
            ("limit", a("integer", "The value of that limit.")),
            ("remedy", a("string", "How to get the remaining matches.")),
        ];
        object(members, &["count", "files"])
    };
    let pattern = "A glob for the path below that directory, such as **/*.rs, or part of a name.";
    let names = reads(
        "search_files",
        "Finds files by name, one line per file.",
        object(
            [path(), ("pattern", a("string", pattern)), excluded()],
            &["path", "pattern"],
        ),
        found(),
    );
    let tools = verb(tools, roots, names, work::search_names);
    let text = reads(
        "search_text",
        "Searches file contents with a regular expression, as grep does, in files of any size. \
         Output is PATH:LINE: TEXT. Does not follow links; reports which files were not searched.",
        object(
            [
                path(),
                (
                    "pattern",
                    a("string", "Regular expression that a line must match."),
                ),
                (
                    "names",
                    a("string", "Search only files whose path matches this glob."),
                ),
                ("most", a("integer", "Maximum number of lines to return.")),
                excluded(),
            ],
            &["path", "pattern"],
        ),
        found(),
    );
    verb(tools, roots, text, work::search_text)
}

fn changing(tools: McpTools, roots: &Roots) -> McpTools {
    let holding = |content| {
        object(
            [path(), ("content", a("string", content))],
            &["path", "content"],
        )
    };
    let written = || {
        let members = [path(), ("octets", a("integer", "Number of bytes written."))];
        object(members, &["path", "octets"])
    };
    let write = McpTool::new(
        "write_file",
        "Creates or replaces a text file atomically: readers see the old or the new content, \
         never a mixture. The parent directory must exist.",
        holding("New content of the file."),
    );
    let tools = verb(tools, roots, write.with_output(written()), work::write_file);
    let append = McpTool::new(
        "append_file",
        "Appends to a file of any size.",
        holding("Text to append."),
    );
    let append = append.with_output(written()).with_effect(McpEffect::Adds);
    let tools = verb(tools, roots, append, work::append_file);
    let change = object(
        [
            (
                "oldText",
                a(
                    "string",
                    "Text to replace. It must occur exactly once unless `all` is set. Line ends, \
                     trailing spaces, quotes and indentation may differ from the file, which \
                     keeps its own.",
                ),
            ),
            ("newText", a("string", "Replacement text.")),
            ("all", a("boolean", "Replace all occurrences.")),
        ],
        &["oldText", "newText"],
    );
    let edit = McpTool::new(
        "edit_file",
        "Edits a text file: applies all edits in order, or none. Returns a unified diff.",
        object(
            [
                path(),
                ("edits", list(&change, "The edits to apply.")),
                (
                    "dryRun",
                    a("boolean", "Return the diff without changing the file."),
                ),
            ],
            &["path", "edits"],
        ),
    );
    let changed = [("places", a("integer", "Number of replacements."))];
    let edit = edit.with_output(object(changed, &["places"]));
    let tools = verb(tools, roots, edit, work::edit_file);
    moving(tools, roots)
}

fn moving(tools: McpTools, roots: &Roots) -> McpTools {
    let make = McpTool::new(
        "create_directory",
        "Creates a directory and its missing parents; an existing directory is left unchanged.",
        object([path()], &["path"]),
    );
    let tools = verb(
        tools,
        roots,
        make.with_effect(McpEffect::Adds),
        work::create_directory,
    );
    let to = [
        ("source", a("string", PATH_ABOUT)),
        (
            "destination",
            a("string", "New path, where nothing exists yet."),
        ),
    ];
    let about = "Moves or renames a file or directory within one allowed directory.";
    let rename = McpTool::new("move_file", about, object(to, &["source", "destination"]));
    let tools = verb(tools, roots, rename, work::move_file);
    let all = "Delete a directory with its content.";
    let about = "Deletes a file, a link or a directory.";
    let members = [path(), ("recursive", a("boolean", all))];
    let delete = McpTool::new("delete_file", about, object(members, &["path"]));
    verb(tools, roots, delete, work::delete_file)
}
