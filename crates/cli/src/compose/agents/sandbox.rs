//! The sandbox for code of tools: realms of the component host behind the interface of tool actors.

use std::sync::Arc;

use strowger_tools::code::{
    BoxFuture, CallOutcome, CodeError, CodeHost, CodeLimit, CodeLimits, CodeRealm, CodeStep,
    ConsoleLevel, ExceededLimit, FunctionDecl, Sandbox, ThrownValue,
};
use strowger_wasm::script::{
    Realm, RealmError, ScriptCallFuture, ScriptCaller, ScriptEngine, ScriptError, ScriptFunction,
    ScriptLimits, ScriptTask,
};
use strowger_wasm::{Host, LoadError};
use tokio::sync::OnceCell;

/// The script engine, built from `components/quickjs`.
const ENGINE: &[u8] = include_bytes!("../../../embedded/quickjs.wasm");

/// A script that defines `strip`, which turns TypeScript into JavaScript.
pub(crate) const TYPESCRIPT: &str = include_str!("../../../embedded/typescript.js");

/// A sandbox that runs code in realms of a component host.
#[derive(Debug)]
pub(crate) struct Realms {
    host: Host,
    scripts: OnceCell<ScriptEngine>,
}

impl Realms {
    /// Compiles the engine, unless it is cached.
    ///
    /// # Errors
    /// Returns an error if the host cannot run the engine.
    pub(crate) fn new_blocking(host: &Host) -> Result<Arc<Self>, LoadError> {
        let mut realms = Self::on_demand(host);
        realms.scripts = OnceCell::new_with(Some(ScriptEngine::load_blocking(host, ENGINE)?));
        Ok(Arc::new(realms))
    }

    /// Creates a sandbox that loads the engine on first use.
    pub(crate) fn on_demand(host: &Host) -> Self {
        Self {
            host: host.clone(),
            scripts: OnceCell::new(),
        }
    }

    async fn scripts(&self) -> Result<&ScriptEngine, CodeError> {
        let load = || async {
            let host = self.host.clone();
            let load =
                tokio::task::spawn_blocking(move || ScriptEngine::load_blocking(&host, ENGINE));
            let loaded = load.await.map_err(|error| error.to_string());
            let loaded = loaded.and_then(|loaded| loaded.map_err(|error| error.to_string()));
            loaded.map_err(CodeError::SandboxFailed)
        };
        self.scripts.get_or_try_init(load).await
    }
}

impl Sandbox for Realms {
    fn realm(&self, memory: usize) -> BoxFuture<'_, Result<Box<dyn CodeRealm>, CodeError>> {
        Box::pin(async move {
            let scripts = self.scripts().await?;
            let realm = scripts.realm(memory).await.map_err(|error| match error {
                RealmError::Full(full) => CodeError::Full(full.to_string()),
                error => CodeError::SandboxFailed(error.to_string()),
            })?;
            let realm: Box<dyn CodeRealm> = Box::new(HostRealm(realm));
            Ok(realm)
        })
    }
}

/// A realm for code.
#[derive(Debug)]
struct HostRealm(Realm);

impl CodeRealm for HostRealm {
    fn run<'a>(
        &'a mut self,
        step: CodeStep<'a>,
        functions: &'a [FunctionDecl],
        limits: &'a CodeLimits,
        host: Box<dyn CodeHost>,
    ) -> BoxFuture<'a, Result<Option<String>, CodeError>> {
        Box::pin(async move {
            let functions = functions.iter().map(|function| ScriptFunction {
                name: function.name.clone(),
                waits: function.waits,
            });
            let functions: Vec<_> = functions.collect();
            let caller = Box::new(HostCaller(host));
            let limits = run_limits(limits);
            let run = self.0.run(script_task(step), &functions, &limits, caller);
            run.await.map_err(|error| code_error(&error))
        })
    }

    fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    fn memory(&self) -> usize {
        self.0.memory()
    }
}

const fn script_task(step: CodeStep<'_>) -> ScriptTask<'_> {
    match step {
        CodeStep::Script { name, code } => ScriptTask::Script { name, code },
        CodeStep::Call {
            function,
            arguments,
        } => ScriptTask::Call {
            function,
            arguments,
        },
        CodeStep::Set { name, value } => ScriptTask::Set { name, value },
    }
}

fn run_limits(limits: &CodeLimits) -> ScriptLimits {
    let mut within = ScriptLimits::default();
    within.time = limits.time;
    within.stack = limits.stack;
    within.jobs = limits.jobs;
    within.output = limits.output;
    within.result = limits.result;
    within.calls = limits.calls;
    within.clock = limits.clock;
    within.random = limits.random;
    within
}

fn code_error(error: &ScriptError) -> CodeError {
    match error {
        ScriptError::Thrown(json) => CodeError::Thrown(ThrownValue::from_json(json)),
        ScriptError::Limit(passed) => match CodeLimit::from_name(passed.name) {
            Some(limit) => CodeError::Limit(ExceededLimit::new(limit, passed.most, passed.used)),
            None => CodeError::SandboxFailed(error.to_string()),
        },
        ScriptError::Cancelled => CodeError::Cancelled,
        ScriptError::Unsettled => CodeError::Unsettled,
        _ => CodeError::SandboxFailed(error.to_string()),
    }
}

/// The code host that a run reports to and calls.
struct HostCaller(Box<dyn CodeHost>);

impl ScriptCaller for HostCaller {
    fn print(&mut self, level: u32, text: String) {
        self.0.print(ConsoleLevel::from_number(level), text);
    }

    fn call(&mut self, function: usize, arguments: String) -> ScriptCallFuture {
        let called: BoxFuture<'static, CallOutcome> = self.0.call(function, arguments);
        called
    }

    fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }
}
