//! Answers: to one who waits, or back into the mailbox of an actor.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::schedule::strand::{self, Fresh, Giver, Taker};
use crate::schedule::wake::wake;
use crate::sync::{AtomicBool, Ordering};

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
    /// What the answer carries.
    type Reply: Send + 'static;
}

/// A request on its way to an actor, with the means to answer it.
#[derive(Debug)]
pub struct Ask<R: Request> {
    /// What is asked.
    pub request: R,
    /// Where the answer goes.
    pub reply: Reply<R::Reply>,
}

/// Why a request stayed without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unanswered {
    /// The reply was dropped.
    #[error("the reply was dropped without an answer")]
    Dropped,
    /// The reply was dropped by a panic.
    #[error("the actor panicked before it answered")]
    Panicked,
}

/// An answer, or the lack of one, for a [`Lane`].
#[derive(Debug)]
pub struct Completion<T> {
    /// The number that the lane's owner gave to [`Lane::reply`].
    pub token: u64,
    /// The answer.
    pub result: Result<T, Unanswered>,
}

/// The right to answer once. Dropping it is an answer too: [`Unanswered`].
///
/// A reply is a sink: it ends in the slot of one who waits in `ask`, or in the mailbox of an
/// actor ([`Lane`]). It may be sent on to others; no task waits for it.
#[must_use = "dropping a reply answers that there is no answer"]
pub struct Reply<T>(Target<T>);

enum Target<T> {
    Slot(Giver<Result<T, Unanswered>, Arc<Open>>),
    Lane {
        sink: Arc<dyn Sink<T>>,
        token: u64,
    },
    #[cfg(feature = "messages")]
    Outside(Box<dyn Outside<T>>),
    Done,
}

/// Takes an answer in that leaves the process.
#[cfg(feature = "messages")]
pub(crate) trait Outside<T>: Send + Sync {
    fn settle(self: Box<Self>, result: Result<T, Unanswered>);
    fn is_wanted(&self) -> bool;
}

/// Takes completions in; implemented by the cells of actors.
pub(crate) trait Sink<T>: Send + Sync {
    fn complete(&self, completion: Completion<T>);
}

impl<T> Reply<T> {
    /// Answers.
    #[inline]
    pub fn send(mut self, answer: T) {
        self.settle(Ok(answer));
    }

    /// A reply to nobody, for a request that is made without interest in its answer.
    pub const fn ignored() -> Self {
        Self(Target::Done)
    }

    /// A reply that leaves the process.
    #[cfg(feature = "messages")]
    pub(crate) fn outside(outside: Box<dyn Outside<T>>) -> Self {
        Self(Target::Outside(outside))
    }

    /// Takes the right back, so that dropping it is no answer.
    #[cfg(feature = "messages")]
    pub(crate) fn withdraw(mut self) {
        self.0 = Target::Done;
    }

    /// Whether the one who asked still waits: neither gave up nor ran out of time. A handler that
    /// works for long may look now and then, and leave off. A lane always waits.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        match &self.0 {
            #[cfg(feature = "messages")]
            Target::Outside(outside) => outside.is_wanted(),
            Target::Slot(slot) => !slot.is_left(),
            Target::Lane { .. } => true,
            Target::Done => false,
        }
    }

    #[inline(always)]
    fn settle(&mut self, result: Result<T, Unanswered>) {
        match mem::replace(&mut self.0, Target::Done) {
            Target::Slot(slot) => {
                if let Some(waker) = slot.put(result, |open| open.close()) {
                    wake(waker);
                }
            }
            target => target.settle(result),
        }
    }
}

