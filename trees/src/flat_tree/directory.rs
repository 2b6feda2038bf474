//! The directory: the partitions of the key space, and the runs of each; all of it in memory.
//!
//! ```text
//!  root record   name and shape | partitions u32 | form u8 | longest value u32
//!                | values to give back u32, each: 8 bytes
//!                | each partition: low key u16 and bytes | fragments u16
//!                |   has a bottom u8 | bottom | fragments, the oldest first
//!  run           root u32 | level u8 | pages u32 | entries u64
//! ```
//!
//! Invariants: the first partition begins below all keys, each ends where the next begins, and
//! there is always one.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use index::{Result, root_record};
use store::{EntryShape, LogicalPage, OverflowValue};

use super::NAME;
use super::filter::Filter;
use super::merger;
use super::runs::{Content, Run};
use crate::btree::{At, HEIGHT_MOST};

/// Updates of one partition that were flushed together.
pub(super) struct Fragment {
    pub(super) run: Run,
    /// Made when the run is written, or first read.
    pub(super) filter: Option<Filter>,
}

/// The keys from `low` on.
#[derive(Default)]
pub(super) struct Partition {
    pub(super) low: Box<[u8]>,
    pub(super) bottom: Option<Run>,
    /// The oldest first.
    pub(super) fragments: Vec<Fragment>,
    /// Pages that lookups read of fragments in vain since the last merge.
    pub(super) paid: u32,
    /// What the entries of all runs take, if that is known: since these were written.
    pub(super) content: Option<Content>,
    /// Of updates that wait in memory, where they are counted.
    pub(super) waiting: Waiting,
}

/// Puts that wait for a partition.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    pub(super) puts: u32,
    pub(super) content: Content,
}

impl Partition {
    pub(super) fn pages(&self) -> u64 {
        self.fragment_pages() + self.bottom.map_or(0, |run| run.pages.into())
    }

    pub(super) fn fragment_pages(&self) -> u64 {
        self.fragments.iter().map(|fragment| u64::from(fragment.run.pages)).sum()
    }

    /// Entries of fragments.
    pub(super) fn pending(&self) -> u64 {
        self.fragments.iter().map(|fragment| fragment.run.entries).sum()
    }

    pub(super) fn bottom_entries(&self) -> u64 {
        self.bottom.map_or(0, |run| run.entries)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bottom.is_none() && self.fragments.is_empty()
    }

    /// Runs that a merge reads.
    pub(super) fn runs(&self) -> usize {
        self.fragments.len() + usize::from(self.bottom.is_some())
    }
}

/// What is counted over all partitions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) pages: u64,
    /// Pages of the partition that has most.
    pub(super) largest: u64,
    pub(super) bottom_pages: u64,
    pub(super) bottom_entries: u64,
    pub(super) pending: u64,
    pub(super) height: u8,
    /// The most fragments of a partition.
    pub(super) fragments_most: usize,
    /// Bytes of the root record.
    pub(super) record_bytes: u64,
    /// Bytes of memory.
    pub(super) memory: u64,
}

impl Waiting {
    /// One more put.
    pub(super) fn add(&mut self, entry: Content) {
        self.puts = self.puts.saturating_add(1);
        self.content = self.content.with(entry);
    }
}

/// All partitions.
pub(super) struct Directory {
    pub(super) partitions: Vec<Partition>,
    /// Long values that nothing names any more, whose pages are to be given back.
    pub(super) garbage: Vec<OverflowValue>,
    /// Bytes in the longest long value that there ever was.
    pub(super) longest: u32,
}

const RUN_BYTES: u64 = 17;

/// How the runs are written.
const FORM: u8 = 3;

impl Directory {
    pub(super) fn new() -> Self {
        Directory { partitions: vec![Partition::default()], garbage: Vec::new(), longest: 0 }
    }

    /// The partition where `key` is or belongs.
    pub(super) fn find(&self, key: &[u8]) -> usize {
        self.partitions.partition_point(|partition| *partition.low <= *key).saturating_sub(1)
    }

    /// Where the partition at `at` ends; `None` for the last.
    pub(super) fn high(&self, at: usize) -> Option<&[u8]> {
        self.partitions.get(at + 1).map(|next| &*next.low)
    }

    /// Bytes with which all keys of the partition at `at` begin.
    pub(super) fn prefix(&self, at: usize) -> usize {
        self.prefix_of(at..at + 1)
    }

    /// The same of several.
    pub(super) fn prefix_of(&self, range: Range<usize>) -> usize {
        let (Some(first), Some(high)) =
            (self.partitions.get(range.start), self.partitions.get(range.end))
        else {
            return 0;
        };
        first.low.iter().zip(&high.low).take_while(|(low, high)| low == high).count()
    }

