//! Making and opening a page file.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Sectors};

use super::free_list::FreeList;
use super::front::{Front, front_of};
use super::guarded::Guarded;
use super::journal::Journal;
use super::kept::Checkpoints;
use super::layout::Layout;
use super::shortening::Shortening;
use super::state::CheckpointState;
use super::superblock::{LABEL_BYTES_MOST, Place, State, Superblock};
use super::undo::Undo;
use super::{FRAMES_LEAST, PageFile};
use crate::cache::Cache;
#[cfg(feature = "canaries")]
use crate::canary::Canary;
use crate::canary::Mistake;
use crate::{Durability, Error, Result, check_memory};

/// What is chosen when a page file is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFileOptions {
    /// Bytes in a page: a multiple or a whole fraction of a sector.
    pub page_bytes: u32,
    /// Memory for the cache and the buffers of the page file together, in bytes.
    pub memory_bytes: u64,
    /// How much lasts through a power cut.
    pub durability: Durability,
    /// Bytes of the journal; `None` for one that suits the disk.
    pub journal_bytes: Option<u64>,
    /// Whether the journal of durability batch writes each record before it returns, unflushed: for
    /// disks that keep what the end of the process would lose.
    pub journal_through: bool,
    /// Bytes of the user's own, at most 64.
    pub label: Vec<u8>,
    /// A number that other page files don't have: pages of theirs are refused.
    pub identity: u64,
    /// If it is to take only the first sectors, with something else behind: the power of two that
    /// they are, at least 1. It does not grow then.
    pub front: Option<u8>,
    /// A mistake to be made.
    #[cfg(feature = "canaries")]
    pub canary: Option<Canary>,
}

impl PageFileOptions {
    /// Pages of `page_bytes` bytes in so much memory, and nothing lasts that was not closed.
    #[must_use]
    pub const fn new(page_bytes: u32, memory_bytes: u64) -> Self {
        PageFileOptions {
            page_bytes,
            memory_bytes,
            durability: Durability::None,
            journal_bytes: None,
            journal_through: false,
            label: Vec::new(),
            identity: 0,
            front: None,
            #[cfg(feature = "canaries")]
            canary: None,
        }
    }

    fn mistake(&self) -> Mistake {
        #[cfg(feature = "canaries")]
        return Mistake::new(self.canary);
        #[cfg(not(feature = "canaries"))]
        Mistake::default()
    }
}

/// What a page file says of itself before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFileDescription {
    /// Bytes in a page.
    pub page_bytes: u32,
    /// How much lasts through a power cut.
    pub durability: Durability,
    /// Bytes of the user's own.
    pub label: Vec<u8>,
    /// The power of two of its sectors, if something else stands behind it.
    pub front: Option<u8>,
    /// The first bytes of the root record, at most 64.
    pub root_head: Vec<u8>,
}

impl<'d> PageFile<'d> {
    /// The least memory for pages of `page_bytes` over `disk`, in bytes.
    ///
    /// # Errors
    /// [`Error::NodeSize`] if the disk can't have such pages.
    pub fn least_memory(
        disk: device::SectorGeometry,
        page_bytes: u32,
        durability: Durability,
    ) -> Result<u64> {
        Layout::of_any(disk, page_bytes, 0)?;
        let cache = Cache::bytes_for(FRAMES_LEAST, page_bytes, disk.alignment());
        Ok(cache + Self::buffer_bytes(disk, durability))
    }

    /// The most pages of `page_bytes` bytes that a file over `disk` can have, and bytes of its
    /// tables then.
    ///
    /// # Errors
    /// As [`PageFile::least_memory`].
    pub fn pages_and_tables(
        disk: device::SectorGeometry,
        page_bytes: u32,
        durability: Durability,
    ) -> Result<(u32, u64)> {
        let layout = Layout::of_any(disk, page_bytes, 0)?;
        let bytes = match durability {
            Durability::None => 0,
            _ => Undo::table_bytes_of(&layout),
        };
        Ok((layout.pages_most, bytes))
    }

