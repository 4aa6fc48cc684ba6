//! `cargo xtask bugs`: seeded bugs, enabled one at a time, each of which the tests must find.

use std::collections::HashSet;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::binaries::{self, Binary};
use crate::project::Project;
use crate::{Outcome, process, term};

/// A set of seeded bugs, and the tests that must find them.
struct BugSet {
    /// The sources that list the bugs, as the variants of an enum.
    lists: &'static [&'static str],
    /// The package whose tests find them.
    package: &'static str,
    /// Its binaries with tests that may find them.
    tests: &'static [&'static str],
    /// The binary that runs first, and its tests that count.
    first: (&'static str, &'static str),
    /// The environment variable for the seeds to run with each bug, and its value; `None` if the
    /// tests use the real clock.
    seeds: Option<(&'static str, &'static str)>,
    /// Binaries that use the real clock: on a busy machine, one of their tests may fail by chance.
    real: &'static [&'static str],
    /// Bugs with the binary and the test that run before all others.
    aimed: &'static [(&'static str, &'static str, &'static str)],
}

const BUG_SETS: [BugSet; 3] = [
    BugSet {
        lists: &["crates/runtime/src/seeded_bug.rs"],
        package: "crates/runtime",
        tests: &["storm", "strowger", "behaviour", "parallel", "promises"],
        first: ("storm", "no_letter"),
        seeds: Some(("STROWGER_STORM_SEEDS", "0..200")),
        real: &["parallel", "promises"],
        aimed: &[
            (
                "ExitsStarveRequests",
                "strowger",
                "supervision::fair::tests::a_request_comes_between_two_exits",
            ),
            (
                "StopLostInRestart",
                "parallel",
                "restart_loop::a_child_that_is_terminated_while_it_is_started_again_ends",
            ),
            (
                "IgnoredStartIsAnEnd",
                "behaviour",
                "ignoring::a_child_that_chose_not_to_start_can_be_started_again_or_deleted",
            ),
            (
                "EndIsNoWait",
                "behaviour",
                "waits::child_that_asks_its_stopping_parent_is_refused_at_once",
            ),
            (
                "TurnOutlivesItsBeat",
                "promises",
                "fairness::one_hog_a_worker_delays_nobody",
            ),
            (
                "HogComesFirst",
                "promises",
                "fairness::hogs_on_the_only_worker_delay_nobody",
            ),
            (
                "WaitingIsNotCalled",
                "promises",
                "deadlines::an_ask_of_a_callee_that_computes_or_blocks_ends_at_its_deadline",
            ),
            (
                "HeldIsNotRelieved",
                "promises",
                "deadlines::asks_of_several_actors_run_in_parallel",
            ),
            (
                "WaitIsFree",
                "promises",
                "budget::a_loop_over_waits_that_are_over_at_once_gives_way",
            ),
            (
                "StartIsFree",
                "promises",
                "budget::who_starts_many_actors_in_a_row_gives_way_at_its_next_wait",
            ),
            (
                "TellIsFree",
                "promises",
                "budget::a_loop_that_does_nothing_but_tell_gives_way",
            ),
            (
                "CalledHelpsItself",
                "promises",
                "fairness::an_actor_whom_a_task_told_runs_though_the_task_goes_on",
            ),
            (
                "LooksForEver",
                "promises",
                "elsewhere::who_was_asked_by_another_runtime_sleeps_when_it_is_left_alone",
            ),
            (
                "AnswerDuringWatchIsLost",
                "promises",
                "deadlines::an_answer_that_comes_as_its_question_becomes_watched_wakes_the_asker",
            ),
            (
                "OneAnswerWakesNothing",
                "promises",
                "weather::answered_askers_go_on_in_a_storm_of_asks",
            ),
            (
                "DroppedAskIsHandled",
                "behaviour",
                "expiry::request_whose_asker_has_gone_is_not_handled",
            ),
            (
                "RunsWhereItIsTold",
                "promises",
                "stacks::task_locals_and_ids_do_not_cross_from_who_asks_or_spawns",
            ),
            (
                "StartsWhereItIsSpawned",
                "promises",
                "stacks::task_locals_and_ids_do_not_cross_from_who_asks_or_spawns",
            ),
            (
                "NeverPauses",
                "promises",
                "fairness::timers_go_off_beside_a_hog_on_the_only_worker",
            ),
            (
                "NeverGivesWay",
                "promises",
                "fairness::a_task_that_an_actor_answers_goes_on_within_a_few_turns_of_others",
            ),
            (
                "TurnHasNoCount",
                "behaviour",
                "mailbox::an_actor_with_much_to_do_lets_others_run_in_between",
            ),
            (
                "TimersOutliveTheTurn",
                "promises",
                "turns::overdue_timers_and_a_full_mailbox_delay_nothing",
            ),
            (
                "SignalsStarveMessages",
                "behaviour",
                "turns::ends_of_tasks_without_end_leave_every_second_item_to_messages",
            ),
            (
                "CompletionsStarveMessages",
                "behaviour",
                "turns::outputs_of_pipes_without_end_leave_every_second_item_to_messages",
            ),
            (
                "StopWaitsForSignals",
                "behaviour",
                "turns::stop_overtakes_signals_that_wait",
            ),
            (
                "MonitorNeverSleeps",
                "promises",
                "elsewhere::the_monitor_sleeps_while_nothing_works",
            ),
        ],
    },
    BugSet {
        lists: &[
            "crates/pfcp/src/seeded_bug.rs",
            "crates/pfcp-node/src/seeded_bug.rs",
        ],
        package: "crates/pfcp-node",
        tests: &["strowger_pfcp_node", "lifetime"],
        first: ("strowger_pfcp_node", "simulation::both_roles"),
        seeds: Some(("STROWGER_N4_SEEDS", "0..400")),
        real: &["lifetime"],
        aimed: &[
            (
                "AskedAfterTheEnd",
                "lifetime",
                "ended::report_about_the_node_ends_with_its_association",
            ),
            (
                "ReportDroppedAtTheEnd",
                "lifetime",
                "ended::report_of_a_deleted_session_is_not_repeated_and_its_usage_is_told_once",
            ),
            (
                "StampBelieved",
                "lifetime",
                "restart::stamp_that_wanders_ends_nothing_where_only_a_setup_counts",
            ),
            (
                "LateSessionsKept",
                "lifetime",
                "restart::session_of_a_late_establishment_ends_with_the_first_setup_of_a_life",
            ),
            (
                "RestartIgnored",
                "lifetime",
                "restart::restart_in_heartbeats_alone_ends_the_sessions_once_the_peer_confirms_it",
            ),
            (
                "RestoredAsEstablished",
                "strowger_pfcp_node",
                "simulation::both_have_what_was_kept_after_the_user_plane_forgot_it",
            ),
            (
                "RestorationForgotten",
                "strowger_pfcp_node",
                "simulation::both_have_what_was_kept_after_the_user_plane_forgot_it",
            ),
            (
                "EitherLifeBelieved",
                "strowger_pfcp_node",
                "simulation::both_have_what_was_kept_after_the_user_plane_forgot_it",
            ),
            (
                "SilenceUnnoticed",
                "lifetime",
                "restoration::a_peer_that_is_silent_is_asked_by_heartbeats_until_it_answers",
            ),
        ],
    },
    BugSet {
        lists: &["crates/wasm/src/seeded_bug.rs"],
        package: "crates/wasm",
        tests: &["fairness"],
        first: ("fairness", ""),
        seeds: None,
        real: &["fairness"],
        aimed: &[
            (
                "GuestsAsUrgent",
                "fairness",
                "hogs::guest_threads_have_the_priority_that_the_node_says",
            ),
            (
                "CpuLimitIgnored",
                "fairness",
                "limits::a_call_that_has_used_its_processor_time_ends_wherever_it_runs",
            ),
            (
                "KilledComputesOn",
                "fairness",
                "hogs::a_component_that_is_killed_computes_no_more",
            ),
            (
                "CapIgnored",
                "fairness",
                "limits::a_manifest_that_asks_for_more_than_the_node_allows_is_not_loaded",
            ),
            (
                "HogStaysOnWorker",
                "fairness",
                "hogs::a_component_that_is_quick_again_comes_back",
            ),
            (
                "WeightIgnored",
                "fairness",
                "share::components_share_guest_threads_by_weight",
            ),
            (
                "ShareIgnored",
                "fairness",
                "share::a_share_of_a_processor_holds_and_is_counted",
            ),
            (
                "WayNotMade",
                "fairness",
                "hogs::calls_make_way_however_many_of_them_there_are",
            ),
            (
                "WorkerNotHandedOver",
                "fairness",
                "hogs::calls_without_an_end_give_their_workers_away",
            ),
            (
                "QuarantineIgnored",
                "fairness",
                "share::a_component_that_stays_beyond_its_share_is_put_into_quarantine_if_the_node_\
                 says_so",
            ),
        ],
    },
];

