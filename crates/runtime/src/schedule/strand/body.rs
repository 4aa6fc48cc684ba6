//! What an incarnation is made of: a life, and the work on it that waits.

use std::future::{Future, ready};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll};

use super::scratch::{Came, Desk, Done, Work};
use super::{Held, Host, Whole};
use crate::exit::{Exit, discard_one, panic_text};

/// What an incarnation keeps between two turns.
///
/// A turn asks it for one thing after another to do, and does that, until there is nothing. What
/// takes its time is a future, which has the life to itself while it waits.
pub(crate) trait Life<C: Host>: Send + Sized + 'static {
    /// What the actor handles.
    type Message: Send;
    /// What else may take its time.
    type Errand: Send;
    /// What the actor may come back with instead of having handled a message.
    type Failure;

    /// Whether the next message is to be handled, and nothing else is to be done.
    fn is_ready(&mut self, host: &C) -> bool;

    /// Decides what is to be done; if that is the end, says why. The lock is there if the turn has
    /// it already.
    fn next(
        &mut self,
        host: &C,
        data: Option<Held<'_, C::Data>>,
        cx: &Context<'_>,
        message: &mut Option<Whole<Self::Message>>,
        exit: &mut Option<Exit>,
    ) -> Step<Self::Errand>;

    /// Handles this message, or else the next one, if it can be.
    fn handle<'a>(
        &'a mut self,
        host: &'a C,
        message: &mut Option<Whole<Self::Message>>,
    ) -> Option<impl Future<Output = Result<(), Self::Failure>> + Send + use<'a, C, Self>>;

    /// What a failure means.
    fn exit(failure: Self::Failure) -> Exit;

    /// Makes what a life begins with.
    fn grow<'a>(&'a mut self, host: &'a C) -> impl Future<Output = Done> + Send + use<'a, C, Self> {
        let _ = host;
        ready(Ok(()))
    }

    /// Runs an errand.
    fn run<'a>(
        &'a mut self,
        host: &'a C,
        errand: Self::Errand,
    ) -> impl Future<Output = Done> + Send + use<'a, C, Self>;

    /// Begins to wind the incarnation up; whether there is more to wait for than the last hook.
    fn begin_end(&mut self, host: &C, exit: &Exit) -> bool;

    /// Waits for what there is to wait for, does what is left, and comes to the exit. A kill does
    /// not end this.
    fn end<'a>(
        &'a mut self,
        host: &'a C,
        exit: Exit,
    ) -> impl Future<Output = Done> + Send + use<'a, C, Self>;

    /// As `end`, where there is nothing to wait for but the last hook.
    fn last<'a>(
        &'a mut self,
        host: &'a C,
        exit: Exit,
    ) -> impl Future<Output = Done> + Send + use<'a, C, Self>;

    /// After its end: whether it begins anew, as the life of another incarnation in the same place.
    /// If so, it takes the exit; and it does not unless it may.
    fn renew(&mut self, host: &C, exit: &mut Option<Exit>, may: bool) -> bool {
        let _ = (host, exit, may);
        false
    }
}

/// What a life does next.
pub(crate) enum Step<E> {
    /// Nothing, for now.
    Rest,
    /// Handles the message that was passed on.
    Message,
    /// Makes what the life begins with.
    Grow,
    Errand(E),
    End,
}

/// Where a turn comes to stand.
pub(super) enum Stand {
    /// There is nothing to do, as far as the life knows.
    Rests,
    /// Work waits.
    Waits,
    /// The incarnation is over; why, the turn was told.
    Over,
}

/// The place for a life. One that is small enough lives in it, others in a box.
pub(super) struct Body {
    table: Option<&'static Table>,
    /// What waits. It borrows the life, so it is dropped before it.
    work: Option<Work>,
    room: MaybeUninit<Room>,
}

/// In words.
type Room = [u64; 19];

