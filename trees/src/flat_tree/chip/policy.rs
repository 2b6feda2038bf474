//! When partitions are merged, which of them, how large they are, and how large their units.

use index::random_keys::average_bytes;

use super::ChipTree;
use super::directory::Part;
use super::keys;
use super::run::{FILTER_BITS_MOST, Run};
use super::units::Units;
use super::write::unit_for;

/// Entries may wait in fragments up to this share of those in bottoms: more of them gain little.
const PENDING_MOST: f64 = 0.9;

/// By how much a merge moves the estimate of how many pending entries hide others.
const STEP: f64 = 1.0 / 4.0;

/// The part of the memory of tables that fences get: where updates outnumber lookups, where they
/// don't, and where there are few of them.
const FENCES_PART: [f64; 3] = [0.15, 0.3, 0.4];

/// Updates are few where lookups are more than so many times as many.
const UPDATES_FEW: u32 = 4;

/// Entries of a partition, where bytes and pages allow it.
const ENTRIES: u64 = 704;

/// Pages of a partition at least, for both its ends take a part of a page; but no more than such a
/// part of the chip, for as much is kept free for its merge.
const PAGES_LEAST: u64 = 11;
const PAGES_LEAST_PART: u64 = 170;

/// The most bytes of a partition that is not chosen.
const BYTES_MOST: u64 = 32_768;

/// The part of the chip's pages that a partition has at most.
const PAGES_PART: u64 = 32;

/// Bytes of a unit of a fragment.
const FRAGMENT_UNIT: u32 = 64;

/// Bytes of a unit where memory of tables is not bounded.
const UNIT_USUAL: u32 = 64;

/// Parts of pages that a partition may come to have before it is merged, as so many times those
/// that it should have.
const PARTS_MOST: u64 = 4;

/// Bits of a filter for each entry, where updates outnumber lookups, and where they don't.
const FILTER_BITS: [u32; 2] = [8, 12];

/// Operations after which earlier ones count half.
const OPERATIONS: u32 = 1 << 14;

/// What was asked for lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mix {
    lookups: u32,
    updates: u32,
}

impl Mix {
    pub(super) const fn note_lookup(&mut self) {
        self.lookups += 1;
        self.age();
    }

    pub(super) const fn note_update(&mut self) {
        self.updates += 1;
        self.age();
    }

    const fn age(&mut self) {
        if self.lookups + self.updates >= OPERATIONS {
            (self.lookups, self.updates) = (self.lookups / 2, self.updates / 2);
        }
    }
}

/// What the policy knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// Bytes of a partition, if they were chosen.
    pub(super) partition: Option<u64>,
    /// Bytes of a unit, if they were chosen.
    pub(super) unit: Option<u32>,
    /// Bits of a filter for each entry, if they were chosen.
    pub(super) filter: Option<u32>,
    pub(super) mix: Mix,
    /// Of entries that were merged from fragments, the share that hid others.
    pub(super) hiding: f64,
    /// What a merge costs for each page of a partition, as so many reads of a unit.
    pub(super) reads_a_page: u32,
    /// The most fragments of a partition.
    pub(super) fragments_most: u32,
    /// The most bytes of a root record.
    pub(super) root_most: u64,
}

impl Policy {
    /// Bits of a filter for each entry: where lookups are few, more entries in fragments pay more.
    pub(super) fn filter_bits(&self) -> u32 {
        let Mix { lookups, updates } = self.mix;
        let [few, many] = FILTER_BITS;
        let chosen = if lookups > updates / 2 { many } else { few };
        self.filter.unwrap_or(chosen).min(FILTER_BITS_MOST)
    }

    /// The part of the memory of tables that fences get.
    fn fences_part(&self) -> f64 {
        let Mix { lookups, updates } = self.mix;
        let [few, many, most] = FENCES_PART;
        match lookups > updates / 2 {
            _ if lookups > UPDATES_FEW * updates => most,
            true => many,
            false => few,
        }
    }

    /// Learns from a merge in which so many of the `pending` entries hid others.
    pub(super) fn learn(&mut self, pending: u64, hid: u64) {
        if pending > 0 {
            let share = (hid as f64 / pending as f64).min(1.0);
            self.hiding += (share - self.hiding) * STEP;
        }
    }
}

