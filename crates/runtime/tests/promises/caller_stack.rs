//! No actor's code runs on the stack of another, or of a task or thread outside the system.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use strowger::{
    Accepts, Actor, ActorRef, ActorSystem, Ask, BoxError, ChildSpec, Context, Dynamic, Exit,
    Request, Strategy, Supervisor,
};
use tokio::task_local;

use crate::support::{MAX_WAIT, current_thread, exclusive_machine, on_worker, runtime};

task_local! {
    static CALLER: u32;
}

/// Reports what its hooks see of the task that runs them.
struct LocalsProbe(Sight);

/// The observation of a hook: the caller's local, and its task.
type Sight = (Option<u32>, Option<tokio::task::Id>);

fn sight() -> Sight {
    (
        CALLER.try_with(|caller| *caller).ok(),
        tokio::task::try_id(),
    )
}

struct Look;

impl Request for Look {
    /// The observations of `pre_start`, of the handler before its first await, and of the handler
    /// after it.
    type Reply = [Sight; 3];
}

impl Actor for LocalsProbe {
    type Msg = Ask<Look>;
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(sight()))
    }

    async fn handle(&mut self, ask: Ask<Look>, _: &mut Context<Self>) -> Result<(), Infallible> {
        let before = sight();
        tokio::task::yield_now().await;
        ask.reply.send([self.0, before, sight()]);
        Ok(())
    }
}

#[test]
fn task_locals_do_not_leak_into_actors() {
    let _alone = exclusive_machine();
    for workers in [1, 2] {
        on_worker(&runtime(workers), async {
            let system = ActorSystem::new("locals").expect("within tokio");
            for number in 0..300 {
                let look = async {
                    let seer = system.spawn::<LocalsProbe>(format!("seer-{number}"), ());
                    seer.expect("the name is free").ask(Look).await
                };
                let seen = CALLER.scope(number, look).await.expect("an answer");
                for (local, task) in seen {
                    assert_eq!(local, None, "the asker's local is its own");
                    assert_ne!(task, tokio::task::try_id(), "the asker's task is its own");
                }
            }
            system.shutdown(MAX_WAIT).await;
        });
    }
}

/// Adds itself to a map when it starts, and removes itself when it stops.
struct Entered(Arc<Mutex<HashMap<u32, ThreadId>>>, u32);

impl Actor for Entered {
    type Msg = ();
    type Args = (Arc<Mutex<HashMap<u32, ThreadId>>>, u32);
    type Error = Infallible;

    async fn pre_start(args: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        let (map, key) = args;
        map.lock()
            .expect("no panic")
            .insert(key, thread::current().id());
        Ok(Self(map, key))
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), Infallible> {
        Ok(())
    }

    async fn post_stop(self, _: &Exit, _: &mut Context<Self>) {
        self.0.lock().expect("no panic").remove(&self.1);
    }
}

/// Runs a program in a thread of its own, and fails if it does not return.
fn comes_back(program: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = thread::spawn(move || {
        program();
        done.send(()).expect("somebody waits");
    });
    wait.recv_timeout(MAX_WAIT).expect("it hangs");
    thread.join().expect("no panic");
}

#[test]
fn spawn_and_stop_do_not_run_hooks_inline() {
    let _alone = exclusive_machine();
    comes_back(|| {
        on_worker(&runtime(2), async {
            let system = ActorSystem::new("locked").expect("within tokio");
            let map = Arc::new(Mutex::new(HashMap::new()));
            for key in 0..100 {
                let held = map.lock().expect("no panic");
                let args = (Arc::clone(&map), key);
                let entered = system.spawn::<Entered>(format!("top-{key}"), args);
                let entered = entered.expect("the name is free");
                entered.stop();
                drop(held);
                entered.stopped().await;
            }
            let dynamic = system.dynamic("all", Dynamic::<Entered>::new());
            let dynamic = dynamic.expect("the name is free");
            for key in 0..100 {
                let held = map.lock().expect("no panic");
                let started = dynamic.start_child(format!("{key}"), (Arc::clone(&map), key));
                drop(held);
                let child = started.expect("the name is free");
                child.stop();
                child.stopped().await;
            }
            system.shutdown(MAX_WAIT).await;
            assert!(map.lock().expect("no panic").is_empty());
        });
    });
}

