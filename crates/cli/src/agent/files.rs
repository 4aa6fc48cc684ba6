//! The usual verbs of file servers, answered by files actors.

mod format;
mod handlers;

use std::future::Future;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use strowger::Fault;
use strowger_gateway::mcp::{ProgressReporter, Tool, ToolEffect, ToolOutput, ToolRequest, ToolSet};

use super::page::{BY_ANSWER, BY_OFFSET, offset_property};
use super::roots::Roots;
use super::{array, object, one_of, scalar};

/// Adds the verbs. Those that write are added only if some root may be written to.
pub(super) fn add(tools: ToolSet, roots: &Roots) -> ToolSet {
    let tools = add_reading(tools, roots);
    match roots.iter().all(|root| root.read_only) {
        true => tools,
        false => add_writing(tools, roots),
    }
}

/// Adds a verb.
fn add_verb<A, F>(
    tools: ToolSet,
    roots: &Roots,
    tool: Tool,
    run: fn(Roots, A, ProgressReporter) -> F,
) -> ToolSet
where
    A: DeserializeOwned + Send + 'static,
    F: Future<Output = Result<ToolOutput, Fault>> + Send + 'static,
{
    let roots = roots.clone();
    tools.register(tool, move |call| {
        let roots = roots.clone();
        async move {
            let roots = roots.within(&call.caller)?;
            run(roots, call.parse_arguments()?, call.progress).await
        }
    })
}

/// Adds a verb whose answers come in pages.
fn add_paged<A, F>(
    tools: ToolSet,
    roots: &Roots,
    tool: Tool,
    run: fn(Roots, A, ToolRequest) -> F,
) -> ToolSet
where
    A: DeserializeOwned + Send + 'static,
    F: Future<Output = Result<ToolOutput, Fault>> + Send + 'static,
{
    let roots = roots.clone();
    tools.register(tool, move |call| {
        let roots = roots.clone();
        async move {
            let roots = roots.within(&call.caller)?;
            run(roots, call.parse_arguments()?, call).await
        }
    })
}

const PATH_ABOUT: &str = "Path, absolute or relative to the allowed directory. With several \
                          allowed directories, a relative path starts with the name of one of \
                          them.";

fn path_property() -> (&'static str, Value) {
    ("path", scalar("string", PATH_ABOUT))
}

fn reading_tool(name: &'static str, about: &'static str, input: Value, output: Value) -> Tool {
    let tool = Tool::new(name, about, input).with_effect(ToolEffect::Reads);
    tool.with_output(output)
}

/// Returns a tool that answers with texts of any length and no facts beside them. It has no output
/// schema, because structured content would be sent in addition to the same text.
fn text_tool(name: &'static str, about: &'static str, input: Value) -> Tool {
    Tool::new(name, about, input).with_effect(ToolEffect::Reads)
}

/// Returns the schema of the facts of a page, whose entries are in the text.
fn page_schema() -> Value {
    let more = "`true` if there are more entries; the text says how to get them.";
    object(
        [
            ("count", scalar("integer", "Number of entries listed.")),
            ("more", scalar("boolean", more)),
        ],
        &["count", "more"],
    )
}

fn add_reading(tools: ToolSet, roots: &Roots) -> ToolSet {
    let text = || {
        let members = [
            path_property(),
            (
                "head",
                count_schema(
                    0,
                    "Return only this many lines, from the start or from `from`.",
                ),
            ),
            (
                "tail",
                count_schema(0, "Return only this many lines, from the end."),
            ),
            (
                "from",
                count_schema(1, "Number of the first line to return, from 1."),
            ),
            offset_property("bytes of these lines"),
        ];
        object(members, &["path"])
    };
    let about = "Reads a text file, or a range of its lines; a range also of a file that is too \
                 large to read at once. Use read_media_file for content that is not UTF-8.";
    let tools = add_paged(
        tools,
        roots,
        text_tool("read_text_file", about, text()).with_paging(BY_OFFSET),
        handlers::read_text,
    );
    let about = "Alias of read_text_file.";
    let tools = add_paged(
        tools,
        roots,
        text_tool("read_file", about, text()).with_paging(BY_OFFSET),
        handlers::read_text,
    );
    let about = "Reads an image, audio or other binary file, as base64 with its media type.";
    let media = Tool::new(
        "read_media_file",
        about,
        object([path_property()], &["path"]),
    );
    let tools = add_verb(
        tools,
        roots,
        media.with_effect(ToolEffect::Reads),
        handlers::read_media,
    );
    let several = text_tool(
        "read_multiple_files",
        "Reads several text files at once, one block of text each. A block begins with the mark \
         of this answer in brackets, which no file in it contains, and the path. A file that \
         cannot be read does not affect the others.",
        object(
            [(
                "paths",
                array(&scalar("string", PATH_ABOUT), "Paths of the files."),
            )],
            &["paths"],
        ),
    );
    let several = several.with_paging("for the rest of a file, call read_text_file");
    let tools = add_paged(tools, roots, several, handlers::read_several);
    add_listing(tools, roots)
}

