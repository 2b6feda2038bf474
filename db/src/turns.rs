//! Who may do what at a moment, where several threads share a database.
//!
//! Two locks. The [`Lock`] is around the index: a call has it while it reads or changes the index,
//! and never longer. [`Turns`] say who may change what others read: one writer at a time, from the
//! first read of a transaction to its end, and nobody while somebody needs a state that stays.
//!
//! The turn is taken before the lock. A thread that asks for what it has itself is told so instead
//! of waiting for itself.

use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// A thread, by a number that no other thread that lives has; never 0.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| ptr::from_ref(here).addr())
}

/// A value that one thread has at a time, in the order in which they ask: none that asks again and
/// again keeps others waiting. If a thread panics while it has it, nobody gets it any more: it may
/// be half changed.
pub(crate) struct Lock<T> {
    line: Line,
    value: Mutex<T>,
}

/// What a thread has of a [`Lock`].
pub(crate) struct Guard<'l, T> {
    // Given back before the next in the line is let in.
    value: MutexGuard<'l, T>,
    _first: First<'l>,
}

/// Threads that wait in a line.
#[derive(Default)]
struct Line {
    /// The thread that is first; 0 for none. Only a thread's own number tells it anything, and that
    /// only the thread itself stores: so no ordering is needed.
    holder: AtomicUsize,
    numbers: Mutex<Numbers>,
    moved: Condvar,
}

#[derive(Default)]
struct Numbers {
    /// Of the next that comes.
    next: u64,
    /// Of the one that is first.
    first: u64,
}

/// The first place in a line, until it is dropped.
struct First<'l>(&'l Line);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Lock { line: Line::default(), value: Mutex::new(value) }
    }

    /// Refuses a thread that has the value already.
    pub(crate) fn check_other(&self) -> Result<()> {
        match self.line.holder.load(Ordering::Relaxed) == this_thread() {
            true => Err(Error::WithinItself),
            false => Ok(()),
        }
    }

    /// The value, if nobody has it or waits for it.
    pub(crate) fn try_lock(&self) -> Result<Option<Guard<'_, T>>> {
        self.check_other()?;
        match self.line.step_in() {
            Some(first) => self.guard(first).map(Some),
            None => Ok(None),
        }
    }

    /// Waits for the value.
    pub(crate) fn lock(&self) -> Result<Guard<'_, T>> {
        self.check_other()?;
        self.guard(self.line.wait())
    }

    fn guard<'l>(&'l self, first: First<'l>) -> Result<Guard<'l, T>> {
        let value = self.value.lock().map_err(|_| Error::Panicked)?;
        Ok(Guard { value, _first: first })
    }
}

impl Line {
    /// Nothing that can panic is done with the numbers.
    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) -> First<'_> {
        let mut numbers = self.numbers();
        let own = numbers.next;
        numbers.next += 1;
        while numbers.first != own {
            numbers = self.moved.wait(numbers).unwrap_or_else(PoisonError::into_inner);
        }
        self.is_first()
    }

    /// The first place, if nobody is in the line.
    fn step_in(&self) -> Option<First<'_>> {
        let mut numbers = self.numbers();
        let is_free = numbers.first == numbers.next;
        numbers.next += u64::from(is_free);
        is_free.then(|| self.is_first())
    }

    /// This thread's place is the first.
    fn is_first(&self) -> First<'_> {
        self.holder.store(this_thread(), Ordering::Relaxed);
        First(self)
    }
}

impl Drop for First<'_> {
    fn drop(&mut self) {
        self.0.holder.store(0, Ordering::Relaxed);
        let mut numbers = self.0.numbers();
        numbers.first += 1;
        let is_waited_for = numbers.first != numbers.next;
        drop(numbers);
        if is_waited_for {
            self.0.moved.notify_all();
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

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

    use super::{Lock, Turns};
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
        let lock = Lock::new(1);
        let guard = lock.lock().unwrap();
        assert!(matches!(lock.lock(), Err(Error::WithinItself)));
        drop(guard);
        assert_eq!(*lock.lock().unwrap(), 1);
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
            while lock.line.numbers().next < 2 {
                thread::yield_now();
            }
            drop(guard);
            guard = lock.lock().unwrap();
            assert_eq!(*guard, 1, "the other came first");
            drop(guard);
            other.join().unwrap();
        });
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
