//! Trees of sorted runs: a small B+-tree in place, the head, above runs of growing sizes.
//!
//! `fd-tree` and `lsm` are this engine. What is put or deleted goes to the head. A full head is
//! merged into the first level that has room for it and all levels above it, in one pass
//! ([`cascade`]): entries of one key meet there and the newest stays, and a delete goes when it
//! comes to the last level. In a [`Form::Cascading`] tree a level's runs have fences that lead into
//! the next level, so a lookup reads one page a level; in a [`Form::Forest`] each run has fences of
//! its own above it, as a B+-tree has inner nodes.
//!
//! # Where what is
//! - The head stands in a page file at the front of the disk, rewritten in place, with images and a
//!   journal as the pages of all trees have them.
//! - Runs stand behind it, out of place. Which there are, the root record tells: a merge lasts by
//!   the next checkpoint, and a replay makes it again. No run is named in the journal.
//!
//! # Invariants
//! - Above the first component of a cascading tree, and above each of a forest, stand runs of
//!   fences, until one has a single unit: a search begins there.
//! - Each unit of a run that has a level below begins with a fence. What lies between a fence and
//!   the next one is in the unit that the fence names.
//! - Deletes stand in no last level.
//! - There is always room for a merge of all that there is: see [`room`].

mod cascade;
mod check;
mod cost;
mod head;
mod load;
mod model;
mod plan;
mod predict;
mod resume;
mod room;
mod root;
mod scan;
mod stepped;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;

use device::{Cause, DiskCosts, Medium, Meter, Sectors};
use index::bounds::{entry_size, key_size};
use index::parameters::{self, Parameter};
use index::{
    Cursor, DeletePolicy, Durable, Error, Footprint, Index, KeyRange, MediumShape, Options, Read,
    Result, Resume, Statistics, Tree, TreeDescriptor, read_piece,
};
use store::runs::{FileSpace, Kind, Manifest, Run, RunId, Space, UnitReader};
use store::{Durability, EntryShape, PageFile, Recovery, Update, Width};

use crate::btree::At;
use cascade::Merging;
use head::{Head, HeadState, HeadStore};
use plan::Plan;
use predict::predict;
use room::{More, Room};
use root::Root;
use stepped::FullHead;

/// The parameters of trees of this kind.
const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "ratio",
        about: "how many times as large a level is as the one above it",
        kind: parameters::Kind::WordOrCount(&["auto"], 1 << 16),
        default: "auto",
    },
    Parameter {
        name: "levels",
        about: "levels, the head among them, that hold `entries`: they decide on the ratio",
        kind: parameters::Kind::WordOrCount(&["auto"], 63),
        default: "auto",
    },
    Parameter {
        name: "entries",
        about: "entries that the ratio is chosen for; half of what the device holds if absent",
        kind: parameters::Kind::Count(1, u64::MAX),
        default: "",
    },
    Parameter {
        name: "searches",
        about: "percent of the operations that are searches, for which the ratio is chosen",
        kind: parameters::Kind::Percent(0),
        default: "50",
    },
    Parameter {
        name: "head",
        about: "bytes of the head, at most a part of the device; 512KiB where none are given",
        kind: parameters::Kind::Bytes,
        default: "",
    },
    Parameter {
        name: "unit",
        about: "bytes of a request of a merge, as far as memory goes; 512KiB where none are given, \
                and a part of an update's share of a deamortized merge",
        kind: parameters::Kind::Bytes,
        default: "",
    },
    Parameter {
        name: "page",
        about: "bytes in a page of a run and in a node of the head: a multiple of the device's",
        kind: parameters::Kind::Bytes,
        default: "",
    },
    Parameter {
        name: "deamortized",
        about: "each update does its share of a merge, while a second head takes updates",
        kind: parameters::Kind::Word(&["off", "on"]),
        default: "off",
    },
];

/// What leads from one run to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Fences in each level, into the next one.
    Cascading,
    /// Nothing: each run is a tree of its own.
    Forest,
}

/// A tree that stands on this engine.
#[derive(Clone, Copy)]
struct Kindred {
    name: &'static str,
    form: Form,
}

