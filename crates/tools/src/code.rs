//! An actor that runs untrusted JavaScript and TypeScript.
//!
//! The crate has no JavaScript engine: a [`Sandbox`] supplies it. The `strowger` binary runs
//! QuickJS as a WebAssembly component.
//!
//! ```
//! use std::sync::Arc;
//!
//! use strowger::{ActorSystem, BoxError};
//! use strowger_tools::code::{Code, CodeSpec, ExecuteRequest, GrantedFunctions, Sandbox};
//!
//! async fn total(system: &ActorSystem, sandbox: Arc<dyn Sandbox>) -> Result<(), BoxError> {
//!     let code = system.spawn::<Code>("code", CodeSpec::new(sandbox))?;
//!     let price = GrantedFunctions::new().waiting("price", |_| async { Ok::<_, String>(7) });
//!     let run = ExecuteRequest::new("3 * fns.price('pen')").with_functions(price);
//!     assert_eq!(code.ask(run).await??.value, 21);
//!     Ok(())
//! }
//! ```
//!
//! # Implementation
//!
//! ```text
//! Execute ─▶ within the source limit? valid function names? a free slot?
//!            TypeScript: types are stripped first, in a separate realm
//!            a fresh realm, or a named realm that is kept between runs
//!            run ─▶ output lines, calls of granted functions ─▶ a value, or a named error
//! ```
//!
//! The actor runs up to [`CodeSpec::runs`] jobs at a time, each within its limits, and stays
//! responsive while they run. A run is cancelled when its caller stops waiting. A fresh realm is
//! dropped after its run. A named realm is open to every caller that knows the name; it is dropped
//! when a run in it exceeds a limit or when it has been idle for [`CodeSpec::idle`].

mod error;
mod export;
mod functions;
mod json;
mod message;
mod open_calls;
pub(crate) mod run;
pub(crate) mod sandbox;
mod spec;
mod stats;
pub(crate) mod typescript;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use strowger::{Ask, BoxError, Context, Signal, SlowReader, SourceSpec, handlers};
use tokio::time::Instant;

pub use error::{CodeError, CodeLimit, ExceededLimit, LimitOrigin, ThrownValue};
pub(crate) use export::{FunctionTarget, granted_functions};
pub use functions::GrantedFunctions;
pub use message::{
    AnswerCallRequest, CodeUsage, CodeUsageRequest, ConsoleLevel, ConsoleLine, ExecuteRequest,
    FollowRunRequest, FollowerCall, ForgetRealmRequest, Language, RunEvent, RunResult,
};
use open_calls::OpenCalls;
use run::{RunCaller, RunOwner};
pub use sandbox::{BoxFuture, CallOutcome, CodeHost, CodeRealm, CodeStep, FunctionDecl, Sandbox};
pub use spec::{CodeBudget, CodeLimits, CodeSpec};
pub use stats::CodeWatch;
use typescript::TypeStripper;

/// An actor that runs untrusted JavaScript and TypeScript with no access beyond what each run is
/// granted.
#[derive(Debug)]
pub struct Code {
    spec: Arc<CodeSpec>,
    stripper: Option<Arc<TypeStripper>>,
    actor: String,
    realms: BTreeMap<String, NamedRealm>,
    /// Runs that wait for a free slot.
    queue: VecDeque<CodeJob>,
    running: usize,
    /// Function calls that wait for an answer from the follower of their run.
    calls: OpenCalls,
    usage: CodeUsage,
}

/// A named realm that is kept between runs.
#[derive(Debug)]
struct NamedRealm {
    /// `None` while a run uses the realm.
    realm: Option<Box<dyn CodeRealm>>,
    /// Runs that wait for the realm.
    waiting: VecDeque<CodeJob>,
    last_used: Instant,
    /// Set when the realm was asked to end while in use; it is dropped once its run ends.
    forgotten: bool,
}

/// A run that was admitted, with its effective limits and its caller.
struct CodeJob {
    execute: ExecuteRequest,
    limits: CodeLimits,
    caller: Arc<RunCaller>,
}

impl std::fmt::Debug for CodeJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CodeJob({} bytes)", self.execute.code.len())
    }
}

