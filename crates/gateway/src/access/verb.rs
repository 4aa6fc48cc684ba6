//! Verbs: the operations of callers, with the right that each needs and the address that it is
//! about.

use serde_json::Value;
use strowger::ActorPath;

use super::role::Right;

/// An operation of a caller: a method, a kind of message, or the call of a tool.
///
/// A method is registered with its verb, so there is always a decision about who may call it.
///
/// ```
/// use strowger_gateway::access::{Right, Role, Subject, Verb};
///
/// const DRAIN: Verb = Verb::manages("queue.drain").on(Subject::Below("/queues", "name"));
/// assert_eq!(DRAIN.name(), "queue.drain");
/// assert!(Role::Operator.has(DRAIN.right()) && !Role::Viewer.has(DRAIN.right()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verb {
    name: &'static str,
    right: Right,
    subject: Subject,
    is_recorded: bool,
}

/// The address that a call is about, which its caller must be able to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// No address: the role alone decides.
    Nothing,
    /// The node as a whole, whose address is `/`.
    Node,
    /// A fixed address.
    At(&'static str),
    /// The address in the parameter with this name; without it, the node.
    Param(&'static str),
    /// The key in a parameter, below an address, as in `Below("/components", "name")`. Without the
    /// parameter, that address.
    Below(&'static str, &'static str),
    /// The address in a member of each row, below an address. Rows with an address out of reach are
    /// not shown.
    Rows(&'static str, &'static str),
}

impl Verb {
    /// A message without a reply.
    pub const TELL: Self = Self::speaks("tell");
    /// A message with a single reply.
    pub const ASK: Self = Self::speaks("ask");
    /// A message that is answered with a stream.
    pub const STREAM: Self = Self::speaks("stream");
    /// The stream of a topic, at `@(topic/NAME)`.
    pub const SUBSCRIBE: Self = Self::reads("subscribe");
    /// The page of metrics over HTTP.
    pub const METRICS: Self = Self::reads("metrics").on(Subject::Nothing);
    /// The call of a tool, at `/mcp/tools/NAME`.
    pub const CALL: Self = Self::speaks("mcp.call").on(Subject::Below("/mcp/tools", "name"));

    /// The verbs that are not control methods: those of messages and metrics.
    pub const OF_DOORS: [Self; 5] = [
        Self::TELL,
        Self::ASK,
        Self::STREAM,
        Self::SUBSCRIBE,
        Self::METRICS,
    ];

    const fn new(name: &'static str, right: Right, subject: Subject) -> Self {
        Self {
            name,
            right,
            subject,
            is_recorded: right.writes(),
        }
    }

    /// Creates a verb that every caller may use, and that shows nothing about what the node does.
    #[must_use]
    pub const fn begins(name: &'static str) -> Self {
        Self::new(name, Right::Begin, Subject::Nothing)
    }

    /// Creates a verb that shows what the node does. Its subject is the node unless set otherwise.
    #[must_use]
    pub const fn reads(name: &'static str) -> Self {
        Self::new(name, Right::Read, Subject::Node)
    }

    /// Creates a verb that speaks to an actor or calls a tool. Its subject is the node unless set
    /// otherwise.
    #[must_use]
    pub const fn speaks(name: &'static str) -> Self {
        Self::new(name, Right::Speak, Subject::Node)
    }

    /// Creates a verb that changes the node. Its subject is the node unless set otherwise.
    #[must_use]
    pub const fn manages(name: &'static str) -> Self {
        Self::new(name, Right::Manage, Subject::Node)
    }

    /// Sets the address that a call is about.
    #[must_use]
    pub const fn on(mut self, subject: Subject) -> Self {
        self.subject = subject;
        self
    }

    /// Leaves the record to the operation that the call is passed on to, so that it is not recorded
    /// twice.
    #[must_use]
    pub const fn passed_on(mut self) -> Self {
        self.is_recorded = false;
        self
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the right that the verb needs.
    #[must_use]
    pub const fn right(&self) -> Right {
        self.right
    }

    /// Returns the subject.
    #[must_use]
    pub const fn subject(&self) -> Subject {
        self.subject
    }

    /// Returns `true` if each use is recorded.
    #[must_use]
    pub const fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// Returns the address that a call with these parameters is about, if the caller must be able
    /// to reach one before the call runs.
    pub(crate) fn address(&self, params: &Value) -> Option<ActorPath> {
        Some(match self.subject {
            Subject::Nothing | Subject::Rows(..) => return None,
            Subject::Node => ActorPath::root(),
            Subject::At(path) => ActorPath::from(path),
            Subject::Param(name) => ActorPath::from(params[name].as_str().unwrap_or_default()),
            Subject::Below(above, name) => ActorPath::from(
                format!("{above}/{}", params[name].as_str().unwrap_or_default()).as_str(),
            ),
        })
    }

    /// Returns the address of a row, if the listing is filtered by row. A row without an address is
    /// about the node.
    pub(crate) fn row(&self, row: &Value) -> Option<ActorPath> {
        let Subject::Rows(member, above) = self.subject else {
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
