//! Scripts: untrusted JavaScript, in realms of their own.
//!
//! A realm is an instance of the component `components/quickjs` in a Store of its own. A script has
//! access only to its realm: the language, `console`, and the functions that it is given. A run
//! that exceeds a limit ends together with its realm, which frees everything that the run has
//! created.
//!
//! A run computes on the thread that polls it. It yields at each tick, so that neither a loop nor a
//! long-running builtin blocks a worker. Time counts while the run computes, not while it waits.

mod guest;
mod meter;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::Store;
use wasmtime::component::{InstancePre, Linker};

use self::guest::{RealmData, RealmExports, RealmFunctions, ResultUnwanted, StepState, text_of};
use self::meter::{Metered, RunClock};
use crate::digest::Digest;
use crate::engine::Class;
use crate::fault::printable;
use crate::host::{Full, Host, Permit};
use crate::load::{self, LoadError};

/// The engine for scripts, compiled and linked. A clone is the same engine.
#[derive(Clone)]
pub struct Scripts(Arc<ScriptsInner>);

struct ScriptsInner {
    host: Host,
    pre: InstancePre<RealmData>,
    exports: RealmExports,
}

impl fmt::Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripts")
    }
}

/// The limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunLimits {
    /// Maximum computing time.
    pub time: Duration,
    /// Maximum size of its stack in bytes, as the engine counts them.
    pub stack: u32,
    /// Maximum number of pending promise jobs.
    pub jobs: u32,
    /// Maximum number of bytes that it may write to the console.
    pub output: usize,
    /// Maximum size in bytes of its result, and of the arguments that it passes to a host function.
    pub result: usize,
    /// Maximum number of host calls in progress.
    pub calls: usize,
    /// `true` if it can read the time of day.
    pub clock: bool,
    /// `true` if its random numbers are unpredictable.
    pub random: bool,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(1),
            stack: 512 << 10,
            jobs: 10_000,
            output: 256 << 10,
            result: 1 << 20,
            calls: 16,
            clock: false,
            random: false,
        }
    }
}

/// A host function that a run is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFunction {
    /// Its name in `fns`.
    pub name: String,
    /// `true` if the script waits for its result; otherwise it gets a promise.
    pub waits: bool,
}

/// A future of the result of a host function: a value in JSON, or an error message.
pub type Answering = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// The caller of a run.
pub trait ScriptCaller: Send + 'static {
    /// Receives a line that the run printed: 0 debug, 1 log, 2 info, 3 warn, 4 error.
    fn print(&mut self, level: u32, text: String);

    /// Calls a function that the run was given, by its index, with a list of values in JSON.
    fn call(&mut self, function: usize, arguments: String) -> Answering;

    /// Returns `true` if the result is still wanted.
    fn is_wanted(&self) -> bool;
}

/// A task for a realm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task<'a> {
    /// Runs a script.
    Script {
        /// Its name in stack traces.
        name: &'a str,
        /// Its source code.
        code: &'a str,
    },
    /// Calls a global function.
    Call {
        /// The name of the function.
        function: &'a str,
        /// The arguments: a list in JSON.
        arguments: &'a str,
    },
    /// Sets a global variable.
    Set {
        /// The name of the variable.
        name: &'a str,
        /// The value in JSON.
        value: &'a str,
    },
}

/// The error returned when a run has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The script failed.
    #[error("{0}")]
    Thrown(String),
    /// The run exceeded a limit; the realm is lost.
    #[error("{0}")]
    Limit(ScriptLimit),
    /// The result was no longer wanted; the realm is lost.
    #[error("cancelled")]
    Cancelled,
    /// The script waits for a promise that nothing will settle.
    #[error("waits for a promise that can never settle")]
    Unsettled,
    /// The realm was lost in an earlier run.
    #[error("the realm no longer exists")]
    Lost,
    /// The engine failed; the realm is lost.
    #[error("the engine failed: {0}")]
    Engine(String),
}

/// A limit that a script exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("exceeded the limit `{name}` of {most}")]
#[non_exhaustive]
pub struct ScriptLimit {
    /// The name of the limit, which is that of the field of [`RunLimits`], or `memory`.
    pub name: &'static str,
    /// The value of the limit: milliseconds, bytes or a count.
    pub most: u64,
    /// The amount that was used or requested, if known.
    pub used: Option<u64>,
}

