//! Code of agents, run in the sandbox with no access but to tools that the agent itself may call.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{ActorRef, Fault, FaultCode};
use strowger_gateway::{Caller, McpAnswer, McpCall, McpContent, McpTool, McpTools, Verb};
use strowger_tools::{
    CodeBudget, CodeError, CodeMessage, Execute, Executed, FollowRun, Functions, Language, Level,
    Line, Thrown, Told,
};

use super::{ASK_TIMEOUT, a, any, list, object, one_of};

/// Adds the verb that runs code. The code may be given the granted tools as functions.
pub(super) fn add(tools: McpTools, code: &ActorRef<CodeMessage>, granted: &McpTools) -> McpTools {
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
    let [language, functions, time, deadline, memory] = terms(granted);
    let execute = McpTool::new(
        "code_execute",
        about,
        object(
            [
                ("code", a("string", "The code to run.")),
                language,
                ("args", any(args)),
                functions,
                ("realm", a("string", realm)),
                time,
                deadline,
                memory,
            ],
            &["code"],
        ),
    )
    .with_output(outcome());
    let (code, granted) = (code.clone(), granted.clone());
    tools.register(execute, move |call| {
        run(code.clone(), granted.clone(), call)
    })
}

type Property = (&'static str, Value);

/// Returns the schemas of the inputs and limits that runs and programs share.
pub(super) fn terms(granted: &McpTools) -> [Property; 5] {
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
        ("functions", list(&one_of(&names, "Name of a tool."), given)),
        ("time_ms", a("integer", less)),
        ("deadline_ms", a("integer", span)),
        ("memory", a("integer", memory)),
    ]
}

