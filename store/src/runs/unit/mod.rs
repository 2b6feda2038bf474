//! Units: the least of a run that is read.
//!
//! ```text
//!  up to 128 bytes   checksum u16 | count 6 bits, form 2 bits         | body
//!  more              checksum u32 | count 14 bits, form 2 bits        | body
//!
//!  entries, of one   kinds, so many bits each | entry | entry | ...
//!  length
//!  others            entry | entry | ...           ... | end of 1 | end of 0
//!                    entry: length of the key and kind | key | value
//!  first piece       bytes of all pieces u32 | bytes          of an entry longer than a unit,
//!  next piece        bytes                                    or of the footer
//! ```
//!
//! The checksum is CRC-16 or CRC-32C, over the identity of the index, the number of the run, that
//! of the unit, and the unit behind it. An end is a byte in units of up to 256 bytes, else two.
//! The length of the key is left out where all keys have one, and the kind where all are puts.
//!
//! A unit may hold any bytes: [`UnitShape::open`] must accept it before anything else is called,
//! and after that no call panics.

mod build;
mod checksum;
mod gaps;

use crate::{EntryShape, Error, Result, Width};

pub use build::Builder;
pub(super) use build::{Pieces, record as record_of};
pub use checksum::Seed;
pub use gaps::{GapBuilder, GapShape};

use super::entry::{Entry, Kind, Kinds};

/// The smallest unit, in bytes.
const BYTES_LEAST: u32 = 24;

/// The largest unit, in bytes.
const BYTES_MOST: u32 = 32_768;

/// The largest unit with a short header, in bytes.
const SHORT_MOST: u32 = 128;

/// Bytes that a piece's length takes.
const PIECE_HEADER: usize = 4;

/// The longest key, in bytes.
pub(super) const KEY_BYTES_MOST: usize = 0x7FFF;

/// How the units of a run are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitShape {
    bytes: u32,
    entries: EntryShape,
    kinds: Kinds,
    /// Entries that a unit has room for, and bytes of their kinds, where all have one length.
    room: (u16, u16),
}

/// What a unit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Entries,
    /// The first piece of an entry, of so many bytes in all.
    First(u32),
    /// A piece behind the first.
    Next,
    /// The first piece of the footer, of so many bytes in all.
    Footer(u32),
}

impl UnitShape {
    /// Units of `bytes` bytes.
    ///
    /// # Errors
    /// [`Error::NodeSize`] if they are too small or too large.
    pub const fn new(bytes: u32, entries: EntryShape, kinds: Kinds) -> Result<Self> {
        if bytes < BYTES_LEAST || bytes > BYTES_MOST {
            return Err(Error::NodeSize { bytes, what: "a run's units have 24 to 32768 bytes" });
        }
        let mut shape = UnitShape { bytes, entries, kinds, room: (0, 0) };
        if let Some(lengths) = shape.packed() {
            shape.room = shape.find_room(lengths);
        }
        Ok(shape)
    }

    /// Bytes in a unit.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The shape of its entries.
    #[must_use]
    pub const fn entries(&self) -> EntryShape {
        self.entries
    }

    /// The kinds of its entries.
    #[must_use]
    pub const fn kinds(&self) -> Kinds {
        self.kinds
    }

    const fn is_short(&self) -> bool {
        self.bytes <= SHORT_MOST
    }

    pub(super) const fn checksum_bytes(&self) -> usize {
        if self.is_short() { 2 } else { 4 }
    }

    pub(super) const fn header(&self) -> usize {
        self.checksum_bytes() + if self.is_short() { 1 } else { 2 }
    }

    const fn count_most(&self) -> usize {
        if self.is_short() { 0x3F } else { 0x3FFF }
    }

    const fn end_bytes(&self) -> usize {
        if self.bytes <= 256 { 1 } else { 2 }
    }

