//! The heap that a tree takes: every allocation of a thread counts, except those of the device
//! below and of the test itself.

use allocation_counter::opt_out;

/// Does `work`, whose allocations don't count.
pub(crate) fn uncounted<R>(work: impl FnOnce() -> R) -> R {
    let mut outcome = None;
    opt_out(|| outcome = Some(work()));
    outcome.unwrap()
}
