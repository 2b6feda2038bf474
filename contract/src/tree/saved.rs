//! Reading what can be read of a damaged index.

use std::collections::BTreeMap;
use std::ops::Bound;

use index::{Index, KeyRange, Resume, Value};

/// What could be read of an index.
#[derive(Debug, Default)]
pub struct Saved {
    /// The entries.
    pub entries: BTreeMap<Vec<u8>, Vec<u8>>,
    /// How often damage was met.
    pub gaps: u32,
    /// False if the index did not know where to go on.
    pub is_told: bool,
}

/// Reads all that can be read, in order, and goes on where the index says that it can.
///
/// # Panics
/// An entry comes twice, reading leads back, or something else than damage ends it.
pub fn saved(index: &mut dyn Index) -> Saved {
    let mut saved = Saved { is_told: true, ..Saved::default() };
    let (mut from, mut place) = (None, None);
    loop {
        let bound = from.as_deref().map_or(Bound::Unbounded, Bound::Included);
        match read(index, bound, &mut place, &mut saved.entries) {
            Ok(()) => return saved,
            Err(index::Error::Store(error)) if error.is_damage() => saved.gaps += 1,
            Err(error) => panic!("no damage: {error}"),
        }
        match index.resume_after(place.as_deref()).expect("damage is no error") {
            Resume::From(next) => {
                assert!(Some(&next) > place.as_ref(), "it leads back");
                (place, from) = (Some(next.clone()), Some(next));
            }
            Resume::End => return saved,
            Resume::Unknown => {
                saved.is_told = false;
                return saved;
            }
        }
    }
}

/// Reads from `from` on; `place` is the last key that was read.
fn read(
    index: &mut dyn Index,
    from: Bound<&[u8]>,
    place: &mut Option<Vec<u8>>,
    entries: &mut BTreeMap<Vec<u8>, Vec<u8>>,
) -> index::Result<()> {
    let mut cursor = index.range(KeyRange { from, ..KeyRange::ALL })?;
    while let Some((key, value)) = cursor.next()? {
        let Value::Inline(value) = value else { panic!("values are short") };
        assert!(entries.insert(key.to_vec(), value.to_vec()).is_none(), "it came before");
        *place = Some(key.to_vec());
    }
    Ok(())
}