const CASCADING: Kindred = Kindred { name: "fd-tree", form: Form::Cascading };
const FOREST: Kindred = Kindred { name: "lsm", form: Form::Forest };

const fn kindred(is_cascading: bool) -> Kindred {
    if is_cascading { CASCADING } else { FOREST }
}

/// The registry's line of a tree with fences from level to level, or of a forest.
pub(crate) const fn descriptor<const IS_CASCADING: bool>(
    about: &'static str,
    paper: &'static str,
) -> TreeDescriptor {
    TreeDescriptor {
        name: kindred(IS_CASCADING).name,
        about,
        paper,
        nand: false,
        sectors: true,
        deletes: |_| DeletePolicy::Append,
        tables_part: |_| 0,
        long_values: false,
        parameters: PARAMETERS,
        create: create::<IS_CASCADING>,
        open: open::<IS_CASCADING>,
        footprint: |options, medium| footprint(&kindred(IS_CASCADING), options, medium),
        predict: |profile, options, medium| {
            predict(&kindred(IS_CASCADING), profile, options, medium)
        },
    }
}

/// What a ratio is chosen for.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// Entries of a page.
    pub(crate) entries_a_page: u32,
    /// Pages of the head, and of the disk.
    pub(crate) head_pages: u32,
    pub(crate) pages: u64,
    pub(crate) page_bytes: u32,
    pub(crate) unit_bytes: u32,
    /// What the disk's requests cost, if it tells.
    pub(crate) costs: Option<DiskCosts>,
}

/// The smallest ratio that is chosen: by it the memory is bounded that levels may need.
const RATIO_LEAST: u32 = 4;

/// The choices that a tree was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choices {
    /// Pages of runs that the disk has.
    pub(crate) pages: u32,
    /// Pages of the head.
    pub(crate) head_pages: u32,
    /// How many times as large a level is as the one above it.
    pub(crate) ratio: u32,
    /// True if each update does its share of a merge.
    pub(crate) is_deamortized: bool,
}

impl Choices {
    /// Heads with entries that there may be.
    const fn heads(&self) -> u64 {
        if self.is_deamortized { 2 } else { 1 }
    }
}

/// A run of entries, and the runs of fences above it, the topmost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Component {
    pub(crate) level: u8,
    pub(crate) run: RunId,
    pub(crate) stack: Vec<RunId>,
}

/// What it did since it was opened.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Merges begun, and made.
    begun: u64,
    merges: u64,
    units_read: u64,
    units_written: u64,
    /// Entries that merges wrote, and deletes that met an older version of their key.
    entries: u64,
    filters_met: u64,
    /// Merges by the level that they ended in.
    into_level: [u64; MERGES_INTO.len()],
}

const MERGES_INTO: [&str; 5] = [
    "merges into level 1",
    "merges into level 2",
    "merges into level 3",
    "merges into level 4",
    "merges into deeper levels",
];

/// A tree of sorted runs.
pub(crate) struct Levels<'d> {
    kindred: Kindred,
    plan: Plan,
    store: HeadStore<'d>,
    head: Head,
    /// A full head that is being merged, and what merges it.
    full: Option<FullHead>,
    merging: Option<Merging>,
    manifest: Manifest,
    /// The newest first; the last one is the last level.
    components: Vec<Component>,
    reader: UnitReader,
    /// The longest key, and the longest key with its value, that there ever was.
    longest: (u64, u64),
    room: Room,
    counts: Counts,
    is_poisoned: bool,
}

const WRONG: Error = Error::Store(store::Error::NotAnIndex {
    is_ours: true,
    what: "its root record names a run that there is not",
});

fn disk_of<'d>(medium: Medium<'d>, tree: &'static str) -> Result<Box<dyn Sectors + 'd>> {
    match medium {
        Medium::Sectors(disk) => Ok(disk),
        Medium::Nand(_) => Err(Error::WrongMedium { tree, medium: "raw flash" }),
    }
}

