//! An allocator that counts: for each thread how often it was asked, and, while somebody watches,
//! how many bytes of the whole program are in use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

/// A shared counter costs every allocation a cache line, so it runs only while it is read.
static WATCHED: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicI64 = AtomicI64::new(0);

/// The system's allocator with counters in front.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counting;

/// Runs the work and returns its result with the number of allocations (and reallocations).
pub fn allocations<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = ASKED.with(Cell::get);
    let result = work();
    (result, ASKED.with(Cell::get) - before)
}

/// Counts the bytes that the program asks for and gives back, on all threads, until it is dropped.
#[derive(Debug)]
pub struct LiveBytes(());

impl LiveBytes {
    /// Starts at zero.
    #[must_use]
    pub fn watch() -> Self {
        LIVE.store(0, Ordering::SeqCst);
        WATCHED.store(true, Ordering::SeqCst);
        Self(())
    }

    /// Bytes asked for and not given back since the start, as they were asked for: what the
    /// allocator itself adds is not in it.
    #[must_use]
    pub fn now(&self) -> i64 {
        LIVE.load(Ordering::SeqCst)
    }
}

impl Drop for LiveBytes {
    fn drop(&mut self) {
        WATCHED.store(false, Ordering::SeqCst);
    }
}

fn count(bytes: usize) {
    // A thread that is ending has no counter any more, and nobody reads it.
    let _ = ASKED.try_with(|asked| asked.set(asked.get() + 1));
    add(bytes);
}

fn add(bytes: usize) {
    if WATCHED.load(Ordering::Relaxed) {
        LIVE.fetch_add(bytes.cast_signed() as i64, Ordering::Relaxed);
    }
}

fn subtract(bytes: usize) {
    if WATCHED.load(Ordering::Relaxed) {
        LIVE.fetch_sub(bytes.cast_signed() as i64, Ordering::Relaxed);
    }
}

#[expect(
    unsafe_code,
    reason = "counting allocations needs an allocator, which is an unsafe trait"
)]
// SAFETY: every call goes to `System` unchanged, which upholds the contract; counting allocates
// nothing (a const thread local without a destructor, and statics).
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        subtract(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        subtract(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}
