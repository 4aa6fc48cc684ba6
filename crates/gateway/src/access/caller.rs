//! Callers, and the decision about what they may do.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use strowger::{ActorPath, ActorSystem, Fault, FaultCode};
use tokio::time::Instant;

use super::audit::{self, Audit, Record};
use super::role::Role;
use super::token::Token;
use super::verb::{Subject, Verb};

/// The other side of a connection. Clones refer to the same caller.
#[derive(Clone)]
pub struct Caller(Arc<CallerInner>);

struct CallerInner {
    token: Token,
    door: &'static str,
    audit: Audit,
}

/// The rule that forbids a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusalRule {
    Role,
    Verbs,
    Addresses,
}

impl Caller {
    pub(super) fn new(token: Token, door: &'static str, audit: Audit) -> Self {
        Self(Arc::new(CallerInner { token, door, audit }))
    }

    /// Creates the owner of a node, who may do everything, for an endpoint with this name.
    #[must_use]
    pub fn owner(system: &ActorSystem, door: &'static str) -> Self {
        // No client shows this token: the endpoints of the owner want none.
        let token = Token::new(Role::Owner.name(), Role::Owner, "");
        Self::new(token, door, Audit::of(system))
    }

    /// Returns the name of the token; `owner` for the owner.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.token.name
    }

    /// Returns the role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.0.token.role
    }

    /// Returns the name of the endpoint that the caller uses.
    #[must_use]
    pub fn door(&self) -> &'static str {
        self.0.door
    }

    /// Checks that the caller may reach an address, for a verb that was granted but determines the
    /// address only while it runs, as tools do.
    ///
    /// # Errors
    /// Returns `forbidden`, which is counted.
    pub fn reaches(&self, verb: &Verb, address: &str) -> Result<(), Fault> {
        let address = ActorPath::from(address);
        match self.0.token.scope.has_address(&address) {
            true => Ok(()),
            false => Err(self.refuse(verb, Some(&address), RefusalRule::Addresses)),
        }
    }

    /// Returns `true` if the caller may reach an address. A refusal is not counted: lists just omit
    /// the address.
    #[must_use]
    pub fn sees(&self, address: &str) -> bool {
        self.0.token.scope.has_all_addresses()
            || self.0.token.scope.has_address(&ActorPath::from(address))
    }

    /// Returns the rights of the caller as a JSON object.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "token": self.name(),
            "role": self.role().name(),
            "door": self.0.door,
            "addresses": self.0.token.scope.addresses(),
            "verbs": self.0.token.scope.verbs(),
        })
    }

    /// Returns `true` if some addresses are out of reach.
    pub(crate) fn is_limited(&self) -> bool {
        !self.0.token.scope.has_all_addresses()
    }

    /// Returns `true` if the verb is permitted. Nothing is counted or recorded.
    pub(crate) fn may(&self, verb: &Verb, address: Option<&ActorPath>) -> bool {
        self.rule_against(verb, address).is_none()
    }

    /// Decides if the verb is permitted, and opens the record of a write.
    ///
    /// # Errors
    /// Returns `forbidden`, which is counted, and recorded if the call would have been a write.
    pub(crate) fn begin(
        &self,
        verb: &Verb,
        address: Option<&ActorPath>,
        now: Instant,
    ) -> Result<Option<Record>, Fault> {
        let mut record = match verb.is_recorded() {
            true => self.record(verb, address, now),
            false => None,
        };
        match self.rule_against(verb, address) {
            None => Ok(record),
            Some(rule) => {
                if let Some(record) = &mut record {
                    record.close(Err(FaultCode::Forbidden));
                }
                Err(self.refuse(verb, address, rule))
            }
        }
    }

    /// Opens the record of a write that was authorized before.
    pub(crate) fn record(
        &self,
        verb: &Verb,
        address: Option<&ActorPath>,
        now: Instant,
    ) -> Option<Record> {
        let address = address.map_or("/", ActorPath::as_str);
        Record::open(self, verb, address, now)
    }

    /// Writes a record with the number of records left out, if any.
    pub(crate) fn flush(&self) {
        audit::flush(self);
    }

    pub(super) fn token(&self) -> &Token {
        &self.0.token
    }

    pub(super) fn audit(&self) -> &Audit {
        &self.0.audit
    }

    /// Returns the rule that forbids the verb, if any.
    fn rule_against(&self, verb: &Verb, address: Option<&ActorPath>) -> Option<RefusalRule> {
        let Token { role, scope, .. } = self.token();
        if !role.has(verb.right()) {
            return Some(RefusalRule::Role);
        }
        if !scope.has_verb(verb) {
            return Some(RefusalRule::Verbs);
        }
        let is_near = address.is_none_or(|address| scope.has_address(address));
        (!is_near).then_some(RefusalRule::Addresses)
    }

    fn refuse(&self, verb: &Verb, address: Option<&ActorPath>, rule: RefusalRule) -> Fault {
        let Token { name, role, .. } = self.token();
        audit::count_refusal(*role, verb);
        let at = address.map_or("/", ActorPath::as_str);
        let (shown, more) = match at.char_indices().nth(MAX_REFUSED_ADDRESS) {
            Some((end, _)) => (&at[..end], "..."),
            None => (at, ""),
        };
        let wanted = verb.name();
        let why = match rule {
            RefusalRule::Role => {
                let roles: Vec<&str> = verb.right().roles().map(Role::name).collect();
                let roles = roles.join(" or ");
                format!("it needs the role {roles}: use a token with that role")
            }
            RefusalRule::Verbs => format!("its `verbs` do not include {wanted}: add it"),
            RefusalRule::Addresses => {
                format!("none of its `addresses` matches {shown:?}{more}: add a pattern that does")
            }
        };
        let text = format!(
            "the token {name} (role {role}) may not use {wanted} on {shown:?}{more}: {why}, in \
             [[doors.token]], or connect through a Unix socket of the node's owner"
        );
        Fault::new(FaultCode::Forbidden, text).with_details(json!({
            "token": &**name,
            "role": role.name(),
            "verb": wanted,
            "address": format!("{shown}{more}"),
            "rule": rule.name(),
        }))
    }
}

