//! What threads wait with. A test of all orders in which they may come has its own in place of it.

use std::ptr;

pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// A thread, by a number that no other thread that lives has; never 0.
pub(crate) fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| ptr::from_ref(here).addr())
}
