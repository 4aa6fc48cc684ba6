//! Notifications of an actor, from anywhere and without a message.

use std::fmt;
use std::sync::Weak;

use crate::cell::ErasedCell;
use crate::mailbox::SystemMessage;

/// Notifies one incarnation of an actor, from any thread: it receives
/// [`Signal::Notified`](crate::Signal::Notified).
///
/// It needs no room in the mailbox, and no variant of the actor's messages. Notifications are not
/// counted: those that arrive before the signal is delivered lead to one signal, and one that
/// arrives later leads to another. So put what happened where the actor finds it, then notify; the
/// actor takes all that it finds.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use strowger::{Actor, ActorSystem, Ask, BoxError, Context, Request, Signal};
///
/// /// Adds up what a device has measured.
/// struct Meter {
///     measured: Arc<AtomicU64>,
///     sum: u64,
/// }
///
/// struct Sum;
/// impl Request for Sum { type Reply = u64; }
///
/// impl Actor for Meter {
///     type Msg = Ask<Sum>;
///     type Args = ();
///     type Error = BoxError;
///
///     async fn pre_start(_: (), cx: &mut Context<Self>) -> Result<Self, BoxError> {
///         let measured = Arc::new(AtomicU64::new(0));
///         let (device, notifier) = (Arc::clone(&measured), cx.notifier());
///         // The callback of a driver, on a thread that knows nothing of actors.
///         std::thread::spawn(move || {
///             for _ in 0..10 {
///                 device.fetch_add(1, Ordering::Relaxed);
///                 notifier.notify();
///             }
///         });
///         Ok(Self { measured, sum: 0 })
///     }
///
///     async fn signal(&mut self, signal: Signal, _: &mut Context<Self>) -> Result<(), BoxError> {
///         if let Signal::Notified = signal {
///             self.sum += self.measured.swap(0, Ordering::Relaxed);
///         }
///         Ok(())
///     }
///
///     async fn handle(&mut self, ask: Ask<Sum>, _: &mut Context<Self>) -> Result<(), BoxError> {
///         ask.reply.send(self.sum);
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let system = ActorSystem::new("meters")?;
/// let meter = system.spawn::<Meter>("meter", ())?;
/// while meter.ask(Sum).await? < 10 {
///     tokio::task::yield_now().await;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Notifier {
    cell: Weak<dyn ErasedCell>,
    incarnation: u32,
}

impl Notifier {
    pub(crate) fn new(cell: Weak<dyn ErasedCell>, incarnation: u32) -> Self {
        Self { cell, incarnation }
    }

    /// Notifies the incarnation. Never blocks. Returns `false` if the incarnation has ended.
    #[expect(
        clippy::must_use_candidate,
        reason = "who has no use for the result notifies for the effect"
    )]
    pub fn notify(&self) -> bool {
        let cell = self.cell.upgrade();
        cell.is_some_and(|cell| cell.push_system(SystemMessage::Notified, Some(self.incarnation)))
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifier")
            .field("incarnation", &self.incarnation)
            .finish_non_exhaustive()
    }
}
