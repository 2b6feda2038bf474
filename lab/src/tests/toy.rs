//! A tree for tests of the laboratory: a map in memory that makes a device busy, and that can be
//! told to go wrong.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Bound;

use device::{Block, Cause, Medium, Meter, Page, Request, Sector};
use index::parameters::{Kind, Parameter};
use index::{
    CheckpointId, Cursor, Direction, Error, Index, KeyRange, KeyValue, Memory, Read,
    RecoveryStatistics, Result, Savepoint, Statistics, Update, Value,
};
use index::{DeletePolicy, Footprint, MediumShape, Options, Prediction, Profile, TreeDescriptor};

const FAULTS: &[&str] =
    &["none", "stale", "forget", "keep", "invent", "lose", "full", "unloaded", "panic", "greedy"];

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "fault",
        about: "what goes wrong",
        kind: Kind::Word(FAULTS),
        default: "none",
    },
    Parameter {
        name: "after",
        about: "after so many updates",
        kind: Kind::Count(0, u64::MAX),
        default: "100",
    },
    Parameter { name: "fill", about: "percent", kind: Kind::Percent(1), default: "70" },
];

/// The least memory of a toy.
pub(super) const LEAST: u64 = 4096;

/// Bytes of tables that a toy says it has.
pub(super) const TABLES: u64 = 1000;

const fn entry(name: &'static str, nand: bool, sectors: bool) -> TreeDescriptor {
    TreeDescriptor {
        name,
        about: "a toy",
        paper: "none",
        nand,
        sectors,
        deletes: |_| DeletePolicy::Append,
        tables_part: |_| 0,
        long_values: false,
        parameters: PARAMETERS,
        create,
        open: create,
        footprint,
        predict,
    }
}

/// Stands on both views.
pub(super) static BOTH: TreeDescriptor = entry("both-toy", true, true);

/// Needs more memory than anyone has.
pub(super) static HUNGRY: TreeDescriptor =
    TreeDescriptor { footprint: |_, _| Ok(needing(1 << 40)), ..entry("hungry-toy", false, true) };

/// Stands on sectors.
pub(super) static TOY: TreeDescriptor = entry("toy", false, true);

const fn needing(memory_least: u64) -> Footprint {
    Footprint { memory_least, tables: TABLES, units_least: 1 }
}

fn footprint(_: &Options, _: MediumShape) -> Result<Footprint> {
    Ok(needing(LEAST))
}

fn predict(_: &Profile, _: &Options, _: MediumShape) -> Result<Prediction> {
    Err(Error::Unsupported { what: "toys predict nothing" })
}

fn create<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let page_bytes = match &medium {
        Medium::Nand(chip) => chip.geometry().page_bytes(),
        Medium::Sectors(disk) => disk.geometry().sector_bytes(),
    };
    Ok(Box::new(Toy {
        medium,
        page: vec![0; page_bytes as usize],
        next: 0,
        entries: BTreeMap::new(),
        fault: options.settings.word("fault").unwrap_or_default(),
        after: options.settings.number("after").unwrap_or_default(),
        updates: 0,
        unsettled: 0,
        memory_bytes: options.memory_bytes,
    }))
}

struct Toy<'d> {
    medium: Medium<'d>,
    page: Vec<u8>,
    next: u32,
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    fault: &'static str,
    after: u64,
    updates: u64,
    unsettled: u64,
    memory_bytes: u64,
}

impl Toy<'_> {
    fn write(&mut self, cause: Cause) -> Result<()> {
        let next = self.next;
        match &mut self.medium {
            Medium::Nand(chip) => {
                let geometry = chip.geometry();
                let page = Page(next % geometry.pages());
                if geometry.place_of(page) == 0 {
                    chip.erase(Block(geometry.block_of(page).0), Cause::Reclamation)?;
                }
                chip.program(page, 0, &self.page, &[], cause)?;
            }
            Medium::Sectors(disk) => disk.write(Sector(u64::from(next % 64)), &self.page, cause)?,
        }
        self.next += 1;
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        match &mut self.medium {
            Medium::Nand(chip) => {
                chip.read(Page(0), 0, &mut self.page, &mut [], Cause::Lookup)?;
            }
            Medium::Sectors(disk) => {
                let request = Request { first: Sector(0), offset: 0, into: &mut self.page };
                disk.read(&mut [request], Cause::Lookup)?;
            }
        }
        Ok(())
    }

    /// True for one update in `after`.
    fn fails(&self, fault: &str) -> bool {
        self.fault == fault && self.updates.is_multiple_of(self.after.max(1))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        if self.fails("forget") {
            return;
        }
        let old = self.entries.entry(key.to_vec()).or_default();
        if self.fault != "stale" || old.is_empty() {
            *old = value.to_vec();
        }
        if self.fails("lose") {
            self.entries.pop_first();
        }
    }
}

