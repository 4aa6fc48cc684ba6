//! The task arena: buffers for the futures of turns.
//!
//! The work of a hook is a future. It is written into a buffer of the thread and polled there. A
//! future that completes leaves its buffer to the next one of its turn; a future that waits keeps
//! the buffer until it completes or is dropped. An idle actor thus has no room reserved for its
//! largest hook, and a hook that does not wait costs no allocation. Other short-lived values are
//! kept in the same way ([`SizeClass`]).

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::task::{Context, Poll};

use crate::exit::Exit;

/// The result of a piece of work: the incarnation goes on, or ends.
pub(super) type WorkResult = Result<(), Exit>;

/// The state of a piece of work after a poll, without the exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PollOutcome {
    /// The future waits to be woken.
    Pending,
    /// It is done, and the incarnation goes on.
    Done,
    /// The incarnation ends.
    Ended,
}

impl PollOutcome {
    /// Converts the result of a poll, and writes the exit, if any, to its place: there commonly is
    /// none, so it is not returned through every frame.
    #[inline(always)]
    pub(super) fn of(polled: Poll<WorkResult>, exit: &mut Option<Exit>) -> Self {
        match polled {
            Poll::Pending => Self::Pending,
            Poll::Ready(Ok(())) => Self::Done,
            Poll::Ready(Err(why)) => {
                *exit = Some(why);
                Self::Ended
            }
        }
    }
}

/// A future in a buffer of its own, without its type.
pub(super) struct ArenaFuture(NonNull<FutureHeader>);

// SAFETY: `begin` takes futures that are `Send`, and nothing else has the buffer.
unsafe impl Send for ArenaFuture {}

/// The header in front of a future.
struct FutureHeader {
    vtable: &'static FutureVtable,
}

/// The operations on a future, by its type.
struct FutureVtable {
    class: Option<usize>,
    layout: Layout,
    poll: unsafe fn(NonNull<FutureHeader>, &mut Context<'_>) -> Poll<WorkResult>,
    drop: unsafe fn(NonNull<FutureHeader>),
}

impl FutureVtable {
    /// Returns `true` if a buffer for futures of this type also serves those of another.
    #[inline(always)]
    fn fits_for(&self, other: &'static Self) -> bool {
        ptr::eq(self, other) || self.class.is_some() && self.class == other.class
    }
}

#[repr(C)]
struct FutureCell<F> {
    header: FutureHeader,
    future: F,
}

impl<F: Future<Output = WorkResult>> FutureCell<F> {
    const VTABLE: FutureVtable = {
        let exact = Layout::new::<Self>();
        let class = class_for(exact, MIN_FUTURE_CLASS);
        FutureVtable {
            class,
            layout: match class {
                Some(class) => layout_of(class),
                None => exact,
            },
            poll: |header, cx| {
                // SAFETY: the table is in front of a future of this type, which is not moved.
                let cell = unsafe { header.cast::<Self>().as_mut() };
                // SAFETY: as above.
                unsafe { Pin::new_unchecked(&mut cell.future) }.poll(cx)
            },
            drop: |header| {
                // SAFETY: the table is in front of a future of this type, which nothing uses again.
                unsafe { (&raw mut (*header.cast::<Self>().as_ptr()).future).drop_in_place() }
            },
        }
    };
}

impl ArenaFuture {
    #[inline]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<WorkResult> {
        // SAFETY: the buffer is ours, and what was put in is there until we are dropped.
        unsafe { (self.0.as_ref().vtable.poll)(self.0, cx) }
    }
}

impl Drop for ArenaFuture {
    fn drop(&mut self) {
        // SAFETY: as in `poll`.
        let vtable = unsafe { self.0.as_ref() }.vtable;
        // Returned even if the future panics.
        let _guard = BufferGuard(self.0.cast(), vtable.class, vtable.layout);
        // SAFETY: it is dropped once, here.
        unsafe { (vtable.drop)(self.0) };
    }
}

