//! `csv`: entries or operations from a file of comma-separated values.

use std::collections::HashMap;
use std::path::Path;

use csv::{ByteRecord, ErrorKind};
use index::{EntryShape, Width};

use super::numbers::push_low_bytes;
use super::table::{Arena, Asked, Misses, Table};
use super::{Chosen, MOST_ENTRIES, Source, WorkloadEntry, parameters as p};
use crate::error::{Error, InputFault, Result};
use crate::input::{self, RowFault};
use spec::parse_count;

/// What the registry says.
pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "csv",
    about: "the rows of the file that --input names, in their order: a row puts its value under \
            its key, or does what the column `operation` says",
    parameters: &[
        p::KEY,
        p::VALUE,
        p::OPERATION,
        p::ENTRY_CSV,
        p::PRELOAD,
        p::UPDATES_ROWS,
        p::LTU,
        p::DELETES,
        p::HITS,
        p::RANGES,
        p::SCAN,
        p::MIX,
    ],
    source,
};

type Outcome<T> = std::result::Result<T, InputFault>;

fn source(chosen: &Chosen, _seed: u64) -> Result<Source> {
    let Some(path) = &chosen.input else {
        return Err(Error::InputOption("the workload csv reads a file: name it with --input FILE"));
    };
    if chosen.key.is_none() {
        return Err(Error::InputOption(
            "the workload csv needs the column of the keys: csv:key=COL",
        ));
    }
    let table = read(path, chosen).map_err(|fault| Error::Input { path: path.clone(), fault })?;
    Ok(Source::Table(table))
}

/// What the `csv` crate found in a built-in file, as a fault.
pub(super) fn fault(error: csv::Error) -> InputFault {
    let line = error.position().map_or(1, csv::Position::line);
    match error.into_kind() {
        ErrorKind::Io(error) => InputFault::Unreadable(error),
        ErrorKind::Utf8 { .. } => InputFault::NotUtf8 { line },
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            InputFault::Ragged { line, expected: expected_len, found: len }
        }
        _ => InputFault::Unreadable(std::io::Error::other("this is no CSV file")),
    }
}

/// The place of the column `name`.
pub(super) fn column<'h>(
    header: impl Iterator<Item = &'h str> + Clone,
    name: &str,
) -> Outcome<usize> {
    header.clone().position(|known| known == name).ok_or_else(|| InputFault::NoColumn {
        column: name.to_string(),
        found: header.map(String::from).collect(),
    })
}

/// The columns that are read.
struct Columns {
    key: usize,
    value: Option<usize>,
    operation: Option<usize>,
}

impl Columns {
    fn find(header: &[String], chosen: &Chosen) -> Outcome<Self> {
        let column = |name: &str| column(header.iter().map(String::as_str), name);
        let optional = |name: &Option<String>| match name {
            Some(name) => column(name).map(Some),
            None => Ok(None),
        };
        Ok(Columns {
            key: column(chosen.key.as_deref().unwrap_or_default())?,
            value: optional(&chosen.value)?,
            operation: optional(&chosen.operation)?,
        })
    }
}

fn read(path: &Path, chosen: &Chosen) -> Outcome<Table> {
    let source = input::Source::open(path, &|| true).map_err(InputFault::Unreadable)?;
    let mut table = input::Table::new(source, input::delimiter_of(path));
    let mut record = ByteRecord::new();
    table.read(&mut record).map_err(bad_row)?.ok_or(InputFault::Empty)?;
    let header = input::names(&record).map_err(|column| InputFault::ColumnTwice { column })?;
    let columns = Columns::find(&header, chosen)?;
    let mut rows = Rows::new(chosen.entry);
    while let Some(line) = table.read(&mut record).map_err(bad_row)? {
        if record.iter().any(|field| std::str::from_utf8(field).is_err()) {
            return Err(InputFault::NotUtf8 { line });
        }
        rows.push((&record, line), &header, &columns)?;
    }
    if rows.values.len() == 0 {
        return Err(InputFault::Empty);
    }
    Ok(rows.finish())
}

fn bad_row(fault: RowFault) -> InputFault {
    match fault {
        RowFault::Unreadable(error) => InputFault::Unreadable(error),
        RowFault::Bad { line, what } => InputFault::BadRow { line, what },
    }
}

/// Rows read so far.
struct Rows {
    shape: EntryShape,
    keys: Arena,
    values: Arena,
    row_ids: Vec<u32>,
    asked: Vec<Asked>,
    ids: HashMap<Box<[u8]>, u32>,
    bytes: Vec<u8>,
}

