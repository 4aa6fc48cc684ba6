//! `strowger store check|repair|export|import|backup`: a store of durable actors.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use strowger_durable::store::tools::{
    self, CheckReport, DamagedEntities, DamagedEntity, ExistingEntities, RepairOptions,
    StoppedStore, ToolError, ToolProgress,
};
use strowger_durable::store::{EntityId, OpenError};

use crate::exit::{CliResult, Failure};
use crate::output::{Output, Table, TextStyle};

const CHECK: &str = "\
Examples:
  strowger store check /var/lib/bank
  strowger store check /var/lib/bank --json

Reads every row of a store of durable actors and verifies its digest; the store is not changed. A
copy of its journals is made in the directory for temporary files (TMPDIR). Stop the process that
uses the store first. `strowger store verify` is the command for the session store of a node.

Exit codes:
  1  data is damaged or missing";

const REPAIR: &str = "\
Examples:
  strowger store repair /var/lib/bank --dry-run
  strowger store repair /var/lib/bank
  strowger store repair /var/lib/bank --start-empty

Quarantines each damaged entity alone and accepts what is missing at the end of the journals. A
quarantined entity is refused until it is imported from a backup; with --start-empty, it starts
without its data instead, and so do those of earlier repairs. Nothing is destroyed: the database
before the repair stays in the folder `damaged-1` of the store, and `strowger store export` prints
the rows in quarantine. The new database needs as much room as the old one.";

const IMPORT: &str = "\
Examples:
  strowger store import /var/lib/bank bank.jsonl
  strowger store import /var/lib/bank bank.jsonl --existing replace
  strowger store export /var/lib/bank | strowger store import /var/lib/copy -

Reads what `strowger store export` has printed, into a new store if there is nothing at the path.
Everything is read and validated before the store changes.

Exit codes:
  1  an entity exists in the store
  2  a line of the file is invalid; standard error names it";

const BACKUP: &str = "\
Examples:
  strowger store backup /var/lib/bank /backup/bank-1

Copies a store that no process uses into a new folder, which is a store too: to restore it, copy it
back. A store that is being used is copied by its own process, with `FjallStore::backup`.";

#[derive(Debug, clap::Args)]
#[command(after_help = CHECK)]
pub(crate) struct StoreCheckArgs {
    /// Directory of the store.
    path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = REPAIR)]
pub(crate) struct StoreRepairArgs {
    /// Directory of the store.
    path: PathBuf,
    /// Change nothing, and print what would be done.
    #[arg(long)]
    dry_run: bool,
    /// Let damaged and quarantined entities start without their data, instead of refusing them.
    #[arg(long)]
    start_empty: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = IMPORT)]
pub(crate) struct StoreImportArgs {
    /// Directory of the store.
    path: PathBuf,
    /// File with the export; `-` reads standard input.
    file: PathBuf,
    /// Choice for entities that exist in the store.
    #[arg(long, value_enum, default_value_t)]
    existing: Existing,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Existing {
    /// Import nothing if there is one.
    #[default]
    Refuse,
    /// Leave them as they are.
    Skip,
    /// Replace them with those of the export.
    Replace,
}

#[derive(Debug, clap::Args)]
#[command(after_help = BACKUP)]
pub(crate) struct StoreBackupArgs {
    /// Directory of the store.
    path: PathBuf,
    /// Directory for the copy; it must not exist, or be empty.
    target: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Returns `true` if a folder has a store of durable actors. A session store has a file `format`.
pub(super) fn is_store(path: &Path) -> bool {
    path.join("db").is_dir() && !path.join("format").exists()
}

/// Opens a store of durable actors.
pub(crate) fn open(path: &Path) -> CliResult<StoppedStore> {
    refuse_sessions(path)?;
    StoppedStore::open(path).map_err(failure)
}

fn refuse_sessions(path: &Path) -> CliResult {
    if path.join("format").exists() {
        let text = format!("{}: is the session store of a node", path.display());
        return Err(Failure::input(text).hint("use `strowger store verify` or `export`"));
    }
    if let Err(error) = path.metadata() {
        return Err(Failure::file(path, &error));
    }
    Ok(())
}

/// Makes the failure for an error of a tool; its text has the remedy.
pub(crate) fn failure(error: ToolError) -> Failure {
    let text = error.to_string();
    match error {
        ToolError::Output(error) => Failure::from(error),
        ToolError::Line { .. }
        | ToolError::NotAStore { .. }
        | ToolError::Open(OpenError::UnknownFormat { .. }) => Failure::input(text),
        ToolError::Conflict { .. } => {
            Failure::check(text).hint("use `--existing skip` or `--existing replace`")
        }
        ToolError::Unopened { .. } | ToolError::Unreadable { .. } => Failure::check(text),
        _ => Failure::outside(text),
    }
}

/// Shows on standard error how far a tool is, if that is a terminal.
pub(crate) struct ProgressLine {
    is_shown: bool,
    next: Instant,
}

impl ProgressLine {
    const INTERVAL: Duration = Duration::from_millis(200);

    pub(crate) fn new() -> Self {
        Self {
            is_shown: io::stderr().is_terminal(),
            next: Instant::now() + Self::INTERVAL,
        }
    }

