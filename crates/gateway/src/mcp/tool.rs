//! Tools as values: their descriptions for agents and their implementations.

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
use strowger::{ActorPath, Fault, FaultCode};
use tokio::time::Instant;

use super::arguments;
use crate::access::{AuditGuard, Caller, Operation};

/// The effect of a tool on its environment, for agents that ask a person for confirmation first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolEffect {
    /// The tool only reads.
    Reads,
    /// Adds, but removes nothing.
    Adds,
    /// May overwrite or remove.
    #[default]
    Changes,
}

/// The description of a tool for agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tool {
    /// The name of the tool.
    pub name: Cow<'static, str>,
    /// A description for a model: the purpose of the tool, and when to use it.
    pub about: Cow<'static, str>,
    /// The JSON Schema of the arguments, an object.
    pub input: Value,
    /// The JSON Schema of the structured output, an object, if there is one.
    pub output: Option<Value>,
    /// The effect of the tool.
    pub effect: ToolEffect,
    /// The way to the rest of an answer that exceeds the limit, if answers may: "for the rest, pass
    /// ...". Agents read it in the description, behind the limit.
    #[serde(default)]
    pub paging: Option<Cow<'static, str>>,
}

impl Tool {
    /// Creates a tool that may change things, with this schema of its arguments.
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
            effect: ToolEffect::default(),
            paging: None,
        }
    }

    /// Sets the way to the rest of a long answer.
    #[must_use]
    pub fn with_paging(mut self, paging: impl Into<Cow<'static, str>>) -> Self {
        self.paging = Some(paging.into());
        self
    }

    /// Sets the schema of the structured output.
    #[must_use]
    pub fn with_output(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }

    /// Sets the effect.
    #[must_use]
    pub fn with_effect(mut self, effect: ToolEffect) -> Self {
        self.effect = effect;
        self
    }
}

/// A call of a tool.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolRequest {
    /// The arguments, an object or `null`.
    pub arguments: Value,
    /// The receiver of progress reports.
    pub progress: ProgressReporter,
    /// The caller. A tool must not reach anything for its caller that is out of the caller's reach.
    pub caller: Caller,
    /// Maximum bytes of text in a page of the answer; `None` if the answer is for code, which gets
    /// all of it.
    pub page_size: Option<usize>,
}

impl ToolRequest {
    /// Parses the arguments; without arguments, an empty object. A member that is `null` is as good
    /// as absent, and a whole number may be written as `10.0`.
    ///
    /// # Errors
    /// Returns `bad-request` with the reason.
    pub fn parse_arguments<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        arguments::read(&self.arguments)
            .map_err(|error| Fault::new(FaultCode::BadRequest, format!("arguments: {error}")))
    }
}

/// A receiver of progress reports for a call, if there is one.
#[derive(Clone, Default)]
pub struct ProgressReporter(ProgressSink);

#[derive(Clone, Default)]
enum ProgressSink {
    #[default]
    None,
    Agent(Peer<RoleServer>, ProgressToken),
    Function(Arc<ProgressFn>),
}

type ProgressFn = dyn Fn(f64, Option<f64>, &str) + Send + Sync;

impl ProgressReporter {
    /// Reports progress to a function, which gets the amount done, the total if known, and a text.
    /// The function must not block.
    pub fn new(report: impl Fn(f64, Option<f64>, &str) + Send + Sync + 'static) -> Self {
        Self(ProgressSink::Function(Arc::new(report)))
    }

    pub(super) fn for_agent(peer: Peer<RoleServer>, token: Option<ProgressToken>) -> Self {
        Self(token.map_or(ProgressSink::None, |token| ProgressSink::Agent(peer, token)))
    }

    /// Reports the amount done, and the total if known.
    pub async fn report(&self, done: f64, of: Option<f64>, text: &str) {
        match &self.0 {
            ProgressSink::None => {}
            ProgressSink::Function(report) => report(done, of, text),
            ProgressSink::Agent(peer, token) => {
                let told = ProgressNotificationParam::new(token.clone(), done);
                let mut told = told.with_message(text);
                told.total = of;
                // Fails if the agent has disconnected.
                let _ = peer.notify_progress(told).await;
            }
        }
    }
}

