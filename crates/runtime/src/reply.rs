//! Replies: to a task that waits for the answer, or back into the mailbox of an actor.

#[cfg(all(test, strowger_loom))]
mod loom;

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::schedule::strand::{self, RecentAsks, SlotReceiver, SlotSender};
use crate::schedule::wake::wake;
use crate::seeded_bug::{Bug, seeded_once};
use crate::sync::{AtomicBool, Ordering, Weakening, weakened};

/// A message that is answered.
///
/// ```
/// struct Get;
/// impl strowger::Request for Get {
///     type Reply = u64;
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a request",
    label = "not answered by anything",
    note = "say what its answer carries: `impl Request for {Self} {{ type Reply = ..; }}`",
    note = "a handler whose message is told returns nothing, or `Result<(), Error>`"
)]
pub trait Request: Send + 'static {
    /// The type of the answer.
    type Reply: Send + 'static;
}

/// A request on its way to an actor, with the means to answer it.
#[derive(Debug)]
pub struct Ask<R: Request> {
    /// The request to answer.
    pub request: R,
    /// The reply, which takes the answer.
    pub reply: Reply<R::Reply>,
}

/// The reason why a request was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The reply was dropped.
    #[error("the reply was dropped without an answer")]
    Dropped,
    /// The reply was dropped by a panic.
    #[error("the actor panicked before it answered")]
    Panicked,
}

/// An answer, or the lack of one, for a [`ReplyLane`].
#[derive(Debug)]
pub struct Completion<T> {
    /// The number that the owner of the lane passed to [`ReplyLane::reply`].
    pub token: u64,
    /// The answer, or the reason why there is none.
    pub result: Result<T, ReplyError>,
}

/// The right to answer once. Dropping it is an answer too: [`ReplyError`].
///
/// A reply is a sink: the answer goes to the task that waits in `ask`, or into the mailbox of an
/// actor ([`ReplyLane`]). A reply may be passed on to other actors; no task is needed to wait for
/// it.
#[must_use = "dropping a reply answers that there is no answer"]
pub struct Reply<T>(ReplyTarget<T>);

enum ReplyTarget<T> {
    Slot(SlotSender<Result<T, ReplyError>, Arc<PendingFlag>>),
    Lane {
        sink: Arc<dyn CompletionSink<T>>,
        token: u64,
    },
    #[cfg(feature = "messages")]
    External(Box<dyn ExternalReply<T>>),
    Done,
}

/// A sink for an answer that leaves the process.
#[cfg(feature = "messages")]
pub(crate) trait ExternalReply<T>: Send + Sync {
    fn deliver(self: Box<Self>, result: Result<T, ReplyError>);
    fn is_waiting(&self) -> bool;
}

/// A sink for completions; implemented by the cells of actors.
pub(crate) trait CompletionSink<T>: Send + Sync {
    fn complete(&self, completion: Completion<T>);
}

impl<T> Reply<T> {
    /// Sends the answer.
    #[inline]
    pub fn send(mut self, answer: T) {
        self.deliver(Ok(answer));
    }

    /// Creates a reply whose answer is discarded, for a request whose answer is of no interest.
    pub const fn ignored() -> Self {
        Self(ReplyTarget::Done)
    }

    /// Creates a reply whose answer leaves the process.
    #[cfg(feature = "messages")]
    pub(crate) fn external(external: Box<dyn ExternalReply<T>>) -> Self {
        Self(ReplyTarget::External(external))
    }

    /// Withdraws the right, so that dropping it is no answer.
    #[cfg(feature = "messages")]
    pub(crate) fn withdraw(mut self) {
        self.0 = ReplyTarget::Done;
    }

    /// Returns `true` if the asker still waits: it has neither given up nor run out of time. A
    /// handler that works for long can check this now and then, and stop. A lane always waits.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        match &self.0 {
            #[cfg(feature = "messages")]
            ReplyTarget::External(external) => external.is_waiting(),
            ReplyTarget::Slot(slot) => !slot.is_closed(),
            ReplyTarget::Lane { .. } => true,
            ReplyTarget::Done => false,
        }
    }

    #[inline(always)]
    fn deliver(&mut self, result: Result<T, ReplyError>) {
        match mem::replace(&mut self.0, ReplyTarget::Done) {
            ReplyTarget::Slot(slot) => {
                if let Some(waker) = slot.send(result, |open| open.close())
                    && !seeded_once(Bug::OneAnswerLosesItsWakeup)
                {
                    wake(waker);
                }
            }
            target => target.deliver(result),
        }
    }
}

