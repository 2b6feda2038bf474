//! Rows of comma-separated values, with the lines in which they begin.

use std::io;

use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};

use super::quotes::{Quotes, TextFault};
use super::source::{Meter, Source};

/// Why a row could not be read.
#[derive(Debug)]
pub enum RowFault {
    /// The system refused, or what is compressed is damaged.
    Unreadable(io::Error),
    /// What stands in this line is no row.
    Bad {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
}

/// A table whose rows have as many fields as the first.
pub struct Table {
    reader: Reader<Quotes<Source>>,
    meter: Meter,
}

impl Table {
    /// The rows of `source`, with `delimiter` between two fields.
    #[must_use]
    pub fn new(source: Source, delimiter: u8) -> Self {
        let meter = source.meter();
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).delimiter(delimiter);
        Table { reader: builder.from_reader(Quotes::new(source, delimiter)), meter }
    }

    /// Reads a row; returns the line in which it begins, or `None` at the end.
    ///
    /// # Errors
    /// It can't be read, or is no row.
    pub fn read(&mut self, record: &mut ByteRecord) -> Result<Option<u64>, RowFault> {
        let is_there = self.reader.read_byte_record(record);
        let line = self.reader.get_mut().next_row().unwrap_or(1);
        self.meter.end_row();
        Ok(is_there.map_err(|error| fault(error, line))?.then_some(line))
    }

    /// How much was read.
    #[must_use]
    pub const fn meter(&self) -> &Meter {
        &self.meter
    }
}

/// The names of columns in the row `heading`.
///
/// # Errors
/// The name of two columns, of which one would hide the other. Columns without a name can't be
/// meant.
pub fn names(heading: &ByteRecord) -> Result<Vec<String>, String> {
    let name = |field: &[u8]| String::from_utf8_lossy(field).trim().to_owned();
    let names: Vec<String> = heading.iter().map(name).collect();
    let mut sorted: Vec<&String> = names.iter().filter(|name| !name.is_empty()).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(pair[0].clone()),
        None => Ok(names),
    }
}

fn fault(error: csv::Error, line: u64) -> RowFault {
    match error.into_kind() {
        ErrorKind::Io(error) => {
            match error.get_ref().and_then(|inner| inner.downcast_ref::<TextFault>()) {
                Some(fault) => RowFault::Bad { line: fault.line, what: fault.what.to_owned() },
                None => RowFault::Unreadable(error),
            }
        }
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let fields = if len == 1 { "field" } else { "fields" };
            let what = format!("{len} {fields} where the first line has {expected_len}");
            RowFault::Bad { line, what }
        }
        _ => RowFault::Bad { line, what: "this is no row of CSV".to_owned() },
    }
}
