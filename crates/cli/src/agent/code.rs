//! The tool that runs code of agents in the sandbox. Code reaches only tools that the agent may
//! call.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{ActorRef, Fault, FaultCode};
use strowger_gateway::access::{Caller, Operation};
use strowger_gateway::mcp::{Tool, ToolContent, ToolOutput, ToolRequest, ToolSet};
use strowger_tools::code::{
    CodeBudget, CodeError, CodeMessage, ConsoleLevel, ConsoleLine, ExecuteRequest,
    FollowRunRequest, GrantedFunctions, Language, RunEvent, RunResult, ThrownValue,
};

use super::page::BY_ANSWER;
use super::{ASK_TIMEOUT, any, array, object, one_of, scalar};

/// Adds the verb that runs code. The code may be given the granted tools as functions.
pub(super) fn add(tools: ToolSet, code: &ActorRef<CodeMessage>, granted: &ToolSet) -> ToolSet {
    let about = "Runs JavaScript or TypeScript in a sandbox without files, network, processes, \
                 modules or clock. The result is the value of the last expression; top-level \
                 `await` is allowed. `functions` passes other tools to the code, so that one run \
                 can make many calls and process their results: await fns.read_text_file({path: \
                 'a.txt'}). Output of `console` is streamed during the run and returned as the \
                 first block, if there is any; the last block is the result as JSON, or the \
                 error.";
    let realm = "Name of a realm: globals that the code sets are kept for the next run in the \
                 same realm. Without it, each run starts with fresh globals.";
    let args = "Value of the global `args` in the code.";
    let [language, functions, time, deadline, memory] = run_properties(granted);
    let execute = Tool::new(
        "code_execute",
        about,
        object(
            [
                ("code", scalar("string", "The code to run.")),
                language,
                ("args", any(args)),
                functions,
                ("realm", scalar("string", realm)),
                time,
                deadline,
                memory,
            ],
            &["code"],
        ),
    )
    .with_output(outcome_schema())
    .with_paging(BY_ANSWER);
    let (code, granted) = (code.clone(), granted.clone());
    tools.register(execute, move |call| {
        run(code.clone(), granted.clone(), call)
    })
}

