//! Code of agents: run in the sandbox, given nothing but tools that the agent has itself.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{ActorRef, Code as FaultCode, Fault};
use strowger_gateway::{McpAnswer, McpCall, McpContent, McpTool, McpTools};
use strowger_tools::{
    CodeBudget, CodeError, CodeMessage, Execute, Executed, FollowRun, Functions, Language, Line,
    Thrown, Told,
};

use super::{a, list, object};

/// Adds the running of code. It may be given the granted tools.
pub(super) fn add(tools: McpTools, code: &ActorRef<CodeMessage>, granted: &McpTools) -> McpTools {
    let about = "Runs JavaScript or TypeScript in a sandbox that has no files, network, process, \
                 modules or clock. The value is that of the last expression; `await` may stand at \
                 the top. Other tools can be given to it as functions, so that many calls and the \
                 work on what they answer take one run: await fns.read_text_file({path: 'a.txt'}). \
                 What it writes to `console` is told while it runs.";
    let realm = "A name: what the code leaves in its globals is there for the next run of this \
                 name. Without it each run begins anew.";
    let args = "What the code finds in the global `args`.";
    let [language, functions, time, deadline, memory] = terms(granted);
    let execute = McpTool::new(
        "code_execute",
        about,
        object(
            [
                ("code", a("string", "What to run.")),
                language,
                ("args", json!({ "description": args })),
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

type Term = (&'static str, Value);

/// The schemas of what runs and programs are given and may use up.
pub(super) fn terms(granted: &McpTools) -> [Term; 5] {
    let names: Vec<&str> = granted.names().collect();
    let given = "Tools that it gets as functions in `fns`: each takes the arguments of its tool \
                 and gives a promise of its structured answer, or of its text.";
    let language = json!({
        "enum": ["js", "ts"],
        "description": "js if it is left out; the types of ts are taken away and not checked.",
    });
    let less = "Milliseconds that it may compute; never more than the node allows.";
    let span = "Milliseconds that it may take, with what it waits for; never more than allowed.";
    let memory = "Octets of memory, from about 3 MiB on; never more than allowed.";
    [
        ("language", language),
        ("functions", list(&json!({ "enum": names }), given)),
        ("time_ms", a("integer", less)),
        ("deadline_ms", a("integer", span)),
        ("memory", a("integer", memory)),
    ]
}

/// The schema of what a run comes to.
fn outcome() -> Value {
    let line = object(
        [
            (
                "level",
                json!({ "enum": ["debug", "log", "info", "warn", "error"] }),
            ),
            ("text", a("string", "What it says.")),
        ],
        &["level", "text"],
    );
    let kind = "`thrown`, the limit that it passed (`time`, `deadline`, `memory`, `stack`, `jobs`, \
                `output`, `result`, `source`), `unsettled`, `full`, `language`, `function`, \
                `cancelled` or `sandbox`.";
    let error = object(
        [
            ("kind", a("string", kind)),
            ("message", a("string", "What went wrong.")),
            ("name", a("string", "The name of what was thrown.")),
            ("line", a("integer", "Where, from 1.")),
            ("column", a("integer", "Where, from 1.")),
            ("stack", a("string", "Where, a line for each call.")),
        ],
        &["kind", "message"],
    );
    let value = "What it came to; null for what JSON cannot say.";
    let fresh = "Whether the realm was new.";
    object(
        [
            ("value", json!({ "description": value })),
            ("output", list(&line, "What it wrote to `console`.")),
            ("fresh", a("boolean", fresh)),
            ("error", error),
        ],
        &["output"],
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
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

/// Tighter limits.
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

/// Tools of these names as functions.
pub(super) fn given(granted: &McpTools, names: Vec<String>) -> Result<Functions, Fault> {
    let mut functions = Functions::new();
    for name in names {
        if !granted.names().any(|known| known == name) {
            let text = format!("functions: there is no tool {name:?} that code can be given");
            return Err(Fault::new(FaultCode::BadRequest, text));
        }
        let (granted, tool) = (granted.clone(), Arc::<str>::from(&*name));
        functions = functions.promise(&name, move |values| {
            let (granted, tool) = (granted.clone(), Arc::clone(&tool));
            async move {
                let arguments = values.into_iter().next().unwrap_or(Value::Null);
                let answer = granted.call(&tool, arguments).await;
                answer.map(plain).map_err(|fault| fault.to_string())
            }
        });
    }
    Ok(functions)
}

/// An answer as a value: what is there for programs, or else the text.
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

/// Calls have a deadline of their own, which ends what they ask.
pub(super) const LONG: Duration = Duration::from_secs(24 * 3600);

async fn run(
    code: ActorRef<CodeMessage>,
    granted: McpTools,
    call: McpCall,
) -> Result<McpAnswer, Fault> {
    let wanted: Wanted = call.read()?;
    let execute = Execute {
        code: wanted.code,
        language: wanted.language,
        args: wanted.args,
        realm: wanted.realm,
        functions: given(&granted, wanted.functions)?,
        budget: budget(wanted.time_ms, wanted.deadline_ms, wanted.memory),
    };
    let failed = |why: String| Fault::new(FaultCode::Failed, why);
    let followed = code.ask_within(FollowRun::new(execute), LONG).await;
    let followed = followed.map_err(|error| failed(error.to_string()))?;
    // Who stops reading, because the agent gave up, ends the run.
    let mut told = followed.map_err(|error| error.to_fault())?;
    let mut output = Vec::new();
    while let Some(next) = told.recv().await {
        match next.map_err(|error| failed(error.to_string()))? {
            Told::Line(line) => {
                output.push(line);
                let (count, text) = (output.len() as f64, &output[output.len() - 1].text);
                call.progress.tell(count, None, text).await;
            }
            // It was given no function that would be asked of us.
            Told::Called(_) => {}
            Told::Ended(outcome) => return Ok(answer(outcome, &output)),
        }
    }
    Err(failed("the code ended without a result".to_owned()))
}

fn answer(outcome: Result<Executed, CodeError>, output: &[Line]) -> McpAnswer {
    let mut text = String::new();
    for line in output {
        text.push_str(&line.text);
        text.push('\n');
    }
    match outcome {
        Ok(Executed { value, fresh, .. }) => {
            text.push_str(&value.to_string());
            let told = json!({ "value": value, "output": output, "fresh": fresh });
            McpAnswer::text(text).with_structured(told)
        }
        Err(error) => {
            text.push_str(&said(&error));
            let told = json!({ "output": output, "error": wrong(&error) });
            McpAnswer::text(text).with_structured(told).as_failure()
        }
    }
}

/// What went wrong, with its place.
pub(super) fn said(error: &CodeError) -> String {
    match error {
        CodeError::Thrown(thrown) => match thrown.place() {
            Some((line, column)) => format!("{error} (line {line}, column {column})"),
            None => error.to_string(),
        },
        error => error.to_string(),
    }
}

/// The same for programs.
fn wrong(error: &CodeError) -> Value {
    let mut wrong = json!({ "kind": error.name(), "message": error.to_string() });
    if let CodeError::Thrown(thrown) = error {
        let Thrown { name, stack, .. } = thrown;
        (wrong["name"], wrong["stack"]) = (json!(name), json!(stack));
        if let Some((line, column)) = thrown.place() {
            (wrong["line"], wrong["column"]) = (json!(line), json!(column));
        }
    }
    wrong
}
