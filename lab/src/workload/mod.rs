//! Workloads: what is loaded, and which operations are measured.
//!
//! One more workload is one file with an `ENTRY` and one line in [`WORKLOADS`].
//!
//! Invariant: what a workload does follows from its spec, the total of operations, the seed and
//! the input file alone; so each tree of a comparison gets the same.

mod counts;
mod csv;
mod flights;
mod generated;
mod numbers;
mod operations;
mod parameters;
mod preload;
mod present;
mod table;
#[cfg(test)]
mod tests;
mod weather;

use std::path::PathBuf;

use index::{EntryShape, Width};
use rand_distr::Zipf;

pub(crate) use numbers::scatter64;
pub use operations::{Operation, Operations};
pub use parameters::WorkloadParameter;
pub use preload::Preload;

use counts::{Counts, Deed, Frame};
use numbers::Numbers;
use parameters::Chosen;
use preload::Sorted;
use table::Table;

use crate::error::{Error, Result, Thing};
use spec::Spec;
use spec::near;

/// A workload by name.
#[derive(Debug)]
pub struct WorkloadEntry {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Its parameters.
    pub parameters: &'static [WorkloadParameter],
    source: fn(&Chosen, seed: u64) -> Result<Source>,
}

/// All workloads, sorted by name.
pub const WORKLOADS: &[&WorkloadEntry] = &[
    &csv::ENTRY,
    &flights::ENTRY,
    &generated::SEQUENTIAL,
    &generated::UNIFORM,
    &weather::ENTRY,
    &generated::ZIPF,
];

/// The most entries that a workload can put: their numbers have 31 bits.
const MOST_ENTRIES: u64 = numbers::MOST_NUMBERS;

/// Digits that mark a changed value of variable length, and a tab before them.
const LONGEST_MARK: usize = 21;

impl WorkloadEntry {
    fn draws_by_rank(&self) -> bool {
        self.parameters.contains(&parameters::SKEW)
    }

    fn wrong(&self, name: &str, value: u64, expected: String) -> Error {
        Error::BadValue {
            owner: self.name.to_string(),
            name: name.to_string(),
            value: value.to_string(),
            expected,
        }
    }
}

/// Where entries come from.
#[derive(Debug)]
enum Source {
    Table(Table),
    Numbers(Numbers),
}

impl Source {
    fn shape(&self) -> EntryShape {
        match self {
            Source::Table(table) => table.shape,
            Source::Numbers(numbers) => numbers.shape,
        }
    }

    /// The rows that a data set has.
    fn rows(&self) -> Option<u64> {
        match self {
            Source::Table(table) => Some(table.rows()),
            Source::Numbers(_) => None,
        }
    }

    /// The entry that row `row` puts.
    fn id_of(&self, row: u64) -> u32 {
        match self {
            Source::Table(table) => table.id_of(row),
            Source::Numbers(_) => row as u32,
        }
    }

    fn key(&self, id: u32, out: &mut Vec<u8>) {
        match self {
            Source::Table(table) => table.key(id, out),
            Source::Numbers(numbers) => numbers.key(id, out),
        }
    }

    fn value(&self, row: u64, out: &mut Vec<u8>) {
        match self {
            Source::Table(table) => table.value(row, out),
            Source::Numbers(numbers) => numbers.value(row as u32, out),
        }
    }

    /// The longest value that is ever put, in bytes.
    fn longest_value(&self) -> usize {
        match (self.shape().value, self) {
            (Width::Fixed(bytes), _) => usize::from(bytes),
            (Width::Variable, Source::Numbers(_)) => numbers::LONGEST_VALUE + LONGEST_MARK,
            (Width::Variable, Source::Table(table)) => table.longest_value() + LONGEST_MARK,
        }
    }

    fn miss(&self, draw: u64, issued: u32, out: &mut Vec<u8>) {
        match self {
            Source::Table(table) => table.miss(draw, out),
            Source::Numbers(numbers) => numbers.miss(draw, issued, out),
        }
    }

    /// False for rows of a data set that are read for a second time under the same keys.
    fn reads_first(&self, row: u64) -> bool {
        match self {
            Source::Table(table) => table.numbered || row < table.rows(),
            Source::Numbers(_) => true,
        }
    }

