//! What is known of a run on raw flash: where it stands, and the tables that spare reading it.
//!
//! A run is units of one size. It begins at any byte of a page, behind what others have there, and
//! goes on at the first byte of the pages that follow; no unit crosses pages. The runs of a
//! partition stand packed in one list, the newest first, as they do in the root record:
//!
//! ```text
//!  run     varints: number | entries, and two bits: a bottom, gaps | units | bytes of a unit
//!          | bytes of the longest entry | bytes of a key, 0 if whole | first byte
//!          | extents, each: page, pages
//!          | tables u8: 0 if there are none, else 1 and bits of the filter an entry
//!          | fences, if there are units to choose from | filter
//! ```
//!
//! A fence is the place of a unit's first key in its partition ([`fences`]). Where many keys share
//! a step, units are read by halves. Tables are in memory alone. Keys of one length stand as
//! their distance from the partition's first key, where that is shorter ([`keys`]). Units of
//! bottoms have gaps between them ([`units`](super::units)), if these are short enough.

use alloc::vec::Vec;
use core::ops::Range;

use index::Result;
use store::runs::{GapShape, Kinds, UnitSeed, UnitShape};
use store::{EntryShape, Width};

use super::super::filter;
use super::units::Units;
use super::{fences, keys};

/// Pages one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) page: u32,
    pub(super) pages: u32,
}

impl Extent {
    /// The page behind the last.
    pub(super) const fn end(&self) -> u32 {
        self.page.saturating_add(self.pages)
    }

    /// Those of its pages that are among `pages`.
    pub(super) fn within(&self, pages: &Range<u32>) -> Range<u32> {
        self.page.max(pages.start)..self.end().min(pages.end)
    }
}

/// What is known of a run beside where it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    /// No other run of the index ever had it.
    pub(super) number: u32,
    pub(super) is_bottom: bool,
    /// True if keys stand as gaps.
    pub(super) has_gaps: bool,
    pub(super) entries: u32,
    pub(super) units: u32,
    /// Bytes of a unit.
    pub(super) unit: u32,
    /// Bytes of key and value of the longest entry.
    pub(super) longest: u32,
    /// Bytes of a key as it stands there; 0 if keys stand whole.
    pub(super) kept: u32,
    /// Where in its first page it begins.
    pub(super) offset: u32,
}

impl Run {
    /// How its units are read.
    pub(super) fn units(&self, entries: EntryShape) -> Result<Units> {
        let shape = self.shape(entries)?;
        if !self.has_gaps {
            return Ok(Units::Whole(shape));
        }
        let what = "its keys can't stand as gaps";
        let gaps = GapShape::new(shape).ok_or(store::Error::NotAnIndex { is_ours: true, what })?;
        Ok(Units::Gaps(gaps))
    }

    /// The shape of its units, gaps aside.
    pub(super) fn shape(&self, entries: EntryShape) -> Result<UnitShape> {
        let kinds = if self.is_bottom { Kinds::Puts } else { Kinds::Deletes };
        if self.kept > 0 && keys::width(entries).is_none_or(|all| all <= self.kept as usize) {
            let what = "its keys are longer than all keys";
            return Err(store::Error::NotAnIndex { is_ours: true, what }.into());
        }
        let key = if self.kept > 0 { Width::Fixed(self.kept as u16) } else { entries.key };
        Ok(UnitShape::new(self.unit, EntryShape { key, ..entries }, kinds)?)
    }

    pub(super) const fn seed(&self, unit: u32) -> UnitSeed {
        UnitSeed { identity: 0, run: self.number as u64, unit }
    }

    /// Units in the first page, and in each of the others, of pages of `content` bytes.
    fn units_a_page(&self, content: u32) -> (u32, u32) {
        let first = content.saturating_sub(self.offset) / self.unit.max(1);
        (first, (content / self.unit.max(1)).max(1))
    }

    /// Pages that it has a part of.
    pub(super) fn pages(&self, content: u32) -> u32 {
        let (first, each) = self.units_a_page(content);
        1 + self.units.saturating_sub(first).div_ceil(each)
    }

    /// How many of its units stand before `unit` in the same page.
    pub(super) fn before(&self, unit: u32, content: u32) -> u32 {
        let (first, each) = self.units_a_page(content);
        unit.checked_sub(first).map_or(unit, |behind| behind % each)
    }

    /// The page of `unit`, counted from the first, where it begins there, and the units that stand
    /// there from it on.
    fn place(&self, unit: u32, content: u32) -> (u32, u32, u32) {
        let (first, each) = self.units_a_page(content);
        match unit.checked_sub(first) {
            None => (0, self.offset + unit * self.unit, first - unit),
            Some(behind) => (1 + behind / each, behind % each * self.unit, each - behind % each),
        }
    }

    /// Bytes of its tables.
    pub(super) fn table_bytes(&self, filter_bits: u32) -> usize {
        let filter = match self.is_bottom {
            true => 0,
            false => filter::bytes_for(self.entries.into(), filter_bits),
        };
        fences::bytes_of(self.units) + filter as usize
    }

