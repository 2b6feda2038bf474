//! Entries of buffers as a stream of bytes, the same in the pool and in fragments on flash.
//!
//! ```text
//!  +-------+----+----+-- --+----+-------+----+----+--
//!  | kinds | e0 | e1 | ... | e7 | kinds | e8 | e9 | ...
//!  +-------+----+----+-- --+----+-------+----+----+--
//! ```
//!
//! Before each eight entries stands a byte of their kinds: bit `i` is set if entry `i` of the eight
//! is a delete. An entry is its key, and its value unless it is a delete; where keys (or values)
//! vary in length, that length comes first: one byte below 128, else two, the first of which has
//! its top bit set and the high bits. Entries are in the order in which they came: later ones are
//! newer. In the pool the kinds stand beside the entries.
//!
//! Invariant: any bytes can be read; what makes no sense is an error, never a panic.

use store::{EntryShape, Width};

/// Entries that share a byte of kinds.
pub(super) const GROUP: u32 = 8;

/// The longest key or value.
pub(super) const LENGTH_MOST: usize = 0x7FFF;

/// What is wrong with a stream.
pub(super) type Damage = &'static str;

/// An update that waits in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending<'b> {
    pub(super) key: &'b [u8],
    /// The key's value, or `None` if it is deleted.
    pub(super) value: Option<&'b [u8]>,
}

/// How entries of one shape are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) shape: EntryShape,
}

impl Form {
    pub(super) const fn new(shape: EntryShape) -> Self {
        Form { shape }
    }

    /// Bytes of a put, where all have the same.
    pub(super) fn fixed_bytes(&self) -> Option<usize> {
        match (self.shape.key, self.shape.value) {
            (Width::Fixed(key), Width::Fixed(value)) => Some(usize::from(key) + usize::from(value)),
            _ => None,
        }
    }

    /// Bytes of an entry, its share of the kinds aside.
    pub(super) fn bytes(&self, entry: &Pending<'_>) -> usize {
        let value = entry.value.map_or(0, |value| field_bytes(self.shape.value, value.len()));
        field_bytes(self.shape.key, entry.key.len()) + value
    }

    /// Hands the bytes of an entry to `put`, piece by piece.
    pub(super) fn write(&self, entry: &Pending<'_>, put: &mut impl FnMut(&[u8])) {
        write_field(self.shape.key, entry.key, put);
        if let Some(value) = entry.value {
            write_field(self.shape.value, value, put);
        }
    }

    /// Reads the entry at the start of `bytes`; also returns how long it is.
    pub(super) fn read<'b>(
        &self,
        bytes: &'b [u8],
        is_delete: bool,
    ) -> Result<(Pending<'b>, usize), Damage> {
        let (key, rest) = read_field(self.shape.key, bytes)?;
        if is_delete {
            return Ok((Pending { key, value: None }, bytes.len() - rest.len()));
        }
        let (value, rest) = read_field(self.shape.value, rest)?;
        Ok((Pending { key, value: Some(value) }, bytes.len() - rest.len()))
    }

    /// The prefix of the key of the entry at the start of `bytes`, if all of it stands there.
    pub(super) fn key_prefix(&self, bytes: &[u8]) -> Option<u64> {
        read_field(self.shape.key, bytes).ok().map(|(key, _)| prefix(key))
    }

    /// Reads the entries of `bytes`, oldest first.
    pub(super) const fn reader<'b>(&self, bytes: &'b [u8]) -> Reader<'b> {
        Reader { form: *self, bytes, at: 0, kinds: 0, in_group: GROUP }
    }
}

fn field_bytes(width: Width, length: usize) -> usize {
    match width {
        Width::Fixed(_) => length,
        Width::Variable => length + if length < 0x80 { 1 } else { 2 },
    }
}

fn write_field(width: Width, field: &[u8], put: &mut impl FnMut(&[u8])) {
    debug_assert!(field.len() <= LENGTH_MOST, "admission refuses longer ones");
    if matches!(width, Width::Variable) {
        let length = field.len().min(LENGTH_MOST) as u16;
        match length {
            0..0x80 => put(&[length as u8]),
            _ => put(&[0x80 | (length >> 8) as u8, length as u8]),
        }
    }
    put(field);
}