/// What is known of a life by its type.
struct Table {
    /// Takes the body, the host and an `Option<Held>` of its data.
    turn: unsafe fn(*mut Body, *const (), *mut (), &mut Option<Exit>, &mut Context<'_>) -> Stand,
    /// Takes the body and the host.
    renew: unsafe fn(*mut Body, *const (), &mut Option<Exit>, bool) -> bool,
    /// Takes the address of the room.
    drop: unsafe fn(*mut Room),
    /// That of a life of this type that is being wound up.
    end: Option<&'static Self>,
}

struct Known<C, L>(PhantomData<(C, L)>);

impl<C: Host, L: Life<C>> Known<C, L> {
    const TABLE: Table = Table {
        end: Some(&Self::END),
        ..Self::END
    };

    const END: Table = Table {
        end: None,
        renew: Self::renew,
        turn: |body, host, held, exit, cx| {
            // SAFETY: the host is of this type, and outlives the turn.
            let host = unsafe { &*host.cast::<C>() };
            // SAFETY: so is its data, and nobody else has what the caller passed on.
            let held = unsafe { &mut *held.cast::<Option<Held<'_, C::Data>>>() };
            loop {
                // SAFETY: the body is the caller's, and a life of this type is in it.
                let work = || unsafe { Self::work(body, host, held, exit, cx) };
                let payload = match catch_unwind(AssertUnwindSafe(work)) {
                    Ok(stand) => return stand,
                    Err(payload) => payload,
                };
                *exit = Some(Exit::Panicked(panic_text(payload.as_ref())));
                // SAFETY: as above.
                unsafe { Body::stop(body) };
                // SAFETY: as above.
                if unsafe { Body::ends(body) } {
                    return Stand::Over;
                }
            }
        },
        drop: |room| {
            // SAFETY: a life of this type is there.
            let life = unsafe { Self::life(room) };
            if fits::<L>() {
                // SAFETY: a life of this type is there, and nobody uses it again.
                unsafe { life.drop_in_place() };
            } else {
                // SAFETY: `put` made it from a box.
                drop(unsafe { Box::from_raw(life) });
            }
        },
    };

    /// Does one thing after another, first of all what waits; begins with the end if there is an
    /// exit.
    ///
    /// # Safety
    /// The caller owns the body, and a life of this type is in it.
    // No reference covers the room while there is work, which borrows it.
    unsafe fn work(
        body: *mut Body,
        host: &C,
        held: &mut Option<Held<'_, C::Data>>,
        exit: &mut Option<Exit>,
        cx: &mut Context<'_>,
    ) -> Stand {
        // SAFETY: the body is the caller's.
        let place = unsafe { &raw mut (*body).work };
        // SAFETY: as above.
        let life = unsafe { Self::life((&raw mut (*body).room).cast()) };
        let mut came = match exit {
            Some(_) => Came::Ends,
            // SAFETY: as above.
            None => Came::of(unsafe { Self::resume(body, host, held, cx) }, exit),
        };
        // SAFETY: as above.
        let mut desk = unsafe { Desk::new(place) };
        let mut message = None;
        // SAFETY: as above. No work is there when the life is used, and each future is gone
        // before the life is touched again.
        unsafe {
            loop {
                match came {
                    Came::Waits => return Stand::Waits,
                    Came::Done => {}
                    Came::Ends => {
                        if Body::ends(body) {
                            return Stand::Over;
                        }
                        // What ends says why.
                        let why = exit.take().unwrap_or(Exit::Killed);
                        *held = None;
                        Body::begin_end(body);
                        came = match (*life).begin_end(host, &why) {
                            true => desk.begin(|| (*life).end(host, why), exit, cx),
                            false => desk.begin(|| (*life).last(host, why), exit, cx),
                        };
                        continue;
                    }
                }
                match (*life).next(host, held.take(), cx, &mut message, exit) {
                    Step::Message => {}
                    Step::Rest => return Stand::Rests,
                    Step::Grow => {
                        came = desk.begin(|| (*life).grow(host), exit, cx);
                        continue;
                    }
                    Step::Errand(errand) => {
                        came = desk.begin(|| (*life).run(host, errand), exit, cx);
                        continue;
                    }
                    Step::End => {
                        came = Came::Ends;
                        continue;
                    }
                }
                came = loop {
                    let handle =
                        || Judged::<_, C, L>((*life).handle(host, &mut message), PhantomData);
                    match desk.begin(handle, exit, cx) {
                        Came::Done if (*life).is_ready(host) => {}
                        other => break other,
                    }
                };
            }
        }
    }

    /// Has a life that is over begin anew, if it does.
    ///
    /// # Safety
    /// As for `work`, with the host of the life; there is no work.
    unsafe fn renew(body: *mut Body, host: *const (), exit: &mut Option<Exit>, may: bool) -> bool {
        // SAFETY: the host is of this type, and outlives the turn.
        let host = unsafe { &*host.cast::<C>() };
        // SAFETY: the body is the caller's, a life of this type is in it, and nothing borrows it.
        let life = unsafe { &mut *Self::life((&raw mut (*body).room).cast()) };
        // What its end left behind may be dropped by this, and panic.
        let renewed = catch_unwind(AssertUnwindSafe(|| life.renew(host, exit, may)));
        let renewed = renewed.unwrap_or(false);
        if renewed {
            // SAFETY: the body is the caller's.
            unsafe { (*body).table = Some(const { &Self::TABLE }) };
        }
        renewed
    }

    /// Goes on with the work that waits, if there is some.
    ///
    /// # Safety
    /// As for `work`.
    #[inline(always)]
    unsafe fn resume(
        body: *mut Body,
        host: &C,
        held: &mut Option<Held<'_, C::Data>>,
        cx: &mut Context<'_>,
    ) -> Poll<Done> {
        // SAFETY: the body is the caller's.
        let Some(work) = (unsafe { &mut (*body).work }) else {
            return Poll::Ready(Ok(()));
        };
        *held = None;
        // SAFETY: as above.
        let polled = if !unsafe { Body::ends(body) } && host.is_killed() {
            Poll::Ready(Err(Exit::Killed))
        } else {
            work.poll(cx)
        };
        if polled.is_ready() {
            // SAFETY: as above.
            unsafe { Body::stop(body) };
        }
        polled
    }

    /// Where the life is.
    ///
    /// # Safety
    /// A life of this type was put there.
    unsafe fn life(room: *mut Room) -> *mut L {
        if fits::<L>() {
            return room.cast();
        }
        // SAFETY: `put` wrote its address.
        unsafe { room.cast::<*mut L>().read() }
    }
}

const fn fits<L>() -> bool {
    size_of::<L>() <= size_of::<Room>() && align_of::<L>() <= align_of::<Room>()
}

/// How many octets a life takes beside its host.
pub(crate) const fn apart<L>() -> usize {
    if fits::<L>() { 0 } else { size_of::<L>() }
}

/// The handling of a message, if there was somebody for it; a failure is an exit.
struct Judged<F, C, L>(Option<F>, PhantomData<fn() -> (C, L)>);

impl<F, C, L> Future for Judged<F, C, L>
where
    F: Future<Output = Result<(), L::Failure>>,
    C: Host,
    L: Life<C>,
{
    type Output = Done;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Done> {
        // SAFETY: the future in it is not moved either.
        let future = unsafe { self.map_unchecked_mut(|judged| &mut judged.0) };
        match future.as_pin_mut() {
            Some(future) => future.poll(cx).map(|handled| handled.map_err(L::exit)),
            None => Poll::Ready(Err(Exit::Killed)),
        }
    }
}

impl Body {
    #[inline(always)]
    pub(super) const fn none() -> Self {
        Self {
            table: None,
            work: None,
            room: MaybeUninit::uninit(),
        }
    }

