//! What a panic says, told before it becomes a trap.

extern crate std;

use alloc::format;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use super::bindings::verbatim::produce::trace;

/// From now on a panic's place and text go to the host's log, by `trace`; the trap follows.
pub(super) fn are_told() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| panic::set_hook(alloc::boxed::Box::new(tell)));
}

fn tell(panic: &PanicHookInfo<'_>) {
    let text = panic.payload_as_str().unwrap_or("no text");
    match panic.location() {
        Some(place) => trace::line(&format!("panic at {}:{}: {text}", place.file(), place.line())),
        None => trace::line(&format!("panic: {text}")),
    }
}
