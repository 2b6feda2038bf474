//! What is known of a run: where it stands, and what is in it.
//!
//! ```text
//!  run       number u64 | label u64 | unit bytes u32 | key u16, value u16 (65535: varying)
//!            | kinds u8 | fence step u8 | units u32 | footer bytes u32 | footer checksum u32
//!            | entries u64 | deletes u64 | fences u64 | bytes u64
//!            | first sequence u64 | last sequence u64
//!            | first key's bytes u16, last key's bytes u16 | first key | last key
//!  extents   count u32 | each: first page u32, pages u32
//!  footer    `RUN1` | run, but for its footer's checksum | checksum of all units' checksums u32
//!            | fences, where they are kept
//! ```
//!
//! A manifest has run and extents; the footer stands in pieces behind the last unit.

use alloc::vec::Vec;
use core::ops::{Range, RangeInclusive};

use super::entry::Kinds;
use super::space::Extent;
use super::unit::{KEY_BYTES_MOST, UnitShape};
use crate::bytes::Reader;
use crate::{EntryShape, Error, Result, Width};

/// The number of a run: no other run of the index ever had it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

/// A sorted run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its number.
    pub id: RunId,
    /// A number of the tree's own: a level, or a partition.
    pub label: u64,
    /// How its units are made.
    pub shape: UnitShape,
    /// Units of entries; the footer's come behind them.
    pub units: u32,
    /// Entries that are no fences, deletes among them.
    pub entries: u64,
    /// Entries that are deletes.
    pub deletes: u64,
    /// Entries that are fences.
    pub fences: u64,
    /// Bytes of keys and values of the entries.
    pub bytes: u64,
    /// The first and the last update that it may hold, as the tree counts them.
    pub sequences: RangeInclusive<u64>,
    /// The first key, if there is one.
    pub first_key: Vec<u8>,
    /// The last key.
    pub last_key: Vec<u8>,
    /// Where it stands, footer included, in this order.
    pub extents: Vec<Extent>,
    /// Every so many units one fence is kept in the footer; 0 for none.
    pub(super) fence_step: u8,
    pub(super) footer_bytes: u32,
    pub(super) footer_checksum: u32,
}

const MAGIC: [u8; 4] = *b"RUN1";
const VARYING: u16 = u16::MAX;
const DAMAGED: Error =
    Error::NotAnIndex { is_ours: true, what: "its manifest has a run that makes no sense" };

