//! The directory: the partitions of the key space, and the runs of each; all of it in memory.
//!
//! ```text
//!  root record   name and shape | partitions u32 | form u8 | number of the next run u32
//!                | each partition: low key u16 and bytes | runs u16 | runs, the newest first
//! ```
//!
//! Invariants: the first partition begins below all keys, each ends where the next begins, and
//! there is always one.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use index::{Result, root_record};
use store::EntryShape;

use super::super::NAME;
use super::run::{self, Extent, Run, Scale, Tables, View, views};
use super::write::Written;
use crate::flat_tree::merger;

/// The keys from `low` on.
#[derive(Default)]
pub(super) struct Part {
    pub(super) low: Box<[u8]>,
    /// The newest first; the last is the bottom, if there is one.
    pub(super) runs: Vec<u8>,
    /// Updates that wait in memory.
    pub(super) waiting: u32,
    /// Units that lookups read of fragments in vain since the last merge.
    pub(super) paid: u32,
    pub(super) counts: Counts,
}

/// What is counted of the runs of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) fragments: u32,
    /// Entries of fragments.
    pub(super) pending: u32,
    /// Entries of the bottom.
    pub(super) bottom: u32,
    /// Parts of pages.
    pub(super) parts: u32,
    /// Bytes of the bottom.
    pub(super) bytes: u32,
    /// Bytes of all runs.
    pub(super) all_bytes: u32,
    /// Bytes of the runs in a root record.
    pub(super) record: u32,
}

impl Part {
    /// Counts the runs again, after some came or went.
    pub(super) fn count(&mut self, content: u32) {
        let mut counts = Counts::default();
        for View { run, start, head, .. } in views(&self.runs) {
            counts.record += (head - start) as u32;
            counts.parts += run.pages(content);
            counts.all_bytes += run.units * run.unit;
            if run.is_bottom {
                counts.bottom += run.entries;
                counts.bytes += run.units * run.unit;
            } else {
                counts.pending += run.entries;
                counts.fragments += 1;
            }
        }
        self.counts = counts;
    }

    /// How much there is to gain by merging: pending entries for each that is rewritten.
    pub(super) fn gain(&self) -> f64 {
        f64::from(self.counts.pending) / (f64::from(self.counts.bottom) + 64.0)
    }

    pub(super) const fn runs_count(&self) -> u32 {
        self.counts.fragments + (self.counts.bottom > 0) as u32
    }

    /// Puts a run before all others.
    pub(super) fn add(&mut self, written: &Written) {
        let extents = written.extents.iter().copied();
        // The longest head and an extent.
        let mut bytes = Vec::with_capacity(48 + 10 * written.extents.len() + written.tables.len());
        run::encode(
            &written.run,
            extents,
            Some((written.filter_bits, &written.tables)),
            &mut bytes,
        );
        self.runs.reserve_exact(bytes.len());
        self.runs.splice(0..0, bytes);
    }

    /// Puts `extents` and `tables` in the place of those of the run that begins at `start`.
    pub(super) fn replace(
        &mut self,
        start: usize,
        extents: Option<&[Extent]>,
        tables: Option<Tables<'_>>,
    ) {
        let Some(view) = run::view_at(&self.runs, start) else {
            return;
        };
        let mut bytes = Vec::new();
        let tables = tables.or(view.tables());
        match extents {
            Some(extents) => {
                run::encode(&view.run, extents.iter().copied(), tables, &mut bytes);
            }
            None => {
                let extents: Vec<_> = view.extents().collect();
                run::encode(&view.run, extents.iter().copied(), tables, &mut bytes);
            }
        }
        let range = view.start..view.end;
        self.runs.reserve_exact(bytes.len().saturating_sub(range.len()));
        self.runs.splice(range, bytes);
    }

    /// Lets the tables of all runs go.
    pub(super) fn cool(&mut self) {
        if self.runs.len() == self.counts.record as usize {
            return;
        }
        let mut bytes = Vec::new();
        self.encode_runs(&mut bytes);
        bytes.shrink_to_fit();
        self.runs = bytes;
    }

    fn encode_runs(&self, to: &mut Vec<u8>) {
        for view in views(&self.runs) {
            to.extend_from_slice(self.runs.get(view.start..view.head - 1).unwrap_or_default());
            to.push(0);
        }
    }
}

/// What is counted over all partitions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) bottom: u64,
    pub(super) bottom_bytes: u64,
    /// Bytes of all runs.
    pub(super) all_bytes: u64,
    pub(super) pending: u64,
    /// Parts of pages of the partition that has most.
    pub(super) largest: u64,
    pub(super) fragments_most: u32,
    /// Bytes of the root record.
    pub(super) record: u64,
    /// Bytes of memory.
    pub(super) memory: u64,
}

