//! The verbs of a node: every operation of callers, with the right that it requires.
//!
//! Each method is registered with one of these, so that none lacks a right. `docs/doors.md` has
//! them as a table, which a test compares with this one.

use strowger_gateway::{Subject, Verb};

/// The actor that owns the sockets for PFCP, which stands for the N4 part of the node.
const N4: Subject = Subject::At("/node/n4");

pub(crate) const LOGS: Verb = Verb::reads("logs").on(Subject::Rows("path", ""));

pub(super) const SESSIONS: Verb = Verb::reads("pfcp.sessions").on(Subject::Rows("path", ""));
pub(super) const RULES: Verb = Verb::reads("pfcp.rules").on(N4);
pub(super) const ASSOCIATIONS: Verb =
    Verb::reads("pfcp.associations").on(Subject::Rows("path", ""));
pub(super) const STATS: Verb = Verb::reads("pfcp.stats").on(N4);
pub(super) const PFDS: Verb = Verb::reads("pfcp.pfds").on(N4);
pub(super) const RELEASE: Verb = Verb::manages("pfcp.release").on(N4);
pub(super) const REPORT: Verb = Verb::manages("pfcp.report").on(N4);

pub(super) const LIST: Verb = Verb::reads("component.list").on(Subject::Rows("name", COMPONENTS));
// The manifest sets the grants of the code, so deploying it means granting them: this requires
// rights on the whole node.
pub(super) const DEPLOY: Verb = Verb::manages("component.deploy").on(Subject::Node);
pub(super) const UPGRADE: Verb = Verb::manages("component.upgrade").on(Subject::Node);
pub(super) const ROLLBACK: Verb =
    Verb::manages("component.rollback").on(Subject::Below(COMPONENTS, "name"));
pub(super) const REMOVE: Verb =
    Verb::manages("component.remove").on(Subject::Below(COMPONENTS, "name"));
// `component.begin` runs any of the methods above.
pub(super) const BEGIN: Verb = Verb::manages("component.begin").on(Subject::Node);
pub(super) const WATCH: Verb = Verb::reads("component.watch").on(Subject::Node);
pub(super) const CANCEL: Verb = Verb::manages("component.cancel").on(Subject::Node);

const COMPONENTS: &str = "/components";

/// The tools that the caller may call; the list is empty for a viewer.
pub(crate) const TOOLS: Verb = Verb::begins("mcp.tools");
/// The audit records the tool, whichever way it is called.
pub(crate) const CALL: Verb = Verb::CALL.passed_on();

/// The verbs of the methods that a node adds to those of the control socket.
const NODE_VERBS: [Verb; 18] = [
    LOGS,
    SESSIONS,
    RULES,
    ASSOCIATIONS,
    STATS,
    PFDS,
    RELEASE,
    REPORT,
    LIST,
    DEPLOY,
    UPGRADE,
    ROLLBACK,
    REMOVE,
    BEGIN,
    WATCH,
    CANCEL,
    TOOLS,
    CALL,
];

/// Returns all verbs.
pub(crate) fn all() -> impl Iterator<Item = &'static Verb> {
    let of_doors = Verb::OF_DOORS.iter().chain(Verb::of_control());
    of_doors.chain(&NODE_VERBS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    use strowger_gateway::{Right, Role};

    use super::*;

    #[test]
    fn verb_names_are_unique() {
        let names: BTreeSet<&str> = all().map(Verb::name).collect();
        assert_eq!(names.len(), all().count());
    }

    #[test]
    fn only_forwarded_verbs_write_without_an_audit_record() {
        for verb in all() {
            let is_left = verb.name() == CALL.name();
            assert_eq!(
                verb.is_recorded(),
                verb.right().writes() && !is_left,
                "{verb:?}"
            );
        }
    }

    /// Describes the address that a call concerns.
    fn about(subject: Subject) -> String {
        match subject {
            Subject::Nothing => "none".to_owned(),
            Subject::Node => "`/`".to_owned(),
            Subject::At(path) => format!("`{path}`"),
            Subject::Param(name) => format!("its `{name}`"),
            Subject::Below(above, name) => format!("`{above}/` and its `{name}`"),
            Subject::Rows(member, "") => format!("each row's `{member}`"),
            Subject::Rows(member, above) => format!("`{above}/` and each row's `{member}`"),
            other => panic!("{other:?} has no words"),
        }
    }

    #[test]
    fn documented_verbs_match() {
        let mut table = String::from(
            "| verb | right | viewer | operator | agent | recorded | address |\n\
             |---|---|---|---|---|---|---|\n",
        );
        for verb in all() {
            let has = |role: Role| if role.has(verb.right()) { "yes" } else { "-" };
            let recorded = match verb.right() {
                Right::Begin | Right::Read => "-",
                Right::Speak | Right::Manage => "yes",
            };
            let subject = match verb.name() {
                "tell" | "ask" | "stream" | "subscribe" => "that of the message".to_owned(),
                _ => about(verb.subject()),
            };
            let [viewer, operator, agent] = Role::OF_TOKENS.map(has);
            // Writing to a `String` cannot fail.
            let _ = writeln!(
                table,
                "| `{}` | {} | {viewer} | {operator} | {agent} | {recorded} | {subject} |",
                verb.name(),
                verb.right(),
            );
        }
        let document = include_str!("../../../../docs/doors.md");
        assert!(
            document.contains(&table),
            "docs/doors.md should have:\n{table}"
        );
    }
}
