//! `cargo xtask bench PART`: measures our code beside its peers, and writes the pages with the
//! results.

mod pekko;
mod spread;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use spread::BenchProcess;

use crate::project::{self, Project};
use crate::{Outcome, benches, observe, plots, process, report, step, term, typescript};

/// A part that can be measured.
struct Part {
    name: &'static str,
    /// The files whose change makes its figures old.
    paths: &'static [&'static str],
    /// The program of the bench workspace that measures it.
    program: &'static str,
    /// The package of the program, if it has one of its own because of its dependencies.
    package: Option<&'static str>,
    /// The placements of workers, each measured by several processes because its rows depend on
    /// where threads run: `true` if workers are pinned. One process measures a part without any.
    pinned: &'static [bool],
}

const fn part(name: &'static str, program: &'static str, paths: &'static [&'static str]) -> Part {
    Part {
        name,
        paths,
        program,
        package: None,
        pinned: &[],
    }
}

const PARTS: [Part; 11] = [
    Part {
        pinned: &[true, false],
        ..part("runtime", "runtime", &[RUNTIME, "bench/src/bin/runtime"])
    },
    Part {
        pinned: &[true],
        ..part("scale", "runtime", &[RUNTIME, "bench/src/bin/runtime"])
    },
    part("pfcp", "pfcp", &[PFCP, "bench/src/bin/pfcp"]),
    part(
        "n4",
        "n4",
        &[RUNTIME, PFCP, "crates/pfcp-node/src", "bench/src/bin/n4"],
    ),
    Part {
        package: Some("strowger-bench-wasm"),
        ..part("wasm", "wasm", &[RUNTIME, "crates/wasm/src", "bench/wasm"])
    },
    part(
        "messages",
        TYPESCRIPT,
        &[
            RUNTIME,
            GATEWAY,
            "packages/strowger/src",
            "packages/strowger/bench",
        ],
    ),
    Part {
        package: TOOLS_BENCH,
        ..part("tools", "tools", TOOLS)
    },
    Part {
        package: TOOLS_BENCH,
        ..part("stress", "tools", TOOLS)
    },
    Part {
        package: Some("strowger-bench-durable"),
        ..part(
            DURABLE,
            "durable",
            &[RUNTIME, "crates/durable/src", "bench/durable"],
        )
    },
    part(OBSERVE, OBSERVE, &[RUNTIME, "bench/observe"]),
    part(DOCUMENTS, DOCUMENTS, &[RUNTIME, PFCP, "benches"]),
];

const RUNTIME: &str = "crates/runtime/src";
const PFCP: &str = "crates/pfcp/src";
const GATEWAY: &str = "crates/gateway/src";
const TOOLS: &[&str] = &[
    RUNTIME,
    GATEWAY,
    "crates/tools/src",
    "crates/wasm/src",
    "bench/tools",
];
const TOOLS_BENCH: Option<&str> = Some("strowger-bench-tools");

/// The program of the part that is measured by the TypeScript package, together with a program of
/// the bench workspace.
const TYPESCRIPT: &str = "typescript";

/// The part that has a peer on the virtual machine of Java.
const DURABLE: &str = "durable";

/// The part that is measured under callgrind.
const OBSERVE: &str = "observe";

/// The part that `cargo bench` measures: benchmarks with the names of those in the documents.
const DOCUMENTS: &str = "documents";

/// The packages whose versions a page shows.
const PEERS: &[&str] = &[
    "tokio", "ractor", "kameo", "actix", "xtra", "rs-pfcp", "wasmtime", "cap-std", "rquickjs",
    "fjall", "rusqlite",
];

/// Options of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Part to measure
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(PARTS.map(|part| part.name)))]
    pub(crate) part: String,
    /// Measure briefly and save nothing
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print JSON rows only
    #[arg(long)]
    json: bool,
    /// Measure only these rows, separated by commas; a trailing * matches any suffix
    #[arg(long, value_name = "ROWS")]
    only: Option<String>,
    /// Resume an interrupted whole run
    #[arg(long, conflicts_with_all = ["quick", "only"])]
    resume: bool,
}

