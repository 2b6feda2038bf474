//! `flashtree export`.

use std::cell::Cell;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Instant;

use db::encoding::{Datum, Decode, Time, Type};
use db::{Database, Error, KeyRange, OpenOptions};
use serde_json::{Map, Value as Json};

use super::columns::{check_count, names};
use super::packed::PackedOutput;
use super::part_file::tell_leftovers;
use super::salvage::{self, Gap, Lost};
use super::scan::{Typed, scan};
use super::{import, opening};
use crate::arguments::files::{Export, RowFormat, RowOptions};
use crate::failure::Failure;
use crate::failure::FileFailure;
use crate::interrupts;
use crate::numbers::count;
use crate::output::remark;
use crate::progress::Counter;

/// Entries between two looks at the progress.
const STEP: u64 = 1 << 12;

/// Writes all entries to a file.
///
/// # Errors
/// The database can't be read, the file can't be written, or Ctrl-C.
pub(super) fn run(arguments: &Export, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    import::check_foreign(path, &arguments.output)?;
    check_no_database(&arguments.output)?;
    // From here on: opening may have to recover the database, which takes a moment.
    interrupts::catch_interrupts();
    let opened = opening::to_read(&arguments.home, quiet);
    let mut database = opened.map_err(|failure| match failure {
        Failure::File(failure) if arguments.skip_damaged => all_lost(failure).into(),
        other => other,
    })?;
    let format = import::format_of(arguments.rows.format, &arguments.output);
    if format == RowFormat::Jsonl && arguments.rows.delimiter.is_some() {
        return Err(FileFailure::Option("--delimiter is for CSV: JSON lines have none").into());
    }
    let heads = Heads::of(&arguments.rows, &database)?;
    let output =
        PackedOutput::open(&arguments.output).map_err(unwritten(&arguments.output, false))?;
    let is_standard = output.is_standard();
    if !quiet && !is_standard {
        tell_leftovers(&arguments.output, ".part");
    }
    let start = Instant::now();
    let mut read = Reading {
        database: &mut database,
        path,
        bar: Counter::new(quiet, "exporting", None),
        skips_damaged: arguments.skip_damaged,
        rows: 0,
        lost: Lost::default(),
    };
    let written = match format {
        RowFormat::Csv => {
            let delimiter = import::delimiter_of(&arguments.rows, &arguments.output);
            write_csv(&mut read, (output, delimiter), &heads)
        }
        RowFormat::Jsonl => write_jsonl(&mut read, output, &heads),
    };
    read.bar.finish();
    let (rows, lost) = (read.rows, read.lost);
    written.map_err(|failure| match failure {
        // What the system says is about the output.
        Failure::Print(source) => unwritten(&arguments.output, is_standard)(source),
        other => other,
    })?;
    heads.times.iter().for_each(TimeFormat::tell_cut);
    tell_lost(lost, rows, &database, path)?;
    let pages = opening::unread_pages(&database, path)?;
    opening::close(database, path)?;
    if !quiet {
        import::tell_rows("exported", rows, start.elapsed());
    }
    match pages {
        0 => Ok(()),
        pages => Err(FileFailure::UnreadPages { path: path.to_owned(), pages }.into()),
    }
}

/// Refuses to write over another database.
fn check_no_database(output: &Path) -> Result<(), FileFailure> {
    // To open a pipe might wait for ever.
    let is_storage = fs::metadata(output).is_ok_and(|about| {
        let kind = about.file_type();
        kind.is_file() || kind.is_block_device()
    });
    if !is_storage {
        return Ok(());
    }
    match Database::open_read_only(output, &OpenOptions::new()) {
        Err(
            Error::NotADatabase { .. } | Error::Missing { .. } | Error::Io { .. } | Error::File(_),
        ) => Ok(()),
        _ => Err(FileFailure::OtherDatabase { path: output.to_owned() }),
    }
}

