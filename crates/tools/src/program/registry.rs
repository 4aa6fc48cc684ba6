//! The registry, which publishes programs and supervises them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use jsonschema::{PatternOptions, Validator};
use parking_lot::Mutex;
use serde_json::Value;
use strowger::{
    ActorRef, ActorSystem, Ask, BoxError, ChildSpec, Context, MailboxSpec, Restart, Strategy,
    Supervisor, SupervisorRef, handlers,
};

use super::message::{
    ListProgramsRequest, ProgramError, ProgramInfo, ProgramState, PublishRequest, SchemaSide,
    WithdrawRequest,
};
use super::realm_pool::RealmPool;
use super::stats::ProgramsWatch;
use super::{CheckLoadsRequest, Program, ProgramArgs, ProgramMessage, ProgramRecord, truncate};
use crate::code::run::{InternalOwner, RunOwner};
use crate::code::typescript::TypeStripper;
use crate::code::{CodeError, CodeLimit, CodeLimits, Language, Sandbox};

/// The configuration of a [`Programs`] actor, with its defaults in parentheses.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProgramsSpec {
    /// The sandbox that runs the programs.
    pub sandbox: Arc<dyn Sandbox>,
    /// A script that defines `strip`; see [`CodeSpec`](crate::code::CodeSpec).
    pub typescript: Option<Arc<str>>,
    /// The limits of each message.
    pub limits: CodeLimits,
    /// Maximum number of published programs (10 000).
    pub programs: usize,
    /// Maximum number of programs with a realm at a time (500).
    pub residents: usize,
    /// Maximum number of messages in the mailbox of a program (64).
    pub mailbox: usize,
    /// Maximum number of restarts of a program within `period` (3); one more stops it
    /// permanently.
    pub restarts: u32,
    /// The period over which restarts are counted (60 s).
    pub period: Duration,
    /// The handle that observes the stats of the programs.
    pub watch: ProgramsWatch,
}

impl ProgramsSpec {
    /// The default number of restarts, and their period.
    ///
    /// A program only fails when it is called, and agents call seconds apart: the default period of
    /// a supervisor would be too short to stop a program that always fails.
    pub const INTENSITY: (u32, Duration) = (3, Duration::from_secs(60));

    /// Creates a spec for up to 10 000 programs, 500 of them resident.
    #[must_use]
    pub fn new(sandbox: Arc<dyn Sandbox>) -> Self {
        Self {
            sandbox,
            typescript: None,
            limits: CodeLimits::default(),
            programs: 10_000,
            residents: 500,
            mailbox: 64,
            restarts: Self::INTENSITY.0,
            period: Self::INTENSITY.1,
            watch: ProgramsWatch::default(),
        }
    }
}

/// An actor that publishes programs and supervises them.
#[derive(Debug)]
pub struct Programs {
    spec: ProgramsSpec,
    stripper: Option<TypeStripper>,
    pool: Arc<RealmPool>,
    system: ActorSystem,
    actor: String,
    programs_supervisor: SupervisorRef,
    published: BTreeMap<String, PublishedProgram>,
}

#[derive(Debug)]
struct PublishedProgram {
    args: ProgramArgs,
    actor: ActorRef<ProgramMessage>,
}

/// Maximum length of a program name, in bytes.
const MAX_PROGRAM_NAME: usize = 64;
/// Maximum size of a schema, in bytes.
const MAX_SCHEMA: usize = 64 << 10;

#[handlers]
impl strowger::Actor for Programs {
    type Args = ProgramsSpec;
    type Error = BoxError;

    async fn pre_start(spec: ProgramsSpec, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let programs_supervisor = Supervisor::new(Strategy::OneForOne);
        let sandbox = &spec.sandbox;
        let stripper = spec.typescript.clone();
        spec.watch.reset();
        Ok(Self {
            stripper: stripper.map(|script| TypeStripper::new(Arc::clone(sandbox), script)),
            pool: RealmPool::new(spec.residents, spec.watch.clone()),
            programs_supervisor: cx.supervise(PUBLISHED, programs_supervisor).await?,
            system: cx.system(),
            actor: cx.path().to_string(),
            published: BTreeMap::new(),
            spec,
        })
    }

