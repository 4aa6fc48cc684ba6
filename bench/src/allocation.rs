//! A counting allocator. It counts the allocations of each thread and, while a [`LiveBytes`]
//! exists, the bytes that the whole program has in use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// `true` while a [`LiveBytes`] exists. Updating a shared counter costs every allocation a cache
/// line, so the counter only runs while it is read.
static IS_COUNTING_BYTES: AtomicBool = AtomicBool::new(false);
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

/// The system allocator with counters in front of it.
#[derive(Debug, Default, Clone, Copy)]
pub struct CountingAllocator;

/// Runs `work` and returns its result and the number of allocations (including reallocations) that
/// it made.
pub fn allocations<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATIONS.with(Cell::get);
    let result = work();
    (result, ALLOCATIONS.with(Cell::get) - before)
}

/// Counts the bytes that the program allocates and frees, on all threads, until it is dropped.
#[derive(Debug)]
pub struct LiveBytes(());

impl LiveBytes {
    /// Starts counting at zero.
    #[must_use]
    pub fn watch() -> Self {
        LIVE_BYTES.store(0, Ordering::SeqCst);
        IS_COUNTING_BYTES.store(true, Ordering::SeqCst);
        Self(())
    }

    /// Returns the bytes allocated and not freed since the start, by requested size: the overhead
    /// of the allocator itself is not included.
    #[must_use]
    pub fn now(&self) -> i64 {
        LIVE_BYTES.load(Ordering::SeqCst)
    }
}

impl Drop for LiveBytes {
    fn drop(&mut self) {
        IS_COUNTING_BYTES.store(false, Ordering::SeqCst);
    }
}

fn count(bytes: usize) {
    // The counter of a thread that is exiting is gone already, and nothing would read it.
    let _ = ALLOCATIONS.try_with(|asked| asked.set(asked.get() + 1));
    add(bytes);
}

fn add(bytes: usize) {
    if IS_COUNTING_BYTES.load(Ordering::Relaxed) {
        LIVE_BYTES.fetch_add(bytes.cast_signed() as i64, Ordering::Relaxed);
    }
}

fn subtract(bytes: usize) {
    if IS_COUNTING_BYTES.load(Ordering::Relaxed) {
        LIVE_BYTES.fetch_sub(bytes.cast_signed() as i64, Ordering::Relaxed);
    }
}

#[expect(
    unsafe_code,
    reason = "counting allocations needs an allocator, which is an unsafe trait"
)]
// SAFETY: every call goes to `System` unchanged, which upholds the contract. Counting itself does
// not allocate: it uses a const thread local without a destructor, and statics.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        subtract(layout.size());
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        subtract(layout.size());
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}