type Property = (&'static str, Value);

/// Returns the schemas of the inputs and limits that runs and programs share.
pub(super) fn run_properties(granted: &ToolSet) -> [Property; 5] {
    let names: Vec<&str> = granted.names().collect();
    let given = "Names of tools that the code can call as functions in `fns`. Each takes the \
                 arguments of the tool and returns a promise of its structured content, or of its \
                 text.";
    let language = "Defaults to js. Types in ts are removed, not checked.";
    let language = one_of(&["js", "ts"], language);
    let less = "Limit of computing time in milliseconds; capped by the node's limit.";
    let span = "Limit of total time in milliseconds, including waiting; capped by the node's \
                limit.";
    let memory = "Limit of memory in bytes, at least about 3 MiB; capped by the node's limit.";
    [
        ("language", language),
        (
            "functions",
            array(&one_of(&names, "Name of a tool."), given),
        ),
        ("time_ms", scalar("integer", less)),
        ("deadline_ms", scalar("integer", span)),
        ("memory", scalar("integer", memory)),
    ]
}

/// Returns the schema of the outcome of a run, whose output and value are texts.
fn outcome_schema() -> Value {
    let kind = "`thrown`; the exceeded limit (`time`, `deadline`, `memory`, `stack`, `jobs`, \
                `output`, `result`, `source`); `value` (not representable as JSON), `unsettled`, \
                `full`, `language`, `function`, `cancelled` or `sandbox`.";
    let most = "The limit, in milliseconds, bytes or as a count.";
    let error = object(
        [
            ("kind", scalar("string", kind)),
            ("name", scalar("string", "Name of the thrown error.")),
            ("line", scalar("integer", "Line of the error, from 1.")),
            ("column", scalar("integer", "Column of the error, from 1.")),
            ("most", scalar("integer", most)),
            (
                "used",
                scalar("integer", "The amount used or requested, if known."),
            ),
        ],
        &["kind"],
    );
    let fresh = "`true` if the realm was new.";
    object(
        [
            (
                "lines",
                scalar("integer", "Number of lines written to `console`."),
            ),
            ("fresh", scalar("boolean", fresh)),
            ("error", error),
        ],
        &["lines"],
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CodeExecuteParams {
    code: String,
    #[serde(default)]
    language: Language,
    args: Option<Value>,
    #[serde(default)]
    functions: Vec<String>,
    realm: Option<String>,
    time_ms: Option<u64>,
    deadline_ms: Option<u64>,
    memory: Option<usize>,
}

/// Returns a budget with tighter limits than the defaults.
pub(super) fn budget(
    time_ms: Option<u64>,
    deadline_ms: Option<u64>,
    memory: Option<usize>,
) -> CodeBudget {
    let mut budget = CodeBudget::default();
    budget.time_ms = time_ms;
    budget.deadline_ms = deadline_ms;
    budget.memory = memory;
    budget
}

/// Returns the named tools as functions.
///
/// The functions act on behalf of the caller: code cannot reach anything that its caller cannot.
pub(super) fn granted_functions(
    granted: &ToolSet,
    names: Vec<String>,
    caller: &Caller,
) -> Result<GrantedFunctions, Fault> {
    let mut functions = GrantedFunctions::new();
    for name in names {
        if !granted.names().any(|known| known == name) {
            let text = format!("functions: no tool {name:?} that code can call");
            return Err(Fault::new(FaultCode::BadRequest, text));
        }
        // Checked here, before the code has run half of its way, and again on each call.
        caller.check_address(&Operation::CALL_TOOL, &format!("/mcp/tools/{name}"))?;
        let (granted, tool) = (granted.clone(), Arc::<str>::from(&*name));
        let caller = caller.clone();
        functions = functions.promise(&name, move |values| {
            let (granted, tool) = (granted.clone(), Arc::clone(&tool));
            let caller = caller.clone();
            async move {
                let arguments = values.into_iter().next().unwrap_or(Value::Null);
                let answer = granted.call(&tool, arguments, &caller).await;
                answer.map(answer_value).map_err(|fault| fault.to_string())
            }
        });
    }
    Ok(functions)
}

/// Converts an answer to a value: its structured form if it has one, else its text.
fn answer_value(answer: ToolOutput) -> Value {
    if let Some(value) = answer.local_value.or(answer.structured) {
        return value;
    }
    let mut texts = String::new();
    for piece in &answer.content {
        match piece {
            ToolContent::Text { text } => texts.push_str(text),
            _ => return json!(answer.content),
        }
    }
    Value::String(texts)
}

async fn run(
    code: ActorRef<CodeMessage>,
    granted: ToolSet,
    call: ToolRequest,
) -> Result<ToolOutput, Fault> {
    call.caller
        .check_address(&Operation::CALL_TOOL, "/tools/code")?;
    let params: CodeExecuteParams = call.parse_arguments()?;
    let execute = ExecuteRequest {
        code: params.code,
        language: params.language,
        args: params.args,
        realm: params.realm,
        functions: granted_functions(&granted, params.functions, &call.caller)?,
        budget: budget(params.time_ms, params.deadline_ms, params.memory),
    };
    let failed = |why: String| Fault::new(FaultCode::Failed, why);
    let followed = code
        .ask_within(FollowRunRequest::new(execute), ASK_TIMEOUT)
        .await;
    let followed = followed.map_err(|error| failed(error.to_string()))?;
    // A reader that stops, because the agent gave up, ends the run.
    let mut events = followed.map_err(|error| error.to_fault())?;
    let mut output = Vec::new();
    while let Some(next) = events.recv().await {
        match next.map_err(|error| failed(error.to_string()))? {
            RunEvent::Line(line) => {
                output.push(line);
                let (count, text) = (output.len() as f64, &output[output.len() - 1].text);
                call.progress.report(count, None, text).await;
            }
            // The code was given no function that would be called back through this stream.
            RunEvent::Call(_) => {}
            RunEvent::Ended(outcome) => return Ok(outcome_answer(outcome, &output)),
        }
    }
    Err(failed("the code ended without a result".to_owned()))
}

/// Returns a block with the output, if there is any, and a block with the result.
fn outcome_answer(outcome: Result<RunResult, CodeError>, output: &[ConsoleLine]) -> ToolOutput {
    let mut answer = ToolOutput::default();
    if !output.is_empty() {
        let lines: Vec<String> = output.iter().map(format_line).collect();
        answer = answer.with_text(lines.join("\n"));
    }
    let lines = output.len();
    match outcome {
        Ok(RunResult { value, fresh, .. }) => answer
            .with_text(value.to_string())
            .with_structured(json!({ "lines": lines, "fresh": fresh }))
            .with_local_value(json!({ "value": value, "output": output, "fresh": fresh })),
        Err(error) => answer
            .with_text(describe_with_stack(&error))
            .with_structured(json!({ "lines": lines, "error": error_facts(&error) }))
            .with_local_value(json!({ "output": output, "error": error_value(&error) }))
            .into_failure(),
    }
}

/// Formats a line of the output.
fn format_line(line: &ConsoleLine) -> String {
    let text = &line.text;
    match line.level {
        ConsoleLevel::Log => text.clone(),
        level => format!("[{}] {text}", level.name()),
    }
}

/// Describes an error with its place and the call stack.
fn describe_with_stack(error: &CodeError) -> String {
    let mut text = describe(error);
    if let CodeError::Thrown(thrown) = error
        && !thrown.stack.is_empty()
    {
        text.push('\n');
        text.push_str(thrown.stack.trim_end());
    }
    text
}

/// Describes an error with its place.
pub(super) fn describe(error: &CodeError) -> String {
    match error {
        CodeError::Thrown(thrown) => match thrown.location() {
            Some((line, column)) => format!("{error} (line {line}, column {column})"),
            None => error.to_string(),
        },
        error => error.to_string(),
    }
}

/// Maximum length, in characters, of an error name among the facts. Code chooses the names of its
/// errors freely.
const MAX_NAME: usize = 64;

/// Returns the facts of an error.
fn error_facts(error: &CodeError) -> Value {
    let mut facts = json!({ "kind": error.name() });
    match error {
        CodeError::Thrown(thrown) => {
            facts["name"] = thrown
                .name
                .chars()
                .take(MAX_NAME)
                .collect::<String>()
                .into();
            if let Some((line, column)) = thrown.location() {
                (facts["line"], facts["column"]) = (json!(line), json!(column));
            }
        }
        CodeError::Limit(passed) => {
            facts["most"] = json!(passed.value);
            if let Some(used) = passed.used {
                facts["used"] = json!(used);
            }
        }
        _ => {}
    }
    facts
}

/// Returns the facts of an error and its texts, for code.
fn error_value(error: &CodeError) -> Value {
    let mut wrong = error_facts(error);
    wrong["message"] = json!(error.to_string());
    if let CodeError::Thrown(thrown) = error {
        let ThrownValue { name, stack, .. } = thrown;
        (wrong["name"], wrong["stack"]) = (json!(name), json!(stack));
    }
    wrong
}
