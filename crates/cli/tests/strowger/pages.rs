//! Checks of the documentation pages: every command is run, every configuration is checked, and the
//! stated limits and codes are compared with the real ones.
//!
//! [`block`] parses the blocks of a page and the notes above them, [`session`] runs them in order
//! in a directory of their own, [`shown`] compares the output with that on the page. [`claims`]
//! compares the tables with the programs.

mod block;
mod claims;
mod session;
mod shown;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use self::block::Block;
use self::session::Report;

/// The rules that the author of a failing block must know.
const RULES: &str = "\
The commands of a page are run by this test, block by block, in one new folder that looks like a
clone (`components/` is a copy; `fixtures/`, `docs/` and the like are links), with `strowger` on the
PATH. `sh` holds commands; `console` holds commands behind `$ ` and what they print, where `...`
stands for anything; `toml` is given to `strowger check`; `json` has to be JSON, and what it tells
an MCP client is tried; `js` is parsed; `rust` and `ts` are compiled by other tests; `text`, `yaml`
and languages of others are left alone. A command has to end with 0. A node that a command starts
runs until the next one is started, or the page ends; ports and rates are replaced. What a reader
knows and a machine cannot guess stands in HTML comments directly above the block, each on one line:

  <!-- not run: REASON -->          the block is only read
  <!-- before: COMMAND -->          is run first; `stop` ends the node that runs
  <!-- where WORD: COMMAND -->      WORD of the block stands for what COMMAND prints
  <!-- exits 1: REASON -->          the command ends with this code
  <!-- file: NAME -->               a toml or json block is kept under this name for later commands
  <!-- check: COMMAND -->           is run in place of `strowger check`

`not run`, `before` and `exits` take the beginning of a command in backticks, and then hold for the
commands that begin so: <!-- not run `tcpdump`: needs rights of its own -->. One page alone:

  STROWGER_PAGE=docs/tools.md cargo test -p strowger-cli --test strowger pages";

/// The root of the repository.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is here")
}

/// The text of a page, by its path from the root of the repository.
fn page(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every page of the repository, by its path from the root.
fn pages() -> Vec<String> {
    /// Directories without pages of our own: dependencies, build results and history.
    const NOT_OURS: [&str; 5] = ["target", "node_modules", "dist", "fuzz", "fixtures"];
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the file is accessible") {
            let path = entry.expect("the file is accessible").path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .expect("text");
            if path.is_dir() {
                if !name.starts_with('.') && !NOT_OURS.contains(&name) {
                    folders.push(path);
                }
            } else if name.ends_with(".md") {
                let path = path.strip_prefix(&root).expect("it is below");
                found.push(path.to_str().expect("text").to_owned());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn documented_commands_behave_as_shown() {
    let only = std::env::var("STROWGER_PAGE").ok();
    let mut pages = pages();
    pages.retain(|path| only.as_ref().is_none_or(|only| only == path));
    assert!(!pages.is_empty(), "there is no page {only:?}");
    let reports: Mutex<Vec<Report>> = Mutex::default();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        // They wait more than they compute, so a few run at a time.
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(path) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let report = session::run(path, &page(path));
                    let mut all = reports.lock().unwrap_or_else(PoisonError::into_inner);
                    all.push(report);
                }
            });
        }
    });
    let mut reports = reports.into_inner().expect("nobody holds it");
    reports.sort_by(|a, b| a.page.cmp(&b.page));
    for report in reports.iter().filter(|report| report.commands > 0) {
        let took = report.took.as_secs_f64();
        eprintln!(
            "{}: {} commands in {took:.1} s",
            report.page, report.commands
        );
    }
    let left_out = reports.iter().flat_map(|report| &report.not_run);
    for what in left_out {
        eprintln!("not run: {what}");
    }
    let failures = reports.iter().flat_map(|report| &report.failures);
    let failures: Vec<&str> = failures.map(String::as_str).collect();
    assert!(failures.is_empty(), "{}\n\n{RULES}", failures.join("\n\n"));
    let commands: usize = reports.iter().map(|report| report.commands).sum();
    assert!(
        only.is_some() || commands > 60,
        "only {commands} commands are run"
    );
}

#[test]
fn block_that_breaks_a_rule_is_found() {
    let failures = |text: &str| session::run("docs/sample.md", text).failures;
    for (text, says) in [
        ("```sh\nstrowger prune\n```\n", "ended with 2, not 0"),
        ("```\nstrowger tree\n```\n", "has no language"),
        ("```shell\nstrowger tree\n```\n", "`shell` is no language"),
        (
            "```console\n$ echo ab\nac\n```\n",
            "printed, where the page shows `ac`",
        ),
        ("```toml\n[n4]\nlisten = 5\n```\n", "ended with 2, not 0"),
        ("```json\n{\"a\": }\n```\n", "is no JSON"),
        ("```console\nprints this\n```\n", "before the first `$ `"),
        ("<!-- not run: -->\n```sh\nfalse\n```\n", "has no reason"),
        (
            "<!-- not run `tru`: why -->\n```sh\nfalse\n```\n",
            "begins with `tru`",
        ),
        ("<!-- not run: why -->\ntext\n", "stands above no block"),
        (
            "<!-- exits 1: why -->\n```sh\ntrue\n```\n",
            "ended with 0, not 1",
        ),
        (
            "<!-- before: false -->\n```sh\ntrue\n```\n",
            "ended with 1, not 0",
        ),
        ("```ts\nconst a = 1;\n```\n", "nobody compiles this block"),
        ("```sh\ntrue\n", "has no end"),
        ("```sh\necho 'a\n```\n", "has no end"),
    ] {
        let found = failures(text);
        assert!(
            found.iter().any(|failure| failure.contains(says)),
            "{text}: {found:#?}"
        );
        assert!(
            found
                .iter()
                .all(|failure| failure.starts_with("docs/sample.md:")),
            "{found:?}"
        );
    }
    let good = "<!-- where NAME: echo ab -->\n<!-- exits 1 `false`: it does -->\n\
                ```console\n$ echo NAME 12:30\nab ...\n\
                $ printf 'a\\nb\\nc\\n'\na\n...\nc\n$ false\n```\n\
                ```yaml\na: {\n```\n";
    assert_eq!(failures(good), [""; 0]);
}

#[test]
fn ports_are_replaced_but_no_part_of_a_longer_number() {
    let text = "```sh\ntest 8805 -ne $((8804 + 1))\n\
                test 18805161985 -eq $((18804161985 + 1000000))\n\
                test 27700 -eq $((27699 + 1))\n```\n";
    assert_eq!(session::run("docs/sample.md", text).failures, [""; 0]);
}

#[test]
fn indented_blocks_are_read() {
    let text = "a\n\n- b\n  <!-- not run: c -->\n  ```sh\n  d\n    e\n  ```\n";
    let (blocks, wrong) = block::read(text);
    assert!(wrong.is_empty(), "{wrong:?}");
    let [
        Block {
            line: 5,
            language,
            text,
            notes,
            ..
        },
    ] = &blocks[..]
    else {
        panic!("{blocks:?}");
    };
    assert_eq!(
        (language.as_str(), text.as_str(), notes.len()),
        ("sh", "d\n  e\n", 1)
    );
}
