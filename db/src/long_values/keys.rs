//! How keys and values stand in the tree.
//!
//! ```text
//! key    0 u8 | the user's key            value  0 u8 | the value
//!                                                1 u8 | first piece u64 | value bytes u32 |
//!                                                       bytes of a piece u16
//!        1 u8 | number of the piece              the piece
//!        2 u8 | number of the first piece        pieces u32: they belong to no entry
//! ```
//!
//! Numbers of pieces are big-endian, in 8 bytes, or in as many as keys have, if these have a
//! length; other numbers are little-endian. Bytes of a key behind a number are zeros.

use std::ops::Bound;

use index::{EntryShape, Error, KeyRange, Result, Width};

/// What the first byte of a key says that stands behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A key of the user's.
    Entry = 0,
    /// The number of a piece.
    Piece = 1,
    /// The number of the first piece of a value that no entry has.
    Unowned = 2,
}

/// Bytes of a number.
const NUMBER_BYTES: usize = 8;

/// The fewest bytes of keys of one length that can stand for the number of a piece.
const KEY_BYTES_LEAST: u16 = 4;

/// The first byte of a value that stands behind it.
const INLINE: u8 = 0;
/// The first byte of a value that stands in pieces.
const PIECES: u8 = 1;

/// Where a range of the tree's keys begins and ends.
pub(super) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The keys of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    /// Of the user's keys.
    pub(super) width: Width,
}

/// The shape of the tree's entries if the user's have `shape`; `None` if it takes no long values.
pub(crate) fn shape_below(shape: EntryShape) -> Option<EntryShape> {
    let key = match (shape.value, shape.key) {
        (Width::Fixed(_), _) => return None,
        (_, Width::Variable) => Width::Variable,
        (_, Width::Fixed(bytes)) if bytes < KEY_BYTES_LEAST => return None,
        (_, Width::Fixed(bytes)) => Width::Fixed(bytes.checked_add(1)?),
    };
    Some(EntryShape { key, value: Width::Variable })
}

impl Keys {
    /// The keys of users whose trees have keys of this width.
    pub(super) const fn above(width: Width) -> Self {
        match width {
            Width::Variable => Keys { width },
            Width::Fixed(bytes) => Keys { width: Width::Fixed(bytes.saturating_sub(1)) },
        }
    }

    /// Refuses a key of a wrong length.
    pub(super) fn check(self, key: &[u8]) -> Result<()> {
        match self.width {
            Width::Fixed(bytes) if usize::from(bytes) != key.len() => {
                Err(Error::KeyLength { expected: bytes.into(), found: key.len() as u64 })
            }
            _ => Ok(()),
        }
    }

    /// Bytes in which the number of a piece stands, and zeros behind them.
    fn number_bytes(self) -> (usize, usize) {
        match self.width {
            Width::Variable => (NUMBER_BYTES, 0),
            Width::Fixed(bytes) => {
                let number = usize::from(bytes).min(NUMBER_BYTES);
                (number, usize::from(bytes) - number)
            }
        }
    }

    /// The number behind the last one that a piece can have.
    pub(super) fn numbers_most(self) -> u64 {
        let bits = 8 * self.number_bytes().0 as u32;
        1_u64.checked_shl(bits).unwrap_or(u64::MAX)
    }

    /// The key with this number.
    pub(super) fn numbered(self, kind: Kind, number: u64) -> Vec<u8> {
        let mut key = vec![kind as u8];
        self.push_number(number, &mut key);
        key
    }

    /// Adds the bytes of a number to a key.
    pub(super) fn push_number(self, number: u64, key: &mut Vec<u8>) {
        let (bytes, zeros) = self.number_bytes();
        key.extend_from_slice(&number.to_be_bytes()[NUMBER_BYTES - bytes..]);
        key.resize(key.len() + zeros, 0);
    }

    /// The number in a key.
    pub(super) fn number(self, key: &[u8]) -> Option<u64> {
        let bytes = key.get(1..=self.number_bytes().0)?;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// What lies before all keys of kind `first` and of later kinds.
    pub(super) fn before(self, first: u8) -> Vec<u8> {
        match self.width {
            Width::Variable => vec![first],
            Width::Fixed(bytes) => {
                let mut key = vec![0; usize::from(bytes) + 1];
                key[0] = first;
                key
            }
        }
    }

    /// All keys of a kind.
    pub(super) fn all(self, kind: Kind) -> (Vec<u8>, Vec<u8>) {
        (self.before(kind as u8), self.before(kind as u8 + 1))
    }

    /// Where the entries of a range of the user's stand.
    pub(super) fn bounds(self, range: KeyRange<'_>) -> Result<Bounds> {
        let bound = |bound: Bound<&[u8]>, end: Bound<Vec<u8>>| {
            Ok::<_, Error>(match bound {
                Bound::Included(key) => Bound::Included(self.of_entry(key)?),
                Bound::Excluded(key) => Bound::Excluded(self.of_entry(key)?),
                Bound::Unbounded => end,
            })
        };
        let (from, to) = self.all(Kind::Entry);
        Ok((bound(range.from, Bound::Included(from))?, bound(range.to, Bound::Excluded(to))?))
    }

    /// The tree's key of a user's.
    fn of_entry(self, key: &[u8]) -> Result<Vec<u8>> {
        self.check(key)?;
        Ok([&[Kind::Entry as u8], key].concat())
    }
}

/// Where the pieces of a value stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// The number of the first; the others follow.
    pub(super) first: u64,
    /// Bytes of the value.
    pub(super) bytes: u32,
    /// Bytes of each piece but the last.
    pub(super) piece_bytes: u16,
}

