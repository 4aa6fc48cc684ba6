//! Buffers for the work of turns.
//!
//! What a hook does is a future. It is written into a buffer of the thread and worked on there.
//! What is done leaves its buffer to the next of its turn; what waits keeps it until it is done or
//! dropped. So an actor that is idle has no room for its largest hook, and one that does not wait
//! costs no allocation. What else lives for a moment is kept in the same way ([`Room`]).

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::task::{Context, Poll};

use crate::exit::Exit;

/// What a piece of work came to: the incarnation goes on, or ends.
pub(super) type Done = Result<(), Exit>;

/// Where a piece of work came to, without why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// It waits.
    Waits,
    /// It is done, and the incarnation goes on.
    Done,
    /// The incarnation ends.
    Ends,
}

impl Came {
    /// Says where it came to, and puts the exit where that is wanted: what is commonly none is not
    /// handed from one to the next.
    #[inline(always)]
    pub(super) fn of(polled: Poll<Done>, exit: &mut Option<Exit>) -> Self {
        match polled {
            Poll::Pending => Self::Waits,
            Poll::Ready(Ok(())) => Self::Done,
            Poll::Ready(Err(why)) => {
                *exit = Some(why);
                Self::Ends
            }
        }
    }
}

/// A future in a buffer of its own, without its type.
pub(super) struct Work(NonNull<Head>);

// SAFETY: `begin` takes futures that are `Send`, and nobody else has the buffer.
unsafe impl Send for Work {}

/// What stands in front of a future.
struct Head {
    table: &'static Table,
}

/// What is known of a future by its type.
struct Table {
    shelf: Option<usize>,
    layout: Layout,
    poll: unsafe fn(NonNull<Head>, &mut Context<'_>) -> Poll<Done>,
    drop: unsafe fn(NonNull<Head>),
}

impl Table {
    /// Whether a buffer for futures of this type is one for those of another.
    #[inline(always)]
    fn fits_for(&self, other: &'static Self) -> bool {
        ptr::eq(self, other) || self.shelf.is_some() && self.shelf == other.shelf
    }
}

#[repr(C)]
struct Full<F> {
    head: Head,
    future: F,
}

impl<F: Future<Output = Done>> Full<F> {
    const TABLE: Table = {
        let exact = Layout::new::<Self>();
        let shelf = shelf_for(exact, COMMON);
        Table {
            shelf,
            layout: match shelf {
                Some(shelf) => layout_of(shelf),
                None => exact,
            },
            poll: |head, cx| {
                // SAFETY: the table stands before a future of this type, which is not moved.
                let full = unsafe { head.cast::<Self>().as_mut() };
                // SAFETY: as above.
                unsafe { Pin::new_unchecked(&mut full.future) }.poll(cx)
            },
            drop: |head| {
                // SAFETY: the table stands before a future of this type, which nobody uses again.
                unsafe { (&raw mut (*head.cast::<Self>().as_ptr()).future).drop_in_place() }
            },
        }
    };
}

impl Work {
    #[inline]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Done> {
        // SAFETY: the buffer is ours, and what was put in is there until we are dropped.
        unsafe { (self.0.as_ref().table.poll)(self.0, cx) }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // SAFETY: as in `poll`.
        let table = unsafe { self.0.as_ref() }.table;
        // Also if the future panics.
        let _back = Back(self.0.cast(), table.shelf, table.layout);
        // SAFETY: it is dropped once, here.
        unsafe { (table.drop)(self.0) };
    }
}

/// Where a turn does its work: a buffer for one future after another, and the place where it says
/// which is in it. The buffer is the work's while there is one, else the desk's.
pub(super) struct Desk {
    place: *mut Option<Work>,
    /// With what is known of the futures that it is for.
    buffer: Option<(NonNull<Head>, &'static Table)>,
}

impl Desk {
    /// # Safety
    /// The place is the caller's, and nobody else looks at it before the desk is gone.
    #[inline(always)]
    pub(super) const unsafe fn new(place: *mut Option<Work>) -> Self {
        Self {
            place,
            buffer: None,
        }
    }

    /// Makes a future on the desk, there and not somewhere else to be copied, and polls it once.
    /// While it waits, and if it panics, it is in the place, with the buffer. If it ends the
    /// incarnation, it says why in `exit`.
    ///
    /// # Safety
    /// There is no work in the place, and what the future borrows outlives it.
    // Inlined, or the room for all that the future may come to hold is copied.
    #[inline(always)]
    pub(super) unsafe fn begin<F: Future<Output = Done> + Send>(
        &mut self,
        make: impl FnOnce() -> F,
        exit: &mut Option<Exit>,
        cx: &mut Context<'_>,
    ) -> Came {
        let table = const { &Full::<F>::TABLE };
        let buffer = match self.buffer {
            Some((buffer, known)) if known.fits_for(table) => buffer,
            other => {
                if other.is_some() {
                    self.tidy();
                }
                let room = match table.shelf {
                    Some(shelf) => take(shelf),
                    None => allocate(table.layout),
                };
                self.buffer = Some((room.cast(), table));
                room.cast()
            }
        };
        let full = buffer.cast::<Full<F>>();
        let head = Head { table };
        // SAFETY: the buffer has the layout in the table, and nothing is in it.
        unsafe {
            full.write(Full {
                head,
                future: make(),
            });
        }
        // SAFETY: the place is the caller's, and there is no work in it.
        unsafe { self.place.write(Some(Work(buffer))) };
        // SAFETY: it was just written, and stays where it is.
        let future = unsafe { Pin::new_unchecked(&mut (*full.as_ptr()).future) };
        let came = Came::of(future.poll(cx), exit);
        if came != Came::Waits {
            // SAFETY: the work is taken out without being dropped, which leaves the future and
            // the buffer to us.
            unsafe { self.place.write(None) };
            // SAFETY: nobody uses it again.
            unsafe { (&raw mut (*full.as_ptr()).future).drop_in_place() };
        }
        came
    }