/// The length of a field, whose first bytes `next` hands out if they tell it.
pub(super) fn field_length(
    width: Width,
    next: &mut impl FnMut() -> Result<u8, Damage>,
) -> Result<usize, Damage> {
    match width {
        Width::Fixed(length) => Ok(length.into()),
        Width::Variable => Ok(match next()? {
            first @ 0..0x80 => first.into(),
            first => usize::from(first & 0x7F) << 8 | usize::from(next()?),
        }),
    }
}

fn read_field(width: Width, bytes: &[u8]) -> Result<(&[u8], &[u8]), Damage> {
    const SHORT: Damage = "an entry of a buffer is cut off";
    let mut rest = bytes;
    let length = field_length(width, &mut || {
        let (first, behind) = rest.split_first().ok_or(SHORT)?;
        rest = behind;
        Ok(*first)
    })?;
    rest.split_at_checked(length).ok_or(SHORT)
}

/// Reads a stream.
#[derive(Clone, Debug)]
pub(super) struct Reader<'b> {
    form: Form,
    bytes: &'b [u8],
    at: usize,
    kinds: u8,
    in_group: u32,
}

impl<'b> Reader<'b> {
    /// The next entry, with the place of its first byte; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<(Pending<'b>, usize)>, Damage> {
        if self.at == self.bytes.len() {
            return self.finish();
        }
        if self.in_group == GROUP {
            self.kinds = self.bytes[self.at];
            self.at += 1;
            self.in_group = 0;
        }
        let at = self.at;
        let is_delete = self.kinds >> self.in_group & 1 == 1;
        let (entry, length) = self.form.read(&self.bytes[at..], is_delete)?;
        if length == 0 {
            return Err("an entry of a buffer has no bytes");
        }
        self.at += length;
        self.in_group += 1;
        Ok(Some((entry, at)))
    }

    fn finish(&self) -> Result<Option<(Pending<'b>, usize)>, Damage> {
        if self.in_group < GROUP && self.kinds >> self.in_group != 0 {
            return Err("a buffer names kinds of entries that it does not have");
        }
        Ok(None)
    }
}

/// Writes a stream into bytes.
#[derive(Debug)]
pub(super) struct Writer<'b> {
    form: Form,
    into: &'b mut [u8],
    at: usize,
    kinds_at: usize,
    entries: u32,
}

impl<'b> Writer<'b> {
    pub(super) fn new(form: Form, into: &'b mut [u8]) -> Self {
        Writer { form, into, at: 0, kinds_at: 0, entries: 0 }
    }

    /// Bytes written.
    pub(super) const fn bytes(&self) -> usize {
        self.at
    }

    /// Entries written.
    pub(super) const fn entries(&self) -> u32 {
        self.entries
    }

    /// Writes `entry` behind the others; false, and nothing written, if there is no room.
    #[must_use]
    pub(super) fn push(&mut self, entry: &Pending<'_>) -> bool {
        let starts_group = self.entries.is_multiple_of(GROUP);
        let bytes = usize::from(starts_group) + self.form.bytes(entry);
        if self.into.len() - self.at < bytes {
            return false;
        }
        if starts_group {
            self.kinds_at = self.at;
            self.into[self.at] = 0;
            self.at += 1;
        }
        if entry.value.is_none() {
            self.into[self.kinds_at] |= 1 << (self.entries % GROUP);
        }
        let (into, at) = (&mut *self.into, &mut self.at);
        self.form.write(entry, &mut |piece| {
            into[*at..*at + piece.len()].copy_from_slice(piece);
            *at += piece.len();
        });
        self.entries += 1;
        true
    }
}

/// The newest entry for `key` in a stream.
pub(super) fn find<'b>(
    form: Form,
    stream: &'b [u8],
    key: &[u8],
) -> Result<Option<Pending<'b>>, Damage> {
    let mut reader = form.reader(stream);
    let mut found = None;
    while let Some((entry, _)) = reader.next()? {
        if entry.key == key {
            found = Some(entry);
        }
    }
    Ok(found)
}

/// A hash of a key, whose bits all depend on all bytes.
pub(super) fn hash(key: &[u8]) -> u64 {
    let mixed = key.chunks(8).fold(key.len() as u64, |mixed, chunk| {
        let mixed = (mixed.rotate_left(29) ^ prefix(chunk)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ mixed >> 32
    });
    let mixed = mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ mixed >> 32
}

/// The first bytes of a key, in the same order.
pub(super) fn prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests;
