//! Programs: code that is published under an address and keeps state between messages.
//!
//! A [`PublishRequest`] to the registry, [`Programs`], starts a program; a [`PerformRequest`] to
//! the program, found by [`Programs::find`], calls its function `handle`. Callers outside the
//! process use its address, `@(programs/NAME)`.
//!
//! ```text
//! Programs (the registry) ─ Publish ─▶ compiled once, checked against its schemas
//! └─ NAME (supervisor)                 restarts the program; stops it after too many failures
//!    └─ program                        one message at a time: handle(input) ─▶ output
//! ```
//!
//! A program occupies a realm only while it is in use. The number of realms is limited: when
//! another program needs one, the program that has been idle for longest saves its `state` and
//! drops its realm.

mod export;
mod message;
mod realm_pool;
mod registry;
mod stats;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use jsonschema::Validator;
use parking_lot::Mutex;
use serde_json::Value;
use strowger::{ActorRef, Ask, BoxError, Context, Reply, handlers};

pub use message::{
    ListProgramsRequest, PerformRequest, ProgramError, ProgramInfo, ProgramState, PublishRequest,
    SchemaSide, WithdrawRequest,
};
use realm_pool::{RealmPool, RealmSlot};
pub use registry::{Programs, ProgramsMessage, ProgramsSpec};
pub use stats::{ProgramsUsage, ProgramsWatch};

use crate::code::run::{InternalOwner, RunOwner, parse_value, run_step};
use crate::code::{
    CodeError, CodeLimits, CodeRealm, CodeStep, ConsoleLine, GrantedFunctions, Sandbox,
};

/// The arguments of a program, created by the registry.
#[derive(Clone, Debug)]
pub struct ProgramArgs(Arc<ProgramRecord>);

/// The part of a program that outlives its incarnations.
#[derive(Debug)]
struct ProgramRecord {
    name: String,
    draft: bool,
    /// The code as JavaScript.
    code: Arc<str>,
    input: Option<Validator>,
    output: Option<Validator>,
    functions: GrantedFunctions,
    limits: CodeLimits,
    /// The limits for all programs, before the budget of this one.
    base_limits: CodeLimits,
    sandbox: Arc<dyn Sandbox>,
    pool: Arc<RealmPool>,
    /// The state, in JSON, saved when the program dropped its realm.
    state: Mutex<Option<String>>,
    resident: AtomicBool,
    calls: AtomicU64,
    failed: AtomicU64,
    incarnations: AtomicU32,
}

/// An actor that handles messages by running a program.
#[derive(Debug)]
pub struct Program {
    record: Arc<ProgramRecord>,
    loaded: Option<LoadedProgram>,
    self_ref: ActorRef<ProgramMessage>,
    path: String,
}

#[derive(Debug)]
struct LoadedProgram {
    record: Arc<ProgramRecord>,
    /// Dropped before the slot, so that the realm is gone when another program gets the slot.
    realm: Box<dyn CodeRealm>,
    slot: RealmSlot,
}

impl Drop for LoadedProgram {
    fn drop(&mut self) {
        self.record.resident.store(false, Ordering::Relaxed);
    }
}

/// The message that asks an idle program to save its state and drop its realm, if other programs
/// wait for one.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct YieldRealm;

/// The request to check that the program loads.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct CheckLoadsRequest;

impl strowger::Request for CheckLoadsRequest {
    type Reply = Result<(), ProgramError>;
}

#[handlers]
impl strowger::Actor for Program {
    type Args = ProgramArgs;
    type Error = BoxError;

    async fn pre_start(args: ProgramArgs, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let ProgramArgs(record) = args;
        if record.incarnations.fetch_add(1, Ordering::Relaxed) > 0 {
            // The state of a failed incarnation cannot be trusted.
            *record.state.lock() = None;
        }
        Ok(Self {
            self_ref: cx.actor_ref(),
            path: cx.path().to_string(),
            record,
            loaded: None,
        })
    }

    async fn check_loads(&mut self, ask: Ask<CheckLoadsRequest>) -> Result<(), BoxError> {
        let internal: Arc<dyn RunOwner> = Arc::new(InternalOwner);
        let woken = self.load(&internal).await.map(|_| ());
        self.mark_idle().await?;
        ask.reply.send(woken.map_err(ProgramError::Code));
        Ok(())
    }

    async fn perform(&mut self, ask: Ask<PerformRequest>) -> Result<(), BoxError> {
        let Ask { request, reply } = ask;
        let caller = Arc::new(ProgramCaller::new(reply, self.path.clone()));
        let outcome = self.answer(request.0, &caller).await;
        let outcome = outcome.map_err(|error| error.with_origin(&self.record.base_limits));
        self.record_call(&outcome);
        let lost = self
            .loaded
            .take_if(|loaded| loaded.realm.is_lost())
            .is_some();
        let failed = outcome.as_ref().err().map(ToString::to_string);
        // A cancelled call is not a failure of the program.
        let cancelled = matches!(outcome, Err(ProgramError::Code(CodeError::Cancelled)));
        caller.answer(outcome);
        match failed {
            Some(failed) if lost && !cancelled => Err(failed.into()),
            _ => self.mark_idle().await,
        }
    }

    async fn yield_realm(&mut self, _: YieldRealm) -> Result<(), BoxError> {
        self.mark_idle().await
    }
}

