//! Rings of asks: reported at once, and only where there is one.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use proptest::prelude::*;
use strowger::testing::TestSystem;
use strowger::{
    Accepts, Actor, ActorRef, Ask, AskError, BoxError, Completion, Context, MailboxSpec, Reply,
    ReplyLane, Request,
};

const SECOND: Duration = Duration::from_secs(1);

type Outcome = Result<(), AskError>;
type Peers = Arc<OnceLock<Vec<ActorRef<Msg>>>>;

/// Asks the first of these actors, inside a hook, to continue the walk along the others.
#[derive(Clone)]
struct Walk(Vec<usize>);

impl Request for Walk {
    type Reply = Outcome;
}

/// Waits, and then continues the walk.
struct After(Duration, Vec<usize>);

impl Request for After {
    type Reply = Outcome;
}

/// Walks in a task beside the actor.
struct Beside(Vec<usize>);

impl Request for Beside {
    type Reply = Outcome;
}

/// Replies first, and then walks.
struct Answered(Vec<usize>);

impl Request for Answered {
    type Reply = Outcome;
}

/// Answered by a pipe after one second.
struct Later;

impl Request for Later {
    type Reply = Outcome;
}

/// Walks when a timer fires, which is right after the next `Later`.
struct Timed(Vec<usize>);

impl Request for Timed {
    type Reply = Outcome;
}

/// Asks an actor `Later` inside a hook.
struct AskLater(usize);

impl Request for AskLater {
    type Reply = Outcome;
}

/// Makes an actor continue the walk, with the reply in a lane.
struct Lanes(usize, Vec<usize>);

impl Request for Lanes {
    type Reply = Outcome;
}

enum Msg {
    Walk(Ask<Walk>),
    After(Ask<After>),
    Beside(Ask<Beside>),
    Answered(Ask<Answered>),
    Later(Ask<Later>),
    AskLater(Ask<AskLater>),
    Timed(Ask<Timed>),
    Lanes(Ask<Lanes>),
    Piped(Reply<Outcome>, Outcome),
    Completed(Completion<Outcome>),
}

macro_rules! accepts {
    ($($request:ident)*) => {$(
        impl Accepts<Ask<$request>> for Msg {
            fn wrap(ask: Ask<$request>) -> Self {
                Self::$request(ask)
            }
        }
    )*};
}

accepts!(Walk After Beside Answered Later AskLater Timed Lanes);

impl Accepts<Completion<Outcome>> for Msg {
    fn wrap(completion: Completion<Outcome>) -> Self {
        Self::Completed(completion)
    }
}

struct Walker {
    peers: Peers,
    lane: ReplyLane<Outcome>,
    waiting: Option<Reply<Outcome>>,
    timed: Option<Ask<Walk>>,
}

async fn walk(peers: Peers, mut way: Vec<usize>) -> Outcome {
    if way.is_empty() {
        return Ok(());
    }
    let next = way.remove(0);
    peers.wait()[next].ask(Walk(way)).await?
}

impl Actor for Walker {
    type Msg = Msg;
    type Args = Peers;
    type Error = BoxError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(2);

    async fn pre_start(peers: Peers, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self {
            peers,
            lane: cx.lane(),
            waiting: None,
            timed: None,
        })
    }

    async fn handle(&mut self, msg: Msg, cx: &mut Context<Self>) -> Result<(), BoxError> {
        let peers = Arc::clone(&self.peers);
        match msg {
            Msg::Walk(ask) => ask.reply.send(walk(peers, ask.request.0).await),
            Msg::After(ask) => {
                tokio::time::sleep(ask.request.0).await;
                ask.reply.send(walk(peers, ask.request.1).await);
            }
            Msg::Beside(ask) => {
                cx.pipe(walk(peers, ask.request.0), |end| Msg::Piped(ask.reply, end))?;
            }
            Msg::Answered(ask) => {
                ask.reply.send(Ok(()));
                walk(peers, ask.request.0).await?;
            }
            Msg::Later(ask) => {
                let answer = async move {
                    tokio::time::sleep(SECOND).await;
                    ask.reply.send(Ok(()));
                };
                cx.pipe(answer, |()| Msg::Piped(Reply::ignored(), Ok(())))?;
                if let Some(walk) = self.timed.take() {
                    cx.send_after(Duration::ZERO, Msg::Walk(walk));
                }
            }
            Msg::Timed(ask) => {
                let (request, reply) = (Walk(ask.request.0), ask.reply);
                self.timed = Some(Ask { request, reply });
            }
            Msg::AskLater(ask) => {
                let answer = peers.wait()[ask.request.0].ask(Later).await;
                ask.reply.send(answer.and_then(|answer| answer));
            }
            Msg::Lanes(ask) => {
                let Lanes(next, way) = ask.request;
                let (request, reply) = (Walk(way), self.lane.reply(0));
                self.waiting = Some(ask.reply);
                peers.wait()[next]
                    .tell(Ask { request, reply })
                    .await
                    .map_err(|_| "gone")?;
            }
            Msg::Piped(reply, outcome) => reply.send(outcome),
            Msg::Completed(completion) => {
                let waiting = self.waiting.take().ok_or("nobody waits")?;
                waiting.send(completion.result.map_err(|_| AskError::Dropped)?);
            }
        }
        Ok(())
    }
}

