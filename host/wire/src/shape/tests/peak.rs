//! Counts what the current thread allocates, to prove that lengths cannot drive memory.
#![expect(unsafe_code, reason = "a counting allocator can only be written with unsafe; tests only")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Runs `work` and returns the most bytes that it held at a time beyond what was held before.
pub(super) fn during<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let done = work();
    (done, usize::try_from(PEAK.get() - before).unwrap_or(0))
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(change: isize) {
    let now = NOW.get() + change;
    NOW.set(now);
    PEAK.set(PEAK.get().max(now));
}

// SAFETY: every call is handed on to the system allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller keeps `dealloc`'s contract, and the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}
