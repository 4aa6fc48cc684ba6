//! Asks that are answered late are listed while they wait.

use std::time::Duration;

use strowger::testing::TestSystem;
use strowger::{
    Accepts, Actor, ActorRef, Ask, AskError, BoxError, ChildSpec, Context, LateAsk, Reply, Request,
    Strategy, Supervisor,
};

const SECOND: Duration = Duration::from_secs(1);

/// Asks the next actor, if there is one, or takes this time.
#[derive(Clone)]
struct Work {
    next: Option<ActorRef<Msg>>,
    time: Duration,
}

impl Request for Work {
    type Reply = ();
}

struct Msg(Ask<Work>);

impl Accepts<Ask<Work>> for Msg {
    fn wrap(ask: Ask<Work>) -> Self {
        Self(ask)
    }
}

struct Clerk;

impl Actor for Clerk {
    type Msg = Msg;
    type Args = Duration;
    type Error = BoxError;

    async fn pre_start(time: Duration, _: &mut Context<Self>) -> Result<Self, BoxError> {
        tokio::time::sleep(time).await;
        Ok(Self)
    }

    async fn handle(&mut self, Msg(ask): Msg, _: &mut Context<Self>) -> Result<(), BoxError> {
        let Work { next, time } = ask.request;
        match next {
            Some(callee) => {
                callee
                    .ask_within(Work { next: None, time }, 60 * SECOND)
                    .await?
            }
            None => tokio::time::sleep(time).await,
        }
        ask.reply.send(());
        Ok(())
    }
}

fn shown(late: &[LateAsk]) -> Vec<(Option<&str>, &str, Duration)> {
    let shown = late.iter().map(|ask| {
        let asker = ask.asker.as_ref().map(|path| path.as_str());
        (asker, ask.callee.as_str(), ask.age)
    });
    shown.collect()
}

#[test]
fn asks_older_than_a_second_are_listed_oldest_first() {
    TestSystem::check(0..5, |system| {
        let [a, b] = ["a", "b"].map(|key| system.spawn::<Clerk>(key, Duration::ZERO));
        let mut looked = Vec::new();
        let (next, time) = (Some(b.clone()), 3 * SECOND);
        system.run(async {
            let asked = a.ask(Work { next, time });
            let look = async {
                tokio::time::sleep(SECOND / 2).await;
                let own = Work { next: None, time };
                let other = b.ask_within(own, 60 * SECOND);
                let look = async {
                    tokio::time::sleep(SECOND / 4).await;
                    looked.push(system.system().late_asks());
                    tokio::time::sleep(SECOND / 2).await;
                    looked.push(system.system().late_asks());
                    tokio::time::sleep(SECOND).await;
                    looked.push(system.system().late_asks());
                };
                tokio::join!(other, look).0
            };
            let (first, second) = tokio::join!(asked, look);
            assert_eq!((first, second), (Ok(()), Ok(())));
        });
        assert_eq!(shown(&looked[0]), []);
        let age = SECOND * 5 / 4;
        let chain = [(None, "/a", age), (Some("/a"), "/b", age)];
        assert_eq!(shown(&looked[1]), chain);
        let age = age + SECOND;
        let all = [
            (None, "/a", age),
            (Some("/a"), "/b", age),
            (None, "/b", age - SECOND / 2),
        ];
        assert_eq!(shown(&looked[2]), all);
        assert_eq!(system.system().late_asks(), []);
    });
}

#[test]
fn ask_with_short_deadline_is_not_listed() {
    let system = TestSystem::new(1);
    let clerk = system.spawn::<Clerk>("a", Duration::ZERO);
    let (next, time) = (None, 9 * SECOND);
    let asked = system.run(clerk.ask_within(Work { next, time }, SECOND));
    assert_eq!(asked, Err(AskError::TimedOut));
    assert_eq!(system.system().late_asks(), []);
}

#[test]
fn dropped_ask_is_not_listed() {
    let system = TestSystem::new(1);
    let clerk = system.spawn::<Clerk>("a", Duration::ZERO);
    let (next, time) = (None, 9 * SECOND);
    system.run(async {
        let asked = clerk.ask(Work { next, time });
        let _gone = tokio::time::timeout(2 * SECOND, asked).await;
    });
    assert_eq!(system.system().late_asks(), []);
}

#[test]
fn request_to_a_supervisor_is_listed_while_a_child_starts() {
    let system = TestSystem::new(1);
    let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne));
    let late = system.run(async {
        let child = ChildSpec::new::<Clerk>("slow", 3 * SECOND);
        let look = async {
            tokio::time::sleep(2 * SECOND).await;
            system.system().late_asks()
        };
        tokio::join!(supervisor.start_child(child), look).1
    });
    assert_eq!(shown(&late), [(None, "/s", 2 * SECOND)]);
}

#[test]
fn request_sent_by_tell_is_not_listed() {
    let system = TestSystem::new(1);
    let clerk = system.spawn::<Clerk>("a", Duration::ZERO);
    let (next, time) = (None, 9 * SECOND);
    let request = Work { next, time };
    let reply = Reply::ignored();
    assert!(clerk.try_tell(Ask { request, reply }).is_ok());
    system.advance(2 * SECOND);
    assert_eq!(system.system().late_asks(), []);
}
