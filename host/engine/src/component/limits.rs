//! What a module may have (I7).

use wasmtime::ResourceLimiter;

/// Limits for each instance of a module; the host alone sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory, all of an instance's memories together, in bytes.
    pub memory_bytes: usize,
    /// Elements of each table.
    pub table_elements: usize,
    /// Bytes of strings and lists that one callback or answer may hand to the host. A module that hands over more traps.
    /// Where a topic's records may be rewritten, [`MAX_REWRITTEN_LEN`](crate::MAX_REWRITTEN_LEN) comes on top.
    pub handover_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_bytes: 64 << 20, table_elements: 10_000, handover_bytes: 1 << 20 }
    }
}

/// Core instances, tables and memories of an instance: a component is a handful of each.
const MAX_PARTS: usize = 32;

/// Counts what an instance has, and notes what it was denied.
#[derive(Debug)]
pub(super) struct Limiter {
    limits: Limits,
    memory_bytes: usize,
    denied: Option<usize>,
}

impl Limiter {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, memory_bytes: 0, denied: None }
    }

    /// Forgets earlier denials.
    pub(super) fn begin(&mut self) {
        self.denied = None;
    }

    /// What the module wanted in vain since the call began, in bytes.
    pub(super) fn denied(&self) -> Option<usize> {
        self.denied
    }

    /// What the memories have, in bytes; they never shrink.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    pub(super) fn limit(&self) -> usize {
        self.limits.memory_bytes
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let wanted = self.memory_bytes.saturating_add(desired.saturating_sub(current));
        let allowed = wanted <= self.limits.memory_bytes;
        if allowed {
            self.memory_bytes = wanted;
        } else {
            self.denied = Some(wanted);
        }
        Ok(allowed)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= self.limits.table_elements)
    }

    fn instances(&self) -> usize {
        MAX_PARTS
    }

    fn tables(&self) -> usize {
        MAX_PARTS
    }

    fn memories(&self) -> usize {
        MAX_PARTS
    }
}
