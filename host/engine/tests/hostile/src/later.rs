//! Calls the host when the module's call is over: as the host lets go of the refusal's text, memory is given back, and who
//! keeps the memory may call.
#![expect(unsafe_code, reason = "an allocator is written so")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bindings::verbatim::produce::log;

#[global_allocator]
static MEMORY: Memory = Memory { size: AtomicUsize::new(0) };

/// The usual memory, which calls the host once when a piece of some size is given back.
struct Memory {
    /// In bytes; 0 = never.
    size: AtomicUsize,
}

/// A text that calls the host when it is given back.
pub(crate) fn calling_text() -> String {
    // No other piece of memory has this size.
    let text = "x".repeat(4_099);
    MEMORY.size.store(text.len(), Ordering::Relaxed);
    text
}

// SAFETY: everything is passed on as it comes to the system's allocator, which keeps what the trait asks for.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if self.size.load(Ordering::Relaxed) == layout.size() {
            self.size.store(0, Ordering::Relaxed);
            log::duplicate(0, 0);
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }
}
