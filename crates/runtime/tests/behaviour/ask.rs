//! Asks: a reply, or the reason why there is none, within a deadline.

use std::convert::Infallible;
use std::time::Duration;

use strowger::testing::TestSystem;
use strowger::{
    Accepts, Actor, ActorRef, Ask, AskError, Completion, Context, MailboxSpec, Overflow, Reply,
    ReplyError, ReplyLane, Request,
};

const SECOND: Duration = Duration::from_secs(1);

/// Tells the oracle how to treat an ask.
#[derive(Debug, Clone, Copy)]
enum Question {
    Answer(u32),
    After(Duration),
    Never,
    Drop,
    Panic,
}

impl Request for Question {
    type Reply = u32;
}

type OracleMsg = Ask<Question>;

#[derive(Default)]
struct Oracle {
    kept: Vec<Reply<u32>>,
}

impl Actor for Oracle {
    type Msg = OracleMsg;
    type Args = ();
    type Error = Infallible;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self::default())
    }

    async fn handle(&mut self, ask: OracleMsg, _: &mut Context<Self>) -> Result<(), Infallible> {
        match ask.request {
            Question::Answer(n) => ask.reply.send(n),
            Question::After(time) => {
                tokio::time::sleep(time).await;
                ask.reply.send(0);
            }
            Question::Never => self.kept.push(ask.reply),
            Question::Drop => drop(ask.reply),
            Question::Panic => {
                let _reply = ask.reply;
                std::panic::resume_unwind(Box::new("no answer"));
            }
        }
        Ok(())
    }
}

fn oracle(system: &TestSystem) -> ActorRef<OracleMsg> {
    system.spawn::<Oracle>("oracle", ())
}

#[test]
fn ask_returns_the_answer() {
    let system = TestSystem::new(1);
    let oracle = oracle(&system);
    assert_eq!(system.run(oracle.ask(Question::Answer(7))), Ok(7));
    assert_eq!(system.elapsed(), Duration::ZERO);
}

#[test]
fn dropped_reply_fails_the_ask() {
    let system = TestSystem::new(1);
    let oracle = oracle(&system);
    assert_eq!(
        system.run(oracle.ask(Question::Drop)),
        Err(AskError::Dropped)
    );
    assert_eq!(system.elapsed(), Duration::ZERO);
}

#[test]
fn ask_fails_if_the_callee_panics() {
    let system = TestSystem::new(1);
    let oracle = oracle(&system);
    assert_eq!(
        system.run(oracle.ask(Question::Panic)),
        Err(AskError::Panicked)
    );
    assert_eq!(
        system.run(oracle.ask(Question::Answer(1))),
        Err(AskError::Closed)
    );
}

#[test]
fn every_ask_has_a_deadline() {
    let system = TestSystem::new(1);
    let oracle = oracle(&system);
    assert_eq!(
        system.run(oracle.ask(Question::Never)),
        Err(AskError::TimedOut)
    );
    assert_eq!(system.elapsed(), 5 * SECOND);
    let quick = oracle.ask_within(Question::Never, SECOND);
    assert_eq!(system.run(quick), Err(AskError::TimedOut));
    assert_eq!(system.elapsed(), 6 * SECOND);
}

#[test]
fn asks_time_out_in_order_of_their_deadlines() {
    let system = TestSystem::new(1);
    let oracle = oracle(&system);
    let start = system.run(async { tokio::time::Instant::now() });
    let after = |milliseconds: u64| {
        let (oracle, within) = (oracle.clone(), Duration::from_millis(milliseconds));
        async move {
            let result = oracle.ask_within(Question::Never, within).await;
            (result, tokio::time::Instant::now() - start)
        }
    };
    let (long, short, none) = system.run(async { tokio::join!(after(900), after(3), after(0)) });
    let late = |milliseconds| (Err(AskError::TimedOut), Duration::from_millis(milliseconds));
    assert_eq!((long, short, none), (late(900), late(3), late(0)));
}

#[test]
fn answered_ask_cancels_its_deadline() {
    let system = TestSystem::new(1);
    let oracle = oracle(&system);
    let answered = oracle.ask(Question::After(SECOND));
    assert_eq!(system.run(answered), Ok(0));
    let turns = system.trace().turns();
    system.advance(3600 * SECOND);
    // Cancelling the deadline wakes its driver once.
    assert!(system.trace().turns() <= turns + 1);
}

#[test]
fn ask_deadline_includes_wait_for_mailbox_space() {
    let system = TestSystem::new(1);
    let oracle = oracle(&system);
    let result = system.run(async {
        let busy = oracle.ask_within(Question::After(10 * SECOND), 20 * SECOND);
        let waits = oracle.ask_within(Question::Answer(1), 20 * SECOND);
        let outside = oracle.ask_within(Question::Answer(2), SECOND);
        tokio::join!(busy, waits, outside)
    });
    assert_eq!(result, (Ok(0), Ok(1), Err(AskError::TimedOut)));
}