    /// Key and value where both have a length that never varies, as they stand in a unit.
    const fn packed(&self) -> Option<(usize, usize)> {
        match (self.entries.key, self.entries.value) {
            (Width::Fixed(key), Width::Fixed(value)) => {
                let is_short = value < 4 && matches!(self.kinds, Kinds::Fences);
                Some((key as usize, if is_short { 4 } else { value as usize }))
            }
            _ => None,
        }
    }

    const fn find_room(&self, (key, value): (usize, usize)) -> (u16, u16) {
        let room = self.bytes as usize - self.header();
        let bits = self.kinds.bits();
        let per_entry = (key + value) * 8 + bits;
        let mut entries = match (room * 8).checked_div(per_entry) {
            Some(entries) if entries < self.count_most() => entries,
            _ => self.count_most(),
        };
        while entries > 0 && (entries * bits).div_ceil(8) + entries * (key + value) > room {
            entries -= 1;
        }
        (entries as u16, (entries * bits).div_ceil(8) as u16)
    }

    /// Entries that a unit has room for, and bytes of their kinds, where all have one length.
    const fn packed_room(&self) -> (usize, usize) {
        (self.room.0 as usize, self.room.1 as usize)
    }

    /// Entries of `key` and `value` bytes that a unit has room for; 0 if one has pieces.
    #[must_use]
    pub fn capacity(&self, key: usize, value: usize) -> usize {
        match self.packed() {
            Some(_) => self.packed_room().0,
            None => {
                let entry = self.head_bytes(key) + key + value + self.end_bytes();
                ((self.bytes as usize - self.header()) / entry.max(1)).min(self.count_most())
            }
        }
    }

    /// Bytes before a key of `key` bytes.
    fn head_bytes(&self, key: usize) -> usize {
        let bits = self.kinds.bits();
        match self.entries.key {
            Width::Fixed(_) => usize::from(bits > 0),
            Width::Variable => varint_bytes(key << bits),
        }
    }

    /// Pieces of a record of `bytes` bytes.
    pub(super) fn pieces(&self, bytes: usize) -> u32 {
        let room = self.bytes as usize - self.header();
        1 + bytes.saturating_sub(room - PIECE_HEADER).div_ceil(room) as u32
    }

    /// The unit that `bytes` hold, verified.
    pub(super) fn open<'b>(&self, seed: Seed, bytes: &'b [u8]) -> Result<(Form, Unit<'b>)> {
        self.compare(seed, bytes)?;
        let form = self.form(bytes);
        let unit = Unit { shape: *self, bytes, is_record: false };
        if form == Form::Entries {
            let damaged = |what| Error::DamagedUnit { run: seed.run, unit: seed.unit, what };
            unit.validate().map_err(damaged)?;
        }
        Ok((form, unit))
    }

    /// Refuses bytes whose checksum is wrong.
    fn compare(&self, seed: Seed, bytes: &[u8]) -> Result<()> {
        if bytes.len() != self.bytes as usize {
            let what = "it is too short";
            return Err(Error::DamagedUnit { run: seed.run, unit: seed.unit, what });
        }
        match seed.compare(self, bytes) {
            (expected, found) if expected == found => Ok(()),
            (expected, found) => {
                Err(Error::CorruptUnit { run: seed.run, unit: seed.unit, expected, found })
            }
        }
    }

    fn header_number(&self, bytes: &[u8]) -> (usize, u8) {
        let at = self.checksum_bytes();
        if self.is_short() {
            let head = bytes.get(at).copied().unwrap_or(0);
            (usize::from(head & 0x3F), head >> 6)
        } else {
            let low = bytes.get(at).copied().unwrap_or(0);
            let high = bytes.get(at + 1).copied().unwrap_or(0);
            let head = u16::from_le_bytes([low, high]);
            (usize::from(head & 0x3FFF), (head >> 14) as u8)
        }
    }

    pub(super) fn form(&self, bytes: &[u8]) -> Form {
        let length = || {
            let at = bytes.get(self.header()..).and_then(<[u8]>::first_chunk::<PIECE_HEADER>);
            at.map_or(0, |length| u32::from_le_bytes(*length))
        };
        match self.header_number(bytes).1 {
            0 => Form::Entries,
            1 => Form::First(length()),
            2 => Form::Next,
            _ => Form::Footer(length()),
        }
    }

    /// The unit of entries that `bytes` hold, verified: no piece of an entry, and no footer.
    ///
    /// # Errors
    /// It is damaged, or another unit.
    pub fn verify<'b>(&self, seed: Seed, bytes: &'b [u8]) -> Result<Unit<'b>> {
        match self.open(seed, bytes)? {
            (Form::Entries, unit) => Ok(unit),
            _ => {
                let what = "it has a piece of an entry, where runs have none";
                Err(Error::DamagedUnit { run: seed.run, unit: seed.unit, what })
            }
        }
    }

    /// A unit that was verified before.
    #[inline]
    #[must_use]
    pub const fn view<'b>(&self, bytes: &'b [u8]) -> Unit<'b> {
        Unit { shape: *self, bytes, is_record: false }
    }

    /// The one entry of a record that stood in pieces.
    pub(super) fn record<'b>(
        &self,
        bytes: &'b [u8],
    ) -> core::result::Result<Unit<'b>, &'static str> {
        let unit = Unit { shape: *self, bytes, is_record: true };
        let (key, _) = unit.head(bytes).ok_or("the head of a long entry makes no sense")?;
        match (self.entries.value, bytes.len() - key.end) {
            (Width::Fixed(value), found) if found > usize::from(value).max(4) => {
                Err("a long entry has another length")
            }
            _ => Ok(unit),
        }
    }

    /// The bytes of a piece of `form`.
    pub(super) fn piece<'b>(&self, form: Form, bytes: &'b [u8]) -> &'b [u8] {
        let start = match form {
            Form::First(_) | Form::Footer(_) => self.header() + PIECE_HEADER,
            Form::Next | Form::Entries => self.header(),
        };
        bytes.get(start..).unwrap_or_default()
    }
}

