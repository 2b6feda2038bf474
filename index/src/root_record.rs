//! What every tree's root record begins with: whose it is, and the shape of its entries.
//!
//! ```text
//!  0      1          1+n     3+n     5+n
//!  +------+----------+-------+-------+--------------------
//!  | name | the      | key   | value | the tree's own
//!  | n u8 | name     | u16   | u16   |
//!  +------+----------+-------+-------+--------------------
//! ```
//!
//! A width of `0xFFFF` says that the length varies.

use alloc::string::String;
use alloc::vec::Vec;

use store::{EntryShape, Width};

use crate::Result;

/// What is wrong with a record whose tree has changed its own format since.
pub const EARLIER_FORMAT: &str = "its tree has the format of flashtree 0.2: export it with that, \
                                  and import it with this program";

const VARIABLE: u16 = u16::MAX;

/// The beginning of the root record of `tree`.
pub fn encode(tree: &str, shape: EntryShape) -> Vec<u8> {
    let mut record = Vec::with_capacity(64);
    record.push(tree.len() as u8);
    record.extend_from_slice(tree.as_bytes());
    for width in [shape.key, shape.value] {
        let number = match width {
            Width::Fixed(bytes) => bytes,
            Width::Variable => VARIABLE,
        };
        record.extend_from_slice(&number.to_le_bytes());
    }
    record
}

/// The shape in a root record of `tree`, and the tree's own bytes.
pub fn decode<'r>(record: &'r [u8], tree: &str) -> Result<(EntryShape, &'r [u8])> {
    let (name, shape, rest) = split(record)?;
    if name != tree.as_bytes() {
        return Err(
            store::Error::NotAnIndex { is_ours: true, what: "it holds another tree" }.into()
        );
    }
    Ok((shape, rest))
}

/// The name and the shape in the root record of any tree.
pub fn describe(record: &[u8]) -> Result<(String, EntryShape)> {
    let (name, shape, _) = split(record)?;
    Ok((String::from_utf8_lossy(name).into(), shape))
}

fn split(record: &[u8]) -> Result<(&[u8], EntryShape, &[u8])> {
    let damaged = store::Error::NotAnIndex { is_ours: true, what: "its root record is damaged" };
    let (length, rest) = record.split_first().ok_or(damaged)?;
    let (name, rest) = rest.split_at_checked(usize::from(*length)).ok_or(damaged)?;
    let (key, rest) = rest.split_first_chunk().ok_or(damaged)?;
    let (value, rest) = rest.split_first_chunk().ok_or(damaged)?;
    let width = |bytes: &[u8; 2]| match u16::from_le_bytes(*bytes) {
        VARIABLE => Width::Variable,
        bytes => Width::Fixed(bytes),
    };
    Ok((name, EntryShape { key: width(key), value: width(value) }, rest))
}
