//! `cargo xtask chaos`: a node that is killed with -9 again and again, and what is there after it.
//!
//! ```text
//!   load ── asks ──▶ node ── kill -9 at a random point, also while it recovers or compacts
//!    │ ledger                │
//!    └──▶ file ──▶ audit ◀── rules of all sessions, after each start
//! ```
//!
//! The load is a process of its own and goes on over the kills. It is held while the next life of
//! the node is audited, so that what is compared is what was recovered and nothing else.
//!
//! In some rounds the store is damaged between two lives as well. Then the node may miss something,
//! if it says so: what is missing without a word counts as lost.

mod damage;
mod life;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use self::damage::Damage;
use self::life::{Load, Node, Place};
use crate::project::Project;
use crate::step::{self, Step};
use crate::{Outcome, term};

/// Kills of one load and its ledger.
const ROUND: u64 = 25;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    kills: u64,
    seed: u64,
    json: bool,
    background: bool,
    /// A binary that is built already.
    binary: Option<PathBuf>,
}

/// What was counted, also over runs that were broken off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    kills: u64,
    /// Kills before the node had said that it was there.
    in_recovery: u64,
    acknowledged: u64,
    audits: u64,
    /// Stores that were damaged, and nodes that said that something is missing since.
    damaged: u64,
    told: u64,
    lost: u64,
    wrong: u64,
}

/// Kills as often as one likes.
pub(crate) fn run(project: &Project, args: &[String]) -> Outcome {
    let plan = Plan::parse(args)?;
    if plan.background {
        return detach(project, &plan);
    }
    let tally = all(project, &plan)?;
    report(&plan, tally);
    tally.verdict()
}

/// The step of `cargo xtask ci`.
pub(crate) fn step(project: &Project) -> Step<'_> {
    Step::new("kills", "cargo xtask chaos --kills 50", || {
        let plan = Plan {
            kills: 50,
            ..Plan::default()
        };
        let tally = all(project, &plan)?;
        tally.verdict().map(|()| Some(tally.text()))
    })
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            kills: 50,
            seed: 1,
            json: false,
            background: false,
            binary: None,
        }
    }
}

impl Plan {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut plan = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut number = || {
                let text = args.next().ok_or_else(|| format!("{arg} needs a number"))?;
                let number = text.parse::<u64>();
                number.map_err(|_| format!("`{text}` is no number of {arg}"))
            };
            match arg.as_str() {
                "--kills" => plan.kills = number()?,
                "--seed" => plan.seed = number()?,
                "--binary" => {
                    let path = args.next().ok_or("--binary needs a file")?;
                    plan.binary = Some(PathBuf::from(path));
                }
                "--json" => plan.json = true,
                "--background" => plan.background = true,
                other => return Err(format!("chaos does not know `{other}`")),
            }
        }
        Ok(plan)
    }
}

impl Tally {
    fn to_json(self) -> Value {
        json!({
            "kills": self.kills,
            "in_recovery": self.in_recovery,
            "acknowledged": self.acknowledged,
            "audits": self.audits,
            "damaged": self.damaged,
            "told": self.told,
            "lost": self.lost,
            "wrong": self.wrong,
        })
    }

    fn read(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let number = |key: &str| value[key].as_u64();
        Some(Self {
            kills: number("kills")?,
            in_recovery: number("in_recovery")?,
            acknowledged: number("acknowledged")?,
            audits: number("audits")?,
            damaged: number("damaged")?,
            told: number("told")?,
            lost: number("lost")?,
            wrong: number("wrong")?,
        })
    }

    fn text(self) -> String {
        let Self {
            kills,
            in_recovery,
            acknowledged,
            audits,
            damaged,
            told,
            lost,
            wrong,
        } = self;
        format!(
            "{kills} kills, {in_recovery} of them in recovery; {acknowledged} sessions \
             acknowledged, compared {audits} times; {damaged} stores damaged, of which {told} \
             missed something and said so; {lost} lost, {wrong} wrong"
        )
    }

