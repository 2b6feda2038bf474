//! `flashtree scan`.

use std::io::{self, BufWriter, Write};
use std::ops::Bound;
use std::path::Path;

use db::encoding::Type;
use db::{Database, Direction, KeyRange, Value, Width};
use serde::de::IgnoredAny;
use serde_json::Value as Json;

use super::entries::bytes_of;
use super::opening;
use crate::arguments::ListFormat;
use crate::arguments::files::Scan;
use crate::failure::Failure;
use crate::failure::FileFailure;

/// Prints entries in order.
///
/// # Errors
/// A bound is not of the keys' type, or the database can't be read.
pub(super) fn run(arguments: &Scan, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    let mut database = opening::to_read(&arguments.home, quiet)?;
    let bounds = Bounds::of(arguments, database.key_type())?;
    let range = bounds.range(arguments.reverse);
    let limit = arguments.limit.unwrap_or(u64::MAX);
    let mut out = BufWriter::new(io::stdout().lock());
    let scanned = match arguments.format {
        ListFormat::Table => scan(&mut database, range, limit, path, |entry| entry.line(&mut out)),
        ListFormat::Json => {
            let mut before = "[\n";
            let scanned = scan(&mut database, range, limit, path, |entry| {
                out.write_all(before.as_bytes()).map_err(Failure::Print)?;
                before = ",\n";
                entry.json(&mut out)
            });
            // What came before an error is still an array.
            let end = if before == "[\n" { "[]\n" } else { "\n]\n" };
            scanned.and_then(|()| out.write_all(end.as_bytes()).map_err(Failure::Print))
        }
    };
    // The entries before an error are right.
    let flushed = out.flush().map_err(Failure::Print);
    drop(out);
    scanned.and(flushed)?;
    opening::close(database, path)
}

/// An entry with its types.
pub(super) struct Typed<'e> {
    /// The key, and what it is.
    pub(super) key: (&'e [u8], &'e Type),
    /// The value, and what it is.
    pub(super) value: (&'e [u8], &'e Type),
    /// The database.
    pub(super) path: &'e Path,
}

impl Typed<'_> {
    fn line(&self, out: &mut impl Write) -> Result<(), Failure> {
        let key = self.checked("key", self.key.1.to_text(self.key.0))?;
        let value = self.checked("value", self.value.1.to_text(self.value.0))?;
        let (key, value) = (shown(key, self.key.1), shown(value, self.value.1));
        writeln!(out, "{key}\t{value}").map_err(Failure::Print)
    }

    fn json(&self, out: &mut impl Write) -> Result<(), Failure> {
        let entry = serde_json::json!({ "key": self.key()?, "value": self.value()? });
        write!(out, "  {entry}").map_err(Failure::Print)
    }

    /// The JSON form of the key.
    pub(super) fn key(&self) -> Result<Json, FileFailure> {
        self.checked("key", self.key.1.to_json(self.key.0))
    }

    /// The JSON form of the value.
    pub(super) fn value(&self) -> Result<Json, FileFailure> {
        self.checked("value", self.value.1.to_json(self.value.0))
    }

    /// Says what is not of its type.
    pub(super) fn checked<T>(
        &self,
        what: &'static str,
        read: Result<T, db::encoding::Error>,
    ) -> Result<T, FileFailure> {
        read.map_err(|source| FileFailure::Stored {
            path: self.path.to_owned(),
            what,
            kind: if what == "key" { self.key.1 } else { self.value.1 }.to_string(),
            source,
        })
    }
}

