//! The body of a strand: a `Behavior`, and the work on it that waits.

use std::future::{Future, ready};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll};

use super::arena::{ArenaFuture, FutureArena, PollOutcome, WorkResult};
use super::{OpaqueMessage, StrandGuard, StrandHost};
use crate::exit::{Exit, drop_caught, panic_message};

/// The state that an incarnation keeps between two turns.
///
/// A turn asks it for the next thing to do, and does that, until there is nothing to do. Anything
/// that takes time is a future, which has exclusive access to the `Behavior` while it waits.
pub(crate) trait Behavior<C: StrandHost>: Send + Sized + 'static {
    /// The type of message that the actor handles.
    type Message: Send;
    /// Other work that may take time.
    type Control: Send;
    /// The error that the handling of a message may return.
    type Error;

    /// Returns `true` if the next message is to be handled, and nothing else is to be done.
    fn is_ready(&mut self, host: &C) -> bool;

    /// Decides what to do next; if that is the end, writes the reason to `exit`. `data` is the
    /// lock, if the turn already holds it.
    fn next(
        &mut self,
        host: &C,
        data: Option<StrandGuard<'_, C::Data>>,
        cx: &Context<'_>,
        message: &mut Option<OpaqueMessage<Self::Message>>,
        exit: &mut Option<Exit>,
    ) -> NextStep<Self::Control>;

    /// Handles this message, or else the next one; returns `None` if there is no actor or no
    /// message.
    fn handle<'a>(
        &'a mut self,
        host: &'a C,
        message: &mut Option<OpaqueMessage<Self::Message>>,
    ) -> Option<impl Future<Output = Result<(), Self::Error>> + Send + use<'a, C, Self>>;

    /// Converts a failure into an exit.
    fn into_exit(failure: Self::Error) -> Exit;

    /// Makes the value that a `Behavior` begins with.
    fn start<'a>(
        &'a mut self,
        host: &'a C,
    ) -> impl Future<Output = WorkResult> + Send + use<'a, C, Self> {
        let _ = host;
        ready(Ok(()))
    }

    /// Runs an errand.
    fn run_control<'a>(
        &'a mut self,
        host: &'a C,
        errand: Self::Control,
    ) -> impl Future<Output = WorkResult> + Send + use<'a, C, Self>;

    /// Begins to wind up the incarnation. Returns `true` if there is more to wait for than the last
    /// hook.
    fn begin_end(&mut self, host: &C, exit: &Exit) -> bool;

    /// Waits for everything that is outstanding, runs the last hook, and returns the exit. A kill
    /// does not interrupt this.
    fn end<'a>(
        &'a mut self,
        host: &'a C,
        exit: Exit,
    ) -> impl Future<Output = WorkResult> + Send + use<'a, C, Self>;

    /// Like `end`, if there is nothing to wait for but the last hook.
    fn end_quickly<'a>(
        &'a mut self,
        host: &'a C,
        exit: Exit,
    ) -> impl Future<Output = WorkResult> + Send + use<'a, C, Self>;

    /// Called after the end. Returns `true` if the `Behavior` begins again, as that of another
    /// incarnation in the same place; it then takes the exit. It never does unless `may` is set.
    fn restart_in_place(&mut self, host: &C, exit: &mut Option<Exit>, may: bool) -> bool {
        let _ = (host, exit, may);
        false
    }
}

/// The next step of a `Behavior`.
pub(crate) enum NextStep<E> {
    /// Nothing to do for now.
    Idle,
    /// Handle the message that was passed on.
    Message,
    /// Make the value that the `Behavior` begins with.
    Start,
    Control(E),
    End,
}

/// The situation after a turn has worked on the body.
pub(super) enum TurnOutcome {
    /// There is nothing to do, as far as the `Behavior` knows.
    Idle,
    /// The work of the turn waits to be woken.
    Waiting,
    /// The incarnation is over; the reason is in the exit of the turn.
    Over,
}

/// The place for a `Behavior`. One that is small enough is stored inline, others in a box.
pub(super) struct BehaviorSlot {
    vtable: Option<&'static BehaviorVtable>,
    /// The work that waits. It borrows the `Behavior`, so it is dropped first.
    work: Option<ArenaFuture>,
    storage: MaybeUninit<InlineSpace>,
}

/// The inline room for a `Behavior`, in words.
type InlineSpace = [u64; 19];

