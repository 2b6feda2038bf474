//! Whether keys and values are of the types that the database was made with: the index takes any
//! bytes.

use std::fmt::Display;
use std::str;

use index::{KeyRange, Value};

use crate::encoding::{self, Type};
use crate::inside::Core;
use crate::{Database, Range, Result};

/// Bytes of a long text that are looked at at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Characters of a key that are shown.
const SHOWN: usize = 60;

impl Database<'_> {
    /// Tells of every entry that is not of the types. It ends at damage, which the index tells of.
    pub(super) fn check_types(
        &self,
        core: &mut Core<'_>,
        finding: &mut dyn FnMut(&dyn Display),
    ) -> Result<()> {
        let (keys, values) = (self.key_type().clone(), self.value_type().clone());
        if takes_any(&keys) && takes_any(&values) {
            return Ok(());
        }
        let mut entries = Range::new(core.index.range(KeyRange::ALL)?);
        loop {
            match check_next(&mut entries, &keys, &values, finding) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if error.is_damage() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// True if any bytes are of this type.
const fn takes_any(kind: &Type) -> bool {
    matches!(kind, Type::Bytes | Type::Hex)
}

/// Looks at the next entry; false behind the last one.
fn check_next(
    entries: &mut Range<'_>,
    keys: &Type,
    values: &Type,
    finding: &mut dyn FnMut(&dyn Display),
) -> Result<bool> {
    let Some(entry) = entries.next()? else { return Ok(false) };
    if let Err(error) = keys.decode(entry.key) {
        tell(finding, "the key", entry.key, keys, &error);
    }
    if takes_any(values) {
        return Ok(true);
    }
    let key = match entry.value {
        Value::Inline(value) => {
            if let Err(error) = values.decode(value) {
                tell(finding, "the value of", entry.key, values, &error);
            }
            return Ok(true);
        }
        Value::Long(_) => entry.key.to_vec(),
    };
    let read = match values {
        Type::Text => check_text(entries)?,
        _ => values.decode(&entries.value()?).map(drop),
    };
    if let Err(error) = read {
        tell(finding, "the value of", &key, values, &error);
    }
    Ok(true)
}

fn tell(
    finding: &mut dyn FnMut(&dyn Display),
    what: &str,
    key: &[u8],
    kind: &Type,
    error: &encoding::Error,
) {
    let text = key.escape_ascii().to_string();
    let shown = match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    };
    finding(&format_args!(
        "{what} \"{shown}\" is not of type {kind}: {error}: put it right with a program that uses \
         the library, as one has put it there"
    ));
}

/// Looks at a long text by pieces, so that it takes little memory.
fn check_text(entries: &mut Range<'_>) -> Result<std::result::Result<(), encoding::Error>> {
    let mut piece = vec![0; PIECE_BYTES];
    let (mut offset, mut length) = (0_u32, u32::MAX);
    while offset < length {
        length = entries.read_value(offset, &mut piece)?;
        let bytes = &piece[..(length.saturating_sub(offset) as usize).min(PIECE_BYTES)];
        let is_last = offset as usize + bytes.len() == length as usize;
        let valid = match str::from_utf8(bytes) {
            Ok(_) => bytes.len(),
            // A character may be cut in two by the end of a piece that is not the last.
            Err(error) if error.error_len().is_none() && !is_last => error.valid_up_to(),
            Err(error) => {
                let valid = offset as usize + error.valid_up_to();
                return Ok(Err(encoding::Error::NotText { valid }));
            }
        };
        offset += valid as u32;
    }
    Ok(Ok(()))
}
