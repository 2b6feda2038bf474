//! The lock around the index, which calls have in the order in which they come.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, this_thread};
use crate::{Error, Result};

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
    /// Of those behind it that wait no longer.
    gone: Vec<u64>,
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
        loop {
            if let Some(guard) = self.lock_unless(|| false)? {
                return Ok(guard);
            }
        }
    }

    /// Waits for the value, but not once `is_needless`: who makes it so calls [`Lock::wake`].
    pub(crate) fn lock_unless(
        &self,
        is_needless: impl Fn() -> bool,
    ) -> Result<Option<Guard<'_, T>>> {
        self.check_other()?;
        self.line.wait(is_needless).map(|first| self.guard(first)).transpose()
    }

    /// Lets those that wait see whether they need to.
    pub(crate) fn wake(&self) {
        drop(self.line.numbers());
        self.line.moved.notify_all();
    }

    /// True if a thread waits for the one that has the value.
    #[cfg(test)]
    pub(crate) fn is_waited_for(&self) -> bool {
        let numbers = self.line.numbers();
        numbers.first + 1 + (numbers.gone.len() as u64) < numbers.next
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

    fn wait(&self, is_needless: impl Fn() -> bool) -> Option<First<'_>> {
        let mut numbers = self.numbers();
        let own = numbers.next;
        numbers.next += 1;
        while numbers.first != own {
            if is_needless() {
                numbers.gone.push(own);
                return None;
            }
            numbers = self.moved.wait(numbers).unwrap_or_else(PoisonError::into_inner);
        }
        Some(self.is_first())
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
        while let Some(place) = numbers.gone.iter().position(|gone| *gone == numbers.first) {
            numbers.gone.swap_remove(place);
            numbers.first += 1;
        }
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
