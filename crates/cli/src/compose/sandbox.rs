//! Where code of tools runs: realms of the component host, behind what tool actors want of it.

use std::sync::Arc;

use strowger_tools::{
    Boxed, CallOutcome, CodeError, CodeHost, CodeLimit, CodeLimits, CodeRealm, CodeStep,
    FunctionName, Level, Sandbox, Thrown,
};
use strowger_wasm::{
    Answering, Host, LoadError, Realm, RealmError, RunError, RunLimits, ScriptCaller,
    ScriptFunction, Scripts, Task,
};
use tokio::sync::OnceCell;

/// The engine for scripts, as it was built from `components/quickjs`.
const ENGINE: &[u8] = include_bytes!("../../../../fixtures/components/quickjs.wasm");

/// A script that defines `strip`, which makes JavaScript of TypeScript.
pub(crate) const TYPESCRIPT: &str = include_str!("../../../../fixtures/scripts/typescript.js");

/// Code in realms of a host for components.
#[derive(Debug)]
pub(crate) struct Realms {
    host: Host,
    scripts: OnceCell<Scripts>,
}

impl Realms {
    /// Compiles the engine, where it is not cached.
    ///
    /// # Errors
    /// When the host cannot run it.
    pub(crate) fn new_blocking(host: &Host) -> Result<Arc<Self>, LoadError> {
        let mut realms = Self::on_demand(host);
        realms.scripts = OnceCell::new_with(Some(Scripts::load_blocking(host, ENGINE)?));
        Ok(Arc::new(realms))
    }

    /// Leaves the engine to the first who needs it.
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
            let realm: Box<dyn CodeRealm> = Box::new(One(realm));
            Ok(realm)
        })
    }
}

/// One realm.
#[derive(Debug)]
struct One(Realm);

impl CodeRealm for One {
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
            let caller = Box::new(Caller(host));
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
        RunError::Limit(name) => match CodeLimit::named(name) {
            Some(limit) => CodeError::Limit(limit),
            None => CodeError::Sandbox(error.to_string()),
        },
        RunError::Cancelled => CodeError::Cancelled,
        RunError::Unsettled => CodeError::Unsettled,
        _ => CodeError::Sandbox(error.to_string()),
    }
}

/// Whoever a run works for.
struct Caller(Box<dyn CodeHost>);

impl ScriptCaller for Caller {
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
