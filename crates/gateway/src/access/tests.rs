use std::time::Duration;

use serde_json::json;
use strowger::{ActorPath, FaultCode};
use tokio::time::Instant;

use super::audit::{AuditBudget, AuditLog};
use super::{Callers, Operation, Permission, Resource, Role, RowFilter, Token, TokenError};

const PERMISSIONS: [Permission; 4] = [
    Permission::Basic,
    Permission::Read,
    Permission::Interact,
    Permission::Manage,
];

#[test]
fn each_role_grants_its_documented_permissions() {
    for (role, permissions) in [
        (Role::Owner, &PERMISSIONS[..]),
        (Role::Operator, &PERMISSIONS[..]),
        (Role::Viewer, &[Permission::Basic, Permission::Read][..]),
        (Role::Agent, &[Permission::Basic, Permission::Interact][..]),
    ] {
        for permission in PERMISSIONS {
            assert_eq!(
                role.grants(permission),
                permissions.contains(&permission),
                "{role} {permission}"
            );
        }
    }
}

fn callers(token: Token) -> Callers {
    Callers::new(&[token], "tcp", &AuditLog::default())
}

fn token(patterns: &[&str]) -> Token {
    let patterns = patterns.iter().map(|one| one.parse().unwrap()).collect();
    Token::new("t", Role::Operator, "secret").with_addresses(patterns)
}

#[test]
fn address_is_allowed_if_a_pattern_matches() {
    const KILL: Operation =
        Operation::manages("kill").with_resource(Resource::AddressParam("path"));
    for (patterns, path, expected) in [
        (&["/**"][..], "/", true),
        (&["/tools/**"], "/tools/files", true),
        (&["/tools/**"], "tools//files/", true),
        (&["/tools/**"], "/", false),
        (&["/tools/**"], "/toolsmith", false),
        (&["/tools/*"], "/tools/files/a", false),
        (&["/tools/*"], "/tools/../node", false),
        (&["/a", "/b"], "/b", true),
        (&[], "/a", false),
    ] {
        let callers = callers(token(patterns));
        let caller = callers.find(b"secret").unwrap();
        let address = KILL.address(&json!({ "path": path }));
        let granted = caller.authorize(&KILL, address.as_ref(), Instant::now());
        assert_eq!(granted.is_ok(), expected, "{patterns:?} {path}");
    }
    // A path that is not text means the node as a whole.
    assert_eq!(KILL.address(&json!({ "path": 5 })), Some(ActorPath::root()));
    assert_eq!(KILL.address(&json!(null)), Some(ActorPath::root()));
}

#[test]
fn unlisted_operation_is_refused_with_the_rule() {
    let token = token(&["/**"]).with_operations(["ask".to_owned()]);
    let callers = callers(token);
    let caller = callers.find(b"secret").unwrap();
    let at = ActorPath::from("/a");
    let begin = |operation: &Operation| caller.authorize(operation, Some(&at), Instant::now());
    assert!(begin(&Operation::ASK).is_ok());
    assert!(begin(&Operation::basic("ping")).is_ok());
    let fault = begin(&Operation::TELL).expect_err("it is not listed");
    assert_eq!(fault.code, FaultCode::Forbidden);
    assert!(!fault.retryable);
    let details = *fault.details.unwrap();
    let told = json!({
        "token": "t", "role": "operator", "verb": "tell", "address": "/a", "rule": "verbs",
    });
    assert_eq!(details, told);
    for part in [
        "token t",
        "role operator",
        "tell",
        "\"/a\"",
        "[[doors.token]]",
    ] {
        assert!(fault.message.contains(part), "{part}: {}", fault.message);
    }
}

#[test]
fn ambiguous_tokens_are_rejected() {
    let token = |name: &str, secret: &str| Token::new(name, Role::Viewer, secret);
    let same = Token::check(&[token("a", "x"), token("b", "x")]);
    assert!(
        matches!(same, Err(TokenError::DuplicateSecret { .. })),
        "{same:?}"
    );
    let same = Token::check(&[token("a", "x"), token("a", "y")]);
    assert!(
        matches!(same, Err(TokenError::DuplicateName { .. })),
        "{same:?}"
    );
    let empty = Token::check(&[token("a", "")]);
    assert!(
        matches!(empty, Err(TokenError::EmptySecret { .. })),
        "{empty:?}"
    );
    assert_eq!(Token::check(&[token("a", "x"), token("b", "y")]), Ok(()));
}

#[test]
fn rows_outside_the_addresses_are_hidden() {
    const PS: Operation = Operation::reads("ps").with_resource(Resource::PerRow("path", ""));
    let of = |patterns: &[&str]| {
        let callers = callers(token(patterns));
        RowFilter::for_caller(callers.find(b"secret").unwrap(), &PS)
    };
    assert!(of(&["/**"]).is_none());
    let mut filter = of(&["/a/**"]).unwrap();
    assert!(filter.shows(&json!({ "path": "/a/b" })));
    assert!(!filter.shows(&json!({ "path": "/b" })));
    assert!(
        !filter.shows(&json!({ "path": null })),
        "it is about the node"
    );
    assert!(filter.shows(&json!({ "end": null, "lost": 0 })));
    assert!(filter.finish().is_ok());
    let mut filter = of(&["/a/**"]).unwrap();
    assert!(!filter.shows(&json!({ "path": "/b" })));
    let end = filter.finish().expect_err("nothing was shown");
    assert_eq!(end.code, FaultCode::Forbidden);
    assert!(!end.message.contains("/b"), "{}", end.message);
    assert!(
        of(&["/a/**"]).unwrap().finish().is_ok(),
        "no actor is exposed there"
    );
}

#[test]
fn row_addresses_are_parsed_in_every_notation() {
    let exposed = Operation::reads("exposed").with_resource(Resource::PerRow("address", ""));
    let row = |operation: &Operation, row| operation.row_address(&row).unwrap();
    let at = json!({ "address": "@(tools/files)" });
    assert_eq!(row(&exposed, at), ActorPath::from("/tools/files"));
    let list = Operation::reads("list").with_resource(Resource::PerRow("name", "/components"));
    let one = json!({ "name": "qos" });
    assert_eq!(row(&list, one), ActorPath::from("/components/qos"));
    assert_eq!(row(&list, json!({})), ActorPath::root());
}

#[tokio::test(start_paused = true)]
async fn audit_budget_allows_a_burst_and_then_a_rate() {
    let budget = AuditBudget::default();
    let admitted = |count: u64| (0..count).filter(|_| budget.admit(Instant::now())).count();
    assert_eq!(admitted(1000), 100);
    assert_eq!(budget.take_left_out(), 900);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(admitted(1000), 20);
    assert_eq!(budget.take_left_out(), 980);
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(admitted(1000), 100, "rest is not saved up");
    // A clock that went backwards does not overdraw the budget.
    assert!(!budget.admit(Instant::now() - Duration::from_secs(1800)));
}
