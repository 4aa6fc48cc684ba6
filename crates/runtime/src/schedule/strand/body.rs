//! What an incarnation is made of: a life, and the work on it that waits.

use std::future::Future;
use std::mem::MaybeUninit;
use std::ptr;
use std::task::{Context, Poll};

use super::scratch::Work;
use crate::exit::{Exit, discard};

/// What an incarnation keeps between two turns.
pub(crate) trait Life<C>: Send + Sized + 'static {
    /// Works until there is nothing more to do for now, or until the incarnation is over.
    fn turn<'a>(
        &'a mut self,
        host: &'a C,
    ) -> impl Future<Output = Option<Exit>> + Send + use<'a, C, Self>;
}

/// The place for a life. One that is small enough lives in it, others in a box.
pub(super) struct Body {
    table: Option<&'static Table>,
    /// A turn that waits. It borrows the life, so it is dropped before it.
    work: Option<Work<Option<Exit>>>,
    room: MaybeUninit<Room>,
}

/// In words.
type Room = [u64; 25];

/// What is known of a life by its type. All take the address of the room, and of the host.
struct Table {
    begin: unsafe fn(*mut Room, *const ()) -> Work<Option<Exit>>,
    drop: unsafe fn(*mut Room),
}

struct Known<C, L>(std::marker::PhantomData<(C, L)>);

impl<C: Sync, L: Life<C>> Known<C, L> {
    const TABLE: Table = Table {
        begin: |room, host| {
            // SAFETY: a life of this type is there, and nobody else uses it.
            let life = unsafe { &mut *Self::life(room) };
            // SAFETY: the host is of this type, and outlives the work.
            let host = unsafe { &*host.cast::<C>() };
            // SAFETY: both outlive the work, which is dropped before the life.
            unsafe { Work::new(|| life.turn(host)) }
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
    pub(super) unsafe fn put<C: Sync, L: Life<C>>(this: *mut Self, life: impl FnOnce() -> L) {
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

    /// Works on the life. Pending while the work waits; else what the turn came to.
    ///
    /// # Safety
    /// The caller owns the body, which stays where it is until it is cleared, and the host is the
    /// one for which the life was put in.
    pub(super) unsafe fn turn<C>(
        this: *mut Self,
        host: *const C,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Exit>> {
        // SAFETY: the body is the caller's. No reference covers the room, which the work borrows.
        let work = unsafe { &mut (*this).work };
        if let Some(waiting) = work {
            let polled = waiting.poll(cx);
            if polled.is_ready() {
                *work = None;
            }
            return polled;
        }
        // SAFETY: as above.
        let Some(table) = (unsafe { (*this).table }) else {
            return Poll::Ready(Some(Exit::Killed));
        };
        // SAFETY: the table was written with the life; the host is alive while the caller owns
        // the body.
        let mut begun = unsafe {
            let room = (&raw mut (*this).room).cast::<Room>();
            (table.begin)(room, host.cast())
        };
        let polled = begun.poll(cx);
        if polled.is_pending() {
            *work = Some(begun);
        }
        polled
    }

    /// Drops all that there is, whatever panics.
    ///
    /// # Safety
    /// As for `turn`.
    pub(super) unsafe fn clear(this: *mut Self) {
        // SAFETY: as in `turn`.
        let (work, table) = unsafe { (ptr::replace(&raw mut (*this).work, None), (*this).table) };
        if work.is_some() {
            discard(work);
        }
        // SAFETY: as above.
        unsafe { (*this).table = None };
        if let Some(table) = table {
            // SAFETY: the life was put in with this table, and the work on it is gone.
            let room = unsafe { (&raw mut (*this).room).cast::<Room>() };
            discard([Dropped(room, table)]);
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