/// The choices for a disk of `pages` pages of `page_bytes` bytes, with the smallest ratio if none
/// is given.
fn choices(options: &Options, page_bytes: u32, pages: u64) -> Choices {
    let head_pages = plan::head_pages(options, page_bytes, pages);
    let ratio = options.settings.number("ratio").map_or(RATIO_LEAST, |ratio| ratio as u32);
    let is_deamortized = options.settings.word("deamortized") == Some("on");
    Choices { pages: 0, head_pages, ratio: ratio.max(2), is_deamortized }
}

/// The ratio that is chosen where none is given.
fn ratio(options: &Options, plan: &Plan, costs: Option<DiskCosts>) -> u32 {
    if options.settings.number("ratio").is_some() {
        return plan.choices.ratio;
    }
    let bytes = |width| usize::from(index::random_keys::average_bytes(width));
    let EntryShape { key, value } = options.shape;
    let wanted = Wanted {
        entries_a_page: plan.codecs.leaf.capacity(bytes(key), bytes(value) + 1) as u32,
        head_pages: plan.choices.head_pages,
        pages: plan.choices.pages.into(),
        page_bytes: plan.page_bytes,
        unit_bytes: plan.unit_bytes,
        costs,
    };
    cost::ratio(options, &wanted).max(RATIO_LEAST)
}

fn footprint(kindred: &Kindred, options: &Options, medium: MediumShape) -> Result<Footprint> {
    let MediumShape::Sectors(disk) = medium else {
        return Err(Error::WrongMedium { tree: kindred.name, medium: "raw flash" });
    };
    let chosen = |page, pages| Ok(choices(options, page, pages));
    Plan::new(options, disk, chosen, None)?.footprint(options, disk)
}

fn create<'d, const IS_CASCADING: bool>(
    medium: Medium<'d>,
    options: &Options,
) -> Result<Box<dyn Index + 'd>> {
    let kindred = kindred(IS_CASCADING);
    let disk = disk_of(medium, kindred.name)?;
    let geometry = disk.geometry();
    let chosen = |page, pages| Ok(choices(options, page, pages));
    let mut plan = Plan::new(options, geometry, chosen, None)?;
    Plan::check_sectors(geometry, |like| footprint(&kindred, options, like))?;
    plan.divide(options, geometry.with_sectors(plan.front)?)?;
    plan.choices.ratio = ratio(options, &plan, disk.costs());
    let file =
        plan::file_options(options, geometry, plan.page_bytes, (plan.front, plan.memory.file));
    let space = FileSpace::create(disk, plan.page_bytes, &file)?;
    let mut store = HeadStore::new(space, plan.codecs);
    let root = crate::btree::NodeStore::create(&mut store, 0, Cause::Load)?;
    let tree = Levels::over(kindred, plan, store, At::leaf(root))?;
    Ok(Box::new(Durable::create(tree)?))
}

fn open<'d, const IS_CASCADING: bool>(
    medium: Medium<'d>,
    options: &Options,
) -> Result<Box<dyn Index + 'd>> {
    let kindred = kindred(IS_CASCADING);
    let mut disk = disk_of(medium, kindred.name)?;
    let geometry = disk.geometry();
    let found = PageFile::describe(&mut *disk)?;
    let front = 1u64 << found.front.ok_or(WRONG)?.min(63);
    let (shape, choices) = Root::choices(&found.root_head, kindred.name)?;
    if u64::from(choices.head_pages) > front {
        return Err(WRONG);
    }
    let options = Options { shape, durability: Some(found.durability), ..options.clone() };
    let made = Some((found.page_bytes, found.durability, front));
    let mut plan = Plan::new(&options, geometry, |_, _| Ok(choices), made)?;
    if plan.choices.pages != choices.pages {
        let (expected, found) = (choices.pages.into(), plan.choices.pages.into());
        return Err(store::Error::OtherLength { expected, found }.into());
    }
    plan.divide(&options, geometry.with_sectors(front)?)?;
    let file =
        plan::file_options(&options, geometry, plan.page_bytes, (plan.front, plan.memory.file));
    let (space, record) = FileSpace::open(disk, plan.page_bytes, &file)?;
    let store = HeadStore::new(space, plan.codecs);
    let mut tree = Levels::over(kindred, plan, store, At::leaf(store::LogicalPage(0)))?;
    tree.restore(&record)?;
    drop(record);
    Ok(Box::new(Durable::open(tree)?))
}

