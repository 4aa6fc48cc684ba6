//! Tokens: a secret with a name, a role, addresses and operations.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use strowger::PathPattern;
use subtle::ConstantTimeEq as _;

use super::audit::{AuditBudgets, AuditLog};
use super::caller::Caller;
use super::role::Role;
use super::scope::TokenScope;

/// A secret that authenticates a client, with a role and optional limits.
///
/// ```
/// use strowger_gateway::access::{Role, Token};
///
/// let token = Token::new("console", Role::Viewer, "sixteen-bytes-xy")
///     .with_addresses(vec!["/node/**".parse()?]);
/// assert_eq!((token.name(), token.role()), ("console", Role::Viewer));
/// assert!(!format!("{token:?}").contains("sixteen"));
/// # Ok::<(), strowger::PathPatternError>(())
/// ```
#[derive(Clone)]
pub struct Token {
    pub(super) name: Arc<str>,
    pub(super) role: Role,
    secret: Arc<str>,
    pub(super) scope: Arc<TokenScope>,
    pub(super) budgets: Arc<AuditBudgets>,
}

/// The error returned for tokens that cannot be used together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The secret is empty, so it protects nothing.
    #[error("the secret of the token {name} is empty")]
    EmptySecret {
        /// The name of the token.
        name: Arc<str>,
    },
    /// Two tokens have the same name, so their audit records would be ambiguous.
    #[error("two tokens have the name {name}")]
    DuplicateName {
        /// The name.
        name: Arc<str>,
    },
    /// Two tokens have the same secret, so their clients would be ambiguous.
    #[error("the tokens {first} and {second} have the same secret")]
    DuplicateSecret {
        /// The name of one token.
        first: Arc<str>,
        /// The name of the other token.
        second: Arc<str>,
    },
}

impl Token {
    /// Creates a token that reaches every address, with every operation of its role.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, role: Role, secret: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            role,
            secret: secret.into(),
            scope: Arc::default(),
            budgets: Arc::default(),
        }
    }

    /// Limits the token to addresses that match one of these patterns.
    #[must_use]
    pub fn with_addresses(mut self, patterns: Vec<PathPattern>) -> Self {
        Arc::make_mut(&mut self.scope).limit_addresses(patterns);
        self
    }

    /// Limits the token to operations with these names; unknown names have no effect.
    #[must_use]
    pub fn with_operations(mut self, operations: impl IntoIterator<Item = String>) -> Self {
        Arc::make_mut(&mut self.scope).limit_operations(operations);
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the role.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Checks that tokens can be used together at one endpoint.
    ///
    /// # Errors
    /// Returns an error if a secret is empty, or two tokens have the same name or secret.
    pub fn check(tokens: &[Self]) -> Result<(), TokenError> {
        let (mut names, mut secrets) = (BTreeMap::new(), BTreeMap::new());
        for token in tokens {
            let name = || Arc::clone(&token.name);
            if token.secret.is_empty() {
                return Err(TokenError::EmptySecret { name: name() });
            }
            if names.insert(&token.name, ()).is_some() {
                return Err(TokenError::DuplicateName { name: name() });
            }
            if let Some(first) = secrets.insert(&token.secret, name()) {
                let second = name();
                return Err(TokenError::DuplicateSecret { first, second });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("name", &self.name)
            .field("role", &self.role)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// The callers of an endpoint, by their secrets.
#[derive(Debug)]
pub(crate) struct Callers(Vec<Caller>);

impl Callers {
    /// Creates the callers with these tokens, for the endpoint with this name.
    pub(crate) fn new(tokens: &[Token], endpoint: &'static str, audit: &AuditLog) -> Self {
        let known = |token: &Token| Caller::new(token.clone(), endpoint, audit.clone());
        Self(tokens.iter().map(known).collect())
    }

    /// Finds the caller with this secret. The time taken depends neither on which caller it is nor
    /// on the length of the matching prefix.
    pub(crate) fn find(&self, given: &[u8]) -> Option<&Caller> {
        let mut found = None;
        for caller in &self.0 {
            if given.ct_eq(caller.token().secret.as_bytes()).into() {
                found = Some(caller);
            }
        }
        found
    }
}
