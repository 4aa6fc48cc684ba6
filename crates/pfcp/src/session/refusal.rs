use std::fmt;

use super::kind::RuleId;
use crate::error::Error;
use crate::ie::{Cause, FailedRuleId, IeType};
use crate::validate::Rejection;

/// The refusal of a request, as reported in the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Cause of the answer (clause 8.2.1).
    pub cause: Cause,
    /// The element at fault.
    pub offending_ie: Option<IeType>,
    /// The rule at fault.
    pub failed_rule: Option<FailedRuleId>,
}

impl Refusal {
    /// Creates a refusal that names no element and no rule.
    #[must_use]
    pub const fn new(cause: Cause) -> Self {
        Self {
            cause,
            offending_ie: None,
            failed_rule: None,
        }
    }

    /// Creates the refusal of a message that does not apply to a rule set.
    pub(crate) const fn unsupported() -> Self {
        Self::new(Cause::SERVICE_NOT_SUPPORTED)
    }

    /// Sets the element at fault.
    #[must_use]
    pub fn at(mut self, ie: IeType) -> Self {
        self.offending_ie = Some(ie);
        self
    }

    /// Sets the rule at fault.
    #[must_use]
    pub fn rule(mut self, rule: RuleId) -> Self {
        self.failed_rule = rule.failed_rule_id();
        self
    }
}

impl Refusal {
    /// Returns the refusal for bytes that cannot be decoded.
    pub(crate) fn of(error: &Error, bytes: &[u8]) -> Self {
        Rejection::of(error, bytes).map_or(Self::new(Cause::INVALID_LENGTH), Self::from)
    }
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Self {
            cause: rejection.cause,
            offending_ie: rejection.offending_ie,
            failed_rule: rejection.failed_rule,
        }
    }
}

impl From<Cause> for Refusal {
    fn from(cause: Cause) -> Self {
        Self::new(cause)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        if let Some(ie) = self.offending_ie {
            write!(f, ", {ie}")?;
        }
        if let Some(rule) = &self.failed_rule {
            write!(f, ", {rule}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}
