//! Actors that wait for each other: three that ask in a ring inside their hooks. And actors that
//! make others wait: one that may block, one that floods itself, and one whose timers flood it.

use std::collections::BTreeMap;
use std::time::Duration;

use strowger::{Accepts, Actor, ActorRef, Ask, AskError, BoxError, Context, Request};

use crate::accounting::{Shared, note};
use crate::{ASKERS, BELL, BLOCKER, HOG, MS};

/// Longer than any delay that an injected fault can cause: an actor that waits this long is in a
/// ring that was not detected.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks the callee's successor to continue the walk, this number of times.
pub(crate) struct Walk(u32);

impl Request for Walk {
    type Reply = ();
}

pub(crate) enum Round {
    /// Begins a walk.
    Go(u32),
    Walk(Ask<Walk>),
}

impl Accepts<Ask<Walk>> for Round {
    fn wrap(ask: Ask<Walk>) -> Self {
        Self::Walk(ask)
    }
}

/// Asks the next actor in the ring, and replies when it has a reply.
pub(crate) struct Asker {
    books: Shared,
    path: String,
    serial: u64,
    next: &'static str,
}

impl Asker {
    async fn walk(&self, left: u32, cx: &Context<Self>) {
        let Some(next) = cx.system().find(self.next) else {
            return;
        };
        let next: ActorRef<Round> = next.downcast().expect("askers walk");
        let waits = Waits::new(&self.books, &self.path);
        let answer = next.ask_within(Walk(left), PATIENCE).await;
        note(&self.books, |books| match answer {
            Ok(()) => books.count("ask passed on in a hook"),
            Err(AskError::Ring { path }) => {
                let path: Vec<_> = path.iter().map(|one| one.as_str().to_owned()).collect();
                books.ring(&self.path, &path);
            }
            Err(AskError::TimedOut) => books.unanswered(),
            Err(_) => books.count("ask passed on to one who ended"),
        });
        drop(waits);
    }
}

impl Actor for Asker {
    type Msg = Round;
    type Args = (Shared, usize);
    type Error = BoxError;

    async fn pre_start(
        (books, number): Self::Args,
        cx: &mut Context<Self>,
    ) -> Result<Self, BoxError> {
        let path = cx.path().to_string();
        let serial = note(&books, |books| books.incarnation_started(&path));
        Ok(Self {
            books,
            path,
            serial,
            next: ASKERS[(number + 1) % ASKERS.len()],
        })
    }

    async fn handle(&mut self, round: Round, cx: &mut Context<Self>) -> Result<(), BoxError> {
        let (Round::Go(left)
        | Round::Walk(Ask {
            request: Walk(left),
            ..
        })) = round;
        if left > 0 {
            self.walk(left - 1, cx).await;
        }
        if let Round::Walk(ask) = round {
            ask.reply.send(());
        }
        Ok(())
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        note(&self.books, |books| {
            books.incarnation_ended(&self.path, self.serial, true);
        });
    }
}

/// A guard for the time in which an actor waits for a reply inside a hook.
struct Waits<'a>(&'a Shared, &'a str);

impl<'a> Waits<'a> {
    fn new(books: &'a Shared, path: &'a str) -> Self {
        note(books, |books| books.waits(path));
        Self(books, path)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        note(self.0, |books| books.wait_ended(self.1));
    }
}

/// A job for a blocking actor.
pub(crate) struct Job(pub(crate) u64);

/// Does jobs in order of arrival.
pub(crate) struct Blocker {
    books: Shared,
    serial: u64,
    last: Option<u64>,
}

impl Actor for Blocker {
    type Msg = Job;
    type Args = Shared;
    type Error = BoxError;

    const BLOCKING: bool = true;

    async fn pre_start(books: Shared, _: &mut Context<Self>) -> Result<Self, BoxError> {
        let serial = note(&books, |books| books.incarnation_started(BLOCKER));
        Ok(Self {
            books,
            serial,
            last: None,
        })
    }

