//! Callers, and the decision about what they may do.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use strowger::{ActorPath, ActorSystem, Fault, FaultCode};
use tokio::time::Instant;

use super::audit::{self, AuditGuard, AuditLog};
use super::operation::{Operation, Resource};
use super::role::Role;
use super::token::Token;

/// The other side of a connection. Clones refer to the same caller.
#[derive(Clone)]
pub struct Caller(Arc<CallerInner>);

struct CallerInner {
    token: Token,
    endpoint: &'static str,
    audit: AuditLog,
}

/// The rule that forbids a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusalRule {
    Role,
    Operations,
    Addresses,
}

impl Caller {
    pub(super) fn new(token: Token, endpoint: &'static str, audit: AuditLog) -> Self {
        Self(Arc::new(CallerInner {
            token,
            endpoint,
            audit,
        }))
    }

    /// Creates the owner of a node, who may do everything, for an endpoint with this name.
    #[must_use]
    pub fn owner(system: &ActorSystem, endpoint: &'static str) -> Self {
        // No client shows this token: the endpoints of the owner want none.
        let token = Token::new(Role::Owner.name(), Role::Owner, "");
        Self::new(token, endpoint, AuditLog::new(system))
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
    pub fn endpoint(&self) -> &'static str {
        self.0.endpoint
    }

    /// Checks that the caller may reach an address, for an operation that was allowed but
    /// determines the address only while it runs, as tools do.
    ///
    /// # Errors
    /// Returns `forbidden`, which is counted.
    pub fn check_address(&self, operation: &Operation, address: &str) -> Result<(), Fault> {
        let address = ActorPath::from(address);
        match self.0.token.scope.allows_address(&address) {
            true => Ok(()),
            false => Err(self.refuse(operation, Some(&address), RefusalRule::Addresses)),
        }
    }

    /// Returns `true` if the caller may reach an address. A refusal is not counted: lists just omit
    /// the address.
    #[must_use]
    pub fn can_reach(&self, address: &str) -> bool {
        self.0.token.scope.allows_all_addresses()
            || self.0.token.scope.allows_address(&ActorPath::from(address))
    }

    /// Returns the role and the limits of the caller as a JSON object.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "token": self.name(),
            "role": self.role().name(),
            "door": self.0.endpoint,
            "addresses": self.0.token.scope.addresses(),
            "verbs": self.0.token.scope.operations(),
        })
    }

    /// Returns `true` if some addresses are out of reach.
    pub(crate) fn has_address_limits(&self) -> bool {
        !self.0.token.scope.allows_all_addresses()
    }

    /// Returns `true` if the operation is allowed. Nothing is counted or recorded.
    pub(crate) fn is_allowed(&self, operation: &Operation, address: Option<&ActorPath>) -> bool {
        self.violated_rule(operation, address).is_none()
    }

    /// Decides if the operation is allowed, and opens the audit record of a write.
    ///
    /// # Errors
    /// Returns `forbidden`, which is counted, and recorded if the call would have been a write.
    pub(crate) fn authorize(
        &self,
        operation: &Operation,
        address: Option<&ActorPath>,
        now: Instant,
    ) -> Result<Option<AuditGuard>, Fault> {
        let mut record = match operation.is_recorded() {
            true => self.open_record(operation, address, now),
            false => None,
        };
        match self.violated_rule(operation, address) {
            None => Ok(record),
            Some(rule) => {
                if let Some(record) = &mut record {
                    record.close(Err(FaultCode::Forbidden));
                }
                Err(self.refuse(operation, address, rule))
            }
        }
    }

    /// Opens the record of a write that was authorized before.
    pub(crate) fn open_record(
        &self,
        operation: &Operation,
        address: Option<&ActorPath>,
        now: Instant,
    ) -> Option<AuditGuard> {
        let address = address.map_or("/", ActorPath::as_str);
        AuditGuard::open(self, operation, address, now)
    }

    /// Writes a record with the number of records left out, if any.
    pub(crate) fn flush_audit(&self) {
        audit::flush(self);
    }

    pub(super) fn token(&self) -> &Token {
        &self.0.token
    }

    pub(super) fn audit(&self) -> &AuditLog {
        &self.0.audit
    }

    /// Returns the rule that forbids the operation, if any.
    fn violated_rule(
        &self,
        operation: &Operation,
        address: Option<&ActorPath>,
    ) -> Option<RefusalRule> {
        let Token { role, scope, .. } = self.token();
        if !role.grants(operation.permission()) {
            return Some(RefusalRule::Role);
        }
        if !scope.allows_operation(operation) {
            return Some(RefusalRule::Operations);
        }
        let in_scope = address.is_none_or(|address| scope.allows_address(address));
        (!in_scope).then_some(RefusalRule::Addresses)
    }

    fn refuse(
        &self,
        operation: &Operation,
        address: Option<&ActorPath>,
        rule: RefusalRule,
    ) -> Fault {
        let Token { name, role, .. } = self.token();
        audit::count_refusal(*role, operation);
        let at = address.map_or("/", ActorPath::as_str);
        let (shown, more) = match at.char_indices().nth(MAX_REFUSED_ADDRESS) {
            Some((end, _)) => (&at[..end], "..."),
            None => (at, ""),
        };
        let wanted = operation.name();
        let why = match rule {
            RefusalRule::Role => {
                let roles: Vec<&str> = operation.permission().roles().map(Role::name).collect();
                let roles = roles.join(" or ");
                format!("it needs the role {roles}: use a token with that role")
            }
            RefusalRule::Operations => format!("its `verbs` do not include {wanted}: add it"),
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
            Self::Operations => "verbs",
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
            self.endpoint()
        )
    }
}

/// A filter for the rows of a listing that a caller may see.
#[derive(Debug)]
pub(crate) struct RowFilter {
    caller: Caller,
    operation: Operation,
    shown: u64,
    hidden: u64,
}

impl RowFilter {
    /// Creates the filter for a listing; `None` if the caller may see all of it.
    pub(crate) fn for_caller(caller: &Caller, operation: &Operation) -> Option<Self> {
        let by_row = matches!(operation.resource(), Resource::PerRow(..));
        (by_row && caller.has_address_limits()).then(|| Self {
            caller: caller.clone(),
            operation: *operation,
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
        let Some(address) = self.operation.row_address(row) else {
            return true;
        };
        let sees = self.caller.0.token.scope.allows_address(&address);
        match sees {
            true => self.shown += 1,
            false => self.hidden += 1,
        }
        sees
    }

    /// Refuses a listing if all of its rows were hidden: an empty listing would suggest that
    /// nothing exists.
    pub(crate) fn finish(self) -> Result<(), Fault> {
        if self.hidden == 0 || self.shown > 0 {
            return Ok(());
        }
        Err(self
            .caller
            .refuse(&self.operation, None, RefusalRule::Addresses))
    }
}