/// Maximum length of an address in the text of a refusal, in characters.
const MAX_REFUSED_ADDRESS: usize = 256;

impl RefusalRule {
    const fn name(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::Verbs => "verbs",
            Self::Addresses => "addresses",
        }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Caller({}, {}, {})",
            self.name(),
            self.role(),
            self.door()
        )
    }
}

/// A filter for the rows of a listing that a caller may see.
#[derive(Debug)]
pub(crate) struct RowFilter {
    caller: Caller,
    verb: Verb,
    shown: u64,
    hidden: u64,
}

impl RowFilter {
    /// Creates the filter for a listing; `None` if the caller may see all of it.
    pub(crate) fn of(caller: &Caller, verb: &Verb) -> Option<Self> {
        let by_row = matches!(verb.subject(), Subject::Rows(..));
        (by_row && caller.is_limited()).then(|| Self {
            caller: caller.clone(),
            verb: *verb,
            shown: 0,
            hidden: 0,
        })
    }

    /// Returns `true` if the caller may see a row. The last row of a stream, which gives the reason
    /// for its end, has no address.
    pub(crate) fn shows(&mut self, row: &Value) -> bool {
        if row.get("end").is_some() {
            return true;
        }
        let Some(address) = self.verb.row(row) else {
            return true;
        };
        let sees = self.caller.0.token.scope.has_address(&address);
        match sees {
            true => self.shown += 1,
            false => self.hidden += 1,
        }
        sees
    }

    /// Refuses a listing if all of its rows were hidden: an empty listing would suggest that
    /// nothing exists.
    pub(crate) fn end(self) -> Result<(), Fault> {
        if self.hidden == 0 || self.shown > 0 {
            return Ok(());
        }
        Err(self.caller.refuse(&self.verb, None, RefusalRule::Addresses))
    }
}
