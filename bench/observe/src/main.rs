//! Work for callgrind: messages to an actor that is observed in one of several ways.
//!
//! `strowger-bench-observe WAY WORK MESSAGES` runs on one thread and prints nothing. Two runs with
//! different numbers of messages differ by the cost of the messages; `cargo xtask bench observe`
//! makes these runs and prints the figures.

use std::convert::Infallible;
use std::process::ExitCode;

use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, BoxError, Context, EventStream, MailboxSpec,
    PathPattern, Reply, Request, SystemObserver, TopQuery, TopRank, TraceLimits, TraceReader,
};
use strowger_gateway::metrics::MetricsRecorder;
use tracing_subscriber::EnvFilter;

enum Msg {
    Add(u64),
    Get(Reply<u64>),
}

struct Get;

impl Request for Get {
    type Reply = u64;
}

impl Accepts<Ask<Get>> for Msg {
    fn wrap(ask: Ask<Get>) -> Self {
        Self::Get(ask.reply)
    }
}

struct Counter(u64);

impl Actor for Counter {
    type Msg = Msg;
    type Args = ();
    type Error = Infallible;

    const MAILBOX: MailboxSpec = MailboxSpec::DEFAULT;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(0))
    }

    async fn handle(&mut self, message: Msg, _: &mut Context<Self>) -> Result<(), Infallible> {
        match message {
            Msg::Add(number) => self.0 += number,
            Msg::Get(reply) => reply.send(self.0),
        }
        Ok(())
    }
}

/// Number of messages told before the actor is asked for its sum.
const BATCH: u64 = 512;

/// Number of messages per reading of a hundred actors. This is equivalent to reading a thousand
/// actors once a second in a node that handles a million messages a second.
const MESSAGES_PER_READING: u64 = 100_000;
const ACTORS: u64 = 100;

/// The observers of a run.
#[derive(Default)]
struct Observers {
    observer: Option<SystemObserver>,
    _events: Option<EventStream>,
    _tracer: Option<TraceReader>,
}

impl Observers {
    async fn begin(way: &str, system: &ActorSystem) -> Result<Self, BoxError> {
        let mut watch = Self::default();
        match way {
            // Recorder and subscriber are installed before the system is created.
            "alone" | "recorder" | "subscriber" => {}
            "events" => watch._events = Some(system.events()),
            "top" => watch.observer = Some(system.observer()),
            "trace" => {
                let other: PathPattern = "/nobody".parse()?;
                watch._tracer = Some(system.trace(other, TraceLimits::default()).await);
            }
            other => return Err(format!("nobody watches by `{other}`").into()),
        }
        Ok(watch)
    }

    async fn look(&mut self) {
        if let Some(observer) = &mut self.observer {
            let top = observer.top(&TopQuery::new(TopRank::Rate).rows(20)).await;
            assert_eq!(top.totals.actors as u64, ACTORS);
        }
    }
}

async fn tell(
    counter: &ActorRef<Msg>,
    messages: u64,
    watch: &mut Observers,
) -> Result<u64, BoxError> {
    let mut told = 0;
    while told < messages {
        for _ in 0..BATCH {
            if counter.try_tell(Msg::Add(1)).is_err() {
                return Err("there is no room".into());
            }
        }
        counter.ask(Get).await?;
        told += BATCH;
        if told % MESSAGES_PER_READING < BATCH {
            watch.look().await;
        }
    }
    Ok(told)
}

async fn ask(
    counter: &ActorRef<Msg>,
    messages: u64,
    watch: &mut Observers,
) -> Result<u64, BoxError> {
    for asked in 0..messages {
        if counter.ask(Get).await? != 0 {
            return Err("nobody has told it anything".into());
        }
        if asked % MESSAGES_PER_READING == MESSAGES_PER_READING - 1 {
            watch.look().await;
        }
    }
    Ok(0)
}

async fn run(way: &str, work: &str, messages: u64) -> Result<(), BoxError> {
    let _recorder = match way {
        "recorder" => Some(MetricsRecorder::install()?),
        _ => None,
    };
    if way == "subscriber" {
        // Logs as a node does.
        let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::new("warn"));
        log.init();
    }
    let system = ActorSystem::new("watched")?;
    let counter = system.spawn::<Counter>("counter", ())?;
    for number in 1..ACTORS {
        system.spawn::<Counter>(number.to_string(), ())?;
    }
    let mut watch = Observers::begin(way, &system).await?;
    watch.look().await;
    let sum = match work {
        "tell" => tell(&counter, messages, &mut watch).await?,
        "ask" => ask(&counter, messages, &mut watch).await?,
        other => return Err(format!("`{other}` is neither tell nor ask").into()),
    };
    if counter.ask(Get).await? != sum {
        return Err("the sum is wrong".into());
    }
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.as_slice() {
        [way, work, messages] => messages
            .parse()
            .map_err(BoxError::from)
            .and_then(|messages| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_time()
                    .build()?;
                runtime.block_on(run(way, work, messages))
            }),
        _ => Err("which WAY, WORK, how many MESSAGES?".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