/// Time limit of a test binary. A timeout proves nothing: the machine may be slow.
const BINARY_TIMEOUT: Duration = Duration::from_secs(300);

/// Options of `cargo xtask bugs`.
#[derive(Debug, clap::Args)]
pub(crate) struct BugsArgs {
    /// Seed only these bugs
    bugs: Vec<String>,
    /// Print the names of the bugs
    #[arg(long)]
    list: bool,
}

/// Enables each bug, or those named by `args`, and reports which test found it.
pub(crate) fn run(project: &Project, args: &BugsArgs) -> Outcome {
    let mut known = Vec::new();
    for set in &BUG_SETS {
        known.extend(bugs(project, set)?);
    }
    if args.list {
        known.iter().for_each(|bug| term::line(bug));
        return Ok(());
    }
    if let Some(unknown) = args.bugs.iter().find(|name| !known.contains(name)) {
        return Err(format!("no bug `{unknown}`: {}", known.join(", ")));
    }
    run_bugs(project, &args.bugs).map(|found| term::note(&found))
}

/// Enables all bugs and returns the phrase for the summary of `cargo xtask ci`.
pub(crate) fn all(project: &Project) -> Result<Option<String>, String> {
    run_bugs(project, &[]).map(Some)
}

/// Enables the wanted bugs, or all.
fn run_bugs(project: &Project, wanted: &[String]) -> Result<String, String> {
    let (mut count, mut missed) = (0, Vec::new());
    for set in &BUG_SETS {
        let mut bugs = bugs(project, set)?;
        bugs.retain(|bug| wanted.is_empty() || wanted.contains(bug));
        if !bugs.is_empty() {
            count += bugs.len();
            missed.extend(run_set(project, set, &bugs)?);
        }
    }
    if missed.is_empty() {
        return Ok(format!("{count} of {count} seeded bugs found"));
    }
    let missed = missed.join(", ");
    Err(format!("no test finds {missed}"))
}

