//! An actor in a `TestSystem` whose children ask it, also while it waits for their end.

use std::time::Duration;

use strowger::{Accepts, Actor, ActorRef, Ask, AskError, BoxError, Context, Exit, Request};

use crate::books::{Shared, note};
use crate::{MS, NEST};

/// Longer than any delay that an injected fault can cause: an ask that takes this long is part of a
/// ring that was not detected.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) const NESTLINGS: [&str; 2] = ["a", "b"];

/// Makes a nestling ask its sibling to ask their parent, or makes the callee reply after this time.
pub(crate) enum Care {
    Sibling,
    Parent,
    After(Duration),
}

impl Request for Care {
    type Reply = ();
}

pub(crate) enum Call {
    /// Asks, and takes no notice of the outcome.
    Beg(Care),
    Care(Ask<Care>),
}

impl Accepts<Ask<Care>> for Call {
    fn wrap(ask: Ask<Care>) -> Self {
        Self::Care(ask)
    }
}

/// Has two children, and answers them.
pub(crate) struct Nest {
    books: Shared,
    serial: u64,
}

impl Actor for Nest {
    type Msg = Call;
    type Args = Shared;
    type Error = BoxError;

    async fn pre_start(books: Shared, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        for (number, key) in NESTLINGS.into_iter().enumerate() {
            let sibling = NESTLINGS[(number + 1) % NESTLINGS.len()];
            let parent = cx.me();
            let books = books.clone();
            cx.spawn::<Nestling>(key, (books, parent, sibling))?;
        }
        let serial = note(&books, |books| books.rise(NEST));
        Ok(Self { books, serial })
    }

    async fn handle(&mut self, call: Call, _: &mut Context<Self>) -> Result<(), BoxError> {
        let (Call::Beg(care) | Call::Care(Ask { request: care, .. })) = &call;
        if let Care::After(time) = care {
            tokio::time::sleep(*time).await;
        }
        if let Call::Care(ask) = call {
            ask.reply.send(());
        }
        Ok(())
    }
}

impl Drop for Nest {
    fn drop(&mut self) {
        note(&self.books, |books| books.fall(NEST, self.serial, true));
    }
}

/// Asks its parent, directly or by way of its sibling, when it is told to and when it ends.
pub(crate) struct Nestling {
    books: Shared,
    parent: ActorRef<Call>,
    sibling: &'static str,
}

impl Nestling {
    async fn beg(&self, care: Care, ending: bool, cx: &Context<Self>) {
        let (callee, care) = match care {
            Care::Sibling => {
                let path = format!("{NEST}/{}", self.sibling);
                let sibling = cx.system().find(path.as_str());
                (sibling.and_then(|one| one.downcast()), Care::Parent)
            }
            Care::Parent => (Some(self.parent.clone()), Care::After(Duration::ZERO)),
            care @ Care::After(_) => (Some(self.parent.clone()), care),
        };
        let Some(callee) = callee else { return };
        let answer = callee.ask_within(care, PATIENCE).await;
        note(&self.books, |books| match answer {
            Ok(()) => books.count("ask of a parent"),
            Err(AskError::Ring { .. }) if ending => books.count("ask of a parent in post_stop"),
            Err(AskError::Ring { .. }) => books.count("ask of a stopping parent"),
            Err(AskError::TimedOut) => {
                books.wrong(format!("{} waits for what waits for it", cx.path()));
            }
            Err(_) => {}
        });
    }
}

impl Actor for Nestling {
    type Msg = Call;
    type Args = (Shared, ActorRef<Call>, &'static str);
    type Error = BoxError;

    async fn pre_start(args: Self::Args, _: &mut Context<Self>) -> Result<Self, BoxError> {
        let (books, parent, sibling) = args;
        Ok(Self {
            books,
            parent,
            sibling,
        })
    }

    async fn handle(&mut self, call: Call, cx: &mut Context<Self>) -> Result<(), BoxError> {
        match call {
            Call::Beg(care) => self.beg(care, false, cx).await,
            Call::Care(Ask { request, reply }) => {
                self.beg(request, false, cx).await;
                reply.send(());
            }
        }
        Ok(())
    }

    async fn post_stop(self, _: &Exit, cx: &mut Context<Self>) {
        tokio::time::sleep(MS).await;
        self.beg(Care::Parent, true, cx).await;
    }
}
