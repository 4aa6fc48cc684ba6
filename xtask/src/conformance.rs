//! `cargo xtask conformance`: composes `docs/pfcp-conformance.md` from what tests compared.
//!
//! Each proving test records the elements and messages that it found right, in the folder that
//! `STROWGER_CONFORMANCE` names. The page states only those.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::project::Project;
use crate::{Outcome, runner, step, term};

/// The kinds of proof: the name of the file, and what was compared.
const PROOFS: [(&str, &str); 6] = [
    (
        "vector",
        "octets from the tests of other projects decode, and encode to the same octets",
    ),
    (
        "capture",
        "recorded messages of other stacks decode, and encode to the same octets",
    ),
    (
        "tshark",
        "names and values are those that tshark shows, of captures and of what this encoder wrote",
    ),
    (
        "go-pfcp",
        "go-pfcp reads what this encoder wrote, and the other way round",
    ),
    (
        "rs-pfcp",
        "rs-pfcp reads what this encoder wrote, and writes the same octets, where it is right",
    ),
    (
        "property",
        "generated values survive decoding, JSON and encoding; no other stack took part",
    ),
];

/// The proof in which no other stack takes part.
const OURS: &str = "property";

/// The tests that prove something.
const TESTS: [&[&str]; 3] = [
    &["--package", "strowger-pfcp", "--test", "codec"],
    &[
        "--package",
        "strowger-pfcp-node",
        "--test",
        "node",
        "captures::",
    ],
    &["--manifest-path", "interop/rs/Cargo.toml"],
];

const PAGE: &str = "docs/pfcp-conformance.md";

/// Options of `cargo xtask conformance`.
#[derive(Debug, clap::Args)]
pub(crate) struct ConformanceArgs {
    /// Only check whether the page is current
    #[arg(long)]
    pub(crate) check: bool,
}

/// Runs the proving tests and writes the page, or only checks whether it is current.
pub(crate) fn run(project: &Project, check: bool) -> Outcome {
    let folder = prove(project)?;
    let page = compose(&ConformanceRows::read(&folder)?);
    let path = project.root().join(PAGE);
    if !check {
        fs::write(&path, page).map_err(|error| format!("cannot write {PAGE}: {error}"))?;
        term::line(&format!("wrote {PAGE}"));
        return Ok(());
    }
    if fs::read_to_string(&path).unwrap_or_default() == page {
        return Ok(());
    }
    Err(format!(
        "{PAGE} is not what the tests found: run `cargo xtask conformance`"
    ))
}

/// Runs the tests. Ends with the first failure.
fn prove(project: &Project) -> Result<PathBuf, String> {
    let folder = project.target().join("conformance");
    if folder.exists() {
        let emptied = fs::remove_dir_all(&folder);
        emptied.map_err(|error| format!("cannot empty {}: {error}", folder.display()))?;
    }
    for args in TESTS {
        let mut test = project.cargo();
        test.args(["test", "--quiet", "--locked", "--all-features"]);
        test.args(args);
        // With `CI=true`, missing tools and fixtures fail instead of looking like missing proofs.
        test.env("CI", "true").env("STROWGER_CONFORMANCE", &folder);
        step::run(&mut runner::limited(&test)?)?;
    }
    Ok(folder)
}

/// The key of a row: an element or a message, and its number.
type RowKey = (String, u16);

/// The records of the tests.
struct ConformanceRows {
    /// Name and clause of everything that the codec has a row for.
    rows: BTreeMap<RowKey, (String, String)>,
    /// The rows that each proof found right.
    proved: BTreeMap<&'static str, BTreeSet<RowKey>>,
}

impl ConformanceRows {
    fn read(folder: &Path) -> Result<Self, String> {
        let mut rows = BTreeMap::new();
        for line in lines(folder, "rows")? {
            let [what, number, name, clause] = line.split('\t').collect::<Vec<_>>()[..] else {
                return Err(format!("rows.tsv: `{line}` has not four columns"));
            };
            rows.insert(key(what, number)?, (name.to_owned(), clause.to_owned()));
        }
        let mut proved = BTreeMap::new();
        for (proof, _) in PROOFS {
            let mut keys = BTreeSet::new();
            for line in lines(folder, proof)? {
                let (what, number) = line
                    .split_once('\t')
                    .ok_or_else(|| format!("{proof}.tsv: `{line}` has not two columns"))?;
                let key = key(what, number)?;
                if rows.contains_key(&key) {
                    keys.insert(key);
                }
            }
            proved.insert(proof, keys);
        }
        Ok(Self { rows, proved })
    }

    fn proofs(&self, key: &RowKey) -> impl Iterator<Item = &'static str> {
        PROOFS
            .into_iter()
            .map(|(proof, _)| proof)
            .filter(move |proof| self.proved[proof].contains(key))
    }

    fn of<'a>(&'a self, what: &'a str) -> impl Iterator<Item = (&'a RowKey, &'a (String, String))> {
        self.rows.iter().filter(move |(key, _)| key.0 == what)
    }
}

