//! Those who wait for each other: three who ask in a ring from inside their hooks, and one who may
//! block.

use std::time::Duration;

use strowger::{Accepts, Actor, ActorRef, Ask, AskError, BoxError, Context, Request};

use crate::books::{Shared, note};
use crate::{ASKERS, BLOCKER};

/// Longer than all that an injected fault may cost: who waits so long waits in a ring that nobody
/// noticed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks the one after the asked to walk on, so often.
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

/// Asks the next one in the ring, and answers when it has an answer.
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
        let serial = note(&books, |books| books.rise(&path));
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
            books.fall(&self.path, self.serial, true);
        });
    }
}

/// The time in which an actor waits for an answer inside a hook.
struct Waits<'a>(&'a Shared, &'a str);

impl<'a> Waits<'a> {
    fn new(books: &'a Shared, path: &'a str) -> Self {
        note(books, |books| books.waits(path));
        Self(books, path)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        note(self.0, |books| books.waits_no_more(self.1));
    }
}

/// What a blocking actor is given to do.
pub(crate) struct Job(pub(crate) u64);

/// Does jobs, in the order in which they come.
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
        let serial = note(&books, |books| books.rise(BLOCKER));
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
                books.wrong(format!("job {number} came after {before:?}"));
            }
        });
        Ok(())
    }
}

impl Drop for Blocker {
    fn drop(&mut self) {
        note(&self.books, |books| {
            books.count("end of a blocking actor");
            books.fall(BLOCKER, self.serial, true);
        });
    }
}