/// The workplace of a turn: a buffer for one future after another, and the place that records which
/// one is in it. The buffer belongs to the work while there is one, otherwise to the `FutureArena`.
pub(super) struct FutureArena {
    current: *mut Option<ArenaFuture>,
    /// With the table of the futures that it is for.
    buffer: Option<(NonNull<FutureHeader>, &'static FutureVtable)>,
}

impl FutureArena {
    /// # Safety
    /// The place is the caller's, and nothing else looks at it before the `FutureArena` is gone.
    #[inline(always)]
    pub(super) const unsafe fn new(place: *mut Option<ArenaFuture>) -> Self {
        Self {
            current: place,
            buffer: None,
        }
    }

    /// Builds a future in the buffer, not somewhere else to be copied, and polls it once. While the
    /// future waits, and if it panics, it is in the place, with the buffer. If it ends the
    /// incarnation, the reason is written to `exit`.
    ///
    /// # Safety
    /// There is no work in the place, and what the future borrows outlives it.
    // Inlined; otherwise the room for everything that the future may come to hold is copied.
    #[inline(always)]
    pub(super) unsafe fn begin<F: Future<Output = WorkResult> + Send>(
        &mut self,
        make: impl FnOnce() -> F,
        exit: &mut Option<Exit>,
        cx: &mut Context<'_>,
    ) -> PollOutcome {
        let vtable = const { &FutureCell::<F>::VTABLE };
        let buffer = match self.buffer {
            Some((buffer, known)) if known.fits_for(vtable) => buffer,
            other => {
                if other.is_some() {
                    self.free_buffer();
                }
                let room = match vtable.class {
                    Some(class) => pop_buffer(class),
                    None => allocate(vtable.layout),
                };
                self.buffer = Some((room.cast(), vtable));
                room.cast()
            }
        };
        let cell = buffer.cast::<FutureCell<F>>();
        let header = FutureHeader { vtable };
        // SAFETY: the buffer has the layout in the table, and nothing is in it.
        unsafe {
            cell.write(FutureCell {
                header,
                future: make(),
            });
        }
        // SAFETY: the place is the caller's, and there is no work in it.
        unsafe { self.current.write(Some(ArenaFuture(buffer))) };
        // SAFETY: it was just written, and stays where it is.
        let future = unsafe { Pin::new_unchecked(&mut (*cell.as_ptr()).future) };
        let came = PollOutcome::of(future.poll(cx), exit);
        if came != PollOutcome::Pending {
            // SAFETY: the work is taken out without being dropped, which leaves the future and the
            // buffer to us.
            unsafe { self.current.write(None) };
            // SAFETY: nothing uses it again.
            unsafe { (&raw mut (*cell.as_ptr()).future).drop_in_place() };
        }
        came
    }

    #[inline(always)]
    fn free_buffer(&mut self) {
        let Some((buffer, vtable)) = self.buffer.take() else {
            return;
        };
        // SAFETY: the place is the caller's.
        let work = unsafe { &*self.current };
        if work.as_ref().is_none_or(|work| work.0 != buffer) {
            drop(BufferGuard(buffer.cast(), vtable.class, vtable.layout));
        }
    }
}

impl Drop for FutureArena {
    #[inline(always)]
    fn drop(&mut self) {
        self.free_buffer();
    }
}

/// A buffer that is returned when this is dropped.
pub(super) struct BufferGuard(NonNull<u8>, Option<usize>, Layout);

impl Drop for BufferGuard {
    #[inline]
    fn drop(&mut self) {
        match self.1 {
            Some(class) => push_buffer(class, self.0),
            // SAFETY: it was allocated with this layout, and what was in it is dropped.
            None => unsafe { dealloc(self.0.as_ptr(), self.2) },
        }
    }
}

/// Room for a short-lived value: from the buffers of this thread, if it fits.
pub(super) struct SizeClass {
    class: Option<usize>,
    layout: Layout,
}

impl SizeClass {
    pub(super) const fn of<T>() -> Self {
        let layout = Layout::new::<T>();
        assert!(layout.size() > 0, "what is empty needs no room");
        let class = class_for(layout, 0);
        Self { class, layout }
    }