impl ScriptLimit {
    const fn new(name: &'static str, most: u64, used: Option<u64>) -> Self {
        Self { name, most, used }
    }
}

/// A realm: global variables and everything that scripts stored in them.
pub struct Realm {
    store: Store<RealmData>,
    functions: RealmFunctions,
    host: Host,
    clock: Arc<RunClock>,
    /// `true` if a run ended early, so that nothing can run here again.
    lost: bool,
    _permit: Permit,
}

impl fmt::Debug for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Realm")
            .field("memory", &self.memory())
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

impl Scripts {
    /// Compiles and links the engine, which takes a second unless it is cached.
    ///
    /// # Errors
    /// If the bytes are not the engine.
    pub fn load_blocking(host: &Host, bytes: &[u8]) -> Result<Self, LoadError> {
        let class = Class::SCRIPT;
        let compiled = load::compile(host, Digest::of(bytes), class, bytes)?;
        let component = compiled.component();
        let exports =
            RealmExports::find(component).map_err(|missing| LoadError::Export { missing })?;
        let invalid = |error: wasmtime::Error| LoadError::Invalid {
            text: format!("{error:#}"),
        };
        let mut linker = Linker::new(component.engine());
        guest::link(&mut linker).map_err(invalid)?;
        let pre = linker.instantiate_pre(component).map_err(invalid)?;
        Ok(Self(Arc::new(ScriptsInner {
            host: host.clone(),
            pre,
            exports,
        })))
    }

    /// Creates a new realm with at most `memory` bytes of memory.
    ///
    /// # Errors
    /// If the host has no capacity, or the realm cannot be created.
    pub async fn realm(&self, memory: usize) -> Result<Realm, RealmError> {
        let ScriptsInner { host, pre, exports } = &*self.0;
        let permit = host.admit_realm()?;
        let engine = |error: wasmtime::Error| RealmError::Engine(printable(&format!("{error:#}")));
        let clock = Arc::new(RunClock::default());
        let mut store = Store::new(pre.engine(), RealmData::new(memory, Arc::clone(&clock)));
        store.limiter(|data| &mut data.memory);
        store.epoch_deadline_callback(guest::tick);
        store.set_epoch_deadline(1);
        let instance = pre.instantiate_async(&mut store).await.map_err(engine)?;
        let functions = RealmFunctions::bind(&instance, &mut store, exports).map_err(engine)?;
        Ok(Realm {
            store,
            functions,
            host: host.clone(),
            clock,
            lost: false,
            _permit: permit,
        })
    }
}

/// The error returned when a realm cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RealmError {
    /// The host has no capacity for another realm.
    #[error(transparent)]
    Full(#[from] Full),
    /// Instantiation failed, usually because the memory is less than the engine itself needs.
    #[error("cannot create a realm: {0}")]
    Engine(String),
}

