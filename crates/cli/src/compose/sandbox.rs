//! The sandbox for code of tools: realms of the component host behind the interface of tool actors.

use std::sync::Arc;

use strowger_tools::{
    Boxed, CallOutcome, CodeError, CodeHost, CodeLimit, CodeLimits, CodeRealm, CodeStep,
    FunctionName, Level, PassedLimit, Sandbox, Thrown,
};
use strowger_wasm::{
    Answering, Host, LoadError, Realm, RealmError, RunError, RunLimits, ScriptCaller,
    ScriptFunction, Scripts, Task,
};
use tokio::sync::OnceCell;

/// The script engine, built from `components/quickjs`.
const ENGINE: &[u8] = include_bytes!("../../embedded/quickjs.wasm");

/// A script that defines `strip`, which turns TypeScript into JavaScript.
pub(crate) const TYPESCRIPT: &str = include_str!("../../embedded/typescript.js");

/// A sandbox that runs code in realms of a component host.
#[derive(Debug)]
pub(crate) struct Realms {
    host: Host,
    scripts: OnceCell<Scripts>,
}

impl Realms {
    /// Compiles the engine, unless it is cached.
    ///
    /// # Errors
    /// Returns an error if the host cannot run the engine.
    pub(crate) fn new_blocking(host: &Host) -> Result<Arc<Self>, LoadError> {
        let mut realms = Self::on_demand(host);
        realms.scripts = OnceCell::new_with(Some(Scripts::load_blocking(host, ENGINE)?));
        Ok(Arc::new(realms))
    }

    /// Creates a sandbox that loads the engine on first use.
    pub(crate) fn on_demand(host: &Host) -> Self {
        Self {
            host: host.clone(),
            scripts: OnceCell::new(),
        }
    }

    async fn scripts(&self) -> Result<&Scripts, CodeError> {
        let load = || async {
            let host = self.host.clone();
            let load = tokio::task::spawn_blocking(move || Scripts::load_blocking(&host, ENGINE));
            let loaded = load.await.map_err(|error| error.to_string());
            let loaded = loaded.and_then(|loaded| loaded.map_err(|error| error.to_string()));
            loaded.map_err(CodeError::Sandbox)
        };
        self.scripts.get_or_try_init(load).await
    }
}

impl Sandbox for Realms {
    fn realm(&self, memory: usize) -> Boxed<'_, Result<Box<dyn CodeRealm>, CodeError>> {
        Box::pin(async move {
            let scripts = self.scripts().await?;
            let realm = scripts.realm(memory).await.map_err(|error| match error {
                RealmError::Full(full) => CodeError::Full(full.to_string()),
                error => CodeError::Sandbox(error.to_string()),
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
        functions: &'a [FunctionName],
        limits: &'a CodeLimits,
        host: Box<dyn CodeHost>,
    ) -> Boxed<'a, Result<Option<String>, CodeError>> {
        Box::pin(async move {
            let functions = functions.iter().map(|function| ScriptFunction {
                name: function.name.clone(),
                waits: function.waits,
            });
            let functions: Vec<_> = functions.collect();
            let caller = Box::new(HostCaller(host));
            let limits = within(limits);
            let run = self.0.run(task(step), &functions, &limits, caller);
            run.await.map_err(|error| told(&error))
        })
    }

    fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    fn memory(&self) -> usize {
        self.0.memory()
    }
}

const fn task(step: CodeStep<'_>) -> Task<'_> {
    match step {
        CodeStep::Script { name, code } => Task::Script { name, code },
        CodeStep::Call {
            function,
            arguments,
        } => Task::Call {
            function,
            arguments,
        },
        CodeStep::Set { name, value } => Task::Set { name, value },
    }
}

fn within(limits: &CodeLimits) -> RunLimits {
    let mut within = RunLimits::default();
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

fn told(error: &RunError) -> CodeError {
    match error {
        RunError::Thrown(json) => CodeError::Thrown(Thrown::of(json)),
        RunError::Limit(passed) => match CodeLimit::named(passed.name) {
            Some(limit) => CodeError::Limit(PassedLimit::new(limit, passed.most, passed.used)),
            None => CodeError::Sandbox(error.to_string()),
        },
        RunError::Cancelled => CodeError::Cancelled,
        RunError::Unsettled => CodeError::Unsettled,
        _ => CodeError::Sandbox(error.to_string()),
    }
}

/// The code host that a run reports to and calls.
struct HostCaller(Box<dyn CodeHost>);

impl ScriptCaller for HostCaller {
    fn print(&mut self, level: u32, text: String) {
        self.0.print(Level::of(level), text);
    }

    fn call(&mut self, function: usize, arguments: String) -> Answering {
        let called: Boxed<'static, CallOutcome> = self.0.call(function, arguments);
        called
    }

    fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }
}