impl Rows {
    fn new(shape: EntryShape) -> Self {
        Rows {
            shape,
            keys: Arena::default(),
            values: Arena::default(),
            row_ids: Vec::new(),
            asked: Vec::new(),
            ids: HashMap::new(),
            bytes: Vec::new(),
        }
    }

    fn push(
        &mut self,
        (record, line): (&ByteRecord, u64),
        header: &[String],
        columns: &Columns,
    ) -> Outcome<()> {
        if self.values.len() as u64 >= MOST_ENTRIES {
            return Err(InputFault::TooLong { most: MOST_ENTRIES });
        }
        let field = |place| Field { record, line, header, place };
        let asked = columns.operation.map_or(Ok(Asked::Put), |place| field(place).asked())?;
        self.bytes.clear();
        field(columns.key).write(self.shape.key, &mut self.bytes)?;
        let id = self.id_of_key();
        self.row_ids.push(id);
        if columns.operation.is_some() {
            self.asked.push(asked);
        }
        self.bytes.clear();
        match columns.value {
            // Operations without a value leave that column empty.
            _ if asked != Asked::Put => {}
            Some(place) => field(place).write(self.shape.value, &mut self.bytes)?,
            None => write_number(self.values.len() as u64, self.shape.value, &mut self.bytes),
        }
        self.values.push(&self.bytes);
        Ok(())
    }

    /// The entry whose key is in `bytes`; a new one if there is none.
    fn id_of_key(&mut self) -> u32 {
        if let Some(id) = self.ids.get(self.bytes.as_slice()) {
            return *id;
        }
        let id = self.keys.len() as u32;
        self.keys.push(&self.bytes);
        self.ids.insert(self.bytes.as_slice().into(), id);
        id
    }

    fn finish(self) -> Table {
        let mut sorted: Vec<u32> = (0..self.keys.len() as u32).collect();
        sorted.sort_unstable_by(|a, b| self.keys.get(*a as usize).cmp(self.keys.get(*b as usize)));
        Table {
            shape: self.shape,
            keys: self.keys,
            values: self.values,
            row_ids: self.row_ids,
            asked: self.asked,
            numbered: false,
            misses: Misses::Sorted(sorted),
        }
    }
}

fn write_number(number: u64, width: Width, out: &mut Vec<u8>) {
    match width {
        Width::Fixed(bytes) => push_low_bytes(number, bytes, out),
        Width::Variable => super::numbers::push_decimal(number, 1, out),
    }
}

/// A field of a row.
struct Field<'r> {
    record: &'r ByteRecord,
    /// The line in which it begins.
    line: u64,
    header: &'r [String],
    place: usize,
}

impl Field<'_> {
    fn text(&self) -> &str {
        let field = self.record.get(self.place).unwrap_or_default();
        std::str::from_utf8(field).unwrap_or_default()
    }

    fn bad(&self, expected: &'static str) -> InputFault {
        InputFault::BadField {
            line: self.line,
            column: self.header.get(self.place).cloned().unwrap_or_default(),
            value: self.text().to_string(),
            expected,
        }
    }

    fn write(&self, width: Width, out: &mut Vec<u8>) -> Outcome<()> {
        match width {
            Width::Variable => out.extend_from_slice(self.text().as_bytes()),
            Width::Fixed(bytes) => push_low_bytes(self.number(bytes)?, bytes, out),
        }
        Ok(())
    }

    fn number(&self, bytes: u16) -> Outcome<u64> {
        let (most, expected) = if bytes >= 8 {
            (u64::MAX, "a whole number from 0 to 18446744073709551615; for texts, entry=variable")
        } else {
            (
                u64::from(u32::MAX),
                "a whole number from 0 to 4294967295; for others, entry=8+8 or entry=variable",
            )
        };
        parse_count(self.text().trim())
            .filter(|number| *number <= most)
            .ok_or_else(|| self.bad(expected))
    }

    fn asked(&self) -> Outcome<Asked> {
        match self.text().trim().to_ascii_lowercase().as_str() {
            "put" | "insert" | "update" | "upsert" => Ok(Asked::Put),
            "delete" | "remove" => Ok(Asked::Delete),
            "get" | "lookup" | "search" | "read" => Ok(Asked::Get),
            "range" | "scan" => Ok(Asked::Range),
            _ => Err(self.bad("put, delete, get or range")),
        }
    }
}
