//! The desk at which programs are published.

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

use super::door::program_door;
use super::message::{
    ListPrograms, ProgramError, ProgramInfo, ProgramState, Publish, Side, Withdraw,
};
use super::residence::Residence;
use super::watch::ProgramsWatch;
use super::{Program, ProgramArgs, ProgramMessage, Seat, Wake, short};
use crate::code::run::{Own, Patron};
use crate::code::typescript::Types;
use crate::code::{CodeError, CodeLimit, CodeLimits, Language, Sandbox};

/// Where programs run, and how many.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProgramsSpec {
    /// Where they run.
    pub sandbox: Arc<dyn Sandbox>,
    /// A script that defines `strip`; see [`CodeSpec`](crate::CodeSpec).
    pub typescript: Option<Arc<str>>,
    /// The limits of each message.
    pub limits: CodeLimits,
    /// The programs that may be published.
    pub programs: usize,
    /// Those that have a realm at a time.
    pub residents: usize,
    /// The messages that may wait for one.
    pub mailbox: usize,
    /// How often one may be started again within the period, before it is stopped for good.
    pub restarts: u32,
    /// The period.
    pub period: Duration,
    /// Where those who watch see what they do.
    pub watch: ProgramsWatch,
}

impl ProgramsSpec {
    /// Up to 10 000 programs, 500 of them resident.
    #[must_use]
    pub fn new(sandbox: Arc<dyn Sandbox>) -> Self {
        Self {
            sandbox,
            typescript: None,
            limits: CodeLimits::default(),
            programs: 10_000,
            residents: 500,
            mailbox: 64,
            restarts: 3,
            period: Duration::from_secs(60),
            watch: ProgramsWatch::default(),
        }
    }
}

/// The desk at which programs are published; they live below it.
#[derive(Debug)]
pub struct Programs {
    spec: ProgramsSpec,
    types: Option<Types>,
    residence: Arc<Residence>,
    system: ActorSystem,
    actor: String,
    top: SupervisorRef,
    published: BTreeMap<String, Published>,
}

#[derive(Debug)]
struct Published {
    args: ProgramArgs,
    actor: ActorRef<ProgramMessage>,
}

/// The longest name of a program.
const NAME: usize = 64;
/// The octets of a schema.
const SCHEMA: usize = 64 << 10;

#[handlers]
impl strowger::Actor for Programs {
    type Args = ProgramsSpec;
    type Error = BoxError;

    async fn pre_start(spec: ProgramsSpec, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let top = Supervisor::new(Strategy::OneForOne);
        let sandbox = &spec.sandbox;
        let types = spec.typescript.clone();
        spec.watch.begin();
        Ok(Self {
            types: types.map(|script| Types::new(Arc::clone(sandbox), script)),
            residence: Residence::new(spec.residents, spec.watch.clone()),
            top: cx.supervise(PUBLISHED, top).await?,
            system: cx.system(),
            actor: cx.path().to_string(),
            published: BTreeMap::new(),
            spec,
        })
    }

    async fn publish(&mut self, ask: Ask<Publish>) {
        let Ask { request, reply } = ask;
        let name = request.name.clone();
        let published = self.enter(request).await;
        self.spec.watch.published(self.published.len());
        let end = published.as_ref().err().map_or("done", ProgramError::name);
        let actor = &self.actor;
        tracing::info!(target: "strowger::audit", %actor, verb = "publish", path = ?name, end);
        reply.send(published);
    }

    async fn withdraw(&mut self, ask: Ask<Withdraw>) {
        let there = self.published.remove(&ask.request.name).is_some();
        if there {
            // One that was stopped for good has no place there any more.
            drop(self.top.terminate_child(&ask.request.name).await);
        }
        self.spec.watch.published(self.published.len());
        ask.reply.send(there);
    }

    async fn list(&mut self, _: ListPrograms) -> Vec<ProgramInfo> {
        self.published.values().map(Published::seen).collect()
    }
}

impl Programs {
    /// A program that is published at a desk.
    #[must_use]
    pub fn find(
        system: &ActorSystem,
        desk: &ActorRef<ProgramsMessage>,
        name: &str,
    ) -> Option<ActorRef<ProgramMessage>> {
        let path = format!("{}/{PUBLISHED}/{name}/{PROGRAM}", desk.path());
        system.find(path.as_str())?.downcast()
    }

