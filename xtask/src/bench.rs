//! `cargo xtask bench PART`: ours beside its peers, and the pages that say so.

mod spread;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use spread::Pass;

use crate::project::Project;
use crate::{Outcome, observe, plots, report, step, term, typescript};

/// The parts that can be measured, each with the program of the bench workspace that does it.
const PARTS: &[(&str, &str)] = &[
    ("runtime", "runtime"),
    ("scale", "runtime"),
    ("pfcp", "pfcp"),
    ("n4", "n4"),
    ("wasm", "wasm"),
    ("messages", TYPESCRIPT),
    ("tools", "tools"),
    ("stress", "tools"),
];

/// The parts whose rows depend on where threads run: several processes measure them. The second
/// says that half of the processes leave that to the system.
const SEVERAL: &[(&str, bool)] = &[("runtime", true), ("scale", false)];

/// The part is measured by programs of the TypeScript package, and one of the bench workspace.
const TYPESCRIPT: &str = "typescript";

/// A program that is a package of its own, because of what it brings along.
const APART: &[(&str, &str)] = &[
    ("wasm", "strowger-bench-wasm"),
    ("tools", "strowger-bench-tools"),
];

/// The packages whose versions a page names.
const PEERS: &[&str] = &[
    "tokio", "ractor", "kameo", "actix", "xtra", "rs-pfcp", "wasmtime", "cap-std", "rquickjs",
];

/// Measures a part, and keeps the rows when it was measured whole and at length.
pub(crate) fn run(project: &Project, args: &[String]) -> Outcome {
    if let Some((part, rest)) = args.split_first()
        && part == "observe"
    {
        return observe::run(project, rest);
    }
    let wish = Wish::parse(args)?;
    let part = wish.part.0;
    let rows = if wish.is_whole() {
        let mut unfinished = Unfinished::open(project, part, wish.resume)?;
        measure(project, &wish, &mut unfinished)?;
        let rows = wish.combined(&unfinished.rows);
        keep(project, part, &rows)?;
        unfinished.remove();
        rows
    } else {
        let mut unfinished = Unfinished::default();
        measure(project, &wish, &mut unfinished)?;
        wish.combined(&unfinished.rows)
    };
    if wish.json {
        for row in &rows {
            term::line(&row.to_string());
        }
    } else {
        term::line(&report::plain_table(&rows));
    }
    Ok(())
}

/// Runs the programs of a part, each as often as its rows need.
fn measure(project: &Project, wish: &Wish, rows: &mut Unfinished) -> Outcome {
    let (part, program) = wish.part;
    let passes = wish.passes();
    let passes: Vec<Option<Pass>> = if passes.is_empty() {
        vec![None]
    } else {
        passes.into_iter().map(Some).collect()
    };
    for pass in passes {
        let done = rows.ids(pass);
        for mut measure in programs(project, part, program)? {
            if wish.quick {
                measure.arg("--quick");
            }
            if let Some(only) = &wish.only {
                measure.args(["--only", only]);
            }
            if let Some(done) = &done {
                measure.args(["--except", done]);
            }
            measure.args(pass.iter().flat_map(|pass| pass.args()));
            follow(&mut measure, |mut row| {
                if let Some(pass) = pass {
                    pass.mark(&mut row);
                }
                rows.add(row)
            })?;
        }
    }
    Ok(())
}

/// The programs that measure a part, built, one after the other.
fn programs(project: &Project, part: &str, program: &str) -> Result<Vec<Command>, String> {
    if program == TYPESCRIPT {
        return typescript::benches(project);
    }
    let mut binary = vec!["--release", "--bin", program];
    if let Some((_, package)) = APART.iter().find(|(apart, _)| *apart == program) {
        binary.extend(["--package", package]);
    }
    let mut build = bench_cargo(project);
    step::run(build.arg("build").args(&binary).arg("--quiet"))?;
    let mut measure = bench_cargo(project);
    measure.args(["run", "--quiet"]).args(&binary);
    measure.args(["--", "--part", part]);
    Ok(vec![measure])
}

struct Wish {
    part: (&'static str, &'static str),
    quick: bool,
    json: bool,
    resume: bool,
    only: Option<String>,
}