impl<T> Target<T> {
    /// Answers one who does not wait in `ask`.
    fn settle(self, result: Result<T, Unanswered>) {
        match self {
            Self::Lane { sink, token } => sink.complete(Completion { token, result }),
            #[cfg(feature = "messages")]
            Self::Outside(outside) => outside.settle(result),
            Self::Slot(_) | Self::Done => {}
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if !matches!(self.0, Target::Done) {
            let panicking = std::thread::panicking();
            let why = if panicking {
                Unanswered::Panicked
            } else {
                Unanswered::Dropped
            };
            self.settle(Err(why));
        }
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// A source of replies whose answers come back as messages of the actor that made it.
///
/// The owner mints a token for each request; answers come as [`Completion`]s beyond the capacity
/// of the mailbox, so a full mailbox never blocks an answer. Answers for an incarnation that has
/// ended are dropped.
pub struct Lane<T> {
    sink: Arc<dyn Sink<T>>,
}

impl<T> Lane<T> {
    pub(crate) fn new(sink: Arc<dyn Sink<T>>) -> Self {
        Self { sink }
    }

    /// Makes a reply whose answer carries this token.
    pub fn reply(&self, token: u64) -> Reply<T> {
        Reply(Target::Lane {
            sink: Arc::clone(&self.sink),
            token,
        })
    }
}

impl<T> Clone for Lane<T> {
    fn clone(&self) -> Self {
        Self {
            sink: Arc::clone(&self.sink),
        }
    }
}

impl<T> fmt::Debug for Lane<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lane")
    }
}

/// Whether an answer is still to come, without its type.
///
/// Has no model, as no order depends on it. It is read under the lock of the waits, by one who
/// looks for a ring. Of a ring that is complete, whoever answered has waited itself since: it took
/// that lock between its answer and the look, which then sees the answer. In any other case an
/// answer may come in the same moment, and both readings are true.
#[derive(Debug)]
pub(crate) struct Open(AtomicBool);

impl Open {
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn close(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The waiting side of a reply. Dropping it discards the answer.
pub(crate) struct Answer<T> {
    slot: Taker<Result<T, Unanswered>, Arc<Open>>,
    open: Option<Arc<Open>>,
}

/// Makes a reply and the place where its answer arrives.
#[inline]
pub(crate) fn slot<T>() -> (Reply<T>, Answer<T>) {
    let (giver, slot) = strand::slot();
    (Reply(Target::Slot(giver)), Answer { slot, open: None })
}

impl<T> Answer<T> {
    /// Says whether the answer is still to come, from now on.
    pub(crate) fn open(&mut self) -> Arc<Open> {
        if let Some(open) = &self.open {
            return Arc::clone(open);
        }
        let open = Arc::new(Open(AtomicBool::new(true)));
        if !self.slot.watch(Arc::clone(&open)) {
            open.close();
        }
        self.open = Some(Arc::clone(&open));
        open
    }

    /// Returns `true` if the answer came.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        self.slot.is_full()
    }

    /// Puts the question, which waits, among those that were asked a moment ago.
    #[inline]
    pub(crate) fn list(&mut self, list: &'static Fresh) {
        self.slot.list(list);
    }

    /// Returns `true` while the question is among those that were asked a moment ago.
    #[inline]
    pub(crate) fn is_listed(&self) -> bool {
        self.slot.is_listed()
    }

    #[inline]
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<T, Unanswered>> {
        let answer = self.slot.poll(cx.waker());
        answer.map(|answer| answer.unwrap_or(Err(Unanswered::Dropped)))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use parking_lot::Mutex;

    use super::*;

    fn poll<T>(answer: &mut Answer<T>) -> Poll<Result<T, Unanswered>> {
        answer.poll(&Context::from_waker(Waker::noop()))
    }

    #[derive(Default)]
    struct Taken(Mutex<Vec<(u64, Result<u32, Unanswered>)>>);

    impl Sink<u32> for Taken {
        fn complete(&self, completion: Completion<u32>) {
            self.0.lock().push((completion.token, completion.result));
        }
    }

    #[test]
    fn an_answer_arrives_once() {
        let (reply, mut answer) = slot();
        assert_eq!(poll(&mut answer), Poll::Pending);
        reply.send(7);
        assert_eq!(poll(&mut answer), Poll::Ready(Ok(7)));
    }

    #[test]
    fn dropping_a_reply_is_an_answer() {
        let (reply, mut answer) = slot::<u32>();
        drop(reply);
        assert_eq!(poll(&mut answer), Poll::Ready(Err(Unanswered::Dropped)));
    }

    #[test]
    fn a_reply_that_a_panic_drops_says_so() {
        let (reply, mut answer) = slot::<u32>();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _reply = reply;
            std::panic::resume_unwind(Box::new(()));
        }));
        assert!(panicked.is_err());
        assert_eq!(poll(&mut answer), Poll::Ready(Err(Unanswered::Panicked)));
    }

    #[test]
    fn late_answer_is_dropped() {
        let payload = Arc::new(());
        let (reply, answer) = slot();
        drop(answer);
        reply.send(Arc::clone(&payload));
        assert_eq!(Arc::strong_count(&payload), 1);
    }

    #[test]
    fn answer_that_nobody_took_goes_with_the_slot() {
        let payload = Arc::new(());
        let (reply, answer) = slot();
        reply.send(Arc::clone(&payload));
        drop(answer);
        assert_eq!(Arc::strong_count(&payload), 1);
    }

    #[test]
    fn who_watches_knows_of_the_answer_before_it_is_there() {
        let (reply, mut answer) = slot();
        assert_eq!(poll(&mut answer), Poll::Pending);
        let open = answer.open();
        assert!(open.is_open() && Arc::ptr_eq(&open, &answer.open()));
        assert_eq!(poll(&mut answer), Poll::Pending);
        reply.send(7);
        assert!(!open.is_open());
        assert_eq!(poll(&mut answer), Poll::Ready(Ok(7)));
    }

    #[test]
    fn a_lane_gives_each_answer_its_token() {
        let taken = Arc::new(Taken::default());
        let lane = Lane::new(Arc::<Taken>::clone(&taken));
        let (first, second) = (lane.reply(1), lane.reply(2));
        second.send(20);
        drop(first);
        Reply::ignored().send(0_u32);
        let expected = [(2, Ok(20)), (1, Err(Unanswered::Dropped))];
        assert_eq!(*taken.0.lock(), expected);
    }
}