#[test]
fn ask_under_a_lock_taken_by_the_callee_can_time_out() {
    let _alone = exclusive_machine();
    comes_back(|| {
        on_worker(&runtime(2), async {
            let system = ActorSystem::new("stopped").expect("within tokio");
            let map = Arc::new(Mutex::new(HashMap::new()));
            let entered = system.spawn::<Entered>("entered", (Arc::clone(&map), 7));
            let entered = entered.expect("the name is free");
            while map.lock().expect("no panic").is_empty() {
                tokio::task::yield_now().await;
            }
            // A thread outside the runtime holds the lock that `post_stop` needs.
            let (hold, held) = (Arc::clone(&map), mpsc::channel::<()>());
            let (taken, wait) = tokio::sync::oneshot::channel();
            let holder = thread::spawn(move || {
                let _held = hold.lock().expect("no panic");
                taken.send(()).expect("somebody waits");
                held.1.recv().expect("it is let go");
            });
            wait.await.expect("it is held");
            entered.stop();
            let limit = Duration::from_millis(50);
            let begun = std::time::Instant::now();
            assert!(
                tokio::time::timeout(limit, entered.stopped())
                    .await
                    .is_err()
            );
            assert!(begun.elapsed() < 10 * limit, "after {:?}", begun.elapsed());
            held.0.send(()).expect("it waits");
            holder.join().expect("no panic");
            entered.stopped().await;
            system.shutdown(MAX_WAIT).await;
        });
    });
}

/// Asks the next actor before it replies, with a large frame on its stack.
struct Deep(Option<ActorRef<Ask<Depth>>>);

struct Depth;

impl Request for Depth {
    type Reply = usize;
}

/// The size of the stack frame of one handler.
const FRAME: usize = 240 << 10;

impl Actor for Deep {
    type Msg = Ask<Depth>;
    type Args = Option<ActorRef<Ask<Depth>>>;
    type Error = BoxError;

    async fn pre_start(next: Self::Args, _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(next))
    }

    async fn handle(&mut self, ask: Ask<Depth>, _: &mut Context<Self>) -> Result<(), BoxError> {
        let below = match &self.0 {
            Some(next) => {
                // The code that polls the ask has a frame of its own.
                let mut asked = std::pin::pin!(next.ask(Depth));
                std::future::poll_fn(|cx| with_frame(|| asked.as_mut().poll(cx))).await?
            }
            None => 0,
        };
        ask.reply.send(below + 1);
        Ok(())
    }
}

#[inline(never)]
fn with_frame<T>(run: impl FnOnce() -> T) -> T {
    let mut frame = [0_u8; FRAME];
    std::hint::black_box(&mut frame);
    let ran = run();
    std::hint::black_box(&mut frame);
    ran
}

#[test]
fn nested_asks_do_not_share_a_stack() {
    let _alone = exclusive_machine();
    for runtime in [runtime(1), runtime(2), current_thread()] {
        let depth = on_worker(&runtime, async {
            let system = ActorSystem::new("deep").expect("within tokio");
            let mut next = None;
            for number in 0..64 {
                let deep = system.spawn::<Deep>(format!("{number}"), next);
                next = Some(deep.expect("the name is free"));
            }
            let depth = next.expect("there are some").ask(Depth).await;
            system.shutdown(MAX_WAIT).await;
            depth
        });
        assert_eq!(depth, Ok(64));
    }
}

/// Refuses to start while a switch is off.
struct Slow(Duration);

enum Never {}

impl Accepts<()> for Never {
    fn wrap((): ()) -> Self {
        unreachable!("nobody tells it anything")
    }
}

impl Actor for Slow {
    type Msg = Never;
    type Args = Duration;
    type Error = Infallible;

    async fn pre_start(time: Duration, _: &mut Context<Self>) -> Result<Self, Infallible> {
        thread::sleep(time);
        Ok(Self(time))
    }