impl Wish {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut wish = Self {
            part: ("", ""),
            quick: false,
            json: false,
            resume: false,
            only: None,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--quick" => wish.quick = true,
                "--json" => wish.json = true,
                "--resume" => wish.resume = true,
                "--only" => {
                    let rows = args.next().ok_or("--only needs the ids of rows")?;
                    wish.only = Some(rows.clone());
                }
                name if wish.part.0.is_empty() => {
                    let part = PARTS.iter().find(|(part, _)| *part == name);
                    wish.part = *part.ok_or_else(|| format!("no part `{name}`: {}", parts()))?;
                }
                other => return Err(format!("`{other}` is not an option of `bench`")),
            }
        }
        if wish.part.0.is_empty() {
            return Err(format!("which part? {}", parts()));
        }
        if wish.resume && !wish.is_whole() {
            return Err("--resume goes on with a whole run: without --quick and --only".to_owned());
        }
        Ok(wish)
    }

    /// Whether every row is measured at length, so that the rows are worth keeping.
    fn is_whole(&self) -> bool {
        !self.quick && self.only.is_none()
    }

    /// The processes that measure the part; none when one process does.
    fn passes(&self) -> Vec<Pass> {
        let several = SEVERAL.iter().find(|(part, _)| *part == self.part.0);
        several.map_or_else(Vec::new, |&(_, unpinned)| {
            Pass::all(unpinned && !self.quick)
        })
    }

    /// The rows as they are shown and kept.
    fn combined(&self, rows: &[Value]) -> Vec<Value> {
        if self.passes().is_empty() {
            return rows.to_vec();
        }
        spread::combine(rows)
    }
}

fn parts() -> String {
    let names: Vec<&str> = PARTS.iter().map(|(part, _)| *part).collect();
    names.join(", ")
}

/// The rows of a run so far. Those of a whole run are in a file: one that was cut off can go on.
#[derive(Debug, Default)]
struct Unfinished {
    file: Option<PathBuf>,
    rows: Vec<Value>,
}

impl Unfinished {
    fn open(project: &Project, part: &str, resume: bool) -> Result<Self, String> {
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| project.root().join("target"), PathBuf::from);
        let folder = target.join("bench");
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let file = folder.join(format!("{part}.jsonl"));
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if resume {
            let rows = parse(&text)?;
            let file = Some(file);
            return Ok(Self { file, rows });
        }
        write(&file, "")?;
        Ok(Self {
            file: Some(file),
            rows: Vec::new(),
        })
    }

    /// The ids that need not be measured again, by this process if there are several.
    fn ids(&self, pass: Option<Pass>) -> Option<String> {
        let rows = match pass {
            Some(pass) => pass.rows(&self.rows),
            None => self.rows.iter().collect(),
        };
        let mut ids: Vec<&str> = rows.iter().filter_map(|row| row["id"].as_str()).collect();
        ids.dedup();
        (!ids.is_empty()).then(|| ids.join(","))
    }

    fn add(&mut self, row: Value) -> Outcome {
        self.rows.push(row);
        let Some(file) = &self.file else {
            return Ok(());
        };
        let lines: Vec<String> = self.rows.iter().map(Value::to_string).collect();
        write(file, &format!("{}\n", lines.join("\n")))
    }

    fn remove(&self) {
        if let Some(file) = &self.file {
            // What stays is written over by the next run.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Runs a program and hands each row on as soon as it is written.
fn follow(command: &mut Command, mut each: impl FnMut(Value) -> Outcome) -> Outcome {
    let shown = step::shown(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    let output = child.stdout.take().ok_or("a pipe was asked for")?;
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| format!("`{shown}` wrote no text: {error}"))?;
        for row in parse(&line)? {
            each(row)?;
        }
    }
    let status = child
        .wait()
        .map_err(|error| format!("lost `{shown}`: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`{shown}` ended with {status}"))
}

pub(crate) fn bench_cargo(project: &Project) -> Command {
    let mut cargo = project.cargo();
    cargo.current_dir(project.root().join("bench"));
    cargo
}

fn parse(text: &str) -> Result<Vec<Value>, String> {
    text.lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).map_err(|error| format!("row `{line}`: {error}")))
        .collect()
}

/// Replaces the part in `docs/performance.json` and writes the page anew.
pub(crate) fn keep(project: &Project, part: &str, rows: &[Value]) -> Outcome {
    let file = project.root().join("docs/performance.json");
    let mut all: Map<String, Value> = std::fs::read_to_string(&file)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    all.insert(
        part.to_owned(),
        json!({ "run": surroundings(project, part), "rows": rows }),
    );
    let text = lines_of(&all);
    write(&file, &text)?;
    let page = report::page(&all);
    write(&project.root().join("docs/performance.md"), &page)?;
    plots::draw(project, &all)
}