    /// Puts a life in.
    ///
    /// # Safety
    /// The caller owns the body, in which there is none.
    #[inline]
    pub(super) unsafe fn put<C: Host, L: Life<C>>(this: *mut Self, life: impl FnOnce() -> L) {
        // SAFETY: the body is the caller's.
        let room = unsafe { (&raw mut (*this).room).cast::<Room>() };
        if fits::<L>() {
            // SAFETY: it fits.
            unsafe { room.cast::<L>().write(life()) };
        } else {
            let life = Box::into_raw(Box::new(life()));
            // SAFETY: an address fits.
            unsafe { room.cast::<*mut L>().write(life) };
        }
        // SAFETY: as above.
        unsafe { (*this).table = Some(const { &Known::<C, L>::TABLE }) };
    }

    /// Works on the life, with the lock on its data if the caller has that. What ends it is put
    /// where the caller wants it, and not handed from one to the next.
    ///
    /// # Safety
    /// The caller owns the body, which stays where it is until it is cleared, and the host is the
    /// one for which the life was put in.
    #[inline]
    pub(super) unsafe fn turn<C: Host>(
        this: *mut Self,
        host: &C,
        held: &mut Option<Held<'_, C::Data>>,
        exit: &mut Option<Exit>,
        cx: &mut Context<'_>,
    ) -> Stand {
        // SAFETY: the body is the caller's.
        let Some(table) = (unsafe { (*this).table }) else {
            *held = None;
            return Stand::Over;
        };
        let (host, held) = (ptr::from_ref(host).cast(), ptr::from_mut(held).cast());
        // SAFETY: the table was written with the life, for this type of host.
        unsafe { (table.turn)(this, host, held, exit, cx) }
    }

