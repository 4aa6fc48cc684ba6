//! The usual verbs of file servers, answered by files actors.

mod shown;
mod work;

use std::future::Future;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use strowger::Fault;
use strowger_gateway::{McpAnswer, McpEffect, McpTool, McpTools, Progress};

use super::roots::Roots;
use super::{a, list, object};

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

const PATH_ABOUT: &str = "Relative to the allowed directory, or absolute. With several allowed \
                    directories a relative path begins with the name of one.";

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
    let more = "There are more: go on with `after`, the last name, as it is there.";
    object(
        [
            ("count", a("integer", "How many entries are listed.")),
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
                count(0, "Only so many lines, from the beginning or from `from`."),
            ),
            ("tail", count(0, "Only so many lines from the end.")),
            ("from", count(1, "The number of the first line, from 1.")),
        ];
        object(members, &["path"])
    };
    let about = "Reads a text file, whole or some of its lines; these also of one that is too \
                 large to be read whole. Bytes that are no UTF-8 are read with read_media_file.";
    let tools = verb(
        tools,
        roots,
        texts("read_text_file", about, text()),
        work::read_text,
    );
    let about = "The same as read_text_file.";
    let tools = verb(
        tools,
        roots,
        texts("read_file", about, text()),
        work::read_text,
    );
    let about = "Reads a picture, a sound or any other octets, in base64 with their type.";
    let media = McpTool::new("read_media_file", about, object([path()], &["path"]));
    let tools = verb(
        tools,
        roots,
        media.with_effect(McpEffect::Reads),
        work::read_media,
    );
    let several = texts(
        "read_multiple_files",
        "Reads several text files at once; one that cannot be read does not spoil the others.",
        object(
            [("paths", list(&a("string", PATH_ABOUT), "Which files."))],
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
    let after = "Only names behind this one: the last of the page before, or its `uri` where it \
                 has one.";
    let after = || ("after", a("string", after));
    let page = || object([path(), after()], &["path"]);
    let about = "Lists a directory by name, a page at a time: a line for each entry, with its \
                 kind and its name, or a URI where the name is none that fits a line.";
    let tools = verb(
        tools,
        roots,
        reads("list_directory", about, page(), page_facts()),
        work::list_plain,
    );
    let about = "Lists a directory with sizes and times, by name a page at a time, or the largest \
                 first.";
    let order = json!({
        "enum": ["name", "size"],
        "description": "What comes first: `name`, unless it is said; by `size` there is one page.",
    });
    let by = object([path(), after(), ("sortBy", order)], &["path"]);
    let sizes = reads("list_directory_with_sizes", about, by, page_facts());
    let tools = verb(tools, roots, sizes, work::list_with_sizes);
    let levels = "How many levels; as many as the limit allows if it is left out.";
    let tree = texts(
        "directory_tree",
        "Shows a directory with all that is below it, as JSON.",
        object([path(), ("depth", count(0, levels)), excluded()], &["path"]),
    );
    let tools = verb(tools, roots, tree, work::directory_tree);
    let tools = searching(tools, roots);
    let info = reads(
        "get_file_info",
        "Tells kind, size, time of the last change and number of links of a file or directory.",
        object([path()], &["path"]),
        json!({ "type": "object" }),
    );
    let tools = verb(tools, roots, info, work::file_info);
    let allowed = reads(
        "list_allowed_directories",
        "Names the directories that can be reached, each with the name that paths may begin with. \
         Nothing else can be reached.",
        object([], &[]),
        object([("count", a("integer", "How many there are."))], &["count"]),
    );
    verb(tools, roots, allowed, work::allowed_directories)
}

/// Returns the schema of the patterns that a search excludes.
fn excluded() -> (&'static str, Value) {
    let pattern = a("string", "A glob, or a name that fits at every level.");
    let about = "What is left out, with what is below it: target, **/*.min.js.";
    ("excludePatterns", list(&pattern, about))
}

fn searching(tools: McpTools, roots: &Roots) -> McpTools {
    let found = || {
        let skipped = "What was not searched: counts by reason.";
        let cut = "The limit that ended the search: there may be more.";
        let members = [
            ("count", a("integer", "How many matches there are.")),
            (
                "files",
                a("integer", "How many files were searched to their end."),
            ),
            (
                "skipped",
                json!({ "type": "object", "description": skipped }),
            ),
            ("cut", a("string", cut)),
            ("limit", a("integer", "What that limit is.")),
            ("remedy", a("string", "What helps.")),
        ];
        object(members, &["count", "files"])
    };
    let pattern = "A glob of the path below that directory, such as **/*.rs; or a part of a name.";
    let names = reads(
        "search_files",
        "Finds files by name: a line for each.",
        object(
            [path(), ("pattern", a("string", pattern)), excluded()],
            &["path", "pattern"],
        ),
        found(),
    );
    let tools = verb(tools, roots, names, work::search_names);
    let text = reads(
        "search_text",
        "Finds lines by a regular expression, as grep does, in files of any size: PATH:LINE: TEXT. \
         Links are not followed; says what was not searched.",
        object(
            [
                path(),
                (
                    "pattern",
                    a("string", "What a line has to have: a regular expression."),
                ),
                (
                    "names",
                    a("string", "Only files whose path this glob fits."),
                ),
                ("most", a("integer", "How many lines at most.")),
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
        let members = [path(), ("octets", a("integer", "How many were written."))];
        object(members, &["path", "octets"])
    };
    let write = McpTool::new(
        "write_file",
        "Writes a whole text file, or makes it; a reader sees the old or the new one, whole. Its \
         directory has to be there.",
        holding("What it will hold."),
    );
    let tools = verb(tools, roots, write.with_output(written()), work::write_file);
    let append = McpTool::new(
        "append_file",
        "Writes behind the end of a file of any size.",
        holding("What is added."),
    );
    let append = append.with_output(written()).with_effect(McpEffect::Adds);
    let tools = verb(tools, roots, append, work::append_file);
    let change = object(
        [
            (
                "oldText",
                a("string", "What is there: once, unless `all` is set."),
            ),
            ("newText", a("string", "What takes its place.")),
            ("all", a("boolean", "Every place where it is there.")),
        ],
        &["oldText", "newText"],
    );
    let edit = McpTool::new(
        "edit_file",
        "Changes text in a file: all of the edits, in order, or none. Answers with a unified diff.",
        object(
            [
                path(),
                ("edits", list(&change, "What is changed.")),
                ("dryRun", a("boolean", "Only say what would change.")),
            ],
            &["path", "edits"],
        ),
    );
    let changed = [("places", a("integer", "How many places."))];
    let edit = edit.with_output(object(changed, &["places"]));
    let tools = verb(tools, roots, edit, work::edit_file);
    moving(tools, roots)
}

fn moving(tools: McpTools, roots: &Roots) -> McpTools {
    let make = McpTool::new(
        "create_directory",
        "Makes a directory, with those above it; one that is there stays as it is.",
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
            a("string", "Its new path, where nothing is yet."),
        ),
    ];
    let about = "Moves or renames a file or directory, below one allowed directory.";
    let rename = McpTool::new("move_file", about, object(to, &["source", "destination"]));
    let tools = verb(tools, roots, rename, work::move_file);
    let all = "A directory goes with what is in it.";
    let about = "Removes a file, a link or a directory.";
    let members = [path(), ("recursive", a("boolean", all))];
    let delete = McpTool::new("delete_file", about, object(members, &["path"]));
    verb(tools, roots, delete, work::delete_file)
}