    /// True if it can stand in pages of `content` bytes.
    fn is_possible(&self, content: u32) -> bool {
        let has_room = self.offset.checked_add(self.unit).is_some_and(|end| end <= content);
        let is_counted = self.entries > 0 && self.units > 0 && self.units <= self.entries;
        is_counted && has_room && self.longest <= self.unit && self.unit >= UNIT_LEAST
    }
}

/// The smallest unit.
pub(super) const UNIT_LEAST: u32 = 24;

/// A run in a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'r> {
    pub(super) run: Run,
    extents: &'r [u8],
    /// Bits of its filter for each entry; `None` if there are no tables.
    filter_bits: Option<u32>,
    tables: &'r [u8],
    /// Where in the list it begins, its tables do, and it ends.
    pub(super) start: usize,
    pub(super) head: usize,
    pub(super) end: usize,
}

/// Bits of a filter for each entry, and fences and filter.
pub(super) type Tables<'t> = (u32, &'t [u8]);

/// The most bits of a filter for each entry.
pub(super) const FILTER_BITS_MOST: u32 = 254;

impl View<'_> {
    /// The tables that there are.
    pub(super) fn tables(&self) -> Option<Tables<'_>> {
        self.filter_bits.map(|bits| (bits, self.tables))
    }

    pub(super) fn extents(&self) -> impl Iterator<Item = Extent> {
        let mut rest = self.extents;
        core::iter::from_fn(move || {
            let (page, pages) = (take(&mut rest)?, take(&mut rest)?);
            Some(Extent { page, pages })
        })
    }

    /// Where `unit` stands, page and byte, and how many do from it on in the same page.
    pub(super) fn locate(&self, unit: u32, content: u32) -> Option<(u32, u32, u32)> {
        locate(&self.run, self.extents(), unit, content)
    }

    /// True if there are tables, or none are needed.
    pub(super) fn has_tables(&self) -> bool {
        self.filter_bits.is_some() || self.run.is_bottom && self.run.units == 1
    }

    /// The units in one of which the key stands whose fence is `fence`, if it stands in the run.
    pub(super) fn plan(&self, fence: u16) -> Range<u32> {
        let units = self.run.units;
        let fences = self.tables.get(..fences::bytes_of(units)).unwrap_or_default();
        if fences.is_empty() {
            return 0..units;
        }
        let fence = fences::kept(fence, units);
        let partition = |is_before: &dyn Fn(u16) -> bool| {
            let (mut low, mut high) = (0, units);
            while low < high {
                let middle = low + (high - low) / 2;
                if is_before(fences::at(fences, units, middle)) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        let low = partition(&|other| other < fence).saturating_sub(1);
        let high = partition(&|other| other <= fence);
        low..high
    }

    /// False if there is no such key.
    pub(super) fn may_have(&self, key: &[u8]) -> bool {
        let filter = self.tables.get(fences::bytes_of(self.run.units)..).unwrap_or_default();
        filter.is_empty() || filter::may_have(filter, key)
    }
}

/// Where `unit` of a run stands, page and byte, and how many do from it on in the same page.
pub(super) fn locate(
    run: &Run,
    extents: impl Iterator<Item = Extent>,
    unit: u32,
    content: u32,
) -> Option<(u32, u32, u32)> {
    if unit >= run.units {
        return None;
    }
    let (mut place, offset, units) = run.place(unit, content);
    for extent in extents {
        match place.checked_sub(extent.pages) {
            None => return Some((extent.page + place, offset, units.min(run.units - unit))),
            Some(behind) => place = behind,
        }
    }
    None
}

/// The runs in a list, the newest first.
pub(super) fn views(list: &[u8]) -> impl Iterator<Item = View<'_>> {
    let mut at = 0;
    core::iter::from_fn(move || {
        let view = view_at(list, at)?;
        at = view.end;
        Some(view)
    })
}

/// The run that begins at byte `start` of a list.
pub(super) fn view_at(list: &[u8], start: usize) -> Option<View<'_>> {
    let mut rest = list.get(start..).filter(|rest| !rest.is_empty())?;
    let run = take_run(&mut rest)?;
    let count = take(&mut rest)?;
    let extents = rest;
    for _ in 0..2 * count {
        take(&mut rest)?;
    }
    let extents = extents.get(..extents.len() - rest.len())?;
    let (tables, rest) = rest.split_first()?;
    let filter_bits = u32::from(*tables).checked_sub(1);
    let bytes = filter_bits.map_or(0, |bits| run.table_bytes(bits));
    let (tables, rest) = rest.split_at_checked(bytes)?;
    let end = list.len() - rest.len();
    Some(View { run, extents, filter_bits, tables, start, head: end - bytes, end })
}

fn take_run(rest: &mut &[u8]) -> Option<Run> {
    let (number, entries) = (take(rest)?, take(rest)?);
    Some(Run {
        number,
        is_bottom: entries & 1 == 1,
        has_gaps: entries & 2 == 2,
        entries: entries >> 2,
        units: take(rest)?,
        unit: take(rest)?,
        longest: take(rest)?,
        kept: take(rest)?,
        offset: take(rest)?,
    })
}

