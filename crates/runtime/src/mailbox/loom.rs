//! Models of the mailbox: senders, a stop and the receiver, in every order.

use std::collections::VecDeque;
use std::future::{Future, ready};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::loom::model;
use ::loom::sync::Mutex;
use ::loom::thread;

use super::{Mailbox, MailboxSpec, MailboxState, ReceivedItem, Receiver, SystemMessage};
use crate::exit::Exit;
use crate::path::ActorPath;
use crate::schedule::strand::loom::Executor;
use crate::schedule::strand::{
    ActorIdentity, Behavior, NextStep, OpaqueMessage, Runnable, Strand, StrandGuard, StrandHost,
    start,
};

/// An actor that consists of nothing but its mailbox.
struct ModelActor {
    mailbox: Mailbox<u32>,
    queue: Mutex<VecDeque<Runnable>>,
    /// The messages that it took out; `None` for a stop.
    taken: Mutex<Vec<Option<u32>>>,
}

impl ModelActor {
    /// Creates an actor that takes `all` items and then ends.
    fn new(spec: MailboxSpec, all: usize) -> Arc<Self> {
        let actor = Arc::new(Self {
            mailbox: Mailbox::new(spec),
            queue: Mutex::new(VecDeque::new()),
            taken: Mutex::new(Vec::new()),
        });
        let life = TakeBehavior {
            receiver: Receiver::new(false),
            all,
            failed: false,
        };
        let ready = start(&actor, 0, |_| (), |(), _| life).expect("it is off");
        actor.queue(ready, 0);
        actor
    }

    fn run(&self) {
        loop {
            let ready = self
                .queue
                .lock()
                .expect("nobody panics with it")
                .pop_front();
            let Some(ready) = ready else { return };
            if let Some(again) = ready.run() {
                self.queue(again, 0);
            }
        }
    }

    fn tell(&self, number: u32) -> bool {
        self.mailbox
            .push(&mut Some(OpaqueMessage::new(number)), None, |number| number)
            .is_ok()
    }

    fn taken(&self) -> Vec<Option<u32>> {
        self.taken.lock().expect("nobody panics with it").clone()
    }
}

/// The behavior of an actor that records what it takes.
struct TakeBehavior {
    receiver: Receiver<u32>,
    all: usize,
    /// Set if it failed and is to begin again.
    failed: bool,
}

/// The message at which the actor fails.
const FATAL: u32 = 13;

impl TakeBehavior {
    /// Records an item that was taken.
    fn note(&mut self, actor: &ModelActor, taken: Option<u32>) -> Result<(), Exit> {
        let mut all = actor.taken.lock().expect("nobody panics with it");
        all.push(taken);
        self.failed = taken == Some(FATAL);
        match self.failed || all.len() == self.all {
            true => Err(Exit::Normal),
            false => Ok(()),
        }
    }
}

impl Behavior<ModelActor> for TakeBehavior {
    type Message = u32;
    type Control = ();
    type Error = Exit;

    fn is_ready(&mut self, actor: &ModelActor) -> bool {
        self.receiver.is_ready(&actor.mailbox)
    }

    fn next(
        &mut self,
        actor: &ModelActor,
        state: Option<StrandGuard<'_, MailboxState<u32>>>,
        cx: &Context<'_>,
        message: &mut Option<OpaqueMessage<u32>>,
        _: &mut Option<Exit>,
    ) -> NextStep<()> {
        match self.receiver.poll_next(&actor.mailbox, state, cx) {
            Poll::Ready(ReceivedItem::Message(number)) => {
                *message = Some(OpaqueMessage::new(number));
                NextStep::Message
            }
            Poll::Ready(_) => NextStep::Control(()),
            Poll::Pending => NextStep::Idle,
        }
    }

    fn handle<'a>(
        &'a mut self,
        actor: &'a ModelActor,
        message: &mut Option<OpaqueMessage<u32>>,
    ) -> Option<impl Future<Output = Result<(), Exit>> + Send + use<'a>> {
        let number = message
            .take()
            .or_else(|| self.receiver.take(&actor.mailbox));
        Some(ready(
            self.note(actor, number.map(OpaqueMessage::into_inner)),
        ))
    }

    fn into_exit(into_exit: Exit) -> Exit {
        into_exit
    }

    async fn run_control(&mut self, actor: &ModelActor, (): ()) -> Result<(), Exit> {
        self.note(actor, None)
    }

    fn begin_end(&mut self, _: &ModelActor, _: &Exit) -> bool {
        false
    }

    async fn end(&mut self, _: &ModelActor, exit: Exit) -> Result<(), Exit> {
        Err(exit)
    }

    async fn end_quickly(&mut self, _: &ModelActor, exit: Exit) -> Result<(), Exit> {
        Err(exit)
    }

    fn restart_in_place(&mut self, actor: &ModelActor, exit: &mut Option<Exit>, may: bool) -> bool {
        let again = may && self.failed;
        if again {
            *exit = None;
            actor.mailbox.begin_next_incarnation(&mut self.receiver);
        }
        again
    }
}

impl StrandHost for ModelActor {
    type Data = MailboxState<u32>;

    fn strand(&self) -> &Strand<MailboxState<u32>> {
        self.mailbox.strand()
    }

    fn queue(&self, ready: Runnable, _: u32) {
        let mut queue = self.queue.lock().expect("nobody panics with it");
        queue.push_back(ready);
    }

    fn is_down(&self) -> bool {
        false
    }

    fn is_killed(&self) -> bool {
        false
    }

    fn path(&self) -> ActorPath {
        ActorPath::root()
    }