fn walkers(system: &TestSystem, count: usize) -> Vec<ActorRef<Msg>> {
    let peers = Peers::default();
    let spawn = |number: usize| system.spawn::<Walker>(number.to_string(), Arc::clone(&peers));
    let all: Vec<_> = (0..count).map(spawn).collect();
    let _first = peers.set(all.clone());
    all
}

/// The ring that an ask ran into. The schedule decides which of its asks is the last, so the result
/// starts at its least actor.
fn ring(outcome: Result<Outcome, AskError>) -> Vec<String> {
    match outcome.and_then(|outcome| outcome) {
        Err(AskError::Ring { path }) => {
            let mut all: Vec<_> = path.iter().skip(1).map(ToString::to_string).collect();
            assert_eq!(path.first(), path.last(), "it ends where it begins");
            let least = (0..all.len()).min_by_key(|at| &all[*at]);
            all.rotate_left(least.expect("somebody is in it"));
            all.push(all[0].clone());
            all
        }
        other => panic!("{other:?} is no ring"),
    }
}

#[test]
fn ask_ring_is_reported_at_once() {
    TestSystem::check(0..20, |system| {
        let actors = walkers(system, 3);
        let two = system.run(actors[0].ask(Walk(vec![1, 0])));
        assert_eq!(ring(two), ["/0", "/1", "/0"]);
        let three = system.run(actors[0].ask(Walk(vec![1, 2, 0])));
        assert_eq!(ring(three), ["/0", "/1", "/2", "/0"]);
        let one = system.run(actors[0].ask(Walk(vec![0])));
        assert_eq!(ring(one), ["/0", "/0"]);
        assert_eq!(system.elapsed(), Duration::ZERO);
        assert_eq!(system.run(actors[0].ask(Walk(vec![1, 2]))), Ok(Ok(())));
    });
}

#[test]
fn ring_error_text_lists_the_path() {
    let system = TestSystem::new(1);
    let actors = walkers(&system, 2);
    let outcome = system.run(actors[0].ask(Walk(vec![1, 0])));
    let error = outcome.and_then(|outcome| outcome).unwrap_err();
    let ways = ["/0 -> /1 -> /0", "/1 -> /0 -> /1"];
    let text = ways.map(|way| {
        format!(
            "ask refused: it would deadlock ({way}); ask from a pipe, or receive the answer \
             through a lane"
        )
    });
    assert!(text.contains(&error.to_string()), "{error}");
}

#[test]
fn only_one_of_two_crossing_asks_is_refused() {
    TestSystem::check(0..50, |system| {
        let actors = walkers(system, 2);
        let (one, two) = system.run(async {
            tokio::join!(
                actors[0].ask(After(SECOND, vec![1])),
                actors[1].ask(After(SECOND, vec![0]))
            )
        });
        let rings = [one, two]
            .into_iter()
            .filter(|outcome| *outcome != Ok(Ok(())));
        assert_eq!(rings.map(ring).count(), 1);
        assert_eq!(system.elapsed(), SECOND);
    });
}

#[test]
fn ring_through_a_full_mailbox_is_detected() {
    let system = TestSystem::new(1);
    let actors = walkers(&system, 2);
    let outcomes = system.run(async {
        tokio::join!(
            actors[0].ask(After(SECOND, vec![1])),
            actors[1].ask(After(2 * SECOND, vec![0])),
            actors[1].ask(Walk(vec![])),
            actors[1].ask(Walk(vec![])),
        )
    });
    assert_eq!(ring(outcomes.1), ["/0", "/1", "/0"]);
    assert_eq!((outcomes.0, outcomes.2), (Ok(Ok(())), Ok(Ok(()))));
    assert_eq!(system.elapsed(), 2 * SECOND);
}