    fn verdict(self) -> Outcome {
        match (self.lost, self.wrong) {
            (0, 0) => Ok(()),
            _ => Err(self.text()),
        }
    }
}

fn report(plan: &Plan, tally: Tally) {
    term::note(&tally.text());
    if plan.json {
        let Tally {
            kills,
            acknowledged,
            lost,
            wrong,
            ..
        } = tally;
        let rows = json!({
            "kills": kills,
            "acknowledged": acknowledged,
            "lost": lost,
            "wrong": wrong,
        });
        term::line(&rows.to_string());
    }
}

/// Kills in rounds. A run that was broken off goes on after its last round, as long as the binary
/// is the same.
fn all(project: &Project, plan: &Plan) -> Result<Tally, String> {
    let binary = plan.binary.clone().map_or_else(|| build(project), Ok)?;
    let folder = folder(project)?;
    let note = folder.join("progress");
    let built = std::fs::metadata(&binary).and_then(|data| data.modified());
    let mark = format!("{} {} {built:?}", plan.kills, plan.seed);
    let kept = std::fs::read_to_string(&note).unwrap_or_default();
    let mut tally = resumed(&kept, &mark);
    if tally.kills > 0 {
        term::note(&format!("goes on after {} kills", tally.kills));
    }
    while tally.kills < plan.kills {
        let kills = ROUND.min(plan.kills - tally.kills);
        let mut random = Random(plan.seed ^ tally.kills.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        round(
            &Place::new(&folder, &binary)?,
            kills,
            &mut random,
            &mut tally,
        )?;
        std::fs::write(&note, format!("{mark}\n{}", tally.to_json()))
            .map_err(|error| format!("cannot write {}: {error}", note.display()))?;
        if tally.lost + tally.wrong > 0 {
            break;
        }
        term::note(&tally.text());
    }
    // The next run starts anew.
    std::fs::remove_file(&note).map_err(|error| format!("{}: {error}", note.display()))?;
    Ok(tally)
}

fn resumed(kept: &str, mark: &str) -> Tally {
    match kept.split_once('\n') {
        Some((of, tally)) if of == mark => Tally::read(tally).unwrap_or_default(),
        _ => Tally::default(),
    }
}

/// What is done in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    Process,
    Disk,
    /// As `Disk`, and the files are damaged.
    Damage,
}

/// The trials of the rounds, over and over.
const TRIALS: [Trial; 4] = [Trial::Process, Trial::Damage, Trial::Process, Trial::Disk];

/// So many kills of one trial; with another store after each that missed something and said so.
fn round(place: &Place, kills: u64, random: &mut Random, tally: &mut Tally) -> Outcome {
    let round = usize::try_from(tally.kills / ROUND).unwrap_or_default();
    let trial = TRIALS[round % TRIALS.len()];
    let end = tally.kills + kills;
    while tally.kills < end && tally.lost + tally.wrong == 0 {
        stretch(place, trial, end, random, tally)?;
    }
    Ok(())
}