/// Writes a run to the end of `to`, without tables if these are `None`.
pub(super) fn encode(
    run: &Run,
    extents: impl Iterator<Item = Extent> + Clone,
    tables: Option<Tables<'_>>,
    to: &mut Vec<u8>,
) {
    let entries = run.entries << 2 | u32::from(run.has_gaps) << 1 | u32::from(run.is_bottom);
    let count = extents.clone().count() as u32;
    let Run { number, units, unit, longest, kept, offset, .. } = *run;
    for number in [number, entries, units, unit, longest, kept, offset, count] {
        put(to, number);
    }
    for extent in extents {
        put(to, extent.page);
        put(to, extent.pages);
    }
    to.push(tables.map_or(0, |(bits, _)| bits as u8 + 1));
    to.extend_from_slice(tables.unwrap_or_default().1);
}

/// Reads a run without tables that `encode` wrote to a root record; `None` if there can be none.
pub(super) fn decode(
    rest: &mut &[u8],
    content: u32,
    pages_most: u32,
    to: &mut Vec<u8>,
) -> Option<Run> {
    let start = *rest;
    let run = take_run(rest)?;
    let count = take(rest)?;
    let mut pages = 0u32;
    for _ in 0..count {
        let (page, more) = (take(rest)?, take(rest)?);
        let is_there = page.checked_add(more).is_some_and(|end| end <= pages_most);
        pages = pages.checked_add(more).filter(|_| is_there && more > 0)?;
    }
    let (has_tables, behind) = rest.split_first()?;
    *rest = behind;
    let is_possible = run.is_possible(content) && run.pages(content) == pages && *has_tables == 0;
    to.extend_from_slice(start.get(..start.len() - rest.len())?);
    is_possible.then_some(run)
}

/// Writes a number, seven bits a byte.
pub(super) fn put(to: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Reads a number that `put` wrote.
pub(super) fn take(rest: &mut &[u8]) -> Option<u32> {
    let mut number = 0u32;
    for place in 0..5 {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u32::from(byte & 0x7F).checked_shl(7 * place)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// How keys of a partition become fences: by the eight bytes behind what all of them share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scale {
    skipped: usize,
    base: u64,
    shift: u32,
}

impl Scale {
    /// For keys from `low` on, below `high`.
    pub(super) fn of(low: &[u8], high: Option<&[u8]>) -> Self {
        let skipped = high
            .map_or(0, |high| low.iter().zip(high).take_while(|(one, other)| one == other).count());
        let base = Self::bytes(low, skipped);
        let top = high.map_or(u64::MAX, |high| Self::bytes(high, skipped));
        let bits = 64 - top.saturating_sub(base).leading_zeros();
        Scale { skipped, base, shift: bits.saturating_sub(16) }
    }

    fn bytes(key: &[u8], skipped: usize) -> u64 {
        let mut bytes = [0; 8];
        for (byte, from) in bytes.iter_mut().zip(key.get(skipped..).unwrap_or_default()) {
            *byte = *from;
        }
        u64::from_be_bytes(bytes)
    }

    pub(super) fn fence(&self, key: &[u8]) -> u16 {
        let place = Self::bytes(key, self.skipped).saturating_sub(self.base) >> self.shift;
        u16::try_from(place).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_back_and_its_units_are_found() {
        let run = Run {
            number: 70_000,
            is_bottom: false,
            has_gaps: true,
            entries: 100,
            units: 13,
            unit: 100,
            longest: 8,
            kept: 3,
            offset: 220,
        };
        // Two units in the first page, five in each of the others.
        assert_eq!(run.pages(512), 4);
        let extents = [Extent { page: 31, pages: 1 }, Extent { page: 900, pages: 3 }];
        let mut list = Vec::new();
        encode(&run, extents.iter().copied(), None, &mut list);
        let (mut rest, mut copy) = (&list[..], Vec::new());
        assert_eq!(decode(&mut rest, 512, 1000, &mut copy), Some(run));
        assert_eq!((rest.len(), &copy), (0, &list));
        assert_eq!(decode(&mut &list[..], 512, 902, &mut copy), None);
        let view = views(&list).next().filter(|view| view.run == run);
        let view = view
            .as_ref()
            .map(|view| [0, 1, 2, 6, 7, 12].map(|unit| view.locate(unit, 512).unwrap_or_default()));
        let places =
            [(31, 220, 2), (31, 320, 1), (900, 0, 5), (900, 400, 1), (901, 0, 5), (902, 0, 1)];
        assert_eq!(view, Some(places));
    }

    #[test]
    fn fences_are_in_the_order_of_keys() {
        for (low, high) in [(&b""[..], None), (b"key-a", Some(&b"key-b9"[..])), (b"a", Some(b"b"))]
        {
            let scale = Scale::of(low, high);
            let mut before = 0;
            for number in 0..=u16::MAX {
                let key = [low, &number.to_be_bytes()].concat();
                let fence = scale.fence(&key);
                assert!(fence >= before, "{low:?}");
                before = fence;
            }
        }
    }
}
