//! The protocol handler, which answers the requests of an agent from the list of tools.

use std::sync::Arc;

use hyper::http::request::Parts;
use rmcp::model::{
    self, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, ErrorData, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ResourceContents, ServerCapabilities, ServerConfig, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;
use strowger::{Fault, FaultCode};

use super::McpServer;
use super::tool::{ProgressReporter, Tool, ToolContent, ToolEffect, ToolOutput};
use crate::access::Caller;

/// The protocol handler for one agent.
pub(super) struct McpHandler {
    mcp: McpServer,
    /// The agent, if known beforehand; over HTTP each request identifies it.
    caller: Option<Caller>,
}

impl McpHandler {
    pub(super) const fn new(mcp: McpServer, caller: Option<Caller>) -> Self {
        Self { mcp, caller }
    }

    /// Returns the caller of a request. A session is no proof of identity: another token may use
    /// its identifier.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let of_request = || {
            let parts = context.extensions.get::<Parts>()?;
            parts.extensions.get::<Caller>().cloned()
        };
        let caller = self.caller.clone().or_else(of_request);
        let text = "the request has no token";
        caller.ok_or_else(|| ErrorData::invalid_request(text, None))
    }
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        let tools = self.mcp.tools();
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new(&*tools.name, &*tools.version);
        info.instructions = tools.instructions.as_deref().map(str::to_owned);
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context)?;
        let tools = self.mcp.describe_for(&caller);
        let tools = tools.map(|tool| tool_listing(&tool));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    fn get_tool(&self, name: &str) -> Option<model::Tool> {
        let tool = self.mcp.tools().find(name)?;
        Some(tool_listing(
            &self.mcp.0.answer_limit.describe(&tool.definition),
        ))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(request_error(&request.method, request.params))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let progress = ProgressReporter::for_agent(context.peer, context.meta.get_progress_token());
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        let waiting = match self.mcp.run(&caller, &request.name, arguments, progress) {
            Ok(waiting) => waiting,
            Err(fault) if fault.code == FaultCode::UnknownTarget => {
                return Err(ErrorData::invalid_params(fault.message, None));
            }
            Err(fault) => return Ok(fault_result(&fault).into()),
        };
        tokio::select! {
            answer = waiting => Ok(match answer {
                Ok(answer) => tool_result(answer),
                Err(fault) => fault_result(&fault),
            }.into()),
            // Dropping `waiting` ends the call.
            () = context.ct.cancelled() => {
                let fault = Fault::new(FaultCode::Cancelled, "cancelled before it completed");
                Ok(fault_result(&fault).into())
            }
        }
    }
}

/// Builds the error for a request that rmcp could not parse. A request with a known method but
/// invalid parameters arrives here as a request with an unknown method.
fn request_error(method: &str, params: Option<Value>) -> ErrorData {
    let wrong = match method {
        "tools/call" => params_error::<CallToolRequestParams>(params),
        "tools/list" => params_error::<PaginatedRequestParams>(params),
        _ => {
            let text = format!("unknown method {method:?}");
            return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None);
        }
    };
    ErrorData::invalid_params(format!("invalid params of {method}: {wrong}"), None)
}

/// Describes the error in invalid parameters.
fn params_error<P: DeserializeOwned>(params: Option<Value>) -> String {
    let Some(params) = params else {
        return "missing".to_owned();
    };
    let is_object = params.is_object();
    match serde_json::from_value::<P>(params) {
        Err(error) if is_object => error.to_string(),
        Err(_) => "expected an object".to_owned(),
        Ok(_) => "a member has the wrong type".to_owned(),
    }
}

/// Converts a tool to its description for agents.
fn tool_listing(tool: &Tool) -> model::Tool {
    let object = |schema: &Value| -> Arc<JsonObject> {
        Arc::new(schema.as_object().cloned().unwrap_or_default())
    };
    let reads = tool.effect == ToolEffect::Reads;
    let annotations = ToolAnnotations::new()
        .read_only(reads)
        .destructive(tool.effect == ToolEffect::Changes)
        .idempotent(reads)
        .open_world(false);
    let mut listing = model::Tool::new(tool.name.clone(), tool.about.clone(), object(&tool.input));
    listing.output_schema = tool.output.as_ref().map(object);
    listing.with_annotations(annotations)
}

fn tool_result(answer: ToolOutput) -> CallToolResult {
    let content = answer.content.into_iter().map(content_block);
    let mut result = CallToolResult::success(content.collect());
    result.structured_content = answer.structured;
    result.is_error = Some(answer.failed);
    result
}

fn content_block(content: ToolContent) -> ContentBlock {
    match content {
        ToolContent::Text { text } => ContentBlock::text(text),
        ToolContent::Image { data, mime } => ContentBlock::image(data, mime),
        ToolContent::Audio { data, mime } => ContentBlock::audio(data, mime),
        ToolContent::Blob { data, mime, uri } => {
            ContentBlock::resource(ResourceContents::BlobResourceContents {
                uri,
                mime_type: Some(mime),
                blob: data,
                meta: None,
            })
        }
    }
}

/// Converts a fault to a tool result, so that the model can read the reason.
fn fault_result(fault: &Fault) -> CallToolResult {
    let text = format!("{}: {}", fault.code, fault.message);
    CallToolResult::error(vec![ContentBlock::text(text)])
}
