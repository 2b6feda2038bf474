//! Work that takes long, on all cores.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does `work` with each of `items`, on all cores; returns what came of each, in their order.
///
/// # Panics
/// The work did, with one of them.
pub fn on_all_cores<I: Sync, R: Send>(items: &[I], work: impl Fn(&I) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let place = next.fetch_add(1, Ordering::Relaxed);
        items.get(place).map(|item| (place, work(item)))
    };
    let worker = || std::iter::from_fn(take).collect::<Vec<_>>();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();

        workers
            .into_iter()
            .flat_map(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::on_all_cores;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn each_item_is_worked_on_once_and_a_panic_is_passed_on() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(on_all_cores(&items, |item| item * 2), (0..200).step_by(2).collect::<Vec<_>>());
        let fails = || on_all_cores(&items, |item| assert!(*item != 70, "seventy"));
        let panic = catch_unwind(AssertUnwindSafe(fails)).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"seventy"));
    }
}
