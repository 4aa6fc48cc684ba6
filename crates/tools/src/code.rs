//! Code of others, as an actor.
//!
//! ```text
//! Execute ─▶ is it short enough, may it have these functions, is there a turn?
//!            TypeScript? its types are taken away, in a realm of their own
//!            a fresh realm, or one that is kept under its name
//!            run ─▶ lines, calls of what it was given ─▶ a value, or an error by name
//! ```
//!
//! Runs are beside the actor: as many at a time as it may have, each within its limits, each ended
//! with whoever wanted it. A fresh realm ends with its run; a realm that is kept belongs to those
//! who know its name, and ends when a run in it passes a limit, or when nobody used it for long.

mod caller;
mod door;
mod error;
mod functions;
mod json;
mod message;
pub(crate) mod run;
pub(crate) mod sandbox;
mod spec;
pub(crate) mod typescript;
mod watch;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use strowger::{Ask, BoxError, Context, Lag, Signal, SourceSpec, handlers};
use tokio::time::Instant;

use caller::OpenCalls;
pub use door::code_door;
pub(crate) use door::{Target, given};
pub use error::{CodeError, CodeLimit, Thrown};
pub use functions::Functions;
pub use message::{
    AnswerCall, Called, CodeUsage, Execute, Executed, FollowRun, Forget, GetCodeUsage, Language,
    Level, Line, Told,
};
use run::{Customer, Patron};
pub use sandbox::{Boxed, CallOutcome, CodeHost, CodeRealm, CodeStep, FunctionName, Sandbox};
pub use spec::{CodeBudget, CodeLimits, CodeSpec};
use typescript::Types;
pub use watch::CodeWatch;

/// An actor that runs JavaScript and TypeScript of others, with nothing but what they are given.
#[derive(Debug)]
pub struct Code {
    spec: Arc<CodeSpec>,
    types: Option<Arc<Types>>,
    actor: String,
    kept: BTreeMap<String, Kept>,
    /// Runs that wait for one of the actor's turns.
    queue: VecDeque<Job>,
    running: usize,
    /// Calls that wait for those who follow their runs.
    calls: OpenCalls,
    usage: CodeUsage,
}

/// A realm that is kept.
#[derive(Debug)]
struct Kept {
    /// Not there while a run is in it.
    realm: Option<Box<dyn CodeRealm>>,
    /// Runs that wait for the realm.
    waiting: VecDeque<Job>,
    used: Instant,
    /// It was asked to end, and does so when it is free.
    forgotten: bool,
}

/// A run that has its limits and its customer.
struct Job {
    execute: Execute,
    limits: CodeLimits,
    customer: Arc<Customer>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Job({} octets)", self.execute.code.len())
    }
}

/// A run has ended, and was answered.
#[doc(hidden)]
#[derive(Debug)]
pub struct Ran {
    /// What the audit says of it.
    called: Entered,
    /// The realm that is kept, by name.
    kept: Option<(String, Option<Box<dyn CodeRealm>>)>,
}

/// What is noted of a run.
#[derive(Debug)]
struct Entered {
    realm: Option<String>,
    language: Language,
    octets: usize,
    /// `None` if it went well.
    error: Option<CodeError>,
}

/// Time to look for realms that nobody uses.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Sweep;

/// The longest name of a realm.
const NAME: usize = 64;

#[handlers]
impl strowger::Actor for Code {
    type Args = CodeSpec;
    type Error = BoxError;

    const PIPES: usize = 64;

    async fn pre_start(spec: CodeSpec, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let sandbox = &spec.sandbox;
        let types = spec.typescript.clone();
        let types = types.map(|script| Arc::new(Types::new(Arc::clone(sandbox), script)));
        cx.send_after(spec.idle / 2, Sweep);
        Ok(Self {
            types,
            actor: cx.path().to_string(),
            kept: BTreeMap::new(),
            queue: VecDeque::new(),
            running: 0,
            calls: OpenCalls::default(),
            usage: spec.watch.usage(),
            spec: Arc::new(spec),
        })
    }

    async fn execute(&mut self, ask: Ask<Execute>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let customer = Customer::reply(reply);
        self.admit(request, customer, cx).await;
        self.show();
    }

    async fn follow(&mut self, ask: Ask<FollowRun>, cx: &mut Context<Self>) {
        let Ask { request, reply } = ask;
        let mut source = cx.source(SourceSpec::DEFAULT.lag(Lag::Wait).readers(1));
        match source.reader() {
            Ok(reader) => {
                reply.send(Ok(reader));
                let FollowRun { mut execute, calls } = request;
                let follower = Customer::source(source);
                execute.functions = self.calls.give(execute.functions, calls, &follower);
                self.admit(execute, follower, cx).await;
                self.show();
            }
            Err(error) => reply.send(Err(CodeError::Sandbox(error.to_string()))),
        }
    }