impl fmt::Debug for ProgressReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = !matches!(self.0, ProgressSink::None);
        f.debug_struct("ProgressReporter")
            .field("wanted", &wanted)
            .finish()
    }
}

/// The output of a tool.
///
/// The content is complete. Long text belongs only there: if it were structured as well,
/// one message would carry it twice, which clients with a line limit reject. The structured part
/// holds facts beside the content, such as numbers and flags, or repeats content that is short as
/// a whole ([`ToolOutput::structured`]).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The content that the model reads or sees.
    pub content: Vec<ToolContent>,
    /// Facts for programs, in the form that the schema of the tool describes.
    pub structured: Option<Value>,
    /// The value for code that calls the tool on this node. It is not sent to agents, which would
    /// receive long text twice.
    #[serde(skip)]
    pub local_value: Option<Value>,
    /// `true` if the call failed; agents see it as `isError`.
    #[serde(default)]
    pub failed: bool,
}

/// A piece of tool output, as in a `content` block of MCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
#[non_exhaustive]
pub enum ToolContent {
    /// Text for the model.
    Text {
        /// The text itself, without a limit of its own.
        text: String,
    },
    /// A picture, sent in base64.
    Image {
        /// The picture in base64.
        data: String,
        /// The media type, such as `image/png`.
        mime: String,
    },
    /// A sound, sent in base64.
    Audio {
        /// The sound in base64.
        data: String,
        /// The media type, such as `audio/wav`.
        mime: String,
    },
    /// Bytes of any other type, sent in base64.
    Blob {
        /// The bytes in base64.
        data: String,
        /// The media type.
        mime: String,
        /// The source of the bytes.
        uri: String,
    },
}

impl ToolOutput {
    /// Creates short structured output, which models read as JSON. The protocol requires it to be
    /// sent both as text and as a value; for long output use [`ToolOutput::json`].
    #[must_use]
    pub fn structured(value: Value) -> Self {
        let text = value.to_string();
        Self::text(text).with_structured(value)
    }

    /// Creates JSON output of any length. It is sent once, as text; code that calls the tool on
    /// this node gets the value.
    #[must_use]
    pub fn json(value: Value) -> Self {
        let text = value.to_string();
        Self::text(text).with_local_value(value)
    }

    /// Creates text output.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ToolContent::Text { text: text.into() }],
            ..Self::default()
        }
    }

    /// Creates output with one piece of content.
    #[must_use]
    pub fn content(content: ToolContent) -> Self {
        Self {
            content: vec![content],
            ..Self::default()
        }
    }

    /// Appends a block of text.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.content.push(ToolContent::Text { text: text.into() });
        self
    }

    /// Marks the call as failed; the content gives the reason.
    #[must_use]
    pub const fn into_failure(mut self) -> Self {
        self.failed = true;
        self
    }

    /// Sets the value that code on this node gets instead of the content.
    #[must_use]
    pub fn with_local_value(mut self, value: Value) -> Self {
        self.local_value = Some(value);
        self
    }

    /// Sets the structured facts for programs, which must be short.
    #[must_use]
    pub fn with_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }
}

type ToolFuture = Pin<Box<dyn Future<Output = Result<ToolOutput, Fault>> + Send>>;
type ToolHandler = dyn Fn(ToolRequest) -> ToolFuture + Send + Sync;

/// A tool with its implementation.
pub(super) struct RegisteredTool {
    pub(super) definition: Tool,
    handler: Box<ToolHandler>,
}

impl RegisteredTool {
    pub(super) fn call(&self, call: ToolRequest) -> ToolFuture {
        (self.handler)(call)
    }
}

/// The tools of an endpoint, by name. Clones share the tools.
#[derive(Clone)]
pub struct ToolSet {
    pub(super) name: Arc<str>,
    pub(super) version: Arc<str>,
    pub(super) instructions: Option<Arc<str>>,
    by_name: BTreeMap<Cow<'static, str>, Arc<RegisteredTool>>,
}