    /// Bytes of changes that each sector of a journal takes.
    #[must_use]
    pub const fn journal_bytes_in(sector_bytes: u32) -> u64 {
        Journal::bytes_in(sector_bytes as usize) as u64
    }

    pub(super) fn buffer_bytes(disk: device::SectorGeometry, durability: Durability) -> u64 {
        let sector = disk.sector_bytes();
        let mut bytes = u64::from(sector);
        if durability != Durability::None {
            bytes += Undo::buffer_bytes(sector);
        }
        if durability.has_journal() {
            bytes += Journal::buffer_bytes(sector);
        }
        bytes
    }

    /// Bytes for checkpoints that are kept, of `beyond` bytes beyond the least.
    fn kept_bytes(beyond: u64, durability: Durability) -> u64 {
        match durability {
            Durability::None => 0,
            _ => Checkpoints::bytes_for(beyond),
        }
    }

    /// How many pages of the memory `memory_bytes` are cached at once.
    ///
    /// # Errors
    /// [`Error::LittleMemory`] or [`Error::NodeSize`].
    pub fn frames(disk: device::SectorGeometry, options: &PageFileOptions) -> Result<u32> {
        let need = Self::least_memory(disk, options.page_bytes, options.durability)?;
        if options.memory_bytes < need {
            return Err(Error::LittleMemory { have: options.memory_bytes, need });
        }
        let cache = options.memory_bytes - Self::buffer_bytes(disk, options.durability);
        let cache = cache - Self::kept_bytes(options.memory_bytes - need, options.durability);
        let frames = Cache::frames_in(cache, options.page_bytes, disk.alignment());
        // More frames than pages would be memory for nothing.
        let pages = Layout::new(disk, options.page_bytes, 0)?.pages_most;
        Ok(frames.min(pages).max(FRAMES_LEAST))
    }

    /// Makes an empty page file on `disk`, whatever that held before.
    ///
    /// # Errors
    /// The sizes do not fit, the memory is too small, or the disk failed.
    pub fn create(mut disk: Box<dyn Sectors + 'd>, options: &PageFileOptions) -> Result<Self> {
        let label = options.label.len();
        if label > LABEL_BYTES_MOST {
            return Err(Error::Label { bytes: label as u64, limit: LABEL_BYTES_MOST as u64 });
        }
        let sectors = disk.geometry().sectors();
        // What an index that was here before left must not be taken for this one's.
        let sequence = Superblock::next_sequence(&mut *disk)?;
        let front = options.front.filter(|front| *front > 0);
        if let Some(front) = front {
            disk = Self::show_front(disk, front)?;
        }
        let geometry = disk.geometry();
        let journal_sectors = Journal::sectors_of(options, geometry);
        let most = Layout::new(geometry, options.page_bytes, journal_sectors)?.on(&*disk);
        let layout = if disk.sectors_held().is_some() { most.with(0, 0) } else { most };
        let superblock = Superblock {
            sequence,
            identity: options.identity,
            page_bytes: options.page_bytes,
            state: State::Open,
            durability: options.durability,
            sectors,
            front,
            journal_most: most.journal_most,
            pages: layout.pages,
            journal_sectors: layout.journal_sectors,
            journal_epoch: 0,
            undo_epoch: 0,
            replay: Place::default(),
            label: options.label.clone(),
            checkpoint: CheckpointState::NEW,
            undo_base: 0,
            forgotten: 0,
        };
        let mut file = Self::over(disk, (superblock, layout), options)?;
        file.disk.resize(layout.end().0, Cause::Checkpoint)?;
        file.extend()?;
        file.superblock.write(&mut file.disk, &mut file.sector)?;
        file.begin_epoch();
        Ok(file)
    }

