//! What an index should hold, in an ordered map in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use index::{Cursor, Direction, EntryShape, KeyRange, KeyValue, Value, Width};

use spec::shown;

/// Bytes of a long value that are compared at a time.
const PIECE_BYTES: usize = 4096;

/// The entries that an index should hold.
///
/// Entries of fixed length are kept as numbers, whose order is that of their bytes: a million
/// operations are then checked in a fraction of the time that the index needs.
#[derive(Debug)]
pub(crate) enum Expected {
    /// Keys and values of at most 8 bytes.
    Numbers { entries: BTreeMap<u64, u64>, key_bytes: usize, value_bytes: usize },
    /// Keys and values of any length.
    Texts(BTreeMap<Box<[u8]>, Box<[u8]>>),
}

/// An index that does not hold what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    key: Vec<u8>,
    expected: Option<Vec<u8>>,
    found: Option<Vec<u8>>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<Vec<u8>>| match value {
            Some(value) => format!("value {}", bytes(value)),
            None => "nothing".to_string(),
        };
        write!(
            f,
            "wrong contents at key {}: expected {}, found {}",
            bytes(&self.key),
            value(&self.expected),
            value(&self.found)
        )
    }
}

/// Bytes as a text if they are one, else in hexadecimal.
fn bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(|c: char| c.is_control() && c != '\t') => {
            format!("\"{}\"", shown(&text.replace('\t', " ")))
        }
        _ => shown(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

/// Why a comparison of a range stopped.
pub(crate) enum Stop {
    Mismatch(Mismatch),
    Index(index::Error),
}

/// A number as the last `length` of these bytes.
struct Number([u8; 8], usize);

impl Number {
    fn new(number: u64, length: usize) -> Self {
        Number(number.to_be_bytes(), length)
    }
}

impl AsRef<[u8]> for Number {
    fn as_ref(&self) -> &[u8] {
        &self.0[8 - self.1..]
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Expected {
    pub(crate) fn new(shape: EntryShape) -> Self {
        match (shape.key, shape.value) {
            (Width::Fixed(key), Width::Fixed(value)) if key <= 8 && value <= 8 => {
                Expected::Numbers {
                    entries: BTreeMap::new(),
                    key_bytes: usize::from(key),
                    value_bytes: usize::from(value),
                }
            }
            _ => Expected::Texts(BTreeMap::new()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Expected::Numbers { entries, .. } => entries.len(),
            Expected::Texts(entries) => entries.len(),
        }
    }

    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) {
        match self {
            Expected::Numbers { entries, .. } => {
                entries.insert(number(key), number(value));
            }
            Expected::Texts(entries) => {
                entries.insert(key.into(), value.into());
            }
        }
    }

    pub(crate) fn delete(&mut self, key: &[u8]) {
        match self {
            Expected::Numbers { entries, .. } => {
                entries.remove(&number(key));
            }
            Expected::Texts(entries) => {
                entries.remove(key);
            }
        }
    }

    /// Compares what a get of `key` found: `length` bytes, or as many of them as `found` holds.
    pub(crate) fn check_get(
        &self,
        key: &[u8],
        found: &[u8],
        length: Option<u32>,
    ) -> Result<(), Mismatch> {
        let there = length.map(|length| &found[..found.len().min(length as usize)]);
        let whole = length.is_none_or(|length| length as usize <= found.len());
        let right = |expected: Option<&[u8]>| {
            if whole && there == expected {
                return Ok(());
            }
            Err(Mismatch {
                key: key.to_vec(),
                expected: expected.map(<[u8]>::to_vec),
                found: there.map(<[u8]>::to_vec),
            })
        };
        match self {
            Expected::Numbers { entries, value_bytes, .. } => {
                let value = entries.get(&number(key)).map(|v| Number::new(*v, *value_bytes));
                right(value.as_ref().map(AsRef::as_ref))
            }
            Expected::Texts(entries) => right(entries.get(key).map(|value| &**value)),
        }
    }

    /// Compares up to `count` entries of `range` with those that `cursor` gives, which should also
    /// end where they do.
    pub(crate) fn check_range(
        &self,
        range: KeyRange<'_>,
        count: u64,
        cursor: &mut dyn Cursor,
    ) -> Result<u64, Stop> {
        let descending = range.direction == Direction::Descending;
        match self {
            Expected::Numbers { entries, key_bytes, value_bytes } => {
                let there = entries.range((range.from.map(number), range.to.map(number)));
                let there = there.map(|(key, value)| {
                    (Number::new(*key, *key_bytes), Number::new(*value, *value_bytes))
                });
                if descending {
                    compare(there.rev(), count, cursor)
                } else {
                    compare(there, count, cursor)
                }
            }
            Expected::Texts(entries) => {
                let there =
                    entries.range::<[u8], (Bound<&[u8]>, Bound<&[u8]>)>((range.from, range.to));
                if descending {
                    compare(there.rev(), count, cursor)
                } else {
                    compare(there, count, cursor)
                }
            }
        }
    }

    /// The key at every `step`th place, in order.
    pub(crate) fn every(&self, step: usize) -> Vec<Vec<u8>> {
        match self {
            Expected::Numbers { entries, key_bytes, .. } => entries
                .keys()
                .step_by(step)
                .map(|key| Number::new(*key, *key_bytes).as_ref().to_vec())
                .collect(),
            Expected::Texts(entries) => {
                entries.keys().step_by(step).map(|key| key.to_vec()).collect()
            }
        }
    }
}

fn compare<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    there: impl Iterator<Item = (K, V)>,
    count: u64,
    cursor: &mut dyn Cursor,
) -> Result<u64, Stop> {
    let mut there = there;
    for compared in 0..count {
        let expected = there.next();
        let expected = expected.as_ref().map(|(key, value)| (key.as_ref(), value.as_ref()));
        let found = cursor.next().map_err(Stop::Index)?;
        if let (Some((key, value)), Some((found, Value::Long(bytes)))) = (expected, found)
            && key == found
            && value.len() == bytes as usize
        {
            compare_pieces((key, value), cursor)?;
            continue;
        }
        if expected.map(|(key, value)| (key, Value::Inline(value))) != found {
            return Err(Stop::Mismatch(mismatch(expected, found)));
        }
        if expected.is_none() {
            return Ok(compared);
        }
    }
    Ok(count)
}

/// Compares a value that the cursor's last entry hands out in pieces.
fn compare_pieces((key, value): (&[u8], &[u8]), cursor: &mut dyn Cursor) -> Result<(), Stop> {
    let mut piece = [0; PIECE_BYTES];
    for (place, wanted) in value.chunks(PIECE_BYTES).enumerate() {
        let into = &mut piece[..wanted.len()];
        cursor.read_value((place * PIECE_BYTES) as u32, into).map_err(Stop::Index)?;
        if into != wanted {
            let (expected, found) = (Some(wanted.to_vec()), Some(into.to_vec()));
            return Err(Stop::Mismatch(Mismatch { key: key.to_vec(), expected, found }));
        }
    }
    Ok(())
}

/// Of two different entries, the one that stands first tells what is wrong. Of a long value that
/// was found nothing is shown.
fn mismatch(expected: Option<(&[u8], &[u8])>, found: Option<KeyValue<'_>>) -> Mismatch {
    let found = found.map(|(key, value)| (key, value.whole().unwrap_or_default()));
    let key = expected.or(found).map_or(&[][..], |(key, _)| key);
    let value = |entry: Option<(&[u8], &[u8])>| {
        entry.filter(|(other, _)| *other == key).map(|(_, value)| value.to_vec())
    };
    Mismatch { key: key.to_vec(), expected: value(expected), found: value(found) }
}

#[cfg(test)]
mod tests {
    use super::{Expected, Stop};
    use index::{Cursor, EntryShape, KeyRange, KeyValue, Value, read_piece};

    /// Entries, how many were given, and whether their values are given in pieces only.
    struct Given(Vec<(Vec<u8>, Vec<u8>)>, usize, bool);

    impl Cursor for Given {
        fn next(&mut self) -> index::Result<Option<KeyValue<'_>>> {
            self.1 += 1;
            let entry = self.0.get(self.1 - 1);
            Ok(entry.map(|(key, value)| {
                let value =
                    if self.2 { Value::Long(value.len() as u32) } else { Value::Inline(value) };
                (key.as_slice(), value)
            }))
        }

        fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
            Ok(read_piece(&self.0[self.1 - 1].1, offset, into))
        }
    }

    fn pairs(entries: &[(u8, u8)], in_pieces: bool) -> Given {
        let entries = entries.iter().map(|(k, v)| (vec![0, 0, 0, *k], vec![0, 0, 0, *v])).collect();
        Given(entries, 0, in_pieces)
    }

    fn filled(shape: EntryShape) -> Expected {
        let mut expected = Expected::new(shape);
        for (key, value) in [(1, 10), (2, 20), (3, 30), (9, 90)] {
            expected.put(&[0, 0, 0, key], &[0, 0, 0, value]);
        }
        expected.put(&[0, 0, 0, 2], &[0, 0, 0, 21]);
        expected.delete(&[0, 0, 0, 9]);
        expected
    }

    #[test]
    fn every_difference_is_a_mismatch() {
        let fixed = EntryShape::fixed(4, 4);
        for (shape, in_pieces) in
            [(fixed, false), (EntryShape::VARIABLE, false), (EntryShape::VARIABLE, true)]
        {
            let expected = filled(shape);
            assert_eq!(expected.len(), 3);
            let good: &[(u8, u8)] = &[(1, 10), (2, 21), (3, 30)];
            let all = |given: &[(u8, u8)], range| {
                expected.check_range(range, u64::MAX, &mut pairs(given, in_pieces))
            };
            assert!(matches!(all(good, KeyRange::ALL), Ok(3)));
            let back: Vec<(u8, u8)> = good.iter().rev().copied().collect();
            assert!(matches!(all(&back, KeyRange::ALL.reversed()), Ok(3)));
            for wrong in [
                &[(1, 10), (2, 20), (3, 30)][..],
                &[(1, 10), (3, 30)],
                &[(1, 10), (2, 21)],
                &[(1, 10), (2, 21), (3, 30), (4, 40)],
                &[],
            ] {
                assert!(matches!(all(wrong, KeyRange::ALL), Err(Stop::Mismatch(_))), "{wrong:?}");
            }
        }
    }

    #[test]
    fn a_get_is_compared_with_its_length() {
        for shape in [EntryShape::fixed(4, 4), EntryShape::VARIABLE] {
            let expected = filled(shape);
            let key = [0, 0, 0, 2];
            assert!(expected.check_get(&key, &[0, 0, 0, 21, 99], Some(4)).is_ok());
            assert!(expected.check_get(&key, &[0, 0, 0, 20], Some(4)).is_err());
            assert!(expected.check_get(&key, &[0, 0, 0, 21], Some(5)).is_err());
            assert!(expected.check_get(&key, &[0, 0, 0, 21], Some(3)).is_err());
            assert!(expected.check_get(&key, &[0; 4], None).is_err());
            assert!(expected.check_get(&[0, 0, 0, 9], &[0; 4], None).is_ok());
            assert!(expected.check_get(&[0, 0, 0, 9], &[0; 4], Some(4)).is_err());
        }
    }

    #[test]
    fn a_mismatch_names_key_and_values_in_one_line() {
        let expected = filled(EntryShape::fixed(4, 4));
        let line = expected.check_get(&[0, 0, 0, 2], &[0; 4], None).unwrap_err().to_string();
        assert_eq!(line, "wrong contents at key 00000002: expected value 00000015, found nothing");
    }
}
