//! Tools as values: what agents are told of them, and what is done when one is called.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strowger::{Code, Fault};

/// What a tool does to the world, for agents that ask their people first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum McpEffect {
    /// It only looks.
    Reads,
    /// It adds, and takes nothing away.
    Adds,
    /// It may overwrite or remove.
    #[default]
    Changes,
}

/// What agents are told of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct McpTool {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it does and when it is the right one, for a model.
    pub about: Cow<'static, str>,
    /// The JSON Schema of its arguments, an object.
    pub input: Value,
    /// The JSON Schema of its structured answer, an object, if it has one.
    pub output: Option<Value>,
    /// What it does to the world.
    pub effect: McpEffect,
}

impl McpTool {
    /// A tool that may change things, with this schema of its arguments.
    #[must_use]
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        about: impl Into<Cow<'static, str>>,
        input: Value,
    ) -> Self {
        Self {
            name: name.into(),
            about: about.into(),
            input,
            output: None,
            effect: McpEffect::default(),
        }
    }

    /// Says what its structured answer is like.
    #[must_use]
    pub fn with_output(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }

    /// Says what it does to the world.
    #[must_use]
    pub fn with_effect(mut self, effect: McpEffect) -> Self {
        self.effect = effect;
        self
    }
}

/// A call of a tool.
#[derive(Debug)]
#[non_exhaustive]
pub struct McpCall {
    /// The arguments, an object or `null`.
    pub arguments: Value,
    /// Where progress is told.
    pub progress: Progress,
}

impl McpCall {
    /// Reads the arguments; without any, as an object without members.
    ///
    /// # Errors
    /// `bad-request`, with what is wrong.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        let read = match &self.arguments {
            Value::Null => T::deserialize(Value::Object(serde_json::Map::new())),
            arguments => T::deserialize(arguments),
        };
        read.map_err(|error| Fault::new(Code::BadRequest, format!("arguments: {error}")))
    }
}

/// Tells how far a call is, if anybody wants to know.
#[derive(Clone, Default)]
pub struct Progress(Listener);

#[derive(Clone, Default)]
enum Listener {
    #[default]
    Nobody,
    Agent(Peer<RoleServer>, ProgressToken),
    Other(Arc<Hear>),
}

type Hear = dyn Fn(f64, Option<f64>, &str) + Send + Sync;

impl Progress {
    /// Lets a function hear how much is done, of how much if that is known, and what is said of
    /// it. It must not block.
    pub fn new(hear: impl Fn(f64, Option<f64>, &str) + Send + Sync + 'static) -> Self {
        Self(Listener::Other(Arc::new(hear)))
    }

    pub(super) fn to(peer: Peer<RoleServer>, token: Option<ProgressToken>) -> Self {
        Self(token.map_or(Listener::Nobody, |token| Listener::Agent(peer, token)))
    }

    /// Says that so much is done, of so much if that is known.
    pub async fn tell(&self, done: f64, of: Option<f64>, text: &str) {
        match &self.0 {
            Listener::Nobody => {}
            Listener::Other(hear) => hear(done, of, text),
            Listener::Agent(peer, token) => {
                let told = ProgressNotificationParam::new(token.clone(), done);
                let mut told = told.with_message(text);
                told.total = of;
                // An agent that has gone wants to know nothing more.
                let _ = peer.notify_progress(told).await;
            }
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = !matches!(self.0, Listener::Nobody);
        f.debug_struct("Progress").field("wanted", &wanted).finish()
    }
}

/// What a tool answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct McpAnswer {
    /// What the model reads or sees.
    pub content: Vec<McpContent>,
    /// The same for programs, as the schema of the tool says.
    pub structured: Option<Value>,
    /// The same for code that calls the tool here. Agents are not sent it: a long text would
    /// come to them twice.
    #[serde(skip)]
    pub for_code: Option<Value>,
    /// Whether the agent is told that the call came to nothing.
    #[serde(default)]
    pub failed: bool,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
#[non_exhaustive]
pub enum McpContent {
    /// A text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// In base64.
        data: String,
        /// Such as `image/png`.
        mime: String,
    },
    /// A sound.
    Audio {
        /// In base64.
        data: String,
        /// Such as `audio/wav`.
        mime: String,
    },
    /// Octets of any other meaning.
    Blob {
        /// In base64.
        data: String,
        /// What they are.
        mime: String,
        /// Where they come from.
        uri: String,
    },
}