impl ToolSet {
    /// Creates an empty set of tools, for a server with this name and version.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            name: Arc::from(name),
            version: Arc::from(version),
            instructions: None,
            by_name: BTreeMap::new(),
        }
    }

    /// Sets instructions for models on how to combine the tools.
    #[must_use]
    pub fn with_instructions(mut self, instructions: &str) -> Self {
        self.instructions = Some(Arc::from(instructions));
        self
    }

    /// Adds a tool.
    ///
    /// # Panics
    /// Panics if the name is taken.
    #[must_use]
    pub fn register<F>(
        mut self,
        tool: Tool,
        handler: impl Fn(ToolRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ToolOutput, Fault>> + Send + 'static,
    {
        let name = tool.name.clone();
        let registered = RegisteredTool {
            definition: tool,
            handler: Box::new(move |call| Box::pin(handler(call))),
        };
        let before = self.by_name.insert(name.clone(), Arc::new(registered));
        assert!(before.is_none(), "the tool {name} is registered twice");
        self
    }

    /// Returns the descriptions of the tools, in the order of their names.
    pub fn list(&self) -> impl Iterator<Item = &Tool> {
        self.by_name.values().map(|tool| &tool.definition)
    }

    /// Returns the names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(AsRef::as_ref)
    }

    /// Calls a tool as part of a call in progress, for the same caller. It has no deadline of its
    /// own, and ends when the future is dropped.
    ///
    /// # Errors
    /// Returns `forbidden` if the caller may not call the tool, `unknown-target` if there is no
    /// such tool; else the fault of the tool.
    pub async fn call(
        &self,
        name: &str,
        arguments: Value,
        caller: &Caller,
    ) -> Result<ToolOutput, Fault> {
        let (tool, mut record) = self.begin(name, caller)?;
        let call = ToolRequest {
            arguments,
            progress: ProgressReporter::default(),
            caller: caller.clone(),
            page_size: None,
        };
        let answer = tool.call(call).await;
        if let Some(record) = &mut record {
            close(record, &answer);
        }
        answer
    }

    /// Finds a tool, if the caller may call it, and opens the audit record of the call.
    pub(super) fn begin(
        &self,
        name: &str,
        caller: &Caller,
    ) -> Result<(Arc<RegisteredTool>, Option<AuditGuard>), Fault> {
        let mut record =
            caller.authorize(&Operation::CALL_TOOL, Some(&address(name)), Instant::now())?;
        let Some(tool) = self.find(name) else {
            let fault = self.unknown(name);
            if let Some(record) = &mut record {
                record.close(Err(fault.code));
            }
            return Err(fault);
        };
        Ok((tool, record))
    }

    /// Returns the tools that a caller may call, in the order of their names.
    pub fn list_for(&self, caller: &Caller) -> impl Iterator<Item = &Tool> {
        let may =
            |tool: &&Tool| caller.is_allowed(&Operation::CALL_TOOL, Some(&address(&tool.name)));
        self.list().filter(may)
    }

    pub(super) fn unknown(&self, name: &str) -> Fault {
        let known: Vec<&str> = self.names().collect();
        let text = format!(
            "unknown tool {name:?}; expected one of {}",
            known.join(", ")
        );
        Fault::new(FaultCode::UnknownTarget, text)
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<RegisteredTool>> {
        self.by_name.get(name).cloned()
    }
}

/// Returns the address of a tool.
pub(super) fn address(name: &str) -> ActorPath {
    ActorPath::from(format!("/mcp/tools/{name}").as_str())
}

/// Sets the outcome in the audit record of a call.
pub(super) fn close(record: &mut AuditGuard, answer: &Result<ToolOutput, Fault>) {
    record.close(match answer {
        Ok(answer) if answer.failed => Err(FaultCode::Failed),
        Ok(_) => Ok(()),
        Err(fault) => Err(fault.code),
    });
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