/// Measures a part, and keeps the rows if the part was measured completely and at full length.
pub(crate) fn run(project: &Project, args: &BenchArgs) -> Outcome {
    let part = PARTS.iter().find(|part| part.name == args.part);
    let part = part.ok_or_else(|| format!("no part `{}`", args.part))?;
    let is_whole = !args.quick && args.only.is_none();
    let mut unfinished = ResumableRows::default();
    let rows = if [OBSERVE, DOCUMENTS].contains(&part.name) {
        if args.only.is_some() || args.resume {
            let name = part.name;
            return Err(format!("`bench {name}` has neither --only nor --resume"));
        }
        match part.name {
            OBSERVE => observe::rows(project, args.quick)?,
            _ => benches::rows(project, args.quick)?,
        }
    } else {
        if is_whole {
            unfinished = ResumableRows::open(project, part.name, args.resume)?;
        }
        measure(project, part, args, &mut unfinished)?;
        match part.pinned {
            [] => unfinished.rows.clone(),
            _ => spread::combine(&unfinished.rows),
        }
    };
    if is_whole {
        save_rows(project, part.name, &rows)?;
        unfinished.remove();
    }
    if args.json {
        rows.iter().for_each(|row| term::line(&row.to_string()));
    } else {
        term::line(&report::tables(project, &rows)?);
    }
    Ok(())
}

