//! Asks of actors that wait for the asker to end or to start: refused at once, because no answer
//! can come before the wait is over.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use strowger::testing::TestSystem;
use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, AskError, BoxError, ChildError, ChildSpec, Context,
    Dynamic, Exit, Reply, Request, Restart, Strategy, Supervisor, SupervisorRef,
};

const SECOND: Duration = Duration::from_secs(1);

type Outcome = Result<(), AskError>;

/// One step of a walk from actor to actor, made inside a hook.
#[derive(Debug, Clone)]
enum Step {
    /// Asks the actor at this path to make the rest of the walk.
    Ask(&'static str),
    /// Waits until the actor at this path has ended.
    Stopped(&'static str),
    /// Drains the actor at this path.
    Drain(&'static str),
    /// Takes this time.
    Sleep(Duration),
    /// Asks the supervisor for its children.
    Which,
    /// Makes the supervisor end the child with this key.
    Terminate(&'static str),
    /// Asks the actor at the first path, which hands the reply to the one at the second, and stops.
    ByWayOf(&'static str, &'static str),
    /// Starts a supervisor with this member as its child.
    Supervise(Box<Plan>),
}
use Step::{ByWayOf, Drain, Sleep, Stopped, Supervise, Terminate, Which};

fn ask(path: &'static str) -> Step {
    Step::Ask(path)
}

struct Walk(Vec<Step>);

impl Request for Walk {
    type Reply = Outcome;
}

/// A request whose reply is handed to the actor at this path, which answers it after a second.
struct HandOver(&'static str);

impl Request for HandOver {
    type Reply = Outcome;
}

enum Msg {
    Walk(Ask<Walk>),
    HandOver(Ask<HandOver>),
    Handed(Reply<Outcome>),
    Fail,
    Stop,
}

impl Accepts<Ask<Walk>> for Msg {
    fn wrap(ask: Ask<Walk>) -> Self {
        Self::Walk(ask)
    }
}

impl Accepts<Ask<HandOver>> for Msg {
    fn wrap(ask: Ask<HandOver>) -> Self {
        Self::HandOver(ask)
    }
}

/// The observations of all members, by path.
#[derive(Debug, Default)]
struct Log {
    /// Outcomes of the walks that began in a hook without an asker.
    outcomes: BTreeMap<String, Vec<Outcome>>,
    /// Number of `post_stop` hooks that ran to their end.
    whole: BTreeMap<String, u32>,
    refused_calls: u32,
    office: OnceLock<SupervisorRef>,
}

type Shared = Arc<Mutex<Log>>;

/// The behavior of a member.
#[derive(Debug, Clone, Default)]
struct Plan {
    key: &'static str,
    log: Shared,
    /// Walks of `pre_start` (from the second incarnation on, if `again`) and `post_stop`.
    first: Vec<Step>,
    again: bool,
    last: Vec<Step>,
    children: Vec<Self>,
}

impl Plan {
    fn new(key: &'static str, log: &Shared) -> Self {
        Self {
            key,
            log: Arc::clone(log),
            ..Self::default()
        }
    }

    fn first(mut self, walk: impl Into<Vec<Step>>) -> Self {
        self.first = walk.into();
        self
    }

    fn last(mut self, walk: impl Into<Vec<Step>>) -> Self {
        self.last = walk.into();
        self
    }

    fn child(mut self, child: Self) -> Self {
        self.children.push(child);
        self
    }

    fn spec(self) -> ChildSpec {
        ChildSpec::new::<Member>(self.key, self)
    }
}

struct Member {
    plan: Plan,
}

fn find(system: &ActorSystem, path: &str) -> Option<ActorRef<Msg>> {
    system.find(path)?.downcast()
}

async fn walk(steps: &[Step], plan: &Plan, cx: &mut Context<Member>) -> Outcome {
    let Some((step, rest)) = steps.split_first() else {
        return Ok(());
    };
    let office = || {
        let log = plan.log.lock().expect("no panic with it");
        log.office.get().expect("it was set").clone()
    };
    let called = match step {
        Step::Ask(path) => {
            let Some(next) = find(&cx.system(), path) else {
                return Err(AskError::Closed);
            };
            return next.ask_within(Walk(rest.to_vec()), 60 * SECOND).await?;
        }
        ByWayOf(path, other) => {
            let next = find(&cx.system(), path).expect("it runs");
            return next.ask_within(HandOver(other), 60 * SECOND).await?;
        }
        Sleep(time) => {
            tokio::time::sleep(*time).await;
            Ok(())
        }
        Stopped(path) => {
            if let Some(other) = find(&cx.system(), path) {
                other.stopped().await;
            }
            Ok(())
        }
        Drain(path) => {
            let other = find(&cx.system(), path).expect("it runs");
            other.drain(60 * SECOND).await;
            Ok(())
        }
        Which => office().which_children().await.map(drop),
        Terminate(key) => office().terminate_child(key).await,
        Supervise(child) => {
            let one = Supervisor::new(Strategy::OneForOne).child((**child).clone().spec());
            let started = cx.supervise("s", one).await;
            started.map(drop).map_err(ChildError::from)
        }
    };
    if let Err(error) = called {
        if error.to_string().contains("it would deadlock") {
            plan.log.lock().expect("no panic with it").refused_calls += 1;
        }
        return Err(AskError::Dropped);
    }
    Box::pin(walk(rest, plan, cx)).await
}

impl Member {
    fn note(plan: &Plan, cx: &Context<Self>, outcome: Outcome) {
        let mut log = plan.log.lock().expect("no panic with it");
        log.outcomes
            .entry(cx.path().to_string())
            .or_default()
            .push(outcome);
    }
}

impl Actor for Member {
    type Msg = Msg;
    type Args = Plan;
    type Error = BoxError;

    async fn pre_start(plan: Plan, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        for child in &plan.children {
            cx.spawn::<Self>(child.key, child.clone())?;
        }
        let restarts = cx.system().find(cx.path()).map(|me| me.info().restarts);
        if !plan.first.is_empty() && (!plan.again || restarts > Some(0)) {
            let outcome = walk(&plan.first, &plan, cx).await;
            Self::note(&plan, cx, outcome);
        }
        Ok(Self { plan })
    }

    async fn handle(&mut self, msg: Msg, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match msg {
            Msg::Walk(ask) => {
                let outcome = walk(&ask.request.0, &self.plan, cx).await;
                ask.reply.send(outcome);
            }
            Msg::HandOver(ask) => {
                let other = find(&cx.system(), ask.request.0).ok_or("it runs")?;
                other
                    .tell(Msg::Handed(ask.reply))
                    .await
                    .map_err(|_| "it runs")?;
                cx.stop();
            }
            Msg::Handed(reply) => {
                tokio::time::sleep(SECOND).await;
                reply.send(Ok(()));
            }
            Msg::Fail => return Err("told to".into()),
            Msg::Stop => cx.stop(),
        }
        Ok(())
    }

    async fn post_stop(self, _: &Exit, cx: &mut Context<Self>) {
        if !self.plan.last.is_empty() {
            let outcome = walk(&self.plan.last, &self.plan, cx).await;
            Self::note(&self.plan, cx, outcome);
        }
        let mut log = self.plan.log.lock().expect("no panic with it");
        *log.whole.entry(cx.path().to_string()).or_default() += 1;
    }
}

/// Makes an actor begin a walk, whose outcome goes to the log of the returned task.
fn begin(actor: &ActorRef<Msg>, steps: impl Into<Vec<Step>>) {
    let request = Walk(steps.into());
    let reply = Reply::ignored();
    let sent = actor.try_tell(Ask { request, reply });
    assert!(sent.is_ok(), "there is room");
}

fn rings(log: &Shared) -> Vec<(String, Vec<String>)> {
    let log = log.lock().expect("no panic with it");
    let mut rings = Vec::new();
    for (path, outcomes) in &log.outcomes {
        for outcome in outcomes {
            if let Err(AskError::Ring { path: ring }) = outcome {
                let ring = ring.iter().map(ToString::to_string).collect();
                rings.push((path.clone(), ring));
            }
        }
    }
    rings
}

fn whole(log: &Shared, path: &str) -> u32 {
    let log = log.lock().expect("no panic with it");
    log.whole.get(path).copied().unwrap_or(0)
}

fn seeds(scenario: impl Fn(&TestSystem, &Shared)) {
    TestSystem::check(0..20, |system| scenario(system, &Shared::default()));
}

const KEYS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

#[test]
fn child_that_asks_its_stopping_parent_is_refused_at_once() {
    seeds(|system, log| {
        let child = |key| Plan::new(key, log).last([ask("/p")]);
        let plan = Plan::new("p", log);
        let plan = KEYS.into_iter().map(child).fold(plan, Plan::child);
        let parent = system.spawn::<Member>("p", plan);
        system.run_until_idle();
        parent.stop();
        system.run(parent.stopped());
        assert_eq!(system.elapsed(), Duration::ZERO);
        let rings = rings(log);
        assert_eq!(rings.len(), KEYS.len());
        for (key, (path, ring)) in KEYS.iter().zip(rings) {
            let child = format!("/p/{key}");
            assert_eq!(ring, [&child, "/p", &child]);
            assert_eq!((path, whole(log, &child)), (child, 1));
        }
    });
}

#[test]
fn ask_that_began_before_the_stop_ends_when_the_parent_begins_to_wait() {
    seeds(|system, log| {
        let plan = Plan::new("p", log);
        let children = KEYS.into_iter().map(|key| Plan::new(key, log));
        let parent = system.spawn::<Member>("p", children.fold(plan, Plan::child));
        begin(&parent, [Sleep(SECOND)]);
        system.run_until_idle();
        for key in KEYS {
            let child = find(system.system(), &format!("/p/{key}")).expect("it runs");
            begin(&child, [ask("/p")]);
        }
        system.advance(SECOND / 2);
        parent.stop();
        system.run(parent.stopped());
        assert_eq!(system.elapsed(), SECOND, "the handler was not cut off");
        assert!(KEYS.iter().all(|key| whole(log, &format!("/p/{key}")) == 1));
    });
}

#[test]
fn child_not_yet_stopping_is_refused_too() {
    seeds(|system, log| {
        let late = Plan::new("1", log).last([Sleep(SECOND)]);
        let plan = Plan::new("p", log).child(Plan::new("0", log)).child(late);
        let parent = system.spawn::<Member>("p", plan);
        system.run_until_idle();
        parent.stop();
        system.run_until_idle();
        let first = find(system.system(), "/p/0").expect("it runs");
        let refused = system.run(first.ask(Walk(vec![ask("/p")])));
        assert!(
            matches!(refused, Ok(Err(AskError::Ring { .. }))),
            "{refused:?}"
        );
        assert_eq!(system.elapsed(), Duration::ZERO);
        system.run(parent.stopped());
        assert_eq!(system.elapsed(), SECOND);
    });
}

#[test]
fn indirect_ask_of_a_stopping_parent_is_refused() {
    seeds(|system, log| {
        let other = system.spawn::<Member>("x", Plan::new("x", log));
        let child = Plan::new("c", log).last([ask("/x"), ask("/p")]);
        let parent = system.spawn::<Member>("p", Plan::new("p", log).child(child));
        system.run_until_idle();
        parent.stop();
        system.run(parent.stopped());
        assert_eq!(system.elapsed(), Duration::ZERO);
        assert_eq!(rings(log)[0].1.len(), 4);
        assert_eq!(whole(log, "/p/c"), 1);
        assert!(other.is_alive());
    });
}

#[test]
fn indirect_ask_that_began_before_the_stop_ends() {
    seeds(|system, log| {
        system.spawn::<Member>("x", Plan::new("x", log));
        let plan = Plan::new("p", log).child(Plan::new("c", log));
        let parent = system.spawn::<Member>("p", plan);
        begin(&parent, [Sleep(SECOND)]);
        system.run_until_idle();
        let child = find(system.system(), "/p/c").expect("it runs");
        begin(&child, [ask("/x"), ask("/p")]);
        system.advance(SECOND / 2);
        parent.stop();
        system.run(parent.stopped());
        assert_eq!((system.elapsed(), whole(log, "/p/c")), (SECOND, 1));
    });
}

#[test]
fn grandchild_error_contains_the_whole_ring() {
    seeds(|system, log| {
        let leaf = Plan::new("l", log).last([ask("/p")]);
        let plan = Plan::new("p", log).child(Plan::new("c", log).child(leaf));
        let parent = system.spawn::<Member>("p", plan);
        system.run_until_idle();
        parent.stop();
        system.run(parent.stopped());
        assert_eq!(system.elapsed(), Duration::ZERO);
        let expected = ["/p/c/l", "/p", "/p/c", "/p/c/l"];
        let expected = expected.map(str::to_owned).to_vec();
        assert_eq!(rings(log), [("/p/c/l".to_owned(), expected)]);
    });
}

#[test]
fn ring_error_text_names_path_reason_and_remedy() {
    seeds(|system, log| {
        let child = Plan::new("c", log).last([ask("/p")]);
        let parent = system.spawn::<Member>("p", Plan::new("p", log).child(child));
        system.run_until_idle();
        parent.stop();
        system.run(parent.stopped());
        let log = log.lock().expect("no panic with it");
        let error = log.outcomes["/p/c"][0].clone().expect_err("it is refused");
        assert_eq!(
            error.to_string(),
            "ask refused: it would deadlock (/p/c -> /p -> /p/c, because /p waits for the end of \
             /p/c); ask from a pipe, or receive the answer through a lane"
        );
    });
}

#[test]
fn dynamic_siblings_may_ask_each_other_while_stopping() {
    seeds(|system, log| {
        let dynamic = system.dynamic::<Member>("d", Dynamic::new().restart(Restart::Permanent));
        for key in KEYS {
            let next = ["/d/0", "/d/5", "/d/9"].map(ask);
            let plan = Plan::new(key, log).last(next);
            dynamic.start_child(key, plan).expect("the key is free");
        }
        system.run_until_idle();
        dynamic.stop();
        system.run(dynamic.stopped());
        assert_eq!(system.elapsed(), Duration::ZERO);
        assert!(KEYS.iter().all(|key| whole(log, &format!("/d/{key}")) == 1));
    });
}

fn office(system: &TestSystem, log: &Shared, office: Supervisor) -> SupervisorRef {
    let office = system.supervise("s", office);
    let log = log.lock().expect("no panic with it");
    log.office.set(office.clone()).expect("it is set once");
    office
}

#[test]
fn sibling_that_is_stopped_for_a_restart_may_ask_the_one_that_failed() {
    seeds(|system, log| {
        let children = Supervisor::new(Strategy::OneForAll)
            .child(Plan::new("a", log).last([ask("/s/b")]).spec())
            .child(Plan::new("b", log).spec());
        system.supervise("s", children);
        let failing = find(system.system(), "/s/b").expect("it runs");
        failing.try_tell(Msg::Fail).expect("there is room");
        system.run_until_idle();
        assert_eq!(system.elapsed(), Duration::ZERO);
        assert_eq!(rings(log).len(), 1, "{log:?}");
        assert_eq!(whole(log, "/s/a"), 1);
        assert_eq!(system.run(failing.ask(Walk(vec![ask("/s/a")]))), Ok(Ok(())));
    });
}

#[test]
fn ask_begun_before_a_sibling_failure_is_refused() {
    seeds(|system, log| {
        let children = Supervisor::new(Strategy::OneForAll)
            .child(Plan::new("a", log).spec())
            .child(Plan::new("b", log).spec());
        system.supervise("s", children);
        let [one, other] = ["/s/a", "/s/b"].map(|path| find(system.system(), path));
        let (one, other) = (one.expect("it runs"), other.expect("it runs"));
        begin(&other, [Sleep(SECOND)]);
        other.try_tell(Msg::Fail).expect("there is room");
        system.run_until_idle();
        begin(&one, [ask("/s/b")]);
        system.advance(SECOND);
        system.run_until_idle();
        assert_eq!((system.elapsed(), whole(log, "/s/a")), (SECOND, 1));
        assert_eq!(system.run(one.ask(Walk(vec![ask("/s/b")]))), Ok(Ok(())));
        assert_eq!(system.elapsed(), SECOND);
    });
}

#[test]
fn restarting_child_may_ask_a_later_sibling() {
    seeds(|system, log| {
        let mut first = Plan::new("a", log).first([ask("/s/b")]);
        first.again = true;
        let children = Supervisor::new(Strategy::RestForOne)
            .child(first.spec())
            .child(Plan::new("b", log).spec());
        system.supervise("s", children);
        let failing = find(system.system(), "/s/a").expect("it runs");
        failing.try_tell(Msg::Fail).expect("there is room");
        system.run_until_idle();
        assert_eq!(system.elapsed(), Duration::ZERO);
        assert_eq!(rings(log).len(), 1, "{log:?}");
        assert_eq!(system.run(failing.ask(Walk(vec![ask("/s/b")]))), Ok(Ok(())));
    });
}

#[test]
fn supervisor_call_by_an_awaited_child_is_refused() {
    seeds(|system, log| {
        let children = Supervisor::new(Strategy::OneForOne)
            .child(Plan::new("a", log).last([Which]).spec())
            .child(Plan::new("b", log).spec());
        let office = office(system, log, children);
        let other = find(system.system(), "/s/b").expect("it runs");
        // A child may not wait for its own end: it ends, but its call is refused.
        let itself = system.run(other.ask(Walk(vec![Terminate("b")])));
        assert_eq!(itself, Ok(Err(AskError::Dropped)));
        system.run_until_idle();
        assert!(!other.is_alive());
        office.stop();
        system.run(office.stopped());
        assert_eq!(system.elapsed(), Duration::ZERO);
        assert_eq!((whole(log, "/s/a"), whole(log, "/s/b")), (1, 1));
        assert_eq!(log.lock().expect("no panic with it").refused_calls, 2);
    });
}

#[test]
fn ask_of_an_actor_awaiting_the_askers_start_is_refused() {
    seeds(|system, log| {
        let child = Plan::new("c", log).first([ask("/p")]);
        let parent = system.spawn::<Member>("p", Plan::new("p", log));
        let started = system.run(parent.ask(Walk(vec![Supervise(Box::new(child))])));
        assert_eq!(started, Ok(Ok(())), "the child started all the same");
        assert_eq!(system.elapsed(), Duration::ZERO);
        let expected = ["/p/s/c", "/p", "/p/s", "/p/s/c"];
        assert_eq!(rings(log)[0].1, expected.map(str::to_owned));
    });
}

#[test]
fn awaiting_an_exit_in_a_hook_counts_as_a_wait() {
    for last in [Stopped("/p"), Drain("/p")] {
        seeds(|system, log| {
            system.spawn::<Member>("x", Plan::new("x", log));
            let child = Plan::new("c", log).last([ask("/x"), last.clone()]);
            let parent = system.spawn::<Member>("p", Plan::new("p", log).child(child));
            system.run_until_idle();
            parent.stop();
            system.run(parent.stopped());
            assert_eq!(system.elapsed(), Duration::ZERO);
            assert_eq!(rings(log).len(), 1, "{log:?}");
            assert_eq!(whole(log, "/p/c"), 1);
        });
    }
}

#[test]
fn answerable_ask_is_not_refused_while_a_parent_stops() {
    seeds(|system, log| {
        system.spawn::<Member>("x", Plan::new("x", log));
        // Children end in reverse order, so the first one still answers.
        let ways = [ask("/x"), ask("/p/0"), ask("/x")];
        let plan = Plan::new("p", log)
            .child(Plan::new("0", log))
            .child(Plan::new("1", log).last([ways[0].clone(), ways[1].clone()]))
            .child(Plan::new("2", log).last([ways[1].clone(), ways[2].clone()]));
        let parent = system.spawn::<Member>("p", plan);
        system.run_until_idle();
        parent.stop();
        system.run(parent.stopped());
        let log = log.lock().expect("no panic with it");
        assert_eq!(log.outcomes["/p/1"], [Ok(())]);
        assert_eq!(log.outcomes["/p/2"], [Ok(())]);
    });
}

#[test]
fn delegated_reply_is_awaited_while_the_parent_stops() {
    seeds(|system, log| {
        system.spawn::<Member>("x", Plan::new("x", log));
        let plan = Plan::new("p", log).child(Plan::new("c", log));
        let parent = system.spawn::<Member>("p", plan);
        system.run_until_idle();
        let child = find(system.system(), "/p/c").expect("it runs");
        let answer = system.run(child.ask(Walk(vec![ByWayOf("/p", "/x")])));
        assert_eq!(answer, Ok(Ok(())));
        assert_eq!(system.elapsed(), SECOND);
        system.run(parent.stopped());
        assert_eq!((system.elapsed(), whole(log, "/p/c")), (SECOND, 1));
    });
}

#[test]
fn queued_request_is_answered_by_the_next_incarnation() {
    seeds(|system, log| {
        let slow = Plan::new("c", log).last([Sleep(SECOND)]);
        let children =
            Supervisor::new(Strategy::OneForOne).child(Plan::new("p", log).child(slow).spec());
        system.supervise("s", children);
        let other = system.spawn::<Member>("x", Plan::new("x", log));
        let parent = find(system.system(), "/s/p").expect("it runs");
        parent.try_tell(Msg::Stop).expect("there is room");
        system.run_until_idle();
        assert_eq!(system.run(other.ask(Walk(vec![ask("/s/p")]))), Ok(Ok(())));
        assert_eq!(system.elapsed(), SECOND);
    });
}
