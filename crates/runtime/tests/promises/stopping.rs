//! A parent stops within milliseconds though its children ask it, and their `post_stop` runs whole.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, AskError, Context, Exit, Reply, Request,
};
use tokio::task::JoinSet;

use crate::support::{MAX_WAIT, current_thread, exclusive_machine, on_worker, runtime};

const PARENTS: u32 = 1000;
/// The mean time that a stop may take. It takes about two milliseconds, because an ask is recorded
/// after about one; a stop that waits for its limit takes five seconds.
const MEAN: Duration = Duration::from_millis(50);

/// The time at which a child asks its parent.
#[derive(Debug, Clone, Copy)]
enum When {
    /// In `post_stop`.
    Last,
    /// In `handle`, before the stop.
    Before,
    /// In `post_stop`, by way of another actor.
    ByWayOfAnother,
}

/// Asks the callee to ask this actor in turn, if there is one.
#[derive(Clone)]
struct Ping(Option<ActorRef<Message>>);

impl Request for Ping {
    type Reply = ();
}

enum Message {
    Ping(Ask<Ping>),
    /// Asks this actor.
    Begin(ActorRef<Self>),
}

impl Accepts<Ask<Ping>> for Message {
    fn wrap(ask: Ask<Ping>) -> Self {
        Self::Ping(ask)
    }
}

#[derive(Default)]
struct Counts {
    /// Asks that were refused, and `post_stop` hooks of children that ran to their end.
    refused: AtomicU32,
    whole: AtomicU32,
}

#[derive(Clone)]
struct Plan {
    when: When,
    other: ActorRef<Message>,
    counts: Arc<Counts>,
}

/// A parent with a child, or that child, which knows its parent.
struct Member {
    plan: Option<Plan>,
    parent: Option<ActorRef<Message>>,
}

impl Member {
    async fn ask(&self, callee: &ActorRef<Message>, ping: Ping) {
        let refused = matches!(callee.ask(ping).await, Err(AskError::Ring { .. }));
        if let Some(plan) = &self.plan {
            plan.counts
                .refused
                .fetch_add(u32::from(refused), Ordering::Relaxed);
        }
    }
}

impl Actor for Member {
    type Msg = Message;
    type Args = (Option<Plan>, Option<ActorRef<Message>>);
    type Error = Infallible;

    async fn pre_start(
        (plan, parent): Self::Args,
        cx: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        if let (Some(plan), None) = (&plan, &parent) {
            let child = (Some(plan.clone()), Some(cx.actor_ref()));
            let child = cx.spawn::<Self>("child", child).expect("the key is free");
            if let When::Before = plan.when {
                let begun = child.try_tell(Message::Begin(cx.actor_ref()));
                assert!(begun.is_ok(), "there is room");
                // The ask of the child waits behind this until the stop.
                let (request, reply) = (Ping(Some(plan.other.clone())), Reply::ignored());
                let busy = cx.actor_ref().try_tell(Ask { request, reply });
                assert!(busy.is_ok(), "there is room");
            }
        }
        Ok(Self { plan, parent })
    }

    async fn handle(&mut self, message: Message, _: &mut Context<Self>) -> Result<(), Infallible> {
        match message {
            Message::Ping(ask) => {
                match &ask.request.0 {
                    Some(next) => self.ask(next, Ping(None)).await,
                    // Long enough for the ask of the child to wait.
                    None if self.plan.is_none() => {
                        tokio::time::sleep(Duration::from_millis(4)).await;
                    }
                    None => {}
                }
                ask.reply.send(());
            }
            Message::Begin(callee) => self.ask(&callee, Ping(None)).await,
        }
        Ok(())
    }

    async fn post_stop(self, _: &Exit, _: &mut Context<Self>) {
        let (Some(plan), Some(parent)) = (&self.plan, &self.parent) else {
            return;
        };
        match plan.when {
            When::Last => self.ask(parent, Ping(None)).await,
            When::Before => {}
            When::ByWayOfAnother => {
                let ping = Ping(Some(parent.clone()));
                let _refused_there = plan.other.ask(ping).await;
            }
        }
        plan.counts.whole.fetch_add(1, Ordering::Relaxed);
    }
}

/// Starts parents of children that ask them, one other actor for each.
fn parents(system: &ActorSystem, when: When, counts: &Arc<Counts>) -> Vec<ActorRef<Message>> {
    let parent = |number: u32| {
        let key = format!("{when:?}-{number}");
        let other = system.spawn::<Member>(format!("other-{key}"), (None, None));
        let plan = Plan {
            when,
            other: other.expect("the key is free"),
            counts: Arc::clone(counts),
        };
        let parent = system.spawn::<Member>(key, (Some(plan), None));
        parent.expect("the key is free")
    };
    (0..PARENTS).map(parent).collect()
}

#[test]
fn stop_is_fast_while_children_ask_their_parent() {
    let _alone = exclusive_machine();
    for runtime in [runtime(1), runtime(2), current_thread()] {
        on_worker(&runtime, async {
            for when in [When::Last, When::Before, When::ByWayOfAnother] {
                let system = ActorSystem::new("stopping").expect("within tokio");
                let counts = Arc::new(Counts::default());
                let parents = parents(&system, when, &counts);
                let begun = Instant::now();
                for parent in &parents {
                    parent.stop();
                    parent.stopped().await;
                }
                let mean = begun.elapsed() / PARENTS;
                assert!(mean < MEAN, "a stop takes {mean:?}: {when:?}");
                assert_eq!(counts.whole.load(Ordering::Relaxed), PARENTS, "{when:?}");
                if let When::Last = when {
                    assert_eq!(counts.refused.load(Ordering::Relaxed), PARENTS);
                }
                system.shutdown(MAX_WAIT).await;
            }
        });
    }
}

#[test]
fn concurrent_stops_do_not_wait_for_each_other() {
    let _alone = exclusive_machine();
    on_worker(&runtime(2), async {
        for when in [When::Last, When::Before, When::ByWayOfAnother] {
            let system = ActorSystem::new("stopping").expect("within tokio");
            let counts = Arc::new(Counts::default());
            let mut stops = JoinSet::new();
            let begun = Instant::now();
            for parent in parents(&system, when, &counts) {
                parent.stop();
                stops.spawn(async move { parent.stopped().await });
            }
            stops.join_all().await;
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(3), "{when:?}: {took:?}");
            assert_eq!(counts.whole.load(Ordering::Relaxed), PARENTS, "{when:?}");
            system.shutdown(MAX_WAIT).await;
        }
    });
}
