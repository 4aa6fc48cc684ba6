//! Programs: code that is published under an address, and kept.
//!
//! ```text
//! Programs (the desk) ─ Publish ─▶ read once, checked against its schemas
//! └─ NAME (supervisor)              restarts it; after too many failures, never again
//!    └─ program                     one message at a time: handle(input) ─▶ output
//! ```
//!
//! A program has a realm as long as it is in use. Of the realms there are so many at a time: the
//! program that was idle for longest gives its own up, and keeps its `state`.

mod desk;
mod door;
mod message;
mod residence;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use jsonschema::Validator;
use parking_lot::Mutex;
use serde_json::Value;
use strowger::{ActorRef, Ask, BoxError, Context, Reply, handlers};

pub use desk::{Programs, ProgramsMessage, ProgramsSpec};
pub use door::{program_door, programs_door};
pub use message::{
    ListPrograms, Perform, ProgramError, ProgramInfo, ProgramState, Publish, Side, Withdraw,
};
use residence::{Residence, Room};
pub use watch::{ProgramsUsage, ProgramsWatch};

use crate::code::run::{Own, Patron, run, value};
use crate::code::{CodeError, CodeLimits, CodeRealm, CodeStep, Functions, Line, Sandbox};

/// A program, as its desk started it.
#[derive(Clone, Debug)]
pub struct ProgramArgs(Arc<Seat>);

/// What of a program outlives its lives.
#[derive(Debug)]
struct Seat {
    name: String,
    draft: bool,
    /// JavaScript.
    code: Arc<str>,
    input: Option<Validator>,
    output: Option<Validator>,
    functions: Functions,
    limits: CodeLimits,
    sandbox: Arc<dyn Sandbox>,
    residence: Arc<Residence>,
    /// What it kept when it gave its realm up, in JSON.
    state: Mutex<Option<String>>,
    resident: AtomicBool,
    calls: AtomicU64,
    failed: AtomicU64,
    lives: AtomicU32,
}

/// An actor that handles messages with a program.
#[derive(Debug)]
pub struct Program {
    seat: Arc<Seat>,
    awake: Option<Awake>,
    me: ActorRef<ProgramMessage>,
    path: String,
}

#[derive(Debug)]
struct Awake {
    seat: Arc<Seat>,
    /// Dropped before the room is given to another one.
    realm: Box<dyn CodeRealm>,
    room: Room,
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.seat.resident.store(false, Ordering::Relaxed);
    }
}

/// Gives the realm up if others wait for its room, and keeps the state.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Rest;

/// Looks whether the program can be run at all.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Wake;

impl strowger::Request for Wake {
    type Reply = Result<(), ProgramError>;
}

#[handlers]
impl strowger::Actor for Program {
    type Args = ProgramArgs;
    type Error = BoxError;

    async fn pre_start(args: ProgramArgs, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let ProgramArgs(seat) = args;
        if seat.lives.fetch_add(1, Ordering::Relaxed) > 0 {
            // A life that failed leaves nothing that the next one could trust.
            *seat.state.lock() = None;
        }
        Ok(Self {
            me: cx.me(),
            path: cx.path().to_string(),
            seat,
            awake: None,
        })
    }

    async fn wake(&mut self, ask: Ask<Wake>) -> Result<(), BoxError> {
        let own: Arc<dyn Patron> = Arc::new(Own);
        let woken = self.awaken(&own).await.map(|_| ());
        self.rest().await?;
        ask.reply.send(woken.map_err(ProgramError::Code));
        Ok(())
    }

    async fn perform(&mut self, ask: Ask<Perform>) -> Result<(), BoxError> {
        let Ask { request, reply } = ask;
        let asker = Arc::new(Asker::new(reply, self.path.clone()));
        let outcome = self.answer(request.0, &asker).await;
        self.enter(&outcome);
        let lost = self.awake.take_if(|awake| awake.realm.is_lost()).is_some();
        let failed = outcome.as_ref().err().map(ToString::to_string);
        // That nobody wants an answer is no failure of the program.
        let given_up = matches!(outcome, Err(ProgramError::Code(CodeError::Cancelled)));
        asker.answer(outcome);
        match failed {
            Some(failed) if lost && !given_up => Err(failed.into()),
            _ => self.rest().await,
        }
    }

    async fn idle(&mut self, _: Rest) -> Result<(), BoxError> {
        self.rest().await
    }
}