/// One store, one load, one ledger.
fn stretch(
    place: &Place,
    trial: Trial,
    end: u64,
    random: &mut Random,
    tally: &mut Tally,
) -> Outcome {
    place.clean(match trial {
        Trial::Process => "process",
        Trial::Disk | Trial::Damage => "disk",
    })?;
    let mut node = Node::start(place)?;
    node.wait()?;
    let load = Load::start(place)?;
    let mut acknowledged = 0;
    while tally.kills < end {
        std::thread::sleep(Duration::from_millis(20 + random.below(230)));
        node.kill()?;
        tally.kills += 1;
        load.hold()?;
        let said = place.log()?.len();
        let damage = match trial {
            Trial::Damage => Some(Damage::inflict(&place.store(), random)?),
            Trial::Process | Trial::Disk => None,
        };
        tally.damaged += u64::from(damage.is_some());
        node = start_again(place, end, random, tally)?;
        let told = damage.is_some() && place.log()?[said..].contains(MOVES);
        if told && damage != Some(Damage::Torn) {
            tally.told += 1;
            tally.acknowledged += acknowledged;
            return node.end();
        }
        let audit = place.audit()?;
        let number = |key: &str| audit[key].as_u64().unwrap_or(u64::MAX);
        acknowledged = number("acknowledged");
        tally.audits += 1;
        tally.lost += number("lost");
        // Who was never answered misses nothing.
        tally.wrong += number("wrong") + u64::from(told);
        if tally.lost + tally.wrong > 0 {
            term::note(&format!("{audit}"));
            term::note(&format!(
                "{damage:?}; the store is in {}",
                place.folder().display()
            ));
            tally.acknowledged += acknowledged;
            return Ok(());
        }
        load.go_on()?;
    }
    // In the end all is deleted, which the node must still know.
    let ended = load.end()?;
    tally.lost += ended["lost"].as_u64().unwrap_or(1);
    let left = place.audit()?;
    tally.wrong += left["wrong"].as_u64().unwrap_or(1);
    tally.acknowledged += acknowledged.max(left["acknowledged"].as_u64().unwrap_or_default());
    node.end()?;
    let said = place.log()?;
    // A database that meets damage may panic, and is caught.
    let panicked = said.contains("panicked") && trial != Trial::Damage;
    if said.contains(MOVES) || panicked {
        tally.wrong += 1;
        term::note(&format!("the node said:\n{said}"));
    }
    Ok(())
}

/// Starts the node until it is there: a start is killed as well, now and then more than once.
fn start_again(
    place: &Place,
    end: u64,
    random: &mut Random,
    tally: &mut Tally,
) -> Result<Node, String> {
    let mut node = Node::start(place)?;
    while tally.kills < end && random.below(3) == 0 {
        std::thread::sleep(Duration::from_millis(random.below(60)));
        node.kill()?;
        tally.kills += 1;
        tally.in_recovery += 1;
        node = Node::start(place)?;
    }
    node.wait()?;
    Ok(node)
}

/// What a node writes to its log when its store misses something.
const MOVES: &str = "Recovery Time Stamp moves";

/// A stream of numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// Builds the binary as the workspace's tests have it, so that nothing is built twice.
pub(crate) fn build(project: &Project) -> Result<PathBuf, String> {
    let mut cargo = project.cargo();
    cargo.args(["build", "--workspace", "--locked", "--bin", "strowger"]);
    let text = step::output(cargo.arg("--message-format=json"))?;
    let messages = text.lines();
    let messages = messages.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut built = messages.filter(|message| message["target"]["name"] == "strowger");
    let path = built.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    path.ok_or_else(|| "cargo built no binary called `strowger`".to_owned())
}

fn folder(project: &Project) -> Result<PathBuf, String> {
    let folder = project.target().join("chaos");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    Ok(folder)
}

/// Starts the verb again, apart from this terminal.
fn detach(project: &Project, plan: &Plan) -> Outcome {
    let (kills, seed) = (plan.kills.to_string(), plan.seed.to_string());
    let mut verb: Vec<OsString> = ["chaos", "--json", "--kills", &kills, "--seed", &seed]
        .map(OsString::from)
        .into();
    if let Some(binary) = &plan.binary {
        verb.extend(["--binary".into(), binary.into()]);
    }
    step::background(project.root(), &folder(project)?, verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_refused() {
        let parse = |text: &str| {
            let args: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            Plan::parse(&args)
        };
        assert!(parse("--kills many").is_err());
        assert!(parse("--kill 3").is_err());
        let plan = parse("--kills 1000 --json").expect("it is complete");
        assert_eq!((plan.kills, plan.json), (1000, true));
    }

    #[test]
    fn a_run_goes_on_only_where_the_binary_is_the_same() {
        let tally = Tally {
            kills: 25,
            acknowledged: 7,
            ..Tally::default()
        };
        let kept = format!("a\n{}", tally.to_json());
        assert_eq!(resumed(&kept, "a"), tally);
        assert_eq!(resumed(&kept, "b"), Tally::default());
    }
}
