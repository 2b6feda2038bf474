//! The shape of an index's entries, chosen when the index is made.

use core::fmt;

/// Whether keys (or values) all have one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// All have this many bytes.
    Fixed(u16),
    /// Each has its own length.
    Variable,
}

/// The shape of entries: if key and value both have a fixed length, nodes pack them without
/// slots; otherwise nodes have slots and compress the prefix that their keys share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryShape {
    /// The length of keys.
    pub key: Width,
    /// The length of values.
    pub value: Width,
}

impl EntryShape {
    /// Keys and values of any length.
    pub const VARIABLE: EntryShape = EntryShape { key: Width::Variable, value: Width::Variable };

    /// Keys of `key` bytes and values of `value` bytes.
    #[must_use]
    pub const fn fixed(key: u16, value: u16) -> Self {
        EntryShape { key: Width::Fixed(key), value: Width::Fixed(value) }
    }
}

impl fmt::Display for EntryShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.key, self.value) {
            (Width::Fixed(key), Width::Fixed(value)) => write!(formatter, "{key}+{value}"),
            _ => formatter.write_str("variable"),
        }
    }
}