impl<T> ReplyTarget<T> {
    /// Answers an asker that does not wait in `ask`.
    fn deliver(self, result: Result<T, ReplyError>) {
        match self {
            Self::Lane { sink, token } => sink.complete(Completion { token, result }),
            #[cfg(feature = "messages")]
            Self::External(external) => external.deliver(result),
            Self::Slot(_) | Self::Done => {}
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if !matches!(self.0, ReplyTarget::Done) {
            let panicking = std::thread::panicking();
            let why = if panicking {
                ReplyError::Panicked
            } else {
                ReplyError::Dropped
            };
            self.deliver(Err(why));
        }
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// A source of replies whose answers come back as messages of the actor that created it.
///
/// The owner mints a token for each request. Answers arrive as [`Completion`]s beyond the capacity
/// of the mailbox, so a full mailbox never blocks an answer. Answers for an incarnation that has
/// ended are dropped.
pub struct ReplyLane<T> {
    sink: Arc<dyn CompletionSink<T>>,
}

impl<T> ReplyLane<T> {
    pub(crate) fn new(sink: Arc<dyn CompletionSink<T>>) -> Self {
        Self { sink }
    }

    /// Creates a reply whose answer carries this token.
    pub fn reply(&self, token: u64) -> Reply<T> {
        Reply(ReplyTarget::Lane {
            sink: Arc::clone(&self.sink),
            token,
        })
    }
}

impl<T> Clone for ReplyLane<T> {
    fn clone(&self) -> Self {
        Self {
            sink: Arc::clone(&self.sink),
        }
    }
}

impl<T> fmt::Debug for ReplyLane<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lane")
    }
}

/// A flag that is set while an answer is still to come, without the type of the answer.
///
/// There is no loom model of this, because no order depends on it. An asker that looks for a ring
/// reads it under the lock of the waits. If a ring is complete, every actor in it that answered has
/// waited itself since: it took that lock between its answer and the look, which therefore sees the
/// answer. In any other case, an answer may arrive at the same moment, and both readings are true.
#[derive(Debug)]
pub(crate) struct PendingFlag(AtomicBool);

impl PendingFlag {
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn close(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The waiting side of a reply. Dropping it discards the answer.
pub(crate) struct PendingReply<T> {
    slot: SlotReceiver<Result<T, ReplyError>, Arc<PendingFlag>>,
    open: Option<Arc<PendingFlag>>,
    arming: DeadlineArming,
}

/// The point at which an ask sets its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeadlineArming {
    /// The deadline is set once the ask has been in a list of recent asks.
    Deferred,
    /// The ask is in such a list, or was taken from it since the last poll.
    Registered,
    /// Every poll looks at the deadline, and the first one sets it.
    Armed,
}

/// Creates a reply and the place where its answer arrives.
#[inline]
pub(crate) fn reply_slot<T>() -> (Reply<T>, PendingReply<T>) {
    let (giver, slot) = strand::channel();
    let pending = PendingReply {
        slot,
        open: None,
        arming: DeadlineArming::Armed,
    };
    (Reply(ReplyTarget::Slot(giver)), pending)
}

impl<T> PendingReply<T> {
    /// Returns a flag that shows, from now on, whether the answer is still to come.
    pub(crate) fn pending_flag(&mut self) -> Arc<PendingFlag> {
        if let Some(open) = &self.open {
            return Arc::clone(open);
        }
        let open = Arc::new(PendingFlag(AtomicBool::new(true)));
        if !self.slot.watch(Arc::clone(&open)) {
            open.close();
        }
        self.open = Some(Arc::clone(&open));
        open
    }

    /// Returns `true` if the answer has arrived.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.slot.is_full()
    }

    /// Puts the ask, which waits, in a list of recent asks.
    #[inline]
    pub(crate) fn add_to_recent(&mut self, list: &'static RecentAsks) {
        self.slot.insert_into(list);
    }

    /// Lets the ask go without its deadline until it was in a list of recent asks.
    #[inline]
    pub(crate) const fn defer_deadline(&mut self) {
        self.arming = DeadlineArming::Deferred;
    }