impl Realm {
    /// Returns the size of its memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.store.data().memory.used()
    }

    /// Returns `true` if a run ended early, so that nothing can run here again.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.lost
    }

    /// Performs a task. Its result is JSON, or `None`.
    ///
    /// If the returned future is dropped before it ends, the realm is lost.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn run(
        &mut self,
        task: Task<'_>,
        functions: &[ScriptFunction],
        limits: &RunLimits,
        caller: Box<dyn ScriptCaller>,
    ) -> Result<Option<String>, RunError> {
        if self.lost {
            return Err(RunError::Lost);
        }
        // Set until the run has ended in order.
        self.lost = true;
        self.clock.begin();
        self.store.data_mut().begin(*limits, caller);
        // Nothing that a guest passes is larger than its memory. Results that exceed their limit
        // are measured later, where the limit is known.
        let longest = self.store.data().memory.max();
        self.store.set_hostcall_fuel(longest + SLACK);
        self.store.set_epoch_deadline(1);
        let (clock, host) = (Arc::clone(&self.clock), self.host.clone());
        let steps = self.steps(task, functions, limits);
        let outcome = Metered::new(Box::pin(steps), clock, host).await;
        self.store.data_mut().end();
        self.lost = !matches!(
            outcome,
            Ok(_) | Err(RunError::Thrown(_) | RunError::Unsettled)
        );
        // A realm that ran out of memory may be in any state.
        self.lost |= self.store.data().memory.passed().is_some();
        outcome
    }

    async fn steps(
        &mut self,
        task: Task<'_>,
        given: &[ScriptFunction],
        limits: &RunLimits,
    ) -> Result<Option<String>, RunError> {
        let granted = u32::from(limits.clock) | u32::from(limits.random) << 1;
        let Self {
            store, functions, ..
        } = self;
        let params = (limits.stack, limits.jobs, granted, listed(given));
        let begun = functions.begin.call_async(&mut *store, params).await;
        begun.map_err(|error| failed(store, &error))?;
        let bytes = |text: &str| text.as_bytes().to_vec();
        let (function, first, second) = match task {
            Task::Script { name, code } => (&functions.evaluate, name, code),
            Task::Call {
                function,
                arguments,
            } => (&functions.call, function, arguments),
            Task::Set { name, value } => (&functions.set, name, value),
        };
        let params = (bytes(first), bytes(second));
        let called = function.call_async(&mut *store, params).await;
        let ((mut state, mut bytes),) = called.map_err(|error| failed(store, &error))?;
        loop {
            match StepState::of(state) {
                StepState::Value => return value(store, bytes, limits),
                StepState::Thrown => return Err(thrown(store, &bytes, limits)),
                StepState::Waiting => {}
                StepState::Stack => return Err(RunError::Limit(store.data().stack())),
                StepState::Unknown => return Err(RunError::Engine(format!("state {state}"))),
            }
            let Some((token, answer)) = store.data_mut().answer().await else {
                return Err(RunError::Unsettled);
            };
            if !store.data().is_wanted() {
                return Err(RunError::Cancelled);
            }
            let (well, text) = match answer {
                Ok(text) => (true, text),
                Err(text) => (false, text),
            };
            let params = (token, well, text.into_bytes());
            let called = functions.settle.call_async(&mut *store, params).await;
            ((state, bytes),) = called.map_err(|error| failed(store, &error))?;
        }
    }
}

/// Allowance for what a call carries besides bytes.
const SLACK: usize = 4096;

/// Encodes the functions that a run is given for the guest.
fn listed(functions: &[ScriptFunction]) -> Vec<u8> {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
    let mut bytes = number(functions.len()).to_vec();
    for function in functions {
        bytes.extend(number(function.waits.into()));
        bytes.extend(number(function.name.len()));
        bytes.extend(function.name.as_bytes());
    }
    bytes
}

fn value(
    store: &Store<RealmData>,
    bytes: Vec<u8>,
    limits: &RunLimits,
) -> Result<Option<String>, RunError> {
    fits(&bytes, limits)?;
    if bytes.is_empty() {
        // There was not enough memory to encode the value.
        return match store.data().memory.passed() {
            Some(passed) => Err(RunError::Limit(passed)),
            None => Ok(None),
        };
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| RunError::Engine("the result is not text".to_owned()))?;
    Ok(Some(text))
}

/// Checks that the result of a run is within the limit.
fn fits(bytes: &[u8], limits: &RunLimits) -> Result<(), RunError> {
    if bytes.len() <= limits.result {
        return Ok(());
    }
    let (most, used) = (limits.result as u64, bytes.len() as u64);
    Err(RunError::Limit(ScriptLimit::new(
        "result",
        most,
        Some(used),
    )))
}

fn thrown(store: &Store<RealmData>, bytes: &[u8], limits: &RunLimits) -> RunError {
    if let Some(passed) = store.data().memory.passed() {
        return RunError::Limit(passed);
    }
    // The message of an error may be longer than a small limit of results.
    match bytes.len() <= limits.output.max(SLACK) {
        true => RunError::Thrown(text_of(bytes)),
        false => {
            fits(bytes, limits).map_or_else(|passed| passed, |()| RunError::Thrown(text_of(bytes)))
        }
    }
}

/// Classifies the error that ended a call.
fn failed(store: &Store<RealmData>, error: &wasmtime::Error) -> RunError {
    if let Some(passed) = error.downcast_ref::<ScriptLimit>() {
        return RunError::Limit(*passed);
    }
    if error.downcast_ref::<ResultUnwanted>().is_some() {
        return RunError::Cancelled;
    }
    let root = error.root_cause().to_string();
    let data = store.data();
    match error.downcast_ref::<wasmtime::Trap>() {
        Some(wasmtime::Trap::StackOverflow) => RunError::Limit(data.stack()),
        _ => match data.memory.passed() {
            Some(passed) => RunError::Limit(passed),
            None if root.contains(crate::fault::PAYLOAD) => RunError::Limit(data.result()),
            None => RunError::Engine(printable(&root)),
        },
    }
}