/// Fails if something was lost, and says what.
fn tell_lost(
    lost: Lost,
    rows: u64,
    database: &Database<'_>,
    path: &Path,
) -> Result<(), FileFailure> {
    let Some(source) = lost.first else { return Ok(()) };
    let text = |key: &Vec<u8>| database.key_type().to_text(key).unwrap_or_else(|_| "?".to_owned());
    let gap = |gap: &Gap| match (gap.before.as_ref().map(text), gap.behind.as_ref().map(text)) {
        (Some(before), Some(behind)) => format!("the keys between {before} and {behind}"),
        (Some(before), None) => format!("the keys behind {before}"),
        (None, Some(behind)) => format!("the keys before {behind}"),
        (None, None) => "all keys".to_owned(),
    };
    let more = (lost.more_gaps > 0).then(|| count(lost.more_gaps, "other gap"));
    let values = (lost.values > 0).then(|| count(lost.values, "long value"));
    let gaps = lost.gaps.iter().map(gap);
    let lost = gaps.chain(more).chain(values).collect::<Vec<_>>().join(", and ");
    let reason: &dyn std::fmt::Display = match &source {
        Error::Damaged { source } => source,
        other => other,
    };
    let what = format!("{} exported; {lost} can't be read: {reason}", count(rows, "row"));
    Err(FileFailure::Lost { path: path.to_owned(), what, source: Box::new(source) })
}

/// What is said if a database can't be opened for damage: nothing of it can be saved.
fn all_lost(failure: FileFailure) -> FileFailure {
    match failure {
        FileFailure::Database { path, source: Error::Damaged { source } } => {
            let what = format!("nothing can be saved: {source}; use a copy of the database");
            FileFailure::Lost { path, what, source: Box::new(Error::Damaged { source }) }
        }
        other => other,
    }
}

fn unwritten(output: &Path, is_standard: bool) -> impl FnOnce(io::Error) -> Failure {
    move |source| match is_standard {
        true => Failure::Print(source),
        false => Failure::Write { path: output.to_owned(), source },
    }
}

/// The headings of the columns of keys and of values, and how times are written there.
struct Heads {
    key: Vec<String>,
    value: Vec<String>,
    times: Option<TimeFormat>,
}

/// How times are written.
struct TimeFormat {
    format: String,
    /// Times of which it left something out.
    cut: Cell<u64>,
}

impl TimeFormat {
    fn write(&self, time: Time) -> Result<String, db::encoding::Error> {
        let text = time.strftime(&self.format)?;
        if Time::strptime(&self.format, &text).ok() != Some(time) {
            self.cut.set(self.cut.get() + 1);
        }
        Ok(text)
    }

    /// Says of how many times something was left out.
    fn tell_cut(&self) {
        if self.cut.get() > 0 {
            remark(&format!(
                "--time-format {} left something out of {}: an import would read others or none",
                self.format,
                count(self.cut.get(), "time")
            ));
        }
    }
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
        let heads = Heads {
            key: of("key", &options.key, database.key_type())?,
            value: of("value", &options.value, database.value_type())?,
            times: options
                .time_format
                .clone()
                .map(|format| TimeFormat { format, cut: Cell::new(0) }),
        };
        let mut names: Vec<&String> = heads.key.iter().chain(&heads.value).collect();
        names.sort();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(FileFailure::SameColumns { column: pair[0].clone() }),
            None => Ok(heads),
        }
    }
}

/// A database that is read to be written to a file.
struct Reading<'r, 'd> {
    database: &'r mut Database<'d>,
    path: &'r Path,
    bar: Counter,
    /// True if damage is passed over.
    skips_damaged: bool,
    /// Entries that were read.
    rows: u64,
    lost: Lost,
}

impl Reading<'_, '_> {
    /// Calls `each` with every entry.
    fn every(
        &mut self,
        mut each: impl FnMut(&Typed<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (rows, bar) = (&mut self.rows, &self.bar);
        let each = |entry: &Typed<'_>| {
            each(entry)?;
            *rows += 1;
            if rows.is_multiple_of(STEP) {
                bar.set(*rows);
                if interrupts::interrupted() {
                    return Err(FileFailure::Interrupted.into());
                }
            }
            Ok(())
        };
        if self.skips_damaged {
            self.lost = salvage::scan(self.database, self.path, each)?;
            return Ok(());
        }
        scan(self.database, KeyRange::ALL, u64::MAX, self.path, each)
    }
}

