//! `flashtree export`.

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use db::encoding::{Datum, Type};
use db::{Database, KeyRange};
use serde_json::{Map, Value as Json};

use super::arguments::{Export, RowFormat, RowOptions};
use super::columns::{check_count, names};
use super::part_file::Output;
use super::scan::{Typed, scan};
use super::{FileFailure, import, opening};
use crate::failure::Failure;
use crate::progress::{self, Counter};

/// Entries between two looks at the progress.
const STEP: u64 = 1 << 12;

/// Writes all entries to a file.
///
/// # Errors
/// The database can't be read, the file can't be written, or Ctrl-C.
pub(super) fn run(arguments: &Export, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    import::check_foreign(path, &arguments.output)?;
    let mut database = opening::to_read(&arguments.home, quiet)?;
    let format = import::format_of(arguments.rows.format, &arguments.output);
    let heads = Heads::of(&arguments.rows, &database)?;
    progress::catch_interrupts();
    let output = Output::open(&arguments.output).map_err(unwritten(&arguments.output, false))?;
    let is_standard = output.is_standard();
    let bar = Counter::new(quiet, "exporting", None);
    let start = Instant::now();
    let written = match format {
        RowFormat::Csv => write_csv(&mut database, output, &heads, path, &bar),
        RowFormat::Jsonl => write_jsonl(&mut database, output, &heads, path, &bar),
    };
    bar.finish();
    let rows = match written {
        // What the system says is about the output.
        Err(Failure::Print(source)) => {
            return Err(unwritten(&arguments.output, is_standard)(source));
        }
        other => other?,
    };
    opening::close(database, path)?;
    if !quiet {
        import::tell_rows("exported", rows, start.elapsed());
    }
    Ok(())
}

fn unwritten(output: &Path, is_standard: bool) -> impl FnOnce(io::Error) -> Failure {
    move |source| match is_standard {
        true => Failure::Print(source),
        false => Failure::Write { path: output.to_owned(), source },
    }
}

/// The headings of the columns of keys and of values.
struct Heads {
    key: Vec<String>,
    value: Vec<String>,
}

impl Heads {
    fn of(options: &RowOptions, database: &Database<'_>) -> Result<Self, FileFailure> {
        let of = |what: &'static str, given: &Option<String>, kind: &Type| {
            let list = given.as_deref().unwrap_or(what);
            // One column takes any name, commas and all.
            let is_one = !matches!(kind, Type::Tuple(_));
            let heads: Vec<String> =
                names(list, |_| is_one).into_iter().map(str::to_owned).collect();
            check_count(what, heads.len(), kind)?;
            Ok(heads)
        };
        Ok(Heads {
            key: of("key", &options.key, database.key_type())?,
            value: of("value", &options.value, database.value_type())?,
        })
    }
}

/// Calls `each` with every entry, and returns how many there were.
fn every(
    database: &mut Database<'_>,
    path: &Path,
    bar: &Counter,
    mut each: impl FnMut(&Typed<'_>) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut rows = 0_u64;
    scan(database, KeyRange::ALL, u64::MAX, path, |entry| {
        each(entry)?;
        rows += 1;
        if rows.is_multiple_of(STEP) {
            bar.set(rows);
            if progress::interrupted() {
                return Err(FileFailure::Interrupted.into());
            }
        }
        Ok(())
    })?;
    Ok(rows)
}

fn write_csv(
    database: &mut Database<'_>,
    output: Output,
    heads: &Heads,
    path: &Path,
    bar: &Counter,
) -> Result<u64, Failure> {
    let mut writer = csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(output);
    writer.write_record(heads.key.iter().chain(&heads.value)).map_err(unprinted)?;
    let mut record = csv::ByteRecord::new();
    let rows = every(database, path, bar, |entry| {
        record.clear();
        let fields = fields(entry.key, heads.key.len(), &mut record);
        entry.checked("key", fields)?;
        let fields = self::fields(entry.value, heads.value.len(), &mut record);
        entry.checked("value", fields)?;
        writer.write_byte_record(&record).map_err(unprinted)
    })?;
    let output = writer.into_inner().map_err(|error| Failure::Print(error.into_error()))?;
    output.finish().map_err(Failure::Print)?;
    Ok(rows)
}

fn unprinted(error: csv::Error) -> Failure {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => Failure::Print(error),
        other => Failure::Print(io::Error::other(format!("{other:?}"))),
    }
}

/// Appends the fields of a key or value: bytes and texts as they are, others as text; of a tuple,
/// one a component where there is a column for each.
fn fields(
    (bytes, kind): (&[u8], &Type),
    columns: usize,
    record: &mut csv::ByteRecord,
) -> Result<(), db::encoding::Error> {
    match kind {
        Type::Bytes => record.push_field(bytes),
        Type::Tuple(types) if columns == types.len() => {
            if let Datum::Tuple(components) = kind.decode(bytes)? {
                for (kind, component) in types.iter().zip(&components) {
                    self::fields((&kind.encode(component)?, kind), 1, record)?;
                }
            }
        }
        _ => record.push_field(kind.to_text(bytes)?.as_bytes()),
    }
    Ok(())
}

fn write_jsonl(
    database: &mut Database<'_>,
    mut output: Output,
    heads: &Heads,
    path: &Path,
    bar: &Counter,
) -> Result<u64, Failure> {
    let rows = every(database, path, bar, |entry| {
        let mut object = Map::new();
        members(entry.key()?, &heads.key, &mut object);
        members(entry.value()?, &heads.value, &mut object);
        writeln!(output, "{}", Json::Object(object)).map_err(Failure::Print)
    })?;
    output.finish().map_err(Failure::Print)?;
    Ok(rows)
}

fn members(json: Json, heads: &[String], object: &mut Map<String, Json>) {
    match (json, heads) {
        (json, [head]) => drop(object.insert(head.clone(), json)),
        (Json::Array(components), heads) => {
            object.extend(heads.iter().cloned().zip(components));
        }
        (_, _) => {}
    }
}
