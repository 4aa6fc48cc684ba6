//! Operations of callers, each with the permission that it needs and the address that it acts on.

use serde_json::Value;
use strowger::ActorPath;

use super::role::Permission;

/// An operation of a caller: a method, a kind of message, or the call of a tool.
///
/// A method is registered with its operation, so access to every method is decided. In a
/// configuration, operations are listed by name as `verbs`.
///
/// ```
/// use strowger_gateway::access::{Operation, Permission, Resource, Role};
///
/// const DRAIN: Operation =
///     Operation::manages("queue.drain").with_resource(Resource::KeyParam("/queues", "name"));
/// assert_eq!(DRAIN.name(), "queue.drain");
/// assert!(Role::Operator.grants(DRAIN.permission()) && !Role::Viewer.grants(DRAIN.permission()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    name: &'static str,
    permission: Permission,
    resource: Resource,
    is_recorded: bool,
}

/// The address that an operation acts on, which its caller must be able to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resource {
    /// No address: the role alone decides.
    NoAddress,
    /// The node as a whole, whose address is `/`.
    Node,
    /// A fixed address.
    Address(&'static str),
    /// The address in the parameter with this name; the node if the parameter is missing.
    AddressParam(&'static str),
    /// The key in a parameter, below an address, as in `Below("/components", "name")`. Without the
    /// parameter, that address.
    KeyParam(&'static str, &'static str),
    /// The address in a member of each row, below an address. Rows with an address out of reach are
    /// omitted.
    PerRow(&'static str, &'static str),
}

impl Operation {
    /// A message without a reply.
    pub const TELL: Self = Self::interacts("tell");
    /// A message with a single reply.
    pub const ASK: Self = Self::interacts("ask");
    /// A message that is answered with a stream.
    pub const STREAM: Self = Self::interacts("stream");
    /// The stream of a topic, at `@(topic/NAME)`.
    pub const SUBSCRIBE: Self = Self::reads("subscribe");
    /// The page of metrics over HTTP.
    pub const METRICS: Self = Self::reads("metrics").with_resource(Resource::NoAddress);
    /// The call of a tool, at `/mcp/tools/NAME`.
    pub const CALL_TOOL: Self =
        Self::interacts("mcp.call").with_resource(Resource::KeyParam("/mcp/tools", "name"));

    /// The built-in operations that are not control methods: those of messages and metrics.
    pub const OF_ENDPOINTS: [Self; 5] = [
        Self::TELL,
        Self::ASK,
        Self::STREAM,
        Self::SUBSCRIBE,
        Self::METRICS,
    ];

    const fn new(name: &'static str, permission: Permission, resource: Resource) -> Self {
        Self {
            name,
            permission,
            resource,
            is_recorded: permission.is_write(),
        }
    }

    /// Creates an operation that every caller may use, and that shows nothing about the work of the
    /// node.
    #[must_use]
    pub const fn basic(name: &'static str) -> Self {
        Self::new(name, Permission::Basic, Resource::NoAddress)
    }

    /// Creates an operation that reads the state of the node. Its resource is the node unless set
    /// otherwise.
    #[must_use]
    pub const fn reads(name: &'static str) -> Self {
        Self::new(name, Permission::Read, Resource::Node)
    }

    /// Creates an operation that sends a message to an actor or calls a tool. Its resource is the
    /// node unless set otherwise.
    #[must_use]
    pub const fn interacts(name: &'static str) -> Self {
        Self::new(name, Permission::Interact, Resource::Node)
    }

    /// Creates an operation that changes the node. Its resource is the node unless set otherwise.
    #[must_use]
    pub const fn manages(name: &'static str) -> Self {
        Self::new(name, Permission::Manage, Resource::Node)
    }

    /// Sets the resource, whose address the caller must be able to reach.
    #[must_use]
    pub const fn with_resource(mut self, resource: Resource) -> Self {
        self.resource = resource;
        self
    }

    /// Leaves the record to the operation that the call is passed on to, so that it is not recorded
    /// twice.
    #[must_use]
    pub const fn recorded_elsewhere(mut self) -> Self {
        self.is_recorded = false;
        self
    }

    /// Returns the name, as in configurations and audit records.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the permission that the operation needs.
    #[must_use]
    pub const fn permission(&self) -> Permission {
        self.permission
    }

    /// Returns the resource.
    #[must_use]
    pub const fn resource(&self) -> Resource {
        self.resource
    }

    /// Returns `true` if each use is recorded in the audit log.
    #[must_use]
    pub const fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// Returns the address that a call with these parameters is about, if the caller must be able
    /// to reach one before the call runs.
    pub(crate) fn address(&self, params: &Value) -> Option<ActorPath> {
        Some(match self.resource {
            Resource::NoAddress | Resource::PerRow(..) => return None,
            Resource::Node => ActorPath::root(),
            Resource::Address(path) => ActorPath::from(path),
            Resource::AddressParam(name) => {
                ActorPath::from(params[name].as_str().unwrap_or_default())
            }
            Resource::KeyParam(above, name) => ActorPath::from(
                format!("{above}/{}", params[name].as_str().unwrap_or_default()).as_str(),
            ),
        })
    }

    /// Returns the address of a row, if the listing is filtered by row. A row without an address is
    /// about the node.
    pub(crate) fn row_address(&self, row: &Value) -> Option<ActorPath> {
        let Resource::PerRow(member, above) = self.resource else {
            return None;
        };
        let text = row[member].as_str().unwrap_or_default();
        let address = text
            .strip_prefix("@(")
            .and_then(|text| text.strip_suffix(')'));
        let text = address.unwrap_or(text);
        Some(match (text, above) {
            ("", _) => ActorPath::root(),
            (text, "") => ActorPath::from(text),
            (text, above) => ActorPath::from(format!("{above}/{text}").as_str()),
        })
    }
}
