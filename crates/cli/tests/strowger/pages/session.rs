//! Runs the blocks of a page in order, as a reader with a terminal would.

mod process;
mod workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::block::{self, Block, Kind, Note};
use super::shown;
use crate::agent::{Agent, cache};

use self::process::{Background, CommandResult};
use self::workspace::Workspace;

/// The results of the blocks of a page.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) page: String,
    pub(super) commands: usize,
    /// Commands that are not run, each with its reason.
    pub(super) not_run: Vec<String>,
    /// Failures, each with its position.
    pub(super) failures: Vec<String>,
    pub(super) took: Duration,
}

/// Languages of blocks that cannot be checked here, or are only for reading.
const NOT_CHECKED: [&str; 4] = ["text", "yaml", "erlang", "scala"];
/// Languages of blocks that other tests compile.
const COMPILED: [&str; 3] = ["rust", "rust,no_run", "ts"];

/// Runs the blocks of a page.
pub(super) fn run(path: &str, text: &str) -> Report {
    let since = Instant::now();
    let (blocks, wrong) = block::read(text);
    let mut report = Report {
        page: path.to_owned(),
        ..Report::default()
    };
    for (line, what) in wrong {
        report.failures.push(format!("{path}:{line}: {what}"));
    }
    let is_quiet = |block: &Block| NOT_CHECKED.contains(&block.language.as_str());
    if !blocks.iter().all(is_quiet) {
        let mut session = Session::new(report);
        for block in &blocks {
            session.run_block(block);
        }
        report = session.finish();
    }
    report.took = since.elapsed();
    report
}

/// A simulated terminal with the processes that were started in it.
struct Session {
    workspace: Workspace,
    /// The running node that commands use.
    node: Option<Background>,
    /// Other programs that commands started in the background.
    jobs: Vec<Background>,
    /// Shell aliases, prepended to later commands.
    prelude: String,
    /// Values of placeholders, by the line of their note.
    placeholders: BTreeMap<usize, String>,
    report: Report,
}

impl Session {
    fn new(report: Report) -> Self {
        let workspace = Workspace::create();
        let (node, jobs, prelude) = (None, Vec::new(), String::new());
        Self {
            workspace,
            node,
            jobs,
            prelude,
            placeholders: BTreeMap::new(),
            report,
        }
    }

    fn fail(&mut self, line: usize, what: &str) {
        self.report
            .failures
            .push(format!("{}:{line}: {what}", self.report.page));
    }

    fn run_block(&mut self, block: &Block) {
        let language = block.language.as_str();
        let whole = |note: &&Note| note.kind == Kind::NotRun && note.about.is_none();
        if let Some(note) = block.notes.iter().find(whole) {
            let what = format!("{}:{}: {}", self.report.page, block.line, note.text);
            self.report.not_run.push(what);
            return;
        }
        match language {
            "sh" | "console" => self.run_commands(block),
            "toml" => self.check_configuration(block),
            "json" => self.check_json(block),
            "" => self.fail(
                block.line,
                "this block has no language: `sh` or `console` for commands, `text` for what is \
                 only read",
            ),
            "js" => self.check_javascript(block),
            _ if COMPILED.contains(&language) => self.check_is_compiled(block),
            _ if NOT_CHECKED.contains(&language) => {}
            _ => self.fail(
                block.line,
                &format!("`{language}` is no language that is known here"),
            ),
        }
    }

    fn run_commands(&mut self, block: &Block) {
        let commands = match block.commands() {
            Ok(commands) => commands,
            Err((line, what)) => return self.fail(line, &what),
        };
        self.run_before(block, |note| note.about.is_none());
        let mut used = BTreeSet::new();
        for command in &commands {
            let about = block.notes.iter().enumerate();
            let about =
                about.filter(|(_, note)| note.about.is_some() && note.is_about(&command.text));
            let about: Vec<(usize, &Note)> = about.collect();
            if let Some((at, note)) = about.iter().find(|(_, note)| note.kind == Kind::NotRun) {
                used.insert(*at);
                let (page, text) = (&self.report.page, &command.text);
                let what = format!("{page}:{}: `{text}`: {}", command.line, note.text);
                self.report.not_run.push(what);
                continue;
            }
            for (at, note) in about {
                if used.insert(at) && note.kind == Kind::Before {
                    self.run_command(note.line, &note.text, &[], block, 0);
                }
            }
            let exits = block
                .notes
                .iter()
                .filter(|note| note.is_about(&command.text));
            let mut exits = exits.filter_map(|note| match note.kind {
                Kind::Exits(code) => Some(code),
                _ => None,
            });
            let wanted = exits.next_back().unwrap_or(0);
            self.run_command(command.line, &command.text, &command.shows, block, wanted);
        }
        for (at, note) in block.notes.iter().enumerate() {
            if let (false, Some(about)) = (used.contains(&at), &note.about) {
                self.fail(
                    note.line,
                    &format!("no command of this block begins with `{about}`"),
                );
            }
        }
    }