    async fn publish(&mut self, ask: Ask<PublishRequest>) {
        let Ask { request, reply } = ask;
        let name = request.name.clone();
        let own = self.spec.limits;
        let published = self.register(request).await;
        let published = published.map_err(|error| error.with_origin(&own));
        self.spec.watch.set_published(self.published.len());
        tracing::info!(
            target: "strowger::audit",
            actor = %self.actor,
            verb = "publish",
            program = ?name,
            outcome = published.as_ref().err().map_or("done", ProgramError::name),
            "program call"
        );
        reply.send(published);
    }

    async fn withdraw(&mut self, ask: Ask<WithdrawRequest>) {
        let there = self.published.remove(&ask.request.name).is_some();
        if there {
            // Fails if the program was stopped permanently: its supervisor has ended already.
            drop(
                self.programs_supervisor
                    .terminate_child(&ask.request.name)
                    .await,
            );
        }
        self.spec.watch.set_published(self.published.len());
        ask.reply.send(there);
    }

    async fn list(&mut self, _: ListProgramsRequest) -> Vec<ProgramInfo> {
        self.published
            .values()
            .map(PublishedProgram::info)
            .collect()
    }
}

impl Programs {
    /// Finds a published program by its name.
    #[must_use]
    pub fn find(
        system: &ActorSystem,
        registry: &ActorRef<ProgramsMessage>,
        name: &str,
    ) -> Option<ActorRef<ProgramMessage>> {
        let path = format!("{}/{PUBLISHED}/{name}/{PROGRAM}", registry.path());
        system.find(path.as_str())?.downcast()
    }

    async fn register(&mut self, publish: PublishRequest) -> Result<(), ProgramError> {
        let fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name = publish.name.clone();
        if !(1..=MAX_PROGRAM_NAME).contains(&name.len())
            || !name.chars().all(fit)
            || name.starts_with('.')
        {
            return Err(ProgramError::InvalidName(truncate(&name)));
        }
        let is_new = !self.published.contains_key(&name);
        if is_new && self.published.len() >= self.spec.programs {
            return Err(ProgramError::TooManyPrograms(self.spec.programs));
        }
        let args = ProgramArgs(Arc::new(self.compile(publish).await?));
        let before = self.published.remove(&name);
        if before.is_some() {
            // Fails if the program was stopped permanently: its supervisor has ended already.
            drop(self.programs_supervisor.terminate_child(&name).await);
        }
        let loaded = match self.start(&name, &args).await {
            Ok(actor) if args.0.draft => Ok(actor),
            Ok(actor) => match actor.ask(CheckLoadsRequest).await {
                Ok(loaded) => loaded.map(|()| actor),
                Err(_) => Err(ProgramError::ShuttingDown),
            },
            Err(error) => Err(error),
        };
        match loaded {
            Ok(actor) => {
                self.add_published(name, args, actor);
                Ok(())
            }
            Err(error) => {
                drop(self.programs_supervisor.terminate_child(&name).await);
                // The earlier version continues from its saved state.
                if let Some(PublishedProgram { args, .. }) = before
                    && let Ok(actor) = self.start(&name, &args).await
                {
                    self.add_published(name, args, actor);
                }
                Err(error)
            }
        }
    }

    /// Adds a running program to the published ones, and exposes it until its actor ends.
    fn add_published(&mut self, name: String, args: ProgramArgs, actor: ActorRef<ProgramMessage>) {
        let address = format!("programs/{name}");
        // The address is free: the actor that had it is terminated before another one starts.
        drop(self.system.export_as(&address, &actor, Program::export()));
        self.published
            .insert(name, PublishedProgram { args, actor });
    }

