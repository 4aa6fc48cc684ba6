//! Roles and their rights.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The role of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads, and changes nothing.
    Viewer,
    /// Reads, speaks to actors and tools, and manages the node.
    Operator,
    /// Speaks to actors and calls tools, and does nothing else.
    Agent,
    /// The user who may open the node's Unix sockets. No token has this role.
    #[serde(skip_deserializing)]
    Owner,
}

/// The category of a verb, which decides the roles that may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Right {
    /// Needed by every client to start; shows nothing about what the node does.
    Begin,
    /// Shows what the node does.
    Read,
    /// Speaks to an actor or calls a tool, and so may change the state of either.
    Speak,
    /// Changes the node itself.
    Manage,
}

impl Role {
    /// The roles that a token may have.
    pub const OF_TOKENS: [Self; 3] = [Self::Viewer, Self::Operator, Self::Agent];

    /// Returns the name of the role, as in a configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Agent => "agent",
            Self::Owner => "owner",
        }
    }

    /// Returns `true` if the role has the right.
    #[must_use]
    pub const fn has(self, right: Right) -> bool {
        match right {
            Right::Begin => true,
            Right::Read => matches!(self, Self::Viewer | Self::Operator | Self::Owner),
            Right::Speak => matches!(self, Self::Operator | Self::Agent | Self::Owner),
            Right::Manage => matches!(self, Self::Operator | Self::Owner),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Right {
    /// Returns the name of the right, as `methods` lists it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Read => "read",
            Self::Speak => "speak",
            Self::Manage => "manage",
        }
    }

    /// Returns `true` if verbs with this right may change something; every use of such a verb is
    /// recorded.
    #[must_use]
    pub const fn writes(self) -> bool {
        match self {
            Self::Begin | Self::Read => false,
            Self::Speak | Self::Manage => true,
        }
    }

    /// Returns the roles of tokens that have the right.
    pub fn roles(self) -> impl Iterator<Item = Role> {
        let roles = Role::OF_TOKENS.into_iter();
        roles.filter(move |role| role.has(self))
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