/// Returns the schema of a number of lines.
fn count_schema(least: u64, about: &str) -> Value {
    json!({ "type": "integer", "minimum": least, "description": about })
}

/// The paging of verbs that list a directory.
const BY_NAME: &str = "for the rest, pass the last name as `after`";

fn add_listing(tools: ToolSet, roots: &Roots) -> ToolSet {
    let after = "Continue after this entry: the last name of the previous page, or its `uri` if \
                 it has one.";
    let after = || ("after", scalar("string", after));
    let page = || object([path_property(), after()], &["path"]);
    let about = "Lists a directory by name, one page at a time, one line per entry: its kind and \
                 its name, or a URI if the name does not fit on a line.";
    let tools = add_paged(
        tools,
        roots,
        reading_tool("list_directory", about, page(), page_schema()).with_paging(BY_NAME),
        handlers::list_plain,
    );
    let about = "Lists a directory with sizes and modification times, by name one page at a time, \
                 or largest first.";
    let order = "Sort order, by default `name`. `size` has no `after`, but `offset`.";
    let order = one_of(&["name", "size"], order);
    let offset = offset_property("entries");
    let members = [path_property(), after(), ("sortBy", order), offset];
    let by = object(members, &["path"]);
    let sizes = reading_tool("list_directory_with_sizes", about, by, page_schema());
    let sizes = sizes.with_paging(BY_NAME);
    let tools = add_paged(tools, roots, sizes, handlers::list_with_sizes);
    let levels = "Number of levels to descend, by default as many as the limit allows.";
    let tree = text_tool(
        "directory_tree",
        "Returns the tree below a directory, as JSON.",
        object(
            [
                path_property(),
                ("depth", count_schema(0, levels)),
                exclude_property(),
            ],
            &["path"],
        ),
    );
    let tree = tree.with_paging("levels that do not fit are left out, with `cut_by`: `answer`");
    let tools = add_paged(tools, roots, tree, handlers::directory_tree);
    let tools = add_searching(tools, roots);
    let info = reading_tool(
        "get_file_info",
        "Returns the type, size, modification time and number of links of a file or directory.",
        object([path_property()], &["path"]),
        json!({ "type": "object" }),
    );
    let tools = add_verb(tools, roots, info, handlers::file_info);
    let allowed = reading_tool(
        "list_allowed_directories",
        "Lists the allowed directories and the name of each that paths may start with. Everything \
         else is inaccessible.",
        object([offset_property("directories")], &[]),
        object(
            [("count", scalar("integer", "Number of directories."))],
            &["count"],
        ),
    );
    let allowed = allowed.with_paging(BY_OFFSET);
    add_paged(tools, roots, allowed, handlers::allowed_directories)
}

/// Returns the schema of the patterns that a search excludes.
fn exclude_property() -> (&'static str, Value) {
    let pattern = scalar("string", "A glob, or a name that matches at every level.");
    let about = "Globs to exclude, with everything below them: target, **/*.min.js.";
    ("excludePatterns", array(&pattern, about))
}

