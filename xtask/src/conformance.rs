//! `cargo xtask conformance`: composes `docs/pfcp-conformance.md` from what tests compared.
//!
//! Each proving test records the elements and messages that it found right, in the folder that
//! `STROWGER_CONFORMANCE` names. The page states only those.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::project::{self, Project};
use crate::{Outcome, runner, step, term};

/// The kinds of proof: the name of the file, and what was compared.
const PROOFS: [(&str, &str); 6] = [
    (
        "vector",
        "bytes from the tests of other projects decode, and encode to the same bytes",
    ),
    (
        "capture",
        "recorded messages of other stacks decode, and encode to the same bytes",
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
        "rs-pfcp reads what this encoder wrote, and writes the same bytes, where it is right",
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
    let folder = run_proofs(project)?;
    let page = render_page(&ConformanceRows::read(&folder)?);
    let path = project.root().join(PAGE);
    if !check {
        project::write(&path, page)?;
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
fn run_proofs(project: &Project) -> Result<PathBuf, String> {
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
            rows.insert(
                parse_key(what, number)?,
                (name.to_owned(), clause.to_owned()),
            );
        }
        let mut proved = BTreeMap::new();
        for (proof, _) in PROOFS {
            let mut keys = BTreeSet::new();
            for line in lines(folder, proof)? {
                let (what, number) = line
                    .split_once('\t')
                    .ok_or_else(|| format!("{proof}.tsv: `{line}` has not two columns"))?;
                let key = parse_key(what, number)?;
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

    fn rows_of<'a>(
        &'a self,
        what: &'a str,
    ) -> impl Iterator<Item = (&'a RowKey, &'a (String, String))> {
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

fn parse_key(what: &str, number: &str) -> Result<RowKey, String> {
    match number.parse() {
        Ok(number) => Ok((what.to_owned(), number)),
        Err(_) => Err(format!("`{number}` is no number of a row")),
    }
}

fn render_page(found: &ConformanceRows) -> String {
    let mut page = String::from(
        "# PFCP: what is proved of each message and element\n\n\
         Computed by `cargo xtask conformance` from what tests compared and found right; the \
         clauses are those of TS 29.244 V19.5.0.\n\n| Proof | What holds | Messages | Elements |\n\
         |---|---|--:|--:|\n",
    );
    let mut row = |proof: &str, holds: &str, counts: &dyn Fn(&RowKey) -> bool| {
        let of = |what| found.rows_of(what).filter(|(key, _)| counts(key)).count();
        let (messages, elements) = (of("message"), of("ie"));
        let _ = writeln!(page, "| {proof} | {holds} | {messages} | {elements} |");
    };
    for (proof, holds) in PROOFS {
        row(proof, holds, &|key| found.proved[proof].contains(key));
    }
    let others = format!("any but {OURS}");
    row(&others, "another stack, or its bytes, agreed", &|key| {
        found.proofs(key).any(|proof| proof != OURS)
    });
    row("there are", "", &|_| true);
    page.push('\n');
    write_unproved(found, &mut page);
    for (title, what) in [("Messages", "message"), ("Elements", "ie")] {
        write_table(found, title, what, &mut page);
    }
    page.truncate(page.trim_end().len() + 1);
    page
}

/// Lists the rows that no other stack has confirmed, and those without any proof.
fn write_unproved(found: &ConformanceRows, page: &mut String) {
    let named = |wanted: fn(bool, bool) -> bool| {
        let fits = |key: &RowKey| {
            let is_proved = found.proofs(key).next().is_some();
            wanted(is_proved, found.proofs(key).any(|proof| proof != OURS))
        };
        let rows = found.rows.iter().filter(|(key, _)| fits(key));
        let names: Vec<String> = rows
            .map(|(key, (name, _))| format!("{name} ({})", key.1))
            .collect();
        match names.is_empty() {
            true => "nothing".to_owned(),
            false => names.join(", "),
        }
    };
    let _ = writeln!(
        page,
        "Without any proof: {}.\n\nKnown to no other stack that is at hand, so that only the \
         facts of the tables and {OURS} tests speak for them: {}.\n",
        named(|is_proved, _| !is_proved),
        named(|is_proved, by_others| is_proved && !by_others),
    );
}

fn write_table(found: &ConformanceRows, title: &str, what: &str, page: &mut String) {
    let heads: String = PROOFS
        .iter()
        .map(|(proof, _)| format!(" {proof} |"))
        .collect();
    let marks = ":-:|".repeat(PROOFS.len());
    let _ = writeln!(
        page,
        "## {title}\n\n| Number | Name | TS 29.244 |{heads}\n|--:|---|---|{marks}"
    );
    for (key, (name, clause)) in found.rows_of(what) {
        let _ = write!(page, "| {} | {name} | {clause} |", key.1);
        for (proof, _) in PROOFS {
            let is_proved = found.proved[proof].contains(key);
            let _ = write!(page, " {} |", if is_proved { "yes" } else { "" });
        }
        page.push('\n');
    }
    page.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_counts_proofs_and_lists_missing_ones() {
        let key = |what: &str, number| (what.to_owned(), number);
        let row =
            |what, number, name: &str| (key(what, number), (name.to_owned(), "8.2.1".to_owned()));
        let mut proved = BTreeMap::from(PROOFS.map(|(proof, _)| (proof, BTreeSet::new())));
        proved.insert("vector", BTreeSet::from([key("ie", 19)]));
        proved.insert(OURS, BTreeSet::from([key("ie", 19), key("ie", 20)]));
        let page = render_page(&ConformanceRows {
            rows: BTreeMap::from([
                row("message", 1, "Heartbeat Request"),
                row("ie", 19, "Cause"),
                row("ie", 20, "Source Interface"),
            ]),
            proved,
        });
        for text in [
            "Without any proof: Heartbeat Request (1).",
            "speak for them: Source Interface (20).",
            "| 19 | Cause | 8.2.1 | yes |  |",
            "| any but property | another stack, or its bytes, agreed | 0 | 1 |\n",
            "| there are |  | 1 | 2 |\n\n",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
    }
}