/// Runs the programs of a part, each as often as its rows need.
fn measure(project: &Project, part: &Part, args: &BenchArgs, rows: &mut ResumableRows) -> Outcome {
    let pinned = part.pinned.iter().copied();
    let pinned: Vec<bool> = pinned.filter(|pinned| *pinned || !args.quick).collect();
    let passes: Vec<Option<BenchProcess>> = match pinned.as_slice() {
        [] => vec![None],
        pinned => BenchProcess::all(pinned).into_iter().map(Some).collect(),
    };
    for pass in passes {
        let done = rows.ids(pass);
        for mut measure in build_programs(project, part)? {
            if args.quick {
                measure.arg("--quick");
            }
            if let Some(only) = &args.only {
                measure.args(["--only", only]);
            }
            if let Some(done) = &done {
                measure.args(["--except", done]);
            }
            measure.args(pass.iter().flat_map(|pass| pass.args()));
            read_rows(&mut measure, |mut row| {
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
fn build_programs(project: &Project, part: &Part) -> Result<Vec<Command>, String> {
    if part.program == TYPESCRIPT {
        return typescript::benches(project);
    }
    let mut binary = vec!["--release", "--bin", part.program];
    binary.extend(
        part.package
            .iter()
            .flat_map(|package| ["--package", package]),
    );
    let mut build = bench_cargo(project);
    step::run(build.arg("build").args(&binary).arg("--quiet"))?;
    let mut measure = bench_cargo(project);
    measure.args(["run", "--quiet"]).args(&binary);
    measure.args(["--", "--part", part.name]);
    if part.name == DURABLE {
        measure.envs(pekko::build(project));
    }
    Ok(vec![measure])
}

/// The rows of a run so far. Those of a complete run are in a file, so that an interrupted run can
/// resume.
#[derive(Debug, Default)]
struct ResumableRows {
    file: Option<PathBuf>,
    rows: Vec<Value>,
}

impl ResumableRows {
    fn open(project: &Project, part: &str, resume: bool) -> Result<Self, String> {
        let file = project.folder("bench")?.join(format!("{part}.jsonl"));
        if !resume {
            project::write(&file, "")?;
        }
        let rows = match file.exists() {
            true => parse(&project::read(&file)?)?,
            false => Vec::new(),
        };
        let file = Some(file);
        Ok(Self { file, rows })
    }

    /// Returns the ids that need not be measured again, by this process if there are several.
    fn ids(&self, pass: Option<BenchProcess>) -> Option<String> {
        let own = |row: &&Value| pass.is_none_or(|pass| pass.has_measured(row));
        let rows = self.rows.iter().filter(own);
        let mut ids: Vec<&str> = rows.filter_map(|row| row["id"].as_str()).collect();
        ids.dedup();
        (!ids.is_empty()).then(|| ids.join(","))
    }

    fn add(&mut self, row: Value) -> Outcome {
        if let Some(path) = &self.file {
            let file = File::options().append(true).create(true).open(path);
            file.and_then(|mut file| writeln!(file, "{row}"))
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        self.rows.push(row);
        Ok(())
    }

    fn remove(&self) {
        if let Some(file) = &self.file {
            // The next run overwrites a file that remains.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Runs a program and passes on each row as soon as it is written.
///
/// Backtraces are off, whatever the shell says: some rows measure failures, and a backtrace takes
/// longer than the rest of one.
fn read_rows(command: &mut Command, mut each: impl FnMut(Value) -> Outcome) -> Outcome {
    command.env("RUST_BACKTRACE", "0");
    let shown = step::display(command);
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

/// Replaces the part in `docs/performance.json` and regenerates the page and the plots.
fn save_rows(project: &Project, part: &str, rows: &[Value]) -> Outcome {
    let file = project.root().join("docs/performance.json");
    let mut all: Map<String, Value> = project::read(&file)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let run = environment(project, part);
    all.insert(part.to_owned(), json!({ "run": run, "rows": rows }));
    project::write(&file, format_results(&all))?;
    report::write(project, &all)?;
    plots::draw(project, &all)
}

/// Formats one row a line, so that a change of one figure is a change of one line.
fn format_results(all: &Map<String, Value>) -> String {
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
fn environment(project: &Project, part: &str) -> Value {
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
    let versions = match part {
        "messages" => typescript::versions(project),
        DURABLE => pekko::add_versions(project, versions(&lock.unwrap_or_default())),
        _ => versions(&lock.unwrap_or_default()),
    };
    let measured = paths(part).iter();
    let measured: Map<String, Value> = measured
        .map(|path| ((*path).to_owned(), json!(tree_id(project, "HEAD", path))))
        .collect();
    json!({
        "date": said("date", &["-u", "+%Y-%m-%d"]),
        "command": format!("cargo xtask bench {part}"),
        "processor": processor,
        "cores": cores,
        "system": said("uname", &["-sr"]),
        "idle": idle_governor(),
        "rustc": said("rustc", &["--version"]),
        // With `-dirty` at its end, if there were changes that no commit has.
        "commit": said("git", &["describe", "--always", "--dirty", "--exclude=*"]),
        "measured": measured,
        "load": std::fs::read_to_string("/proc/loadavg").ok().map(|text| {
            text.split(' ').next().unwrap_or_default().to_owned()
        }),
        "versions": versions,
    })
}

fn paths(part: &str) -> &'static [&'static str] {
    let part = PARTS.iter().find(|one| one.name == part);
    part.map_or(&[], |part| part.paths)
}

/// Returns the id of a folder in a commit, which depends on its contents only; `None` if the commit
/// or the folder does not exist.
fn tree_id(project: &Project, commit: &str, path: &str) -> Option<String> {
    let mut git = Command::new("git");
    git.args(["rev-parse", "--verify", "--quiet"]);
    git.arg(format!("{commit}:{path}"))
        .current_dir(project.root());
    let found = process::output(&mut git).ok()?;
    let id = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    found.status.success().then_some(id)
}

/// Files that are built for tests alone, so that no figure depends on them.
const TEST_FILES: [&str; 4] = [
    ":(exclude,glob)**/tests.rs",
    ":(exclude,glob)**/tests/**",
    ":(exclude)simulation.rs",
    ":(exclude)simulation",
];

/// Returns `true` if two versions of a folder differ in files that are not for tests alone, or if
/// the repository does not have both.
fn differ(root: &Path, before: &str, now: &str) -> bool {
    let mut git = Command::new("git");
    git.args(["diff", "--quiet", before, now, "--", "."]);
    git.args(TEST_FILES).current_dir(root);
    !process::output(&mut git).is_ok_and(|output| output.status.success())
}

/// Returns the folders that have changed since a part was measured, as `run` describes it.
pub(crate) fn changed(project: &Project, part: &str, run: &Value) -> Vec<&'static str> {
    let commit = run["commit"].as_str().unwrap_or_default();
    let has_changed = |path: &&&str| {
        let measured = run["measured"][**path].as_str().map(str::to_owned);
        // Commits may be rewritten after a measurement; the contents of a folder keep their id.
        let measured = measured.or_else(|| tree_id(project, commit, path));
        match measured.zip(tree_id(project, "HEAD", path)) {
            Some((measured, now)) => measured != now && differ(project.root(), &measured, &now),
            None => true,
        }
    };
    paths(part).iter().filter(has_changed).copied().collect()
}

/// Fails if a part of the performance page is older than the code that it describes.
///
/// # Errors
/// Returns an error that names the part, what has changed and how to measure again.
pub(crate) fn check_age(project: &Project) -> Outcome {
    let all: Map<String, Value> = serde_json::from_str(&project::read(
        &project.root().join("docs/performance.json"),
    )?)
    .map_err(|error| format!("docs/performance.json: {error}"))?;
    let old: Vec<String> = all
        .iter()
        .filter_map(|(part, held)| {
            let changed = changed(project, part, &held["run"]);
            let changed = (!changed.is_empty()).then(|| changed.join(", "))?;
            Some(format!(
                "part `{part}` is older than {changed}: cargo xtask bench {part}"
            ))
        })
        .collect();
    match old.as_slice() {
        [] => Ok(()),
        old => Err(format!("docs/performance.md:\n  {}", old.join("\n  "))),
    }
}

/// Returns how an idle processor of a virtual machine waits, if the system reports it. Whether the
/// processor polls for work before it yields to the hypervisor decides the cost of waking another
/// thread: 10 or 100 microseconds.
fn idle_governor() -> Option<String> {
    let governor = std::fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_governor");
    let poll = std::fs::read_to_string("/sys/module/haltpoll/parameters/guest_halt_poll_ns");
    match (governor.ok()?.trim(), poll) {
        ("haltpoll", Ok(poll)) => Some(format!("haltpoll of {} ns", poll.trim())),
        (governor, _) => Some(governor.to_owned()),
    }
}

/// Returns the versions of the peers, from the lock file of the bench workspace.
fn versions(lock: &str) -> Value {
    let lock: toml::Table = lock.parse().unwrap_or_default();
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let versions = packages.into_iter().flatten().filter_map(|package| {
        let name = package.get("name")?.as_str()?;
        let version = json!(package.get("version")?.as_str()?);
        PEERS.contains(&name).then(|| (name.to_owned(), version))
    });
    Value::Object(versions.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_lock_file() {
        let lock = "[[package]]\nname = \"tokio\"\nversion = \"1.54.0\"\n\n[[package]]\n\
                    name = \"toml\"\nversion = \"1.2.1\"\n";
        assert_eq!(versions(lock), json!({ "tokio": "1.54.0" }));
    }

    #[test]
    fn changed_tests_do_not_age_a_part() {
        let name = format!("xtask-bench-{}", std::process::id());
        let root = &std::env::temp_dir().join(name);
        std::fs::create_dir_all(root).expect("there is room");
        let git = |args: &[&str]| {
            let mut git = Command::new("git");
            let said = step::output(git.args(args).current_dir(root));
            said.expect("git runs").trim().to_owned()
        };
        let version = |file: &str, text: &str| {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("there is room");
            std::fs::write(path, text).expect("there is room");
            git(&["add", "."]);
            git(&["write-tree"])
        };
        git(&["init", "--quiet"]);
        let first = version("store.rs", "1");
        let tested = version("store/tests/seam.rs", "2");
        let simulated = version("simulation/disk.rs", "3");
        assert!(!differ(root, &first, &simulated));
        let changed = version("store/disk.rs", "4");
        assert!(differ(root, &tested, &changed));
        assert!(differ(root, "1234", &changed));
        std::fs::remove_dir_all(root).expect("it is ours");
    }

    #[test]
    fn part_is_unchanged_while_its_folders_are() {
        let project = Project::locate().expect("the repository");
        let [_, bench] = paths("observe") else {
            panic!("two folders");
        };
        let now = |path: &str| json!(tree_id(&project, "HEAD", path));
        let both = json!({ "measured": { RUNTIME: now(RUNTIME), *bench: now(bench) } });
        assert_eq!(changed(&project, "observe", &both), [""; 0]);
        let one = json!({ "measured": { RUNTIME: "1234", *bench: now(bench) } });
        assert_eq!(changed(&project, "observe", &one), [RUNTIME]);
        // Without the ids of folders, by the commit, if there is one.
        let by_commit = json!({ "commit": "HEAD" });
        assert_eq!(changed(&project, "observe", &by_commit), [""; 0]);
        assert_eq!(
            changed(&project, "observe", &json!({ "commit": "gone" })).len(),
            2
        );
    }

    #[test]
    fn saved_rows_are_read_back() {
        let mut all = Map::new();
        let rows = json!([{ "id": "tell", "value": 1.5 }, { "id": "ask", "value": 2.0 }]);
        all.insert("runtime".to_owned(), json!({ "run": {}, "rows": rows }));
        let text = format_results(&all);
        let again: Map<String, Value> = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(again, all);
        assert_eq!(text.lines().count(), 6, "one row a line: {text}");
    }
}