impl<'d> Levels<'d> {
    fn over(
        kindred: Kindred,
        plan: Plan,
        store: HeadStore<'d>,
        root: At<store::LogicalPage>,
    ) -> Result<Self> {
        let units = plan.memory.units;
        store::check_memory(plan.unit_memory(units))?;
        let alignment = store.file.alignment();
        let most = 2 * plan.page_bytes as usize;
        Ok(Levels {
            kindred,
            head: Head::new(root, plan.codecs, plan.longest.1),
            full: None,
            merging: None,
            manifest: Manifest::new(),
            components: Vec::new(),
            reader: UnitReader::new(plan.page_bytes, units, (0, alignment), most),
            longest: (0, 0),
            room: Room::default(),
            counts: Counts::default(),
            is_poisoned: false,
            plan,
            store,
        })
    }

    fn run(&self, id: RunId) -> Result<&Run> {
        self.manifest.run(id).ok_or(WRONG)
    }

    fn durability(&self) -> Durability {
        self.store.file.recovery().durability()
    }

    fn check_key(&self, key: &[u8]) -> Result<()> {
        match self.plan.shape.key {
            Width::Fixed(bytes) if key.len() != usize::from(bytes) => {
                Err(Error::KeyLength { expected: bytes.into(), found: key.len() as u64 })
            }
            _ => Ok(()),
        }
    }

    /// Refuses an update that the tree can't make.
    fn check_update(&self, update: &Update<'_>) -> Result<()> {
        let key = update.key();
        self.check_key(key)?;
        key_size(key.len(), self.plan.longest.0)?;
        match update {
            Update::Put { value, .. } => self.check_entry(key, value.len()),
            Update::PutStored { .. } => Err(store::Error::AdoptedTwice.into()),
            Update::Delete { .. } => Ok(()),
        }
    }

    /// Refuses an entry that the tree can't hold.
    fn check_entry(&self, key: &[u8], value: usize) -> Result<()> {
        self.check_key(key)?;
        key_size(key.len(), self.plan.longest.0)?;
        match self.plan.shape.value {
            Width::Fixed(bytes) if usize::from(bytes) != value => {
                Err(Error::ValueLength { expected: bytes.into(), found: value as u64 })
            }
            _ => entry_size(key.len() + value, self.plan.longest.1),
        }
    }

    /// Notes how long keys and entries get: units have to have room for them.
    fn note_longest(&mut self, key: usize, entry: usize) {
        self.longest = (self.longest.0.max(key as u64), self.longest.1.max(entry as u64));
    }

    /// Looks for `key` in the runs.
    fn get_in_runs(&mut self, key: &[u8], (offset, into): (u32, &mut [u8])) -> Result<Option<u32>> {
        let Levels { store, reader, manifest, components, kindred, .. } = self;
        let space = &mut store.file;
        let mut unit = Some(0);
        for (place, component) in components.iter().enumerate() {
            if place == 0 || kindred.form == Form::Forest {
                unit = Some(0);
                for id in &component.stack {
                    let Some(at) = unit else { break };
                    let run = manifest.run(*id).ok_or(WRONG)?;
                    let (_, fences) = reader.unit(space, run, at, Cause::Lookup)?;
                    unit = fences.fence(key).and_then(|fence| fence.unit());
                }
            }
            let run = manifest.run(component.run).ok_or(WRONG)?;
            let at = match unit {
                Some(at) => at,
                // No fence leads to a run of one unit where the run above has larger keys only.
                None if run.units == 1 => 0,
                // It lies below all that this run has, and so below all that its fences lead to.
                None => continue,
            };
            let (_, entries) = reader.unit(space, run, at, Cause::Lookup)?;
            if let Some(entry) = entries.get(key) {
                let is_put = entry.kind == Kind::Put;
                return Ok(is_put.then(|| read_piece(entry.value, offset, into)));
            }
            if kindred.form == Form::Cascading {
                unit = entries.fence(key).and_then(|fence| fence.unit());
            }
        }
        Ok(None)
    }

