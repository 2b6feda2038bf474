//! Lookups of several threads, made together.
//!
//! One thread at a time has the index. What others look up meanwhile gathers; one of them then
//! brings the pages of all at once, and answers all. So as many reads are in flight as threads
//! wait, with one lock around the index. A writer answers them, too, while it merges: so they don't
//! wait for a merge.

use std::sync::PoisonError;

use index::Lookup;

use crate::Result;
use crate::inside::Core;
use crate::lock::Lock;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Lookups that are made together, at most.
pub(crate) const AT_ONCE: usize = 32;

/// What a lookup finds: a value, or none.
pub(crate) type Found = index::Result<Option<Vec<u8>>>;

/// How a key of the tree is looked up.
pub(crate) type Read = fn(&mut dyn Lookup, &[u8]) -> Found;

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
            return Ok((self.read)(&mut core.lookup(), key));
        }
        // Given up with the state at hand for it.
        let asking = self.ask(key);
        let mut state = self.state();
        let is_own = |(asked, _): &(u64, Found)| *asked == asking.number;
        loop {
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
            let is_answered = || self.state().answered.iter().any(is_own);
            if let Some(mut core) = core.lock_unless(is_answered)? {
                self.answer(&mut core.lookup());
            }
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

    /// Answers what was asked so far; false if nothing was. A writer wakes those, then, that wait
    /// for the lock.
    pub(crate) fn answer(&self, index: &mut dyn Lookup) -> bool {
        let mut state = self.state();
        if state.asked.is_empty() {
            return false;
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
        true
    }

    /// Lookups that are asked for, and that are answered.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let state = self.state();
        (state.asked.len(), state.answered.len())
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
