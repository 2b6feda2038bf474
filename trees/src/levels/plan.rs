//! How a tree divides its disk and its memory.
//!
//! ```text
//!  disk     | page file: heads, images, journal | pages of runs
//!  memory   | page file's cache | units of runs | what merges and ranges read and write | fixed
//! ```
//!
//! The head has room twice: after a merge the old one stands until a checkpoint. Where merges are
//! made in steps it has room three times, since one more is being merged; and half of what merges
//! and ranges read and write is such a merge's.

use device::SectorGeometry;
use store::runs::{CursorOptions, FileSpace, Kinds, Run, UnitReader, UnitShape};
use store::{Durability, EntryShape, PageFile, PageFileOptions, Width};

use super::Choices;
use super::head::codecs;
use crate::btree::Codecs;
use index::{Error, Footprint, MediumShape, Options, Result};

/// The size of the head, and of requests, where none is given.
const HEAD_BYTES: u64 = 512 << 10;
const UNIT_BYTES: u64 = 512 << 10;

/// The head takes at most this part of the disk, and at least so many pages.
const HEAD_PART: u64 = 16;
const HEAD_PAGES_LEAST: u64 = 8;

/// Where a smaller head does, the page file that it stands in takes at most this part of the disk.
const FRONT_PART: u64 = 2;

/// The journal takes at most this part of the disk, but so many bytes if asked for: it stands among
/// what names need, and a batch that is longer lasts by a checkpoint.
const JOURNAL_PART: u64 = 32;
const JOURNAL_BYTES_LEAST: u64 = 64 << 10;

/// Images and pages of a checkpoint's own, in the page file.
const OWN_PAGES: u64 = 16;

/// States of the head that have images. A name needs one of each page that comes to be in use, and
/// so two states; what a name needed that was forgotten stays while an older one is kept. With so
/// many, three names leave room for updates and for a few in their place.
const STATES: u64 = 16;

/// The part of its pages for whose images a page file in front of something always has room.
const ALWAYS_PART: u64 = 4;

/// The share of the memory left over that merges and ranges take: a quarter.
const WORK_PART: u64 = 4;

/// Bytes of an entry in a unit beside its key and value, at most.
const BESIDE: u64 = 5;

/// How a tree is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) choices: Choices,
    pub(super) shape: EntryShape,
    pub(super) page_bytes: u32,
    pub(super) sectors_per_page: u32,
    pub(super) codecs: Codecs,
    /// Sectors of the page file.
    pub(super) front: u64,
    /// Bytes of a request of a merge.
    pub(super) unit_bytes: u32,
    /// True if that was asked for.
    pub(super) is_unit_given: bool,
    /// The longest key, and the longest key with its value.
    pub(super) longest: (usize, usize),
    /// The most levels, and the most runs of fences above one run.
    pub(super) levels: u32,
    pub(super) stack: u32,
    pub(super) memory: Share,
    alignment: u32,
}

/// How the memory is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Bytes of the page file.
    pub(super) file: u64,
    /// Units of runs that are kept in memory.
    pub(super) units: u32,
    /// Bytes that merges and ranges take.
    pub(super) work: u64,
    /// Bytes that are always taken.
    pub(super) fixed: u64,
}

/// Bytes in a page.
pub(super) fn page_bytes(options: &Options, disk: SectorGeometry) -> Result<u32> {
    let sector = disk.sector_bytes();
    let bytes = options.settings.number("page").unwrap_or(sector.into());
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let fault = |what| Error::from(store::Error::NodeSize { bytes, what });
    if !(store::node::NODE_BYTES_LEAST..=store::node::NODE_BYTES_MOST).contains(&bytes) {
        return Err(fault("they must have 128 to 32768 bytes"));
    }
    if !bytes.is_multiple_of(sector) {
        return Err(fault("they must be a multiple of the device's page"));
    }
    Ok(bytes)
}

/// Pages of a head that is chosen for a disk with so many pages.
pub(super) fn head_pages(options: &Options, page_bytes: u32, pages: u64) -> u32 {
    let wanted = options.settings.number("head").unwrap_or(HEAD_BYTES);
    let most = (pages / HEAD_PART).max(HEAD_PAGES_LEAST);
    let head = (wanted / u64::from(page_bytes)).min(most).max(HEAD_PAGES_LEAST);
    u32::try_from(head).unwrap_or(u32::MAX)
}