    async fn answer(&mut self, answer: AnswerCall) -> bool {
        self.calls.answer(&answer.call, answer.outcome)
    }

    async fn ran(&mut self, ran: Ran, cx: &mut Context<Self>) {
        let Ran { called, kept } = ran;
        self.running -= 1;
        self.enter(&called);
        if let Some((name, realm)) = kept {
            self.freed(name, realm, cx);
        }
        while self.running < self.runs()
            && let Some(job) = self.queue.pop_front()
        {
            self.place(job, cx);
        }
        self.show();
    }

    async fn sweep(&mut self, _: Sweep, cx: &mut Context<Self>) {
        let (now, idle) = (cx.now(), self.spec.idle);
        self.kept
            .retain(|_, kept| kept.realm.is_none() || now.duration_since(kept.used) < idle);
        self.show();
        cx.send_after(idle / 2, Sweep);
    }

    async fn forget(&mut self, forget: Forget) -> bool {
        let there = match self.kept.get_mut(&forget.realm) {
            None => false,
            Some(kept) if kept.realm.is_some() => self.kept.remove(&forget.realm).is_some(),
            Some(kept) => {
                kept.forgotten = true;
                true
            }
        };
        self.show();
        there
    }

    async fn usage(&mut self, _: GetCodeUsage) -> CodeUsage {
        self.seen()
    }

    /// A run that panicked took its turn along: the actor begins anew.
    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
        match signal {
            Signal::PipePanicked { panic, .. } => Err(panic.to_string().into()),
            _ => Ok(()),
        }
    }
}

impl Code {
    fn seen(&self) -> CodeUsage {
        let idle = self.kept.values().filter_map(|kept| kept.realm.as_ref());
        CodeUsage {
            running: self.running,
            waiting: self.waiting(),
            realms: self.kept.len(),
            memory: idle.map(|realm| realm.memory()).sum(),
            ..self.usage.clone()
        }
    }

    /// Lets those who watch see it.
    fn show(&self) {
        self.spec.watch.tell(self.seen());
    }

    fn runs(&self) -> usize {
        self.spec.runs.clamp(1, <Self as strowger::Actor>::PIPES)
    }

    fn waiting(&self) -> usize {
        let kept = self.kept.values().map(|kept| kept.waiting.len());
        self.queue.len() + kept.sum::<usize>()
    }

    /// Checks a run, and gives it its turn or a place in line.
    async fn admit(&mut self, execute: Execute, customer: Arc<Customer>, cx: &mut Context<Self>) {
        let limits = self.spec.limits.within(&execute.budget);
        match self.unfit(&execute, &limits) {
            None => {
                let job = Job {
                    execute,
                    limits,
                    customer,
                };
                match self.running < self.runs() {
                    true => self.place(job, cx),
                    false => self.queue.push_back(job),
                }
            }
            Some(error) => {
                self.enter(&Entered::of(&execute, Some(error.clone())));
                customer.end(Err(error), limits.deadline).await;
            }
        }
    }

    /// Why a run does not get as far as a realm.
    fn unfit(&self, execute: &Execute, limits: &CodeLimits) -> Option<CodeError> {
        if execute.code.len() + octets(execute.args.as_ref()) > limits.source {
            return Some(CodeError::Limit(CodeLimit::Source));
        }
        if execute.language == Language::TypeScript && self.types.is_none() {
            return Some(CodeError::Language("TypeScript"));
        }
        if let Some(name) = execute.functions.unfit() {
            return Some(CodeError::Function(name.to_owned()));
        }
        if let Some(realm) = &execute.realm
            && !(1..=NAME).contains(&realm.len())
        {
            let text = format!("the name of a realm has 1 to {NAME} octets");
            return Some(CodeError::Full(text));
        }
        if self.running >= self.runs() && self.waiting() >= self.spec.waiting {
            let (runs, waiting) = (self.runs(), self.spec.waiting);
            return Some(CodeError::Full(format!(
                "{runs} runs are under way and {waiting} wait"
            )));
        }
        None
    }

    /// Starts a run, or puts it in the line of its realm.
    fn place(&mut self, job: Job, cx: &mut Context<Self>) {
        let Some(name) = job.execute.realm.clone() else {
            return self.start(job, None, cx);
        };
        if !self.kept.contains_key(&name) {
            self.make_room();
            let kept = Kept {
                realm: None,
                waiting: VecDeque::new(),
                used: cx.now(),
                forgotten: false,
            };
            self.kept.insert(name.clone(), kept);
            return self.start(job, Some((name, None)), cx);
        }
        let Some(kept) = self.kept.get_mut(&name) else {
            return;
        };
        match kept.realm.take() {
            Some(realm) => self.start(job, Some((name, Some(realm))), cx),
            None => kept.waiting.push_back(job),
        }
    }

