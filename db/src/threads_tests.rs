//! Threads that share a database: who waits for whom.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::thread;

use index::Lookup;

use crate::lock::Lock;
use crate::together::{Found, Read, Together};
use crate::{Database, Error, Options, Result};

const THREADS: u8 = 8;

fn numbers() -> (tempfile::TempDir, Database<'static>) {
    let folder = tempfile::tempdir().expect("there is a folder");
    let numbers = Database::create(folder.path().join("a.db"), &Options::new());
    let numbers = numbers.expect("a database is made");
    for number in 0..THREADS {
        numbers.put([number], [number; 3]).expect("it is put");
    }
    (folder, numbers)
}

/// A value of three bytes.
const READ: Read = |index, key| {
    let mut value = [0; 3];
    Ok(index.get(key, 0, &mut value)?.map(|_| value.to_vec()))
};

/// Has each thread look its number up by `read` while the index is taken until all of them wait
/// for it, and tells what comes of each; `None` is a panic. Who has the index does something
/// `meanwhile`.
fn look_up_at_once(
    numbers: &Database<'_>,
    read: Read,
    meanwhile: impl FnOnce(&Together, &mut dyn Lookup),
) -> Vec<Option<Result<Found>>> {
    let together = Together::new(read);
    let mut taken = numbers.core.lock().expect("nobody has it");
    let found = thread::scope(|scope| {
        let (together, core) = (&together, &numbers.core);
        let look_up = |number| scope.spawn(move || together.get(core, &[number]));
        let all: Vec<_> = (0..THREADS).map(look_up).collect();
        while together.waiting().0 < usize::from(THREADS) {
            thread::yield_now();
        }
        meanwhile(together, &mut taken.lookup());
        drop(taken);
        all.into_iter().map(|thread| thread.join().ok()).collect()
    });
    assert_eq!(together.waiting(), (0, 0));
    found
}

#[test]
fn lookups_of_threads_that_wait_are_each_answered() {
    let (_folder, numbers) = numbers();
    for round in 0..50 {
        let all = look_up_at_once(&numbers, READ, |together, index| {
            // A writer answers them, or the index gets free first.
            if round % 2 == 0 {
                together.answer(index);
            }
        });
        for (number, found) in (0..THREADS).zip(all) {
            let found = found.expect("no panic").expect("the index is free").expect("it reads");
            assert_eq!(found, Some(vec![number; 3]));
        }
    }
}

#[test]
fn a_panic_in_a_lookup_ends_all_that_wait_for_it() {
    let (_folder, numbers) = numbers();
    let all = look_up_at_once(&numbers, |_, _| panic!("on purpose"), |_, _| {});
    let panics = all.iter().filter(|found| found.is_none()).count();
    let refusals = all.iter().filter(|it| matches!(it, Some(Err(Error::Panicked)))).count();
    assert_eq!((panics, refusals), (1, usize::from(THREADS) - 1));
}

#[test]
fn a_thread_that_has_the_index_is_refused() {
    let (_folder, numbers) = numbers();
    let _taken = numbers.core.lock().expect("nobody has it");
    assert!(matches!(numbers.get([1]), Err(Error::WithinItself)));
}

#[test]
fn a_value_that_a_panic_left_is_not_given_out() {
    let lock = Lock::new(1);
    let panicked = thread::scope(|scope| {
        scope.spawn(|| lock.lock().map(|_guard| panic!("on purpose"))).join()
    });
    assert!(panicked.is_err());
    assert!(matches!(lock.lock(), Err(Error::Panicked)));
}

#[test]
fn who_asks_again_and_again_lets_others_in() {
    let lock = Lock::new(0_u32);
    thread::scope(|scope| {
        let mut guard = lock.lock().unwrap();
        let other = scope.spawn(|| *lock.lock().unwrap() += 1);
        while !lock.is_waited_for() {
            thread::yield_now();
        }
        drop(guard);
        guard = lock.lock().unwrap();
        assert_eq!(*guard, 1, "the other came first");
        drop(guard);
        other.join().unwrap();
    });
}