/// The options of the page file: its journal is the part of the whole disk that it always is.
pub(super) fn file_options(
    options: &Options,
    disk: SectorGeometry,
    page_bytes: u32,
    (front, memory): (u64, u64),
) -> PageFileOptions {
    let mut file = options.page_file(page_bytes, memory);
    file.front = Some(front.ilog2() as u8);
    let journal = file.journal_bytes.get_or_insert((disk.bytes() / 64).min(4 << 20));
    *journal = (*journal).min((disk.bytes() / JOURNAL_PART).max(JOURNAL_BYTES_LEAST));
    file
}

/// Sectors of the page file on `disk` that a head of so many pages stands in, with images of so
/// many states of it: all but one of these are of named checkpoints.
fn front_sectors(
    disk: SectorGeometry,
    options: &Options,
    page_bytes: u32,
    choices: &Choices,
    states: u64,
) -> Result<u64> {
    // Those that a state has.
    let heads = choices.heads() * u64::from(choices.head_pages);
    let file = file_options(options, disk, page_bytes, (1, 0));
    let pages = heads + u64::from(choices.head_pages) + OWN_PAGES;
    let mut front = 2;
    loop {
        // Those that there is always room for count where there are the fewest.
        let sectors_per_page = u64::from(page_bytes / disk.sector_bytes()).max(1);
        let always = if states > 1 { 0 } else { front / sectors_per_page / ALWAYS_PART };
        let images = match file.durability {
            Durability::None => 0,
            _ => (states * (heads + OWN_PAGES)).saturating_sub(always),
        };
        if PageFile::sectors_least(disk, &file, pages, images)? <= front {
            return Ok(front);
        }
        front *= 2;
    }
}

/// Makes the head so small that it leaves most of `disk` to the runs, with room for some names;
/// sectors of its page file.
fn fit_head(
    disk: SectorGeometry,
    options: &Options,
    page_bytes: u32,
    choices: &mut Choices,
) -> Result<u64> {
    let least = HEAD_PAGES_LEAST as u32;
    loop {
        let of = |states| front_sectors(disk, options, page_bytes, choices, states);
        // A smallest head does with less: so a disk is used of which little is left otherwise.
        let is_least = choices.head_pages <= least;
        for part in [1, 2, 4, 8].into_iter().take(if is_least { 4 } else { 1 }) {
            let front = of(STATES / part)?;
            if front <= disk.sectors() / FRONT_PART {
                return Ok(front);
            }
        }
        if is_least {
            return of(1);
        }
        choices.head_pages = (choices.head_pages - choices.head_pages.div_ceil(8)).max(least);
    }
}

impl Plan {
    /// The plan of a tree on `disk`, which is made, or was `made` with these choices in a page file
    /// of so many sectors.
    pub(super) fn new(
        options: &Options,
        disk: SectorGeometry,
        choose: impl FnOnce(u32, u64) -> Result<Choices>,
        made: Option<(u32, Durability, u64)>,
    ) -> Result<Self> {
        let page = made.map_or_else(|| page_bytes(options, disk), |(bytes, ..)| Ok(bytes))?;
        let what = "they can't hold four entries";
        let codecs = codecs(page, options.shape);
        let codecs = codecs.ok_or(store::Error::NodeSize { bytes: page, what })?;
        let sectors_per_page = u64::from((page / disk.sector_bytes()).max(1));
        let mut choices = choose(page, disk.sectors() / sectors_per_page)?;
        let front = match made {
            Some((_, _, front)) => front,
            None => fit_head(disk, options, page, &mut choices)?,
        };
        let entry = codecs.leaf.entry_bytes_most() - 1;
        let longest = match (options.shape.key, options.shape.value) {
            (Width::Fixed(key), Width::Fixed(value)) => {
                (usize::from(key), usize::from(key) + usize::from(value))
            }
            (Width::Fixed(key), Width::Variable) => (usize::from(key), entry),
            (Width::Variable, Width::Fixed(value)) => {
                (codecs.key_bytes_most().min(entry - usize::from(value)), entry)
            }
            _ => (codecs.key_bytes_most().min(entry), entry),
        };
        let unit = options.settings.number("unit");
        let unit_bytes = unit.unwrap_or(UNIT_BYTES);
        let plan = Plan {
            choices,
            shape: options.shape,
            page_bytes: page,
            sectors_per_page: sectors_per_page as u32,
            codecs,
            front,
            unit_bytes: u32::try_from(unit_bytes).unwrap_or(u32::MAX).max(page),
            is_unit_given: unit.is_some(),
            longest,
            levels: 1,
            stack: 0,
            memory: Share::default(),
            alignment: disk.alignment(),
        };
        let pages = plan.pages_behind(disk);
        plan.with_pages(pages)
    }