/// Enables bugs of one set and returns those that no test finds.
fn run_set(project: &Project, set: &BugSet, bugs: &[String]) -> Result<Vec<String>, String> {
    let binaries = test_binaries(project, set)?;
    let mut sound = HashSet::new();
    let mut missed = Vec::new();
    for bug in bugs {
        let begun = Instant::now();
        let mut found = None;
        for (at, only) in order(&binaries, set, bug) {
            let binary = &binaries[at];
            // A test that fails without a bug would find every bug.
            let whole = (at, Vec::new());
            if !sound.contains(&whole) && sound.insert((at, only.clone())) {
                assert_sound(binary, set, &only)?;
            }
            found = first_finder(binary, set, bug, &only)?;
            if found.is_some() {
                break;
            }
        }
        let by = found.as_deref().unwrap_or("nothing");
        let took = term::human(begun.elapsed());
        term::note(&format!("  {bug:<28} {took:>8}  found by {by}"));
        if found.is_none() {
            missed.push(bug.clone());
        }
    }
    Ok(missed)
}

/// Returns the binaries of a set, in its order. The build is that of `cargo xtask test`: the tests
/// contain the bugs, and none is active.
fn test_binaries(project: &Project, set: &BugSet) -> Result<Vec<Binary>, String> {
    let mut cargo = project.cargo();
    cargo.args(["test", "--workspace", "--locked"]);
    let built = binaries::build(&mut cargo)?;
    let folder = project.root().join(set.package);
    let find = |name: &&str| {
        let is_it = |one: &&Binary| one.name == *name && one.folder == folder;
        let found = built.iter().find(is_it).cloned();
        found.ok_or_else(|| format!("cargo built no test program `{name}`"))
    };
    set.tests.iter().map(find).collect()
}