    pub(crate) fn update(&mut self, progress: ToolProgress) {
        if !self.is_shown || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + Self::INTERVAL;
        let megabytes = progress.bytes >> 20;
        let mut to = io::stderr();
        // The line is for a person who may have closed the terminal.
        let _ = write!(to, "\r{} rows, {megabytes} MiB\x1b[K", progress.rows);
        let _ = to.flush();
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

pub(super) fn check(args: &StoreCheckArgs, output: &mut Output) -> CliResult {
    let store = open(&args.path)?;
    let mut progress = ProgressLine::new();
    let report = store.check(&mut |done| progress.update(done));
    drop(progress);
    let report = report.map_err(failure)?;
    if args.json {
        output.json(&check_json(&args.path, &report))?;
    } else {
        print_check(&report, output)?;
    }
    if report.is_intact() {
        return Ok(());
    }
    let text = format!("{}: data is damaged or missing", args.path.display());
    Err(Failure::check(text).hint(
        "restore a backup; or `strowger store repair --dry-run` says what a repair would keep",
    ))
}

fn id_json(entity: &EntityId) -> Value {
    json!({"kind": entity.kind(), "key": entity.key()})
}

fn damaged_json(damaged: &[DamagedEntity]) -> Vec<Value> {
    let object = |damaged: &DamagedEntity| {
        json!({
            "kind": damaged.info.entity.kind(),
            "key": damaged.info.entity.key(),
            "sequence": damaged.info.sequence.0,
            "detail": damaged.detail,
        })
    };
    damaged.iter().map(object).collect()
}

fn check_json(path: &Path, report: &CheckReport) -> Value {
    let kinds = report.kinds.iter().map(|(kind, count)| {
        json!({
            "kind": kind,
            "entities": count.entities,
            "rows": count.rows,
            "bytes": count.bytes,
        })
    });
    let quarantined = report.quarantined.iter().map(|info| {
        json!({
            "kind": info.entity.kind(),
            "key": info.entity.key(),
            "sequence": info.sequence.0,
        })
    });
    json!({
        "path": path.display().to_string(),
        "intact": report.is_intact(),
        "kinds": kinds.collect::<Vec<_>>(),
        "damaged": damaged_json(&report.damaged),
        "quarantined": quarantined.collect::<Vec<_>>(),
        "quarantined_rows": report.quarantined_rows,
        "unreadable": report.unreadable.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "stray_rows": report.stray_rows,
        "wake_errors": report.wake_errors,
        "damaged_journals": report.damaged_journals,
        "lost_groups": report.lost_groups,
    })
}

fn print_check(report: &CheckReport, output: &mut Output) -> CliResult {
    let mut table = Table::new(["kind", "entities", "rows", "bytes"]);
    for (kind, count) in &report.kinds {
        let numbers = [count.entities, count.rows, count.bytes].map(|number| number.to_string());
        table.row(std::iter::once(kind.clone()).chain(numbers));
    }
    if report.kinds.is_empty() {
        output.line("no entities")?;
    } else {
        table.print(output)?;
    }
    for info in &report.quarantined {
        let (entity, sequence) = (&info.entity, info.sequence);
        output.line(format!("quarantined: {entity} at sequence {sequence}"))?;
    }
    print_damage(report, output)?;
    if report.is_intact() {
        output.line(output.paint(TextStyle::Green, "no damage found"))?;
    }
    Ok(())
}

fn print_damage(report: &CheckReport, output: &mut Output) -> CliResult {
    let mut lines = Vec::new();
    for DamagedEntity { info, detail, .. } in &report.damaged {
        let (entity, sequence) = (&info.entity, info.sequence);
        lines.push(format!(
            "damaged: {entity} at sequence {sequence}: {detail}"
        ));
    }
    lines.extend(
        report
            .unreadable
            .iter()
            .map(|range| format!("damaged: {range}")),
    );
    lines.extend(
        report
            .damaged_journals
            .iter()
            .map(|journal| format!("damaged: {journal}")),
    );
    if report.lost_groups > 0 {
        let groups = report.lost_groups;
        lines.push(format!("missing: the last {groups} committed groups"));
    }
    if report.stray_rows > 0 {
        let rows = report.stray_rows;
        lines.push(format!("damaged: {rows} rows that belong to no entity"));
    }
    if report.wake_errors > 0 {
        let errors = report.wake_errors;
        lines.push(format!(
            "damaged: {errors} entries of the list of wake-up times, which a repair restores"
        ));
    }
    for line in lines {
        output.line(output.paint(TextStyle::Red, line))?;
    }
    Ok(())
}

pub(super) fn repair(args: &StoreRepairArgs, output: &mut Output) -> CliResult {
    refuse_sessions(&args.path)?;
    let options = RepairOptions {
        dry_run: args.dry_run,
        damaged: match args.start_empty {
            true => DamagedEntities::StartEmpty,
            false => DamagedEntities::Refuse,
        },
    };
    let mut progress = ProgressLine::new();
    let report = tools::repair(&args.path, options, &mut |done| progress.update(done));
    drop(progress);
    let report = report.map_err(failure)?;
    if args.json {
        let ids = |ids: &[EntityId]| ids.iter().map(id_json).collect::<Vec<_>>();
        return output.json(&json!({
            "path": args.path.display().to_string(),
            "dry_run": args.dry_run,
            "needed": report.is_needed,
            "quarantined": ids(&report.quarantined),
            "emptied": ids(&report.emptied),
            "old_database": report.old_database.map(|old| old.display().to_string()),
            "before": check_json(&args.path, &report.before),
        }));
    }
    if !report.is_needed {
        return output.line(output.paint(TextStyle::Green, "nothing to repair"));
    }
    print_damage(&report.before, output)?;
    let would = if args.dry_run { "would be " } else { "" };
    for entity in &report.quarantined {
        output.line(format!("{entity}: {would}quarantined and refused"))?;
    }
    for entity in &report.emptied {
        output.line(format!("{entity}: {would}emptied"))?;
    }
    if report.before.lost_groups > 0 {
        let groups = report.before.lost_groups;
        output.line(format!("{groups} missing groups: {would}accepted as lost"))?;
    }
    if let Some(old) = &report.old_database {
        let old = old.display();
        output.line(format!(
            "the database before the repair: {old}; remove it when it is not missed"
        ))?;
    }
    Ok(())
}

/// Writes into the output of the command.
struct OutputWriter<'a>(&'a mut Output);

impl Write for OutputWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.bytes(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(Failure::Unread) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(failure) => Err(io::Error::other(failure.to_string())),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn export(path: &Path, output: &mut Output) -> CliResult {
    let store = open(path)?;
    let mut progress = ProgressLine::new();
    let mut writer = OutputWriter(output);
    let report = store.export(&mut writer, &mut |done| progress.update(done));
    drop(progress);
    let report = report.map_err(failure)?;
    if report.damaged.is_empty() && report.unreadable.is_empty() {
        return Ok(());
    }
    let names = report.damaged.iter().take(10);
    let names: Vec<String> = names
        .map(|damaged| damaged.info.entity.to_string())
        .collect();
    let (count, parts) = (report.damaged.len(), report.unreadable.len());
    let text = match names.is_empty() {
        true => format!("{}: {parts} unreadable parts were left out", path.display()),
        false => format!(
            "{}: {count} damaged entities and {parts} unreadable parts were left out: {}",
            path.display(),
            names.join(", ")
        ),
    };
    Err(Failure::check(text).hint("`strowger store check` describes the damage"))
}

pub(super) fn import(args: &StoreImportArgs, output: &mut Output) -> CliResult {
    if args.path.exists() {
        refuse_sessions(&args.path)?;
    }
    let mut input: Box<dyn BufRead> = if args.file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(&args.file).map_err(|error| Failure::file(&args.file, &error))?;
        Box::new(BufReader::new(file))
    };
    let existing = match args.existing {
        Existing::Refuse => ExistingEntities::Refuse,
        Existing::Skip => ExistingEntities::Skip,
        Existing::Replace => ExistingEntities::Replace,
    };
    let mut progress = ProgressLine::new();
    let report = tools::import(&args.path, &mut *input, existing, &mut |done| {
        progress.update(done);
    });
    drop(progress);
    let report = report.map_err(|error| match error {
        ToolError::Line { .. } => {
            let file = args.file.display();
            Failure::input(format!("{file}: {error}"))
        }
        error => failure(error),
    })?;
    if args.json {
        return output.json(&json!({
            "path": args.path.display().to_string(),
            "entities": report.entities,
            "rows": report.rows,
            "replaced": report.replaced,
            "skipped": report.skipped,
        }));
    }
    output.line(format!(
        "{} entities with {} rows imported; {} of them replaced others, {} more were skipped",
        report.entities, report.rows, report.replaced, report.skipped
    ))
}

pub(super) fn backup(args: &StoreBackupArgs, output: &mut Output) -> CliResult {
    refuse_sessions(&args.path)?;
    let store = match StoppedStore::open(&args.path) {
        Err(error @ ToolError::Open(OpenError::Locked { .. })) => {
            return Err(failure(error)
                .hint("or let that process make the backup, with `FjallStore::backup`"));
        }
        store => store.map_err(failure)?,
    };
    let mut progress = ProgressLine::new();
    let report = store.backup(&args.target, &mut |done| progress.update(done));
    drop(progress);
    let report = report.map_err(failure)?;
    if args.json {
        return output.json(&json!({
            "path": args.path.display().to_string(),
            "target": args.target.display().to_string(),
            "entities": report.entities,
            "rows": report.rows,
            "bytes": report.bytes,
            "damaged_rows": report.damaged_rows,
        }));
    }
    output.line(format!(
        "{} entities, {} rows, {} bytes copied to {}",
        report.entities,
        report.rows,
        report.bytes,
        args.target.display()
    ))?;
    if report.damaged_rows > 0 {
        let rows = report.damaged_rows;
        let text = format!("{rows} rows are damaged, and so are their copies");
        output.line(output.paint(TextStyle::Red, text))?;
    }
    Ok(())
}