    /// Pages of runs on `disk`.
    fn pages_behind(&self, disk: SectorGeometry) -> u32 {
        let sectors_per_page = u64::from((self.page_bytes / disk.sector_bytes()).max(1));
        let base = self.front.checked_next_multiple_of(sectors_per_page).unwrap_or(u64::MAX);
        let pages = disk.sectors().saturating_sub(base) / sectors_per_page;
        u32::try_from(pages).unwrap_or(u32::MAX - 1).min(u32::MAX - 1)
    }

    /// The sectors of the smallest disk like this one that has room for one entry; of the next
    /// larger one if this has none.
    fn sectors_least(&self) -> Result<u64> {
        let sectors_per_page = u64::from(self.sectors_per_page);
        let longest = (self.longest.0 as u64, self.longest.1 as u64);
        let units = self.units_most((1, longest.1), (0, false), longest);
        let one = self.pages_with_fences(units, longest);
        let need = |plan: &Self| plan.copies() * one + plan.kept_pages();
        // More pages may be more levels, which need more.
        let is_enough = need(self) <= self.choices.pages.into();
        let mut plan = if is_enough { self.with_pages(1)? } else { *self };
        while need(&plan) > plan.choices.pages.into() {
            plan = plan.with_pages(u32::try_from(need(&plan)).unwrap_or(u32::MAX))?;
        }
        let base = self.front.next_multiple_of(sectors_per_page);
        Ok(base + u64::from(plan.choices.pages) * sectors_per_page)
    }

    /// The plan with so many pages of runs.
    fn with_pages(mut self, pages: u32) -> Result<Self> {
        self.choices.pages = pages;
        self.levels = self.levels_for(pages.into());
        self.stack = self.stack_for(pages.into())?;
        Ok(self)
    }

    /// Units that a level may have.
    pub(super) fn capacity(&self, level: u8) -> u64 {
        let mut units = u64::from(self.choices.head_pages);
        for _ in 0..level {
            units = units.saturating_mul(u64::from(self.choices.ratio));
        }
        units
    }

    fn levels_for(&self, pages: u64) -> u32 {
        (1..63).find(|level| self.capacity(*level) >= pages).unwrap_or(63).into()
    }

    /// Runs of fences above a run of `units` units, at most.
    fn stack_for(&self, mut units: u64) -> Result<u32> {
        let fences = self.unit_shape(Kinds::Fences)?.capacity(self.longest.0, 4).max(2) as u64;
        let mut height = 0;
        while units > 1 {
            units = units.div_ceil(fences);
            height += 1;
        }
        Ok(height)
    }

    /// How units of runs with such entries are made.
    pub(super) fn unit_shape(&self, kinds: Kinds) -> Result<UnitShape> {
        Ok(UnitShape::new(self.page_bytes, self.shape, kinds)?)
    }

