//! The audit trail: changes made by callers, as lines in the log and messages on a topic.
//!
//! A flood of writes must not fill the log, nor slow the writers down. So each token has two
//! budgets of records, one for messages and tool calls and one for changes of the node: a flood of
//! tells does not hide a kill. Records beyond a budget are counted, and the next record says how
//! many were left out.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use metrics::{counter, describe_counter};
use serde_json::{Value, json};
use strowger::{ActorSystem, FaultCode, Topic};
use tokio::time::Instant;

use super::caller::Caller;
use super::operation::Operation;
use super::role::{Permission, Role};

/// A change that a caller made or was refused; published to [`AuditRecord::TOPIC`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditRecord {
    /// Time when the call ended, in milliseconds since 1970.
    pub at_ms: u64,
    /// The name of the token; `owner` for the owner.
    pub token: Arc<str>,
    /// The role of the caller.
    pub role: Role,
    /// The endpoint that the caller used.
    pub endpoint: &'static str,
    /// The name of the operation; [`AuditRecord::OMITTED`] if the record only has a count.
    pub operation: &'static str,
    /// The address of the call's subject.
    pub address: String,
    /// `done`, `begun` for a stream, or the code of the fault. `lost` is the code of a call that
    /// ended without an answer because it was cancelled or its deadline passed.
    pub outcome: &'static str,
    /// Number of records of this token that were left out before this one.
    pub left_out: u64,
}

impl AuditRecord {
    /// The topic on which the records are published.
    pub const TOPIC: &'static str = "doors/audit";
    /// The operation of a record that only has the count of records left out.
    pub const OMITTED: &'static str = "left-out";

    /// Converts the record to a JSON object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "at_ms": self.at_ms,
            "token": &*self.token,
            "role": self.role.name(),
            "door": self.endpoint,
            "verb": self.operation,
            "address": self.address,
            "outcome": self.outcome,
            "left_out": self.left_out,
        })
    }
}

/// The destination of audit records: the log, and a topic. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct AuditLog(Option<Topic<AuditRecord>>);

impl AuditLog {
    /// Creates the audit trail of a system, without keeping the system alive.
    pub(crate) fn new(system: &ActorSystem) -> Self {
        describe();
        // If the system has no room for another topic, the log remains.
        Self(system.topic::<AuditRecord>(AuditRecord::TOPIC).ok())
    }

    fn write(&self, record: AuditRecord) {
        tracing::info!(
            target: "strowger::audit",
            token = &*record.token,
            role = record.role.name(),
            door = record.endpoint,
            verb = record.operation,
            address = record.address,
            outcome = record.outcome,
            left_out = record.left_out,
            "audit"
        );
        if let Some(topic) = &self.0 {
            topic.publish(record);
        }
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AuditLog").finish_non_exhaustive()
    }
}

const RECORDS: &str = "strowger_audit_records_total";
const OMITTED: &str = "strowger_audit_omitted_total";
const FORBIDDEN: &str = "strowger_forbidden_total";

/// Registers the help texts of the audit metrics.
fn describe() {
    describe_counter!(
        RECORDS,
        "Writes recorded in the audit log, by role of the caller."
    );
    describe_counter!(
        OMITTED,
        "Writes not recorded in the audit log because of its rate limit."
    );
    describe_counter!(
        FORBIDDEN,
        "Calls refused because the caller's token does not grant them, by role and verb."
    );
}

/// Counts a refusal.
pub(super) fn count_refusal(role: Role, operation: &Operation) {
    counter!(FORBIDDEN, "role" => role.name(), "verb" => operation.name()).increment(1);
}

/// The record budgets of a token.
#[derive(Debug, Default)]
pub(super) struct AuditBudgets {
    interact: AuditBudget,
    manage: AuditBudget,
}

impl AuditBudgets {
    /// Returns the budget for operations with a permission that changes something.
    const fn budget_for(&self, permission: Permission) -> &AuditBudget {
        match permission {
            Permission::Manage => &self.manage,
            Permission::Basic | Permission::Read | Permission::Interact => &self.interact,
        }
    }

    fn left_out(&self) -> u64 {
        self.interact.take_left_out() + self.manage.take_left_out()
    }