    /// Ends the realm that was idle for longest, if there are as many as may be.
    fn make_room(&mut self) {
        if self.kept.len() < self.spec.realms {
            return;
        }
        let idle = self.kept.iter().filter(|(_, kept)| kept.realm.is_some());
        let oldest = idle.min_by_key(|(_, kept)| kept.used);
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            tracing::info!(actor = %self.actor, realm = %name, "ended to make room for another");
            self.kept.remove(&name);
        }
    }

    fn start(
        &mut self,
        job: Job,
        kept: Option<(String, Option<Box<dyn CodeRealm>>)>,
        cx: &mut Context<Self>,
    ) {
        self.running += 1;
        let (spec, types) = (Arc::clone(&self.spec), self.types.clone());
        let piped = cx.pipe(work(spec, types, job, kept), |ran| ran);
        debug_assert!(piped.is_ok(), "there are no more runs than pipes");
    }

    /// A realm is free again, or was lost.
    fn freed(&mut self, name: String, realm: Option<Box<dyn CodeRealm>>, cx: &mut Context<Self>) {
        let Some(kept) = self.kept.get_mut(&name) else {
            return;
        };
        kept.used = cx.now();
        let realm = realm.filter(|_| !kept.forgotten);
        kept.forgotten = false;
        match kept.waiting.pop_front() {
            Some(job) => self.start(job, Some((name, realm)), cx),
            None if realm.is_some() => kept.realm = realm,
            None => drop(self.kept.remove(&name)),
        }
    }

    /// Counts a run, and writes it to the audit.
    fn enter(&mut self, called: &Entered) {
        self.usage.runs += 1;
        match &called.error {
            None => {}
            Some(CodeError::Cancelled) => self.usage.cancelled += 1,
            Some(CodeError::Limit(limit)) => {
                *self.usage.limits.entry(limit.name()).or_default() += 1;
            }
            Some(_) => self.usage.failed += 1,
        }
        tracing::info!(
            target: "strowger::audit",
            actor = %self.actor,
            verb = "execute",
            realm = ?called.realm,
            language = ?called.language,
            end = called.error.as_ref().map_or("done", CodeError::name),
            octets = called.octets,
        );
    }
}

impl Entered {
    fn of(execute: &Execute, error: Option<CodeError>) -> Self {
        Self {
            realm: execute.realm.clone(),
            language: execute.language,
            octets: execute.code.len(),
            error,
        }
    }
}

/// The octets of a value as JSON.
fn octets(args: Option<&Value>) -> usize {
    args.map_or(0, |args| args.to_string().len())
}

/// Runs code and answers its customer.
async fn work(
    spec: Arc<CodeSpec>,
    types: Option<Arc<Types>>,
    job: Job,
    kept: Option<(String, Option<Box<dyn CodeRealm>>)>,
) -> Ran {
    let Job {
        execute,
        limits,
        customer,
    } = job;
    let (name, mut realm) = match kept {
        Some((name, realm)) => (Some(name), realm),
        None => (None, None),
    };
    let patron: Arc<dyn Patron> = Arc::<Customer>::clone(&customer);
    let outcome = run_in(&spec, types, &execute, &limits, &patron, &mut realm).await;
    // Before the answer: nothing of the run is left when it comes.
    let realm = realm.filter(|realm| name.is_some() && !realm.is_lost());
    let called = Entered::of(&execute, outcome.as_ref().err().cloned());
    customer.end(outcome, limits.deadline).await;
    Ran {
        called,
        kept: name.map(|name| (name, realm)),
    }
}

/// What a run comes to, and whether its realm was new.
async fn run_in(
    spec: &CodeSpec,
    types: Option<Arc<Types>>,
    execute: &Execute,
    limits: &CodeLimits,
    patron: &Arc<dyn Patron>,
    place: &mut Option<Box<dyn CodeRealm>>,
) -> Result<(Value, bool), CodeError> {
    let code: Arc<str> = match (execute.language, types) {
        (Language::TypeScript, Some(types)) => types.strip(&execute.code, patron).await?,
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
        let (name, none) = ("args", Functions::new());
        let step = CodeStep::Set { name, value: &args };
        run::run(&mut **realm, step, &none, limits, patron).await?;
    }
    let json = run::run(&mut **realm, step, &execute.functions, limits, patron).await?;
    Ok((run::value(json)?, fresh))
}
