//! The guarantees of the storm on real threads: defects that only true concurrency can cause.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use strowger::{
    Actor, ActorRef, ActorSystem, BoxError, ChildSpec, Context, Event, EventStream, MailboxSpec,
    Strategy, Supervisor,
};

const LONG: Duration = Duration::from_secs(60);

struct Letter {
    sender: u32,
    number: u64,
}

#[derive(Default)]
struct Books {
    begun: Vec<(u32, u64)>,
    done: u64,
}

struct Worker(Arc<Mutex<Books>>);

impl Actor for Worker {
    type Msg = Letter;
    type Args = Arc<Mutex<Books>>;
    type Error = BoxError;
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(16);

    async fn pre_start(books: Self::Args, _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(books))
    }

    async fn handle(&mut self, letter: Letter, _: &mut Context<Self>) -> Result<(), BoxError> {
        let Letter { sender, number } = letter;
        self.0
            .lock()
            .expect("nobody panics with it")
            .begun
            .push((sender, number));
        if number % 97 == 13 {
            std::panic::resume_unwind(Box::new("unlucky"));
        }
        if number % 7 == 0 {
            tokio::task::yield_now().await;
        }
        self.0.lock().expect("nobody panics with it").done += 1;
        Ok(())
    }
}

/// Reads events until one reports a restart of the worker; adds the letters that were lost
/// meanwhile.
async fn restarted(events: &mut EventStream, lost: &mut u64) {
    loop {
        match events.next().await.expect("the system is up") {
            Event::DeadLetter { count, .. } => *lost += count,
            Event::Restarted { .. } => break,
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn repeated_kills_do_not_lose_duplicate_or_reorder_messages() {
    let system = ActorSystem::new("threads").expect("inside tokio");
    let books = Arc::new(Mutex::new(Books::default()));
    let mut events = system.events();
    let children = Supervisor::new(Strategy::OneForOne)
        .intensity(u32::MAX, Duration::from_millis(1))
        .child(ChildSpec::new::<Worker>("w", Arc::clone(&books)));
    let supervisor = system.supervise("s", children).await.expect("it starts");
    let worker: ActorRef<Letter> = supervisor.child("w").expect("it runs");

    let mut senders = tokio::task::JoinSet::new();
    for sender in 0..4 {
        let worker = worker.clone();
        senders.spawn(async move {
            for number in 0..2000 {
                assert!(
                    worker.tell(Letter { sender, number }).await.is_ok(),
                    "it never ends"
                );
            }
        });
    }
    let (mut kills, mut lost) = (0, 0);
    let storm = async {
        loop {
            worker.kill();
            kills += 1;
            restarted(&mut events, &mut lost).await;
        }
    };
    let sent = async {
        while let Some(sender) = senders.join_next().await {
            sender.expect("all is accepted");
        }
    };
    tokio::select! {
        biased;
        () = sent => {}
        () = storm => {}
    }
    let report = tokio::time::timeout(LONG, system.shutdown(LONG))
        .await
        .expect("it ends");
    assert!(report.not_stopped.is_empty(), "{report:?}");
    while let Some(event) = events.try_next() {
        if let Event::DeadLetter { count, .. } = event {
            lost += count;
        }
    }
    assert_eq!(events.lost(), 0, "the books need all events");

    let books = books.lock().expect("nobody panics with it");
    let mut last = BTreeMap::new();
    for (sender, number) in &books.begun {
        if let Some(before) = last.insert(sender, number) {
            assert!(before < number, "{number} of {sender} after {before}");
        }
    }
    assert_eq!(
        books.done + lost,
        8000,
        "{} done, {lost} lost, {kills} kills",
        books.done
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn monitors_fire_once_for_exits_on_another_thread() {
    let system = ActorSystem::new("threads").expect("inside tokio");
    let (sender, mut downs) = tokio::sync::mpsc::unbounded_channel();
    let watcher = system
        .spawn::<Watcher>("watcher", sender)
        .expect("a new key");
    for round in 0..300 {
        let target = system
            .spawn::<Idle>(format!("t{round}"), ())
            .expect("a new key");
        let end = target.clone();
        let ending = tokio::spawn(async move { end.kill() });
        for _ in 0..3 {
            watcher
                .tell(target.erase())
                .await
                .map_err(drop)
                .expect("it lives");
        }
        ending.await.expect("no panic");
        for _ in 0..3 {
            let id = tokio::time::timeout(LONG, downs.recv())
                .await
                .expect("a Down comes");
            assert_eq!(id, Some(target.id()));
        }
    }
    system.shutdown(LONG).await;
    assert_eq!(downs.recv().await, None, "no Down came twice");
}

type Downs = tokio::sync::mpsc::UnboundedSender<strowger::ActorId>;

struct Watcher(Downs);

impl Actor for Watcher {
    type Msg = strowger::AnyRef;
    type Args = Downs;
    type Error = BoxError;

    async fn pre_start(downs: Downs, _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(downs))
    }

    async fn handle(
        &mut self,
        actor: strowger::AnyRef,
        cx: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        cx.monitor(actor);
        Ok(())
    }

    async fn signal(
        &mut self,
        signal: strowger::Signal,
        _: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        if let strowger::Signal::Down { actor, .. } = signal {
            self.0.send(actor)?;
        }
        Ok(())
    }
}

struct Idle;

impl Actor for Idle {
    type Msg = ();
    type Args = ();
    type Error = BoxError;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_accepted_during_exit_are_handled_or_reported() {
    for _ in 0..300 {
        let system = ActorSystem::new("threads").expect("inside tokio");
        let books = Arc::new(Mutex::new(Books::default()));
        let mut events = system.events();
        let worker = system
            .spawn::<Worker>("w", Arc::clone(&books))
            .expect("a new key");
        let mut senders = tokio::task::JoinSet::new();
        for sender in 0..4 {
            let worker = worker.clone();
            senders.spawn(async move {
                let mut accepted = 0;
                while worker.tell(Letter { sender, number: 1 }).await.is_ok() {
                    accepted += 1;
                }
                accepted
            });
        }
        worker
            .tell(Letter {
                sender: 9,
                number: 1,
            })
            .await
            .map_err(drop)
            .expect("it lives");
        worker.stop();
        let mut accepted = 1;
        while let Some(sender) = senders.join_next().await {
            accepted += sender.expect("no panic");
        }
        worker.stopped().await;
        let mut lost = 0;
        while let Some(event) = events.try_next() {
            if let Event::DeadLetter { count, .. } = event {
                lost += count;
            }
        }
        let done = books.lock().expect("nobody panics with it").done;
        assert_eq!(accepted, done + lost, "{done} done, {lost} lost");
        system.shutdown(LONG).await;
    }
}