impl Program {
    /// What the program answers.
    async fn answer(&mut self, input: Value, asker: &Arc<Asker>) -> Result<Value, ProgramError> {
        let seat = Arc::clone(&self.seat);
        if seat.draft {
            return Err(ProgramError::Draft(seat.name.clone()));
        }
        let arguments = Value::from(vec![input]);
        let json = arguments.to_string();
        // Before it costs a realm: who sends too much is at fault, not the program.
        let (octets, limit) = (json.len() - "[]".len(), seat.limits.result);
        if octets > limit {
            return Err(ProgramError::TooLong { octets, limit });
        }
        fits(Side::Input, seat.input.as_ref(), &arguments[0])?;
        let patron: Arc<dyn Patron> = Arc::<Asker>::clone(asker);
        let awake = self.awaken(&patron).await?;
        let step = CodeStep::Call {
            function: "handle",
            arguments: &json,
        };
        let realm = &mut *awake.realm;
        let json = run(realm, step, &seat.functions, &seat.limits, &patron).await?;
        let output = value(json)?;
        fits(Side::Output, seat.output.as_ref(), &output)?;
        Ok(output)
    }

    /// The program in its realm, with what it kept.
    async fn awaken(&mut self, patron: &Arc<dyn Patron>) -> Result<&mut Awake, CodeError> {
        if self.awake.is_none() {
            let seat = &*self.seat;
            let room = seat.residence.admit().await;
            let room = room.ok_or_else(|| CodeError::Full("programs are ending".to_owned()))?;
            let mut realm = seat.sandbox.realm(seat.limits.memory).await?;
            let state = seat.state.lock().clone();
            let steps = [
                CodeStep::Set {
                    name: "state",
                    value: state.as_deref().unwrap_or("{}"),
                },
                CodeStep::Script {
                    name: &seat.name,
                    code: &seat.code,
                },
            ];
            for step in steps {
                run(&mut *realm, step, &seat.functions, &seat.limits, patron).await?;
            }
            seat.resident.store(true, Ordering::Relaxed);
            let seat = Arc::clone(&self.seat);
            self.awake = Some(Awake { seat, realm, room });
        }
        let awake = self.awake.as_mut();
        let awake = awake.ok_or_else(|| CodeError::Sandbox("it did not wake up".to_owned()))?;
        awake.room.busy();
        Ok(awake)
    }

    /// Is idle from now on; if others wait for its room, it gives that up.
    async fn rest(&mut self) -> Result<(), BoxError> {
        let awake = self.awake.as_mut();
        match awake.is_some_and(|awake| awake.room.idle(&self.me)) {
            true => self.passivate().await,
            false => Ok(()),
        }
    }

    /// Keeps the state, and gives the realm up.
    async fn passivate(&mut self) -> Result<(), BoxError> {
        let Some(mut awake) = self.awake.take() else {
            return Ok(());
        };
        let seat = &*self.seat;
        let step = CodeStep::Script {
            name: "state",
            code: "state",
        };
        let (none, own): (_, Arc<dyn Patron>) = (Functions::new(), Arc::new(Own));
        let state = run(&mut *awake.realm, step, &none, &seat.limits, &own).await;
        drop(awake);
        match state {
            Ok(state) => {
                *seat.state.lock() = state;
                Ok(())
            }
            Err(error) => Err(format!("its state cannot be kept: {error}").into()),
        }
    }

    /// Counts a message, and writes it to the audit.
    fn enter(&self, outcome: &Result<Value, ProgramError>) {
        self.seat.calls.fetch_add(1, Ordering::Relaxed);
        if outcome.is_err() {
            self.seat.failed.fetch_add(1, Ordering::Relaxed);
        }
        let end = outcome.as_ref().err();
        self.seat.residence.watch.called(end);
        tracing::info!(
            target: "strowger::audit",
            actor = %self.path,
            verb = "perform",
            end = end.map_or("done", ProgramError::name),
        );
    }
}

/// One who asked a program.
struct Asker {
    reply: Mutex<Option<Reply<Result<Value, ProgramError>>>>,
    /// Nobody waited from the beginning: it was told, not asked.
    told: bool,
    program: String,
}

impl Asker {
    fn new(reply: Reply<Result<Value, ProgramError>>, program: String) -> Self {
        Self {
            told: !reply.is_wanted(),
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

impl Patron for Asker {
    fn is_there(&self) -> bool {
        self.told || self.reply.lock().as_ref().is_some_and(Reply::is_wanted)
    }

    fn print(&self, line: Line) {
        let (program, level) = (&self.program, line.level);
        tracing::info!(target: "strowger::program", %program, ?level, "{}", line.text);
    }
}

/// Whether a value is as a schema says; if not, where and why.
fn fits(side: Side, schema: Option<&Validator>, value: &Value) -> Result<(), ProgramError> {
    let Some(Err(error)) = schema.map(|schema| schema.validate(value)) else {
        return Ok(());
    };
    let at = error.instance_path().to_string();
    let text = match &*at {
        "" => error.to_string(),
        at => format!("{at}: {error}"),
    };
    Err(ProgramError::Schema(side, short(&text)))
}

/// Text about what others wrote, for people.
fn short(text: &str) -> String {
    const MOST: usize = 300;
    text.chars().take(MOST).collect()
}
