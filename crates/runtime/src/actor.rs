//! What an actor is.

use std::borrow::Cow;
use std::future::{Future, ready};

use crate::context::Context;
use crate::exit::{BoxError, Exit};
use crate::mailbox::MailboxSpec;
use crate::monitor::Signal;

/// A value that handles one message at a time.
///
/// An *incarnation* is one life of an actor: `pre_start` makes the value from its arguments,
/// `handle` and `signal` work on it, `post_stop` takes it back. A restart is a new incarnation at
/// the same address, with the same arguments; what waits in the mailbox stays there.
///
/// A panic in any hook, and an error that `pre_start`, `handle` or `signal` returns, end the
/// incarnation with an [`Exit`]. The message that was being handled is gone: it is not delivered
/// again.
pub trait Actor: Sized + Send + 'static {
    /// What the actor takes; an enum, if it takes several types. See [`Accepts`](crate::Accepts).
    type Msg: Send + 'static;
    /// What every incarnation is made from.
    type Args: Clone + Send + Sync + 'static;
    /// What its hooks may fail with.
    type Error: Into<BoxError> + Send + 'static;

    /// How much may wait, and what happens beyond it. A child specification may say otherwise.
    const MAILBOX: MailboxSpec = MailboxSpec::DEFAULT;

    /// How many pipes may be in flight; see [`Context::pipe`].
    const PIPES: usize = 1024;

    /// Whether the actor gets a thread of its own, so that its hooks may block. The thread ends
    /// with the incarnation; futures, timers and tasks of tokio work on it as elsewhere.
    const BLOCKING: bool = false;

    /// Whether `post_stop` may see the value after a panic. If not, the value is dropped.
    const SURVIVES_PANIC: bool = false;

    /// Makes the value of an incarnation. Messages wait meanwhile.
    ///
    /// An actor that finds here that it has nothing to do calls [`Context::stop`], and ends with
    /// [`Exit::Ignored`]; an error is a failure, also after that call.
    fn pre_start(
        args: Self::Args,
        cx: &mut Context<Self>,
    ) -> impl Future<Output = Result<Self, Self::Error>> + Send;

    /// Handles one message.
    fn handle(
        &mut self,
        message: Self::Msg,
        cx: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Handles news that overtook all messages. Ignores it unless written otherwise.
    fn signal(
        &mut self,
        signal: Signal,
        cx: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = (signal, cx);
        ready(Ok(()))
    }

    /// Names a message in traces: the name of its type, unless an actor says more. Called only
    /// while somebody traces this actor.
    #[must_use]
    fn describe(message: &Self::Msg) -> Cow<'static, str> {
        let _ = message;
        Cow::Borrowed(std::any::type_name::<Self::Msg>())
    }

    /// Ends an incarnation on every path but a kill, once its children and tasks have ended and
    /// before the next incarnation starts. A panic here is logged and changes nothing.
    fn post_stop(self, exit: &Exit, cx: &mut Context<Self>) -> impl Future<Output = ()> + Send {
        let _ = (exit, cx);
        ready(())
    }
}
