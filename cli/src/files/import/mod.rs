//! `flashtree import`.
//!
//! Rows are read into a chunk, sorted by key, and put in batches: so pages that many keys share
//! are written once a chunk, and not once a row. After each chunk the database is synced, and only
//! then the [`Bookmark`] moves behind its rows. A put replaces what is there, so rows that are put
//! once more, because the process ended between a batch and the bookmark, do no harm.

mod bookmark;
mod chunk;
mod csv_rows;
mod faults;
mod fields;
mod json_rows;
mod pace;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use db::{Batch, Database, Durability};
use lab::input::{self, Meter, RowFault, Source};

use super::opening;
use crate::arguments::files::{Import, RowFormat, RowOptions};
use crate::failure::Failure;
use crate::failure::FileFailure;
use crate::interrupts;
use crate::numbers::{count, seconds, thousands};
use crate::output;
use crate::progress::Counter;
use bookmark::Bookmark;
use chunk::Chunk;
use csv_rows::CsvRows;
use faults::{is_about_entry, is_about_length};
use json_rows::JsonRows;
use pace::Pace;

/// The most bytes in a batch of several entries, if the journal takes that. Batches become shorter
/// where the journal is short, or where there is not room for the worst that so many entries could
/// take.
const BATCH_BYTES: usize = 256 << 10;

/// The most memory for sorting: places in it have 32 bits.
const BUFFER_BYTES_MOST: u64 = 1 << 30;

/// Rows between two looks at the progress.
const STEP: u64 = 1 << 10;

/// Puts the rows of a file into a database.
///
/// # Errors
/// The rows can't be read or do not fit, the database can't be written, or Ctrl-C.
pub(super) fn run(arguments: &Import, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    check_foreign(path, &arguments.input)?;
    if arguments.buffer > BUFFER_BYTES_MOST {
        return Err(FileFailure::Option("--buffer takes at most 1GiB").into());
    }
    // From here on: opening may have to recover the database, which takes a moment.
    interrupts::catch_interrupts();
    let database = opening::to_write(&arguments.home, quiet)?;
    let durability = database.stats().map_err(FileFailure::of(path))?.recovery.durability;
    if Bookmark::is_taken(path) {
        return Err(FileFailure::BookmarkTaken { path: Bookmark::path(path) }.into());
    }
    let rows = Rows::open(arguments, &database)?;
    let begun = Bookmark::read(path);
    if !quiet {
        tell_begun(begun.as_ref(), arguments.resume, path);
    }
    let begun = begun.filter(|_| arguments.resume);
    if begun.is_none() {
        Bookmark::remove(path);
    }
    let bar = Counter::new(quiet, "importing", rows.source().bytes());
    let job = Job {
        path,
        input: &arguments.input,
        durability,
        done: Bookmark::default(),
        read: Bookmark::default(),
        left_out: 0,
        put: 0,
        skipped: 0,
        expected: 0,
        batch_most: (usize::MAX, batch_bytes(&database)),
        pace: Pace::new(),
        database,
        bar,
    };
    job.run(rows, begun, arguments.buffer as usize, quiet)
}

/// Tells where an import begins, if that is not what the user may think.
fn tell_begun(begun: Option<&Bookmark>, resume: bool, path: &Path) {
    match begun {
        Some(begun) if !resume => output::remark(&format!(
            "an import was broken off after {}, and --resume would go on there; this one begins \
             anew",
            count(begun.rows, "row")
        )),
        None if resume => output::remark(&format!(
            "{}: no import is left to go on with; this one begins with the first row",
            path.display()
        )),
        _ => {}
    }
}

fn batch_bytes(database: &Database<'_>) -> usize {
    let journal = database.stats().map_or(0, |stats| stats.recovery.journal_bytes_most);
    match usize::try_from(journal / 4) {
        Ok(0) | Err(_) => BATCH_BYTES,
        Ok(bytes) => bytes.min(BATCH_BYTES),
    }
}

/// Takes the bookmark of an import that was broken off away.
pub(super) fn forget(path: &Path) {
    Bookmark::remove(path);
}

/// What stands between two fields, if the user does not say: as the file's name ends.
pub(super) fn delimiter_of(rows: &RowOptions, path: &Path) -> u8 {
    rows.delimiter.unwrap_or_else(|| input::delimiter_of(path))
}

/// How the rows in a file stand, if the user does not say: as its name ends.
pub(super) fn format_of(given: Option<RowFormat>, path: &Path) -> RowFormat {
    let name = input::bare_name(path);
    let is_json = [".jsonl", ".ndjson", ".json"].iter().any(|ending| name.ends_with(ending));
    given.unwrap_or(if is_json { RowFormat::Jsonl } else { RowFormat::Csv })
}

/// Refuses rows that come from, or go to, the database itself.
///
/// # Errors
/// [`FileFailure::Itself`].
pub(super) fn check_foreign(database: &Path, rows: &Path) -> Result<(), FileFailure> {
    let is_same = match (database.canonicalize(), rows.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    };
    if is_same {
        return Err(FileFailure::Itself { path: rows.to_owned() });
    }
    Ok(())
}