    /// Prepares a program: compiles its code and its schemas.
    async fn compile(&self, publish: PublishRequest) -> Result<ProgramRecord, ProgramError> {
        let limits = self.spec.limits.tightened_by(&publish.budget);
        if publish.code.len() > limits.source {
            let length = publish.code.len() as u64;
            return Err(limits.exceeded(CodeLimit::Source, Some(length)).into());
        }
        if let Some(name) = publish.functions.invalid_name() {
            return Err(CodeError::InvalidFunctionName(name.to_owned()).into());
        }
        let code: Arc<str> = match (publish.language, &self.stripper) {
            (Language::JavaScript, _) => publish.code.into(),
            (Language::TypeScript, Some(stripper)) => {
                let internal: Arc<dyn RunOwner> = Arc::new(InternalOwner);
                stripper.strip(&publish.code, &internal).await?
            }
            (Language::TypeScript, None) => {
                return Err(CodeError::UnsupportedLanguage("TypeScript").into());
            }
        };
        Ok(ProgramRecord {
            input: compile_schema(SchemaSide::Input, publish.input.as_ref())?,
            output: compile_schema(SchemaSide::Output, publish.output.as_ref())?,
            name: publish.name,
            draft: publish.draft,
            code,
            functions: publish.functions,
            limits,
            base_limits: self.spec.limits,
            sandbox: Arc::clone(&self.spec.sandbox),
            pool: Arc::clone(&self.pool),
            state: Mutex::new(None),
            resident: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            incarnations: AtomicU32::new(0),
        })
    }

    async fn start(
        &self,
        name: &str,
        args: &ProgramArgs,
    ) -> Result<ActorRef<ProgramMessage>, ProgramError> {
        let ended = |_| ProgramError::ShuttingDown;
        let program = ChildSpec::new::<Program>(PROGRAM, args.clone())
            .restart(Restart::Transient)
            .mailbox(MailboxSpec::bounded(self.spec.mailbox));
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(self.spec.restarts, self.spec.period)
            .child(program);
        let supervisor = ChildSpec::supervisor(name, supervisor).restart(Restart::Temporary);
        let child = self
            .programs_supervisor
            .start_child(supervisor)
            .await
            .map_err(ended)?;
        let path = format!("{}/{PROGRAM}", child.path());
        let found = self.system.find(path.as_str());
        found
            .and_then(|program| program.downcast())
            .ok_or(ProgramError::ShuttingDown)
    }
}

/// The key of the supervisor of all programs.
const PUBLISHED: &str = "published";
/// The key of a program's actor below its own supervisor.
const PROGRAM: &str = "program";

/// Compiles a schema. It may not refer to other documents, and its patterns run in linear time.
fn compile_schema(
    side: SchemaSide,
    schema: Option<&Value>,
) -> Result<Option<Validator>, ProgramError> {
    let Some(schema) = schema else {
        return Ok(None);
    };
    let bad = |why: String| ProgramError::InvalidSchema(side, truncate(&why));
    if schema.to_string().len() > MAX_SCHEMA {
        return Err(bad(format!("larger than {MAX_SCHEMA} bytes")));
    }
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    let validator = options.build(schema);
    validator.map(Some).map_err(|error| bad(error.to_string()))
}

impl PublishedProgram {
    fn info(&self) -> ProgramInfo {
        let record = &*self.args.0;
        let state = match (record.draft, self.actor.is_alive()) {
            (true, _) => ProgramState::Draft,
            (false, false) => ProgramState::Stopped,
            (false, true) if record.resident.load(Ordering::Relaxed) => ProgramState::Resident,
            (false, true) => ProgramState::Passive,
        };
        ProgramInfo {
            name: record.name.clone(),
            state,
            calls: record.calls.load(Ordering::Relaxed),
            failed: record.failed.load(Ordering::Relaxed),
            restarts: record
                .incarnations
                .load(Ordering::Relaxed)
                .saturating_sub(1),
        }
    }
}