    /// Runs the commands of `before` notes.
    fn run_before(&mut self, block: &Block, is_wanted: impl Fn(&Note) -> bool) {
        let notes = block.notes.iter();
        for note in notes.filter(|note| note.kind == Kind::Before && is_wanted(note)) {
            self.run_command(note.line, &note.text, &[], block, 0);
        }
    }

    /// Runs one command and checks its exit code and output.
    fn run_command(
        &mut self,
        line: usize,
        text: &str,
        shows: &[String],
        block: &Block,
        wanted: i32,
    ) {
        self.report.commands += 1;
        if text == "stop" {
            return self.stop_node(line);
        }
        let Some(expanded) = self.substitute(text, block) else {
            return;
        };
        if expanded.starts_with("alias ") {
            self.prelude.push_str(&expanded);
            self.prelude.push('\n');
            return;
        }
        let in_background = expanded.strip_suffix('&').map(str::trim_end);
        let command = self.workspace.adapted(in_background.unwrap_or(&expanded));
        if workspace::runs_a_node(&command) {
            self.stop_node(line);
            match Background::start(&self.workspace, "", &command, Some("")) {
                Ok(node) => self.node = Some(node),
                Err(ended) => self.fail(line, &ended.describe(text, 0)),
            }
            return;
        }
        if in_background.is_some() {
            match Background::start(&self.workspace, &self.prelude, &command, None) {
                Ok(job) => self.jobs.push(job),
                Err(ended) => self.fail(line, &ended.describe(text, 0)),
            }
            return;
        }
        let ended = process::run(&self.workspace, &self.prelude, &command);
        if ended.code != Some(wanted) {
            return self.fail(line, &ended.describe(text, wanted));
        }
        self.compare_output(line, text, shows, &ended);
    }

    fn compare_output(&mut self, line: usize, text: &str, shows: &[String], ended: &CommandResult) {
        let printed: Vec<&str> = ended.out.trim_end().lines().collect();
        if !shows.is_empty() && !shown::fits(&printed, &self.workspace.lines_with_ports(shows)) {
            let (printed, shows) = (printed.join("\n"), shows.join("\n"));
            let what = format!("`{text}`: `{printed}` is printed, where the page shows `{shows}`");
            self.fail(line, &what);
        }
    }

    /// Replaces the placeholders of a block in a text; each value is determined once.
    fn substitute(&mut self, text: &str, block: &Block) -> Option<String> {
        let mut expanded = text.to_owned();
        for note in &block.notes {
            let Kind::Where(word) = &note.kind else {
                continue;
            };
            if !expanded.contains(word.as_str()) {
                continue;
            }
            let known = self.placeholders.get(&note.line).cloned();
            let meaning = match known {
                Some(known) => known,
                None => self.placeholder_value(note)?,
            };
            expanded = expanded.replace(word.as_str(), &meaning);
        }
        Some(expanded)
    }

    /// Returns the value of a placeholder: the first line that the command of its note prints.
    fn placeholder_value(&mut self, note: &Note) -> Option<String> {
        let ended = process::run(
            &self.workspace,
            &self.prelude,
            &self.workspace.adapted(&note.text),
        );
        let printed = ended.out.lines().next().unwrap_or_default().to_owned();
        if ended.code != Some(0) || printed.is_empty() {
            self.fail(note.line, &ended.describe(&note.text, 0));
            return None;
        }
        self.placeholders.insert(note.line, printed.clone());
        Some(printed)
    }

    /// Stops the running node, if there is one.
    fn stop_node(&mut self, line: usize) {
        let Some(node) = self.node.take() else { return };
        let command = node.command.clone();
        let ended = node.stop();
        if ended.code != Some(0) {
            self.fail(line, &ended.describe(&command, 0));
        }
    }

    fn check_configuration(&mut self, block: &Block) {
        let Some(file) = self.write_block(block) else {
            return;
        };
        let check = block.notes.iter().find(|note| note.kind == Kind::Check);
        let command = check.map_or_else(
            || format!("strowger check {file}"),
            |note| note.text.clone(),
        );
        self.run_command(block.line, &command, &[], block, 0);
    }

