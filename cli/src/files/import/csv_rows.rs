//! Rows of comma-separated values.

use std::path::Path;

use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};
use db::encoding::{Error, Type};

use super::quotes::{QuoteFault, Quotes};
use super::source::{Meter, Source};
use super::{Entry, RowFault, delimiter_of, fields};
use crate::files::FileFailure;
use crate::files::arguments::Import;
use crate::files::columns::{Column, Columns, Heading};

/// A table, with keys and values in some of its columns.
pub(super) struct CsvRows {
    reader: Reader<Quotes<Source>>,
    meter: Meter,
    columns: Columns,
    types: (Type, Type),
    record: ByteRecord,
    /// The line in which it begins.
    line: u64,
    /// The first row where there is no heading, which was read to count the columns.
    first: bool,
}

impl CsvRows {
    /// Reads the heading, and finds the columns.
    ///
    /// # Errors
    /// There is nothing to read, or a column is not there.
    pub(super) fn open(
        source: Source,
        arguments: &Import,
        types: (Type, Type),
    ) -> Result<Self, FileFailure> {
        let meter = source.meter();
        let delimiter = delimiter_of(&arguments.rows, &arguments.input);
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).delimiter(delimiter);
        let mut reader = builder.from_reader(Quotes::new(source, delimiter));
        let mut record = ByteRecord::new();
        let path = &arguments.input;
        let first = read(&mut reader, &mut record).map_err(|fault| match fault {
            RowFault::Unreadable(source) => FileFailure::Read { path: path.clone(), source },
            RowFault::Bad { line, what: fault } => {
                FileFailure::Row { path: path.clone(), line, fault, safe: 0 }
            }
        })?;
        let line = first.ok_or_else(|| FileFailure::Empty { path: path.clone() })?;
        let names: Vec<String> = match arguments.no_header {
            true => (1..=record.len()).map(|number| number.to_string()).collect(),
            false => record.iter().map(heading).collect(),
        };
        check_names(path, &names)?;
        if arguments.rows.delimiter.is_none() && arguments.rows.value.is_none() {
            check_delimiter(path, &record)?;
        }
        let options = (arguments.rows.key.as_deref(), arguments.rows.value.as_deref());
        let columns = Heading { path, names: &names }.find(options, (&types.0, &types.1))?;
        Ok(CsvRows { reader, meter, columns, types, record, line, first: arguments.no_header })
    }

    /// Reads row `number`; false at the end.
    pub(super) fn next(&mut self, number: u64, into: &mut Entry) -> Result<bool, RowFault> {
        if !std::mem::take(&mut self.first) {
            match read(&mut self.reader, &mut self.record)? {
                Some(line) => self.line = line,
                None => return Ok(false),
            }
        }
        self.meter.end_row();
        into.line = self.line;
        let number = number.to_string();
        let column = |column: &Column| match column {
            Column::Field(place) => self.record.get(*place).unwrap_or_default(),
            Column::Row => number.as_bytes(),
        };
        let bad = |what: &str, error: Error| RowFault::Bad {
            line: into.line,
            what: format!("the {what}: {error}"),
        };
        let key = self.columns.key.iter().map(column);
        fields::encode(&self.types.0, key, &mut into.key).map_err(|error| bad("key", error))?;
        let value = self.columns.value.iter().map(column);
        fields::encode(&self.types.1, value, &mut into.value)
            .map_err(|error| bad("value", error))?;
        Ok(true)
    }

    /// How much was read.
    pub(super) const fn meter(&self) -> &Meter {
        &self.meter
    }
}

/// Refuses one column that seems to be several, with another delimiter between them: all of a row
/// would be its key.
fn check_delimiter(path: &Path, first: &ByteRecord) -> Result<(), FileFailure> {
    let [name] = first.iter().collect::<Vec<_>>()[..] else { return Ok(()) };
    match name.iter().find(|byte| b",;|\t".contains(byte)) {
        Some(delimiter) => Err(FileFailure::OneColumn {
            path: path.to_owned(),
            column: heading(name),
            delimiter: if *delimiter == b'\t' {
                "tab".into()
            } else {
                char::from(*delimiter).into()
            },
        }),
        None => Ok(()),
    }
}

/// Refuses two columns of one name, of which one would hide the other. Columns without a name can't
/// be meant.
fn check_names(path: &Path, names: &[String]) -> Result<(), FileFailure> {
    let mut sorted: Vec<&String> = names.iter().filter(|name| !name.is_empty()).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            Err(FileFailure::HeadingTwice { path: path.to_owned(), column: pair[0].clone() })
        }
        None => Ok(()),
    }
}

fn heading(field: &[u8]) -> String {
    String::from_utf8_lossy(field).trim().to_owned()
}

/// Reads a row; returns the line in which it begins, or `None` at the end.
fn read(
    reader: &mut Reader<Quotes<Source>>,
    record: &mut ByteRecord,
) -> Result<Option<u64>, RowFault> {
    let is_there = reader.read_byte_record(record);
    let line = reader.get_mut().next_row().unwrap_or(1);
    Ok(is_there.map_err(|error| fault(error, line))?.then_some(line))
}

fn fault(error: csv::Error, line: u64) -> RowFault {
    match error.into_kind() {
        ErrorKind::Io(error) => {
            match error.get_ref().and_then(|inner| inner.downcast_ref::<QuoteFault>()) {
                Some(fault) => RowFault::Bad { line: fault.line, what: fault.what.to_owned() },
                None => RowFault::Unreadable(error),
            }
        }
        ErrorKind::UnequalLengths { expected_len, len, .. } => RowFault::Bad {
            line,
            what: format!("{len} fields where the first line has {expected_len}"),
        },
        _ => RowFault::Bad { line, what: "this is no row of CSV".to_owned() },
    }
}
