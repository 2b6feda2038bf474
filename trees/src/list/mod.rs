//! `list`: the append-only archive that FlashDB is measured against (6.1).
//!
//! Entries are appended in the order in which they arrive, deletes as well, and packed into pages,
//! each of which knows the one before. A `get` reads the list from its newest entry back until it
//! meets the key, a range reads the whole list once for each windowful of keys (`scan.rs`). Nothing
//! is ever moved for being old: a full list refuses.
//!
//! # How long it takes
//! An archive is not made to be asked. With p pages a `get` of a present key reads p / 2 of them,
//! of an absent one p. Where `l` gets are mixed evenly into puts that fill p pages, they read l p /
//! 4 pages in all: the default `compare` (21,000 gets, 860 pages of 2 KiB) nearly 5 million, which
//! is about 20 seconds of one core, where trees take less than one. `cost.rs` predicts it.
//!
//! # Choices that the paper leaves open
//! - The newest entry of a key counts.
//! - A page has no summary of its keys, and is never passed over.
//! - Entries that fill no page yet are part of a checkpoint's root record, so that no page is ever
//!   written half full.
//!
//! # Invariants
//! - A page is written once, after the page that it names as the one before it.
//! - Puts leave a block for deletes, and deletes one for programs that the chip refuses.

mod archive;
mod check;
mod cost;
mod page;
mod scan;
mod window;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;

use device::{Cause, Geometry, Medium, Meter};
use store::{EntryShape, PageLog, Recovery, Update};

use archive::Archive;
use index::bounds::can_be;
use index::random_keys::average_bytes;
use index::{
    Cursor, Durable, Error, Index, KeyRange, Read, Result, Resume, Statistics, Tree, read_piece,
};
use index::{DeletePolicy, Footprint, MediumShape, Options, TreeDescriptor};
use index::{entries_of_a_block, raw_flash};
use page::{Form, Item, Root, least_window};
use scan::Scan;
use window::{WINDOW_BYTES_MOST, Window};

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = TreeDescriptor {
    name: NAME,
    about: "the append-only archive: puts cost next to nothing, queries read all of it",
    paper: "Nath and Kansal: FlashDB (MSR-TR-2006-168), section 6.1",
    nand: true,
    sectors: false,
    deletes: |_| DeletePolicy::Append,
    tables_part: |_| 0,
    long_values: false,
    parameters: &[],
    create,
    open,
    footprint,
    predict: cost::predict,
};

const NAME: &str = "list";

/// Bytes of a root record beside the entries that are in no page yet, at most.
const ROOT_BYTES: u64 = 64;

/// Blocks that puts don't take: one for programs that are refused, and one for deletes.
const BLOCKS_KEPT_BACK: u32 = 2;

/// The list.
pub(crate) struct List<'d> {
    archive: Archive<'d>,
    window: Window,
    /// Bytes of memory of the archive and the window.
    buffer_bytes: u64,
}

fn create<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let chip = raw_flash(medium, NAME)?;
    let geometry = chip.geometry();
    let shape = MediumShape::Nand(geometry);
    let needs = |like| footprint(options, like);
    let window = window_beside(needs(shape)?.memory_least, geometry, options.memory_bytes)?;
    shape.check_units(geometry.blocks(), needs)?;
    let log = PageLog::create(chip, &options.page_log())?;
    shape.check_units(log.good_blocks(), needs)?;
    Ok(Box::new(Durable::create(List::over(log, window, options.shape)?)?))
}

