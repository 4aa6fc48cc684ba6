//! Programs of agents: code that is published under a name and stored.

use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{Accepts, ActorRef, ActorSystem, Ask, Fault, FaultCode, Request};
use strowger_gateway::{McpAnswer, McpCall, McpEffect, McpTool, McpTools, Verb};
use strowger_tools::{
    Language, ListPrograms, Perform, ProgramError, Programs, ProgramsMessage, Publish, Withdraw,
};

use super::code::{budget, given, said, terms};
use super::{ASK_TIMEOUT, a, any, object};

type ProgramsRef = ActorRef<ProgramsMessage>;

/// The address of the actor that stores programs.
const ADDRESS: &str = "/tools/programs";

/// Adds the verbs for programs, which may be given the granted tools.
pub(super) fn add(
    tools: McpTools,
    system: &ActorSystem,
    programs: &ProgramsRef,
    granted: &McpTools,
) -> McpTools {
    let granted = granted.clone();
    let (of_publish, of_list, of_remove) = (programs.clone(), programs.clone(), programs.clone());
    let (system, programs) = (system.clone(), programs.clone());
    tools
        .register(publishing(&granted), move |call| {
            publish(of_publish.clone(), granted.clone(), call)
        })
        .register(calling(), move |call| {
            perform(system.clone(), programs.clone(), call)
        })
        .register(listing(), move |call| all(of_list.clone(), call))
        .register(removing(), move |call| remove(of_remove.clone(), call))
}

fn name() -> (&'static str, Value) {
    let name = "Name of the program: 1 to 64 letters, digits, `-`, `_` and `.`.";
    ("name", a("string", name))
}

fn publishing(granted: &McpTools) -> McpTool {
    let about = "Publishes a program, replacing one of the same name: code that defines \
                 handle(input), which may be async. The code runs once, handles one message at a \
                 time, and keeps its global `state`. Call it with program_call.";
    let code = "Code that defines handle(input).";
    let draft = "Store the program without starting it.";
    let schema = |side: &str| json!({ "type": "object", "description": side });
    let [language, functions, time, deadline, memory] = terms(granted);
    let input = object(
        [
            name(),
            ("code", a("string", code)),
            language,
            ("input", schema("JSON schema of the input.")),
            ("output", schema("JSON schema of the output.")),
            ("draft", a("boolean", draft)),
            functions,
            time,
            deadline,
            memory,
        ],
        &["name", "code"],
    );
    McpTool::new("program_publish", about, input).with_output(object(
        [(
            "address",
            a("string", "Address of the program for actors and clients."),
        )],
        &["address"],
    ))
}

fn calling() -> McpTool {
    let what = "Input of handle(input); must match the program's input schema, if it has one.";
    McpTool::new(
        "program_call",
        "Calls a published program. Returns its `output` as JSON.",
        object([name(), ("input", any(what))], &["name"]),
    )
}

fn listing() -> McpTool {
    McpTool::new(
        "program_list",
        "Lists the published programs by name, as JSON: each with its `state` (`draft`, \
         `resident`, `passive` or `stopped`), its `calls`, how many of them `failed`, and its \
         `restarts`.",
        object([], &[]),
    )
    .with_effect(McpEffect::Reads)
}

fn removing() -> McpTool {
    McpTool::new(
        "program_remove",
        "Stops a program and removes it.",
        object([name()], &["name"]),
    )
    .with_output(object(
        [("removed", a("boolean", "`true` if the program existed."))],
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
    granted: McpTools,
    call: McpCall,
) -> Result<McpAnswer, Fault> {
    call.caller.reaches(&Verb::CALL, ADDRESS)?;
    let params: ProgramPublishParams = call.read()?;
    let publish = Publish {
        functions: given(&granted, params.functions, &call.caller)?,
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
        .map_err(|error| told(&error))?;
    let address = format!("@(programs/{})", params.name);
    Ok(McpAnswer::of(json!({ "address": address })))
}

async fn perform(
    system: ActorSystem,
    programs: ProgramsRef,
    call: McpCall,
) -> Result<McpAnswer, Fault> {
    let ProgramCallParams { name, input } = call.read()?;
    call.caller
        .reaches(&Verb::CALL, &format!("/programs/{name}"))?;
    let Some(program) = Programs::find(&system, &programs, &name) else {
        let name: String = name.chars().take(64).collect();
        let text = format!("no program {name:?}; program_list lists the published programs");
        return Err(Fault::new(FaultCode::UnknownTarget, text));
    };
    let output = ask(&program, Perform(input)).await?;
    let output = output.map_err(|error| told(&error))?;
    Ok(McpAnswer::json(json!({ "output": output })))
}

async fn all(programs: ProgramsRef, call: McpCall) -> Result<McpAnswer, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ProgramListParams {}
    let ProgramListParams {} = call.read()?;
    call.caller.reaches(&Verb::CALL, ADDRESS)?;
    let programs = ask(&programs, ListPrograms).await?;
    Ok(McpAnswer::json(json!({ "programs": programs })))
}

async fn remove(programs: ProgramsRef, call: McpCall) -> Result<McpAnswer, Fault> {
    let ProgramRemoveParams { name } = call.read()?;
    call.caller.reaches(&Verb::CALL, ADDRESS)?;
    let removed = ask(&programs, Withdraw { name }).await?;
    Ok(McpAnswer::of(json!({ "removed": removed })))
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
fn told(error: &ProgramError) -> Fault {
    let mut fault = error.to_fault();
    if let ProgramError::Code(error) = error {
        fault.message = said(error);
    }
    fault
}
