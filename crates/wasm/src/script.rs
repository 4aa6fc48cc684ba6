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

use self::guest::{RealmData, RealmExports, RealmFunctions, RunCancelled, StepState, text_of};
use self::meter::{MeteredRun, ScriptClock};
use crate::digest::Digest;
use crate::engine::{EngineClass, explain_refused_memory};
use crate::fault::printable;
use crate::host::{CapacityError, CapacityPermit, Host};
use crate::load::{self, LoadError};

/// The engine for scripts, compiled and linked. A clone is the same engine.
#[derive(Clone)]
pub struct ScriptEngine(Arc<ScriptEngineInner>);

struct ScriptEngineInner {
    host: Host,
    pre: InstancePre<RealmData>,
    exports: RealmExports,
}

impl fmt::Debug for ScriptEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptEngine")
    }
}

/// The limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptLimits {
    /// Maximum computing time, without the waits for host functions.
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

impl Default for ScriptLimits {
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
pub type ScriptCallFuture = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// The caller of a run.
pub trait ScriptCaller: Send + 'static {
    /// Receives a line that the run printed: 0 debug, 1 log, 2 info, 3 warn, 4 error.
    fn print(&mut self, level: u32, text: String);

    /// Calls a function that the run was given, by its index, with a list of values in JSON.
    fn call(&mut self, function: usize, arguments: String) -> ScriptCallFuture;

    /// Returns `true` if the result is still wanted.
    fn is_wanted(&self) -> bool;
}