    /// Units that entries of so many bytes, and fences as far as `has_fences`, take at most; of
    /// those that there are none is longer than `longest`.
    pub(super) fn units_most(
        &self,
        (entries, bytes): (u64, u64),
        (fences, leads): (u64, bool),
        longest: (u64, u64),
    ) -> u64 {
        // What is counted may be damaged: then there is no room for it.
        let all = entries.saturating_add(fences);
        if all == 0 {
            return 0;
        }
        let room = u64::from(self.page_bytes) - 6;
        if let (Width::Fixed(key), Width::Fixed(value)) = (self.shape.key, self.shape.value) {
            let bits = 8 * (u64::from(key) + u64::from(value.max(4))) + 2;
            let each = (room * 8 / bits).saturating_sub(1 + u64::from(leads)).max(1);
            return all.div_ceil(each);
        }
        let fence = longest.0 + 4 + BESIDE;
        let entries = entries.saturating_mul(BESIDE).saturating_add(bytes);
        let total = fences.saturating_mul(fence).saturating_add(entries);
        let ends = longest.1 + BESIDE + if leads { fence } else { 0 };
        total.div_ceil(room.saturating_sub(ends).max(1))
    }

    /// Pages of a run of `units` units, and of the runs of fences above it.
    pub(super) fn pages_with_fences(&self, units: u64, longest: (u64, u64)) -> u64 {
        let mut units = units;
        let mut pages = 0;
        while units > 0 {
            pages = units.saturating_add(self.footer_units()).saturating_add(pages);
            if units == 1 {
                break;
            }
            units = self.units_most((0, 0), (units, false), longest).min(units - 1);
        }
        pages
    }

    /// Units of the runs of fences above a run of `units` units, with keys of up to `longest`
    /// bytes.
    pub(super) fn units_above(&self, mut units: u64, longest: u64) -> u64 {
        let mut above = 0;
        while units > 1 {
            units = self.units_most((0, 0), (units, false), (longest, longest)).min(units - 1);
            above += units;
        }
        above
    }

    /// Units of a run's footer.
    pub(super) fn footer_units(&self) -> u64 {
        (128 + 2 * self.longest.0 as u64).div_ceil(u64::from(self.page_bytes) - 16) + 1
    }

    /// Bytes of a buffer of so many, with what aligns it.
    const fn aligned(&self, bytes: u64) -> u64 {
        bytes + self.alignment as u64
    }

    /// Divides the memory of `options` for a page file on a disk like `front`.
    pub(super) fn divide(&mut self, options: &Options, front: SectorGeometry) -> Result<()> {
        let durability = options.durability.unwrap_or_default();
        let least = self.least(front, durability)?;
        let need = least.file + self.unit_memory(1) + least.work + least.fixed;
        let have = options.memory_bytes;
        let rest = have.checked_sub(need).ok_or(store::Error::LittleMemory { have, need })?;
        let page = self.aligned(u64::from(self.page_bytes));
        // As many pieces as a merge has at most, and each a whole request.
        let pieces = u64::from(self.levels) + 2;
        let work_most = pieces * self.shares() * self.aligned(u64::from(self.unit_bytes));
        let work = (rest / WORK_PART).min(work_most.saturating_sub(least.work));
        let cached = rest - work;
        // Heads stay in memory if half of the rest is enough for them.
        let head = self.choices.heads() * u64::from(self.choices.head_pages) * (page + 64);
        let file = (cached / 2).min(head);
        let mut units = ((cached - file) / page).min(u64::from(u32::MAX) - 1) as u32 + 1;
        while units > 1 && self.unit_memory(units) > self.unit_memory(1) + cached - file {
            units -= (units / 64).max(1).min(units - 1);
        }
        let units = units.min(self.choices.pages.max(1));
        self.memory =
            Share { file: least.file + file, units, work: least.work + work, fixed: least.fixed };
        Ok(())
    }

    /// The least that works.
    fn least(&self, front: SectorGeometry, durability: Durability) -> Result<Share> {
        let page = self.aligned(u64::from(self.page_bytes));
        let pieces = 2 * u64::from(self.levels) + 3 + u64::from(self.stack);
        Ok(Share {
            file: PageFile::least_memory(front, self.page_bytes, durability)?,
            units: 1,
            work: pieces * self.shares() * page,
            fixed: self.fixed(),
        })
    }

