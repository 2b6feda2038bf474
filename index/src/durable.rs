//! The only implementation of [`Index`]: a tree, and what makes its updates last.

use alloc::boxed::Box;
use core::fmt::Display;

use device::Meter;
use store::Update;

use crate::{Cursor, Error, Index, KeyRange, Lookup, Result, Statistics, Tree};

/// Whether the device holds all that the index holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Everything is on the device, which says so.
    Closed,
    /// Something may be in memory only.
    Open,
    /// A change was broken off by an error, so no more are taken.
    Failed,
}

/// A tree with batches and durability.
///
/// So far there is one durability, `none`: the contents last if the index is closed.
pub struct Durable<T: Tree> {
    tree: T,
    state: State,
}

impl<T: Tree> Durable<T> {
    /// A tree that was just made.
    pub fn new(tree: T) -> Self {
        Durable { tree, state: State::Open }
    }

    /// A tree that was just opened from a closed device.
    pub fn closed(tree: T) -> Self {
        Durable { tree, state: State::Closed }
    }

    /// Prepares for a change: refuses it after a failure, and unlocks a closed device.
    fn begin(&mut self) -> Result<()> {
        match self.state {
            State::Open => Ok(()),
            State::Closed => {
                self.tree.recovery().reopen()?;
                self.state = State::Open;
                Ok(())
            }
            State::Failed => Err(Error::Unsupported {
                what: "an earlier update was broken off by an error: the index is read-only now",
            }),
        }
    }
}

impl<T: Tree> Lookup for Durable<T> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        self.tree.get(key, offset, into)
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        self.tree.range(range)
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        self.tree.check(finding)
    }

    fn statistics(&self) -> Statistics {
        self.tree.statistics()
    }

    fn meter(&self) -> Option<&Meter> {
        self.tree.meter()
    }
}

impl<T: Tree> Index for Durable<T> {
    fn update(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.tree.admit(batch)?;
        self.begin()?;
        for (place, update) in batch.iter().enumerate() {
            if let Err(error) = self.tree.apply(update) {
                // Half a change, or half a batch, must not be added to, nor closed as if it were
                // whole. An update that changed nothing is merely refused.
                if place > 0 || !self.tree.is_whole() {
                    self.state = State::Failed;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        self.begin()?;
        match self.tree.load(sorted, fill_percent) {
            // These are refused with a whole tree, which keeps what was loaded before.
            Err(
                error @ (Error::NotEmpty
                | Error::NotSorted { .. }
                | Error::KeyLength { .. }
                | Error::ValueLength { .. }
                | Error::EntryTooLong { .. }
                | Error::Store(store::Error::Full { .. })),
            ) => Err(error),
            Err(error) => {
                self.state = State::Failed;
                Err(error)
            }
            loaded => loaded,
        }
    }

    fn close(&mut self) -> Result<()> {
        if self.state == State::Closed {
            return Ok(());
        }
        self.begin()?;
        let root = self.tree.settle()?;
        self.tree.recovery().close(&root)?;
        self.state = State::Closed;
        Ok(())
    }
}