/// A task for a realm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptTask<'a> {
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
pub enum ScriptError {
    /// The script failed.
    #[error("{0}")]
    Thrown(String),
    /// The run exceeded a limit; the realm is lost.
    #[error("{0}")]
    Limit(ExceededLimit),
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
pub struct ExceededLimit {
    /// The name of the limit, which is that of the field of [`ScriptLimits`], or `memory`.
    pub name: &'static str,
    /// The value of the limit: milliseconds, bytes or a count.
    pub most: u64,
    /// The amount that was used or requested, if known.
    pub used: Option<u64>,
}

impl ExceededLimit {
    const fn new(name: &'static str, most: u64, used: Option<u64>) -> Self {
        Self { name, most, used }
    }
}

/// A realm: global variables and everything that scripts stored in them.
pub struct Realm {
    store: Store<RealmData>,
    functions: RealmFunctions,
    host: Host,
    clock: Arc<ScriptClock>,
    /// `true` if a run ended early, so that nothing can run here again.
    lost: bool,
    _permit: CapacityPermit,
}

impl fmt::Debug for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Realm")
            .field("memory", &self.memory())
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

impl ScriptEngine {
    /// Compiles and links the engine, which takes a second unless it is cached.
    ///
    /// # Errors
    /// If the bytes are not the engine.
    pub fn load_blocking(host: &Host, bytes: &[u8]) -> Result<Self, LoadError> {
        let class = EngineClass::SCRIPT;
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
        Ok(Self(Arc::new(ScriptEngineInner {
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
        let ScriptEngineInner { host, pre, exports } = &*self.0;
        let permit = host.reserve_realm()?;
        let engine = |error: wasmtime::Error| {
            let text = explain_refused_memory(&error);
            RealmError::Engine(text.unwrap_or_else(|| printable(&format!("{error:#}"))))
        };
        let clock = Arc::new(ScriptClock::default());
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
    Full(#[from] CapacityError),
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
    /// A [`ScriptError`]: the script threw, exceeded a limit, was cancelled, or cannot finish.
    pub async fn run(
        &mut self,
        task: ScriptTask<'_>,
        functions: &[ScriptFunction],
        limits: &ScriptLimits,
        caller: Box<dyn ScriptCaller>,
    ) -> Result<Option<String>, ScriptError> {
        if self.lost {
            return Err(ScriptError::Lost);
        }
        // Set until the run has ended in order.
        self.lost = true;
        self.clock.begin();
        self.store.data_mut().begin(*limits, caller);
        // Nothing that a guest passes is larger than its memory. Results that exceed their limit
        // are measured later, where the limit is known.
        let max_bytes = self.store.data().memory.max();
        self.store.set_hostcall_fuel(max_bytes + CALL_OVERHEAD);
        self.store.set_epoch_deadline(1);
        let (clock, host) = (Arc::clone(&self.clock), self.host.clone());
        let steps = self.steps(task, functions, limits);
        let outcome = MeteredRun::new(Box::pin(steps), clock, host).await;
        self.store.data_mut().end();
        self.lost = !matches!(
            outcome,
            Ok(_) | Err(ScriptError::Thrown(_) | ScriptError::Unsettled)
        );
        // A realm that ran out of memory may be in any state.
        self.lost |= self.store.data().memory.exceeded().is_some();
        outcome
    }

    async fn steps(
        &mut self,
        task: ScriptTask<'_>,
        given: &[ScriptFunction],
        limits: &ScriptLimits,
    ) -> Result<Option<String>, ScriptError> {
        let granted = u32::from(limits.clock) | u32::from(limits.random) << 1;
        let Self {
            store, functions, ..
        } = self;
        let params = (limits.stack, limits.jobs, granted, encode_functions(given));
        let begun = functions.begin.call_async(&mut *store, params).await;
        begun.map_err(|error| call_error(store, &error))?;
        let bytes = |text: &str| text.as_bytes().to_vec();
        let (function, first, second) = match task {
            ScriptTask::Script { name, code } => (&functions.evaluate, name, code),
            ScriptTask::Call {
                function,
                arguments,
            } => (&functions.call, function, arguments),
            ScriptTask::Set { name, value } => (&functions.set, name, value),
        };
        let params = (bytes(first), bytes(second));
        let called = function.call_async(&mut *store, params).await;
        let ((mut state, mut bytes),) = called.map_err(|error| call_error(store, &error))?;
        loop {
            match StepState::of(state) {
                StepState::Value => return result_value(store, bytes, limits),
                StepState::Thrown => return Err(thrown_error(store, &bytes, limits)),
                StepState::Waiting => {}
                StepState::Stack => return Err(ScriptError::Limit(store.data().stack_exceeded())),
                StepState::Unknown => return Err(ScriptError::Engine(format!("state {state}"))),
            }
            let Some((token, answer)) = store.data_mut().answer().await else {
                return Err(ScriptError::Unsettled);
            };
            if !store.data().is_wanted() {
                return Err(ScriptError::Cancelled);
            }
            let (well, text) = match answer {
                Ok(text) => (true, text),
                Err(text) => (false, text),
            };
            let params = (token, well, text.into_bytes());
            let called = functions.settle.call_async(&mut *store, params).await;
            ((state, bytes),) = called.map_err(|error| call_error(store, &error))?;
        }
    }
}

/// Allowance for what a call carries besides bytes.
const CALL_OVERHEAD: usize = 4096;

/// Encodes the functions that a run is given for the guest.
fn encode_functions(functions: &[ScriptFunction]) -> Vec<u8> {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
    let mut bytes = number(functions.len()).to_vec();
    for function in functions {
        bytes.extend(number(function.waits.into()));
        bytes.extend(number(function.name.len()));
        bytes.extend(function.name.as_bytes());
    }
    bytes
}

fn result_value(
    store: &Store<RealmData>,
    bytes: Vec<u8>,
    limits: &ScriptLimits,
) -> Result<Option<String>, ScriptError> {
    check_result_size(&bytes, limits)?;
    if bytes.is_empty() {
        // There was not enough memory to encode the value.
        return match store.data().memory.exceeded() {
            Some(exceeded) => Err(ScriptError::Limit(exceeded)),
            None => Ok(None),
        };
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| ScriptError::Engine("the result is not text".to_owned()))?;
    Ok(Some(text))
}

/// Checks that the result of a run is within the limit.
fn check_result_size(bytes: &[u8], limits: &ScriptLimits) -> Result<(), ScriptError> {
    if bytes.len() <= limits.result {
        return Ok(());
    }
    let (most, used) = (limits.result as u64, bytes.len() as u64);
    Err(ScriptError::Limit(ExceededLimit::new(
        "result",
        most,
        Some(used),
    )))
}

fn thrown_error(store: &Store<RealmData>, bytes: &[u8], limits: &ScriptLimits) -> ScriptError {
    if let Some(exceeded) = store.data().memory.exceeded() {
        return ScriptError::Limit(exceeded);
    }
    // The message of an error may be longer than a small limit of results.
    match bytes.len() <= limits.output.max(CALL_OVERHEAD) {
        true => ScriptError::Thrown(text_of(bytes)),
        false => check_result_size(bytes, limits).map_or_else(
            |exceeded| exceeded,
            |()| ScriptError::Thrown(text_of(bytes)),
        ),
    }
}

/// Classifies the error that ended a call.
fn call_error(store: &Store<RealmData>, error: &wasmtime::Error) -> ScriptError {
    if let Some(exceeded) = error.downcast_ref::<ExceededLimit>() {
        return ScriptError::Limit(*exceeded);
    }
    if error.downcast_ref::<RunCancelled>().is_some() {
        return ScriptError::Cancelled;
    }
    let root = error.root_cause().to_string();
    let data = store.data();
    match error.downcast_ref::<wasmtime::Trap>() {
        Some(wasmtime::Trap::StackOverflow) => ScriptError::Limit(data.stack_exceeded()),
        _ => match data.memory.exceeded() {
            Some(exceeded) => ScriptError::Limit(exceeded),
            None if root.contains(crate::fault::HOSTCALL_BUDGET_TEXT) => {
                ScriptError::Limit(data.result_exceeded())
            }
            None => ScriptError::Engine(printable(&root)),
        },
    }
}
