//! Descriptions of types.

use std::fmt;
use std::str::FromStr;

use index::Width;

use super::{Error, shortened};

/// The most bytes that the types of key and value take together when they are packed.
///
/// ```
/// use flashtree::encoding::{PACKED_BYTES_MOST, Type};
/// use flashtree::{Database, Options};
///
/// let folder = tempfile::tempdir().unwrap();
/// let wide = Type::Tuple(vec![Type::Tuple(vec![Type::U64; 32]); 2]);
/// let made = Database::create(folder.path().join("wide.db"), &Options::new().key(wide));
/// let error = made.err().unwrap().to_string();
/// assert!(error.contains(&format!("at most {PACKED_BYTES_MOST}")));
/// ```
pub const PACKED_BYTES_MOST: usize = 62;

/// How deep tuples can stand in tuples.
const DEPTH_MOST: usize = 8;

/// The most components of a tuple.
const COMPONENTS_MOST: usize = 32;

/// What keys or values are.
///
/// ```
/// use flashtree::encoding::Type;
///
/// let key: Type = "tuple(text,i64)".parse()?;
/// assert_eq!(key, Type::Tuple(vec![Type::Text, Type::I64]));
/// let bytes = key.to_bytes(r#"["LGA",-5]"#)?;
/// assert_eq!(bytes, flashtree::encoding::encode(&("LGA", -5_i64)));
/// assert_eq!(key.to_text(&bytes)?, r#"["LGA",-5]"#);
/// # Ok::<(), flashtree::encoding::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// Any bytes. Their text form is UTF-8, with `\xHH` for what is none and for control
    /// characters, and `\\` for a backslash.
    #[default]
    Bytes,
    /// Any bytes, whose text form is two hexadecimal digits each, large or small.
    Hex,
    /// Text in UTF-8. A number of JSON is the text of its digits, as they are written.
    Text,
    /// A signed number of 64 bits: whole, in decimal digits, without an exponent.
    I64,
    /// An unsigned number of 64 bits: whole, in decimal digits, without an exponent.
    U64,
    /// A floating-point number of 64 bits: the nearest to the digits that are given. What is too
    /// large for it is refused, and so is what is too small but not 0. There is one 0: `-0` is it.
    F64,
    /// A [`Time`](super::Time).
    Time,
    /// Several components, whose text form is a JSON array.
    Tuple(Vec<Type>),
}

/// The words, in the order of the packed form, which counts from 1.
const WORDS: [(&str, Type); 7] = [
    ("bytes", Type::Bytes),
    ("hex", Type::Hex),
    ("text", Type::Text),
    ("i64", Type::I64),
    ("u64", Type::U64),
    ("f64", Type::F64),
    ("time", Type::Time),
];

/// The packed form of a tuple; the number of its components follows.
const TUPLE: u8 = 8;

impl Type {
    /// The length of its bytes.
    ///
    /// ```
    /// use flashtree::{Width, encoding::Type};
    /// assert_eq!("tuple(i64,time)".parse::<Type>()?.width(), Width::Fixed(16));
    /// assert_eq!(Type::Text.width(), Width::Variable);
    /// # Ok::<(), flashtree::encoding::Error>(())
    /// ```
    #[must_use]
    pub fn width(&self) -> Width {
        match self {
            Type::Bytes | Type::Hex | Type::Text => Width::Variable,
            Type::I64 | Type::U64 | Type::F64 | Type::Time => Width::Fixed(8),
            Type::Tuple(components) => {
                let widths = components.iter().map(Type::width);
                widths.fold(Width::Fixed(0), |sum, width| match (sum, width) {
                    (Width::Fixed(sum), Width::Fixed(bytes)) => {
                        sum.checked_add(bytes).map_or(Width::Variable, Width::Fixed)
                    }
                    _ => Width::Variable,
                })
            }
        }
    }

    /// Refuses tuples of no or too many components, or too deep.
    pub(crate) fn check(&self) -> Result<(), Error> {
        // What can be read back is what can be kept.
        self.to_string().parse::<Type>().map(|_| ())
    }

    /// Appends the packed form, which is kept in a database.
    pub(crate) fn pack(&self, into: &mut Vec<u8>) {
        match self {
            Type::Tuple(components) => {
                into.extend_from_slice(&[TUPLE, components.len() as u8]);
                components.iter().for_each(|component| component.pack(into));
            }
            plain => {
                let place = WORDS.iter().position(|(_, known)| known == plain);
                into.push(place.map_or(0, |place| place as u8 + 1));
            }
        }
    }

    /// Reads a packed form from byte `at` of `bytes` on, and moves `at` behind it.
    pub(crate) fn unpack(bytes: &[u8], at: &mut usize) -> Result<Self, Error> {
        Type::unpack_at(bytes, at, DEPTH_MOST)
    }

    fn unpack_at(bytes: &[u8], at: &mut usize, depth: usize) -> Result<Self, Error> {
        let place = *at;
        let found = bytes.get(place).copied().unwrap_or(0);
        let bad = Error::BadPacked { byte: place, found };
        *at += 1;
        if found != TUPLE {
            let word = usize::from(found).checked_sub(1).and_then(|word| WORDS.get(word));
            return word.map(|(_, plain)| plain.clone()).ok_or(bad);
        }
        let count = bytes.get(*at).map_or(0, |count| usize::from(*count));
        *at += 1;
        if !(1..=COMPONENTS_MOST).contains(&count) || depth == 0 {
            return Err(bad);
        }
        let components = (0..count).map(|_| Type::unpack_at(bytes, at, depth - 1));
        Ok(Type::Tuple(components.collect::<Result<_, _>>()?))
    }

    /// Reads a type from the start of `text`; returns it with what follows.
    fn parse(text: &str, depth: usize) -> Option<(Self, &str)> {
        let text = text.trim_start();
        let end = text.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        if word != "tuple" {
            let (_, plain) = WORDS.iter().find(|(known, _)| *known == word)?;
            return Some((plain.clone(), rest.trim_start()));
        }
        let mut components = Vec::new();
        let mut rest = rest.trim_start().strip_prefix('(')?;
        loop {
            let (component, behind) = Type::parse(rest, depth.checked_sub(1)?)?;
            components.push(component);
            if components.len() > COMPONENTS_MOST {
                return None;
            }
            match behind.strip_prefix(',') {
                Some(behind) => rest = behind,
                None => {
                    let rest = behind.strip_prefix(')')?.trim_start();
                    return Some((Type::Tuple(components), rest));
                }
            }
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Type::Tuple(components) = self else {
            let word = WORDS.iter().find(|(_, known)| known == self);
            return f.write_str(word.map_or("", |(word, _)| word));
        };
        f.write_str("tuple(")?;
        for (place, component) in components.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "," })?;
            component.fmt(f)?;
        }
        f.write_str(")")
    }
}

impl FromStr for Type {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match Type::parse(text, DEPTH_MOST) {
            Some((read, "")) => Ok(read),
            _ => Err(Error::BadType { text: shortened(text) }),
        }
    }
}
