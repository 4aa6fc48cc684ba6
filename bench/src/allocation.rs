//! An allocator that counts for each thread how often it was asked.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator with a counter in front.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counting;

/// Runs the work and returns its result with the number of allocations (and reallocations).
pub fn allocations<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = ASKED.with(Cell::get);
    let result = work();
    (result, ASKED.with(Cell::get) - before)
}

fn count() {
    // A thread that is ending has no counter any more, and nobody reads it.
    let _ = ASKED.try_with(|asked| asked.set(asked.get() + 1));
}

#[expect(
    unsafe_code,
    reason = "counting allocations needs an allocator, which is an unsafe trait"
)]
// SAFETY: every call goes to `System` unchanged, which upholds the contract; counting allocates
// nothing (a const thread local without a destructor).
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}