/// All partitions.
pub(super) struct Directory {
    pub(super) parts: Vec<Part>,
    /// The number of the next run.
    pub(super) next: u32,
}

/// How the directory is written.
const FORM: u8 = 4;

impl Directory {
    pub(super) fn new() -> Self {
        Directory { parts: vec![Part::default()], next: 1 }
    }

    /// The partition where `key` is or belongs.
    pub(super) fn find(&self, key: &[u8]) -> usize {
        self.parts.partition_point(|part| *part.low <= *key).saturating_sub(1)
    }

    /// Where the partition at `at` ends; `None` for the last.
    pub(super) fn high(&self, at: usize) -> Option<&[u8]> {
        self.parts.get(at + 1).map(|next| &*next.low)
    }

    /// How keys of the partition at `at` become fences.
    pub(super) fn scale(&self, at: usize) -> Scale {
        let low = self.parts.get(at).map(|part| &*part.low).unwrap_or_default();
        Scale::of(low, self.high(at))
    }

    pub(super) fn number(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1).max(1);
        self.next
    }

    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals { record: 64, ..Totals::default() };
        for part in &self.parts {
            let counts = part.counts;
            totals.bottom += u64::from(counts.bottom);
            totals.bottom_bytes += u64::from(counts.bytes);
            totals.all_bytes += u64::from(counts.all_bytes);
            totals.pending += u64::from(counts.pending);
            totals.largest = totals.largest.max(counts.parts.into());
            totals.fragments_most = totals.fragments_most.max(counts.fragments);
            totals.record += 4 + part.low.len() as u64 + u64::from(counts.record);
            totals.memory += (part.low.len() + part.runs.capacity()) as u64;
        }
        totals.memory += (self.parts.capacity() * size_of::<Part>()) as u64;
        totals
    }

    pub(super) fn encode(&self, shape: EntryShape, bytes: u64) -> Vec<u8> {
        let head = root_record::encode(NAME, shape);
        let mut record = Vec::with_capacity(bytes as usize + 64);
        record.extend_from_slice(&head);
        record.extend_from_slice(&(self.parts.len() as u32).to_le_bytes());
        record.push(FORM);
        record.extend_from_slice(&self.next.to_le_bytes());
        for part in &self.parts {
            record.extend_from_slice(&(part.low.len() as u16).to_le_bytes());
            record.extend_from_slice(&part.low);
            record.extend_from_slice(&(part.runs_count() as u16).to_le_bytes());
            part.encode_runs(&mut record);
        }
        record
    }

    /// What [`Directory::encode`] wrote, of runs in `pages` pages of `content` bytes.
    pub(super) fn decode(
        record: &[u8],
        (content, pages): (u32, u32),
    ) -> Result<(EntryShape, Self)> {
        let what = "its directory makes no sense";
        let damaged = store::Error::NotAnIndex { is_ours: true, what };
        let (shape, rest) = root_record::decode(record, NAME)?;
        let directory = Self::decode_rest(rest, (content, pages)).ok_or(damaged)?;
        Ok((shape, directory))
    }

    fn decode_rest(mut rest: &[u8], (content, pages): (u32, u32)) -> Option<Self> {
        let count = u32::from_le_bytes(array(&mut rest)?);
        let [form] = array(&mut rest)?;
        let next = u32::from_le_bytes(array(&mut rest)?);
        let mut parts: Vec<Part> = Vec::new();
        parts.try_reserve_exact((count as usize).min(rest.len())).ok()?;
        for place in 0..count {
            let length = u16::from_le_bytes(array(&mut rest)?);
            let (low, behind) = rest.split_at_checked(length.into())?;
            rest = behind;
            let is_behind = match parts.last() {
                Some(before) => *before.low < *low,
                None => low.is_empty() && place == 0,
            };
            let runs = u16::from_le_bytes(array(&mut rest)?);
            if !merger::takes(runs.into()) {
                return None;
            }
            let mut part = Part { low: low.into(), ..Part::default() };
            for left in (0..runs).rev() {
                let run: Run = run::decode(&mut rest, content, pages, &mut part.runs)?;
                if run.is_bottom != (left == 0) && run.is_bottom {
                    return None;
                }
            }
            part.runs.shrink_to_fit();
            part.count(content);
            if !is_behind {
                return None;
            }
            parts.push(part);
        }
        (rest.is_empty() && form == FORM && !parts.is_empty()).then_some(Directory { parts, next })
    }
}

fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*bytes)
}