/// The blocks suffice for a block's worth of entries, beside what updates leave free, the log's
/// own, and a half full one of the log and of the list.
fn footprint(options: &Options, medium: MediumShape) -> Result<Footprint> {
    let chip = medium.chip(NAME)?;
    let (form, log) = (Form::on(chip, options.shape)?, options.page_log());
    let EntryShape { key, value } = options.shape;
    let bytes = form.bytes(average_bytes(key).into(), Some(average_bytes(value).into()));
    let room = PageLog::content_bytes_on(chip) as usize - page::HEADER_BYTES;
    let entries = entries_of_a_block(chip, options.shape);
    let pages = entries.div_ceil((room / bytes.max(1)).max(1) as u64);
    let blocks = pages.div_ceil(chip.pages_per_block().into());
    let own = PageLog::own_reserve_on(chip, &log, ROOT_BYTES + room as u64);
    Ok(Footprint {
        memory_least: least_of(chip, options.shape, PageLog::least_memory(chip, &log))?,
        tables: PageLog::table_bytes_on(chip),
        units_least: blocks + u64::from(own) + u64::from(2 + BLOCKS_KEPT_BACK),
    })
}

fn open<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let (log, record) = PageLog::open_with(raw_flash(medium, NAME)?, &options.page_log())?;
    let shape = Root::decode(&record)?.shape;
    let needs = least_of(log.geometry(), shape, log.buffer_bytes())?;
    let window = window_beside(needs, log.geometry(), options.memory_bytes)?;
    let mut list = List::over(log, window, shape)?;
    list.restore(&record)?;
    drop(record);
    Ok(Box::new(Durable::open(list)?))
}

/// The least memory where the log takes `log` bytes.
fn least_of(chip: Geometry, shape: EntryShape, log: u64) -> Result<u64> {
    let form = Form::on(chip, shape)?;
    let window = Window::memory_bytes(least_window(chip.page_bytes()), form.entry_bytes_most());
    Ok(log + Archive::memory_bytes(chip) + window)
}

/// Bytes of the window where `need` bytes of memory are the least, and there are `have`.
fn window_beside(need: u64, chip: Geometry, have: u64) -> Result<u32> {
    let Some(left) = have.checked_sub(need) else {
        return Err(store::Error::LittleMemory { have, need }.into());
    };
    let most = WINDOW_BYTES_MOST;
    let bytes = u64::from(least_window(chip.page_bytes())) + left / 2;
    Ok(u32::try_from(bytes).map_or(most, |bytes| bytes.min(most)))
}

impl Form {
    /// The form of entries of `shape` on `chip`.
    fn on(chip: Geometry, shape: EntryShape) -> Result<Self> {
        let content = PageLog::content_bytes_on(chip);
        let form = Form::new(content.saturating_sub(page::HEADER_BYTES as u32), shape);
        form.ok_or_else(|| Form::small(chip).into())
    }

    fn small(chip: Geometry) -> store::Error {
        let what = "they can't hold four entries";
        store::Error::NodeSize { bytes: chip.page_bytes(), what }
    }
}

impl<'d> List<'d> {
    fn over(log: PageLog<'d>, window_bytes: u32, shape: EntryShape) -> Result<Self> {
        let chip = log.geometry();
        let form = Form::on(chip, shape)?;
        let window = Window::new(window_bytes);
        let buffer_bytes = Archive::memory_bytes(chip)
            + Window::memory_bytes(window_bytes, form.entry_bytes_most());
        Ok(List { archive: Archive::new(log, form), window, buffer_bytes })
    }

    /// Pages that an update does not take: a block for programs that are refused, and for puts one
    /// more, for deletes.
    fn kept_back(&self, deletes_only: bool) -> u32 {
        let blocks = if deletes_only { 1 } else { BLOCKS_KEPT_BACK };
        self.archive.log.geometry().pages_per_block() * blocks
    }

    fn check_room(&mut self, pages: u32, deletes_only: bool) -> Result<()> {
        if pages == 0 {
            return Ok(());
        }
        let free = self.archive.log.free_pages();
        let need = pages.saturating_add(self.kept_back(deletes_only));
        if free < need {
            let pages = u64::from(self.archive.log.usable_pages());
            return Err(store::Error::Full { pages }.into());
        }
        if free - need < self.archive.pages_to_move() {
            self.archive.leave_tail();
        }
        Ok(())
    }