/// The operations on a `Behavior`, by its type.
struct BehaviorVtable {
    /// Takes the body, the host and an `Option<StrandGuard>` of its data.
    turn: unsafe fn(
        *mut BehaviorSlot,
        *const (),
        *mut (),
        &mut Option<Exit>,
        &mut Context<'_>,
    ) -> TurnOutcome,
    /// Takes the body and the host.
    renew: unsafe fn(*mut BehaviorSlot, *const (), &mut Option<Exit>, bool) -> bool,
    /// Takes the address of the room.
    drop: unsafe fn(*mut InlineSpace),
    /// The table for a `Behavior` of this type that is being wound up; `None` in that table itself.
    end: Option<&'static Self>,
}

struct TypedVtable<C, L>(PhantomData<(C, L)>);

impl<C: StrandHost, L: Behavior<C>> TypedVtable<C, L> {
    const VTABLE: BehaviorVtable = BehaviorVtable {
        end: Some(&Self::END_VTABLE),
        ..Self::END_VTABLE
    };

    const END_VTABLE: BehaviorVtable = BehaviorVtable {
        end: None,
        renew: Self::restart_in_place,
        turn: |body, host, held, exit, cx| {
            // SAFETY: the host is of this type, and outlives the turn.
            let host = unsafe { &*host.cast::<C>() };
            // SAFETY: so is its data, and nothing else has what the caller passed on.
            let held = unsafe { &mut *held.cast::<Option<StrandGuard<'_, C::Data>>>() };
            loop {
                // SAFETY: the body is the caller's, and a `Behavior` of this type is in it.
                let work = || unsafe { Self::run_steps(body, host, held, exit, cx) };
                let payload = match catch_unwind(AssertUnwindSafe(work)) {
                    Ok(outcome) => return outcome,
                    Err(payload) => payload,
                };
                *exit = Some(Exit::Panicked(panic_message(payload.as_ref())));
                // SAFETY: as above.
                unsafe { BehaviorSlot::drop_work(body) };
                // SAFETY: as above.
                if unsafe { BehaviorSlot::is_ending(body) } {
                    return TurnOutcome::Over;
                }
            }
        },
        drop: |room| {
            // SAFETY: a `Behavior` of this type is there.
            let behavior = unsafe { Self::behavior(room) };
            if fits::<L>() {
                // SAFETY: a `Behavior` of this type is there, and nothing uses it again.
                unsafe { behavior.drop_in_place() };
            } else {
                // SAFETY: `put` made it from a box.
                drop(unsafe { Box::from_raw(behavior) });
            }
        },
    };

    /// Does one thing after another, starting with the work that waits; starts with the end if
    /// there is an exit.
    ///
    /// # Safety
    /// The caller owns the body, and a `Behavior` of this type is in it.
    // No reference covers the room while there is work, because the work borrows it.
    unsafe fn run_steps(
        body: *mut BehaviorSlot,
        host: &C,
        held: &mut Option<StrandGuard<'_, C::Data>>,
        exit: &mut Option<Exit>,
        cx: &mut Context<'_>,
    ) -> TurnOutcome {
        // SAFETY: the body is the caller's.
        let place = unsafe { &raw mut (*body).work };
        // SAFETY: as above.
        let behavior = unsafe { Self::behavior((&raw mut (*body).storage).cast()) };
        let mut came = match exit {
            Some(_) => PollOutcome::Ended,
            // SAFETY: as above.
            None => PollOutcome::of(unsafe { Self::resume(body, host, held, cx) }, exit),
        };
        // SAFETY: as above.
        let mut arena = unsafe { FutureArena::new(place) };
        let mut message = None;
        // SAFETY: as above. There is no work when the `Behavior` is used, and each future is gone
        // before the `Behavior` is touched again.
        unsafe {
            loop {
                match came {
                    PollOutcome::Pending => return TurnOutcome::Waiting,
                    PollOutcome::Done => {}
                    PollOutcome::Ended => {
                        if BehaviorSlot::is_ending(body) {
                            return TurnOutcome::Over;
                        }
                        // The end returns the exit again.
                        let why = exit.take().unwrap_or(Exit::Killed);
                        *held = None;
                        BehaviorSlot::begin_end(body);
                        came = match (*behavior).begin_end(host, &why) {
                            true => arena.begin(|| (*behavior).end(host, why), exit, cx),
                            false => arena.begin(|| (*behavior).end_quickly(host, why), exit, cx),
                        };
                        continue;
                    }
                }
                match (*behavior).next(host, held.take(), cx, &mut message, exit) {
                    NextStep::Message => {}
                    NextStep::Idle => return TurnOutcome::Idle,
                    NextStep::Start => {
                        came = arena.begin(|| (*behavior).start(host), exit, cx);
                        continue;
                    }
                    NextStep::Control(errand) => {
                        came = arena.begin(|| (*behavior).run_control(host, errand), exit, cx);
                        continue;
                    }
                    NextStep::End => {
                        came = PollOutcome::Ended;
                        continue;
                    }
                }
                came = loop {
                    let handle = || {
                        HandleMessage::<_, C, L>(
                            (*behavior).handle(host, &mut message),
                            PhantomData,
                        )
                    };
                    match arena.begin(handle, exit, cx) {
                        PollOutcome::Done if (*behavior).is_ready(host) => {}
                        other => break other,
                    }
                };
            }
        }
    }

    /// Lets a `Behavior` that is over begin again, if it does.
    ///
    /// # Safety
    /// As for `run_steps`, with the host of the `Behavior`; there is no work.
    unsafe fn restart_in_place(
        body: *mut BehaviorSlot,
        host: *const (),
        exit: &mut Option<Exit>,
        may: bool,
    ) -> bool {
        // SAFETY: the host is of this type, and outlives the turn.
        let host = unsafe { &*host.cast::<C>() };
        // SAFETY: the body is the caller's, a `Behavior` of this type is in it, and nothing borrows
        // it.
        let behavior = unsafe { &mut *Self::behavior((&raw mut (*body).storage).cast()) };
        // This may drop what the end left behind, and panic.
        let renewed = catch_unwind(AssertUnwindSafe(|| {
            behavior.restart_in_place(host, exit, may)
        }));
        let renewed = renewed.unwrap_or(false);
        if renewed {
            // SAFETY: the body is the caller's.
            unsafe { (*body).vtable = Some(const { &Self::VTABLE }) };
        }
        renewed
    }

    /// Continues the work that waits, if there is any.
    ///
    /// # Safety
    /// As for `run_steps`.
    #[inline(always)]
    unsafe fn resume(
        body: *mut BehaviorSlot,
        host: &C,
        held: &mut Option<StrandGuard<'_, C::Data>>,
        cx: &mut Context<'_>,
    ) -> Poll<WorkResult> {
        // SAFETY: the body is the caller's.
        let Some(work) = (unsafe { &mut (*body).work }) else {
            return Poll::Ready(Ok(()));
        };
        *held = None;
        // SAFETY: as above.
        let polled = if !unsafe { BehaviorSlot::is_ending(body) } && host.is_killed() {
            Poll::Ready(Err(Exit::Killed))
        } else {
            work.poll(cx)
        };
        if polled.is_ready() {
            // SAFETY: as above.
            unsafe { BehaviorSlot::drop_work(body) };
        }
        polled
    }

    /// Returns the address of the `Behavior`.
    ///
    /// # Safety
    /// A `Behavior` of this type was put there.
    unsafe fn behavior(room: *mut InlineSpace) -> *mut L {
        if fits::<L>() {
            return room.cast();
        }
        // SAFETY: `put` wrote its address.
        unsafe { room.cast::<*mut L>().read() }
    }
}

const fn fits<L>() -> bool {
    size_of::<L>() <= size_of::<InlineSpace>() && align_of::<L>() <= align_of::<InlineSpace>()
}

/// Returns the number of bytes that a `Behavior` takes outside its host.
pub(crate) const fn heap_bytes<L>() -> usize {
    if fits::<L>() { 0 } else { size_of::<L>() }
}

/// The handling of a message, if there was an actor for it; a failure becomes an exit.
struct HandleMessage<F, C, L>(Option<F>, PhantomData<fn() -> (C, L)>);

impl<F, C, L> Future for HandleMessage<F, C, L>
where
    F: Future<Output = Result<(), L::Error>>,
    C: StrandHost,
    L: Behavior<C>,
{
    type Output = WorkResult;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<WorkResult> {
        // SAFETY: the future in it is not moved either.
        let future = unsafe { self.map_unchecked_mut(|future| &mut future.0) };
        match future.as_pin_mut() {
            Some(future) => future.poll(cx).map(|handled| handled.map_err(L::into_exit)),
            None => Poll::Ready(Err(Exit::Killed)),
        }
    }
}

impl BehaviorSlot {
    #[inline(always)]
    pub(super) const fn empty() -> Self {
        Self {
            vtable: None,
            work: None,
            storage: MaybeUninit::uninit(),
        }
    }