impl Read for Toy<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        self.read()?;
        let Some(value) = self.entries.get(key) else { return Ok(None) };
        let rest = &value[(offset as usize).min(value.len())..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        Ok(Some(value.len() as u32))
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        self.read()?;
        let bounds = (range.from, range.to);
        let there = self.entries.range::<[u8], (Bound<&[u8]>, Bound<&[u8]>)>(bounds);
        let mut entries: Vec<_> = there.map(|(k, v)| (k.clone(), v.clone())).collect();
        if range.direction == Direction::Descending {
            entries.reverse();
        }
        if self.fault == "invent" && self.updates > self.after {
            entries.insert(entries.len().min(1), (vec![0xff; 4], vec![0; 4]));
        }
        Ok(Box::new(Copies { entries, next: 0 }))
    }

    fn check(&mut self, _: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        Ok(())
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            height: 1,
            live_pages: self.entries.len() as u64,
            memory: Memory { cache: self.memory_bytes, buffers: 0, tables: TABLES, ftl: 0 },
            memory_peak: self.memory_bytes + TABLES + u64::from(self.fault == "greedy"),
        }
    }

    fn meter(&self) -> Option<&Meter> {
        match &self.medium {
            Medium::Nand(chip) => chip.meter(),
            Medium::Sectors(disk) => disk.meter(),
        }
    }
}

impl Index for Toy<'_> {
    fn update(&mut self, batch: &[Update<'_>]) -> Result<()> {
        for update in batch {
            self.updates += 1;
            if self.fails("full") {
                return Err(device::Error::Full { blocks_free: 0, blocks_needed: 1 }.into());
            }
            assert!(!self.fails("panic"), "the toy was told to panic");
            match *update {
                Update::Put { key, value } => self.put(key, value),
                Update::PutStored { .. } => return Err(unsupported()),
                Update::Delete { key } if self.fault == "keep" => assert!(!key.is_empty()),
                Update::Delete { key } => drop(self.entries.remove(key)),
            }
            self.unsettled += 1;
            if self.unsettled == 4 {
                self.unsettled = 0;
                self.write(Cause::Update)?;
            }
        }
        Ok(())
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        assert_eq!(fill_percent, 70);
        let mut loaded = 0;
        while let Some((key, value)) = sorted.next()? {
            let value = value.whole().expect("a workload's values are whole");
            self.entries.insert(key.to_vec(), value.to_vec());
            loaded += 1;
            if loaded % 100 == 0 {
                self.write(Cause::Load)?;
            }
        }
        Ok(loaded - u64::from(self.fault == "unloaded"))
    }

    fn sync(&mut self) -> Result<()> {
        Err(unsupported())
    }

    fn checkpoint(&mut self, _: Option<&str>) -> Result<CheckpointId> {
        Err(unsupported())
    }

    fn checkpoints(&self) -> &[Savepoint] {
        &[]
    }

    fn roll_back(&mut self, _: &str) -> Result<()> {
        Err(unsupported())
    }

    fn forget(&mut self, _: &str) -> Result<()> {
        Err(unsupported())
    }

    fn recovery(&self) -> RecoveryStatistics {
        RecoveryStatistics::default()
    }

    fn entry_bytes_most(&self) -> usize {
        usize::MAX
    }

    fn key_bytes_most(&self) -> usize {
        usize::MAX
    }

    fn close(&mut self) -> Result<()> {
        if self.unsettled > 0 {
            self.unsettled = 0;
            self.write(Cause::Flush)?;
        }
        Ok(())
    }
}

fn unsupported() -> index::Error {
    index::Error::Unsupported { what: "the toy has no durability" }
}

struct Copies {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    next: usize,
}

impl Cursor for Copies {
    fn next(&mut self) -> Result<Option<KeyValue<'_>>> {
        let entry = self.entries.get(self.next);
        self.next += 1;
        Ok(entry.map(|(key, value)| (key.as_slice(), Value::Inline(value))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        let entry = self.next.checked_sub(1).and_then(|last| self.entries.get(last));
        entry.map(|(_, value)| index::read_piece(value, offset, into)).ok_or(Error::NoEntry)
    }
}