/// Returns the schema of the outcome of a run, whose output and value are texts.
fn outcome() -> Value {
    let kind = "`thrown`; the exceeded limit (`time`, `deadline`, `memory`, `stack`, `jobs`, \
                `output`, `result`, `source`); `value` (not representable as JSON), `unsettled`, \
                `full`, `language`, `function`, `cancelled` or `sandbox`.";
    let most = "The limit, in milliseconds, bytes or as a count.";
    let error = object(
        [
            ("kind", a("string", kind)),
            ("name", a("string", "Name of the thrown error.")),
            ("line", a("integer", "Line of the error, from 1.")),
            ("column", a("integer", "Column of the error, from 1.")),
            ("most", a("integer", most)),
            (
                "used",
                a("integer", "The amount used or requested, if known."),
            ),
        ],
        &["kind"],
    );
    let fresh = "`true` if the realm was new.";
    object(
        [
            (
                "lines",
                a("integer", "Number of lines written to `console`."),
            ),
            ("fresh", a("boolean", fresh)),
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
pub(super) fn given(
    granted: &McpTools,
    names: Vec<String>,
    caller: &Caller,
) -> Result<Functions, Fault> {
    let mut functions = Functions::new();
    for name in names {
        if !granted.names().any(|known| known == name) {
            let text = format!("functions: no tool {name:?} that code can call");
            return Err(Fault::new(FaultCode::BadRequest, text));
        }
        // Checked here, before the code has run half of its way, and again on each call.
        caller.reaches(&Verb::CALL, &format!("/mcp/tools/{name}"))?;
        let (granted, tool) = (granted.clone(), Arc::<str>::from(&*name));
        let caller = caller.clone();
        functions = functions.promise(&name, move |values| {
            let (granted, tool) = (granted.clone(), Arc::clone(&tool));
            let caller = caller.clone();
            async move {
                let arguments = values.into_iter().next().unwrap_or(Value::Null);
                let answer = granted.call(&tool, arguments, &caller).await;
                answer.map(plain).map_err(|fault| fault.to_string())
            }
        });
    }
    Ok(functions)
}

/// Converts an answer to a value: its structured form if it has one, else its text.
fn plain(answer: McpAnswer) -> Value {
    if let Some(value) = answer.for_code.or(answer.structured) {
        return value;
    }
    let mut texts = String::new();
    for piece in &answer.content {
        match piece {
            McpContent::Text { text } => texts.push_str(text),
            _ => return json!(answer.content),
        }
    }
    Value::String(texts)
}

async fn run(
    code: ActorRef<CodeMessage>,
    granted: McpTools,
    call: McpCall,
) -> Result<McpAnswer, Fault> {
    call.caller.reaches(&Verb::CALL, "/tools/code")?;
    let params: CodeExecuteParams = call.read()?;
    let execute = Execute {
        code: params.code,
        language: params.language,
        args: params.args,
        realm: params.realm,
        functions: given(&granted, params.functions, &call.caller)?,
        budget: budget(params.time_ms, params.deadline_ms, params.memory),
    };
    let failed = |why: String| Fault::new(FaultCode::Failed, why);
    let followed = code.ask_within(FollowRun::new(execute), ASK_TIMEOUT).await;
    let followed = followed.map_err(|error| failed(error.to_string()))?;
    // A reader that stops, because the agent gave up, ends the run.
    let mut told = followed.map_err(|error| error.to_fault())?;
    let mut output = Vec::new();
    while let Some(next) = told.recv().await {
        match next.map_err(|error| failed(error.to_string()))? {
            Told::Line(line) => {
                output.push(line);
                let (count, text) = (output.len() as f64, &output[output.len() - 1].text);
                call.progress.tell(count, None, text).await;
            }
            // The code was given no function that would be called back through this stream.
            Told::Called(_) => {}
            Told::Ended(outcome) => return Ok(answer(outcome, &output)),
        }
    }
    Err(failed("the code ended without a result".to_owned()))
}

/// Returns a block with the output, if there is any, and a block with the result.
fn answer(outcome: Result<Executed, CodeError>, output: &[Line]) -> McpAnswer {
    let mut answer = McpAnswer::default();
    if !output.is_empty() {
        let lines: Vec<String> = output.iter().map(shown).collect();
        answer = answer.and_text(lines.join("\n"));
    }
    let lines = output.len();
    match outcome {
        Ok(Executed { value, fresh, .. }) => answer
            .and_text(value.to_string())
            .with_structured(json!({ "lines": lines, "fresh": fresh }))
            .with_value_for_code(json!({ "value": value, "output": output, "fresh": fresh })),
        Err(error) => answer
            .and_text(told(&error))
            .with_structured(json!({ "lines": lines, "error": facts(&error) }))
            .with_value_for_code(json!({ "output": output, "error": wrong(&error) }))
            .as_failure(),
    }
}

/// Formats a line of the output.
fn shown(line: &Line) -> String {
    let text = &line.text;
    match line.level {
        Level::Log => text.clone(),
        level => format!("[{}] {text}", level.name()),
    }
}

/// Describes an error with its place and the call stack.
fn told(error: &CodeError) -> String {
    let mut text = said(error);
    if let CodeError::Thrown(thrown) = error
        && !thrown.stack.is_empty()
    {
        text.push('\n');
        text.push_str(thrown.stack.trim_end());
    }
    text
}

/// Describes an error with its place.
pub(super) fn said(error: &CodeError) -> String {
    match error {
        CodeError::Thrown(thrown) => match thrown.place() {
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
fn facts(error: &CodeError) -> Value {
    let mut facts = json!({ "kind": error.name() });
    match error {
        CodeError::Thrown(thrown) => {
            facts["name"] = thrown
                .name
                .chars()
                .take(MAX_NAME)
                .collect::<String>()
                .into();
            if let Some((line, column)) = thrown.place() {
                (facts["line"], facts["column"]) = (json!(line), json!(column));
            }
        }
        CodeError::Limit(passed) => {
            facts["most"] = json!(passed.most);
            if let Some(used) = passed.used {
                facts["used"] = json!(used);
            }
        }
        _ => {}
    }
    facts
}

/// Returns the facts of an error and its texts, for code.
fn wrong(error: &CodeError) -> Value {
    let mut wrong = facts(error);
    wrong["message"] = json!(error.to_string());
    if let CodeError::Thrown(thrown) = error {
        let Thrown { name, stack, .. } = thrown;
        (wrong["name"], wrong["stack"]) = (json!(name), json!(stack));
    }
    wrong
}
