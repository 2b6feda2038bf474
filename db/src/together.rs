//! Lookups of several threads, made together.
//!
//! One thread at a time has the index. What others look up meanwhile gathers; one of them then
//! brings the pages of all at once, and answers all. So as many reads are in flight as threads
//! wait, with one lock around the index. A writer answers them, too, while it merges: so they don't
//! wait for a merge.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use index::Lookup;

use crate::Result;
use crate::inside::Core;
use crate::turns::Lock;

/// Lookups that are made together, at most.
pub(crate) const AT_ONCE: usize = 32;

/// What a lookup finds: a value, or none.
pub(crate) type Found = index::Result<Option<Vec<u8>>>;

/// How a key of the tree is looked up.
type Read = fn(&mut dyn Lookup, &[u8]) -> Found;

/// The lookups of all threads.
pub(crate) struct Together {
    read: Read,
    state: Mutex<State>,
    /// Some are answered, or nobody leads any more.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// True while one of the threads that ask waits for the index, or answers.
    is_led: bool,
    /// The number of the next that is asked.
    next: u64,
    asked: Vec<(u64, Vec<u8>)>,
    answered: Vec<(u64, Found)>,
}

impl Together {
    /// Lookups as `read` makes them.
    pub(crate) fn new(read: Read) -> Self {
        Together { read, state: Mutex::default(), changed: Condvar::new() }
    }

    /// What stands for a key of the tree. It may be another thread that reads it.
    ///
    /// # Errors
    /// This thread has the index already, or a panic left it half changed.
    pub(crate) fn get(&self, core: &Lock<Core<'_>>, key: &[u8]) -> Result<Found> {
        if let Some(mut core) = core.try_lock()? {
            return Ok((self.read)(&mut &mut *core.index, key));
        }
        // Given up with the state at hand for it.
        let asking = self.ask(key);
        let mut state = self.state();
        loop {
            let is_own = |(asked, _): &(u64, Found)| *asked == asking.number;
            if let Some(place) = state.answered.iter().position(is_own) {
                return Ok(state.answered.swap_remove(place).1);
            }
            if state.is_led {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.is_led = true;
            drop(state);
            let lead = Lead(self);
            self.answer(&mut &mut *core.lock()?.index);
            drop(lead);
            state = self.state();
        }
    }

    fn ask(&self, key: &[u8]) -> Asking<'_> {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.asked.push((number, key.to_vec()));
        Asking { together: self, number }
    }

    /// Answers what was asked so far.
    pub(crate) fn answer(&self, index: &mut dyn Lookup) {
        let mut state = self.state();
        if state.asked.is_empty() {
            return;
        }
        let count = state.asked.len().min(AT_ONCE);
        let mut answers = Answers {
            together: self,
            asked: state.asked.drain(..count).collect(),
            found: Vec::new(),
        };
        drop(state);
        let keys: Vec<&[u8]> = answers.asked.iter().map(|(_, key)| key.as_slice()).collect();
        // What can't be read is reported by the lookups that need it.
        let _ = index.prefetch(&keys);
        while let Some((number, key)) = answers.asked.pop() {
            let found = (self.read)(index, &key);
            answers.found.push((number, found));
        }
    }

    /// Nothing that can panic is done with the state.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that asks. What it gave up by an error or a panic is nobody's.
struct Asking<'t> {
    together: &'t Together,
    number: u64,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut state = self.together.state();
        state.asked.retain(|(asked, _)| *asked != self.number);
        state.answered.retain(|(asked, _)| *asked != self.number);
    }
}

/// What is being answered. What a panic leaves is asked again.
struct Answers<'t> {
    together: &'t Together,
    asked: Vec<(u64, Vec<u8>)>,
    found: Vec<(u64, Found)>,
}

impl Drop for Answers<'_> {
    fn drop(&mut self) {
        let mut state = self.together.state();
        state.asked.append(&mut self.asked);
        state.answered.append(&mut self.found);
        drop(state);
        self.together.changed.notify_all();
    }
}

/// A thread that waits for the index for all that ask. When it ends, even by a panic, another may.
struct Lead<'t>(&'t Together);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_led = false;
        let is_waited_for = !state.asked.is_empty() || !state.answered.is_empty();
        drop(state);
        if is_waited_for {
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
mod tests {
    use std::thread;

    use super::{Read, Together};
    use crate::{Database, Error, Options};

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
        meanwhile: impl FnOnce(&Together, &mut dyn super::Lookup),
    ) -> Vec<Option<crate::Result<super::Found>>> {
        let together = Together::new(read);
        let mut taken = numbers.core.lock().expect("nobody has it");
        let found = thread::scope(|scope| {
            let (together, core) = (&together, &numbers.core);
            let look_up = |number| scope.spawn(move || together.get(core, &[number]));
            let all: Vec<_> = (0..THREADS).map(look_up).collect();
            while together.state().asked.len() < usize::from(THREADS) {
                thread::yield_now();
            }
            meanwhile(together, &mut &mut *taken.index);
            drop(taken);
            all.into_iter().map(|thread| thread.join().ok()).collect()
        });
        let state = together.state();
        assert!(!state.is_led && state.asked.is_empty() && state.answered.is_empty());
        drop(state);
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
}
