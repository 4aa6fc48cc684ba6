//! The verbs of a node: every operation of callers, with the right that it requires.
//!
//! Each method is registered with one of these, so that none lacks a right. `docs/doors.md` has
//! them as a table, which a test compares with this one.

use strowger_gateway::access::{Operation, Resource};

/// The actor that owns the sockets for PFCP, which stands for the N4 part of the node.
const N4: Resource = Resource::Address("/node/n4");

pub(crate) const LOGS: Operation =
    Operation::reads("logs").with_resource(Resource::PerRow("path", ""));

pub(super) const SESSIONS: Operation =
    Operation::reads("pfcp.sessions").with_resource(Resource::PerRow("path", ""));
pub(super) const RULES: Operation = Operation::reads("pfcp.rules").with_resource(N4);
pub(super) const ASSOCIATIONS: Operation =
    Operation::reads("pfcp.associations").with_resource(Resource::PerRow("path", ""));
pub(super) const STATS: Operation = Operation::reads("pfcp.stats").with_resource(N4);
pub(super) const PFDS: Operation = Operation::reads("pfcp.pfds").with_resource(N4);
pub(super) const RELEASE: Operation = Operation::manages("pfcp.release").with_resource(N4);
pub(super) const REPORT: Operation = Operation::manages("pfcp.report").with_resource(N4);

pub(super) const LIST: Operation =
    Operation::reads("component.list").with_resource(Resource::PerRow("name", COMPONENTS));
// The manifest sets the grants of the code, so deploying it means granting them: this requires
// rights on the whole node.
pub(super) const DEPLOY: Operation =
    Operation::manages("component.deploy").with_resource(Resource::Node);
pub(super) const UPGRADE: Operation =
    Operation::manages("component.upgrade").with_resource(Resource::Node);
pub(super) const ROLLBACK: Operation =
    Operation::manages("component.rollback").with_resource(Resource::KeyParam(COMPONENTS, "name"));
pub(super) const REMOVE: Operation =
    Operation::manages("component.remove").with_resource(Resource::KeyParam(COMPONENTS, "name"));
// `component.begin` runs any of the methods above.
pub(super) const BEGIN: Operation =
    Operation::manages("component.begin").with_resource(Resource::Node);
pub(super) const WATCH: Operation =
    Operation::reads("component.watch").with_resource(Resource::Node);
pub(super) const CANCEL: Operation =
    Operation::manages("component.cancel").with_resource(Resource::Node);

const COMPONENTS: &str = "/components";

/// The tools that the caller may call; the list is empty for a viewer.
pub(crate) const TOOLS: Operation = Operation::basic("mcp.tools");
/// The audit records the tool, whichever way it is called.
pub(crate) const CALL: Operation = Operation::CALL_TOOL.recorded_elsewhere();

/// The verbs of the methods that a node adds to those of the control socket.
const NODE_VERBS: [Operation; 18] = [
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
pub(crate) fn all() -> impl Iterator<Item = &'static Operation> {
    let of_doors = Operation::OF_ENDPOINTS
        .iter()
        .chain(Operation::control_methods());
    of_doors.chain(&NODE_VERBS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    use strowger_gateway::access::{Permission, Role};

    use super::*;

    #[test]
    fn verb_names_are_unique() {
        let names: BTreeSet<&str> = all().map(Operation::name).collect();
        assert_eq!(names.len(), all().count());
    }

    #[test]
    fn only_forwarded_verbs_write_without_an_audit_record() {
        for verb in all() {
            let is_left = verb.name() == CALL.name();
            assert_eq!(
                verb.is_recorded(),
                verb.permission().is_write() && !is_left,
                "{verb:?}"
            );
        }
    }

    /// Describes the address that a call concerns.
    fn about(subject: Resource) -> String {
        match subject {
            Resource::NoAddress => "none".to_owned(),
            Resource::Node => "`/`".to_owned(),
            Resource::Address(path) => format!("`{path}`"),
            Resource::AddressParam(name) => format!("its `{name}`"),
            Resource::KeyParam(above, name) => format!("`{above}/` and its `{name}`"),
            Resource::PerRow(member, "") => format!("each row's `{member}`"),
            Resource::PerRow(member, above) => format!("`{above}/` and each row's `{member}`"),
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
            let has = |role: Role| {
                if role.grants(verb.permission()) {
                    "yes"
                } else {
                    "-"
                }
            };
            let recorded = match verb.permission() {
                Permission::Basic | Permission::Read => "-",
                Permission::Interact | Permission::Manage => "yes",
            };
            let subject = match verb.name() {
                "tell" | "ask" | "stream" | "subscribe" => "that of the message".to_owned(),
                _ => about(verb.resource()),
            };
            let [viewer, operator, agent] = Role::FOR_TOKENS.map(has);
            // Writing to a `String` cannot fail.
            let _ = writeln!(
                table,
                "| `{}` | {} | {viewer} | {operator} | {agent} | {recorded} | {subject} |",
                verb.name(),
                verb.permission(),
            );
        }
        let document = include_str!("../../../../docs/doors.md");
        assert!(
            document.contains(&table),
            "docs/doors.md should have:\n{table}"
        );
    }
}