/// Returns the binaries that look for a bug, in order, with their tests if not all run. The test
/// aimed at the bug comes first.
fn order(binaries: &[Binary], set: &BugSet, bug: &str) -> Vec<(usize, Vec<String>)> {
    let aimed = set.aimed.iter().filter(|(aim, ..)| *aim == bug);
    let aimed = aimed.filter_map(|(_, name, test)| {
        let at = binaries.iter().position(|one| one.name == *name)?;
        Some((at, vec![(*test).to_owned()]))
    });
    let all = (0..binaries.len()).map(|at| (at, Vec::new()));
    aimed.chain(all).collect()
}

/// The result of running a binary.
#[derive(Debug, PartialEq, Eq)]
enum BinaryResult {
    Passed,
    /// The names of the failed tests, if the output has them, and a description.
    Failed(Vec<String>, String),
    /// The binary exceeded the time limit.
    TimedOut,
}

/// Fails unless these tests of a binary, or all of them, pass without a bug.
fn assert_sound(binary: &Binary, set: &BugSet, only: &[String]) -> Result<(), String> {
    let name = &binary.name;
    let is_real = set.real.contains(&name.as_str());
    let mut endless = false;
    let found = verdict(is_real, only, |tests| {
        let end = run_tests(binary, set, "", tests)?;
        endless |= end == BinaryResult::TimedOut;
        Ok(end)
    })?;
    match found {
        Some(found) => Err(format!("without any bug: {name}: {found}")),
        None if endless => Err(format!(
            "without any bug: {name} takes longer than {BINARY_TIMEOUT:?}"
        )),
        None => Ok(()),
    }
}

/// Runs tests of a binary, or all of them, with a bug and returns what found it.
fn first_finder(
    binary: &Binary,
    set: &BugSet,
    bug: &str,
    only: &[String],
) -> Result<Option<String>, String> {
    let name = &binary.name;
    let is_real = set.real.contains(&name.as_str());
    let found = verdict(is_real, only, |tests| run_tests(binary, set, bug, tests))?;
    Ok(found.map(|found| format!("{name}: {found}")))
}

/// Returns what a failure proves, if anything: a test on the real clock must fail twice. `run`
/// receives the tests that count, or none if all do; the first run receives `only`.
fn verdict(
    is_real: bool,
    only: &[String],
    mut run: impl FnMut(&[String]) -> Result<BinaryResult, String>,
) -> Result<Option<String>, String> {
    let BinaryResult::Failed(tests, found) = run(only)? else {
        return Ok(None);
    };
    if !is_real {
        return Ok(Some(found));
    }
    match run(&tests)? {
        BinaryResult::Failed(_, again) => Ok(Some(again)),
        BinaryResult::Passed | BinaryResult::TimedOut => Ok(None),
    }
}

/// Runs tests of a binary with a bug: the named ones, or those that count.
fn run_tests(
    binary: &Binary,
    set: &BugSet,
    bug: &str,
    tests: &[String],
) -> Result<BinaryResult, String> {
    let mut command: Command = binary.command();
    if !tests.is_empty() {
        command.arg("--exact").args(tests);
    } else if binary.name == set.first.0 && !set.first.1.is_empty() {
        command.arg(set.first.1);
    }
    command
        .env("STROWGER_BUG", bug)
        .envs(set.seeds)
        .env("RUST_BACKTRACE", "0");
    let Some(output) = process::output_within(&mut command, BINARY_TIMEOUT)? else {
        return Ok(BinaryResult::TimedOut);
    };
    if output.status.success() {
        return Ok(BinaryResult::Passed);
    }
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(BinaryResult::Failed(
        failures(&said),
        first_failure(&output),
    ))
}

/// Returns the failed tests.
fn failures(said: &str) -> Vec<String> {
    let failed = said
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    failed.map(str::to_owned).collect()
}