    /// Makes a change in the head; a full one is merged first, or begun to be.
    fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if self.is_head_full() {
            self.merge_head()?;
        } else {
            self.merge_share()?;
        }
        match value {
            Some(value) => self.note_longest(key.len(), key.len() + value.len()),
            // No key is as long: it is not there, and must not make units count as longer.
            None if key.len() as u64 > self.longest.0 => return Ok(()),
            None => {}
        }
        self.head.put(&mut self.store, key, value)
    }

    fn statistics_of_memory(&self) -> store::Memory {
        let mut memory = self.store.file.file().memory();
        memory.cache += self.reader.memory();
        // What is known of runs beyond what is always held for it.
        let known = self.manifest.memory() + plan::tables_of(&self.store.file);
        let more = known.saturating_sub(self.plan.memory.fixed);
        memory.buffers += self.plan.memory.fixed + self.plan.memory.work;
        memory.tables += more;
        memory
    }
}

impl Read for Levels<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        self.check_key(key)?;
        if let Some((kind, value)) = self.head.get(&mut self.store, key)? {
            return Ok((kind == Kind::Put).then(|| read_piece(value, offset, into)));
        }
        if let Some(full) = &self.full
            && let Some((kind, value)) = full.head.get(&mut self.store, key)?
        {
            return Ok((kind == Kind::Put).then(|| read_piece(value, offset, into)));
        }
        self.get_in_runs(key, (offset, into))
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        for bound in [range.from, range.to] {
            if let core::ops::Bound::Included(key) | core::ops::Bound::Excluded(key) = bound {
                self.check_key(key)?;
            }
        }
        Ok(Box::new(self.scan(range)?))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        self.check_all(finding)
    }

    fn resume_after(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        key.map_or(Ok(()), |key| self.check_key(key))?;
        self.behind_damage(key)
    }

    fn statistics(&self) -> Statistics {
        let memory = self.statistics_of_memory();
        let file = self.store.file.file();
        let (live, _) = self.manifest.pages();
        let runs = self.components.iter().map(|component| 1 + component.stack.len());
        let sectors = u64::from(self.plan.sectors_per_page);
        Statistics {
            height: self.heads().map(|head| u32::from(head.btree.height())).sum::<u32>()
                + runs.sum::<usize>() as u32,
            live_pages: file.sectors_used() + live * sectors,
            memory,
            memory_peak: memory.cache + memory.buffers + memory.tables,
        }
    }

    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell("merges", self.counts.merges);
        tell(index::MERGES_BROKEN_OFF, self.counts.begun - self.counts.merges);
        tell("units read by merges", self.counts.units_read);
        tell("units written by merges", self.counts.units_written);
        tell("entries written by merges", self.counts.entries);
        tell("deletes that met an older version in merges", self.counts.filters_met);
        for (name, count) in MERGES_INTO.into_iter().zip(self.counts.into_level) {
            tell(name, count);
        }
        tell("levels", self.components.len() as u64);
    }

    fn meter(&self) -> Option<&Meter> {
        self.store.file.file().meter()
    }
}

