//! Programs of agents: code that is published under a name, and kept.

use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{Accepts, ActorRef, ActorSystem, Ask, Code as FaultCode, Fault, Request};
use strowger_gateway::{McpAnswer, McpCall, McpEffect, McpTool, McpTools};
use strowger_tools::{
    Language, ListPrograms, Perform, ProgramError, Programs, ProgramsMessage, Publish, Withdraw,
};

use super::code::{LONG, budget, given, said, terms};
use super::{a, list, object};

type Desk = ActorRef<ProgramsMessage>;

/// Adds the verbs of programs. They may be given the granted tools.
pub(super) fn add(
    tools: McpTools,
    system: &ActorSystem,
    desk: &Desk,
    granted: &McpTools,
) -> McpTools {
    let granted = granted.clone();
    let (of_publish, of_list, of_remove) = (desk.clone(), desk.clone(), desk.clone());
    let (system, desk) = (system.clone(), desk.clone());
    tools
        .register(publishing(&granted), move |call| {
            publish(of_publish.clone(), granted.clone(), call)
        })
        .register(calling(), move |call| {
            perform(system.clone(), desk.clone(), call)
        })
        .register(listing(), move |call| all(of_list.clone(), call))
        .register(removing(), move |call| remove(of_remove.clone(), call))
}

fn name() -> (&'static str, Value) {
    let name = "The name of the program: 1 to 64 letters, digits, `-`, `_` and `.`.";
    ("name", a("string", name))
}

fn publishing(granted: &McpTools) -> McpTool {
    let about = "Publishes a program, in the place of one of the same name: code that defines \
                 handle(input), which may be async. It is read once, handles one message at a \
                 time, and keeps what is in its global `state`. program_call calls it.";
    let code = "The code, which defines handle(input).";
    let draft = "It is kept and not run.";
    let schema = |side: &str| json!({ "type": "object", "description": side });
    let [language, functions, time, deadline, memory] = terms(granted);
    let input = object(
        [
            name(),
            ("code", a("string", code)),
            language,
            ("input", schema("The JSON schema of what it takes.")),
            ("output", schema("The JSON schema of what it gives.")),
            ("draft", a("boolean", draft)),
            functions,
            time,
            deadline,
            memory,
        ],
        &["name", "code"],
    );
    McpTool::new("program_publish", about, input).with_output(object(
        [("address", a("string", "Where actors and clients reach it."))],
        &["address"],
    ))
}

fn calling() -> McpTool {
    let what = "What handle(input) is given; as its schema says, if it has one.";
    McpTool::new(
        "program_call",
        "Calls a program that was published.",
        object(
            [name(), ("input", json!({ "description": what }))],
            &["name"],
        ),
    )
    .with_output(object(
        [("output", json!({ "description": "What it gave." }))],
        &["output"],
    ))
}

fn listing() -> McpTool {
    let states = json!({ "enum": ["draft", "resident", "passive", "stopped"] });
    let program = object(
        [
            name(),
            ("state", states),
            ("calls", a("integer", "Messages that it handled.")),
            ("failed", a("integer", "Of these, those that failed.")),
            ("restarts", a("integer", "How often it was started again.")),
        ],
        &["name", "state", "calls", "failed", "restarts"],
    );
    McpTool::new(
        "program_list",
        "Lists the programs that are published.",
        object([], &[]),
    )
    .with_output(object(
        [("programs", list(&program, "By name."))],
        &["programs"],
    ))
    .with_effect(McpEffect::Reads)
}

fn removing() -> McpTool {
    McpTool::new(
        "program_remove",
        "Ends a program and takes its name out.",
        object([name()], &["name"]),
    )
    .with_output(object(
        [("removed", a("boolean", "Whether it was there."))],
        &["removed"],
    ))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
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
struct Called {
    name: String,
    #[serde(default)]
    input: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

async fn publish(desk: Desk, granted: McpTools, call: McpCall) -> Result<McpAnswer, Fault> {
    let wanted: Wanted = call.read()?;
    let publish = Publish {
        functions: given(&granted, wanted.functions)?,
        name: wanted.name.clone(),
        code: wanted.code,
        language: wanted.language,
        input: wanted.input,
        output: wanted.output,
        draft: wanted.draft,
        budget: budget(wanted.time_ms, wanted.deadline_ms, wanted.memory),
    };
    ask(&desk, publish).await?.map_err(|error| told(&error))?;
    let address = format!("@(programs/{})", wanted.name);
    Ok(McpAnswer::of(json!({ "address": address })))
}

async fn perform(system: ActorSystem, desk: Desk, call: McpCall) -> Result<McpAnswer, Fault> {
    let Called { name, input } = call.read()?;
    let Some(program) = Programs::find(&system, &desk, &name) else {
        let name: String = name.chars().take(64).collect();
        let text = format!("there is no program {name:?}; program_list names those that there are");
        return Err(Fault::new(FaultCode::UnknownTarget, text));
    };
    let output = ask(&program, Perform(input)).await?;
    let output = output.map_err(|error| told(&error))?;
    Ok(McpAnswer::of(json!({ "output": output })))
}

async fn all(desk: Desk, call: McpCall) -> Result<McpAnswer, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    let Nothing {} = call.read()?;
    let programs = ask(&desk, ListPrograms).await?;
    Ok(McpAnswer::of(json!({ "programs": programs })))
}

async fn remove(desk: Desk, call: McpCall) -> Result<McpAnswer, Fault> {
    let Named { name } = call.read()?;
    let removed = ask(&desk, Withdraw { name }).await?;
    Ok(McpAnswer::of(json!({ "removed": removed })))
}

async fn ask<M, R>(actor: &ActorRef<M>, request: R) -> Result<R::Reply, Fault>
where
    M: Accepts<Ask<R>> + Send + 'static,
    R: Request,
{
    let answer = actor.ask_within(request, LONG).await;
    answer.map_err(|error| Fault::new(FaultCode::Failed, error.to_string()))
}

/// What went wrong, with its place in the code.
fn told(error: &ProgramError) -> Fault {
    let mut fault = error.to_fault();
    if let ProgramError::Code(error) = error {
        fault.message = said(error);
    }
    fault
}
