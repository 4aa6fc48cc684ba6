//! Models of the mailbox: senders, a stop and the receiver, in every order.

use std::collections::VecDeque;
use std::future::{Future, ready};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ::loom::model;
use ::loom::sync::Mutex;
use ::loom::thread;

use super::{Mailbox, MailboxSpec, MailboxState, Received, Receiver, System};
use crate::exit::Exit;
use crate::path::Path;
use crate::schedule::strand::loom::Executor;
use crate::schedule::strand::{
    ActorMark, Behavior, Host, NextStep, OpaqueMessage, Runnable, Strand, StrandGuard, start,
};

/// An actor that consists of nothing but its mailbox.
struct ModelActor {
    mailbox: Mailbox<u32>,
    queue: Mutex<VecDeque<Runnable>>,
    /// The messages that it took out; `None` for a stop.
    taken: Mutex<Vec<Option<u32>>>,
}

impl Toy {
    /// Creates an actor that takes `all` items and then ends.
    fn new(spec: MailboxSpec, all: usize) -> Arc<Self> {
        let toy = Arc::new(Self {
            mailbox: Mailbox::new(spec),
            queue: Mutex::new(VecDeque::new()),
            taken: Mutex::new(Vec::new()),
        });
        let life = Taking {
            receiver: Receiver::new(false),
            all,
            failed: false,
        };
        let ready = start(&toy, 0, |_| (), |(), _| life).expect("it is off");
        toy.queue(ready, 0);
        toy
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

impl Taking {
    /// Records an item that was taken.
    fn note(&mut self, toy: &Toy, taken: Option<u32>) -> Result<(), Exit> {
        let mut all = toy.taken.lock().expect("nobody panics with it");
        all.push(taken);
        self.failed = taken == Some(FATAL);
        match self.failed || all.len() == self.all {
            true => Err(Exit::Normal),
            false => Ok(()),
        }
    }
}

impl Behavior<Toy> for Taking {
    type Message = u32;
    type Errand = ();
    type Failure = Exit;

    fn is_ready(&mut self, toy: &Toy) -> bool {
        self.receiver.is_ready(&toy.mailbox)
    }

    fn next(
        &mut self,
        toy: &Toy,
        state: Option<StrandGuard<'_, MailboxState<u32>>>,
        cx: &Context<'_>,
        message: &mut Option<OpaqueMessage<u32>>,
        _: &mut Option<Exit>,
    ) -> NextStep<()> {
        match self.receiver.poll_next(&toy.mailbox, state, cx) {
            Poll::Ready(Received::Message(number)) => {
                *message = Some(OpaqueMessage::new(number));
                NextStep::Message
            }
            Poll::Ready(_) => NextStep::Errand(()),
            Poll::Pending => NextStep::Idle,
        }
    }

    fn handle<'a>(
        &'a mut self,
        toy: &'a Toy,
        message: &mut Option<OpaqueMessage<u32>>,
    ) -> Option<impl Future<Output = Result<(), Exit>> + Send + use<'a>> {
        let number = message.take().or_else(|| self.receiver.take(&toy.mailbox));
        Some(ready(self.note(toy, number.map(OpaqueMessage::into_inner))))
    }

    fn exit(exit: Exit) -> Exit {
        exit
    }

    async fn run(&mut self, toy: &Toy, (): ()) -> Result<(), Exit> {
        self.note(toy, None)
    }

    fn begin_end(&mut self, _: &Toy, _: &Exit) -> bool {
        false
    }

    async fn end(&mut self, _: &Toy, exit: Exit) -> Result<(), Exit> {
        Err(exit)
    }

    async fn end_now(&mut self, _: &Toy, exit: Exit) -> Result<(), Exit> {
        Err(exit)
    }

    fn renew(&mut self, toy: &Toy, exit: &mut Option<Exit>, may: bool) -> bool {
        let again = may && self.failed;
        if again {
            *exit = None;
            toy.mailbox.renew(&mut self.receiver);
        }
        again
    }
}

impl Host for Toy {
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

    fn path(&self) -> Path {
        Path::root()
    }

    fn identity(&self) -> ActorIdentity {
        ActorMark::default()
    }

    fn over(self: Arc<Self>, _: Option<&Exit>, _: Option<u64>, _: u32) {}
}