    #[inline(always)]
    fn tidy(&mut self) {
        let Some((buffer, table)) = self.buffer.take() else {
            return;
        };
        // SAFETY: the place is the caller's.
        let work = unsafe { &*self.place };
        if work.as_ref().is_none_or(|work| work.0 != buffer) {
            drop(Back(buffer.cast(), table.shelf, table.layout));
        }
    }
}

impl Drop for Desk {
    #[inline(always)]
    fn drop(&mut self) {
        self.tidy();
    }
}

/// A buffer on its way back.
pub(super) struct Back(NonNull<u8>, Option<usize>, Layout);

impl Drop for Back {
    #[inline]
    fn drop(&mut self) {
        match self.1 {
            Some(shelf) => put(shelf, self.0),
            // SAFETY: it was allocated with this layout, and what was in it is dropped.
            None => unsafe { dealloc(self.0.as_ptr(), self.2) },
        }
    }
}

/// Room for something that is soon given back: from the buffers of this thread, if it fits.
pub(super) struct Room {
    shelf: Option<usize>,
    layout: Layout,
}

impl Room {
    pub(super) const fn of<T>() -> Self {
        let layout = Layout::new::<T>();
        assert!(layout.size() > 0, "what is empty needs no room");
        let shelf = shelf_for(layout, 0);
        Self { shelf, layout }
    }

    #[inline]
    pub(super) fn take(&self) -> NonNull<u8> {
        match self.shelf {
            Some(shelf) => take(shelf),
            None => allocate(self.layout),
        }
    }

    /// Gives it back when that is dropped.
    ///
    /// # Safety
    /// It was taken as room of this kind, and nobody uses it after that.
    #[inline]
    pub(super) const unsafe fn back(&self, room: NonNull<u8>) -> Back {
        Back(room, self.shelf, self.layout)
    }
}

/// The buffers of a thread that are free, by size: each holds the address of the next.
struct Shelves([Cell<Pile>; SHELVES]);

#[derive(Clone, Copy)]
struct Pile {
    top: Option<NonNull<u8>>,
    height: u32,
}

/// Larger futures are put in buffers that are not kept.
const SHELVES: usize = 8;
const SMALLEST: usize = 64;
const ALIGN: usize = 16;

/// The shelf for futures that would fit on a smaller one too, so that those of a turn share a
/// buffer.
const COMMON: usize = 2;

/// As many are kept as actors are commonly run inside each other, and some more.
const HEIGHT: u32 = 16;

thread_local! {
    static FREE: Shelves = const {
        Shelves([const { Cell::new(Pile { top: None, height: 0 }) }; SHELVES])
    };
}

const fn size_of_shelf(shelf: usize) -> usize {
    SMALLEST << shelf
}

const fn layout_of(shelf: usize) -> Layout {
    match Layout::from_size_align(size_of_shelf(shelf), ALIGN) {
        Ok(layout) => layout,
        Err(_) => panic!("the sizes are small, and the alignment is a power of two"),
    }
}

const fn shelf_for(layout: Layout, least: usize) -> Option<usize> {
    let mut shelf = least;
    while shelf < SHELVES {
        if layout.size() <= size_of_shelf(shelf) && layout.align() <= ALIGN {
            return Some(shelf);
        }
        shelf += 1;
    }
    None
}

fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: the layout is that of a value that is not empty.
    let room = unsafe { alloc(layout) };
    NonNull::new(room).unwrap_or_else(|| handle_alloc_error(layout))
}

/// A buffer of this thread, or a new one.
#[inline]
fn take(shelf: usize) -> NonNull<u8> {
    let kept = FREE.try_with(|free| {
        let pile = free.0[shelf].get();
        let top = pile.top?;
        // SAFETY: a free buffer holds the address of the next one.
        let next = unsafe { top.cast::<Option<NonNull<u8>>>().read() };
        free.0[shelf].set(Pile {
            top: next,
            height: pile.height - 1,
        });
        Some(top)
    });
    match kept {
        Ok(Some(room)) => room,
        // A thread on its way out keeps none.
        _ => allocate(layout_of(shelf)),
    }
}

/// Gives a buffer to this thread, which need not be the one that had it.
#[inline]
fn put(shelf: usize, room: NonNull<u8>) {
    let kept = FREE.try_with(|free| {
        let pile = free.0[shelf].get();
        if pile.height == HEIGHT {
            return false;
        }
        // SAFETY: the buffer is ours, has room for an address, and is aligned for one.
        unsafe { room.cast::<Option<NonNull<u8>>>().write(pile.top) };
        free.0[shelf].set(Pile {
            top: Some(room),
            height: pile.height + 1,
        });
        true
    });
    if !kept.unwrap_or(false) {
        // SAFETY: the buffers of a shelf have its layout, and this one is nobody else's.
        unsafe { dealloc(room.as_ptr(), layout_of(shelf)) };
    }
}

impl Drop for Shelves {
    fn drop(&mut self) {
        for (shelf, pile) in self.0.iter().enumerate() {
            let mut top = pile.get().top;
            while let Some(room) = top {
                // SAFETY: as in `take`.
                top = unsafe { room.cast::<Option<NonNull<u8>>>().read() };
                // SAFETY: as in `put`.
                unsafe { dealloc(room.as_ptr(), layout_of(shelf)) };
            }
        }
    }
}