    /// Puts in a `Behavior`.
    ///
    /// # Safety
    /// The caller owns the body, which contains no `Behavior`.
    #[inline]
    pub(super) unsafe fn put<C: StrandHost, L: Behavior<C>>(
        this: *mut Self,
        behavior: impl FnOnce() -> L,
    ) {
        // SAFETY: the body is the caller's.
        let room = unsafe { (&raw mut (*this).storage).cast::<InlineSpace>() };
        if fits::<L>() {
            // SAFETY: it fits.
            unsafe { room.cast::<L>().write(behavior()) };
        } else {
            let behavior = Box::into_raw(Box::new(behavior()));
            // SAFETY: an address fits.
            unsafe { room.cast::<*mut L>().write(behavior) };
        }
        // SAFETY: as above.
        unsafe { (*this).vtable = Some(const { &TypedVtable::<C, L>::VTABLE }) };
    }

    /// Works on the `Behavior`, with the lock on its data if the caller has it. The exit is written
    /// to the caller's place instead of being returned through every frame.
    ///
    /// # Safety
    /// The caller owns the body, which does not move until it is cleared, and the host is the one
    /// for which the `Behavior` was put in.
    #[inline]
    pub(super) unsafe fn turn<C: StrandHost>(
        this: *mut Self,
        host: &C,
        held: &mut Option<StrandGuard<'_, C::Data>>,
        exit: &mut Option<Exit>,
        cx: &mut Context<'_>,
    ) -> TurnOutcome {
        // SAFETY: the body is the caller's.
        let Some(vtable) = (unsafe { (*this).vtable }) else {
            *held = None;
            return TurnOutcome::Over;
        };
        let (host, held) = (ptr::from_ref(host).cast(), ptr::from_mut(held).cast());
        // SAFETY: the table was written with the `Behavior`, for this type of host.
        unsafe { (vtable.turn)(this, host, held, exit, cx) }
    }