#[test]
fn every_push_wakes_and_sender_order_holds() {
    model(|| {
        let toy = Toy::new(MailboxSpec::unbounded(), 3);
        let sender = Arc::clone(&toy);
        let sender = thread::spawn(move || {
            assert!(sender.tell(1));
            assert!(sender.tell(2));
        });
        toy.run();
        assert!(toy.tell(9));
        toy.run();
        sender.join().expect("no panic");
        toy.run();
        let taken = toy.taken();
        assert_eq!(taken.len(), 3);
        let of_first: Vec<_> = taken.into_iter().filter(|one| *one != Some(9)).collect();
        assert_eq!(of_first, [Some(1), Some(2)]);
    });
}

#[test]
fn stop_wakes_and_interrupts_the_batch() {
    model(|| {
        let toy = Toy::new(MailboxSpec::unbounded(), 3);
        assert!(toy.tell(1));
        assert!(toy.tell(2));
        let stopper = Arc::clone(&toy);
        let stopper = thread::spawn(move || {
            assert!(stopper.mailbox.system(System::Stop(Exit::Shutdown), None));
            stopper.taken().len()
        });
        toy.run();
        let before = stopper.join().expect("no panic");
        toy.run();
        let taken = toy.taken();
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
        let toy = Toy::new(MailboxSpec::bounded(1), 2);
        assert!(toy.tell(1));
        let sender = Arc::clone(&toy);
        let sender = thread::spawn(move || {
            let taken = sender.tell(2);
            // There is room only if the first message was taken out before.
            assert!(!taken || !sender.taken().is_empty() || sender.mailbox.stats().depth <= 1);
            taken
        });
        toy.run();
        let told = sender.join().expect("no panic");
        toy.run();
        assert_eq!(toy.taken().len(), 1 + usize::from(told));
        assert!(toy.mailbox.stats().high_water <= 1);
        if !told {
            // The actor waits for another message, which must wake it.
            assert!(toy.tell(3));
            toy.run();
            assert_eq!(toy.taken(), [Some(1), Some(3)]);
        }
    });
}

#[test]
fn next_incarnation_continues_with_the_batch() {
    model(|| {
        let toy = Toy::new(MailboxSpec::unbounded(), 4);
        assert!(toy.tell(FATAL));
        assert!(toy.tell(1));
        let teller = Arc::clone(&toy);
        let teller = thread::spawn(move || {
            assert!(teller.tell(2));
            assert!(teller.tell(3));
        });
        toy.run();
        teller.join().expect("no panic");
        toy.run();
        assert_eq!(toy.taken(), [Some(FATAL), Some(1), Some(2), Some(3)]);
    });
}

impl Toy {
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
        let toy = Toy::new(MailboxSpec::bounded(1), 3);
        assert!(toy.tell(1));
        let sender = Arc::clone(&toy);
        let sender = thread::spawn(move || sender.tell_in_turn(2));
        toy.run();
        assert!(sender.join().expect("no panic"));
        toy.run();
        assert_eq!(toy.taken(), [Some(1), Some(2)]);
    });
}

#[test]
fn released_place_wakes_the_next_sender() {
    model(|| {
        let toy = Toy::new(MailboxSpec::bounded(1), 3);
        assert!(toy.tell(1));
        let mut first = None;
        assert!(
            toy.mailbox
                .poll_reserve(&mut first, Waker::noop())
                .is_pending()
        );
        let sender = Arc::clone(&toy);
        let sender = thread::spawn(move || sender.tell_in_turn(2));
        toy.run();
        toy.mailbox.give_up(first.expect("it waits"));
        assert!(sender.join().expect("no panic"));
        toy.run();
        assert_eq!(toy.taken(), [Some(1), Some(2)]);
    });
}

#[test]
fn close_wakes_the_waiting_sender() {
    model(|| {
        let toy = Toy::new(MailboxSpec::bounded(1), 3);
        assert!(toy.tell(1));
        let sender = Arc::clone(&toy);
        let sender = thread::spawn(move || sender.tell_in_turn(2));
        toy.mailbox.close();
        assert!(!sender.join().expect("no panic"), "it is refused");
        toy.run();
    });
}