    /// True if several rows can have one key.
    fn rows_repeat_keys(&self) -> bool {
        matches!(self, Source::Table(table) if !table.row_ids.is_empty())
    }

    /// True if new rows are always new entries, which there is a limit to.
    fn rows_run_on(&self) -> bool {
        match self {
            Source::Table(table) => table.numbered,
            Source::Numbers(_) => true,
        }
    }
}

/// Everything beside its spec that a workload follows from.
#[derive(Clone, Debug, Default)]
pub struct WorkloadOptions {
    /// Operations in all, if not what the spec says.
    pub operations: Option<u64>,
    /// The seed of everything random.
    pub seed: u64,
    /// The file that the workload `csv` reads.
    pub input: Option<PathBuf>,
    /// The device's bytes, which bound what can be loaded.
    pub device_bytes: Option<u64>,
}

/// A workload that is ready to run, any number of times.
#[derive(Debug)]
pub struct Workload {
    seed: u64,
    source: Source,
    counts: Counts,
    /// The rows that the preload took.
    rows_loaded: u64,
    preload: Sorted,
    /// New rows that are put after the preload and before measuring.
    before: u64,
    longest_value: usize,
    scan: u32,
    zipf: Option<Zipf<f64>>,
    /// Entries that ranks are drawn from.
    ranks: u64,
}

impl Workload {
    /// Reads a spec, and the data that it names.
    ///
    /// # Errors
    /// The spec is wrong (an unknown name, a value out of bounds, nothing to do), or the input
    /// file is.
    pub fn prepare(spec: &str, options: &WorkloadOptions) -> Result<Self> {
        let spec = Spec::parse(spec)?;
        let entry = find(spec.name)?;
        let mut chosen = Chosen::read(&spec, entry.parameters)?;
        if options.operations == Some(0) {
            return Err(Error::NoOperations { why: "--ops is 0" });
        }
        if options.input.is_some() && entry.name != csv::ENTRY.name {
            return Err(Error::InputOption("only the workload csv reads --input: csv:key=COL"));
        }
        chosen.input.clone_from(&options.input);
        let source = (entry.source)(&chosen, options.seed)?;
        refuse_preload(entry, &chosen, &source, options.device_bytes)?;
        let counts = plan(entry, &chosen, &source, options.operations)?;
        let longest_value = source.longest_value();
        let mut workload = Workload {
            longest_value,
            seed: options.seed,
            source,
            counts,
            rows_loaded: chosen.preload,
            preload: Sorted::Listed(Vec::new()),
            before: chosen.before,
            scan: chosen.scan,
            zipf: None,
            ranks: 0,
        };
        if entry.draws_by_rank() {
            workload.rank(entry, &chosen)?;
        }
        workload.refuse_too_many(entry)?;
        workload.preload = Sorted::new(&workload.source, workload.rows_loaded);
        Ok(workload)
    }

    /// Sets up drawing by rank: from what is loaded, or, if nothing is, from as many as are put.
    fn rank(&mut self, entry: &WorkloadEntry, chosen: &Chosen) -> Result<()> {
        let puts = self.counts.of(Deed::Update) + self.counts.of(Deed::Insert);
        self.ranks = if chosen.preload > 0 { chosen.preload } else { puts.max(1) };
        let zipf = Zipf::new(self.ranks as f64, chosen.skew);
        let zipf =
            zipf.map_err(|_| entry.wrong("preload", self.ranks, "a number of ranks".into()))?;
        self.zipf = Some(zipf);
        Ok(())
    }

    fn refuse_too_many(&self, entry: &WorkloadEntry) -> Result<()> {
        let inserts = self.counts.of(Deed::Insert);
        let updates = self.counts.of(Deed::Update);
        if self.source.rows_run_on() {
            // Updates put new entries too, where none is there yet.
            let before = self.first_row().saturating_add(self.before);
            let entries = before.saturating_add(inserts).saturating_add(updates);
            if entries > MOST_ENTRIES {
                let most = format!("so few that there are at most {MOST_ENTRIES} entries");
                return Err(entry.wrong("updates", inserts + updates, most));
            }
        }
        let deletes = self.counts.of(Deed::Delete);
        let entries = self.rows_loaded + self.before + inserts;
        if deletes > entries && updates == 0 {
            return Err(Error::TooManyDeletes { deletes, entries });
        }
        Ok(())
    }