impl Tree for Levels<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        for update in batch {
            self.check_update(update)?;
        }
        self.admit_room(batch)
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        // Nobody admitted what a damaged journal holds.
        self.check_update(update)?;
        match update {
            Update::Put { key, value } => self.change(key, Some(value)),
            Update::Delete { key } => self.change(key, None),
            Update::PutStored { .. } => Err(store::Error::AdoptedTwice.into()),
        }
    }

    fn apply_step(&mut self, update: &Update<'_>) -> Result<bool> {
        // Before the next merge begins, a checkpoint may have to free what the last one read.
        if self.is_head_full() && self.end_merge()? {
            return Ok(false);
        }
        self.apply(update).map(|()| true)
    }

    fn wants_room(&self) -> bool {
        let begins = self.is_head_full() && self.full.is_none();
        self.durability().has_journal() && begins && self.lacks_checkpoint()
    }

    fn waits_for_checkpoint(&self) -> bool {
        self.room.is_waiting()
    }

    fn checkpointed(&mut self) -> Result<()> {
        self.manifest.checkpointed(&mut self.store.file)?;
        self.recount();
        Ok(())
    }

    fn closed(&mut self) -> Result<()> {
        Ok(self.store.file.shorten()?)
    }

    fn is_drained(&self) -> bool {
        self.full.is_none() && self.head.btree.entries == 0 && self.components.len() < 2
    }

    fn drain(&mut self) -> Result<bool> {
        let is_ended = self.end_merge()?;
        if self.pages_free() < self.whole(&More::default()) {
            return Ok(is_ended);
        }
        self.cascade(true).map(|()| true)
    }

    fn is_poisoned(&self) -> bool {
        self.is_poisoned || self.head.btree.is_poisoned
    }

    fn load(&mut self, sorted: &mut dyn Cursor, _: u8) -> Result<u64> {
        self.load_sorted(sorted)
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        self.store.file.file_mut().write_back_all()?;
        let root = Root {
            shape: self.plan.shape,
            choices: self.plan.choices,
            head: self.head.state(),
            full: self.full.as_ref().map(|full| (full.head.state(), full.pages)),
            longest: (self.longest.0 as u32, self.longest.1 as u32),
            components: self.components.clone(),
        };
        let mut record = root.encode(self.kindred.name);
        self.manifest.encode(&mut record);
        Ok(record)
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        let (root, manifest) = Root::decode(root, self.kindred.name)?;
        let file = self.store.file.file();
        let what = "its root record names no page";
        let is_named = |head: &HeadState| head.root.id.0 < file.pages_used().1;
        let mut heads = core::iter::once(&root.head).chain(root.full.iter().map(|full| &full.0));
        if !heads.all(|head| is_named(head) && head.root.level < 32) {
            return Err(store::Error::NotAnIndex { is_ours: true, what }.into());
        }
        let (longest, most) = (root.longest, self.plan.longest);
        if longest.0 as usize > most.0 || longest.1 as usize > most.1 {
            return Err(WRONG);
        }
        // What it was writing is among what is not claimed.
        self.merging = None;
        self.store.file.begin_claims();
        let (manifest, rest) = Manifest::restore(&mut self.store.file, manifest)?;
        self.store.file.end_claims()?;
        if !rest.is_empty() {
            return Err(WRONG);
        }
        self.manifest = manifest;
        self.reader.clear();
        self.components = root.components;
        for component in &self.components {
            for id in component.stack.iter().chain([&component.run]) {
                self.run(*id)?;
            }
        }
        self.head = self.head_of(&root.head);
        self.full = root.full.map(|(state, pages)| FullHead { head: self.head_of(&state), pages });
        self.is_poisoned = false;
        self.longest = (longest.0.into(), longest.1.into());
        self.pin_savepoints()
    }

    fn admit_savepoint(&mut self) -> Result<()> {
        self.admit_name()
    }

    fn pin_savepoints(&mut self) -> Result<()> {
        let kept = self.store.file.recovery().checkpoints().to_vec();
        self.manifest.pin_checkpoints(&kept);
        self.manifest.release(&mut self.store.file)?;
        self.recount();
        Ok(())
    }

    fn entry_bytes_most(&self) -> usize {
        self.plan.longest.1
    }

    fn pages_changed(&self, batch: &[Update<'_>]) -> u32 {
        let each = (batch.len() as u64).saturating_mul(self.head.changes_of_one().into());
        let merges = u32::from(self.may_merge(batch)) + u32::from(self.full.is_some());
        let merges = u64::from(merges) * u64::from(self.changes_of_merge());
        u32::try_from(each + merges).unwrap_or(u32::MAX)
    }

    fn checkpoints_within(&self) -> bool {
        true
    }

    fn recovery(&self) -> &dyn Recovery {
        self.store.file.recovery()
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        self.store.file.recovery_mut()
    }
}
