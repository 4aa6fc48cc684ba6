//! One page after another block, as a reader with a terminal does it.

mod place;
mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::block::{self, Block, Kind, Note};
use super::shown;
use crate::agent::{Agent, cache};

use self::place::Place;
use self::process::{Background, Ended};

/// The results of the blocks of a page.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) page: String,
    pub(super) commands: usize,
    /// The commands that are not run, each with its reason.
    pub(super) not_run: Vec<String>,
    /// The failures, each with its place.
    pub(super) failures: Vec<String>,
    pub(super) took: Duration,
}

/// Languages whose blocks are of programs that are not here, or are only read.
const LEFT_ALONE: [&str; 4] = ["text", "yaml", "erlang", "scala"];
/// Languages whose blocks are read by compilers, in other tests.
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
    let is_quiet = |block: &Block| LEFT_ALONE.contains(&block.language.as_str());
    if !blocks.iter().all(is_quiet) {
        let mut session = Session::new(report);
        for block in &blocks {
            session.block(block);
        }
        report = session.end();
    }
    report.took = since.elapsed();
    report
}

/// A terminal, and what was started in it.
struct Session {
    place: Place,
    /// The node that commands reach.
    node: Option<Background>,
    /// The other programs that commands started in the background.
    jobs: Vec<Background>,
    /// The aliases that later commands need.
    prelude: String,
    /// The meanings of words, by the line of their note.
    words: BTreeMap<usize, String>,
    report: Report,
}

impl Session {
    fn new(report: Report) -> Self {
        let place = Place::make();
        let (node, jobs, prelude) = (None, Vec::new(), String::new());
        Self {
            place,
            node,
            jobs,
            prelude,
            words: BTreeMap::new(),
            report,
        }
    }

    fn fail(&mut self, line: usize, what: &str) {
        self.report
            .failures
            .push(format!("{}:{line}: {what}", self.report.page));
    }

    fn block(&mut self, block: &Block) {
        let language = block.language.as_str();
        let whole = |note: &&Note| note.kind == Kind::NotRun && note.about.is_none();
        if let Some(note) = block.notes.iter().find(whole) {
            let what = format!("{}:{}: {}", self.report.page, block.line, note.text);
            self.report.not_run.push(what);
            return;
        }
        match language {
            "sh" | "console" => self.commands(block),
            "toml" => self.configuration(block),
            "json" => self.json(block),
            "" => self.fail(
                block.line,
                "this block has no language: `sh` or `console` for commands, `text` for what is \
                 only read",
            ),
            "js" => self.javascript(block),
            _ if COMPILED.contains(&language) => self.compiled(block),
            _ if LEFT_ALONE.contains(&language) => {}
            _ => self.fail(
                block.line,
                &format!("`{language}` is no language that is known here"),
            ),
        }
    }

