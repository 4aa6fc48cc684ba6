//! Support for the code that [`handlers`](crate::handlers) generates; not for other use.

/// Generates an actor's message type and its `handle` from a block of handlers.
///
/// It saves typing and nothing else: it generates what one would write by hand, an enum with its
/// [`Accepts`](crate::Accepts) implementations and one match.
///
/// The block is the `impl` of `Actor`. It contains the types, constants and hooks that the trait
/// requires, without `type Msg` and `handle`, and a handler for each message:
///
/// ```
/// use strowger::{Actor, ActorRef, ActorSystem, BoxError, Context, Request, handlers};
///
/// struct Add(u64);
/// struct Get;
/// impl Request for Get { type Reply = u64; }
///
/// struct Counter(u64);
///
/// #[handlers]
/// impl Actor for Counter {
///     type Args = u64;
///     type Error = BoxError;
///
///     async fn pre_start(first: u64, _: &mut Context<Self>) -> Result<Self, BoxError> {
///         Ok(Self(first))
///     }
///
///     /// Counts on.
///     async fn add(&mut self, Add(more): Add) -> Result<(), BoxError> {
///         self.0 = self.0.checked_add(more).ok_or("counted too far")?;
///         Ok(())
///     }
///
///     async fn get(&mut self, _: Get) -> u64 {
///         self.0
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let system = ActorSystem::new("office")?;
/// let counter: ActorRef<CounterMessage> = system.spawn::<Counter>("counter", 40)?;
/// counter.tell(Add(2)).await?;
/// assert_eq!(counter.ask(Get).await?, 42);
/// # Ok(())
/// # }
/// ```
///
/// # Handlers
///
/// A handler is an `async fn name(&mut self, message: Type)`, with `cx: &mut Context<Self>` after
/// the message if needed. Its return type determines how its message is sent:
///
/// | return type | message | effect |
/// |---|---|---|
/// | nothing, or `Result<(), Error>` | is told | an error ends the incarnation |
/// | the `Reply` of a `Request` | is asked | the value is the answer |
/// | `Result<Reply, Error>` | is asked | an error ends it; the asker gets `Dropped` |
///
/// `#[ask]` on a handler marks its message as asked, for requests whose answer is `()` or a
/// `Result<(), _>`.
///
/// `Error` is the actor's own. To answer later, take the request with its reply:
/// `async fn get(&mut self, ask: Ask<Get>)`.
///
/// # Generated code
///
/// - `enum CounterMessage`, with a case for each handler, named after it (`add`: `Add`) and with
///   its documentation; its `Debug` prints the name of the case. `#[handlers(message = Name)]` sets
///   another name. The enum has those type parameters of the actor that its messages name.
/// - `Accepts<Add>` and `Accepts<Ask<Get>>` for the enum.
/// - `type Msg` and `handle`: one match, without a box or a table.
/// - The handlers as methods of `Counter`, which may call each other. Other methods belong in an
///   `impl Counter` of their own.
///
/// `#[handlers(crate = path)]` is for code that uses the crate `strowger` under another name.
pub use strowger_macros::handlers;

/// A value that a handler of a told message may return: nothing, or the actor's own error.
#[diagnostic::on_unimplemented(
    message = "a handler that is told cannot return `{Self}`",
    label = "not `()` and not `Result<(), {E}>`",
    note = "an error of a told message ends the incarnation: it must be the actor's `Error`, `{E}`",
    note = "if this is the answer to a request, mark the handler with `#[ask]`"
)]
pub trait IntoOutcome<E> {
    /// Converts the value into what [`Actor::handle`](crate::Actor::handle) returns.
    ///
    /// # Errors
    /// The handler's own.
    fn into_outcome(self) -> Result<(), E>;
}

impl<E> IntoOutcome<E> for () {
    fn into_outcome(self) -> Result<(), E> {
        Ok(())
    }
}

impl<E> IntoOutcome<E> for Result<(), E> {
    fn into_outcome(self) -> Self {
        self
    }
}

/// A value that a handler of a request may return: the answer, or the actor's own error.
#[diagnostic::on_unimplemented(
    message = "a handler whose request is answered with `{R}` cannot return `{Self}`",
    label = "not `{R}` and not `Result<{R}, {E}>`",
    note = "return what the `Request` of this message names as its `Reply`"
)]
pub trait IntoAnswer<R, E> {
    /// Converts the value into the answer, or the error that prevented it.
    ///
    /// # Errors
    /// The handler's own.
    fn into_answer(self) -> Result<R, E>;
}

impl<R, E> IntoAnswer<R, E> for R {
    fn into_answer(self) -> Result<R, E> {
        Ok(self)
    }
}

impl<R, E> IntoAnswer<R, E> for Result<R, E> {
    fn into_answer(self) -> Self {
        self
    }
}
