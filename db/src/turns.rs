//! Who may do what at a moment, where several threads share a database.
//!
//! Two locks. The [`Lock`](crate::lock::Lock) is around the index: a call has it while it reads or
//! changes the index, and never longer. [`Turns`] say who may change what others read: one writer
//! at a time, from the first read of a transaction to its end, and nobody while somebody needs a
//! state that stays.
//!
//! The turn is taken before the lock. A thread that asks for what it has itself is told so instead
//! of waiting for itself.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::sync::{Condvar, Mutex, MutexGuard, this_thread};
use crate::{Error, Result};

/// Who changes, and who needs a state that stays.
pub(crate) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
    /// How long a thread waits.
    wait: Duration,
}

#[derive(Default)]
struct State {
    /// The thread whose turn it is to change something.
    writer: Option<usize>,
    /// True while it does: then nobody begins to read a state that stays.
    is_changing: bool,
    /// Threads that read a state that stays, as often as they do.
    readers: Vec<usize>,
}

impl Turns {
    pub(crate) const fn new(wait: Duration) -> Self {
        let state = State { writer: None, is_changing: false, readers: Vec::new() };
        Turns { state: Mutex::new(state), changed: Condvar::new(), wait }
    }

    /// Nothing that can panic is done with the state.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `is_possible`.
    fn wait_until<'t>(
        &self,
        mut state: MutexGuard<'t, State>,
        is_possible: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'t, State>> {
        if is_possible(&state) {
            return Ok(state);
        }
        let begin = Instant::now();
        loop {
            let left = self.wait.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Err(Error::Waited { seconds: self.wait.as_secs_f64() });
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            if is_possible(&state) {
                return Ok(state);
            }
        }
    }

    /// Refuses to wait for the thread itself.
    fn check_other(state: &State, thread: usize) -> Result<()> {
        match state.writer == Some(thread) || state.readers.contains(&thread) {
            true => Err(Error::WithinItself),
            false => Ok(()),
        }
    }

    /// The turn of a writer, who changes nothing yet.
    pub(crate) fn write(&self) -> Result<Turn<'_>> {
        let (state, thread) = (self.state(), this_thread());
        Self::check_other(&state, thread)?;
        let mut state = self.wait_until(state, |state| state.writer.is_none())?;
        state.writer = Some(thread);
        Ok(Turn { turns: self })
    }

    /// The turn of a writer who changes something at once.
    pub(crate) fn change(&self) -> Result<Turn<'_>> {
        let (state, thread) = (self.state(), this_thread());
        Self::check_other(&state, thread)?;
        let is_free = |state: &State| state.writer.is_none() && state.readers.is_empty();
        let mut state = self.wait_until(state, is_free)?;
        state.writer = Some(thread);
        state.is_changing = true;
        Ok(Turn { turns: self })
    }

    /// A state that stays.
    pub(crate) fn read(&self) -> Result<Stay<'_>> {
        let (mut state, thread) = (self.state(), this_thread());
        // Who has such a state gets it again: a writer may be waiting for it to end.
        if !state.readers.contains(&thread) {
            state = self.wait_until(state, |state| !state.is_changing)?;
        }
        state.readers.push(thread);
        Ok(Stay { turns: self, thread })
    }
}

/// A writer's turn, until it is dropped.
pub(crate) struct Turn<'t> {
    turns: &'t Turns,
}

impl Turn<'_> {
    /// Begins to change something, once nobody needs a state that stays.
    pub(crate) fn change(&self) -> Result<()> {
        let state = self.turns.state();
        if state.readers.contains(&this_thread()) {
            return Err(Error::WithinItself);
        }
        let mut state = self.turns.wait_until(state, |state| state.readers.is_empty())?;
        state.is_changing = true;
        Ok(())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        state.writer = None;
        state.is_changing = false;
        drop(state);
        self.turns.changed.notify_all();
    }
}

/// A state that stays until this is dropped.
pub(crate) struct Stay<'t> {
    turns: &'t Turns,
    thread: usize,
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        if let Some(place) = state.readers.iter().position(|reader| *reader == self.thread) {
            state.readers.swap_remove(place);
        }
        drop(state);
        self.turns.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::Turns;
    use crate::Error;

    const SHORT: Duration = Duration::from_millis(5);
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_thread_never_waits_for_itself() {
        let turns = Turns::new(LONG);
        let turn = turns.write().unwrap();
        assert!(matches!(turns.write(), Err(Error::WithinItself)));
        assert!(matches!(turns.change(), Err(Error::WithinItself)));
        let stay = turns.read().unwrap();
        assert!(matches!(turn.change(), Err(Error::WithinItself)));
        drop(turn);
        assert!(matches!(turns.write(), Err(Error::WithinItself)));
        drop(turns.read().unwrap());
        drop(stay);
    }

    #[test]
    fn who_waits_too_long_is_told() {
        let turns = Turns::new(SHORT);
        let elsewhere = |ask: &(dyn Fn() -> bool + Sync)| {
            thread::scope(|scope| scope.spawn(ask).join().unwrap())
        };
        let turn = turns.write().unwrap();
        assert!(elsewhere(&|| matches!(turns.write(), Err(Error::Waited { .. }))));
        assert!(elsewhere(&|| turns.read().is_ok()), "nothing is changed yet");
        turn.change().unwrap();
        assert!(elsewhere(&|| matches!(turns.read(), Err(Error::Waited { .. }))));
        drop(turn);
        let stay = turns.read().unwrap();
        assert!(elsewhere(&|| matches!(turns.change(), Err(Error::Waited { .. }))));
        assert!(elsewhere(&|| turns.write().is_ok()), "it changes nothing yet");
        drop(stay);
        assert!(elsewhere(&|| turns.change().is_ok()));
    }

    #[test]
    fn changes_and_states_that_stay_take_turns() {
        let (turns, inside) = (Turns::new(LONG), AtomicU32::new(0));
        thread::scope(|scope| {
            for number in 0..8_u32 {
                let (turns, inside) = (&turns, &inside);
                scope.spawn(move || {
                    for round in 0..500 {
                        if (number + round).is_multiple_of(3) {
                            let turn = turns.write().unwrap();
                            turn.change().unwrap();
                            assert_eq!(inside.swap(1000, Ordering::SeqCst), 0);
                            assert_eq!(inside.swap(0, Ordering::SeqCst), 1000);
                        } else {
                            let _stay = turns.read().unwrap();
                            assert!(inside.fetch_add(1, Ordering::SeqCst) < 1000);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
    }
}
