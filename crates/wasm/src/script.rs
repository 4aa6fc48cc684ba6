//! Scripts: JavaScript that nobody has to trust, in realms of their own.
//!
//! A realm is an instance of the component `components/quickjs` in a Store of its own. What a
//! script can do is what is in its realm: the language, `console`, and the functions it was given.
//! A run that passes a limit ends with its realm, which takes along all that the run has made.
//!
//! A run computes on the thread of whoever polls it, and gives way at each tick, so that neither a
//! loop nor a builtin of the engine that takes long holds up a worker. Time counts while it
//! computes, not while it waits.

mod guest;
mod meter;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::Store;
use wasmtime::component::{InstancePre, Linker};

use self::guest::{Data, Exports, Functions, Gone, Passed, State};
use self::meter::{Clock, Metered};
use crate::digest::Digest;
use crate::engine::Class;
use crate::fault::cut;
use crate::host::{Full, Host, Permit};
use crate::load::{self, LoadError};

/// The engine for scripts, compiled and linked. A clone is the same.
#[derive(Clone)]
pub struct Scripts(Arc<Inner>);

struct Inner {
    host: Host,
    pre: InstancePre<Data>,
    exports: Exports,
}

impl fmt::Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripts")
    }
}

/// What a run may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunLimits {
    /// How long it may compute.
    pub time: Duration,
    /// The octets of its stack, as the engine counts them.
    pub stack: u32,
    /// The jobs of promises that may wait at a time.
    pub jobs: u32,
    /// The octets that it may write to the console.
    pub output: usize,
    /// The octets of its result, and of what it hands to a function of the host.
    pub result: usize,
    /// The calls of the host that may be under way at a time.
    pub calls: usize,
    /// Whether it sees the time of day.
    pub clock: bool,
    /// Whether its random numbers are nobody's to foretell.
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

/// A function that a run is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFunction {
    /// Its name in `fns`.
    pub name: String,
    /// Whether the script waits for its answer; else it gets a promise.
    pub waits: bool,
}

/// What a function of the host comes to: a value in JSON, or what went wrong.
pub type Answering = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// Whoever a run works for.
pub trait ScriptCaller: Send + 'static {
    /// Takes a line that the run wrote: 0 debug, 1 log, 2 info, 3 warn, 4 error.
    fn print(&mut self, level: u32, text: String);

    /// Calls a function that the run was given, by its place, with a list of values in JSON.
    fn call(&mut self, function: usize, arguments: String) -> Answering;

    /// Whether anybody still wants the result.
    fn is_wanted(&self) -> bool;
}

/// What a realm is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task<'a> {
    /// Run a script.
    Script {
        /// Its name in stack traces.
        name: &'a str,
        /// What it says.
        code: &'a str,
    },
    /// Call a global function.
    Call {
        /// Which.
        function: &'a str,
        /// With these: a list in JSON.
        arguments: &'a str,
    },
    /// Set a global variable.
    Set {
        /// Which.
        name: &'a str,
        /// To this, in JSON.
        value: &'a str,
    },
}

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The script failed.
    #[error("{0}")]
    Thrown(String),
    /// It passed a limit; the realm is gone.
    #[error("passed the limit `{0}`")]
    Limit(&'static str),
    /// Nobody wanted its result any more; the realm is gone.
    #[error("cancelled")]
    Cancelled,
    /// It waits for a promise that nothing will settle.
    #[error("waits for a promise that nothing will settle")]
    Unsettled,
    /// The realm was lost in an earlier run.
    #[error("the realm is gone")]
    Lost,
    /// The engine failed; the realm is gone.
    #[error("the engine failed: {0}")]
    Engine(String),
}

/// A realm: globals, and what scripts left in them.
pub struct Realm {
    store: Store<Data>,
    functions: Functions,
    host: Host,
    clock: Arc<Clock>,
    /// Whether a run ended in the middle: nothing is to run here again.
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
    /// Compiles and links the engine, which takes a second where it is not cached.
    ///
    /// # Errors
    /// When the octets are not the engine.
    pub fn load_blocking(host: &Host, octets: &[u8]) -> Result<Self, LoadError> {
        let class = Class::SCRIPT;
        let compiled = load::compile(host, Digest::of(octets), class, octets)?;
        let component = compiled.component();
        let exports = Exports::find(component).map_err(|missing| LoadError::Export { missing })?;
        let invalid = |error: wasmtime::Error| LoadError::Invalid {
            text: format!("{error:#}"),
        };
        let mut linker = Linker::new(component.engine());
        guest::link(&mut linker).map_err(invalid)?;
        let pre = linker.instantiate_pre(component).map_err(invalid)?;
        Ok(Self(Arc::new(Inner {
            host: host.clone(),
            pre,
            exports,
        })))
    }