impl Run {
    /// Pages that it takes.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.held().map(|extent| u64::from(extent.pages)).sum()
    }

    /// The extents that it has, without those that were given back.
    pub(super) fn held(&self) -> impl Iterator<Item = Extent> {
        self.extents.iter().copied().filter(|extent| !extent.is_hole())
    }

    /// Takes the pages at `places`, counted from its first, out of it, and returns them as a run
    /// that has no others; `None`, with nothing changed, if they are not all there.
    pub(super) fn cut(&mut self, places: &Range<u32>) -> Option<Run> {
        let (mut left, mut cut) = (Vec::with_capacity(self.extents.len() + 2), Vec::new());
        let mut at = 0u32;
        for extent in &self.extents {
            let end = at.checked_add(extent.pages)?;
            let [from, to] = [places.start, places.end].map(|place| place.clamp(at, end) - at);
            if from < to && extent.is_hole() {
                return None;
            }
            let part = |from: u32, to: u32| match extent.is_hole() {
                true => Extent::hole(to.saturating_sub(from)),
                false => Extent { first: extent.first + from, pages: to.saturating_sub(from) },
            };
            let to = to.max(from);
            part(0, from).push(&mut left);
            Extent::hole(to - from).push(&mut left);
            part(to, extent.pages).push(&mut left);
            Extent::hole(from).push(&mut cut);
            part(from, to).push(&mut cut);
            Extent::hole(extent.pages - to).push(&mut cut);
            at = end;
        }
        if places.start >= places.end || places.end > at {
            return None;
        }
        self.extents = left;
        Some(Run { extents: cut, ..self.clone() })
    }

    /// The pages, counted from the first, that hold nothing but these units.
    #[must_use]
    pub fn pages_of(&self, units: Range<u32>, page_bytes: u32) -> Range<u32> {
        let a_page = page_bytes.checked_div(self.shape.bytes()).unwrap_or(0).max(1);
        // The last page has the footer.
        let first = units.start.div_ceil(a_page);
        first..(units.end.min(self.units) / a_page).max(first)
    }

    /// Units of its footer.
    pub(super) fn footer_units(&self) -> u32 {
        self.shape.pieces(self.footer_bytes as usize)
    }

    /// The page of its place `page`, counted from its first.
    pub(super) fn page_at(&self, mut page: u32) -> Option<(u32, u32)> {
        for extent in &self.extents {
            match page.checked_sub(extent.pages) {
                None if extent.is_hole() => return None,
                None => return Some((extent.first + page, extent.pages - page)),
                Some(behind) => page = behind,
            }
        }
        None
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub const fn memory(&self) -> u64 {
        let keys = self.first_key.capacity() + self.last_key.capacity();
        (size_of::<Run>() + keys + self.extents.capacity() * size_of::<Extent>()) as u64
    }

    /// The most bytes that a run with keys of `key` bytes in `extents` extents takes in a manifest.
    #[must_use]
    pub const fn encoded_bytes_most(key: usize, extents: usize) -> usize {
        97 + 2 * key + 4 + 8 * extents
    }

    /// Writes it to the end of `to`.
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        self.encode_head(to);
        to.extend_from_slice(&(self.extents.len() as u32).to_le_bytes());
        for extent in &self.extents {
            to.extend_from_slice(&extent.first.to_le_bytes());
            to.extend_from_slice(&extent.pages.to_le_bytes());
        }
    }

    fn encode_head(&self, to: &mut Vec<u8>) {
        let u64 = |to: &mut Vec<u8>, number: u64| to.extend_from_slice(&number.to_le_bytes());
        let u32 = |to: &mut Vec<u8>, number: u32| to.extend_from_slice(&number.to_le_bytes());
        u64(to, self.id.0);
        u64(to, self.label);
        u32(to, self.shape.bytes());
        let EntryShape { key, value } = self.shape.entries();
        for width in [key, value] {
            let width = if let Width::Fixed(bytes) = width { bytes } else { VARYING };
            to.extend_from_slice(&width.to_le_bytes());
        }
        to.extend_from_slice(&[self.shape.kinds() as u8, self.fence_step]);
        u32(to, self.units);
        u32(to, self.footer_bytes);
        u32(to, self.footer_checksum);
        for number in [self.entries, self.deletes, self.fences, self.bytes] {
            u64(to, number);
        }
        u64(to, *self.sequences.start());
        u64(to, *self.sequences.end());
        for key in [&self.first_key, &self.last_key] {
            to.extend_from_slice(&(key.len() as u16).to_le_bytes());
        }
        to.extend_from_slice(&self.first_key);
        to.extend_from_slice(&self.last_key);
    }

    /// The footer without its fences.
    pub(super) fn footer(&self, units_checksum: u32) -> Vec<u8> {
        let mut footer = MAGIC.to_vec();
        Run { footer_checksum: 0, footer_bytes: 0, ..self.clone() }.encode_head(&mut footer);
        footer.extend_from_slice(&units_checksum.to_le_bytes());
        footer
    }

    /// Reads what [`Run::encode`] wrote; checks that it stands in pages of `page_bytes` bytes.
    pub(super) fn decode(from: &mut Reader<'_>, page_bytes: u32) -> Result<Self> {
        let mut run = Self::decode_head(from)?;
        let count = from.u32().ok_or(DAMAGED)?;
        for _ in 0..count {
            let (first, pages) = from.u32().zip(from.u32()).ok_or(DAMAGED)?;
            run.extents.push(Extent { first, pages });
        }
        let units_a_page = page_bytes.checked_div(run.shape.bytes()).unwrap_or(0);
        let pages: u64 = run.extents.iter().map(|extent| u64::from(extent.pages)).sum();
        let room = pages * u64::from(units_a_page);
        let units = u64::from(run.units) + u64::from(run.footer_units());
        // One page at most is not full.
        let is_possible = units <= room && room < units + u64::from(units_a_page.max(1));
        if is_possible && run.is_plausible() { Ok(run) } else { Err(DAMAGED) }
    }

    fn is_plausible(&self) -> bool {
        let fits = |key: &Vec<u8>| match self.shape.entries().key {
            Width::Fixed(bytes) => key.len() == usize::from(bytes),
            Width::Variable => key.len() <= KEY_BYTES_MOST,
        };
        let is_empty = self.units == 0;
        let is_counted =
            self.deletes <= self.entries && (self.entries + self.fences > 0) != is_empty;
        let has_keys = fits(&self.first_key) && fits(&self.last_key);
        is_counted && (is_empty || has_keys) && self.first_key <= self.last_key
    }

    fn decode_head(from: &mut Reader<'_>) -> Result<Self> {
        Self::decode_fields(from).ok_or(DAMAGED)
    }

    fn decode_fields(from: &mut Reader<'_>) -> Option<Self> {
        let (id, label) = (RunId(from.u64()?), from.u64()?);
        let unit_bytes = from.u32()?;
        let width = |bytes: [u8; 2]| match u16::from_le_bytes(bytes) {
            VARYING => Width::Variable,
            bytes => Width::Fixed(bytes),
        };
        let entries = EntryShape { key: width(from.array()?), value: width(from.array()?) };
        let [kinds, fence_step] = from.array()?;
        let shape = UnitShape::new(unit_bytes, entries, Kinds::from_number(kinds)?).ok()?;
        let [units, footer_bytes, footer_checksum] = [from.u32()?, from.u32()?, from.u32()?];
        let [entries, deletes, fences, bytes] =
            [from.u64()?, from.u64()?, from.u64()?, from.u64()?];
        let sequences = from.u64()?..=from.u64()?;
        let [first, last] = [from.array()?, from.array()?].map(u16::from_le_bytes);
        let first_key = from.bytes(first.into())?.to_vec();
        let last_key = from.bytes(last.into())?.to_vec();
        Some(Run {
            id,
            label,
            shape,
            units,
            entries,
            deletes,
            fences,
            bytes,
            sequences,
            first_key,
            last_key,
            extents: Vec::new(),
            fence_step,
            footer_bytes,
            footer_checksum,
        })
    }

    /// The checksum of the units, and the fences, if `footer` is this run's.
    pub(super) fn check_footer<'f>(&self, footer: &'f [u8]) -> Option<(u32, &'f [u8])> {
        if device::checksum(&[footer]) != self.footer_checksum {
            return None;
        }
        let mut from = Reader::new(footer.strip_prefix(&MAGIC)?);
        let said = Self::decode_fields(&mut from)?;
        let units = from.u32()?;
        let known =
            Run { extents: Vec::new(), footer_bytes: 0, footer_checksum: 0, ..self.clone() };
        (said == known).then_some(())?;
        let fences = from.bytes(from.left())?;
        Some((units, fences))
    }
}