impl McpAnswer {
    /// A structured answer; models read it as JSON.
    #[must_use]
    pub fn of(value: Value) -> Self {
        let text = value.to_string();
        Self::text(text).with_structured(value)
    }

    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![McpContent::Text { text: text.into() }],
            ..Self::default()
        }
    }

    /// A piece of content.
    #[must_use]
    pub fn piece(content: McpContent) -> Self {
        Self {
            content: vec![content],
            ..Self::default()
        }
    }

    /// Says that the call came to nothing: what it holds is why.
    #[must_use]
    pub const fn as_failure(mut self) -> Self {
        self.failed = true;
        self
    }

    /// Adds what code that calls the tool gets in the place of the content.
    #[must_use]
    pub fn with_value_for_code(mut self, value: Value) -> Self {
        self.for_code = Some(value);
        self
    }

    /// Adds what programs read.
    #[must_use]
    pub fn with_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<McpAnswer, Fault>> + Send>>;
type Handler = dyn Fn(McpCall) -> Answering + Send + Sync;

/// A tool with what it does.
pub(super) struct Registered {
    pub(super) about: McpTool,
    handler: Box<Handler>,
}

impl Registered {
    pub(super) fn call(&self, call: McpCall) -> Answering {
        (self.handler)(call)
    }
}

/// The tools of a door, by name. A clone is the same.
#[derive(Clone)]
pub struct McpTools {
    pub(super) name: Arc<str>,
    pub(super) version: Arc<str>,
    pub(super) advice: Option<Arc<str>>,
    by_name: BTreeMap<Cow<'static, str>, Arc<Registered>>,
}

impl McpTools {
    /// No tools yet, of a server of this name and version.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            name: Arc::from(name),
            version: Arc::from(version),
            advice: None,
            by_name: BTreeMap::new(),
        }
    }

    /// Tells models how the tools go together.
    #[must_use]
    pub fn with_advice(mut self, advice: &str) -> Self {
        self.advice = Some(Arc::from(advice));
        self
    }

    /// Adds a tool.
    ///
    /// # Panics
    /// When the name is taken.
    #[must_use]
    pub fn register<F>(
        mut self,
        tool: McpTool,
        handler: impl Fn(McpCall) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<McpAnswer, Fault>> + Send + 'static,
    {
        let name = tool.name.clone();
        let registered = Registered {
            about: tool,
            handler: Box::new(move |call| Box::pin(handler(call))),
        };
        let before = self.by_name.insert(name.clone(), Arc::new(registered));
        assert!(before.is_none(), "the tool {name} is registered twice");
        self
    }

    /// What agents are told, in the order of the names.
    pub fn list(&self) -> impl Iterator<Item = &McpTool> {
        self.by_name.values().map(|tool| &tool.about)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(AsRef::as_ref)
    }

    /// Calls a tool as a part of a call that is under way: it has no deadline of its own, and ends
    /// when the future is dropped.
    ///
    /// # Errors
    /// `unknown-target` when there is no such tool; else what the tool says.
    pub async fn call(&self, name: &str, arguments: Value) -> Result<McpAnswer, Fault> {
        let tool = self.find(name).ok_or_else(|| self.unknown(name))?;
        let progress = Progress::default();
        let call = McpCall {
            arguments,
            progress,
        };
        tool.call(call).await
    }

    pub(super) fn unknown(&self, name: &str) -> Fault {
        let known: Vec<&str> = self.names().collect();
        let text = format!("there is no tool {name:?}; there are {}", known.join(", "));
        Fault::new(Code::UnknownTarget, text)
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<Registered>> {
        self.by_name.get(name).cloned()
    }
}

impl fmt::Debug for McpTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
