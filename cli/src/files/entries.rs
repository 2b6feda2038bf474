//! `flashtree put`, `get` and `delete`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use db::encoding::Type;
use db::{Database, Error};

use super::opening;
use crate::arguments::files::{Delete, Get, Put};
use crate::failure::Failure;
use crate::failure::FileFailure;
use crate::output;

/// Bytes of a long value that are printed at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Lets a key have a value.
///
/// # Errors
/// Key or value are not of their types or too long, or the database can't be written.
pub(super) fn put(arguments: &Put, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    let database = opening::to_write(&arguments.home, quiet)?;
    let key = bytes_of("KEY", database.key_type(), &arguments.key)?;
    let value = match (&arguments.value, &arguments.input) {
        (Some(text), _) => bytes_of("VALUE", database.value_type(), text)?,
        (None, Some(input)) => read_value(&database, input, path)?,
        (None, None) => Vec::new(),
    };
    database.put(key, value).map_err(FileFailure::of(path))?;
    opening::close(database, path)
}

/// Prints the value of a key.
///
/// # Errors
/// The key is absent or not of its type, or the database can't be read.
pub(super) fn get(arguments: &Get, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    let mut database = opening::to_read(&arguments.home, quiet)?;
    let key = bytes_of("KEY", database.key_type(), &arguments.key)?;
    if arguments.raw {
        print_raw(&mut database, &key, path)?;
    } else {
        let value = database.get(&key).map_err(FileFailure::of(path))?;
        let value = value.ok_or(FileFailure::Absent)?;
        let kind = database.value_type();
        let text = kind.to_text(&value).map_err(|source| FileFailure::Stored {
            path: path.to_owned(),
            what: "value",
            kind: kind.to_string(),
            source,
        })?;
        output::print(&(text + "\n"))?;
    }
    opening::close(database, path)
}

/// Lets a key be absent.
///
/// # Errors
/// The key is not of its type, or the database can't be written.
pub(super) fn delete(arguments: &Delete, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    let database = opening::to_write(&arguments.home, quiet)?;
    let key = bytes_of("KEY", database.key_type(), &arguments.key)?;
    match database.delete(key) {
        // No entry has it.
        Err(Error::Index(index::Error::KeyTooLong { .. })) => {}
        deleted => deleted.map_err(FileFailure::of(path))?,
    }
    opening::close(database, path)
}

/// The bytes of an argument of the command line.
///
/// # Errors
/// [`FileFailure::Argument`].
pub(super) fn bytes_of(
    argument: &'static str,
    kind: &Type,
    text: &str,
) -> Result<Vec<u8>, FileFailure> {
    let bad = |source| FileFailure::Argument { argument, kind: kind.to_string(), source };
    kind.to_bytes(text).map_err(bad)
}

/// Reads a value for `database` from a file. Bytes and texts are what is in it, of others it is the
/// text form. An input without an end is left when it is longer than any value can be.
fn read_value(database: &Database<'_>, input: &Path, path: &Path) -> Result<Vec<u8>, FileFailure> {
    let kind = database.value_type();
    let unread = |source| FileFailure::Read { path: PathBuf::from(input), source };
    let most = value_bytes_most(database).map_err(FileFailure::of(path))?;
    let mut bytes = Vec::new();
    match input == Path::new("-") {
        true => io::stdin().lock().take(most + 1).read_to_end(&mut bytes),
        false => File::open(input).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)),
    }
    .map_err(unread)?;
    if bytes.len() as u64 > most {
        return Err(FileFailure::LongInput {
            path: path.to_owned(),
            input: input.to_owned(),
            most,
        });
    }
    if matches!(kind, Type::Bytes | Type::Hex) {
        return Ok(bytes);
    }
    let bad = |source| FileFailure::Argument { argument: "VALUE", kind: kind.to_string(), source };
    let text = Type::Text.to_text(&bytes).map_err(bad)?;
    match kind {
        Type::Text => Ok(bytes),
        _ => kind.to_bytes(text.trim()).map_err(bad),
    }
}

/// No value of the database has more bytes, and few have as many.
fn value_bytes_most(database: &Database<'_>) -> Result<u64, Error> {
    let stats = database.stats()?;
    let file = stats.file.map(|file| file.capacity).filter(|bytes| *bytes > 0);
    Ok(file.unwrap_or(u64::MAX).min(u64::from(u32::MAX)))
}

/// Prints a value as it is stored, in pieces.
fn print_raw(database: &mut Database<'_>, key: &[u8], path: &Path) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let mut piece = vec![0; PIECE_BYTES];
    let (mut offset, mut length) = (0, 1);
    while offset < length {
        let whole = database.get_into(key, offset, &mut piece).map_err(FileFailure::of(path))?;
        length = whole.ok_or(FileFailure::Absent)?;
        let read = (length - offset.min(length)).min(PIECE_BYTES as u32);
        out.write_all(&piece[..read as usize]).map_err(Failure::Print)?;
        offset += read;
    }
    out.flush().map_err(Failure::Print)
}
