//! Rows of comma-separated values.

use std::path::Path;

use csv::ByteRecord;
use db::encoding::{Error, Type};
use lab::input::{self, Meter, RowFault, Source, Table};

use super::{Entry, Row, delimiter_of, fields};
use crate::arguments::files::Import;
use crate::failure::FileFailure;
use crate::files::columns::{Column, Columns, Heading};

/// A table, with keys and values in some of its columns.
pub(super) struct CsvRows {
    table: Table,
    columns: Columns,
    types: (Type, Type),
    null: Option<Vec<u8>>,
    time_format: Option<String>,
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
        let mut table = Table::new(source, delimiter_of(&arguments.rows, &arguments.input));
        let mut record = ByteRecord::new();
        let path = &arguments.input;
        let first = table.read(&mut record).map_err(|fault| match fault {
            RowFault::Unreadable(source) => FileFailure::Read { path: path.clone(), source },
            RowFault::Bad { line, what: fault } => {
                FileFailure::Row { path: path.clone(), line, fault, safe: 0 }
            }
        })?;
        let line = first.ok_or_else(|| FileFailure::Empty { path: path.clone() })?;
        let names: Vec<String> = match arguments.no_header {
            true => (1..=record.len()).map(|number| number.to_string()).collect(),
            false => input::names(&record)
                .map_err(|column| FileFailure::HeadingTwice { path: path.clone(), column })?,
        };
        if arguments.rows.delimiter.is_none() && arguments.rows.value.is_none() {
            check_delimiter(path, &record)?;
        }
        let options = (arguments.rows.key.as_deref(), arguments.rows.value.as_deref());
        let columns = Heading { path, names: &names }.find(options, (&types.0, &types.1))?;
        Ok(CsvRows {
            table,
            columns,
            types,
            null: arguments.null.clone().map(String::into_bytes),
            time_format: arguments.rows.time_format.clone(),
            record,
            line,
            first: arguments.no_header,
        })
    }

    /// Reads row `number`.
    pub(super) fn next(&mut self, number: u64, into: &mut Entry) -> Result<Row, RowFault> {
        if !std::mem::take(&mut self.first) {
            match self.table.read(&mut self.record)? {
                Some(line) => self.line = line,
                None => return Ok(Row::End),
            }
        }
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
        let mut all = self.columns.key.iter().chain(&self.columns.value).map(column);
        if self.null.as_deref().is_some_and(|null| all.any(|field| field == null)) {
            return Ok(Row::Null);
        }
        let format = self.time_format.as_deref();
        let key = self.columns.key.iter().map(column);
        fields::encode(&self.types.0, format, key, &mut into.key)
            .map_err(|error| bad("key", error))?;
        let value = self.columns.value.iter().map(column);
        fields::encode(&self.types.1, format, value, &mut into.value)
            .map_err(|error| bad("value", error))?;
        Ok(Row::Entry)
    }

    /// How much was read.
    pub(super) const fn meter(&self) -> &Meter {
        self.table.meter()
    }
}

/// Refuses one column that seems to be several, with another delimiter between them: all of a row
/// would be its key.
fn check_delimiter(path: &Path, first: &ByteRecord) -> Result<(), FileFailure> {
    let [name] = first.iter().collect::<Vec<_>>()[..] else { return Ok(()) };
    match name.iter().find(|byte| b",;|\t".contains(byte)) {
        Some(delimiter) => Err(FileFailure::OneColumn {
            path: path.to_owned(),
            column: String::from_utf8_lossy(name).trim().to_owned(),
            delimiter: if *delimiter == b'\t' {
                "tab".into()
            } else {
                char::from(*delimiter).into()
            },
        }),
        None => Ok(()),
    }
}