fn varint_bytes(number: usize) -> usize {
    match number {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        _ => 3,
    }
}

/// A number of up to 21 bits, seven a byte, the lowest first, and bytes that it took.
fn read_varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut number = 0;
    for (place, byte) in bytes.iter().take(3).enumerate() {
        number |= usize::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((number, place + 1));
        }
    }
    None
}

/// The entries of one unit, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'b> {
    shape: UnitShape,
    bytes: &'b [u8],
    /// True for the one entry of a record that stood in pieces.
    is_record: bool,
}

impl<'b> Unit<'b> {
    /// How many entries there are.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        if self.is_record { 1 } else { self.shape.header_number(self.bytes).0 }
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn validate(&self) -> core::result::Result<(), &'static str> {
        let count = self.len();
        if count == 0 {
            return Err("it has no entries");
        }
        if self.shape.packed().is_some() {
            let is_possible = count <= self.shape.packed_room().0;
            return if is_possible { Ok(()) } else { Err("it counts more entries than fit") };
        }
        let ends = (self.shape.bytes as usize).checked_sub(count * self.shape.end_bytes());
        let ends = ends.ok_or("it counts more entries than fit")?;
        let mut start = self.shape.header();
        for place in 0..count {
            let end = self.end(place);
            let entry = self.bytes.get(start..end).filter(|_| end <= ends);
            let entry = entry.ok_or("its entries lie beside each other")?;
            let (key, kind) = self.head(entry).ok_or("the head of an entry makes no sense")?;
            if !self.shape.kinds.allow(kind) {
                return Err("it has an entry of a kind that its run has not");
            }
            if kind.is_fence() && entry.len() - key.end != 4 {
                return Err("a fence has another length");
            }
            start = end;
        }
        Ok(())
    }

    /// Where the entry at `place` ends.
    #[inline]
    fn end(&self, place: usize) -> usize {
        let wide = self.shape.end_bytes();
        let at = (self.shape.bytes as usize).saturating_sub((place + 1) * wide);
        match self.bytes.get(at..at + wide) {
            Some([low]) => usize::from(*low),
            Some([low, high]) => usize::from(u16::from_le_bytes([*low, *high])),
            _ => 0,
        }
    }

    /// Where the key of an entry of varying length stands in it, and its kind.
    #[inline]
    fn head(&self, entry: &[u8]) -> Option<(core::ops::Range<usize>, Kind)> {
        let bits = self.shape.kinds.bits();
        let (start, key, kind) = match self.shape.entries.key {
            Width::Fixed(key) if bits == 0 => (0, usize::from(key), 0),
            Width::Fixed(key) => (1, usize::from(key), usize::from(*entry.first()?)),
            Width::Variable => {
                let (number, bytes) = read_varint(entry)?;
                (bytes, number >> bits, number & ((1 << bits) - 1))
            }
        };
        let end = start + key;
        (kind < 4 && end <= entry.len()).then_some((start..end, Kind::from_number(kind as u8)))
    }

    /// The kind of the packed entry at `place`.
    #[inline]
    fn packed_kind(&self, place: usize) -> Kind {
        let bits = self.shape.kinds.bits();
        let at = place * bits;
        let byte = self.bytes.get(self.shape.header() + at / 8).copied().unwrap_or(0);
        Kind::from_number(byte >> (at % 8) & ((1 << bits) - 1) as u8)
    }

    /// The entry at `place`, which is below [`Unit::len`]; an empty one otherwise.
    #[must_use]
    #[inline]
    pub fn entry(&self, place: usize) -> Entry<'b> {
        if self.is_record {
            return self.entry_of(self.bytes);
        }
        if let Some((key, value)) = self.shape.packed() {
            let kinds = self.shape.packed_room().1;
            let start = self.shape.header() + kinds + place * (key + value);
            let kind = self.packed_kind(place);
            let bytes = self.bytes.get(start..start + key + value).unwrap_or_default();
            let (key, value) = bytes.split_at_checked(key).unwrap_or_default();
            return Entry { key, kind, value: self.cut(kind, value) };
        }
        let start = if place == 0 { self.shape.header() } else { self.end(place - 1) };
        self.entry_of(self.bytes.get(start..self.end(place)).unwrap_or_default())
    }

    fn entry_of(&self, entry: &'b [u8]) -> Entry<'b> {
        let (key, kind) = self.head(entry).unwrap_or((0..0, Kind::Put));
        let value = entry.get(key.end..).unwrap_or_default();
        Entry { key: entry.get(key).unwrap_or_default(), kind, value: self.cut(kind, value) }
    }

    /// The value of an entry of `kind`, of what stands in its place.
    #[inline]
    fn cut(&self, kind: Kind, value: &'b [u8]) -> &'b [u8] {
        match (kind, self.shape.entries.value) {
            (Kind::Delete, _) => &[],
            (Kind::Fence | Kind::InnerFence, _) => value.get(..4).unwrap_or(value),
            (Kind::Put, Width::Fixed(bytes)) => value.get(..usize::from(bytes)).unwrap_or(value),
            (Kind::Put, Width::Variable) => value,
        }
    }

    /// The first place whose key is not below `key`.
    #[must_use]
    pub fn lower(&self, key: &[u8]) -> usize {
        self.partition(|found| found < key)
    }

    /// The first place whose key is above `key`.
    #[must_use]
    pub fn upper(&self, key: &[u8]) -> usize {
        self.partition(|found| found <= key)
    }

    fn partition(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(self.entry(middle).key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The entry of `key` that is no fence, if there is one.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Entry<'b>> {
        let place = self.upper(key).checked_sub(1)?;
        Some(self.entry(place)).filter(|entry| entry.key == key && !entry.kind.is_fence())
    }

    /// The last fence whose key is not above `key`, by which a search goes on in the run below.
    #[must_use]
    pub fn fence(&self, key: &[u8]) -> Option<Entry<'b>> {
        let places = (0..self.upper(key)).rev();
        places.map(|place| self.entry(place)).find(|entry| entry.kind.is_fence())
    }
}

#[cfg(test)]
mod tests;