    /// The scratch node, keys and values on their way, and what is known of runs: those that there
    /// are, and as many that wait for a checkpoint.
    fn fixed(&self) -> u64 {
        // A merge that is made in steps knows its own.
        let runs = (1 + self.shares()) * (2 * u64::from(self.levels) + u64::from(self.stack)) + 4;
        let run = (size_of::<Run>() + 64) as u64 + 2 * self.longest.0 as u64;
        let entries = 10 * self.shares() * self.codecs.leaf.entry_bytes_most() as u64;
        u64::from(self.page_bytes) + entries + runs * run
    }

    /// Bytes of a reader of so many units.
    pub(super) fn unit_memory(&self, units: u32) -> u64 {
        UnitReader::memory_of(self.page_bytes, units, (0, self.alignment))
    }

    /// How many share the memory of merges and ranges: both may be under way.
    const fn shares(&self) -> u64 {
        self.choices.heads()
    }

    /// Bytes of a buffer where a merge or a range has so many that share what there is, beside
    /// `single` of one page.
    pub(super) fn buffer_bytes(&self, shared: usize, single: u32) -> u32 {
        let page = u64::from(self.page_bytes);
        let work = self.memory.work / self.shares();
        let left = work.saturating_sub(u64::from(single) * self.aligned(page));
        let each = (left / (shared as u64).max(1)).saturating_sub(self.alignment.into());
        let pages = each.min(u64::from(self.unit_bytes)) / page;
        (pages.max(1) * page) as u32
    }

    /// How a cursor reads that shares the memory with so many.
    pub(super) fn cursor(&self, bytes: u32, is_whole: bool, cause: device::Cause) -> CursorOptions {
        CursorOptions {
            window_bytes: bytes as usize,
            request_bytes: self.unit_bytes as usize,
            record_bytes_most: 2 * self.page_bytes as usize,
            is_whole,
            cause,
        }
    }

    /// What an index needs with nothing in it.
    pub(super) fn footprint(&self, options: &Options, disk: SectorGeometry) -> Result<Footprint> {
        let durability = options.durability.unwrap_or_default();
        let front = disk.with_sectors(self.front)?;
        let least = self.least(front, durability)?;
        let (_, tables) = PageFile::pages_and_tables(front, self.page_bytes, durability)?;
        Ok(Footprint {
            memory_least: least.file + self.unit_memory(1) + least.work + least.fixed,
            tables,
            units_least: self.sectors_least()?,
        })
    }

    /// Refuses a disk that is too small for what is to be made.
    pub(super) fn check_sectors(
        disk: SectorGeometry,
        footprint: impl Fn(MediumShape) -> Result<Footprint>,
    ) -> Result<()> {
        MediumShape::Sectors(disk).check_units(disk.sectors(), footprint)
    }
}

/// A space's own tables are counted among those of runs.
pub(super) fn tables_of(space: &FileSpace<'_>) -> u64 {
    store::runs::Space::memory(space)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::Plan;
    use crate::levels::Choices;
    use device::SectorGeometry;
    use index::parameters::Settings;
    use index::{EntryShape, Options};

    fn plan(shape: EntryShape, front: u64) -> Plan {
        let settings = Settings::parse("fd-tree", &[], []).unwrap();
        let options = Options::new(shape, 1 << 20, settings);
        let choices = Choices { pages: 100, head_pages: 4, ratio: 8, is_deamortized: false };
        let disk = SectorGeometry::new(512, 4096).unwrap();
        let made = Some((2048, store::Durability::Batch, front));
        Plan::new(&options, disk, |_, _| Ok(choices), made).unwrap()
    }

    /// Damage may count any number of entries and bytes.
    #[test]
    fn entries_without_number_take_units_without_number() {
        for shape in [EntryShape::VARIABLE, EntryShape::fixed(8, 8)] {
            let most = (u64::MAX, u64::MAX);
            let units = plan(shape, 64).units_most(most, (u64::MAX, true), (64, 128));
            assert!(units > u64::from(u32::MAX), "{units}");
        }
    }

    #[test]
    fn a_front_longer_than_the_disk_leaves_no_pages() {
        assert_eq!(plan(EntryShape::VARIABLE, u64::MAX).choices.pages, 0);
        assert_eq!(plan(EntryShape::VARIABLE, 64).choices.pages, (4096 - 64) / 4);
    }
}
