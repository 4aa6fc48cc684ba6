//! The trait that every actor implements.

use std::borrow::Cow;
use std::future::{Future, ready};

use crate::context::Context;
use crate::exit::{BoxError, Exit};
use crate::mailbox::MailboxSpec;
use crate::monitor::Signal;

/// A value that handles one message at a time.
///
/// An *incarnation* is the actor between one start and the exit that follows: `pre_start` builds
/// the value from its arguments, `handle` and `signal` work on it, and `post_stop` consumes it. A
/// restart is a new incarnation at the same address, with the same arguments; messages that wait in
/// the mailbox stay there.
///
/// Hooks run on the stack of a worker, or of the actor's own thread if it is
/// [`BLOCKING`](Actor::BLOCKING). A handler never runs on the stack of its caller.
///
/// A panic in any hook, and an error that `pre_start`, `handle` or `signal` returns, end the
/// incarnation with an [`Exit`]. The message that was being handled is lost: it is not delivered
/// again.
pub trait Actor: Sized + Send + 'static {
    /// The type of message that the actor takes; an enum if it takes several types. See
    /// [`Accepts`](crate::Accepts).
    type Msg: Send + 'static;
    /// The arguments from which every incarnation is built.
    type Args: Clone + Send + Sync + 'static;
    /// The error that the actor's hooks return.
    type Error: Into<BoxError> + Send + 'static;

    /// Capacity of the mailbox and the behavior beyond it. A child specification can override it.
    const MAILBOX: MailboxSpec = MailboxSpec::DEFAULT;

    /// Maximum number of pipes in flight; see [`Context::pipe`].
    const PIPES: usize = 1024;

    /// `true` if the actor gets a thread of its own, so that its hooks may block. The thread ends
    /// with the incarnation; tokio futures, timers and tasks work on it as usual.
    const BLOCKING: bool = false;

    /// `true` if `post_stop` may see the value after a panic. Otherwise the value is dropped.
    const SURVIVES_PANIC: bool = false;

    /// Builds the value of an incarnation. Messages wait meanwhile.
    ///
    /// An actor that finds here that it has nothing to do calls [`Context::stop`], and ends with
    /// [`Exit::Ignored`]. An error is a failure, even after that call.
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

    /// Handles a signal, which overtook all messages. Does nothing by default.
    fn signal(
        &mut self,
        signal: Signal,
        cx: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = (signal, cx);
        ready(Ok(()))
    }

    /// Describes a message in traces: by default, the name of its type. Called only while this
    /// actor is traced.
    #[must_use]
    fn describe(message: &Self::Msg) -> Cow<'static, str> {
        let _ = message;
        Cow::Borrowed(std::any::type_name::<Self::Msg>())
    }

    /// Cleans up after an incarnation, on every path except a kill: once its children and tasks
    /// have ended, and before the next incarnation starts. A panic here is logged and has no other
    /// effect.
    ///
    /// A parent that stops waits for this and handles no more messages: to ask it here is an error,
    /// [`AskError::Ring`](crate::AskError::Ring), not a wait.
    fn post_stop(self, exit: &Exit, cx: &mut Context<Self>) -> impl Future<Output = ()> + Send {
        let _ = (exit, cx);
        ready(())
    }
}