    #[inline]
    pub(super) fn take(&self) -> NonNull<u8> {
        match self.class {
            Some(class) => pop_buffer(class),
            None => allocate(self.layout),
        }
    }

    /// Returns the room when the result is dropped.
    ///
    /// # Safety
    /// It was taken as room of this kind, and nothing uses it after that.
    #[inline]
    pub(super) const unsafe fn guard(&self, room: NonNull<u8>) -> BufferGuard {
        BufferGuard(room, self.class, self.layout)
    }
}

/// The free buffers of a thread, by size class: each holds the address of the next.
struct FreeLists([Cell<FreeList>; SIZE_CLASSES]);

#[derive(Clone, Copy)]
struct FreeList {
    head: Option<NonNull<u8>>,
    len: u32,
}

/// Number of size classes. Larger futures are put in buffers that are not kept.
const SIZE_CLASSES: usize = 8;
const MIN_CLASS_SIZE: usize = 64;
const ALIGN: usize = 16;

/// The smallest size class for futures, even for those that would fit in a smaller one, so that the
/// futures of a turn share a buffer.
const MIN_FUTURE_CLASS: usize = 2;

/// Maximum number of free buffers in a size class: as many as actors commonly run inside each
/// other, and some more.
const MAX_FREE: u32 = 16;

thread_local! {
    static FREE_LISTS: FreeLists = const {
        FreeLists([const { Cell::new(FreeList { head: None, len: 0 }) }; SIZE_CLASSES])
    };
}

const fn class_size(class: usize) -> usize {
    MIN_CLASS_SIZE << class
}

const fn layout_of(class: usize) -> Layout {
    match Layout::from_size_align(class_size(class), ALIGN) {
        Ok(layout) => layout,
        Err(_) => panic!("the sizes are small, and the alignment is a power of two"),
    }
}

const fn class_for(layout: Layout, least: usize) -> Option<usize> {
    let mut class = least;
    while class < SIZE_CLASSES {
        if layout.size() <= class_size(class) && layout.align() <= ALIGN {
            return Some(class);
        }
        class += 1;
    }
    None
}

fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: the layout is that of a value that is not empty.
    let room = unsafe { alloc(layout) };
    NonNull::new(room).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Takes a buffer of this thread, or allocates one.
#[inline]
fn pop_buffer(class: usize) -> NonNull<u8> {
    let kept = FREE_LISTS.try_with(|free| {
        let list = free.0[class].get();
        let head = list.head?;
        // SAFETY: a free buffer holds the address of the next one.
        let next = unsafe { head.cast::<Option<NonNull<u8>>>().read() };
        free.0[class].set(FreeList {
            head: next,
            len: list.len - 1,
        });
        Some(head)
    });
    match kept {
        Ok(Some(room)) => room,
        // A thread that is ending keeps none.
        _ => allocate(layout_of(class)),
    }
}

/// Gives a buffer to this thread, which need not be the one that it came from.
#[inline]
fn push_buffer(class: usize, room: NonNull<u8>) {
    let kept = FREE_LISTS.try_with(|free| {
        let list = free.0[class].get();
        if list.len == MAX_FREE {
            return false;
        }
        // SAFETY: the buffer is ours, has room for an address, and is aligned for one.
        unsafe { room.cast::<Option<NonNull<u8>>>().write(list.head) };
        free.0[class].set(FreeList {
            head: Some(room),
            len: list.len + 1,
        });
        true
    });
    if !kept.unwrap_or(false) {
        // SAFETY: the buffers of a size class have its layout, and nothing else has this one.
        unsafe { dealloc(room.as_ptr(), layout_of(class)) };
    }
}

impl Drop for FreeLists {
    fn drop(&mut self) {
        for (class, list) in self.0.iter().enumerate() {
            let mut head = list.get().head;
            while let Some(room) = head {
                // SAFETY: as in `take`.
                head = unsafe { room.cast::<Option<NonNull<u8>>>().read() };
                // SAFETY: as in `put`.
                unsafe { dealloc(room.as_ptr(), layout_of(class)) };
            }
        }
    }
}