    async fn handle(&mut self, Job(number): Job, _: &mut Context<Self>) -> Result<(), BoxError> {
        let before = self.last.replace(number);
        note(&self.books, |books| {
            books.heard += 1;
            books.count("job of a blocking actor");
            if before.is_some_and(|before| before >= number) {
                books.note_violation(format!("job {number} came after {before:?}"));
            }
        });
        Ok(())
    }
}

impl Drop for Blocker {
    fn drop(&mut self) {
        note(&self.books, |books| {
            books.count("end of a blocking actor");
            books.incarnation_ended(BLOCKER, self.serial, true);
        });
    }
}

/// One message of a flood, and the number that follow it.
pub(crate) struct Flood {
    pub(crate) name: u64,
    pub(crate) left: u64,
}

/// Sends itself the next message of each of its floods, until they are over.
pub(crate) struct Hog {
    books: Shared,
    serial: u64,
    /// The next message of each flood, by name.
    floods: BTreeMap<u64, u64>,
}

impl Actor for Hog {
    type Msg = Flood;
    type Args = Shared;
    type Error = BoxError;

    async fn pre_start(books: Shared, _: &mut Context<Self>) -> Result<Self, BoxError> {
        let serial = note(&books, |books| books.incarnation_started(HOG));
        Ok(Self {
            books,
            serial,
            floods: BTreeMap::new(),
        })
    }

    async fn handle(&mut self, flood: Flood, cx: &mut Context<Self>) -> Result<(), BoxError> {
        let Flood { name, left } = flood;
        let expected = self.floods.remove(&name);
        if let Some(left) = left.checked_sub(1) {
            let sent = cx.actor_ref().try_tell(Flood { name, left });
            note(&self.books, |books| {
                books.published += u64::from(sent.is_ok())
            });
            self.floods.insert(name, left);
        }
        note(&self.books, |books| {
            books.heard += 1;
            if left == 0 {
                books.count("flood of a hog");
            }
            if expected.is_some_and(|expected| expected != left) {
                books.note_violation(format!("{left} of a flood came, not {expected:?}"));
            }
        });
        Ok(())
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        note(&self.books, |books| {
            if !self.floods.is_empty() {
                books.count("end of a hog in its flood");
            }
            books.incarnation_ended(HOG, self.serial, true);
        });
    }
}

pub(crate) enum BellMessage {
    /// Sets this number of timers, most of which are due at the same time.
    Ring(u32),
    /// A timer that is due.
    Toll,
    /// A message that takes turns with the timers.
    Call,
}

/// Takes longer for a timer than there is between two, on the virtual time of the `TestSystem`, and
/// checks that messages get their turns.
pub(crate) struct Bell {
    books: Shared,
    serial: u64,
    /// Number of timers that are set.
    left: u32,
    /// Set if a message was waiting while the last timer was handled.
    message_waited: bool,
}

impl Actor for Bell {
    type Msg = BellMessage;
    type Args = Shared;
    type Error = BoxError;

    async fn pre_start(books: Shared, _: &mut Context<Self>) -> Result<Self, BoxError> {
        let serial = note(&books, |books| books.incarnation_started(BELL));
        Ok(Self {
            books,
            serial,
            left: 0,
            message_waited: false,
        })
    }

    async fn handle(&mut self, peal: BellMessage, cx: &mut Context<Self>) -> Result<(), BoxError> {
        let is_message = !matches!(peal, BellMessage::Toll);
        let overtaken = !is_message && self.message_waited;
        self.message_waited = !is_message && cx.has_messages();
        if overtaken {
            note(&self.books, |books| {
                books.note_violation("two timers came before a message that waited".to_owned());
            });
        }
        match peal {
            BellMessage::Ring(count) => {
                for number in 0..count {
                    cx.send_after(MS * (number % 3), BellMessage::Toll);
                }
                self.left += count;
            }
            BellMessage::Toll => {
                self.left -= 1;
                tokio::time::sleep(MS).await;
                if self.left == 0 {
                    note(&self.books, |books| books.count("flood of timers"));
                }
            }
            BellMessage::Call => {}
        }
        Ok(())
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        note(&self.books, |books| {
            if self.left > 0 {
                books.count("end in a flood of timers");
            }
            books.incarnation_ended(BELL, self.serial, true);
        });
    }
}