    async fn handle(&mut self, message: Never, _: &mut Context<Self>) -> Result<(), Infallible> {
        match message {}
    }

    async fn post_stop(self, _: &Exit, _: &mut Context<Self>) {
        thread::sleep(self.0);
    }
}

#[test]
fn blocking_start_does_not_block_the_spawner() {
    let _alone = exclusive_machine();
    on_worker(&runtime(2), async {
        let system = ActorSystem::new("slow").expect("within tokio");
        let begun = std::time::Instant::now();
        for number in 0..3 {
            let name = format!("slow-{number}");
            system
                .spawn::<Slow>(name, Duration::from_millis(300))
                .expect("the name is free");
        }
        let dynamic = system.dynamic("slow", Dynamic::<Slow>::new());
        let dynamic = dynamic.expect("the name is free");
        for number in 0..3 {
            let started = dynamic.start_child(format!("{number}"), Duration::from_millis(300));
            started.expect("the name is free");
        }
        let took = begun.elapsed();
        assert!(took < Duration::from_millis(250), "it took {took:?}");
        system.shutdown(MAX_WAIT).await;
    });
}

#[test]
fn wait_for_a_blocking_start_can_time_out() {
    let _alone = exclusive_machine();
    const BLOCKS: Duration = Duration::from_millis(800);
    const LIMIT: Duration = Duration::from_millis(50);
    on_worker(&runtime(2), async {
        let system = ActorSystem::new("start").expect("within tokio");
        let above = Supervisor::new(Strategy::OneForOne);
        let above = system.supervise("above", above).await.expect("it starts");
        let begun = std::time::Instant::now();
        let start = above.start_child(ChildSpec::new::<Slow>("slow", BLOCKS));
        assert!(tokio::time::timeout(LIMIT, start).await.is_err());
        let took = begun.elapsed();
        assert!(took < BLOCKS / 2, "the start was given up after {took:?}");
        // Nobody waits for it, and it still starts.
        let slow = above.child::<Never>("slow");
        let slow = slow.expect("it has its place");
        assert!(tokio::time::timeout(LIMIT, slow.started()).await.is_err());
        let took = begun.elapsed();
        assert!(took < BLOCKS * 3 / 4, "both were given up after {took:?}");
        slow.started().await.expect("it runs by now");
        system.shutdown(MAX_WAIT).await;
    });
}

#[test]
fn restart_does_not_run_on_the_causing_stack() {
    let _alone = exclusive_machine();
    /// Fails when told to, and observes what [`LocalsProbe`] observes when it restarts.
    struct Fails(Sight);

    enum Message {
        Fail,
        Look(Ask<Look>),
    }

    impl Accepts<()> for Message {
        fn wrap((): ()) -> Self {
            Self::Fail
        }
    }

    impl Accepts<Ask<Look>> for Message {
        fn wrap(ask: Ask<Look>) -> Self {
            Self::Look(ask)
        }
    }

    impl Actor for Fails {
        type Msg = Message;
        type Args = ();
        type Error = BoxError;

        async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
            Ok(Self(sight()))
        }

        async fn handle(
            &mut self,
            message: Message,
            _: &mut Context<Self>,
        ) -> Result<(), BoxError> {
            match message {
                Message::Fail => Err("told to".into()),
                Message::Look(ask) => {
                    ask.reply.send([self.0, sight(), sight()]);
                    Ok(())
                }
            }
        }
    }

    on_worker(&runtime(2), async {
        let system = ActorSystem::new("restart").expect("within tokio");
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(1000, Duration::from_secs(1))
            .child(ChildSpec::new::<Fails>("fails", ()));
        let supervisor = system
            .supervise("above", supervisor)
            .await
            .expect("it starts");
        let fails = supervisor.child::<Message>("fails").expect("it is there");
        for number in 0..100 {
            let seen = CALLER.scope(number, async {
                fails.tell(()).await.expect("it is there");
                fails.ask(Look).await
            });
            for (local, task) in seen.await.expect("an answer") {
                assert_eq!(local, None);
                assert_ne!(task, tokio::task::try_id());
            }
        }
        system.shutdown(MAX_WAIT).await;
    });
}