    fn identity(&self) -> ActorIdentity {
        ActorIdentity::default()
    }

    fn on_incarnation_end(self: Arc<Self>, _: Option<&Exit>, _: Option<u64>, _: u32) {}
}

#[test]
fn every_push_wakes_and_sender_order_holds() {
    model(|| {
        let actor = ModelActor::new(MailboxSpec::unbounded(), 3);
        let sender = Arc::clone(&actor);
        let sender = thread::spawn(move || {
            assert!(sender.tell(1));
            assert!(sender.tell(2));
        });
        actor.run();
        assert!(actor.tell(9));
        actor.run();
        sender.join().expect("no panic");
        actor.run();
        let taken = actor.taken();
        assert_eq!(taken.len(), 3);
        let of_first: Vec<_> = taken.into_iter().filter(|one| *one != Some(9)).collect();
        assert_eq!(of_first, [Some(1), Some(2)]);
    });
}

#[test]
fn stop_wakes_and_interrupts_the_batch() {
    model(|| {
        let actor = ModelActor::new(MailboxSpec::unbounded(), 3);
        assert!(actor.tell(1));
        assert!(actor.tell(2));
        let stopper = Arc::clone(&actor);
        let stopper = thread::spawn(move || {
            assert!(
                stopper
                    .mailbox
                    .push_system(SystemMessage::Stop(Exit::Shutdown), None)
            );
            stopper.taken().len()
        });
        actor.run();
        let before = stopper.join().expect("no panic");
        actor.run();
        let taken = actor.taken();
        assert_eq!(taken.len(), 3);
        let stop = taken.iter().position(Option::is_none);
        let stop = stop.expect("the stop came");
        assert!(
            stop <= before + 1,
            "all but the message in hand comes after it"
        );
    });
}

#[test]
fn capacity_holds_under_concurrent_take() {
    model(|| {
        let actor = ModelActor::new(MailboxSpec::bounded(1), 2);
        assert!(actor.tell(1));
        let sender = Arc::clone(&actor);
        let sender = thread::spawn(move || {
            let taken = sender.tell(2);
            // There is room only if the first message was taken out before.
            assert!(!taken || !sender.taken().is_empty() || sender.mailbox.stats().depth <= 1);
            taken
        });
        actor.run();
        let told = sender.join().expect("no panic");
        actor.run();
        assert_eq!(actor.taken().len(), 1 + usize::from(told));
        assert!(actor.mailbox.stats().high_water <= 1);
        if !told {
            // The actor waits for another message, which must wake it.
            assert!(actor.tell(3));
            actor.run();
            assert_eq!(actor.taken(), [Some(1), Some(3)]);
        }
    });
}

#[test]
fn next_incarnation_continues_with_the_batch() {
    model(|| {
        let actor = ModelActor::new(MailboxSpec::unbounded(), 4);
        assert!(actor.tell(FATAL));
        assert!(actor.tell(1));
        let teller = Arc::clone(&actor);
        let teller = thread::spawn(move || {
            assert!(teller.tell(2));
            assert!(teller.tell(3));
        });
        actor.run();
        teller.join().expect("no panic");
        actor.run();
        assert_eq!(actor.taken(), [Some(FATAL), Some(1), Some(2), Some(3)]);
    });
}

impl ModelActor {
    /// Waits for room, looking again only when it is woken, and puts a message there. Returns
    /// `false` if the mailbox refuses the message.
    fn tell_in_turn(&self, number: u32) -> bool {
        let executor = Arc::new(Executor::default());
        let waker = Waker::from(Arc::clone(&executor));
        let mut ticket = None;
        loop {
            match self.mailbox.poll_reserve(&mut ticket, &waker) {
                Poll::Ready(true) => break,
                Poll::Ready(false) => return false,
                Poll::Pending => executor.park(),
            }
        }
        let ticket = ticket.expect("it was reserved");
        self.mailbox.fill_reserved(ticket, number, None).is_some()
    }
}

#[test]
fn freed_place_wakes_the_waiting_sender() {
    model(|| {
        let actor = ModelActor::new(MailboxSpec::bounded(1), 3);
        assert!(actor.tell(1));
        let sender = Arc::clone(&actor);
        let sender = thread::spawn(move || sender.tell_in_turn(2));
        actor.run();
        assert!(sender.join().expect("no panic"));
        actor.run();
        assert_eq!(actor.taken(), [Some(1), Some(2)]);
    });
}

#[test]
fn released_place_wakes_the_next_sender() {
    model(|| {
        let actor = ModelActor::new(MailboxSpec::bounded(1), 3);
        assert!(actor.tell(1));
        let mut first = None;
        assert!(
            actor
                .mailbox
                .poll_reserve(&mut first, Waker::noop())
                .is_pending()
        );
        let sender = Arc::clone(&actor);
        let sender = thread::spawn(move || sender.tell_in_turn(2));
        actor.run();
        actor.mailbox.release_place(first.expect("it waits"));
        assert!(sender.join().expect("no panic"));
        actor.run();
        assert_eq!(actor.taken(), [Some(1), Some(2)]);
    });
}

#[test]
fn close_wakes_the_waiting_sender() {
    model(|| {
        let actor = ModelActor::new(MailboxSpec::bounded(1), 3);
        assert!(actor.tell(1));
        let sender = Arc::clone(&actor);
        let sender = thread::spawn(move || sender.tell_in_turn(2));
        actor.mailbox.close();
        assert!(!sender.join().expect("no panic"), "it is refused");
        actor.run();
    });
}