    /// What the page file on `disk` says of itself.
    ///
    /// # Errors
    /// There is none, it was not closed, the disk has another length, or it failed.
    pub fn describe(disk: &mut dyn Sectors) -> Result<PageFileDescription> {
        let superblock = Superblock::read(disk)?;
        superblock.check_settled()?;
        superblock.layout(disk)?;
        Ok(PageFileDescription {
            page_bytes: superblock.page_bytes,
            durability: superblock.durability,
            label: superblock.label,
            front: superblock.front,
            root_head: superblock.checkpoint.root_head,
        })
    }

    /// Opens the page file on `disk` with the memory of `options`, whose other fields but the
    /// durability are the file's own; the state of the last checkpoint comes back. Returns it with
    /// its root record.
    ///
    /// # Errors
    /// There is none, it was not closed, the memory is too small, the disk has another length than
    /// when it was made, or it failed.
    pub fn open(disk: Box<dyn Sectors + 'd>, options: &PageFileOptions) -> Result<(Self, Vec<u8>)> {
        let mut file = Self::open_pages(disk, options)?;
        let root = file.root_record()?;
        Ok((file, root))
    }

    /// The same without the root record, which may be damaged.
    ///
    /// # Errors
    /// As [`PageFile::open`].
    pub fn open_pages(mut disk: Box<dyn Sectors + 'd>, options: &PageFileOptions) -> Result<Self> {
        let superblock = Superblock::secure(&mut *disk)?;
        superblock.check_settled()?;
        let layout = superblock.layout(&*disk)?;
        if let Some(front) = superblock.front {
            disk = Self::show_front(disk, front)?;
        }
        let mut options = options.clone();
        options.page_bytes = superblock.page_bytes;
        options.durability = superblock.durability;
        let mut file = Self::over(disk, (superblock, layout), &options)?;
        let (base, last) = (file.superblock.undo_base, &file.superblock.checkpoint);
        if last.undo_start < base || !last.is_possible(&file.layout, base) {
            return Err(Error::NotAnIndex {
                is_ours: true,
                what: "it counts more pages than the device has",
            });
        }
        file.recover()?;
        Ok(file)
    }

    /// The front of a disk, which has room for it from now on.
    fn show_front(mut disk: Box<dyn Sectors + 'd>, front: u8) -> Result<Box<dyn Sectors + 'd>> {
        let sectors = front_of(disk.geometry(), front)?.sectors();
        if disk.sectors_held().is_some_and(|held| held < sectors) {
            disk.resize(sectors, Cause::Checkpoint)?;
        }
        Ok(Box::new(Front::new(disk, front)?))
    }

    fn over(
        disk: Box<dyn Sectors + 'd>,
        (superblock, layout): (Superblock, Layout),
        options: &PageFileOptions,
    ) -> Result<Self> {
        let geometry = disk.geometry();
        let frames = Self::frames(geometry, options)?;
        check_memory(Cache::bytes_for(frames, options.page_bytes, geometry.alignment()))?;
        let sector_bytes = geometry.sector_bytes();
        let durability = superblock.durability;
        let least = Self::least_memory(geometry, options.page_bytes, durability)?;
        let mistake = options.mistake();
        let identity = superblock.identity;
        let goes_through = options.journal_through && durability == Durability::Batch;
        let journal = || Journal::new(identity, &layout, mistake).going_through(goes_through);
        let grows = disk.sectors_held().is_some();
        let front = superblock.front.is_some();
        let undo = || Undo::new(identity, layout, grows).for_front(front);
        Ok(PageFile {
            disk: Guarded::new(disk),
            layout,
            cache: Cache::new(frames, options.page_bytes, geometry.alignment()),
            sector: vec![0; sector_bytes as usize],
            high_water: 0,
            free: FreeList::EMPTY,
            freed: FreeList::EMPTY,
            freed_tail: None,
            digest: 0,
            undo: (durability != Durability::None).then(undo),
            journal: durability.has_journal().then(journal),
            superblock,
            checkpoints: Checkpoints::new(match durability {
                Durability::None => 0,
                _ => options.memory_bytes - least,
            }),
            promised: 0,
            shortening: Shortening::default(),
            mistake,
        })
    }
}
