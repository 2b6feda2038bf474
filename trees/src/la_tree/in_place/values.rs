//! Values too long for a leaf: they stand in pages of their own, and the entry tells where.
//!
//! An entry with such a value does not wait in buffers. Writing the value takes pages anyway, and
//! so every long value is named by exactly one leaf. An older entry for the key may still wait in a
//! buffer above the leaf: it is taken out first.

use core::fmt::Display;

use device::Cause;
use store::node;
use store::{OverflowValue, Update, Width};

use super::super::LaTree;
use super::super::layout::NodeId;
use index::{Error, Result, Value, read_piece};

impl LaTree<'_> {
    /// True if a value may be too long for a leaf, and the tree takes it all the same.
    pub(in super::super) fn has_long_values(&self) -> bool {
        self.log.is_disk() && self.plan.shape.value == Width::Variable
    }

    /// True if a value of `value` bytes does not fit a leaf beside a key of `key` bytes.
    pub(in super::super) fn is_long(&self, key: usize, value: u64) -> bool {
        self.has_long_values() && key as u64 + value > self.plan.entry_most as u64
    }

    /// The length of the long value that `update` makes.
    pub(super) fn long_bytes(&self, update: &Update<'_>) -> Option<u32> {
        let Update::Put { key, value } = update else {
            return None;
        };
        self.is_long(key.len(), value.len() as u64).then_some(value.len() as u32)
    }

    /// Refuses a key that no entry can have.
    pub(in super::super) fn check_stored_key(&self, key: &[u8]) -> Result<()> {
        self.check_key(key)?;
        let beside = match self.plan.shape.value {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable if self.log.is_disk() => OverflowValue::ENCODED_BYTES,
            Width::Variable => 0,
        };
        let limit = self.plan.entry_most.saturating_sub(beside);
        if key.len() > limit {
            return Err(Error::KeyTooLong { found: key.len() as u64, limit: limit as u64 });
        }
        Ok(())
    }

    /// Puts `value`, if it is long, at its place; false if it is not.
    pub(in super::super) fn put_long(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        if !self.is_long(key.len(), value.len() as u64) {
            return Ok(false);
        }
        let Some(disk) = self.log.disk_mut() else {
            return Ok(false);
        };
        let written = disk.file.write_long(value, Cause::Update);
        // What was written of it was given back.
        self.is_poisoned = !matches!(written, Err(store::Error::Full { .. }));
        let long = written?;
        self.adopt_value(key, long)?;
        Ok(true)
    }

    /// Lets `key` have a value whose pages are written already.
    pub(in super::super) fn adopt_value(&mut self, key: &[u8], value: OverflowValue) -> Result<()> {
        let Some(disk) = self.log.disk_mut() else {
            return Err(store::Error::AdoptedTwice.into());
        };
        disk.longest_value = disk.longest_value.max(value.bytes());
        self.take_out(key)?;
        let encoded = value.to_bytes();
        self.put_down(key, Some(&encoded), true)
    }

    /// Takes every entry for `key` out of the buffers on its way.
    fn take_out(&mut self, key: &[u8]) -> Result<()> {
        for level in (0..self.height).rev() {
            let Some(number) = self.descend(level, key, Cause::Update)?.buffer() else {
                continue;
            };
            let found = self.buffers.find(&mut self.log, number, key, &mut |_| ())?;
            if found.is_none() {
                continue;
            }
            self.take_off(number, Cause::Update)?;
            self.hand_back(level, Some(key), Cause::Update)?;
        }
        Ok(())
    }

    /// Gives back the pages of the value that an entry had, if it was long.
    pub(in super::super) fn drop_value(
        &mut self,
        value: Option<OverflowValue>,
        cause: Cause,
    ) -> Result<()> {
        match (value, self.log.disk_mut()) {
            (Some(value), Some(disk)) => Ok(disk.file.free_long(value, cause)?),
            _ => Ok(()),
        }
    }

    /// Reads the value at `place` of a leaf from byte `offset` on; returns its whole length.
    pub(in super::super) fn read_stored(
        &mut self,
        leaf: NodeId,
        place: usize,
        offset: u32,
        into: &mut [u8],
    ) -> Result<u32> {
        let codec = self.nodes.codecs.leaf;
        let node = self.nodes.node(&mut self.log, leaf, 0, Cause::Lookup)?;
        let value = codec.value(node, place);
        let Some(long) = value.as_long() else {
            return Ok(read_piece(value.bytes(), offset, into));
        };
        self.read_long(long, offset, into)
    }

    /// Reads a long value from byte `offset` on; returns its whole length.
    pub(in super::super) fn read_long(
        &mut self,
        long: OverflowValue,
        offset: u32,
        into: &mut [u8],
    ) -> Result<u32> {
        if let Some(disk) = self.log.disk_mut() {
            disk.file.read_long(long, offset, into, Cause::Lookup)?;
        }
        Ok(long.bytes())
    }

    /// Reads the long values of `leaf`, up to `most` pages of them: a damaged leaf may tell of the
    /// same value over and over. Returns how many pages they take.
    pub(in super::super) fn check_values(
        &mut self,
        leaf: NodeId,
        most: u64,
        finding: &mut dyn FnMut(&dyn Display),
    ) -> Result<u64> {
        if !self.has_long_values() {
            return Ok(0);
        }
        let (codec, mut pages, mut place) = (self.nodes.codecs.leaf, 0, 0);
        while pages <= most {
            let node = self.nodes.node(&mut self.log, leaf, 0, Cause::Lookup)?;
            if place >= node::count(node) {
                break;
            }
            let long = codec.value(node, place).as_long();
            place += 1;
            let (Some(long), Some(disk)) = (long, self.log.disk_mut()) else {
                continue;
            };
            let mut told = |damage: store::Error| finding(&damage);
            pages += u64::from(disk.file.check_long(long, Cause::Lookup, &mut told)?);
        }
        Ok(pages)
    }
}

/// What a cursor hands out of a value.
pub(in super::super) fn handed_out<'v>(long: Option<OverflowValue>, value: &'v [u8]) -> Value<'v> {
    match long {
        Some(long) => Value::Long(long.bytes()),
        None => Value::Inline(value),
    }
}