    /// Returns `true` if something was left out since the last record.
    fn has_left_out(&self) -> bool {
        [&self.interact, &self.manage]
            .iter()
            .any(|meter| meter.left_out.load(Ordering::Relaxed) > 0)
    }
}

/// A budget of records: a burst, then a steady rate.
#[derive(Debug)]
pub(crate) struct AuditBudget {
    base: Instant,
    /// Time when the budget is full again, in nanoseconds after `base`.
    full_at: AtomicU64,
    left_out: AtomicU64,
}

/// Number of records in a burst.
const RECORD_BURST: u64 = 100;
/// Time in which the budget regains one record.
const REFILL_INTERVAL: Duration = Duration::from_millis(50);

impl Default for AuditBudget {
    fn default() -> Self {
        Self {
            base: Instant::now(),
            full_at: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
        }
    }
}

impl AuditBudget {
    /// Takes one record from the budget, or counts it as left out. Never allocates, because it runs
    /// for every message.
    pub(crate) fn admit(&self, now: Instant) -> bool {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let (now, each) = (
            nanos(now.saturating_duration_since(self.base)),
            nanos(REFILL_INTERVAL),
        );
        let take = |full_at: u64| {
            let next = full_at.max(now) + each;
            (next <= now + RECORD_BURST * each).then_some(next)
        };
        let taken = self
            .full_at
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        if taken.is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        taken.is_ok()
    }

    pub(crate) fn take_left_out(&self) -> u64 {
        self.left_out.swap(0, Ordering::Relaxed)
    }
}

/// The record of a write in progress, which is written on drop.
pub(crate) struct AuditGuard(Box<AuditGuardInner>);

struct AuditGuardInner {
    caller: Caller,
    operation: &'static str,
    address: String,
    outcome: &'static str,
}

/// Maximum length of an address in a record, in characters.
const MAX_RECORDED_ADDRESS: usize = 256;

impl AuditGuard {
    /// Opens a record, if the budget allows.
    pub(super) fn open(
        caller: &Caller,
        operation: &Operation,
        address: &str,
        now: Instant,
    ) -> Option<Self> {
        caller
            .token()
            .budgets
            .budget_for(operation.permission())
            .admit(now)
            .then(|| {
                Self(Box::new(AuditGuardInner {
                    caller: caller.clone(),
                    operation: operation.name(),
                    address: sanitized(address),
                    outcome: FaultCode::Lost.as_str(),
                }))
            })
    }

    /// Sets the outcome.
    pub(crate) const fn close(&mut self, result: Result<(), FaultCode>) {
        self.0.outcome = match result {
            Ok(()) => "done",
            Err(code) => code.as_str(),
        };
    }

    /// Writes the record of an operation that has begun and may go on.
    pub(crate) fn begun(mut self) {
        self.0.outcome = "begun";
    }
}

impl Drop for AuditGuard {
    fn drop(&mut self) {
        let AuditGuardInner {
            caller,
            operation,
            address,
            outcome,
        } = &mut *self.0;
        write(caller, operation, std::mem::take(address), outcome);
    }
}

impl fmt::Debug for AuditGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditGuard")
            .field("operation", &self.0.operation)
            .finish_non_exhaustive()
    }
}

/// Writes a record with the number of records left out, if there are any that no record has
/// reported.
pub(super) fn flush(caller: &Caller) {
    if caller.token().budgets.has_left_out() {
        write(caller, AuditRecord::OMITTED, String::new(), "done");
    }
}

fn write(caller: &Caller, operation: &'static str, address: String, outcome: &'static str) {
    let token = caller.token();
    let left_out = token.budgets.left_out();
    let role = caller.role();
    counter!(RECORDS, "role" => role.name()).increment(1);
    counter!(OMITTED, "role" => role.name()).increment(left_out);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    caller.audit().write(AuditRecord {
        at_ms: u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX),
        token: Arc::clone(&token.name),
        role,
        endpoint: caller.endpoint(),
        operation,
        address,
        outcome,
        left_out,
    });
}

/// Sanitizes external text for a line of the log.
fn sanitized(text: &str) -> String {
    let fit = |one: char| if one.is_control() { '\u{fffd}' } else { one };
    text.chars().take(MAX_RECORDED_ADDRESS).map(fit).collect()
}