impl Reference {
    /// Bytes of a value that is a reference.
    pub(super) const ENCODED_BYTES: usize = 15;

    /// How many pieces there are.
    pub(super) fn pieces(&self) -> u64 {
        u64::from(self.bytes.div_ceil(self.piece_bytes.max(1).into()))
    }

    fn encode(self, to: &mut Vec<u8>) {
        to.push(PIECES);
        to.extend_from_slice(&self.first.to_le_bytes());
        to.extend_from_slice(&self.bytes.to_le_bytes());
        to.extend_from_slice(&self.piece_bytes.to_le_bytes());
    }

    fn decode(stored: &[u8]) -> Option<Self> {
        let (first, rest) = stored.split_first_chunk()?;
        let (bytes, rest) = rest.split_first_chunk()?;
        let piece_bytes = u16::from_le_bytes(*rest.as_array()?);
        let reference = Reference {
            first: u64::from_le_bytes(*first),
            bytes: u32::from_le_bytes(*bytes),
            piece_bytes,
        };
        let end = reference.first.checked_add(reference.pieces());
        (piece_bytes > 0 && end.is_some()).then_some(reference)
    }
}

/// The value of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held<'v> {
    /// It stands in the entry.
    Inline(&'v [u8]),
    /// It stands in pieces.
    InPieces(Reference),
}

impl<'v> Held<'v> {
    pub(super) fn encode(self, to: &mut Vec<u8>) {
        match self {
            Held::Inline(value) => {
                to.push(INLINE);
                to.extend_from_slice(value);
            }
            Held::InPieces(reference) => reference.encode(to),
        }
    }

    pub(super) fn decode(stored: &'v [u8]) -> Result<Self> {
        let held = match stored.split_first() {
            Some((&INLINE, value)) => Some(Held::Inline(value)),
            Some((&PIECES, rest)) => Reference::decode(rest).map(Held::InPieces),
            _ => None,
        };
        held.ok_or_else(|| damaged("an entry does not say where its value stands"))
    }
}

/// What stands in the tree, checksums and all, was never put there.
pub(super) fn damaged(what: &'static str) -> Error {
    store::Error::NotAnIndex { is_ours: true, what }.into()
}

#[cfg(test)]
mod tests {
    use index::{EntryShape, Width};

    use super::{Held, Keys, Kind, Reference, shape_below};

    #[test]
    fn numbers_keep_their_order_in_keys_of_any_length() {
        for width in [Width::Variable, Width::Fixed(4), Width::Fixed(8), Width::Fixed(20)] {
            let keys = Keys { width };
            let numbers = [0, 1, 255, 256, (1 << 32) - 1];
            let all = numbers.map(|number| keys.numbered(Kind::Piece, number));
            assert!(all.is_sorted(), "{width:?}");
            let (from, to) = keys.all(Kind::Piece);
            for (key, number) in all.iter().zip(numbers) {
                assert_eq!(keys.number(key), Some(number));
                assert!(from <= *key && *key < to, "{width:?}");
            }
        }
        assert_eq!(Keys { width: Width::Fixed(4) }.numbers_most(), 1 << 32);
    }

    #[test]
    fn a_value_is_read_as_it_was_written_and_damage_is_an_error() {
        let reference = Reference { first: 7, bytes: 1001, piece_bytes: 100 };
        assert_eq!(reference.pieces(), 11);
        for held in [Held::Inline(b""), Held::Inline(b"red"), Held::InPieces(reference)] {
            let mut bytes = Vec::new();
            held.encode(&mut bytes);
            assert_eq!(Held::decode(&bytes).unwrap(), held);
        }
        let mut bytes = Vec::new();
        Held::InPieces(reference).encode(&mut bytes);
        assert_eq!(bytes.len(), Reference::ENCODED_BYTES);
        for wrong in [&bytes[..14], &[], &[2, 0], &[1; 16], &[[1; 13], [0; 13]].concat()[..15]] {
            assert!(Held::decode(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn only_values_that_vary_can_be_long() {
        let shape = |key, value| EntryShape { key, value };
        assert_eq!(shape_below(EntryShape::fixed(8, 8)), None);
        assert_eq!(shape_below(shape(Width::Fixed(3), Width::Variable)), None);
        let below = shape_below(shape(Width::Fixed(8), Width::Variable)).unwrap();
        assert_eq!(below.key, Width::Fixed(9));
        assert_eq!(Keys::above(below.key).width, Width::Fixed(8));
        assert_eq!(shape_below(EntryShape::VARIABLE), Some(EntryShape::VARIABLE));
    }
}