    fn commands(&mut self, block: &Block) {
        let commands = match block.commands() {
            Ok(commands) => commands,
            Err((line, what)) => return self.fail(line, &what),
        };
        self.before(block, |note| note.about.is_none());
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
                    self.one(note.line, &note.text, &[], block, 0);
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
            self.one(command.line, &command.text, &command.shows, block, wanted);
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

    /// Runs what comes before a block or one of its commands.
    fn before(&mut self, block: &Block, is_wanted: impl Fn(&Note) -> bool) {
        let notes = block.notes.iter();
        for note in notes.filter(|note| note.kind == Kind::Before && is_wanted(note)) {
            self.one(note.line, &note.text, &[], block, 0);
        }
    }

    /// Runs one command and judges how it ended.
    fn one(&mut self, line: usize, text: &str, shows: &[String], block: &Block, wanted: i32) {
        self.report.commands += 1;
        if text == "stop" {
            return self.stop(line);
        }
        let Some(said) = self.with_words(text, block) else {
            return;
        };
        if said.starts_with("alias ") {
            self.prelude.push_str(&said);
            self.prelude.push('\n');
            return;
        }
        let in_background = said.strip_suffix('&').map(str::trim_end);
        let command = self.place.gently(in_background.unwrap_or(&said));
        if place::is_a_node(&command) {
            self.stop(line);
            match Background::start(&self.place, "", &command, Some("")) {
                Ok(node) => self.node = Some(node),
                Err(ended) => self.fail(line, &ended.told(text, 0)),
            }
            return;
        }
        if in_background.is_some() {
            match Background::start(&self.place, &self.prelude, &command, None) {
                Ok(job) => self.jobs.push(job),
                Err(ended) => self.fail(line, &ended.told(text, 0)),
            }
            return;
        }
        let ended = process::run(&self.place, &self.prelude, &command);
        if ended.code != Some(wanted) {
            return self.fail(line, &ended.told(text, wanted));
        }
        self.compare(line, text, shows, &ended);
    }

    fn compare(&mut self, line: usize, text: &str, shows: &[String], ended: &Ended) {
        let printed: Vec<&str> = ended.out.trim_end().lines().collect();
        if !shows.is_empty() && !shown::fits(&printed, &self.place.replaced(shows)) {
            let (printed, shows) = (printed.join("\n"), shows.join("\n"));
            let what = format!("`{text}`: `{printed}` is printed, where the page shows `{shows}`");
            self.fail(line, &what);
        }
    }

    /// A text with what the words of the block stand for; each is found out once.
    fn with_words(&mut self, text: &str, block: &Block) -> Option<String> {
        let mut said = text.to_owned();
        for note in &block.notes {
            let Kind::Where(word) = &note.kind else {
                continue;
            };
            if !said.contains(word.as_str()) {
                continue;
            }
            let known = self.words.get(&note.line).cloned();
            let meaning = match known {
                Some(known) => known,
                None => self.meaning(note)?,
            };
            said = said.replace(word.as_str(), &meaning);
        }
        Some(said)
    }

    /// Returns the meaning of a word: the first line that the command of its note prints.
    fn meaning(&mut self, note: &Note) -> Option<String> {
        let ended = process::run(&self.place, &self.prelude, &self.place.gently(&note.text));
        let printed = ended.out.lines().next().unwrap_or_default().to_owned();
        if ended.code != Some(0) || printed.is_empty() {
            self.fail(note.line, &ended.told(&note.text, 0));
            return None;
        }
        self.words.insert(note.line, printed.clone());
        Some(printed)
    }

    /// Ends the node that runs.
    fn stop(&mut self, line: usize) {
        let Some(node) = self.node.take() else { return };
        let command = node.command.clone();
        let ended = node.stop();
        if ended.code != Some(0) {
            self.fail(line, &ended.told(&command, 0));
        }
    }

    fn configuration(&mut self, block: &Block) {
        let Some(file) = self.keep(block) else { return };
        let check = block.notes.iter().find(|note| note.kind == Kind::Check);
        let command = check.map_or_else(
            || format!("strowger check {file}"),
            |note| note.text.clone(),
        );
        self.one(block.line, &command, &[], block, 0);
    }

    /// Writes a block to a file of the folder, after what comes before it.
    fn keep(&mut self, block: &Block) -> Option<String> {
        for note in block.notes.iter().filter(|note| note.kind == Kind::Before) {
            self.one(note.line, &note.text, &[], block, 0);
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
        let text = self.with_words(&block.text, block)?;
        let text = self.place.with_ports(&text);
        fs::write(self.place.at(&file), text).expect("the folder is ours");
        Some(file)
    }

    fn json(&mut self, block: &Block) {
        let Some(file) = self.keep(block) else { return };
        let text = fs::read_to_string(self.place.at(&file)).expect("it was written");
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
            let root = self.place.at("").display().to_string();
            let cache = cache().display().to_string();
            let with = ["--root", &root, "--code", "--cache", &cache];
            let answer = Agent::start(&with).call(tool, arguments);
            if answer["isError"] != false {
                self.fail(block.line, &format!("`{tool}` answers {answer}"));
            }
        }
        for note in block.notes.iter().filter(|note| note.kind == Kind::Check) {
            self.one(note.line, &note.text, &[], block, 0);
        }
    }

    /// Reads a module as Node does, where Node is.
    fn javascript(&mut self, block: &Block) {
        let Some(file) = self.keep(block) else {
            return;
        };
        let module = file.replace(".js", ".mjs");
        let check = format!("mv {file} {module} && node --check {module}");
        match process::run(&self.place, "", "node --version").code {
            Some(0) => self.one(block.line, &check, &[], block, 0),
            _ => {
                let page = &self.report.page;
                let what = format!("{page}:{}: there is no node", block.line);
                self.report.not_run.push(what);
            }
        }
    }

    /// Fails unless a test compiles the blocks of this page.
    fn compiled(&mut self, block: &Block) {
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

    /// Waits for what is not a node, ends the node, and says what came of it all.
    fn end(mut self) -> Report {
        for job in std::mem::take(&mut self.jobs) {
            let command = job.command.clone();
            let ended = job.finished();
            if ended.code != Some(0) {
                self.fail(0, &ended.told(&command, 0));
            }
        }
        self.stop(0);
        self.report
    }
}
