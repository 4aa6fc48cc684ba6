//! Roles, and the permissions that they grant.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The role of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads, and changes nothing.
    Viewer,
    /// Reads, sends messages to actors, calls tools, and manages the node.
    Operator,
    /// Sends messages to actors and calls tools, and does nothing else.
    Agent,
    /// The user who may open the node's Unix sockets. No token has this role.
    #[serde(skip_deserializing)]
    Owner,
}

/// The category of an operation, which decides the roles that may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Identification of the node and the client. Every role grants it.
    Basic,
    /// Reads the state of the node.
    Read,
    /// Sends a message to an actor or calls a tool, which may change the state of either.
    Interact,
    /// Changes the node itself.
    Manage,
}

impl Role {
    /// The roles that a token may have.
    pub const FOR_TOKENS: [Self; 3] = [Self::Viewer, Self::Operator, Self::Agent];

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

    /// Returns `true` if the role grants the permission.
    #[must_use]
    pub const fn grants(self, permission: Permission) -> bool {
        match permission {
            Permission::Basic => true,
            Permission::Read => matches!(self, Self::Viewer | Self::Operator | Self::Owner),
            Permission::Interact => matches!(self, Self::Operator | Self::Agent | Self::Owner),
            Permission::Manage => matches!(self, Self::Operator | Self::Owner),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Permission {
    /// Returns the name of the permission, as `methods` lists it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Basic => "begin",
            Self::Read => "read",
            Self::Interact => "speak",
            Self::Manage => "manage",
        }
    }

    /// Returns `true` if operations with this permission may change something; every use of such an
    /// operation is recorded.
    #[must_use]
    pub const fn is_write(self) -> bool {
        match self {
            Self::Basic | Self::Read => false,
            Self::Interact | Self::Manage => true,
        }
    }

    /// Returns the roles of tokens that grant the permission.
    pub fn roles(self) -> impl Iterator<Item = Role> {
        let roles = Role::FOR_TOKENS.into_iter();
        roles.filter(move |role| role.grants(self))
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