    async fn enter(&mut self, publish: Publish) -> Result<(), ProgramError> {
        let fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name = publish.name.clone();
        if !(1..=NAME).contains(&name.len()) || !name.chars().all(fit) || name.starts_with('.') {
            return Err(ProgramError::Name(short(&name)));
        }
        let there = self.published.contains_key(&name);
        if !there && self.published.len() >= self.spec.programs {
            return Err(ProgramError::Full(self.spec.programs));
        }
        let args = ProgramArgs(Arc::new(self.seat(publish).await?));
        if there {
            self.published.remove(&name);
            // One that was stopped for good has no place there any more.
            drop(self.top.terminate_child(&name).await);
        }
        let actor = self.start(&name, &args).await?;
        if !args.0.draft {
            let woken = actor.ask(Wake).await.unwrap_or(Err(ProgramError::Ended));
            if let Err(error) = woken {
                drop(self.top.terminate_child(&name).await);
                return Err(error);
            }
        }
        let door = program_door();
        // It ends with the actor, and there was none of this name a moment ago.
        drop(
            self.system
                .expose_as(&format!("programs/{name}"), &actor, door),
        );
        self.published.insert(name, Published { args, actor });
        Ok(())
    }

    /// What a program begins with, its code read and its schemas understood.
    async fn seat(&self, publish: Publish) -> Result<Seat, ProgramError> {
        let limits = self.spec.limits.within(&publish.budget);
        if publish.code.len() > limits.source {
            return Err(CodeError::Limit(CodeLimit::Source).into());
        }
        if let Some(name) = publish.functions.unfit() {
            return Err(CodeError::Function(name.to_owned()).into());
        }
        let code: Arc<str> = match (publish.language, &self.types) {
            (Language::JavaScript, _) => publish.code.into(),
            (Language::TypeScript, Some(types)) => {
                let own: Arc<dyn Patron> = Arc::new(Own);
                types.strip(&publish.code, &own).await?
            }
            (Language::TypeScript, None) => return Err(CodeError::Language("TypeScript").into()),
        };
        Ok(Seat {
            input: understood(Side::Input, publish.input.as_ref())?,
            output: understood(Side::Output, publish.output.as_ref())?,
            name: publish.name,
            draft: publish.draft,
            code,
            functions: publish.functions,
            limits,
            sandbox: Arc::clone(&self.spec.sandbox),
            residence: Arc::clone(&self.residence),
            state: Mutex::new(None),
            resident: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            lives: AtomicU32::new(0),
        })
    }

    async fn start(
        &self,
        name: &str,
        args: &ProgramArgs,
    ) -> Result<ActorRef<ProgramMessage>, ProgramError> {
        let ended = |_| ProgramError::Ended;
        let program = ChildSpec::new::<Program>(PROGRAM, args.clone())
            .restart(Restart::Transient)
            .mailbox(MailboxSpec::bounded(self.spec.mailbox));
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(self.spec.restarts, self.spec.period)
            .child(program);
        let supervisor = ChildSpec::supervisor(name, supervisor).restart(Restart::Temporary);
        let child = self.top.start_child(supervisor).await.map_err(ended)?;
        let path = format!("{}/{PROGRAM}", child.path());
        let found = self.system.find(path.as_str());
        found
            .and_then(|program| program.downcast())
            .ok_or(ProgramError::Ended)
    }
}

/// The key of the supervisor below which programs have theirs.
const PUBLISHED: &str = "published";
/// The key of a program's actor below its supervisor.
const PROGRAM: &str = "program";

/// Understands a schema. It refers to nothing outside, and its patterns take linear time.
fn understood(side: Side, schema: Option<&Value>) -> Result<Option<Validator>, ProgramError> {
    let Some(schema) = schema else {
        return Ok(None);
    };
    let bad = |why: String| ProgramError::BadSchema(side, short(&why));
    if schema.to_string().len() > SCHEMA {
        return Err(bad(format!("it has more than {SCHEMA} octets")));
    }
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    let validator = options.build(schema);
    validator.map(Some).map_err(|error| bad(error.to_string()))
}

impl Published {
    fn seen(&self) -> ProgramInfo {
        let seat = &*self.args.0;
        let state = match (seat.draft, self.actor.is_alive()) {
            (true, _) => ProgramState::Draft,
            (false, false) => ProgramState::Stopped,
            (false, true) if seat.resident.load(Ordering::Relaxed) => ProgramState::Resident,
            (false, true) => ProgramState::Passive,
        };
        ProgramInfo {
            name: seat.name.clone(),
            state,
            calls: seat.calls.load(Ordering::Relaxed),
            failed: seat.failed.load(Ordering::Relaxed),
            restarts: seat.lives.load(Ordering::Relaxed).saturating_sub(1),
        }
    }
}