fn write(file: &std::path::Path, text: &str) -> Outcome {
    std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// One row a line, so that a change of one figure is a change of one line.
fn lines_of(all: &Map<String, Value>) -> String {
    let parts: Vec<String> = all
        .iter()
        .map(|(part, held)| {
            let rows = held["rows"].as_array().into_iter().flatten();
            let rows: Vec<String> = rows.map(|row| format!("    {row}")).collect();
            let run = &held["run"];
            format!(
                "  \"{part}\": {{\"run\": {run}, \"rows\": [\n{}\n  ]}}",
                rows.join(",\n")
            )
        })
        .collect();
    format!("{{\n{}\n}}\n", parts.join(",\n"))
}

/// The machine, the date and the versions that the rows are worth anything with.
fn surroundings(project: &Project, part: &str) -> Value {
    let said = |program: &str, args: &[&str]| {
        let output = Command::new(program)
            .args(args)
            .current_dir(project.root())
            .output()
            .ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let processor = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let lock = std::fs::read_to_string(project.root().join("bench/Cargo.lock"));
    json!({
        "date": said("date", &["-u", "+%Y-%m-%d"]),
        "command": format!("cargo xtask bench {part}"),
        "processor": processor,
        "cores": cores,
        "system": said("uname", &["-sr"]),
        "idle": idle(),
        "rustc": said("rustc", &["--version"]),
        "commit": said("git", &["rev-parse", "--short", "HEAD"]),
        "load": std::fs::read_to_string("/proc/loadavg").ok().map(|text| {
            text.split(' ').next().unwrap_or_default().to_owned()
        }),
        "versions": if part == "messages" {
            typescript::versions(project)
        } else {
            versions(&lock.unwrap_or_default())
        },
    })
}

/// How an idle processor of a guest waits, where the system says so. Whether it looks out for work
/// before it goes to the host decides what it costs to wake another thread: 10 or 100 microseconds.
fn idle() -> Option<String> {
    let governor = std::fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_governor");
    let poll = std::fs::read_to_string("/sys/module/haltpoll/parameters/guest_halt_poll_ns");
    match (governor.ok()?.trim(), poll) {
        ("haltpoll", Ok(poll)) => Some(format!("haltpoll of {} ns", poll.trim())),
        (governor, _) => Some(governor.to_owned()),
    }
}

/// The versions of the peers, from the lock file of the bench workspace.
fn versions(lock: &str) -> Value {
    let mut versions = Map::new();
    let mut name = "";
    for line in lock.lines() {
        if let Some(value) = line.strip_prefix("name = ") {
            name = value.trim_matches('"');
        }
        if let Some(version) = line.strip_prefix("version = ")
            && PEERS.contains(&name)
        {
            versions.insert(name.to_owned(), json!(version.trim_matches('"')));
        }
    }
    Value::Object(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_lock() {
        let lock = "[[package]]\nname = \"tokio\"\nversion = \"1.54.0\"\n\n[[package]]\n\
                    name = \"toml\"\nversion = \"1.2.1\"\n";
        assert_eq!(versions(lock), json!({ "tokio": "1.54.0" }));
    }

    #[test]
    fn kept_rows_can_be_read_again() {
        let mut all = Map::new();
        let rows = json!([{ "id": "tell", "value": 1.5 }, { "id": "ask", "value": 2.0 }]);
        all.insert("runtime".to_owned(), json!({ "run": {}, "rows": rows }));
        let text = lines_of(&all);
        let again: Map<String, Value> = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(again, all);
        assert_eq!(text.lines().count(), 6, "one row a line: {text}");
    }

    #[test]
    fn unknown_part_is_refused() {
        assert!(Wish::parse(&["tunring".to_owned()]).is_err());
        assert!(Wish::parse(&[]).is_err());
    }

    #[test]
    fn part_of_a_run_cannot_be_resumed() {
        let parse = |line: &str| {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            Wish::parse(&args).map(|wish| wish.is_whole())
        };
        assert_eq!(parse("runtime --resume"), Ok(true));
        assert_eq!(parse("runtime --only tell"), Ok(false));
        assert!(parse("runtime --resume --only tell").is_err());
        assert!(parse("runtime --only").is_err());
        assert!(parse("runtime tell").is_err());
    }
}
