//! An actor in a `TestSystem` whose children ask it, also while it waits for their end.

use std::time::Duration;

use strowger::{Accepts, Actor, ActorRef, Ask, AskError, BoxError, Context, Exit, Request};

use crate::accounting::{Shared, note};
use crate::{MS, NEST};

/// Longer than any delay that an injected fault can cause: an ask that takes this long is part of a
/// ring that was not detected.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) const NESTLINGS: [&str; 2] = ["a", "b"];

/// Makes a nestling ask its sibling to ask their parent, or makes the callee reply after this time.
pub(crate) enum ChildRequest {
    Sibling,
    Parent,
    After(Duration),
}

impl Request for ChildRequest {
    type Reply = ();
}

pub(crate) enum Call {
    /// Asks, and takes no notice of the outcome.
    AskParent(ChildRequest),
    Care(Ask<ChildRequest>),
}

impl Accepts<Ask<ChildRequest>> for Call {
    fn wrap(ask: Ask<ChildRequest>) -> Self {
        Self::Care(ask)
    }
}

/// Has two children, and answers them.
pub(crate) struct ParentActor {
    books: Shared,
    serial: u64,
}

impl Actor for ParentActor {
    type Msg = Call;
    type Args = Shared;
    type Error = BoxError;

    async fn pre_start(books: Shared, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        for (number, key) in NESTLINGS.into_iter().enumerate() {
            let sibling = NESTLINGS[(number + 1) % NESTLINGS.len()];
            let parent = cx.actor_ref();
            let books = books.clone();
            cx.spawn::<ChildActor>(key, (books, parent, sibling))?;
        }
        let serial = note(&books, |books| books.incarnation_started(NEST));
        Ok(Self { books, serial })
    }

    async fn handle(&mut self, call: Call, _: &mut Context<Self>) -> Result<(), BoxError> {
        let (Call::AskParent(care) | Call::Care(Ask { request: care, .. })) = &call;
        if let ChildRequest::After(time) = care {
            tokio::time::sleep(*time).await;
        }
        if let Call::Care(ask) = call {
            ask.reply.send(());
        }
        Ok(())
    }
}

impl Drop for ParentActor {
    fn drop(&mut self) {
        note(&self.books, |books| {
            books.incarnation_ended(NEST, self.serial, true)
        });
    }
}

/// Asks its parent, directly or by way of its sibling, when it is told to and when it ends.
pub(crate) struct ChildActor {
    books: Shared,
    parent: ActorRef<Call>,
    sibling: &'static str,
}

impl ChildActor {
    async fn beg(&self, care: ChildRequest, ending: bool, cx: &Context<Self>) {
        let (callee, care) = match care {
            ChildRequest::Sibling => {
                let path = format!("{NEST}/{}", self.sibling);
                let sibling = cx.system().find(path.as_str());
                (sibling.and_then(|one| one.downcast()), ChildRequest::Parent)
            }
            ChildRequest::Parent => (
                Some(self.parent.clone()),
                ChildRequest::After(Duration::ZERO),
            ),
            care @ ChildRequest::After(_) => (Some(self.parent.clone()), care),
        };
        let Some(callee) = callee else { return };
        let answer = callee.ask_within(care, PATIENCE).await;
        note(&self.books, |books| match answer {
            Ok(()) => books.count("ask of a parent"),
            Err(AskError::Ring { .. }) if ending => books.count("ask of a parent in post_stop"),
            Err(AskError::Ring { .. }) => books.count("ask of a stopping parent"),
            Err(AskError::TimedOut) => {
                books.note_violation(format!("{} waits for what waits for it", cx.path()));
            }
            Err(_) => {}
        });
    }
}

impl Actor for ChildActor {
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
            Call::AskParent(care) => self.beg(care, false, cx).await,
            Call::Care(Ask { request, reply }) => {
                self.beg(request, false, cx).await;
                reply.send(());
            }
        }
        Ok(())
    }

    async fn post_stop(self, _: &Exit, cx: &mut Context<Self>) {
        tokio::time::sleep(MS).await;
        self.beg(ChildRequest::Parent, true, cx).await;
    }
}