    fn pages_for(&self, batch: &[Update<'_>]) -> u32 {
        let form = self.archive.form;
        let lengths = batch.iter().map(|update| match update {
            Update::Put { key, value } => form.bytes(key.len(), Some(value.len())),
            Update::PutStored { key, .. } | Update::Delete { key } => form.bytes(key.len(), None),
        });
        self.archive.pages_for(lengths)
    }

    /// Hands the newest value of `key` to `visit`; `None` if it is absent.
    fn visit<R>(&mut self, key: &[u8], visit: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let form = self.archive.form;
        let mut walk = self.archive.walk();
        loop {
            let page = walk.page;
            let Some(mut rest) = self.archive.step(&mut walk, Cause::Lookup)? else {
                return Ok(None);
            };
            while !rest.is_empty() {
                let (item, before) =
                    form.last(rest).map_err(|what| archive::damaged_at(page, what))?;
                if item.key == key {
                    return Ok(item.value.map(visit));
                }
                rest = before;
            }
        }
    }

    fn append_loaded(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let bytes = self.archive.form.bytes(key.len(), Some(value.len()));
        let pages = self.archive.pages_for(core::iter::once(bytes));
        self.check_room(pages, false)?;
        self.archive.append(Item { key, value: Some(value) }, Cause::Load)
    }

    fn load_sorted(&mut self, sorted: &mut dyn Cursor) -> Result<u64> {
        if self.archive.entries > 0 && Scan::new(self, KeyRange::ALL)?.next()?.is_some() {
            return Err(Error::NotEmpty);
        }
        let limits = self.archive.form.limits();
        limits.take_sorted(sorted, |key, value| self.append_loaded(key, value))
    }
}

impl Read for List<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        if !can_be(self.archive.form.limits().check_key(key))? {
            return Ok(None);
        }
        self.visit(key, |value| read_piece(value, offset, into))
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        Ok(Box::new(Scan::new(self, range)?))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        check::check(self, finding)
    }

    fn resume_after(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        // Every range reads every page, and the only way to a page leads over all newer ones.
        key.map_or(Ok(()), |key| self.archive.form.limits().check_key(key))?;
        Ok(Resume::End)
    }

    fn statistics(&self) -> Statistics {
        let log = &self.archive.log;
        let memory = store::Memory {
            buffers: self.buffer_bytes + log.buffer_bytes(),
            tables: log.table_bytes(),
            ..store::Memory::default()
        };
        Statistics {
            height: 0,
            live_pages: self.archive.pages,
            memory,
            memory_peak: memory.buffers + memory.tables,
        }
    }

    fn meter(&self) -> Option<&Meter> {
        self.archive.log.meter()
    }
}

impl Tree for List<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.archive.form.limits().check_batch(batch)?;
        let deletes_only = batch.iter().all(|update| matches!(update, Update::Delete { .. }));
        self.check_room(self.pages_for(batch), deletes_only)
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        let (key, value) = match *update {
            Update::Put { key, value } => (key, Some(value)),
            Update::Delete { key } => (key, None),
            Update::PutStored { .. } => return Err(store::Error::AdoptedTwice.into()),
        };
        self.archive.append(Item { key, value }, Cause::Update)
    }

    fn is_poisoned(&self) -> bool {
        // An entry is appended after all that can fail.
        false
    }

    fn load(&mut self, sorted: &mut dyn Cursor, _fill_percent: u8) -> Result<u64> {
        self.load_sorted(sorted)
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        Ok(self.archive.root_record())
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        self.archive.restore(root)
    }

    fn pin_savepoints(&mut self) -> Result<()> {
        self.archive.pin_savepoints()
    }

    fn entry_bytes_most(&self) -> usize {
        self.archive.form.entry_bytes_most()
    }

    fn pages_changed(&self, batch: &[Update<'_>]) -> u32 {
        let pages = self.pages_for(batch);
        if pages == 0 { 0 } else { pages + self.archive.pages_to_move() + self.kept_back(false) }
    }

    fn recovery(&self) -> &dyn Recovery {
        &self.archive.log
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        &mut self.archive.log
    }
}