/// The message that a run sends to its actor after the run has ended and was answered.
#[doc(hidden)]
#[derive(Debug)]
pub struct RunDone {
    /// The audit record of the run.
    record: RunRecord,
    /// The name of the realm, and the realm itself unless it was lost; `None` for a fresh realm.
    named: Option<(String, Option<Box<dyn CodeRealm>>)>,
}

/// The audit record of a run.
#[derive(Debug)]
struct RunRecord {
    realm: Option<String>,
    language: Language,
    bytes: usize,
    /// `None` if the run succeeded.
    error: Option<CodeError>,
}

/// The timer message that drops idle realms.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct DropIdleRealms;

/// Maximum length of a realm name, in bytes.
const MAX_REALM_NAME: usize = 64;

#[handlers]
impl strowger::Actor for Code {
    type Args = CodeSpec;
    type Error = BoxError;

    const PIPES: usize = 64;

    async fn pre_start(spec: CodeSpec, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let sandbox = &spec.sandbox;
        let stripper = spec.typescript.clone();
        let stripper =
            stripper.map(|script| Arc::new(TypeStripper::new(Arc::clone(sandbox), script)));
        cx.send_after(spec.idle / 2, DropIdleRealms);
        Ok(Self {
            stripper,
            actor: cx.path().to_string(),
            realms: BTreeMap::new(),
            queue: VecDeque::new(),
            running: 0,
            calls: OpenCalls::default(),
            usage: spec.watch.usage(),
            spec: Arc::new(spec),
        })
    }

    async fn execute(&mut self, ask: Ask<ExecuteRequest>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let caller = RunCaller::for_reply(reply);
        self.admit(request, caller, cx).await;
        self.publish_stats();
    }

    async fn follow_run(&mut self, ask: Ask<FollowRunRequest>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let mut source = cx.source(SourceSpec::DEFAULT.slow_reader(SlowReader::Wait).readers(1));
        match source.reader() {
            Ok(reader) => {
                reply.send(Ok(reader));
                let FollowRunRequest {
                    mut execute,
                    follower_functions,
                } = request;
                let follower = RunCaller::for_stream(source);
                execute.functions =
                    self.calls
                        .add_to(execute.functions, follower_functions, &follower);
                self.admit(execute, follower, cx).await;
                self.publish_stats();
            }
            Err(error) => reply.send(Err(CodeError::SandboxFailed(error.to_string()))),
        }
    }

    async fn answer(&mut self, answer: AnswerCallRequest) -> bool {
        self.calls.answer(&answer.call, answer.outcome)
    }

    async fn run_done(&mut self, run_done: RunDone, cx: &mut Context<Self>) {
        let RunDone { record, named } = run_done;
        self.running -= 1;
        self.record(&record);
        if let Some((name, realm)) = named {
            self.return_realm(name, realm, cx);
        }
        while self.running < self.max_runs()
            && let Some(job) = self.queue.pop_front()
        {
            self.schedule(job, cx);
        }
        self.publish_stats();
    }

    async fn drop_idle_realms(&mut self, _: DropIdleRealms, cx: &mut Context<Self>) {
        let (now, idle) = (cx.now(), self.spec.idle);
        self.realms
            .retain(|_, named| named.realm.is_none() || now.duration_since(named.last_used) < idle);
        self.publish_stats();
        cx.send_after(idle / 2, DropIdleRealms);
    }

    async fn forget_realm(&mut self, forget: ForgetRealmRequest) -> bool {
        let there = match self.realms.get_mut(&forget.realm) {
            None => false,
            Some(named) if named.realm.is_some() => self.realms.remove(&forget.realm).is_some(),
            Some(named) => {
                named.forgotten = true;
                true
            }
        };
        self.publish_stats();
        there
    }

    async fn usage(&mut self, _: CodeUsageRequest) -> CodeUsage {
        self.stats()
    }

    /// Fails the actor if a run panicked: its slot and its realm are lost, so the actor restarts.
    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
        match signal {
            Signal::PipePanicked { panic, .. } => Err(panic.to_string().into()),
            _ => Ok(()),
        }
    }
}

impl Code {
    fn stats(&self) -> CodeUsage {
        let idle = self
            .realms
            .values()
            .filter_map(|named| named.realm.as_ref());
        CodeUsage {
            running: self.running,
            waiting: self.waiting_runs(),
            realms: self.realms.len(),
            memory: idle.map(|realm| realm.memory()).sum(),
            ..self.usage.clone()
        }
    }