    /// Has a life that is over begin anew, if it does.
    ///
    /// # Safety
    /// As for `turn`, which said that the life is over.
    pub(super) unsafe fn renew<C: Host>(
        this: *mut Self,
        host: &C,
        exit: &mut Option<Exit>,
        may: bool,
    ) -> bool {
        // SAFETY: the body is the caller's.
        let Some(table) = (unsafe { (*this).table }) else {
            return false;
        };
        // SAFETY: the table was written with the life, for this type of host.
        unsafe { (table.renew)(this, ptr::from_ref(host).cast(), exit, may) }
    }

    /// Whether the life is being wound up.
    ///
    /// # Safety
    /// As for `turn`.
    unsafe fn ends(this: *mut Self) -> bool {
        // SAFETY: the body is the caller's.
        unsafe { (*this).table }.is_some_and(|table| table.end.is_none())
    }

    /// Notes that the life is being wound up.
    ///
    /// # Safety
    /// As for `turn`.
    unsafe fn begin_end(this: *mut Self) {
        // SAFETY: the body is the caller's.
        unsafe { (*this).table = (*this).table.and_then(|table| table.end.or(Some(table))) };
    }

    /// Drops the work that there is, even if that panics.
    ///
    /// # Safety
    /// As for `turn`.
    unsafe fn stop(this: *mut Self) {
        // SAFETY: the body is the caller's.
        let work = unsafe { ptr::replace(&raw mut (*this).work, None) };
        if work.is_some() {
            discard_one(work);
        }
    }

    /// Drops all that there is, whatever panics.
    ///
    /// # Safety
    /// As for `turn`.
    pub(super) unsafe fn clear(this: *mut Self) {
        // SAFETY: as above.
        unsafe { Self::stop(this) };
        // SAFETY: as above.
        let table = unsafe { ptr::replace(&raw mut (*this).table, None) };
        if let Some(table) = table {
            // SAFETY: the life was put in with this table, and the work on it is gone.
            let room = unsafe { (&raw mut (*this).room).cast::<Room>() };
            discard_one(Dropped(room, table));
        }
    }
}

/// A life that is dropped with this.
struct Dropped(*mut Room, &'static Table);

impl Drop for Dropped {
    fn drop(&mut self) {
        // SAFETY: `clear` makes one for a life that nobody uses again.
        unsafe { (self.1.drop)(self.0) }
    }
}
