//! What an agent sees: the protocol's questions about tools, answered from the list of them.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, ErrorData, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ResourceContents, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;
use strowger::{Code, Fault};

use super::Mcp;
use super::line::{LONGEST, TOO_LONG};
use super::tool::{McpAnswer, McpContent, McpEffect, McpTool, Progress};

/// Serves one agent.
pub(super) struct Server(pub(super) Mcp);

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let tools = self.0.tools();
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new(&*tools.name, &*tools.version);
        info.instructions = tools.advice.as_deref().map(str::to_owned);
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.0.tools().list().map(shown);
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tool = self.0.tools().find(name)?;
        Some(shown(&tool.about))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unread(&request.method, request.params))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let progress = Progress::to(context.peer, context.meta.get_progress_token());
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        let waiting = match self.0.run(&request.name, arguments, progress) {
            Ok(waiting) => waiting,
            Err(fault) if fault.code == Code::UnknownTarget => {
                return Err(ErrorData::invalid_params(fault.message, None));
            }
            Err(fault) => return Ok(refused(&fault).into()),
        };
        tokio::select! {
            answer = waiting => Ok(match answer {
                Ok(answer) => told(answer),
                Err(fault) => refused(&fault),
            }.into()),
            // The call ends with the one who waits for it.
            () = context.ct.cancelled() => {
                let fault = Fault::new(Code::Cancelled, "cancelled before it was done");
                Ok(refused(&fault).into())
            }
        }
    }
}

/// Why a request is none that is answered. One of a known method whose parameters cannot be read
/// comes as one of an unknown method.
fn unread(method: &str, params: Option<Value>) -> ErrorData {
    let wrong = match method {
        "tools/call" => misread::<CallToolRequestParams>(params),
        "tools/list" => misread::<PaginatedRequestParams>(params),
        TOO_LONG => {
            let text = format!("the message is longer than {LONGEST} bytes: send it in parts");
            return ErrorData::invalid_request(text, None);
        }
        _ => {
            let text = format!("there is no method {method:?}");
            return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None);
        }
    };
    ErrorData::invalid_params(format!("the params of {method}: {wrong}"), None)
}

/// What is wrong with parameters that cannot be read.
fn misread<P: DeserializeOwned>(params: Option<Value>) -> String {
    let Some(params) = params else {
        return "there are none".to_owned();
    };
    let is_object = params.is_object();
    match serde_json::from_value::<P>(params) {
        Err(error) if is_object => error.to_string(),
        Err(_) => "an object is wanted".to_owned(),
        Ok(_) => "a member has a type that it cannot have".to_owned(),
    }
}

/// A tool as agents are told of it.
fn shown(tool: &McpTool) -> Tool {
    let object = |schema: &Value| -> Arc<JsonObject> {
        Arc::new(schema.as_object().cloned().unwrap_or_default())
    };
    let reads = tool.effect == McpEffect::Reads;
    let annotations = ToolAnnotations::new()
        .read_only(reads)
        .destructive(tool.effect == McpEffect::Changes)
        .idempotent(reads)
        .open_world(false);
    let mut shown = Tool::new(tool.name.clone(), tool.about.clone(), object(&tool.input));
    shown.output_schema = tool.output.as_ref().map(object);
    shown.with_annotations(annotations)
}

fn told(answer: McpAnswer) -> CallToolResult {
    let content = answer.content.into_iter().map(block);
    let mut result = CallToolResult::success(content.collect());
    result.structured_content = answer.structured;
    result.is_error = Some(answer.failed);
    result
}

fn block(content: McpContent) -> ContentBlock {
    match content {
        McpContent::Text { text } => ContentBlock::text(text),
        McpContent::Image { data, mime } => ContentBlock::image(data, mime),
        McpContent::Audio { data, mime } => ContentBlock::audio(data, mime),
        McpContent::Blob { data, mime, uri } => {
            ContentBlock::resource(ResourceContents::BlobResourceContents {
                uri,
                mime_type: Some(mime),
                blob: data,
                meta: None,
            })
        }
    }
}

/// What came to nothing, so that the model reads why.
fn refused(fault: &Fault) -> CallToolResult {
    let text = format!("{}: {}", fault.code, fault.message);
    CallToolResult::error(vec![ContentBlock::text(text)])
}
