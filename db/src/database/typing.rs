//! Whether keys and values are of the types that the database was made with: the index takes any
//! bytes.

use std::cell::Cell;
use std::fmt::Display;
use std::str;

use index::{KeyRange, Value};

use crate::encoding::{self, Type};
use crate::inside::Core;
use crate::keyspace::{Catalog, Scope};
use crate::label::Label;
use crate::{Database, Error, Range, Result};

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
        let Label { key, value, keyspaces, .. } = &self.about.label;
        if *keyspaces {
            return check_keyspaces(core, (key, value), finding);
        }
        if takes_any(key) && takes_any(value) {
            return Ok(());
        }
        let types = |_: &[u8]| Some((0, key, value));
        check_all(core, &types, finding)
    }
}

/// Bytes of a key before the user's, and the types of the entry; none if it is not one.
type TypesOf<'t> = dyn Fn(&[u8]) -> Option<(usize, &'t Type, &'t Type)> + 't;

/// Tells of every entry that is not of the types of its keyspace, and of those of none.
fn check_keyspaces(
    core: &mut Core<'_>,
    (key, value): (&Type, &Type),
    finding: &mut dyn FnMut(&dyn Display),
) -> Result<()> {
    let catalog = match Catalog::read(&mut *core.index) {
        // The index tells of damage to pages; the list itself is told of here.
        Err(error @ Error::NotADatabase { .. }) => {
            finding(&error);
            return Ok(());
        }
        Err(error) if error.is_damage() => return Ok(()),
        other => other?,
    };
    let lost = Cell::new(0_u64);
    let types = |whole: &[u8]| {
        let number = Scope::split(whole);
        let space = |number| catalog.spaces.iter().find(|space| space.number == number);
        match number {
            Some((0, _)) => None,
            Some((1, length)) => Some((length, key, value)),
            Some((number, _)) if catalog.dropped.contains(&number) => None,
            Some((number, length)) if let Some(space) = space(number) => {
                Some((length, &space.key, &space.value))
            }
            _ => {
                lost.set(lost.get() + 1);
                None
            }
        }
    };
    check_all(core, &types, finding)?;
    if lost.get() > 0 {
        finding(&format_args!("{} entries belong to no keyspace", lost.get()));
    }
    Ok(())
}

fn check_all(
    core: &mut Core<'_>,
    types: &TypesOf<'_>,
    finding: &mut dyn FnMut(&dyn Display),
) -> Result<()> {
    let mut entries = Range::new(core.index.range(KeyRange::ALL)?);
    loop {
        match check_next(&mut entries, types, finding) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) if error.is_damage() => return Ok(()),
            Err(error) => return Err(error),
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
    types: &TypesOf<'_>,
    finding: &mut dyn FnMut(&dyn Display),
) -> Result<bool> {
    let Some(mut entry) = entries.next()? else { return Ok(false) };
    let Some((before, keys, values)) = types(entry.key) else { return Ok(true) };
    entry.key = entry.key.get(before..).unwrap_or_default();
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