    /// Entries of the largest fragment of each partition: about what was flushed at once.
    pub(super) fn flushed(&self) -> u64 {
        let largest = |it: &Partition| it.fragments.iter().map(|it| it.run.entries).max();
        let largest = self.partitions.iter().filter_map(largest);
        largest.fold(0, u64::saturating_add)
    }

    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals { record_bytes: 64, ..Totals::default() };
        let mut filters = 0;
        for partition in &self.partitions {
            let pages = partition.pages();
            totals.pages += pages;
            totals.largest = totals.largest.max(pages);
            totals.bottom_pages += partition.bottom.map_or(0, |run| run.pages.into());
            totals.bottom_entries += partition.bottom_entries();
            totals.pending += partition.pending();
            totals.fragments_most = totals.fragments_most.max(partition.fragments.len());
            let runs = partition.fragments.iter().map(|fragment| fragment.run);
            let level = runs.chain(partition.bottom).map(|run| run.root.level).max();
            totals.height = totals.height.max(level.map_or(0, |level| level + 1));
            totals.record_bytes +=
                5 + partition.low.len() as u64 + RUN_BYTES * partition.runs() as u64;
            filters += partition.low.len() as u64;
            // Lists grow by doubling, and stand twice then.
            filters += 3 * (partition.fragments.capacity() * size_of::<Fragment>()) as u64 / 2;
            let made = partition.fragments.iter().filter_map(|fragment| fragment.filter.as_ref());
            filters += made.map(Filter::memory).sum::<u64>();
        }
        totals.record_bytes += 8 * self.garbage.len() as u64;
        let lists = self.partitions.capacity() * size_of::<Partition>() * 3 / 2
            + self.garbage.capacity() * size_of::<OverflowValue>() * 3 / 2;
        totals.memory = lists as u64 + filters + totals.record_bytes;
        totals
    }

    /// The root record; `waiting` are long values of updates that wait in memory: the journal has
    /// them, and a replay writes them again.
    pub(super) fn encode(&self, shape: EntryShape, waiting: &[OverflowValue]) -> Vec<u8> {
        let mut record = root_record::encode(NAME, shape);
        let put = |record: &mut Vec<u8>, number: u32| {
            record.extend_from_slice(&number.to_le_bytes());
        };
        put(&mut record, self.partitions.len() as u32);
        record.push(FORM);
        put(&mut record, self.longest);
        put(&mut record, (self.garbage.len() + waiting.len()) as u32);
        for value in self.garbage.iter().chain(waiting) {
            record.extend_from_slice(&value.to_bytes());
        }
        for partition in &self.partitions {
            record.extend_from_slice(&(partition.low.len() as u16).to_le_bytes());
            record.extend_from_slice(&partition.low);
            record.extend_from_slice(&(partition.fragments.len() as u16).to_le_bytes());
            record.push(u8::from(partition.bottom.is_some()));
            let fragments = partition.fragments.iter().map(|fragment| fragment.run);
            for run in partition.bottom.into_iter().chain(fragments) {
                put(&mut record, run.root.id.0);
                record.push(run.root.level);
                put(&mut record, run.pages);
                record.extend_from_slice(&run.entries.to_le_bytes());
            }
        }
        record
    }

    /// What [`Directory::encode`] wrote, of runs in the first `pages` pages.
    pub(super) fn decode(record: &[u8], pages: u32) -> Result<(EntryShape, Self)> {
        let what = "its directory makes no sense";
        let damaged = store::Error::NotAnIndex { is_ours: true, what };
        let (shape, rest) = root_record::decode(record, NAME)?;
        let directory = Self::decode_rest(&mut Reader(rest), pages).ok_or(damaged)?;
        Ok((shape, directory))
    }

    fn decode_rest(from: &mut Reader<'_>, pages: u32) -> Option<Self> {
        let (count, [form]) = (from.u32()?, from.array()?);
        if form != FORM {
            return None;
        }
        let longest = from.u32()?;
        let mut garbage = Vec::new();
        for _ in 0..from.u32()? {
            garbage.push(OverflowValue::from_bytes(from.array()?));
        }
        let mut partitions: Vec<Partition> = Vec::new();
        for place in 0..count {
            let length = u16::from_le_bytes(from.array()?);
            let low: Box<[u8]> = from.bytes(length.into())?.into();
            let is_behind = match partitions.last() {
                Some(before) => before.low < low,
                None => low.is_empty(),
            };
            let (count, [has_bottom]) = (u16::from_le_bytes(from.array()?), from.array()?);
            let is_possible = has_bottom <= 1 && merger::takes(usize::from(count) + 1);
            if !is_possible || !is_behind || (place == 0) != partitions.is_empty() {
                return None;
            }
            let bottom = if has_bottom == 1 { Some(from.run(pages)?) } else { None };
            let mut fragments = Vec::new();
            for _ in 0..count {
                fragments.push(Fragment { run: from.run(pages)?, filter: None });
            }
            partitions.push(Partition { low, bottom, fragments, ..Partition::default() });
        }
        let is_whole = from.0.is_empty() && !partitions.is_empty();
        is_whole.then_some(Directory { partitions, garbage, longest })
    }
}

/// Reads from the front of a slice.
struct Reader<'r>(&'r [u8]);

impl<'r> Reader<'r> {
    fn bytes(&mut self, length: usize) -> Option<&'r [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.first_chunk().copied()
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn run(&mut self, most: u32) -> Option<Run> {
        let (id, [level], pages) = (self.u32()?, self.array()?, self.u32()?);
        let entries = u64::from_le_bytes(self.array()?);
        let is_possible = id < most && usize::from(level) < HEIGHT_MOST && pages <= most;
        let root = At { id: LogicalPage(id), level };
        is_possible.then_some(Run { root, pages, entries })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::{Directory, FORM, Reader};

    /// One partition, which says that it has so many fragments.
    fn partition(fragments: u16) -> Vec<u8> {
        let mut record = 1_u32.to_le_bytes().to_vec();
        record.push(FORM);
        record.extend([0; 8 + 2]);
        record.extend(fragments.to_le_bytes());
        record.push(0);
        // A run takes 17 bytes, and page 0 is one of the device.
        record.extend(vec![0; 17 * usize::from(fragments)]);
        record
    }

    #[test]
    fn a_directory_with_more_fragments_than_are_ever_merged_is_refused() {
        let decode = |fragments| Directory::decode_rest(&mut Reader(&partition(fragments)), 8);
        assert!(decode(40).is_some());
        assert!(decode(62).is_some() && decode(63).is_none() && decode(u16::MAX).is_none());
    }
}