fn add_searching(tools: ToolSet, roots: &Roots) -> ToolSet {
    let found = || {
        let skipped = "Files that were not searched: counts by reason.";
        let cut = "The limit that ended the search; there may be more matches.";
        let members = [
            ("count", scalar("integer", "Number of matches.")),
            (
                "files",
                scalar("integer", "Number of files that were searched completely."),
            ),
            (
                "skipped",
                json!({ "type": "object", "description": skipped }),
            ),
            ("cut", scalar("string", cut)),
            ("limit", scalar("integer", "The value of that limit.")),
            (
                "remedy",
                scalar("string", "How to get the remaining matches."),
            ),
        ];
        object(members, &["count", "files"])
    };
    let pattern = "Part of a name, or a glob for the path below that directory, such as **/*.rs. \
                   Brackets and braces are literal if such a name exists.";
    let names = reading_tool(
        "search_files",
        "Finds files, directories and links by name, one line each; a directory ends with `/`. \
         `path` may be one file.",
        object(
            [
                path_property(),
                ("pattern", scalar("string", pattern)),
                exclude_property(),
                offset_property("matches"),
            ],
            &["path", "pattern"],
        ),
        found(),
    );
    let names = names.with_paging(BY_OFFSET);
    let tools = add_paged(tools, roots, names, handlers::search_names);
    let text = reading_tool(
        "search_text",
        "Searches file contents with a regular expression, as grep does, in files of any size. \
         Output is PATH:LINE: TEXT. Does not follow links; reports which files were not searched.",
        object(
            [
                path_property(),
                (
                    "pattern",
                    scalar("string", "Regular expression that a line must match."),
                ),
                (
                    "names",
                    scalar("string", "Search only files whose path matches this glob."),
                ),
                (
                    "most",
                    scalar("integer", "Maximum number of lines to return."),
                ),
                exclude_property(),
                offset_property("matches"),
            ],
            &["path", "pattern"],
        ),
        found(),
    );
    let text = text.with_paging(BY_OFFSET);
    add_paged(tools, roots, text, handlers::search_text)
}

fn add_writing(tools: ToolSet, roots: &Roots) -> ToolSet {
    let holding = |content| {
        object(
            [path_property(), ("content", scalar("string", content))],
            &["path", "content"],
        )
    };
    let written = || {
        let members = [
            path_property(),
            ("octets", scalar("integer", "Number of bytes written.")),
        ];
        object(members, &["path", "octets"])
    };
    let write = Tool::new(
        "write_file",
        "Creates or replaces a text file atomically: readers see the old or the new content, \
         never a mixture. The parent directory must exist.",
        holding("New content of the file."),
    );
    let tools = add_verb(
        tools,
        roots,
        write.with_output(written()),
        handlers::write_file,
    );
    let append = Tool::new(
        "append_file",
        "Appends to a file of any size.",
        holding("Text to append."),
    );
    let append = append.with_output(written()).with_effect(ToolEffect::Adds);
    let tools = add_verb(tools, roots, append, handlers::append_file);
    let change = object(
        [
            (
                "oldText",
                scalar(
                    "string",
                    "Text to replace. It must occur exactly once unless `all` is set. Line ends, \
                     trailing spaces, quotes and indentation may differ from the file, which \
                     keeps its own.",
                ),
            ),
            ("newText", scalar("string", "Replacement text.")),
            ("all", scalar("boolean", "Replace all occurrences.")),
        ],
        &["oldText", "newText"],
    );
    let edit = Tool::new(
        "edit_file",
        "Edits a text file: applies all edits in order, or none. Returns a unified diff.",
        object(
            [
                path_property(),
                ("edits", array(&change, "The edits to apply.")),
                (
                    "dryRun",
                    scalar("boolean", "Return the diff without changing the file."),
                ),
            ],
            &["path", "edits"],
        ),
    );
    let changed = [("places", scalar("integer", "Number of replacements."))];
    let edit = edit
        .with_output(object(changed, &["places"]))
        .with_paging(BY_ANSWER);
    let tools = add_verb(tools, roots, edit, handlers::edit_file);
    add_moving(tools, roots)
}

fn add_moving(tools: ToolSet, roots: &Roots) -> ToolSet {
    let make = Tool::new(
        "create_directory",
        "Creates a directory and its missing parents; an existing directory is left unchanged.",
        object([path_property()], &["path"]),
    );
    let tools = add_verb(
        tools,
        roots,
        make.with_effect(ToolEffect::Adds),
        handlers::create_directory,
    );
    let to = [
        ("source", scalar("string", PATH_ABOUT)),
        (
            "destination",
            scalar("string", "New path, where nothing exists yet."),
        ),
    ];
    let about = "Moves or renames a file or directory within one allowed directory.";
    let rename = Tool::new("move_file", about, object(to, &["source", "destination"]));
    let tools = add_verb(tools, roots, rename, handlers::move_file);
    let all = "Delete a directory with its content.";
    let about = "Deletes a file, a link or a directory.";
    let members = [path_property(), ("recursive", scalar("boolean", all))];
    let delete = Tool::new("delete_file", about, object(members, &["path"]));
    add_verb(tools, roots, delete, handlers::delete_file)
}