#[test]
fn pending_asks_fail_when_the_actor_ends() {
    let system = TestSystem::new(1);
    let oracle = oracle(&system);
    let result = system.run(async {
        let held = oracle.ask(Question::Never);
        let killed = async {
            tokio::time::sleep(SECOND).await;
            oracle.kill();
        };
        tokio::join!(held, killed).0
    });
    assert_eq!(result, Err(AskError::Dropped));
}

#[test]
fn late_answer_is_dropped() {
    let system = TestSystem::new(1);
    let oracle = oracle(&system);
    let early = oracle.ask_within(Question::After(2 * SECOND), SECOND);
    assert_eq!(system.run(early), Err(AskError::TimedOut));
    assert_eq!(system.run(oracle.ask(Question::Answer(3))), Ok(3));
}

/// Asks the oracle through a lane and counts the replies.
struct Asker {
    oracle: ActorRef<OracleMsg>,
    lane: ReplyLane<u32>,
    answers: Vec<(u64, Result<u32, ReplyError>)>,
}

enum AskerMsg {
    Put(u64, Question),
    Answer(Completion<u32>),
    Read(Reply<Vec<(u64, Result<u32, ReplyError>)>>),
    Panic,
}

struct Read;

impl Request for Read {
    type Reply = Vec<(u64, Result<u32, ReplyError>)>;
}

impl Accepts<Completion<u32>> for AskerMsg {
    fn wrap(completion: Completion<u32>) -> Self {
        Self::Answer(completion)
    }
}

impl Accepts<Ask<Read>> for AskerMsg {
    fn wrap(ask: Ask<Read>) -> Self {
        Self::Read(ask.reply)
    }
}

impl Actor for Asker {
    type Msg = AskerMsg;
    type Args = ActorRef<OracleMsg>;
    type Error = Infallible;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1).overflow(Overflow::Fail);

    async fn pre_start(oracle: Self::Args, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self {
            oracle,
            lane: cx.lane(),
            answers: Vec::new(),
        })
    }

    async fn handle(&mut self, msg: AskerMsg, _: &mut Context<Self>) -> Result<(), Infallible> {
        match msg {
            AskerMsg::Put(token, request) => {
                let reply = self.lane.reply(token);
                // If the mailbox refuses the message, dropping its reply answers the ask.
                let _sent = self.oracle.try_tell(Ask { request, reply });
            }
            AskerMsg::Answer(Completion { token, result }) => self.answers.push((token, result)),
            AskerMsg::Read(reply) => reply.send(self.answers.clone()),
            AskerMsg::Panic => std::panic::resume_unwind(Box::new("asker")),
        }
        Ok(())
    }
}

#[test]
fn lane_completions_carry_their_tokens() {
    let system = TestSystem::new(1);
    let asker = system.spawn::<Asker>("asker", oracle(&system));
    for (token, question) in [(1, Question::Answer(10)), (2, Question::Drop)] {
        asker.try_tell(AskerMsg::Put(token, question)).unwrap();
        system.run_until_idle();
    }
    let answers = vec![(1, Ok(10)), (2, Err(ReplyError::Dropped))];
    assert_eq!(system.run(asker.ask(Read)), Ok(answers));
}

#[test]
fn lane_completions_bypass_mailbox_capacity() {
    let system = TestSystem::new(1);
    let oracle = oracle(&system);
    let asker = system.spawn::<Asker>("asker", oracle);
    asker
        .try_tell(AskerMsg::Put(1, Question::After(SECOND)))
        .unwrap();
    system.run_until_idle();
    // The oracle holds the question; the asker's mailbox is full when the reply arrives.
    let pause = AskerMsg::Put(2, Question::Never);
    asker.try_tell(pause).unwrap();
    assert!(asker.try_tell(AskerMsg::Put(3, Question::Never)).is_err());
    system.advance(2 * SECOND);
    assert_eq!(system.run(asker.ask(Read)).unwrap()[0], (1, Ok(0)));
}

#[test]
fn completions_for_an_ended_incarnation_are_dropped() {
    let system = TestSystem::new(1);
    let oracle = oracle(&system);
    let child = strowger::ChildSpec::new::<Asker>("asker", oracle);
    let supervisor = strowger::Supervisor::new(strowger::Strategy::OneForOne).child(child);
    let supervisor = system.supervise("s", supervisor);
    let asker = supervisor.child::<AskerMsg>("asker").unwrap();
    asker
        .try_tell(AskerMsg::Put(1, Question::After(SECOND)))
        .unwrap();
    system.run_until_idle();
    asker.try_tell(AskerMsg::Panic).unwrap();
    system.advance(2 * SECOND);
    assert_eq!(system.run(asker.ask(Read)), Ok(Vec::new()));
}