    /// Publishes the current usage to the watch.
    fn publish_stats(&self) {
        self.spec.watch.set(self.stats());
    }

    fn max_runs(&self) -> usize {
        self.spec.runs.clamp(1, <Self as strowger::Actor>::PIPES)
    }

    fn waiting_runs(&self) -> usize {
        let named = self.realms.values().map(|named| named.waiting.len());
        self.queue.len() + named.sum::<usize>()
    }

    /// Validates a run, then starts it or queues it; a run that is rejected is answered at once.
    async fn admit(
        &mut self,
        execute: ExecuteRequest,
        caller: Arc<RunCaller>,
        cx: &mut Context<Self>,
    ) {
        let limits = self.spec.limits.tightened_by(&execute.budget);
        match self.rejection(&execute, &limits) {
            None => {
                let job = CodeJob {
                    execute,
                    limits,
                    caller,
                };
                match self.running < self.max_runs() {
                    true => self.schedule(job, cx),
                    false => self.queue.push_back(job),
                }
            }
            Some(error) => {
                self.record(&RunRecord::new(&execute, Some(error.clone())));
                caller.finish(Err(error), limits.deadline).await;
            }
        }
    }

    /// Returns the reason to reject a run before it gets a realm.
    fn rejection(&self, execute: &ExecuteRequest, limits: &CodeLimits) -> Option<CodeError> {
        let source = execute.code.len() + json_len(execute.args.as_ref());
        if source > limits.source {
            return Some(limits.exceeded(CodeLimit::Source, Some(source as u64)));
        }
        if execute.language == Language::TypeScript && self.stripper.is_none() {
            return Some(CodeError::UnsupportedLanguage("TypeScript"));
        }
        if let Some(name) = execute.functions.invalid_name() {
            return Some(CodeError::InvalidFunctionName(name.to_owned()));
        }
        if let Some(realm) = &execute.realm
            && !(1..=MAX_REALM_NAME).contains(&realm.len())
        {
            let text = format!("invalid realm name: must be 1 to {MAX_REALM_NAME} bytes");
            return Some(CodeError::Full(text));
        }
        if self.running >= self.max_runs() && self.waiting_runs() >= self.spec.waiting {
            let (runs, waiting) = (self.max_runs(), self.spec.waiting);
            return Some(CodeError::Full(format!(
                "{runs} runs in progress and {waiting} waiting, which are the limits `runs` and \
                 `waiting`: try again later, or raise them in [tools.code]"
            )));
        }
        None
    }

    /// Starts a run, or queues it behind the current run in its realm.
    fn schedule(&mut self, job: CodeJob, cx: &mut Context<Self>) {
        let Some(name) = job.execute.realm.clone() else {
            return self.start(job, None, cx);
        };
        if !self.realms.contains_key(&name) {
            self.evict_idle_realm();
            let named = NamedRealm {
                realm: None,
                waiting: VecDeque::new(),
                last_used: cx.now(),
                forgotten: false,
            };
            self.realms.insert(name.clone(), named);
            return self.start(job, Some((name, None)), cx);
        }
        let Some(named) = self.realms.get_mut(&name) else {
            return;
        };
        match named.realm.take() {
            Some(realm) => self.start(job, Some((name, Some(realm))), cx),
            None => named.waiting.push_back(job),
        }
    }

