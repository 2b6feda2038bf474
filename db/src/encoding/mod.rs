//! Keys and values out of numbers, texts, times and tuples, so that the order of the bytes is the
//! order of what they stand for.
//!
//! [`encode`] and [`decode`] are for programs that know the types; a [`Type`] describes them where
//! they are known only when the program runs, and translates between bytes and text.
//!
//! | type | bytes |
//! |---|---|
//! | `u64` | 8, big-endian |
//! | `i64`, time | 8, big-endian, the sign bit turned over |
//! | `f64` | 8, big-endian; the sign bit turned over, if it was set all others too; -0 is 0 |
//! | text, bytes | as they are; in a tuple `00` becomes `00 FF`, and `00 00` follows the last |
//! | tuple, array | its components, one behind the other |
//! | other integers | as many as they have, as `u64` or `i64`; `usize` and `isize` are these |
//! | `bool` | 1: 0 or 1 |
//! | `Option` | 0; or 1 and the value |
//!
//! So a UUID is its 16 bytes, an array.
//!
//! The order of floats is the total order of IEEE 754, in which -NaN < -inf < ... < 0 < ... < inf <
//! NaN, with one 0: -0 has the same bytes. (The bytes of -0, which earlier versions wrote, are
//! still read.)
//!
//! A text is read as what it says, or refused: numbers that do not fit their type, digits of a
//! float that would become 0 or infinity, leap seconds, and parts of a nanosecond. Only digits of a
//! float beyond those that count are rounded, to the nearest one.
//!
//! ```
//! use flashtree::encoding::{decode, encode};
//!
//! let key = encode(&("LGA", -5_i64));
//! assert!(key < encode(&("LGA", 3_i64)));
//! assert_eq!(decode::<(String, i64)>(&key), Ok(("LGA".to_owned(), -5)));
//! ```

mod datum;
mod json;
mod plain;
mod text;
mod time;
mod traits;
mod tuple;
mod types;

pub use datum::Datum;
pub use time::Time;
pub use traits::{Decode, Encode, decode, encode};
pub use types::{PACKED_BYTES_MOST, Type};

/// Why bytes or a text do not stand for a value.
///
/// ```
/// use flashtree::encoding::{Error, decode};
/// assert_eq!(decode::<u64>(b"short"), Err(Error::Length { expected: 8, found: 5 }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes of another length than the type has.
    #[error("{found} bytes where {expected} are expected")]
    Length {
        /// Bytes of the type.
        expected: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// Bytes that are left over after a whole value.
    #[error("{bytes} bytes are left over after the value")]
    LeftOver {
        /// How many.
        bytes: usize,
    },
    /// A byte that is neither 0 nor 1, where one of them tells true from false, or present from
    /// absent.
    #[error("{found} where 0 or 1 is expected")]
    BadMark {
        /// The byte.
        found: u8,
    },
    /// A component of a tuple that has no end, or a zero byte without its partner.
    #[error("a component of the tuple does not end as it should")]
    Unterminated,
    /// Bytes that are no text in UTF-8.
    #[error("the bytes are no UTF-8 text from byte {valid} on")]
    NotText {
        /// How many bytes before it are valid.
        valid: usize,
    },
    /// A text that does not stand for a value of the type.
    #[error("\"{text}\" is no {expected}")]
    BadText {
        /// The text, or its beginning.
        text: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A tuple with another number of components.
    #[error("the tuple has {expected} components, not {found}")]
    Components {
        /// Components of the type.
        expected: usize,
        /// Components that there are.
        found: usize,
    },
    /// A value of another type.
    #[error("a value of type {found} where {expected} is expected")]
    OtherType {
        /// The type expected.
        expected: String,
        /// The type of the value.
        found: String,
    },
    /// A text that describes no type.
    #[error(
        "\"{text}\" is no type: write bytes, hex, text, i64, u64, f64, time, or tuple(TYPE,...)"
    )]
    BadType {
        /// The text, or its beginning.
        text: String,
    },
    /// Types with too many components to be kept in a database.
    #[error("the types of key and value are too long: they take {bytes} bytes, at most {most}")]
    LongType {
        /// Bytes that they take.
        bytes: usize,
        /// The most that there can be.
        most: usize,
    },
    /// Bytes in which no type is packed.
    #[error("the types of key and value can't be read: byte {byte} is {found:#04x}")]
    BadPacked {
        /// Which byte.
        byte: usize,
        /// What stands there; 0 at the end.
        found: u8,
    },
}

impl Error {
    /// Quotes the beginning of `text`.
    fn bad_text(text: &str, expected: &'static str) -> Self {
        Error::BadText { text: shortened(text), expected }
    }
}

/// At most 60 characters of `text`.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