/// Tells how many rows went, and how fast.
pub(super) fn tell_rows(done: &str, rows: u64, time: Duration) {
    let (text, time) = (count(rows, "row"), time.as_secs_f64());
    // A rate over a moment says nothing.
    if time < 0.1 {
        return output::remark(&format!("{text} {done}"));
    }
    let rate = thousands((rows as f64 / time) as u64);
    output::remark(&format!("{text} {done} in {}, {rate} a second", seconds(time)));
}

/// Rows of either kind.
enum Rows {
    Csv(CsvRows),
    Json(JsonRows),
}

impl Rows {
    fn open(arguments: &Import, database: &Database<'_>) -> Result<Self, FileFailure> {
        let source = Source::open(&arguments.input, &|| !interrupts::interrupted());
        let source = source.map_err(|source| match source.kind() {
            io::ErrorKind::Interrupted => FileFailure::Interrupted,
            _ => FileFailure::Read { path: arguments.input.clone(), source },
        })?;
        let types = (database.key_type().clone(), database.value_type().clone());
        match format_of(arguments.rows.format, &arguments.input) {
            RowFormat::Csv => CsvRows::open(source, arguments, types).map(Rows::Csv),
            RowFormat::Jsonl => JsonRows::open(source, arguments, types).map(Rows::Json),
        }
    }

    /// Reads key and value of row `number`.
    fn next(&mut self, number: u64, into: &mut Entry) -> Result<Row, RowFault> {
        match self {
            Rows::Csv(rows) => rows.next(number, into),
            Rows::Json(rows) => rows.next(number, into),
        }
    }

    const fn source(&self) -> &Meter {
        match self {
            Rows::Csv(rows) => rows.meter(),
            Rows::Json(rows) => rows.meter(),
        }
    }
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Entry,
    /// It has no key or no value, and is left out.
    Null,
    /// There is none any more.
    End,
}

/// A key and a value as they are stored, and the line that they come from.
#[derive(Debug, Default)]
struct Entry {
    key: Vec<u8>,
    value: Vec<u8>,
    line: u64,
}

/// An import at work.
struct Job<'j> {
    database: Database<'static>,
    path: &'j Path,
    input: &'j Path,
    durability: Durability,
    /// Rows that are put and safe.
    done: Bookmark,
    /// Rows that are read.
    read: Bookmark,
    /// Rows without a key or value.
    left_out: u64,
    /// Entries that were put, safe or not.
    put: u64,
    /// Rows that were in the database before.
    skipped: u64,
    /// Rows that there are in all, as far as that can be told from those that were read.
    expected: u64,
    /// The most entries and bytes in a batch that the database takes.
    batch_most: (usize, usize),
    /// How many entries it takes in good time.
    pace: Pace,
    bar: Counter,
}

