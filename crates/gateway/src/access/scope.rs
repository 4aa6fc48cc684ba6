//! The addresses and operations that a token is limited to.

use std::collections::BTreeSet;

use strowger::{ActorPath, PathPattern};

use super::operation::Operation;

/// The addresses and operations of a token, parsed once.
#[derive(Debug, Clone, Default)]
pub(super) struct TokenScope {
    /// `None` if every address is in reach.
    addresses: Option<Vec<PathPattern>>,
    /// `None` if every operation of the role is allowed.
    operations: Option<BTreeSet<String>>,
}

impl TokenScope {
    pub(super) fn limit_addresses(&mut self, patterns: Vec<PathPattern>) {
        let is_all = |pattern: &PathPattern| matches!(pattern.to_string().as_str(), "/**" | "**");
        self.addresses = (!patterns.iter().any(is_all)).then_some(patterns);
    }

    pub(super) fn limit_operations(&mut self, operations: impl IntoIterator<Item = String>) {
        self.operations = Some(operations.into_iter().collect());
    }

    /// Returns `true` if no address is out of reach.
    pub(super) const fn allows_all_addresses(&self) -> bool {
        self.addresses.is_none()
    }

    pub(super) fn allows_address(&self, address: &ActorPath) -> bool {
        let any = |patterns: &Vec<PathPattern>| patterns.iter().any(|one| one.matches(address));
        self.addresses.as_ref().is_none_or(any)
    }

    /// Returns `true` if the operation is allowed. Operations with
    /// [`Permission::Basic`](super::Permission::Basic) always are.
    pub(super) fn allows_operation(&self, operation: &Operation) -> bool {
        let is_named = |operations: &BTreeSet<String>| operations.contains(operation.name());
        operation.permission() == super::Permission::Basic
            || self.operations.as_ref().is_none_or(is_named)
    }

    pub(super) fn addresses(&self) -> Vec<String> {
        match &self.addresses {
            None => vec!["/**".to_owned()],
            Some(patterns) => patterns.iter().map(ToString::to_string).collect(),
        }
    }

    pub(super) fn operations(&self) -> Option<Vec<&str>> {
        let operations = self.operations.as_ref()?;
        Some(operations.iter().map(String::as_str).collect())
    }
}