    /// Polls the wait of an ask: for the answer and then, unless the monitor will wake the ask
    /// because `add_to_recent` put it in a list of recent asks, for the deadline, whose error ends
    /// the wait. Before it looks at the deadline, the ask is recorded as a wait by `note`.
    ///
    /// All that composes a wait is in this function, so that the loom models poll the very code
    /// that asks run. `Pending` means in every case that the task will be woken.
    #[inline]
    pub(crate) fn poll_wait<E>(
        &mut self,
        cx: &mut Context<'_>,
        list: impl FnOnce(&mut Self) -> bool,
        note: impl FnOnce(&Context<'_>, &mut Self) -> Result<(), E>,
        deadline: impl FnOnce(&mut Context<'_>) -> Poll<E>,
    ) -> Poll<Result<Result<T, ReplyError>, E>> {
        if let Poll::Ready(answer) = self.poll(cx) {
            return Poll::Ready(Ok(answer));
        }
        let will_be_called = match self.arming {
            // It waits since before it was listed, so the list finds its waker.
            DeadlineArming::Deferred => list(self),
            DeadlineArming::Registered => {
                self.slot.will_be_woken() || weakened(Weakening::UnlistedAskArmsDeadline)
            }
            DeadlineArming::Armed => false,
        };
        if will_be_called {
            self.arming = DeadlineArming::Registered;
            return Poll::Pending;
        }
        self.arming = DeadlineArming::Armed;
        note(cx, self)?;
        deadline(cx).map(Err)
    }

    #[inline]
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<T, ReplyError>> {
        let answer = self.slot.poll(cx.waker());
        answer.map(|answer| answer.unwrap_or(Err(ReplyError::Dropped)))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use parking_lot::Mutex;

    use super::*;

    fn poll<T>(answer: &mut PendingReply<T>) -> Poll<Result<T, ReplyError>> {
        answer.poll(&Context::from_waker(Waker::noop()))
    }

    #[derive(Default)]
    struct Taken(Mutex<Vec<(u64, Result<u32, ReplyError>)>>);

    impl CompletionSink<u32> for Taken {
        fn complete(&self, completion: Completion<u32>) {
            self.0.lock().push((completion.token, completion.result));
        }
    }

    #[test]
    fn an_answer_arrives_once() {
        let (reply, mut answer) = reply_slot();
        assert_eq!(poll(&mut answer), Poll::Pending);
        reply.send(7);
        assert_eq!(poll(&mut answer), Poll::Ready(Ok(7)));
    }

    #[test]
    fn dropped_reply_answers_with_an_error() {
        let (reply, mut answer) = reply_slot::<u32>();
        drop(reply);
        assert_eq!(poll(&mut answer), Poll::Ready(Err(ReplyError::Dropped)));
    }

    #[test]
    fn reply_dropped_by_panic_reports_panicked() {
        let (reply, mut answer) = reply_slot::<u32>();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _reply = reply;
            std::panic::resume_unwind(Box::new(()));
        }));
        assert!(panicked.is_err());
        assert_eq!(poll(&mut answer), Poll::Ready(Err(ReplyError::Panicked)));
    }

    #[test]
    fn late_answer_is_dropped() {
        let payload = Arc::new(());
        let (reply, answer) = reply_slot();
        drop(answer);
        reply.send(Arc::clone(&payload));
        assert_eq!(Arc::strong_count(&payload), 1);
    }

    #[test]
    fn untaken_answer_is_dropped_with_the_slot() {
        let payload = Arc::new(());
        let (reply, answer) = reply_slot();
        reply.send(Arc::clone(&payload));
        drop(answer);
        assert_eq!(Arc::strong_count(&payload), 1);
    }

    #[test]
    fn pending_flag_is_cleared_before_the_answer_is_visible() {
        let (reply, mut answer) = reply_slot();
        assert_eq!(poll(&mut answer), Poll::Pending);
        let open = answer.pending_flag();
        assert!(open.is_open() && Arc::ptr_eq(&open, &answer.pending_flag()));
        assert_eq!(poll(&mut answer), Poll::Pending);
        reply.send(7);
        assert!(!open.is_open());
        assert_eq!(poll(&mut answer), Poll::Ready(Ok(7)));
    }

    #[test]
    fn lane_completions_carry_their_token() {
        let taken = Arc::new(Taken::default());
        let lane = ReplyLane::new(Arc::<Taken>::clone(&taken));
        let (first, second) = (lane.reply(1), lane.reply(2));
        second.send(20);
        drop(first);
        Reply::ignored().send(0_u32);
        let expected = [(2, Ok(20)), (1, Err(ReplyError::Dropped))];
        assert_eq!(*taken.0.lock(), expected);
    }
}
