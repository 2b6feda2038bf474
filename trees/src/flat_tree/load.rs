//! Loading sorted entries: bottoms, one after the other.

use alloc::boxed::Box;
use alloc::vec::Vec;

use device::Cause;
use index::{Cursor, Error, KeyRange, Result, Value, read_piece_of};
use store::OverflowValue;

use super::FlatTree;
use super::admission::More;
use super::directory::Partition;
use super::range::Scan;
use super::runs::{Form, Held, Writing};
use crate::btree::copy_long;

/// Pages that are to be free before an entry is loaded, beside those of its value.
const PAGES_AN_ENTRY: u64 = 24;

/// Bytes of a long value that are copied at a time, if its page is not smaller.
const PIECE_BYTES: usize = 512;

/// A bottom that is being loaded, and where it begins.
struct Loading {
    low: Box<[u8]>,
    writing: Writing,
    /// Leaves that a bottom gets.
    leaves: u64,
}

impl FlatTree<'_> {
    pub(super) fn load_sorted(&mut self, sorted: &mut dyn Cursor) -> Result<u64> {
        if Scan::new(self, KeyRange::ALL)?.next()?.is_some() {
            return Err(Error::NotEmpty);
        }
        // What was deleted is let go of.
        while let Some(at) = self.most_pending() {
            self.check_free(0)?;
            self.merge(at, &mut |_| {})?;
        }
        while self.give_back_garbage()? {}
        let mut loading = None;
        let mut fresh = Vec::new();
        let loaded = self.load_entries(sorted, &mut loading, &mut fresh);
        if let Some(Loading { low, writing, .. }) = loading {
            fresh.push(self.runs.bottom(low, &writing));
        }
        if !fresh.is_empty() {
            self.directory.partitions = fresh;
        }
        self.recount();
        loaded
    }

    fn load_entries(
        &mut self,
        sorted: &mut dyn Cursor,
        loading: &mut Option<Loading>,
        fresh: &mut Vec<Partition>,
    ) -> Result<u64> {
        let (mut previous, mut key, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        let mut loaded = 0;
        while let Some((next, value)) = sorted.next()? {
            self.check_entry(next, value.len().into())?;
            if loaded > 0 && next <= previous.as_slice() {
                return Err(Error::NotSorted { position: loaded });
            }
            key.clear();
            key.extend_from_slice(next);
            let (bytes, is_long) = (value.len(), self.is_long(key.len(), value.len().into()));
            let pages = if is_long { self.runs.store.file.pages_for_long(bytes) } else { 0 };
            self.check_free(pages.into())?;
            match value {
                Value::Inline(value) if !is_long => {
                    self.load_one((&mut *loading, &mut *fresh), &key, Held::Value(value))?;
                }
                _ if is_long => {
                    let before = self.runs.store.file.pages_used().0;
                    let long = self.load_long(sorted, bytes)?;
                    let taken = self.runs.store.file.pages_used().0.saturating_sub(before);
                    if let Some(loading) = loading {
                        loading.writing.leave_out(taken);
                    }
                    self.directory.longest = self.directory.longest.max(bytes);
                    self.load_one((&mut *loading, &mut *fresh), &key, Held::Long(long))?;
                }
                _ => {
                    // Another tree's nodes are smaller than this one's.
                    whole.resize(bytes as usize, 0);
                    read_piece_of(sorted, bytes, 0, &mut whole)?;
                    self.load_one((&mut *loading, &mut *fresh), &key, Held::Value(&whole))?;
                }
            }
            core::mem::swap(&mut previous, &mut key);
            loaded += 1;
        }
        Ok(loaded)
    }

    fn load_one(
        &mut self,
        (loading, fresh): (&mut Option<Loading>, &mut Vec<Partition>),
        key: &[u8],
        held: Held<'_>,
    ) -> Result<()> {
        if let Some(Loading { low, mut writing, leaves }) = loading.take() {
            if self.runs.push_within(&mut writing, (key, held), leaves)? {
                *loading = Some(Loading { low, writing, leaves });
                return Ok(());
            }
            let partition = self.runs.bottom(low, &writing);
            self.totals.pages += partition.pages();
            self.totals.largest = self.totals.largest.max(partition.pages());
            self.totals.memory += 3 * size_of::<Partition>() as u64 + 64 + key.len() as u64;
            fresh.push(partition);
            self.tables_peak = self.tables_peak.max(self.totals.memory);
            self.check_tables(&More::of_a_put())?;
        }
        let low = if fresh.is_empty() { Box::default() } else { key.into() };
        let writing = self.runs.begin(Form::Bottom, 0, Cause::Load)?;
        let leaves = self.partition_pages();
        let loading = loading.insert(Loading { low, writing, leaves });
        self.runs.push(&mut loading.writing, key, held)
    }

    /// Refuses what finds fewer pages than it may take.
    fn check_free(&mut self, pages: u64) -> Result<()> {
        let pages = pages + PAGES_AN_ENTRY + self.needs(&More::default());
        match self.runs.store.file.has_pages(pages)? {
            true => Ok(()),
            false => {
                let pages = u64::from(self.runs.store.file.pages_most());
                Err(store::Error::Full { pages }.into())
            }
        }
    }

    /// Copies a long value out of the entry at which `sorted` stands.
    fn load_long(&mut self, sorted: &mut dyn Cursor, bytes: u32) -> Result<OverflowValue> {
        copy_long(&mut self.runs.store.file, sorted, bytes, &mut [0; PIECE_BYTES])
    }
}
