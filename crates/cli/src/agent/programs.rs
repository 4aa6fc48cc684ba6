//! Tools for programs of agents: code that is stored under a name.

use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{Accepts, ActorRef, ActorSystem, Ask, Fault, FaultCode, Request};
use strowger_gateway::access::Operation;
use strowger_gateway::mcp::{Tool, ToolEffect, ToolOutput, ToolRequest, ToolSet};
use strowger_tools::code::Language;
use strowger_tools::program::{
    ListProgramsRequest, PerformRequest, ProgramError, Programs, ProgramsMessage, PublishRequest,
    WithdrawRequest,
};

use super::code::{budget, describe, granted_functions, run_properties};
use super::page::{BY_ANSWER, BY_OFFSET, json_page, offset_property};
use super::{ASK_TIMEOUT, any, object, scalar};

type ProgramsRef = ActorRef<ProgramsMessage>;

/// The address of the actor that stores programs.
const ADDRESS: &str = "/tools/programs";

/// Adds the verbs for programs, which may be given the granted tools.
pub(super) fn add(
    tools: ToolSet,
    system: &ActorSystem,
    programs: &ProgramsRef,
    granted: &ToolSet,
) -> ToolSet {
    let granted = granted.clone();
    let (of_publish, of_list, of_remove) = (programs.clone(), programs.clone(), programs.clone());
    let (system, programs) = (system.clone(), programs.clone());
    tools
        .register(publish_tool(&granted), move |call| {
            publish(of_publish.clone(), granted.clone(), call)
        })
        .register(call_tool(), move |call| {
            perform(system.clone(), programs.clone(), call)
        })
        .register(list_tool(), move |call| list(of_list.clone(), call))
        .register(remove_tool(), move |call| remove(of_remove.clone(), call))
}

fn name_property() -> (&'static str, Value) {
    let name = "Name of the program: 1 to 64 letters, digits, `-`, `_` and `.`.";
    ("name", scalar("string", name))
}

fn publish_tool(granted: &ToolSet) -> Tool {
    let about = "Publishes a program, replacing one of the same name: code that defines \
                 handle(input), which may be async. The code runs once, handles one message at a \
                 time, and keeps its global `state`. Call it with program_call.";
    let code = "Code that defines handle(input).";
    let draft = "Store the program without starting it.";
    let schema = |side: &str| json!({ "type": "object", "description": side });
    let [language, functions, time, deadline, memory] = run_properties(granted);
    let input = object(
        [
            name_property(),
            ("code", scalar("string", code)),
            language,
            ("input", schema("JSON schema of the input.")),
            ("output", schema("JSON schema of the output.")),
            ("draft", scalar("boolean", draft)),
            functions,
            time,
            deadline,
            memory,
        ],
        &["name", "code"],
    );
    Tool::new("program_publish", about, input).with_output(object(
        [(
            "address",
            scalar("string", "Address of the program for actors and clients."),
        )],
        &["address"],
    ))
}

fn call_tool() -> Tool {
    let what = "Input of handle(input); must match the program's input schema, if it has one.";
    Tool::new(
        "program_call",
        "Calls a published program. Returns its `output` as JSON.",
        object([name_property(), ("input", any(what))], &["name"]),
    )
    .with_paging(BY_ANSWER)
}

fn list_tool() -> Tool {
    Tool::new(
        "program_list",
        "Lists the published programs by name, as JSON: each with its `state` (`draft`, \
         `resident`, `passive` or `stopped`), its `calls`, how many of them `failed`, and its \
         `restarts`.",
        object([offset_property("programs")], &[]),
    )
    .with_effect(ToolEffect::Reads)
    .with_paging(BY_OFFSET)
}

fn remove_tool() -> Tool {
    Tool::new(
        "program_remove",
        "Stops a program and removes it.",
        object([name_property()], &["name"]),
    )
    .with_output(object(
        [(
            "removed",
            scalar("boolean", "`true` if the program existed."),
        )],
        &["removed"],
    ))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramPublishParams {
    name: String,
    code: String,
    #[serde(default)]
    language: Language,
    input: Option<Value>,
    output: Option<Value>,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    functions: Vec<String>,
    time_ms: Option<u64>,
    deadline_ms: Option<u64>,
    memory: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramCallParams {
    name: String,
    #[serde(default)]
    input: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramRemoveParams {
    name: String,
}

async fn publish(
    programs: ProgramsRef,
    granted: ToolSet,
    call: ToolRequest,
) -> Result<ToolOutput, Fault> {
    call.caller.check_address(&Operation::CALL_TOOL, ADDRESS)?;
    let params: ProgramPublishParams = call.parse_arguments()?;
    let publish = PublishRequest {
        functions: granted_functions(&granted, params.functions, &call.caller)?,
        name: params.name.clone(),
        code: params.code,
        language: params.language,
        input: params.input,
        output: params.output,
        draft: params.draft,
        budget: budget(params.time_ms, params.deadline_ms, params.memory),
    };
    ask(&programs, publish)
        .await?
        .map_err(|error| program_fault(&error))?;
    let address = format!("@(programs/{})", params.name);
    Ok(ToolOutput::structured(json!({ "address": address })))
}

async fn perform(
    system: ActorSystem,
    programs: ProgramsRef,
    call: ToolRequest,
) -> Result<ToolOutput, Fault> {
    let ProgramCallParams { name, input } = call.parse_arguments()?;
    call.caller
        .check_address(&Operation::CALL_TOOL, &format!("/programs/{name}"))?;
    let Some(program) = Programs::find(&system, &programs, &name) else {
        let name: String = name.chars().take(64).collect();
        let text = format!("no program {name:?}; program_list lists the published programs");
        return Err(Fault::new(FaultCode::UnknownTarget, text));
    };
    let output = ask(&program, PerformRequest(input)).await?;
    let output = output.map_err(|error| program_fault(&error))?;
    Ok(ToolOutput::json(json!({ "output": output })))
}

async fn list(programs: ProgramsRef, call: ToolRequest) -> Result<ToolOutput, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ProgramListParams {
        offset: Option<usize>,
    }
    let ProgramListParams { offset } = call.parse_arguments()?;
    call.caller.check_address(&Operation::CALL_TOOL, ADDRESS)?;
    let programs = ask(&programs, ListProgramsRequest).await?;
    let programs = programs.iter().map(|program| json!(program)).collect();
    let answer = json_page("programs", programs, offset, call.page_size);
    Ok(ToolOutput::json(answer))
}

async fn remove(programs: ProgramsRef, call: ToolRequest) -> Result<ToolOutput, Fault> {
    let ProgramRemoveParams { name } = call.parse_arguments()?;
    call.caller.check_address(&Operation::CALL_TOOL, ADDRESS)?;
    let removed = ask(&programs, WithdrawRequest { name }).await?;
    Ok(ToolOutput::structured(json!({ "removed": removed })))
}

async fn ask<M, R>(actor: &ActorRef<M>, request: R) -> Result<R::Reply, Fault>
where
    M: Accepts<Ask<R>> + Send + 'static,
    R: Request,
{
    let answer = actor.ask_within(request, ASK_TIMEOUT).await;
    answer.map_err(|error| Fault::new(FaultCode::Failed, error.to_string()))
}

/// Converts an error to a fault that includes its place in the code.
fn program_fault(error: &ProgramError) -> Fault {
    let mut fault = error.to_fault();
    if let ProgramError::Code(error) = error {
        fault.message = describe(error);
    }
    fault
}
