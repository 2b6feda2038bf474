//! Lookups of several threads, made together.
//!
//! One thread at a time has the index. While it reads for one lookup, those that other threads ask
//! for gather; one of these then brings the pages of all of them at once, and answers them. So as
//! many reads are in flight as threads wait, with one lock around the index.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use index::Index;

use crate::Result;
use crate::inside::Core;
use crate::turns::Lock;

/// Lookups that are made together, at most.
pub(crate) const AT_ONCE: usize = 32;

/// What a lookup finds: a value, or none.
pub(crate) type Found = index::Result<Option<Vec<u8>>>;

/// How a key of the tree is looked up.
type Read = fn(&mut dyn Index, &[u8]) -> Found;

/// The lookups of all threads.
#[derive(Default)]
pub(crate) struct Together {
    state: Mutex<State>,
    /// Some are answered, or nobody leads any more.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// True while a thread makes lookups, its own or those of all.
    is_led: bool,
    /// The number of the next that is asked.
    next: u64,
    asked: Vec<(u64, Vec<u8>)>,
    answered: Vec<(u64, Found)>,
}

impl Together {
    /// What `read` finds for a key of the tree. It may be another thread that calls it.
    ///
    /// # Errors
    /// This thread has the index already, or a panic left it half changed.
    pub(crate) fn get(&self, core: &Lock<Core<'_>>, key: &[u8], read: Read) -> Result<Found> {
        core.check_other()?;
        let mut state = self.state();
        if !state.is_led {
            state.is_led = true;
            drop(state);
            let _lead = Lead::new(self);
            return Ok(read(&mut *core.lock()?.index, key));
        }
        let number = state.next;
        state.next += 1;
        state.asked.push((number, key.to_vec()));
        loop {
            if let Some(place) = state.answered.iter().position(|(asked, _)| *asked == number) {
                return Ok(state.answered.swap_remove(place).1);
            }
            if state.is_led {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.is_led = true;
            drop(state);
            Lead::new(self).answer(core, read)?;
            state = self.state();
        }
    }

    /// Nothing that can panic is done with the state.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that makes lookups for others. When it ends, even by a panic, another may.
struct Lead<'t> {
    together: &'t Together,
    asked: Vec<(u64, Vec<u8>)>,
    answered: Vec<(u64, Found)>,
}

impl<'t> Lead<'t> {
    const fn new(together: &'t Together) -> Self {
        Lead { together, asked: Vec::new(), answered: Vec::new() }
    }

    /// Answers what was asked until the index is free.
    fn answer(mut self, core: &Lock<Core<'_>>, read: Read) -> Result<()> {
        let core = &mut *core.lock()?;
        let mut state = self.together.state();
        let count = state.asked.len().min(AT_ONCE);
        self.asked.extend(state.asked.drain(..count));
        drop(state);
        let keys: Vec<&[u8]> = self.asked.iter().map(|(_, key)| key.as_slice()).collect();
        // What can't be read is reported by the lookups that need it.
        let _ = core.index.prefetch(&keys);
        while let Some((number, key)) = self.asked.pop() {
            let found = read(&mut *core.index, &key);
            self.answered.push((number, found));
        }
        Ok(())
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut state = self.together.state();
        state.is_led = false;
        state.asked.append(&mut self.asked);
        state.answered.append(&mut self.answered);
        let is_waited_for = !state.asked.is_empty() || !state.answered.is_empty();
        drop(state);
        if is_waited_for {
            self.together.changed.notify_all();
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
mod tests {
    use std::thread;

    use super::Read;
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

    /// Has each thread look its number up by `read` while the index is taken until all of them wait
    /// for it, and tells what comes of each; `None` is a panic.
    fn look_up_at_once(
        numbers: &Database<'_>,
        read: Read,
    ) -> Vec<Option<crate::Result<super::Found>>> {
        let taken = numbers.core.lock().expect("nobody has it");
        thread::scope(|scope| {
            let look_up = |number| numbers.together.get(&numbers.core, &[number], read);
            let all: Vec<_> =
                (0..THREADS).map(|number| scope.spawn(move || look_up(number))).collect();
            // The first waits for the index, the others for the first.
            while numbers.together.state().asked.len() < usize::from(THREADS) - 1 {
                thread::yield_now();
            }
            drop(taken);
            all.into_iter().map(|thread| thread.join().ok()).collect()
        })
    }

    #[test]
    fn lookups_of_threads_that_wait_are_each_answered() {
        let (_folder, numbers) = numbers();
        for _ in 0..50 {
            let all = look_up_at_once(&numbers, |index, key| {
                let mut value = [0; 3];
                Ok(index.get(key, 0, &mut value)?.map(|_| value.to_vec()))
            });
            for (number, found) in (0..THREADS).zip(all) {
                let found = found.expect("no panic").expect("the index is free").expect("it reads");
                assert_eq!(found, Some(vec![number; 3]));
            }
            let state = numbers.together.state();
            assert!(!state.is_led && state.asked.is_empty() && state.answered.is_empty());
        }
    }

    #[test]
    fn a_panic_in_a_lookup_ends_all_that_wait_for_it() {
        let (_folder, numbers) = numbers();
        let all = look_up_at_once(&numbers, |_, _| panic!("on purpose"));
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