impl Job<'_> {
    fn run(
        mut self,
        mut rows: Rows,
        begun: Option<Bookmark>,
        buffer: usize,
        quiet: bool,
    ) -> Result<(), Failure> {
        let start = Instant::now();
        if let Some(begun) = begun {
            self.skip(&mut rows, &begun)?;
            if !quiet {
                output::remark(&format!("going on behind row {}", thousands(begun.rows)));
            }
        }
        let skipped = self.read.rows;
        self.skipped = skipped;
        self.put_all(&mut rows, buffer)?;
        self.bar.finish();
        let (path, rows) = (self.path, self.read.rows - skipped - self.left_out);
        let left_out = self.left_out;
        opening::close(self.database, path)?;
        Bookmark::remove(path);
        if !quiet {
            tell_rows("imported", rows, start.elapsed());
            if left_out > 0 {
                output::remark(&format!("{} left out: no key or no value", count(left_out, "row")));
            }
        }
        Ok(())
    }

    /// Reads the rows that are in the database already, and makes sure that they are the same.
    fn skip(&mut self, rows: &mut Rows, begun: &Bookmark) -> Result<(), Failure> {
        let other = FileFailure::OtherRows { path: self.input.to_owned(), rows: begun.rows };
        let mut entry = Entry::default();
        self.done = *begun;
        while self.read.rows < begun.rows {
            match rows.next(self.read.rows, &mut entry) {
                Ok(Row::Entry) => self.read.add(&entry.key, &entry.value),
                Ok(Row::Null) => self.read.rows += 1,
                Ok(Row::End) | Err(RowFault::Bad { .. }) => return Err(other.into()),
                Err(fault) => return Err(self.broken_off(fault)),
            }
            self.step(rows)?;
        }
        self.read.checkpoint = begun.checkpoint;
        if self.read != *begun {
            return Err(other.into());
        }
        let reached = bookmark::checkpoint(&self.database).map_err(self.failed())?;
        let is_empty = begun.checksum == Bookmark::default().checksum;
        let held = is_empty || self.database.contains(&entry.key).map_err(self.failed())?;
        if !held || reached < begun.checkpoint {
            return Err(FileFailure::OtherState { path: self.path.to_owned() }.into());
        }
        Ok(())
    }

    fn put_all(&mut self, rows: &mut Rows, buffer: usize) -> Result<(), Failure> {
        let mut chunk = Chunk::new(buffer);
        let mut entry = Entry::default();
        loop {
            let fault = loop {
                match rows.next(self.read.rows, &mut entry) {
                    Ok(Row::Entry) => {
                        self.read.add(&entry.key, &entry.value);
                        chunk.add(&entry);
                    }
                    Ok(Row::Null) => {
                        self.read.rows += 1;
                        self.left_out += 1;
                    }
                    Ok(Row::End) => break Some(None),
                    Err(fault) => break Some(Some(fault)),
                }
                self.step(rows)?;
                if chunk.is_full() {
                    break None;
                }
            };
            self.expected = expected(self.read.rows, rows.source());
            self.put_chunk(&mut chunk)?;
            match fault {
                None => {}
                // Ctrl-C ends the program that fills a pipe as well: this is no end of the rows.
                Some(None) if interrupts::interrupted() => return Err(self.interrupted()),
                Some(None) => return Ok(()),
                Some(Some(fault)) => return Err(self.broken_off(fault)),
            }
        }
    }

    /// Shows the progress, and minds Ctrl-C.
    fn step(&self, rows: &Rows) -> Result<(), Failure> {
        if !self.read.rows.is_multiple_of(STEP) {
            return Ok(());
        }
        match rows.source().bytes() {
            Some(_) => self.bar.set(rows.source().read()),
            None => self.bar.set(self.read.rows),
        }
        if interrupts::interrupted() {
            return Err(self.interrupted());
        }
        Ok(())
    }

    /// Puts all entries of `chunk`, and makes them safe.
    fn put_chunk(&mut self, chunk: &mut Chunk) -> Result<(), Failure> {
        chunk.sort();
        let mut batch = Batch::new();
        let mut first = self.load(chunk)?;
        while first < chunk.len() {
            if interrupts::interrupted() {
                return Err(self.interrupted());
            }
            let (entries, bytes) = self.batch_most;
            let most = (entries.min(self.pace.entries()), bytes);
            let end = chunk.fill(first, most, &mut batch);
            let start = Instant::now();
            match self.database.write_batch(&batch) {
                Ok(()) => {
                    self.pace.note(end - first, start.elapsed());
                    self.put += (end - first) as u64;
                    first = end;
                }
                Err(error) if end > first + 1 && is_about_length(&error) => {
                    self.batch_most = ((end - first) / 2, self.batch_most.1 / 2);
                }
                Err(error) => return Err(self.refused(error, chunk, first, end)),
            }
        }
        chunk.clear();
        self.keep_place()
    }

    /// Loads `chunk` into a database that is empty, from the leaves up: putting entry by entry
    /// would write leaves again and again. Returns how many entries are done: none where the
    /// database has some, and those before one that is refused, which is told of by putting it.
    fn load(&mut self, chunk: &Chunk) -> Result<usize, Failure> {
        let is_empty = self.put + self.skipped == 0
            && self.database.first().map_err(|error| self.stopped(error))?.is_none();
        if !is_empty {
            return Ok(0);
        }
        let places = (0..chunk.len()).take_while(|_| !interrupts::interrupted());
        let entries = places.map(|place| {
            let (key, value, _) = chunk.entry(place);
            (key, value)
        });
        let loaded = self.database.load(entries);
        if interrupts::interrupted() {
            return Err(self.interrupted());
        }
        let done = match &loaded {
            Ok(loaded) => *loaded,
            // What can't be read any more holds nothing that counts.
            Err(_) => self.database.count().unwrap_or_default(),
        };
        self.put += done;
        match loaded {
            // After any other error all that follows is refused, with less of a reason.
            Err(cause) if !is_about_length(&cause) && !is_about_entry(&cause) => {
                return Err(self.stopped(cause));
            }
            _ => {}
        }
        Ok(usize::try_from(done).unwrap_or(chunk.len()).min(chunk.len()))
    }

    /// Makes all that was put safe, and moves the bookmark.
    fn keep_place(&mut self) -> Result<(), Failure> {
        // Without durability nothing is safe before the end.
        if self.durability == Durability::None || self.done == self.read {
            return Ok(());
        }
        self.database.sync().map_err(|error| self.stopped(error))?;
        self.read.checkpoint =
            bookmark::checkpoint(&self.database).map_err(|error| self.stopped(error))?;
        self.read
            .write(self.path)
            .map_err(|source| Failure::Write { path: Bookmark::path(self.path), source })?;
        self.done = self.read;
        Ok(())
    }
}

/// Rows that there are in all, if those behind the `rows` that were read are as long.
fn expected(rows: u64, source: &Meter) -> u64 {
    let (Some(bytes), read) = (source.bytes(), source.read().max(1)) else {
        return rows;
    };
    let all = u128::from(rows) * u128::from(bytes.max(read)) / u128::from(read);
    u64::try_from(all).unwrap_or(u64::MAX)
}