fn write_csv(
    read: &mut Reading<'_, '_>,
    (mut output, delimiter): (PackedOutput, u8),
    heads: &Heads,
) -> Result<(), Failure> {
    let mut record = csv::ByteRecord::new();
    let mut line = Vec::new();
    heads.key.iter().chain(&heads.value).for_each(|head| record.push_field(head.as_bytes()));
    let mut write = |record: &csv::ByteRecord| {
        write_row(record, delimiter, &mut line);
        output.write_all(&line).map_err(Failure::Print)
    };
    write(&record)?;
    read.every(|entry| {
        record.clear();
        let format = heads.times.as_ref();
        let fields = fields(entry.key, (heads.key.len(), format), &mut record);
        entry.checked("key", fields)?;
        let fields = self::fields(entry.value, (heads.value.len(), format), &mut record);
        entry.checked("value", fields)?;
        write(&record)
    })?;
    output.finish().map_err(Failure::Print)
}

/// Replaces what is in `line` by a row of CSV. Quotes stand around a NUL as well, without which it
/// would be taken for a half of a letter in UTF-16.
fn write_row(record: &csv::ByteRecord, delimiter: u8, line: &mut Vec<u8>) {
    line.clear();
    for (place, field) in record.iter().enumerate() {
        if place > 0 {
            line.push(delimiter);
        }
        if !field.iter().any(|byte| [b'"', b'\r', b'\n', 0, delimiter].contains(byte)) {
            line.extend_from_slice(field);
            continue;
        }
        line.push(b'"');
        for part in field.split_inclusive(|byte| *byte == b'"') {
            line.extend_from_slice(part);
            if part.ends_with(b"\"") {
                line.push(b'"');
            }
        }
        line.push(b'"');
    }
    line.push(b'\n');
}

/// Appends the fields of a key or value: bytes and texts as they are, others as text; of a tuple,
/// one a component where there is a column for each.
fn fields(
    (bytes, kind): (&[u8], &Type),
    (columns, times): (usize, Option<&TimeFormat>),
    record: &mut csv::ByteRecord,
) -> Result<(), db::encoding::Error> {
    let Type::Tuple(types) = kind else { return field((bytes, kind), times, record) };
    if columns != types.len() {
        return field((bytes, kind), times, record);
    }
    if let Datum::Tuple(components) = kind.decode(bytes)? {
        for (kind, component) in types.iter().zip(&components) {
            field((&kind.encode(component)?, kind), times, record)?;
        }
    }
    Ok(())
}

/// Appends one field; a tuple in it is an array.
fn field(
    (bytes, kind): (&[u8], &Type),
    times: Option<&TimeFormat>,
    record: &mut csv::ByteRecord,
) -> Result<(), db::encoding::Error> {
    match (kind, times) {
        (Type::Bytes, _) => record.push_field(bytes),
        (Type::Time, Some(times)) => {
            record.push_field(times.write(Time::decode_all(bytes)?)?.as_bytes());
        }
        _ => record.push_field(kind.to_text(bytes)?.as_bytes()),
    }
    Ok(())
}

fn write_jsonl(
    read: &mut Reading<'_, '_>,
    mut output: PackedOutput,
    heads: &Heads,
) -> Result<(), Failure> {
    read.every(|entry| {
        let mut object = Map::new();
        let key = formatted(entry.key()?, (entry.key.1, heads.key.len()), heads);
        members(key, &heads.key, &mut object);
        let value = formatted(entry.value()?, (entry.value.1, heads.value.len()), heads);
        members(value, &heads.value, &mut object);
        writeln!(output, "{}", Json::Object(object)).map_err(Failure::Print)
    })?;
    output.finish().map_err(Failure::Print)
}

/// A time in the format that the user wants, also as a component of a tuple with `columns` of its
/// own: an array in one column stays as all arrays are.
fn formatted(json: Json, (kind, columns): (&Type, usize), heads: &Heads) -> Json {
    let Some(times) = &heads.times else { return json };
    match (kind, json) {
        (Type::Time, Json::String(text)) => {
            let written = text.parse().and_then(|time| times.write(time));
            Json::String(written.unwrap_or(text))
        }
        (Type::Tuple(types), Json::Array(parts)) if columns == types.len() => {
            let parts = parts.into_iter().zip(types);
            Json::Array(parts.map(|(json, kind)| formatted(json, (kind, 1), heads)).collect())
        }
        (_, json) => json,
    }
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
