//! The lock around the index, and lookups that are handed over to whoever has it: in all orders in
//! which the threads may come, as far as each is interrupted three times at most.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../src/lock.rs"]
mod lock;
#[path = "../src/together.rs"]
mod together;

use index::Lookup;
use loom::sync::Arc;

use inside::Core;
use lock::Lock;
use together::Together;

/// In place of the library's.
#[derive(Debug)]
pub(crate) enum Error {
    WithinItself,
    Panicked,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

mod sync {
    use std::collections::hash_map::DefaultHasher;
    use std::hash::{Hash as _, Hasher as _};

    pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

    pub(crate) fn this_thread() -> usize {
        let mut hasher = DefaultHasher::new();
        loom::thread::current().id().hash(&mut hasher);
        hasher.finish() as usize | 1
    }
}

mod inside {
    use std::marker::PhantomData;

    /// What stands for every key, and how often it was changed.
    #[derive(Default)]
    pub(crate) struct Core<'d> {
        pub(crate) changes: u32,
        pub(crate) medium: PhantomData<&'d ()>,
    }

    impl Core<'_> {
        pub(crate) fn lookup(&mut self) -> super::Changes {
            super::Changes(self.changes)
        }
    }
}

/// Looks up how often something was changed.
struct Changes(u32);

impl Lookup for Changes {
    fn get(&mut self, _: &[u8], _: u32, _: &mut [u8]) -> index::Result<Option<u32>> {
        Ok(Some(self.0))
    }

    fn prefetch(&mut self, _: &[&[u8]]) -> index::Result<()> {
        Ok(())
    }
}

/// A value as long as there were changes.
fn read(index: &mut dyn Lookup, key: &[u8]) -> together::Found {
    Ok(index.get(key, 0, &mut [])?.map(|changes| vec![0; changes as usize]))
}

struct Shared {
    lock: Lock<Core<'static>>,
    together: Together,
}

impl Shared {
    fn changes(&self) -> u32 {
        self.together.get(&self.lock, b"any").unwrap().unwrap().unwrap().len() as u32
    }
}

fn in_all_orders(threads: fn(&Arc<Shared>)) {
    let mut orders = loom::model::Builder::new();
    orders.preemption_bound = Some(3);
    orders.check(move || {
        let lock = Lock::new(Core::default());
        let shared = Arc::new(Shared { lock, together: Together::new(read) });
        threads(&shared);
        assert_eq!(shared.together.waiting(), (0, 0), "nothing is left");
    });
}

fn reader(shared: &Arc<Shared>) -> loom::thread::JoinHandle<u32> {
    let shared = Arc::clone(shared);
    loom::thread::spawn(move || shared.changes())
}

#[test]
fn lookups_are_answered_by_each_other_or_by_a_writer_in_the_midst_of_its_work() {
    in_all_orders(|shared| {
        let readers = [reader(shared), reader(shared)];
        let mut core = shared.lock.lock().unwrap();
        if shared.together.answer(&mut core.lookup()) {
            shared.lock.wake();
        }
        core.changes += 1;
        drop(core);
        for reader in readers {
            assert!(reader.join().unwrap() <= 1);
        }
        assert_eq!(shared.changes(), 1);
    });
}

#[test]
fn a_lookup_that_begins_behind_a_change_finds_it() {
    in_all_orders(|shared| {
        let other = reader(shared);
        shared.lock.lock().unwrap().changes += 1;
        assert_eq!(shared.changes(), 1);
        assert!(other.join().unwrap() <= 1);
    });
}

#[test]
fn a_writer_between_whose_steps_others_come_ends() {
    in_all_orders(|shared| {
        let other = reader(shared);
        for _ in 0..2 {
            let mut core = shared.lock.lock().unwrap();
            if shared.together.answer(&mut core.lookup()) {
                shared.lock.wake();
            }
            core.changes += 1;
        }
        assert!(other.join().unwrap() <= 2);
        assert!(!shared.lock.is_waited_for());
    });
}