    /// Makes a fresh realm with so much memory.
    ///
    /// # Errors
    /// When the host has no room for it.
    pub async fn realm(&self, memory: usize) -> Result<Realm, RealmError> {
        let Inner { host, pre, exports } = &*self.0;
        let permit = host.admit_realm()?;
        let engine = |error: wasmtime::Error| RealmError::Engine(cut(&format!("{error:#}")));
        let clock = Arc::new(Clock::default());
        let mut store = Store::new(pre.engine(), Data::new(memory, Arc::clone(&clock)));
        store.limiter(|data| &mut data.memory);
        store.epoch_deadline_callback(guest::tick);
        store.set_epoch_deadline(1);
        let instance = pre.instantiate_async(&mut store).await.map_err(engine)?;
        let functions = Functions::bind(&instance, &mut store, exports).map_err(engine)?;
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

/// Why there is no realm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RealmError {
    /// The host has no room for one more.
    #[error(transparent)]
    Full(#[from] Full),
    /// It cannot be made: mostly because its memory is less than the engine itself takes.
    #[error("no realm: {0}")]
    Engine(String),
}

impl Realm {
    /// The octets of its memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.store.data().memory.used()
    }

    /// Whether a run ended in the middle, so that nothing can run here again.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.lost
    }

    /// Does a task. Its result is JSON, or nothing.
    ///
    /// A run that is dropped before it ends takes its realm along.
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
        // Until it has ended in order.
        self.lost = true;
        self.clock.begin();
        self.store.data_mut().begin(*limits, caller);
        self.store
            .set_hostcall_fuel(limits.result.max(limits.output) + SLACK);
        self.store.set_epoch_deadline(1);
        let (clock, host) = (Arc::clone(&self.clock), self.host.clone());
        let steps = self.steps(task, functions, limits);
        let outcome = Metered::new(Box::pin(steps), clock, host).await;
        self.store.data_mut().end();
        self.lost = !matches!(
            outcome,
            Ok(_) | Err(RunError::Thrown(_) | RunError::Unsettled)
        );
        // What ran out of memory may hold anything.
        self.lost |= self.store.data().memory.was_refused();
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
        let octets = |text: &str| text.as_bytes().to_vec();
        let (function, first, second) = match task {
            Task::Script { name, code } => (&functions.evaluate, name, code),
            Task::Call {
                function,
                arguments,
            } => (&functions.call, function, arguments),
            Task::Set { name, value } => (&functions.set, name, value),
        };
        let params = (octets(first), octets(second));
        let called = function.call_async(&mut *store, params).await;
        let ((mut state, mut octets),) = called.map_err(|error| failed(store, &error))?;
        loop {
            match State::of(state) {
                State::Value => return value(store, octets, limits),
                State::Thrown => return Err(thrown(store, &octets)),
                State::Waiting => {}
                State::Stack => return Err(RunError::Limit("stack")),
                State::Unknown => return Err(RunError::Engine(format!("state {state}"))),
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
            ((state, octets),) = called.map_err(|error| failed(store, &error))?;
        }
    }
}

/// What a call carries besides octets.
const SLACK: usize = 4096;

/// The functions that a run is given, as the guest reads them.
fn listed(functions: &[ScriptFunction]) -> Vec<u8> {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
    let mut octets = number(functions.len()).to_vec();
    for function in functions {
        octets.extend(number(function.waits.into()));
        octets.extend(number(function.name.len()));
        octets.extend(function.name.as_bytes());
    }
    octets
}

fn value(
    store: &Store<Data>,
    octets: Vec<u8>,
    limits: &RunLimits,
) -> Result<Option<String>, RunError> {
    if octets.len() > limits.result {
        return Err(RunError::Limit("result"));
    }
    if octets.is_empty() {
        // A value that there was no memory to write down.
        return match store.data().memory.was_refused() {
            true => Err(RunError::Limit("memory")),
            false => Ok(None),
        };
    }
    let text = String::from_utf8(octets);
    let text = text.map_err(|_| RunError::Engine("a result that is no text".to_owned()))?;
    Ok(Some(text))
}

fn thrown(store: &Store<Data>, octets: &[u8]) -> RunError {
    if store.data().memory.was_refused() {
        return RunError::Limit("memory");
    }
    RunError::Thrown(String::from_utf8_lossy(octets).into_owned())
}

/// Names what ended a call.
fn failed(store: &Store<Data>, error: &wasmtime::Error) -> RunError {
    if let Some(Passed(limit)) = error.downcast_ref::<Passed>() {
        return RunError::Limit(limit);
    }
    if error.downcast_ref::<Gone>().is_some() {
        return RunError::Cancelled;
    }
    let root = error.root_cause().to_string();
    match error.downcast_ref::<wasmtime::Trap>() {
        Some(wasmtime::Trap::StackOverflow) => RunError::Limit("stack"),
        _ if store.data().memory.was_refused() => RunError::Limit("memory"),
        _ if root.contains(crate::fault::PAYLOAD) => RunError::Limit("result"),
        _ => RunError::Engine(cut(&root)),
    }
}