/// Reads the lines of a file; a missing file is an empty proof.
fn lines(folder: &Path, proof: &str) -> Result<Vec<String>, String> {
    let path = folder.join(proof).with_extension("tsv");
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(_) if proof != "rows" => Ok(Vec::new()),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

fn key(what: &str, number: &str) -> Result<RowKey, String> {
    match number.parse() {
        Ok(number) => Ok((what.to_owned(), number)),
        Err(_) => Err(format!("`{number}` is no number of a row")),
    }
}

fn compose(found: &ConformanceRows) -> String {
    let mut page = String::from(
        "# PFCP: what is proved of each message and element\n\n\
         Computed by `cargo xtask conformance` from what tests compared and found right; the \
         clauses are those of TS 29.244 V19.5.0.\n\n| Proof | What holds | Messages | Elements |\n\
         |---|---|--:|--:|\n",
    );
    let count = |what: &str| found.of(what).count();
    for (proof, holds) in PROOFS {
        let of = |what: &str| {
            found.proved[proof]
                .iter()
                .filter(|key| key.0 == what)
                .count()
        };
        let (messages, elements) = (of("message"), of("ie"));
        let _ = writeln!(page, "| {proof} | {holds} | {messages} | {elements} |");
    }
    let by_others = |what: &str| {
        let proved = |key: &RowKey| found.proofs(key).any(|proof| proof != OURS);
        found.of(what).filter(|(key, _)| proved(key)).count()
    };
    let _ = writeln!(
        page,
        "| any but {OURS} | another stack, or its octets, agreed | {} | {} |\n\
         | there are | | {} | {} |\n",
        by_others("message"),
        by_others("ie"),
        count("message"),
        count("ie"),
    );
    unproved(found, &mut page);
    for (title, what) in [("Messages", "message"), ("Elements", "ie")] {
        table(found, title, what, &mut page);
    }
    page.truncate(page.trim_end().len() + 1);
    page
}

/// Lists what no other stack has confirmed, and what nothing has.
fn unproved(found: &ConformanceRows, page: &mut String) {
    let named = |wanted: fn(usize, usize) -> bool| {
        let fits = |key: &RowKey| {
            let proofs: Vec<&str> = found.proofs(key).collect();
            let others = proofs.iter().filter(|proof| **proof != OURS).count();
            wanted(proofs.len(), others)
        };
        let names: Vec<String> = found
            .rows
            .iter()
            .filter(|(key, _)| fits(key))
            .map(|(key, (name, _))| format!("{name} ({})", key.1))
            .collect();
        if names.is_empty() {
            "nothing".to_owned()
        } else {
            names.join(", ")
        }
    };
    let _ = writeln!(
        page,
        "Without any proof: {}.\n\nKnown to no other stack that is at hand, so that only the \
         facts of the tables and {OURS} tests speak for them: {}.\n",
        named(|all, _| all == 0),
        named(|all, others| all > 0 && others == 0),
    );
}

fn table(found: &ConformanceRows, title: &str, what: &str, page: &mut String) {
    let heads: String = PROOFS
        .iter()
        .map(|(proof, _)| format!(" {proof} |"))
        .collect();
    let marks = ":-:|".repeat(PROOFS.len());
    let _ = writeln!(
        page,
        "## {title}\n\n| Number | Name | TS 29.244 |{heads}\n|--:|---|---|{marks}"
    );
    for (key, (name, clause)) in found.of(what) {
        let _ = write!(page, "| {} | {name} | {clause} |", key.1);
        for (proof, _) in PROOFS {
            let mark = if found.proved[proof].contains(key) {
                "yes"
            } else {
                ""
            };
            let _ = write!(page, " {mark} |");
        }
        page.push('\n');
    }
    page.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> ConformanceRows {
        let row = |what: &str, number, name: &str| {
            (
                (what.to_owned(), number),
                (name.to_owned(), "8.2.1".to_owned()),
            )
        };
        let mut proved: BTreeMap<_, BTreeSet<_>> = PROOFS
            .iter()
            .map(|(proof, _)| (*proof, BTreeSet::new()))
            .collect();
        let keys = [("vector", 19), ("property", 19), ("property", 20)];
        for (proof, number) in keys {
            proved
                .entry(proof)
                .or_default()
                .insert(("ie".to_owned(), number));
        }
        ConformanceRows {
            rows: BTreeMap::from([
                row("message", 1, "Heartbeat Request"),
                row("ie", 19, "Cause"),
                row("ie", 20, "Source Interface"),
            ]),
            proved,
        }
    }

    #[test]
    fn what_nothing_proves_is_said() {
        let page = compose(&found());
        assert!(
            page.contains("Without any proof: Heartbeat Request (1)."),
            "{page}"
        );
        assert!(
            page.contains("speak for them: Source Interface (20)."),
            "{page}"
        );
    }

    #[test]
    fn a_proof_is_counted_and_marked() {
        let page = compose(&found());
        assert!(page.contains("| 19 | Cause | 8.2.1 | yes |  |"), "{page}");
        assert!(
            page.contains("| any but property | another stack, or its octets, agreed | 0 | 1 |"),
            "{page}"
        );
    }
}