    /// Writes a block to a file, after running its `before` notes.
    fn write_block(&mut self, block: &Block) -> Option<String> {
        for note in block.notes.iter().filter(|note| note.kind == Kind::Before) {
            self.run_command(note.line, &note.text, &[], block, 0);
        }
        let named = block.notes.iter().find(|note| note.kind == Kind::File);
        let first = block
            .text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("# "));
        let first = first.and_then(|line| line.split([';', ' ']).next());
        let first = first.filter(|name| name.ends_with(".toml"));
        let file = match (named, first) {
            (Some(note), _) => note.text.clone(),
            (None, Some(name)) => name.to_owned(),
            (None, None) => format!("line-{}.{}", block.line, block.language),
        };
        let text = self.substitute(&block.text, block)?;
        let text = self.workspace.with_ports(&text);
        fs::write(self.workspace.at(&file), text).expect("the folder is writable");
        Some(file)
    }

    fn check_json(&mut self, block: &Block) {
        let Some(file) = self.write_block(block) else {
            return;
        };
        let text = fs::read_to_string(self.workspace.at(&file)).expect("it was written");
        let value: Value = match serde_json::from_str(&text) {
            Ok(value) => value,
            Err(error) => return self.fail(block.line, &format!("this is no JSON: {error}")),
        };
        self.report.commands += 1;
        let servers = value["mcpServers"].as_object().into_iter().flatten();
        for (name, server) in servers.filter(|(_, server)| server["command"].is_string()) {
            let args = server["args"].as_array().into_iter().flatten();
            let args: Vec<&str> = args.filter_map(Value::as_str).collect();
            if (server["command"].as_str(), args.first()) != (Some("strowger"), Some(&"mcp")) {
                self.fail(
                    block.line,
                    &format!("`{name}` does not start `strowger mcp`"),
                );
                continue;
            }
            let starts = AssertUnwindSafe(|| drop(Agent::start(&args[1..])));
            if catch_unwind(starts).is_err() {
                self.fail(block.line, &format!("`{name}` does not shake hands"));
            }
        }
        if let (Some(tool), arguments @ Value::Object(_)) =
            (value["name"].as_str(), &value["arguments"])
        {
            let root = self.workspace.at("").display().to_string();
            let cache = cache().display().to_string();
            let with = ["--root", &root, "--code", "--cache", &cache];
            let answer = Agent::start(&with).call(tool, arguments);
            if answer["isError"] != false {
                self.fail(block.line, &format!("`{tool}` answers {answer}"));
            }
        }
        for note in block.notes.iter().filter(|note| note.kind == Kind::Check) {
            self.run_command(note.line, &note.text, &[], block, 0);
        }
    }

    /// Checks the syntax of a module with Node, if Node is installed.
    fn check_javascript(&mut self, block: &Block) {
        let Some(file) = self.write_block(block) else {
            return;
        };
        let module = file.replace(".js", ".mjs");
        let check = format!("mv {file} {module} && node --check {module}");
        match process::run(&self.workspace, "", "node --version").code {
            Some(0) => self.run_command(block.line, &check, &[], block, 0),
            _ => {
                let page = &self.report.page;
                let what = format!("{page}:{}: there is no node", block.line);
                self.report.not_run.push(what);
            }
        }
    }

    /// Fails unless a test compiles the blocks of this page.
    fn check_is_compiled(&mut self, block: &Block) {
        let page = self.report.page.as_str();
        let says = if block.language == "ts" {
            let tests = ["guides", "package"];
            let tests = tests.map(|test| format!("packages/strowger/test/{test}.test.ts"));
            let stem = page
                .rsplit('/')
                .next()
                .unwrap_or(page)
                .trim_end_matches(".md");
            let inner = page.strip_prefix("packages/strowger/").unwrap_or(page);
            let named = [page, &format!("../../{page}"), stem, inner];
            let named = named.map(|name| format!("\"{name}\""));
            let is_named = |text: &str| named.iter().any(|name| text.contains(name.as_str()));
            if tests.iter().any(|test| is_named(&super::page(test))) {
                return;
            }
            "add the page to packages/strowger/test/package.test.ts"
        } else {
            // The README of a crate is a documentation test if the crate says so. `cargo xtask
            // tidy` looks at docs/ and the front page.
            let of_crate = page.strip_suffix("README.md");
            let tested = of_crate.filter(|folder| folder.starts_with("crates/"));
            let library = tested.map(|folder| super::page(&format!("{folder}src/lib.rs")));
            let is_tested =
                library.is_some_and(|text| text.contains(r#"include_str!("../README.md")"#));
            if is_tested || page == "README.md" || page.starts_with("docs/") {
                return;
            }
            "move it to docs/, where it has to stand in an example"
        };
        self.fail(block.line, &format!("nobody compiles this block: {says}"));
    }

    /// Waits for background programs, stops the node, and returns the report.
    fn finish(mut self) -> Report {
        for job in std::mem::take(&mut self.jobs) {
            let command = job.command.clone();
            let ended = job.finished();
            if ended.code != Some(0) {
                self.fail(0, &ended.describe(&command, 0));
            }
        }
        self.stop_node(0);
        self.report
    }
}