/// Calls `each` with up to `limit` entries of `range`.
///
/// # Errors
/// Those of `each`, or the database can't be read.
pub(super) fn scan(
    database: &mut Database<'_>,
    range: KeyRange<'_>,
    limit: u64,
    path: &Path,
    mut each: impl FnMut(&Typed<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (keys, values) = (database.key_type().clone(), database.value_type().clone());
    let mut entries = database.scan(range).map_err(FileFailure::of(path))?;
    let mut long_key = Vec::new();
    for _ in 0..limit {
        let Some(entry) = entries.next().map_err(FileFailure::of(path))? else { break };
        if let Value::Inline(value) = entry.value {
            each(&Typed { key: (entry.key, &keys), value: (value, &values), path })?;
            continue;
        }
        long_key.clear();
        long_key.extend_from_slice(entry.key);
        let value = entries.value().map_err(FileFailure::of(path))?;
        each(&Typed { key: (&long_key, &keys), value: (&value, &values), path })?;
    }
    Ok(())
}

/// What stands for a key or value in a line. Other types escape what they have to themselves: bytes
/// with a backslash, tuples as JSON does.
fn shown(text: String, kind: &Type) -> String {
    match kind {
        Type::Text => visible(text),
        Type::Tuple(_) => escaped(text, &[], |letter| format!("\\u{:04x}", u32::from(letter))),
        _ => text,
    }
}

/// Text in one line that leaves the terminal alone. A backslash is two, so that `\t` is a tab.
pub(super) fn visible(text: String) -> String {
    escaped(text, &['\\'], |letter| letter.escape_default().to_string())
}

/// Text with `escape` of each letter that controls a terminal, or is one of `others`.
fn escaped(text: String, others: &[char], escape: impl Fn(char) -> String) -> String {
    let is_escaped = |letter: char| letter.is_control() || others.contains(&letter);
    if !text.contains(is_escaped) {
        return text;
    }
    let letter = |letter| if is_escaped(letter) { escape(letter) } else { letter.to_string() };
    text.chars().map(letter).collect()
}

/// Keys between which a scan runs: the lowest, and the one before which it ends.
struct Bounds {
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
}

impl Bounds {
    fn of(arguments: &Scan, kind: &Type) -> Result<Self, FileFailure> {
        let padded = |bytes| padded(bytes, kind.width());
        if let Some(text) = &arguments.prefix {
            let prefix = prefix_of(kind, text)?;
            let to = behind(&prefix).map_or(Bound::Unbounded, |key| Bound::Excluded(padded(key)));
            return Ok(Bounds { from: Bound::Included(padded(prefix)), to });
        }
        let bound = |argument, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => key_or_beginning(argument, kind, text).map(|key| Some(padded(key))),
        };
        let from = bound("--from", &arguments.from)?.map_or(Bound::Unbounded, Bound::Included);
        let to = bound("--to", &arguments.to)?.map_or(Bound::Unbounded, Bound::Excluded);
        Ok(Bounds { from, to })
    }

    fn range(&self, reverse: bool) -> KeyRange<'_> {
        let direction = if reverse { Direction::Descending } else { Direction::Ascending };
        let (from, to) = (&self.from, &self.to);
        KeyRange {
            from: from.as_ref().map(Vec::as_slice),
            to: to.as_ref().map(Vec::as_slice),
            direction,
        }
    }
}

/// The lowest key of a fixed length that begins with `bytes`.
fn padded(mut bytes: Vec<u8>, width: Width) -> Vec<u8> {
    if let Width::Fixed(length) = width {
        bytes.resize(usize::from(length).max(bytes.len()), 0);
    }
    bytes
}

/// The first key behind all that begin with `prefix`, if there is one.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let place = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut key = prefix[..=place].to_vec();
    key[place] += 1;
    Some(key)
}

/// The bytes of a key; of a tuple, the first components are enough.
fn key_or_beginning(
    argument: &'static str,
    kind: &Type,
    text: &str,
) -> Result<Vec<u8>, FileFailure> {
    let Type::Tuple(types) = kind else {
        return bytes_of(argument, kind, text);
    };
    match serde_json::from_str::<Vec<IgnoredAny>>(text) {
        Ok(given) if (1..types.len()).contains(&given.len()) => {
            bytes_of(argument, &Type::Tuple(types[..given.len()].to_vec()), text)
        }
        _ => bytes_of(argument, kind, text),
    }
}

fn prefix_of(kind: &Type, text: &str) -> Result<Vec<u8>, FileFailure> {
    match kind {
        Type::I64 | Type::U64 | Type::F64 | Type::Time => {
            Err(FileFailure::NoPrefix { kind: kind.to_string() })
        }
        _ => key_or_beginning("--prefix", kind, text),
    }
}

#[cfg(test)]
mod tests {
    use db::Width;

    use super::{Type, behind, padded, shown, visible};

    #[test]
    fn a_bound_of_a_fixed_length_is_filled_with_zeros() {
        assert_eq!(padded(vec![1], Width::Fixed(3)), [1, 0, 0]);
        assert_eq!(padded(vec![1], Width::Variable), [1]);
        assert_eq!(behind(&[1, 0xFF]), Some(vec![2]));
        assert_eq!(behind(&[0xFF]), None);
    }

    #[test]
    fn an_entry_is_a_line() {
        assert_eq!(visible("a\tb\n\u{1b}[1m".to_owned()), "a\\tb\\n\\u{1b}[1m");
        assert_eq!(visible("é\\t".to_owned()), "é\\\\t");
        let tuple = "tuple(text)".parse().unwrap();
        assert_eq!(shown("[\"a\\t\u{9b}\"]".to_owned(), &tuple), "[\"a\\t\\u009b\"]");
        assert_eq!(shown("a\\x00".to_owned(), &Type::Bytes), "a\\x00");
    }
}