    /// The first row that is not loaded.
    fn first_row(&self) -> u64 {
        self.rows_loaded.max(self.ranks)
    }

    /// True if the rows of a file say what to do.
    fn is_scripted(&self) -> bool {
        matches!(&self.source, Source::Table(table) if !table.asked.is_empty())
    }

    /// The shape of its entries.
    #[must_use]
    pub fn shape(&self) -> EntryShape {
        self.source.shape()
    }

    /// The longest value that it puts, in bytes.
    #[must_use]
    pub fn longest_value(&self) -> usize {
        self.longest_value
    }

    /// How many operations are measured.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.total()
    }

    /// How many entries are loaded before.
    #[must_use]
    pub fn loaded(&self) -> u64 {
        self.preload.len()
    }

    /// How many operations come before the measured ones.
    #[must_use]
    pub fn before(&self) -> u64 {
        self.before
    }

    /// The most entries that there are at once, if deletes come as steadily as puts do.
    pub(crate) fn entries_most(&self) -> u64 {
        let (puts, deletes) = (self.counts.of(Deed::Insert), self.counts.of(Deed::Delete));
        let ranked = if self.zipf.is_some() { self.ranks } else { 0 };
        let begun = self.loaded().saturating_add(self.before);
        begun.saturating_add(puts.saturating_sub(deletes)).max(ranked)
    }

    /// The entries that are loaded, sorted by key.
    #[must_use]
    pub fn preload(&self) -> Preload<'_> {
        Preload::new(self)
    }

    /// Its operations, from the first: those before measuring, and the measured ones.
    #[must_use]
    pub fn operations(&self) -> Operations<'_> {
        Operations::new(self)
    }
}

/// The workload called `name`.
fn find(name: &str) -> Result<&'static WorkloadEntry> {
    WORKLOADS.iter().copied().find(|entry| entry.name == name).ok_or_else(|| Error::Unknown {
        thing: Thing::Workload,
        name: name.to_string(),
        near: near(name, WORKLOADS.iter().map(|entry| entry.name)),
        known: WORKLOADS.iter().map(|entry| entry.name.to_string()).collect(),
    })
}

/// Refuses to load more than there is, or than the device can hold, before room is made for it.
fn refuse_preload(
    entry: &WorkloadEntry,
    chosen: &Chosen,
    source: &Source,
    device_bytes: Option<u64>,
) -> Result<()> {
    if let Some(rows) = source.rows().filter(|rows| chosen.preload > *rows) {
        let expected = format!("at most {rows}, the rows that there are");
        return Err(entry.wrong("preload", chosen.preload, expected));
    }
    if chosen.preload > MOST_ENTRIES {
        return Err(entry.wrong("preload", chosen.preload, format!("at most {MOST_ENTRIES}")));
    }
    let width = |width| match width {
        Width::Fixed(bytes) => u64::from(bytes),
        Width::Variable => 1,
    };
    let entry_bytes = width(source.shape().key) + width(source.shape().value);
    match device_bytes {
        Some(bytes) if chosen.preload.saturating_mul(entry_bytes) > bytes => {
            Err(Error::PreloadTooLarge { entries: chosen.preload, entry_bytes, bytes })
        }
        _ => Ok(()),
    }
}

fn plan(
    entry: &WorkloadEntry,
    chosen: &Chosen,
    source: &Source,
    operations: Option<u64>,
) -> Result<Counts> {
    let rows_left = source.rows().map_or(0, |rows| rows - chosen.preload);
    if matches!(source, Source::Table(table) if !table.asked.is_empty()) {
        let operations = operations.unwrap_or(rows_left);
        if operations > rows_left {
            let expected = format!("at most {rows_left}, the rows after the preload");
            return Err(entry.wrong("--ops", operations, expected));
        }
        if operations == 0 {
            return Err(Error::NoOperations { why: "no row is left after the preload" });
        }
        return Ok(Counts::scripted(operations));
    }
    let by_rank = entry.draws_by_rank();
    Counts::plan(chosen, Frame { operations, default_updates: rows_left, by_rank })
}