    /// Lets a `Behavior` that is over begin again, if it does.
    ///
    /// # Safety
    /// As for `turn`, which returned that the `Behavior` is over.
    pub(super) unsafe fn renew<C: StrandHost>(
        this: *mut Self,
        host: &C,
        exit: &mut Option<Exit>,
        may: bool,
    ) -> bool {
        // SAFETY: the body is the caller's.
        let Some(vtable) = (unsafe { (*this).vtable }) else {
            return false;
        };
        // SAFETY: the table was written with the `Behavior`, for this type of host.
        unsafe { (vtable.renew)(this, ptr::from_ref(host).cast(), exit, may) }
    }

    /// Returns `true` if the `Behavior` is being wound up.
    ///
    /// # Safety
    /// As for `turn`.
    unsafe fn is_ending(this: *mut Self) -> bool {
        // SAFETY: the body is the caller's.
        unsafe { (*this).vtable }.is_some_and(|vtable| vtable.end.is_none())
    }

    /// Records that the `Behavior` is being wound up.
    ///
    /// # Safety
    /// As for `turn`.
    unsafe fn begin_end(this: *mut Self) {
        // SAFETY: the body is the caller's.
        unsafe {
            (*this).vtable = (*this)
                .vtable
                .and_then(|vtable| vtable.end.or(Some(vtable)))
        };
    }

    /// Drops the work, if there is any, even if that panics.
    ///
    /// # Safety
    /// As for `turn`.
    unsafe fn drop_work(this: *mut Self) {
        // SAFETY: the body is the caller's.
        let work = unsafe { ptr::replace(&raw mut (*this).work, None) };
        if work.is_some() {
            drop_caught(work);
        }
    }

    /// Drops everything in the body, even if something panics.
    ///
    /// # Safety
    /// As for `turn`.
    pub(super) unsafe fn clear(this: *mut Self) {
        // SAFETY: as above.
        unsafe { Self::drop_work(this) };
        // SAFETY: as above.
        let vtable = unsafe { ptr::replace(&raw mut (*this).vtable, None) };
        if let Some(vtable) = vtable {
            // SAFETY: the `Behavior` was put in with this table, and the work on it is gone.
            let room = unsafe { (&raw mut (*this).storage).cast::<InlineSpace>() };
            drop_caught(BehaviorDropGuard(room, vtable));
        }
    }
}

/// A `Behavior` that is dropped with this.
struct BehaviorDropGuard(*mut InlineSpace, &'static BehaviorVtable);

impl Drop for BehaviorDropGuard {
    fn drop(&mut self) {
        // SAFETY: `clear` makes one for a `Behavior` that nothing uses again.
        unsafe { (self.1.drop)(self.0) }
    }
}