/// Returns the failed test or, for the storm, the seed.
fn first_failure(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout);
    let seed = said
        .lines()
        .find_map(|line| line.split_once(" fails; replay it"))
        .map(|(seed, _)| seed.to_owned());
    let failed = failures(&said).into_iter().next();
    seed.or(failed)
        .unwrap_or_else(|| format!("it ended with {}", output.status))
}

/// Returns the names of the bugs of a set, from the sources.
fn bugs(project: &Project, set: &BugSet) -> Result<Vec<String>, String> {
    let mut bugs = Vec::new();
    for list in set.lists {
        let text = std::fs::read_to_string(project.root().join(list))
            .map_err(|error| format!("cannot read {list}: {error}"))?;
        let found = variants(&text);
        if found.is_empty() {
            return Err(format!("{list} has no `bugs!`"));
        }
        bugs.extend(found);
    }
    Ok(bugs)
}

fn variants(text: &str) -> Vec<String> {
    text.lines()
        .skip_while(|line| !line.contains("bugs! {"))
        .skip(1)
        .take_while(|line| *line != "}")
        .map(str::trim)
        .filter(|line| !line.starts_with("//"))
        .map(|line| line.trim_end_matches(',').to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the verdict on runs with these results, and the tests that the last run received.
    fn judged(is_real: bool, ends: Vec<BinaryResult>) -> (Option<String>, Vec<String>) {
        let (mut ends, mut given) = (ends.into_iter(), Vec::new());
        let found = verdict(is_real, &[], |tests| {
            given = tests.to_vec();
            ends.next().ok_or_else(|| "one run too many".to_owned())
        });
        (found.expect("as many runs as there are ends"), given)
    }

    fn failed(test: &str) -> BinaryResult {
        BinaryResult::Failed(vec![test.to_owned()], test.to_owned())
    }

    #[test]
    fn a_failure_on_the_real_clock_counts_when_the_test_fails_again() {
        let found = Some("one".to_owned());
        let twice = judged(true, vec![failed("one"), failed("one")]);
        assert_eq!(twice, (found.clone(), vec!["one".to_owned()]));
        assert_eq!(
            judged(true, vec![failed("one"), BinaryResult::Passed]).0,
            None
        );
        assert_eq!(
            judged(true, vec![failed("one"), BinaryResult::TimedOut]).0,
            None
        );
        assert_eq!(judged(false, vec![failed("one")]), (found, vec![]));
    }

    #[test]
    fn a_run_that_does_not_end_finds_nothing() {
        for is_real in [false, true] {
            assert_eq!(judged(is_real, vec![BinaryResult::TimedOut]).0, None);
            assert_eq!(judged(is_real, vec![BinaryResult::Passed]).0, None);
        }
    }

    #[test]
    fn the_test_that_is_aimed_at_a_bug_comes_first() {
        let set = &BUG_SETS[1];
        let (bug, binary, test) = set.aimed[0];
        let binaries = ["first", binary].map(Binary::named);
        let aimed = order(&binaries, set, bug);
        let all = [(0, vec![]), (1, vec![])];
        assert_eq!(aimed[0], (1, vec![test.to_owned()]));
        assert_eq!(aimed[1..], all);
        assert_eq!(order(&binaries, set, "Other"), all);
    }

    #[test]
    fn aims_are_at_bugs_that_there_are() {
        let project = Project::locate().expect("the repository");
        for set in &BUG_SETS {
            let known = bugs(&project, set).expect("the sources list them");
            for (bug, binary, test) in set.aimed {
                assert!(known.iter().any(|one| one == bug), "{bug}");
                assert!(set.tests.contains(binary), "{binary} runs {test}");
            }
        }
    }

    #[test]
    fn failures_are_named() {
        let said = "test a::b ... ok\ntest a::c ... FAILED\ntest d ... FAILED\n";
        assert_eq!(failures(said), ["a::c", "d"]);
    }

    #[test]
    fn bugs_are_the_variants() {
        let text = "//! bugs\nstrowger_seeded_bug::bugs! {\n    /// One.\n    One,\n    Two,\n}\n\
                    fn x() {}\n";
        assert_eq!(variants(text), ["One", "Two"]);
    }
}
