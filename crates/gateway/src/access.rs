//! Access control: tokens, roles, and one decision for all endpoints about each operation.
//!
//! A [`Caller`] is the other side of a connection: the owner of the node, whose endpoints are files
//! with mode 0600, or a [`Token`] with a role, addresses and operations. An
//! [`Operation`] is a method, a kind of message or the call of a tool. This module decides if it is
//! allowed before any of it runs, and records operations that change something when they end.
//!
//! ```text
//! control methods ─────┐
//! messages ────────────┤   Caller::begin ── refused ──▶ Fault `forbidden`, counted
//! tools of agents ─────┤        │
//! /metrics ────────────┘        └── granted ──▶ the operation runs ──▶ AuditGuard: log and topic
//! ```

mod audit;
mod caller;
mod operation;
mod role;
mod scope;
mod token;

pub use self::audit::AuditRecord;
pub(crate) use self::audit::{AuditGuard, AuditLog};
pub use self::caller::Caller;
pub(crate) use self::caller::RowFilter;
pub use self::operation::{Operation, Resource};
pub use self::role::{Permission, Role};
pub(crate) use self::token::Callers;
pub use self::token::{Token, TokenError};

#[cfg(test)]
mod tests;
