//! `cargo xtask bench PART`: measures our code beside its peers, and writes the pages with the
//! results.

mod spread;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use spread::BenchProcess;

use crate::project::Project;
use crate::{Outcome, observe, plots, process, report, step, term, typescript};

/// The parts that can be measured, each with the program of the bench workspace that measures it.
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

/// The parts whose rows depend on where threads run, measured by several processes. `true` adds as
/// many processes in which the system places the threads.
const SEVERAL: &[(&str, bool)] = &[("runtime", true), ("scale", false)];

/// The program of the part that is measured by the TypeScript package, together with a program of
/// the bench workspace.
const TYPESCRIPT: &str = "typescript";

/// Programs in packages of their own, because of their dependencies.
const APART: &[(&str, &str)] = &[
    ("wasm", "strowger-bench-wasm"),
    ("tools", "strowger-bench-tools"),
];

/// The packages whose versions a page shows.
const PEERS: &[&str] = &[
    "tokio", "ractor", "kameo", "actix", "xtra", "rs-pfcp", "wasmtime", "cap-std", "rquickjs",
];

/// Measures a part, and keeps the rows if the part was measured completely and at full length.
pub(crate) fn run(project: &Project, args: &[String]) -> Outcome {
    if let Some((part, rest)) = args.split_first()
        && part == "observe"
    {
        return observe::run(project, rest);
    }
    let options = BenchOptions::parse(args)?;
    let part = options.part.0;
    let rows = if options.is_whole() {
        let mut unfinished = KeptRows::open(project, part, options.resume)?;
        measure(project, &options, &mut unfinished)?;
        let rows = options.combined(&unfinished.rows);
        keep(project, part, &rows)?;
        unfinished.remove();
        rows
    } else {
        let mut unfinished = KeptRows::default();
        measure(project, &options, &mut unfinished)?;
        options.combined(&unfinished.rows)
    };
    if options.json {
        for row in &rows {
            term::line(&row.to_string());
        }
    } else {
        term::line(&report::plain_table(&rows));
    }
    Ok(())
}

/// Runs the programs of a part, each as often as its rows need.
fn measure(project: &Project, options: &BenchOptions, rows: &mut KeptRows) -> Outcome {
    let (part, program) = options.part;
    let passes = options.passes();
    let passes: Vec<Option<BenchProcess>> = if passes.is_empty() {
        vec![None]
    } else {
        passes.into_iter().map(Some).collect()
    };
    for pass in passes {
        let done = rows.ids(pass);
        for mut measure in programs(project, part, program)? {
            if options.quick {
                measure.arg("--quick");
            }
            if let Some(only) = &options.only {
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

/// Builds the programs that measure a part, one after the other.
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

struct BenchOptions {
    part: (&'static str, &'static str),
    quick: bool,
    json: bool,
    resume: bool,
    only: Option<String>,
}

impl BenchOptions {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self {
            part: ("", ""),
            quick: false,
            json: false,
            resume: false,
            only: None,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--resume" => options.resume = true,
                "--only" => {
                    let rows = args.next().ok_or("--only needs the ids of rows")?;
                    options.only = Some(rows.clone());
                }
                name if options.part.0.is_empty() => {
                    let part = PARTS.iter().find(|(part, _)| *part == name);
                    options.part = *part.ok_or_else(|| format!("no part `{name}`: {}", parts()))?;
                }
                other => return Err(format!("`{other}` is not an option of `bench`")),
            }
        }
        if options.part.0.is_empty() {
            return Err(format!("which part? {}", parts()));
        }
        if options.resume && !options.is_whole() {
            return Err("--resume goes on with a whole run: without --quick and --only".to_owned());
        }
        Ok(options)
    }

    /// Returns `true` if every row is measured at full length, so that the rows are worth keeping.
    fn is_whole(&self) -> bool {
        !self.quick && self.only.is_none()
    }

    /// Returns the processes that measure the part, or an empty list if one process does.
    fn passes(&self) -> Vec<BenchProcess> {
        let several = SEVERAL.iter().find(|(part, _)| *part == self.part.0);
        several.map_or_else(Vec::new, |&(_, unpinned)| {
            BenchProcess::all(unpinned && !self.quick)
        })
    }

    /// Returns the rows as they are shown and kept.
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

/// The rows of a run so far. Those of a complete run are in a file, so that an interrupted run can
/// resume.
#[derive(Debug, Default)]
struct KeptRows {
    file: Option<PathBuf>,
    rows: Vec<Value>,
}

impl KeptRows {
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

    /// Returns the ids that need not be measured again, by this process if there are several.
    fn ids(&self, pass: Option<BenchProcess>) -> Option<String> {
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
            // The next run overwrites a file that remains.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Runs a program and passes on each row as soon as it is written.
fn follow(command: &mut Command, mut each: impl FnMut(Value) -> Outcome) -> Outcome {
    let shown = step::shown(command);
    let mut child = process::spawn(command.stdout(Stdio::piped()))?;
    let output = child.take_stdout()?;
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| format!("`{shown}` wrote no text: {error}"))?;
        for row in parse(&line)? {
            each(row)?;
        }
    }
    let status = child.wait()?;
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

/// Replaces the part in `docs/performance.json` and regenerates the page.
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
    report::write(project, &all)?;
    plots::draw(project, &all)
}

fn write(file: &std::path::Path, text: &str) -> Outcome {
    std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// Formats one row a line, so that a change of one figure is a change of one line.
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

/// Collects the machine, the date and the versions, without which the rows mean nothing.
fn surroundings(project: &Project, part: &str) -> Value {
    let said = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        let output = process::output(command.args(args).current_dir(project.root())).ok()?;
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

/// Returns how an idle processor of a virtual machine waits, if the system reports it. Whether the
/// processor polls for work before it yields to the hypervisor decides the cost of waking another
/// thread: 10 or 100 microseconds.
fn idle() -> Option<String> {
    let governor = std::fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_governor");
    let poll = std::fs::read_to_string("/sys/module/haltpoll/parameters/guest_halt_poll_ns");
    match (governor.ok()?.trim(), poll) {
        ("haltpoll", Ok(poll)) => Some(format!("haltpoll of {} ns", poll.trim())),
        (governor, _) => Some(governor.to_owned()),
    }
}

/// Returns the versions of the peers, from the lock file of the bench workspace.
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
        assert!(BenchOptions::parse(&["tunring".to_owned()]).is_err());
        assert!(BenchOptions::parse(&[]).is_err());
    }

    #[test]
    fn part_of_a_run_cannot_be_resumed() {
        let parse = |line: &str| {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            BenchOptions::parse(&args).map(|options| options.is_whole())
        };
        assert_eq!(parse("runtime --resume"), Ok(true));
        assert_eq!(parse("runtime --only tell"), Ok(false));
        assert!(parse("runtime --resume --only tell").is_err());
        assert!(parse("runtime --only").is_err());
        assert!(parse("runtime tell").is_err());
    }
}
