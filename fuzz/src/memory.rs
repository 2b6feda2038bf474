//! How much memory something takes.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The most bytes that `work` held at a time, and what it gave.
///
/// # Panics
/// As `work`.
pub fn memory_of<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let mut outcome = None;
    // The counter must see its end even if the work panics.
    let taken = allocation_counter::measure(|| {
        outcome = Some(catch_unwind(AssertUnwindSafe(work)));
    });
    let outcome = outcome.expect("it was measured");
    (taken.bytes_max, outcome.unwrap_or_else(|panic| resume_unwind(panic)))
}
