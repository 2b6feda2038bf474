//! Looking whether every piece of a value is there, and belongs to an entry.

use std::fmt::Display;
use std::ops::Bound;

use index::{Direction, Error, KeyRange, Result};

use super::LongValues;
use super::cursor::Ahead;
use super::keys::{Held, Kind, Reference};

impl LongValues<'_> {
    /// Tells of entries whose pieces are not there, and of pieces that nobody has.
    pub(super) fn check_pieces(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        let named = match self.check_entries(finding) {
            // The tree told what can't be read.
            Err(Error::Store(error)) if error.is_damage() => return Ok(()),
            other => other?,
        };
        let (pieces, _) = self.count(Kind::Piece)?;
        let (_, unowned) = self.count(Kind::Unowned)?;
        if pieces > named.saturating_add(unowned) {
            let lost = pieces - named - unowned;
            finding(&format_args!("{lost} pieces of long values belong to no entry"));
        }
        Ok(())
    }

    /// Looks for the pieces of every entry; returns how many they are.
    fn check_entries(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<u64> {
        let mut named = 0;
        let bounds = self.keys.bounds(KeyRange::ALL)?;
        let mut entries = Ahead::new(self, bounds, Direction::Ascending);
        while let Some(held) = entries.next_held()? {
            if let Held::InPieces(reference) = held {
                named += reference.pieces();
                if !entries.values().has_pieces_of(&reference)? {
                    finding(&"a piece of a long value is missing or of a wrong length");
                }
            }
        }
        Ok(named)
    }

    /// True if all pieces of a value are there.
    fn has_pieces_of(&mut self, reference: &Reference) -> Result<bool> {
        for place in 0..reference.pieces() {
            let key = self.keys.numbered(Kind::Piece, reference.first + place);
            if self.index.get(&key, 0, &mut [])? != Some(self.length_of(reference, place)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How many keys of a kind there are, and the sum of what they count.
    fn count(&mut self, kind: Kind) -> Result<(u64, u64)> {
        let (from, to) = self.keys.all(kind);
        let (from, to) = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        let mut cursor =
            self.index.range(KeyRange { from, to, direction: Direction::Ascending })?;
        let (mut keys, mut counted) = (0, 0);
        while let Some((_, value)) = cursor.next()? {
            keys += 1;
            let count = value.whole().and_then(|value| value.first_chunk());
            counted += count.map_or(0, |count| u64::from(u32::from_le_bytes(*count)));
        }
        Ok((keys, counted))
    }
}