    /// Drops the realm that has been idle for longest if the maximum number of realms exists.
    fn evict_idle_realm(&mut self) {
        if self.realms.len() < self.spec.realms {
            return;
        }
        let idle = self
            .realms
            .iter()
            .filter(|(_, named)| named.realm.is_some());
        let oldest = idle.min_by_key(|(_, named)| named.last_used);
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            tracing::info!(actor = %self.actor, realm = %name, "realm evicted");
            self.realms.remove(&name);
        }
    }

    fn start(
        &mut self,
        job: CodeJob,
        named: Option<(String, Option<Box<dyn CodeRealm>>)>,
        cx: &mut Context<Self>,
    ) {
        self.running += 1;
        let (spec, stripper) = (Arc::clone(&self.spec), self.stripper.clone());
        let piped = cx.pipe(run_job(spec, stripper, job, named), |run_done| run_done);
        debug_assert!(piped.is_ok(), "there are no more runs than pipes");
    }

    /// Takes back a realm after a run (`None` if it was lost), and starts the next run that waits
    /// for it.
    fn return_realm(
        &mut self,
        name: String,
        realm: Option<Box<dyn CodeRealm>>,
        cx: &mut Context<Self>,
    ) {
        let Some(named) = self.realms.get_mut(&name) else {
            return;
        };
        named.last_used = cx.now();
        let realm = realm.filter(|_| !named.forgotten);
        named.forgotten = false;
        match named.waiting.pop_front() {
            Some(job) => self.start(job, Some((name, realm)), cx),
            None if realm.is_some() => named.realm = realm,
            None => drop(self.realms.remove(&name)),
        }
    }

    /// Counts a run and writes it to the audit log.
    fn record(&mut self, record: &RunRecord) {
        self.usage.runs += 1;
        match &record.error {
            None => {}
            Some(CodeError::Cancelled) => self.usage.cancelled += 1,
            Some(CodeError::Limit(exceeded)) => {
                *self.usage.limits.entry(exceeded.limit.name()).or_default() += 1;
            }
            Some(_) => self.usage.failed += 1,
        }
        tracing::info!(
            target: "strowger::audit",
            actor = %self.actor,
            verb = "execute",
            realm = ?record.realm,
            language = ?record.language,
            outcome = record.error.as_ref().map_or("done", CodeError::name),
            bytes = record.bytes,
            "code run"
        );
    }
}

impl RunRecord {
    fn new(execute: &ExecuteRequest, error: Option<CodeError>) -> Self {
        Self {
            realm: execute.realm.clone(),
            language: execute.language,
            bytes: execute.code.len(),
            error,
        }
    }
}

/// Length in bytes of a value as JSON.
fn json_len(args: Option<&Value>) -> usize {
    args.map_or(0, |args| args.to_string().len())
}

/// Runs a job and answers its caller.
async fn run_job(
    spec: Arc<CodeSpec>,
    stripper: Option<Arc<TypeStripper>>,
    job: CodeJob,
    named: Option<(String, Option<Box<dyn CodeRealm>>)>,
) -> RunDone {
    let CodeJob {
        execute,
        limits,
        caller,
    } = job;
    let (name, mut realm) = match named {
        Some((name, realm)) => (Some(name), realm),
        None => (None, None),
    };
    let owner: Arc<dyn RunOwner> = Arc::<RunCaller>::clone(&caller);
    let outcome = run_in_realm(&spec, stripper, &execute, &limits, &owner, &mut realm).await;
    let outcome = outcome.map_err(|error| error.with_origin(&spec.limits, LimitOrigin::Code));
    // The realm is dropped before the answer is sent, so nothing of the run is left when it
    // arrives.
    let realm = realm.filter(|realm| name.is_some() && !realm.is_lost());
    let record = RunRecord::new(&execute, outcome.as_ref().err().cloned());
    caller.finish(outcome, limits.deadline).await;
    RunDone {
        record,
        named: name.map(|name| (name, realm)),
    }
}

/// Runs a job in a realm, which is created if there is none. Returns the value and `true` if the
/// realm is new.
async fn run_in_realm(
    spec: &CodeSpec,
    stripper: Option<Arc<TypeStripper>>,
    execute: &ExecuteRequest,
    limits: &CodeLimits,
    owner: &Arc<dyn RunOwner>,
    place: &mut Option<Box<dyn CodeRealm>>,
) -> Result<(Value, bool), CodeError> {
    let code: Arc<str> = match (execute.language, stripper) {
        (Language::TypeScript, Some(stripper)) => stripper.strip(&execute.code, owner).await?,
        _ => Arc::from(&*execute.code),
    };
    let fresh = place.is_none();
    let realm = match place {
        Some(realm) => realm,
        None => place.insert(spec.sandbox.realm(limits.memory).await?),
    };
    let step = CodeStep::Script {
        name: "code",
        code: &code,
    };
    if let Some(args) = &execute.args {
        let args = args.to_string();
        let (name, none) = ("args", GrantedFunctions::new());
        let step = CodeStep::Set { name, value: &args };
        run::run_step(&mut **realm, step, &none, limits, owner).await?;
    }
    let json = run::run_step(&mut **realm, step, &execute.functions, limits, owner).await?;
    Ok((run::parse_value(json)?, fresh))
}
