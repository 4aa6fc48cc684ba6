//! Buffers for the work of turns.
//!
//! The work of a turn is a future. It is written into a buffer of the thread and worked on there.
//! What is done gives its buffer back; what waits keeps it until it is done or dropped. So an actor
//! that is idle has no room for its largest hook, and one that does not wait costs no allocation.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

/// A future in a buffer of its own, without its type.
pub(super) struct Work<T: 'static>(NonNull<Head<T>>);

// SAFETY: `Work::new` takes futures that are `Send`, and nobody else has the buffer.
unsafe impl<T: 'static> Send for Work<T> {}

/// What stands in front of a future.
struct Head<T: 'static> {
    table: &'static Table<T>,
}

/// What is known of a future by its type.
struct Table<T: 'static> {
    shelf: Option<usize>,
    layout: Layout,
    poll: unsafe fn(NonNull<Head<T>>, &mut Context<'_>) -> Poll<T>,
    drop: unsafe fn(NonNull<Head<T>>),
}

#[repr(C)]
struct Full<T: 'static, F> {
    head: Head<T>,
    future: F,
}

impl<T: 'static, F: Future<Output = T>> Full<T, F> {
    const TABLE: Table<T> = {
        let exact = Layout::new::<Self>();
        let shelf = shelf_for(exact);
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

impl<T: 'static> Work<T> {
    /// Makes a future in a buffer: there, not somewhere else to be copied.
    ///
    /// # Safety
    /// What the future borrows outlives the work.
    // Inlined, or the room for all that the future may come to hold is copied.
    #[inline(always)]
    pub(super) unsafe fn new<F: Future<Output = T> + Send>(make: impl FnOnce() -> F) -> Self {
        let table = const { &Full::<T, F>::TABLE };
        let room = match table.shelf {
            Some(shelf) => take(shelf),
            None => allocate(table.layout),
        };
        let full = room.cast::<Full<T, F>>();
        let head = Head { table };
        // SAFETY: the buffer has the layout in the table, which is enough, and is ours.
        unsafe {
            full.write(Full {
                head,
                future: make(),
            });
        }
        Self(full.cast())
    }

    #[inline]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        // SAFETY: the buffer is ours, and what was put in is there until we are dropped.
        unsafe { (self.0.as_ref().table.poll)(self.0, cx) }
    }
}

impl<T: 'static> Drop for Work<T> {
    fn drop(&mut self) {
        // SAFETY: as in `poll`.
        let table = unsafe { self.0.as_ref() }.table;
        // Also if the future panics.
        let _back = Back(self.0.cast(), table.shelf, table.layout);
        // SAFETY: it is dropped once, here.
        unsafe { (table.drop)(self.0) };
    }
}

/// A buffer on its way back.
struct Back(NonNull<u8>, Option<usize>, Layout);

impl Drop for Back {
    fn drop(&mut self) {
        match self.1 {
            Some(shelf) => put(shelf, self.0),
            // SAFETY: it was allocated with this layout, and what was in it is dropped.
            None => unsafe { dealloc(self.0.as_ptr(), self.2) },
        }
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
const SHELVES: usize = 6;
const SMALLEST: usize = 256;
const ALIGN: usize = 16;

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

const fn shelf_for(layout: Layout) -> Option<usize> {
    let mut shelf = 0;
    while shelf < SHELVES {
        if layout.size() <= size_of_shelf(shelf) && layout.align() <= ALIGN {
            return Some(shelf);
        }
        shelf += 1;
    }
    None
}

fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: the layout is that of a value with a head, so it is not empty.
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
