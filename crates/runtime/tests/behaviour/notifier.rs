//! Notifications: one signal for all that came before it, ahead of messages, to one incarnation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use strowger::testing::TestSystem;
use strowger::{
    Actor, ActorRef, ActorSystem, Ask, BoxError, ChildSpec, Context, MailboxSpec, Notifier,
    Request, Signal, Strategy, Supervisor,
};

/// What a [`Notified`] actor has handled, and the notifiers of its incarnations.
#[derive(Clone, Default)]
struct Record(Arc<Mutex<(Vec<String>, Vec<Notifier>)>>);

impl Record {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().expect("not poisoned").0.push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("not poisoned").0)
    }

    fn notifiers(&self) -> Vec<Notifier> {
        self.0.lock().expect("not poisoned").1.clone()
    }
}

/// Records its notifications and its messages; fails at message 0.
struct Notified(Record);

impl Actor for Notified {
    type Msg = u32;
    type Args = Record;
    type Error = BoxError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(2);

    async fn pre_start(record: Record, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let notifier = cx.notifier();
        record.0.lock().expect("not poisoned").1.push(notifier);
        Ok(Self(record))
    }

    async fn handle(&mut self, message: u32, cx: &mut Context<Self>) -> Result<(), BoxError> {
        self.0.add(message.to_string());
        match message {
            0 => Err("as ordered".into()),
            9 => {
                cx.notifier().notify();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::Notified = signal {
            self.0.add("notified");
        }
        Ok(())
    }
}

fn tell(actor: &ActorRef<u32>, message: u32) {
    actor.try_tell(message).expect("there is room");
}

#[test]
fn notifications_count_as_one_and_overtake_a_full_mailbox() {
    TestSystem::check(0..10, |system| {
        let record = Record::default();
        let actor = system.spawn::<Notified>("notified", record.clone());
        system.run_until_idle();
        let notifier = record.notifiers().remove(0);
        tell(&actor, 1);
        tell(&actor, 2);
        assert!(notifier.notify() && notifier.notify() && notifier.notify());
        system.run_until_idle();
        assert_eq!(record.take(), ["notified", "1", "2"]);
        assert!(notifier.notify());
        system.run_until_idle();
        assert_eq!(record.take(), ["notified"]);
        // Its own notification comes before the message that waits.
        tell(&actor, 9);
        tell(&actor, 1);
        system.run_until_idle();
        assert_eq!(record.take(), ["9", "notified", "1"]);
    });
}

#[test]
fn notifier_belongs_to_one_incarnation() {
    TestSystem::check(0..10, |system| {
        let record = Record::default();
        let child = ChildSpec::new::<Notified>("notified", record.clone());
        let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne).child(child));
        let actor = supervisor.child("notified").expect("it runs");
        let first = record.notifiers().remove(0);
        // This one waits behind the failure, and ends with the incarnation.
        tell(&actor, 0);
        system.run_until_idle();
        let second = record.notifiers().remove(1);
        assert!(!first.notify(), "its incarnation has ended");
        assert!(second.notify());
        system.run_until_idle();
        assert_eq!(record.take(), ["0", "notified"]);
        actor.stop();
        system.run_until_idle();
        assert!(!second.notify(), "the actor has ended");
        drop(actor);
        assert!(!second.notify(), "the actor is gone");
    });
}

#[test]
fn notification_for_an_incarnation_that_failed_is_not_taken_for_the_next_one() {
    let system = TestSystem::new(1);
    let record = Record::default();
    let child = ChildSpec::new::<Notified>("notified", record.clone());
    let supervisor = system.supervise("s", Supervisor::new(Strategy::OneForOne).child(child));
    let actor: ActorRef<u32> = supervisor.child("notified").expect("it runs");
    let first = record.notifiers().remove(0);
    assert!(first.notify());
    actor.kill();
    system.run_until_idle();
    assert_eq!(record.take(), [""; 0]);
}

/// Adds up what threads count, when it is notified.
struct Sum {
    counted: Arc<AtomicU64>,
    sum: u64,
}

struct Total;

impl Request for Total {
    type Reply = u64;
}

impl Actor for Sum {
    type Msg = Ask<Total>;
    type Args = (Arc<AtomicU64>, Arc<Mutex<Option<Notifier>>>);
    type Error = BoxError;

    async fn pre_start(args: Self::Args, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let (counted, notifier) = args;
        *notifier.lock().expect("not poisoned") = Some(cx.notifier());
        Ok(Self { counted, sum: 0 })
    }

    async fn handle(&mut self, ask: Ask<Total>, _: &mut Context<Self>) -> Result<(), BoxError> {
        ask.reply.send(self.sum);
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
        if let Signal::Notified = signal {
            self.sum += self.counted.swap(0, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_notification_of_any_thread_is_lost() {
    const THREADS: u64 = 4;
    const EACH: u64 = 20_000;
    let system = ActorSystem::new("test").expect("it starts");
    let (counted, notifier) = (Arc::default(), Arc::default());
    let args = (Arc::clone(&counted), Arc::clone(&notifier));
    let actor = system.spawn::<Sum>("sum", args).expect("it starts");
    actor.started().await.expect("it starts");
    let notifier = notifier.lock().expect("not poisoned").take();
    let notifier = notifier.expect("it has started");
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (counted, notifier) = (Arc::<AtomicU64>::clone(&counted), notifier.clone());
            std::thread::spawn(move || {
                for _ in 0..EACH {
                    counted.fetch_add(1, Ordering::Relaxed);
                    assert!(notifier.notify());
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("it is notified");
    }
    // The last notification is behind all counts, so its signal finds the rest of them.
    let complete = async {
        while actor.ask(Total).await.expect("it answers") < THREADS * EACH {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), complete).await;
    waited.expect("no notification is lost");
}
