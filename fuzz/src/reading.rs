//! Reading all that an index holds.

use contract::torture::truth::Found;
use index::{Cursor, Index, KeyRange, Value};

/// Reads everything, of which there are at most `most` entries.
///
/// # Errors
/// As the index.
///
/// # Panics
/// There are more, or a value has another length than was announced.
pub fn read_all(index: &mut dyn Index, most: usize) -> index::Result<Found> {
    let mut found = Found::default();
    read_into(index, most, &mut found).map(|()| found)
}

/// The same, to `found`: what comes before an error stays there, and takes memory.
///
/// # Errors
/// As the index.
///
/// # Panics
/// As [`read_all`].
pub fn read_into(index: &mut dyn Index, most: usize, found: &mut Found) -> index::Result<()> {
    found.names.extend(index.checkpoints().iter().map(|kept| kept.name.clone()));
    let mut cursor = index.range(KeyRange::ALL)?;
    while let Some((key, value)) = cursor.next()? {
        let key = key.to_vec();
        let value = match value {
            Value::Inline(bytes) => bytes.to_vec(),
            Value::Long(bytes) => read_long(&mut *cursor, bytes)?,
        };
        found.entries.push((key, value));
        assert!(found.entries.len() <= most, "there are more than {most} entries");
    }
    Ok(())
}

/// Bytes that what was found takes, about.
#[must_use]
pub fn held_bytes(found: &Found) -> u64 {
    let each = |(key, value): &(Vec<u8>, Vec<u8>)| key.len() + value.len() + 64;
    found.entries.iter().map(each).sum::<usize>() as u64
}

/// Reads the long value that `cursor` stands at, piece by piece: what is announced is not believed.
fn read_long(cursor: &mut dyn Cursor, announced: u32) -> index::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 700];
    while bytes.len() < announced as usize {
        let length = cursor.read_value(bytes.len() as u32, &mut piece)?;
        assert_eq!(length, announced, "a value has the length that was announced");
        let rest = (announced as usize - bytes.len()).min(piece.len());
        bytes.extend_from_slice(&piece[..rest]);
    }
    Ok(bytes)
}