impl ChipTree<'_> {
    /// Bytes of key and value of an entry, on average.
    pub(super) fn entry_bytes(&self) -> u64 {
        let of = |width| u64::from(average_bytes(width));
        (of(self.shape.key) + of(self.shape.value)).max(1)
    }

    /// Bytes that a partition should have.
    fn partition_bytes(&self) -> u64 {
        if let Some(bytes) = self.policy.partition {
            return bytes;
        }
        let content = u64::from(self.storage.content());
        let pages = u64::from(self.storage.geometry().pages());
        let least = PAGES_LEAST.min(pages / PAGES_LEAST_PART).max(1) * content;
        let most = (pages / PAGES_PART).max(1) * content;
        (ENTRIES * self.entry_bytes()).min(BYTES_MOST).max(least).min(most)
    }

    /// Entries that a partition should have.
    pub(super) fn entries_wanted(&self) -> u64 {
        (self.partition_bytes() / self.bottom_bytes_each() as u64).clamp(4, 32_768)
    }

    /// Bytes of an entry in a bottom, on average.
    fn bottom_bytes_each(&self) -> f64 {
        match self.totals.bottom {
            entries if entries < ENTRIES => self.entry_bytes() as f64 + 1.0,
            entries => (self.totals.bottom_bytes as f64 / entries as f64).max(1.0),
        }
    }

    /// Entries that merging a partition comes to, as far as can be told.
    pub(super) fn entries_expected(&self, part: &Part) -> u64 {
        let pending = part.counts.pending;
        let hidden = f64::from(pending) * self.policy.hiding;
        (u64::from(part.counts.bottom) + u64::from(pending)).saturating_sub(hidden as u64)
    }

    /// Bytes of a key in a run of a partition from `low` to `high`, or in such a part of it; 0 if
    /// keys stand whole.
    pub(super) fn bytes_kept(&self, low: &[u8], high: Option<&[u8]>, share: (u64, u64)) -> u32 {
        let Some(width) = keys::width(self.shape) else {
            return 0;
        };
        let kept = keys::bytes_kept(low, high, width, share);
        if kept < width { kept as u32 } else { 0 }
    }

    /// True if keys of bottoms stand as gaps, in units of `unit` bytes, with `kept` bytes of a key
    /// where they stand whole: how many bytes those are matters little then.
    pub(super) fn have_gaps(&self, unit: u32, kept: u32) -> bool {
        let run = Run { unit, kept, is_bottom: true, ..Run::default() };
        run.shape(self.shape).is_ok_and(|shape| Units::with_gaps(shape).have_gaps())
    }

    /// The least bytes of a unit that holds an entry of so many bytes, and those that a page has
    /// whole, of up to `wanted` bytes.
    fn fit_unit(&self, longest: u32, wanted: u32) -> u32 {
        let content = self.storage.content();
        let least = unit_for(self.shape, longest as usize);
        let wanted = wanted.max(least).min(content);
        let units = (content / wanted).max(1);
        (content / units).clamp(least, content.max(least))
    }

    /// Bytes of a unit of a bottom whose longest entry has `longest` bytes: as many as let fences
    /// have their part of the memory.
    pub(super) fn bottom_unit(&self, longest: u32) -> u32 {
        let wanted = match (self.policy.unit, self.tables_most) {
            (Some(unit), _) => unit,
            (None, None) => UNIT_USUAL,
            (None, Some(most)) => {
                let left = self.tables_left(most);
                let entries = self.totals.bottom + self.totals.pending;
                let bytes = entries as f64 * self.bottom_bytes_each();
                (bytes * 1.5 / (left as f64 * self.policy.fences_part()).max(1.0)) as u32
            }
        };
        self.fit_unit(longest, wanted.clamp(24, self.storage.content() / 2))
    }

    /// Bytes of a unit of a fragment of so many entries, whose longest has `longest` bytes.
    pub(super) fn fragment_unit(&self, entries: u32, longest: u32, kept: u32) -> u32 {
        use store::Width::Fixed;
        let (Fixed(key), Fixed(value)) = (self.shape.key, self.shape.value) else {
            return self.fit_unit(longest, FRAGMENT_UNIT);
        };
        // Units of one fragment are alike full.
        let bytes = if kept > 0 { kept } else { u32::from(key) } + u32::from(value);
        let units = (entries * (bytes + 1)).div_ceil(FRAGMENT_UNIT).max(1);
        let each = entries.div_ceil(units);
        let unit = 3 + each.div_ceil(8) + each * bytes;
        let unit = if unit > 128 { unit + 3 } else { unit };
        unit.max(unit_for(self.shape, longest as usize)).min(self.storage.content())
    }

    /// The partition to merge next, if one has something pending.
    pub(super) fn most_pending(&self) -> Option<usize> {
        let parts = self.directory.parts.iter().enumerate();
        let some = parts.filter(|(_, part)| part.counts.fragments > 0);
        let best = some.max_by(|(_, one), (_, other)| one.gain().total_cmp(&other.gain()));
        best.map(|(at, _)| at)
    }

    /// The partition that has to be merged, if one has.
    pub(super) fn find_due(&self) -> Option<usize> {
        let parts = &self.directory.parts;
        let totals = &self.totals;
        // One more may come with the batch that is let in, and one with the checkpoint behind it.
        if totals.fragments_most + 2 >= self.policy.fragments_most {
            return (0..parts.len()).max_by_key(|at| parts[*at].counts.fragments);
        }
        let content = u64::from(self.storage.content());
        let parts_most = PARTS_MOST * (self.partition_bytes() / content + 1);
        if totals.largest > parts_most {
            let largest = (0..parts.len()).max_by_key(|at| parts[*at].counts.parts);
            return largest.filter(|at| parts[*at].counts.fragments > 0);
        }
        let memory = (self.memtable.held(store::runs::Which::Active).0) as f64;
        let is_over = totals.pending as f64 > (PENDING_MOST * totals.bottom as f64).max(memory);
        let is_tight = self
            .tables_most
            .is_some_and(|most| totals.memory + self.tables_beside() > most - most / 16);
        let is_long = totals.record > self.policy.root_most / 4 * 3;
        if (is_over || is_tight || is_long)
            && let Some(at) = self.most_pending()
        {
            return Some(at);
        }
        // What is left of a partition may fit beside its neighbour.
        (0..parts.len()).find(|at| self.joined(*at).len() > 1)
    }

    /// True if lookups paid for the merge of a partition.
    pub(super) fn has_paid(&self, part: &Part) -> bool {
        u64::from(part.paid) > u64::from(part.counts.parts) * u64::from(self.policy.reads_a_page)
    }
}
