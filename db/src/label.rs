//! The label: what a database keeps of its own in the index, at most 64 bytes.
//!
//! ```text
//!  0         1          2 ...
//!  +---------+----------+----------+------------+------------+
//!  | version | fill     | the type | the type   | settings   |
//!  | u8:     | percent  | of keys  | of values  | of the     |
//!  | 1 to 5  | u8       |          |            | tree       |
//!  +---------+----------+----------+------------+------------+
//! ```
//!
//! Settings are those that the tree was given, be it the defaults' values, as
//! [`index::parameters::Settings::pack`] has them. A label without any has version 1, and version 3
//! that of a database whose values may stand in pieces (`long_values`). A database that may have
//! keyspaces has version 4, or 5 if values may stand in pieces; settings follow, or none.
//!
//! The fill percent is what the tree was made with; 0 where that was left to the tree.

use crate::encoding::{Error as TypeError, PACKED_BYTES_MOST, Type};
use crate::{Error, Result};

const VERSION: u8 = 2;

/// The version of a label of a database whose values may stand in pieces.
const IN_PIECES: u8 = 3;

/// The version of a label of a database that may have keyspaces.
const KEYSPACES: u8 = 4;

/// The same, if values may stand in pieces.
const KEYSPACES_IN_PIECES: u8 = 5;

/// The version of a label without settings.
const WITHOUT_SETTINGS: u8 = 1;

/// Bytes before the types.
const TYPES: usize = 2;

/// What stands in a label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) fill_percent: u8,
    pub(crate) key: Type,
    pub(crate) value: Type,
    /// Settings of the tree, packed.
    pub(crate) settings: Vec<u8>,
    /// True if long values stand in pieces among the entries.
    pub(crate) in_pieces: bool,
    /// True if there may be keyspaces.
    pub(crate) keyspaces: bool,
}

impl Label {
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        self.key.check()?;
        self.value.check()?;
        let version = match (self.keyspaces, self.in_pieces, self.settings.is_empty()) {
            (true, true, _) => KEYSPACES_IN_PIECES,
            (true, false, _) => KEYSPACES,
            (false, true, _) => IN_PIECES,
            (false, false, true) => WITHOUT_SETTINGS,
            (false, false, false) => VERSION,
        };
        let mut bytes = vec![version, self.fill_percent];
        self.key.pack(&mut bytes);
        self.value.pack(&mut bytes);
        let types = bytes.len() - TYPES;
        let most = PACKED_BYTES_MOST.saturating_sub(self.settings.len());
        if types > most {
            return Err(TypeError::LongType { bytes: types, most }.into());
        }
        bytes.extend_from_slice(&self.settings);
        Ok(bytes)
    }

    /// Reads a label. An index that was made by other means has none: its keys and values are
    /// bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let Some((&version, rest)) = bytes.split_first() else {
            return Ok(Label::default());
        };
        if !(WITHOUT_SETTINGS..=KEYSPACES_IN_PIECES).contains(&version) {
            let (expected, found) = (u32::from(KEYSPACES_IN_PIECES), u32::from(version));
            return Err(Error::OtherVersion { expected, found });
        }
        let Some(&fill_percent) = rest.first() else {
            return Err(Error::NotADatabase {
                path: None,
                is_ours: true,
                what: "its label is cut off".to_owned(),
            });
        };
        let mut at = TYPES;
        let key = Type::unpack(bytes, &mut at)?;
        let value = Type::unpack(bytes, &mut at)?;
        // A label of version 1 ends here.
        let has_settings = version != WITHOUT_SETTINGS;
        let settings = bytes.get(at..).filter(|_| has_settings).unwrap_or_default().to_vec();
        let in_pieces = matches!(version, IN_PIECES | KEYSPACES_IN_PIECES);
        let keyspaces = matches!(version, KEYSPACES | KEYSPACES_IN_PIECES);
        Ok(Label { fill_percent, key, value, settings, in_pieces, keyspaces })
    }
}

#[cfg(test)]
mod tests {
    use super::Label;
    use crate::Error;
    use crate::encoding::Type;

    #[test]
    fn a_label_is_read_as_it_was_written() {
        let key: Type = "tuple(text,tuple(time,hex),f64)".parse().unwrap();
        let settings = vec![2, 1];
        for (settings, in_pieces) in [(settings.clone(), false), (settings, true), (vec![], true)] {
            for keyspaces in [false, true] {
                let (key, value, settings) = (key.clone(), Type::U64, settings.clone());
                let label = Label { fill_percent: 90, key, value, settings, in_pieces, keyspaces };
                assert_eq!(Label::decode(&label.encode().unwrap()).unwrap(), label);
            }
        }
        assert_eq!(Label::decode(&[]).unwrap(), Label::default());
    }

    #[test]
    fn types_that_do_not_fit_are_refused() {
        let wide = Type::Tuple(vec![Type::U64; 32]);
        let key = Type::Tuple(vec![Type::U64; 26]);
        let fits = Label { key, value: wide, ..Label::default() };
        assert_eq!(fits.encode().unwrap().len(), 64);
        let long = Label { key: Type::Tuple(vec![Type::U64; 27]), ..fits };
        assert!(matches!(long.encode(), Err(Error::Encoding(_))));
        for wrong in [Type::Tuple(vec![]), Type::Tuple(vec![Type::U64; 33])] {
            assert!(Label { key: wrong, ..Label::default() }.encode().is_err());
        }
    }

    #[test]
    fn damaged_labels_are_errors() {
        let whole = Label { value: Type::Text, ..Label::default() }.encode().unwrap();
        for length in 1..whole.len() {
            assert!(Label::decode(&whole[..length]).is_err(), "{length}");
        }
        assert!(matches!(Label::decode(&[9]), Err(Error::OtherVersion { .. })));
    }
}