impl Program {
    /// Handles a message and returns the output of the program.
    async fn answer(
        &mut self,
        input: Value,
        caller: &Arc<ProgramCaller>,
    ) -> Result<Value, ProgramError> {
        let record = Arc::clone(&self.record);
        if record.draft {
            return Err(ProgramError::Draft(record.name.clone()));
        }
        let arguments = Value::from(vec![input]);
        let json = arguments.to_string();
        // Checked before a realm is used: an input that is too long is the caller's fault.
        let (bytes, limit) = (json.len() - "[]".len(), record.limits.result);
        if bytes > limit {
            return Err(ProgramError::InputTooLong { bytes, limit });
        }
        check_schema(SchemaSide::Input, record.input.as_ref(), &arguments[0])?;
        let owner: Arc<dyn RunOwner> = Arc::<ProgramCaller>::clone(caller);
        let loaded = self.load(&owner).await?;
        let step = CodeStep::Call {
            function: "handle",
            arguments: &json,
        };
        let realm = &mut *loaded.realm;
        let json = run_step(realm, step, &record.functions, &record.limits, &owner).await?;
        let output = parse_value(json)?;
        check_schema(SchemaSide::Output, record.output.as_ref(), &output)?;
        Ok(output)
    }

    /// Returns the realm of the program; loads the program with its saved state if it has none.
    async fn load(&mut self, owner: &Arc<dyn RunOwner>) -> Result<&mut LoadedProgram, CodeError> {
        if self.loaded.is_none() {
            let record = &*self.record;
            let slot = record.pool.acquire().await;
            let slot =
                slot.ok_or_else(|| CodeError::Full("programs are shutting down".to_owned()))?;
            let mut realm = record.sandbox.realm(record.limits.memory).await?;
            let state = record.state.lock().clone();
            let steps = [
                CodeStep::Set {
                    name: "state",
                    value: state.as_deref().unwrap_or("{}"),
                },
                CodeStep::Script {
                    name: &record.name,
                    code: &record.code,
                },
            ];
            for step in steps {
                run_step(&mut *realm, step, &record.functions, &record.limits, owner).await?;
            }
            record.resident.store(true, Ordering::Relaxed);
            let record = Arc::clone(&self.record);
            self.loaded = Some(LoadedProgram {
                record,
                realm,
                slot,
            });
        }
        let loaded = self.loaded.as_mut();
        let loaded = loaded
            .ok_or_else(|| CodeError::SandboxFailed("the program did not reactivate".to_owned()))?;
        loaded.slot.mark_busy();
        Ok(loaded)
    }

    /// Marks the program as idle, and drops its realm if other programs wait for one.
    async fn mark_idle(&mut self) -> Result<(), BoxError> {
        let loaded = self.loaded.as_mut();
        match loaded.is_some_and(|loaded| loaded.slot.mark_idle(&self.self_ref)) {
            true => self.passivate().await,
            false => Ok(()),
        }
    }

    /// Saves the state and drops the realm.
    async fn passivate(&mut self) -> Result<(), BoxError> {
        let Some(mut loaded) = self.loaded.take() else {
            return Ok(());
        };
        let record = &*self.record;
        let step = CodeStep::Script {
            name: "state",
            code: "state",
        };
        let (none, internal): (_, Arc<dyn RunOwner>) =
            (GrantedFunctions::new(), Arc::new(InternalOwner));
        let state = run_step(&mut *loaded.realm, step, &none, &record.limits, &internal).await;
        drop(loaded);
        match state {
            Ok(state) => {
                *record.state.lock() = state;
                Ok(())
            }
            Err(error) => Err(format!("the program's state cannot be saved: {error}").into()),
        }
    }

    /// Counts a message and writes it to the audit log.
    fn record_call(&self, outcome: &Result<Value, ProgramError>) {
        self.record.calls.fetch_add(1, Ordering::Relaxed);
        if outcome.is_err() {
            self.record.failed.fetch_add(1, Ordering::Relaxed);
        }
        let end = outcome.as_ref().err();
        self.record.pool.watch.record_call(end);
        tracing::info!(
            target: "strowger::audit",
            actor = %self.path,
            verb = "perform",
            outcome = end.map_or("done", ProgramError::name),
            "program call"
        );
    }
}

/// The caller of a program.
struct ProgramCaller {
    reply: Mutex<Option<Reply<Result<Value, ProgramError>>>>,
    /// `true` if the message was a tell: there is no reply to wait for from the start.
    was_tell: bool,
    program: String,
}

impl ProgramCaller {
    fn new(reply: Reply<Result<Value, ProgramError>>, program: String) -> Self {
        Self {
            was_tell: !reply.is_waiting(),
            reply: Mutex::new(Some(reply)),
            program,
        }
    }

    fn answer(&self, outcome: Result<Value, ProgramError>) {
        if let Some(reply) = self.reply.lock().take() {
            reply.send(outcome);
        }
    }
}

impl RunOwner for ProgramCaller {
    fn is_wanted(&self) -> bool {
        self.was_tell || self.reply.lock().as_ref().is_some_and(Reply::is_waiting)
    }

    fn print(&self, line: ConsoleLine) {
        let (program, level) = (&self.program, line.level);
        tracing::info!(target: "strowger::program", %program, ?level, "{}", line.text);
    }
}

/// Validates a value against a schema. The error has the place and the reason of the mismatch.
fn check_schema(
    side: SchemaSide,
    schema: Option<&Validator>,
    value: &Value,
) -> Result<(), ProgramError> {
    let Some(Err(error)) = schema.map(|schema| schema.validate(value)) else {
        return Ok(());
    };
    let at = error.instance_path().to_string();
    let text = match &*at {
        "" => error.to_string(),
        at => format!("{at}: {error}"),
    };
    Err(ProgramError::SchemaMismatch(side, truncate(&text)))
}

/// Shortens text that quotes untrusted input, for error messages.
fn truncate(text: &str) -> String {
    const MOST: usize = 300;
    text.chars().take(MOST).collect()
}