#[test]
fn asks_from_pipes_and_lanes_form_no_ring() {
    TestSystem::check(0..20, |system| {
        let actors = walkers(system, 2);
        assert_eq!(system.run(actors[0].ask(Beside(vec![1, 0]))), Ok(Ok(())));
        assert_eq!(system.run(actors[0].ask(Lanes(1, vec![0]))), Ok(Ok(())));
    });
}

#[test]
fn answered_ask_is_not_a_wait() {
    TestSystem::check(0..20, |system| {
        let actors = walkers(system, 2);
        let outcome = system.run(actors[0].ask(Answered(vec![1])));
        assert_eq!(outcome, Ok(Ok(())));
        assert!(actors[0].is_alive());
    });
}

#[test]
fn deferred_reply_is_not_a_wait() {
    TestSystem::check(0..20, |system| {
        let actors = walkers(system, 2);
        // Actor 0 waits for the output of a pipe of actor 1; then actor 1 waits for actor 0.
        let (one, two) = system.run(async {
            let walk = async {
                tokio::time::sleep(SECOND / 2).await;
                actors[1].ask(Walk(vec![0])).await
            };
            tokio::join!(actors[0].ask(AskLater(1)), walk)
        });
        assert_eq!((one, two), (Ok(Ok(())), Ok(Ok(()))));
    });
}

#[test]
fn deferred_reply_is_not_a_wait_for_a_timer_handler() {
    TestSystem::check(0..20, |system| {
        let actors = walkers(system, 2);
        // Actor 0 waits for the output of a pipe of actor 1; meanwhile a timer makes actor 1 wait
        // for actor 0.
        let (one, two) = system.run(async {
            let later = async {
                tokio::time::sleep(SECOND).await;
                actors[0].ask(AskLater(1)).await
            };
            tokio::join!(actors[1].ask(Timed(vec![0])), later)
        });
        assert_eq!((one, two), (Ok(Ok(())), Ok(Ok(()))));
    });
}

#[test]
fn refused_ring_leaves_no_edges() {
    let system = TestSystem::new(1);
    let actors = walkers(&system, 2);
    for _ in 0..3 {
        assert_eq!(ring(system.run(actors[0].ask(Walk(vec![1, 0])))).len(), 3);
        assert_eq!(system.run(actors[1].ask(Walk(vec![0]))), Ok(Ok(())));
    }
}

/// Runs all walks at once.
fn all_at_once(system: &TestSystem, walks: &[Vec<usize>]) -> Vec<Outcome> {
    let actors = walkers(system, 6);
    let ask = |walk: &Vec<usize>| {
        let (first, way) = (actors[walk[0]].clone(), walk[1..].to_vec());
        Box::pin(async move { first.ask(Walk(way)).await.and_then(|end| end) })
    };
    let mut asks: Vec<Pin<Box<dyn Future<Output = Outcome>>>> =
        walks.iter().map(|walk| ask(walk) as _).collect();
    let mut ends = vec![None; asks.len()];
    system.run(poll_fn(move |cx| {
        for (ask, end) in asks.iter_mut().zip(&mut ends) {
            if end.is_none()
                && let Poll::Ready(outcome) = ask.as_mut().poll(cx)
            {
                *end = Some(outcome);
            }
        }
        if ends.iter().all(Option::is_some) {
            Poll::Ready(ends.drain(..).flatten().collect())
        } else {
            Poll::Pending
        }
    }))
}

fn walk_along() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..6_usize, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// For any graph of asks, no ring waits for its deadline.
    #[test]
    fn every_ring_is_detected(
        seed in any::<u64>(),
        walks in prop::collection::vec(walk_along(), 1..6),
    ) {
        let system = TestSystem::new(seed);
        for outcome in all_at_once(&system, &walks) {
            let right = matches!(outcome, Ok(()) | Err(AskError::Ring { .. }));
            prop_assert!(right, "{outcome:?}");
        }
        prop_assert_eq!(system.elapsed(), Duration::ZERO);
    }

    /// If all walks go upward, there is no ring.
    #[test]
    fn no_false_ring_is_reported(
        seed in any::<u64>(),
        mut walks in prop::collection::vec(walk_along(), 1..6),
    ) {
        for walk in &mut walks {
            walk.sort_unstable();
            walk.dedup();
        }
        let system = TestSystem::new(seed);
        for outcome in all_at_once(&system, &walks) {
            prop_assert_eq!(outcome, Ok(()));
        }
    }
}
