//! The undo log: what units held at the last checkpoint, before they were overwritten.
//!
//! A unit that was in use at the checkpoint goes to the run once, before its first change. The
//! images of a **group** stand behind its header, and are flushed with it before the first of their
//! units is overwritten. Every flush writes the header anew, with what came: the versions stand in
//! two pairs of places in turn, so the one that was durable stays, and each stands twice, so that
//! no single damage hides it. What was torn has no consequences, and whatever was overwritten has
//! its image in the last whole version.
//!
//! ```text
//!  positions  p    p+1  p+2  p+3  p+4       p+5              checksum u32, 'UNDO', epoch u64,
//!             +----+----+----+----+---------+---------+---   position u32, images u32,
//!             | odd ver.| even v. | image 0 | image 1 |      then a unit u32 and its checksum u32
//!             +----+----+----+----+---------+---------+---   for each image
//! ```
//!
//! Positions count units from the end of the disk in chunks, each of which is written in ascending
//! order: position 0 is the first unit of the last chunk. While checkpoints are kept by name the
//! run goes on from one epoch to the next: of several images of a unit the first is what a named
//! checkpoint needs. What only forgotten ones needed leaves a hole at its end: once the hole is as
//! long as the rest, a checkpoint moves the rest there, and its first position, the **base**, is
//! the first unit of the last chunk from then on.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Request, Sector, Sectors};

use super::layout::Layout;
use crate::bytes::Writer;
use crate::{Error, LogicalPage, Result, checksum};

mod put_back;
mod repeats;

pub(super) use put_back::End;
use repeats::Repeats;

const MAGIC: [u8; 4] = *b"UNDO";

/// Bytes of a header before its entries.
const HEADER: usize = 24;

/// Bytes of an entry: its unit and the checksum of its image.
const ENTRY: usize = 8;

/// Units that a version of a header takes.
const COPIES: u32 = 2;

/// Units that a header takes: those of two versions.
const HEADER_UNITS: u32 = 2 * COPIES;

/// Checksums of headers are those of addresses that no page has.
const ADDRESS: u64 = 1 << 62;

/// Images beside the limit that there is always room for: those of one small batch.
const SPARE_IMAGES: u32 = 32;

/// Images beside those that there is always room for, at which a checkpoint is due in a file that
/// grows however few pages are in use.
const IMAGES_LEAST: u32 = 16;

/// The part of the units that the images have at which a checkpoint is due, and of a page file with
/// something behind it.
const PART: u32 = 32;
const FRONT_PART: u32 = 4;

/// The most units in a chunk.
const CHUNK_MOST: u32 = 16;

/// The run, and what is in it.
pub(super) struct Undo {
    layout: Layout,
    /// True if the layout changes.
    grows: bool,
    /// The page file's.
    identity: u64,
    /// A bit for each unit in use at the checkpoint: it may be overwritten, since its image is in
    /// the run or it was free. The longest that a file can get is a number on the disk, so no
    /// memory is taken for it.
    free_to_change: Box<[u8]>,
    repeats: Repeats,
    /// Units in use at the checkpoint; those beyond may be overwritten.
    units_at_checkpoint: u32,
    /// Units in a chunk.
    chunk: u32,
    /// By it units are divided for the most images.
    part: u32,
    /// Images at which a checkpoint is due; it comes earlier where these have no room.
    limit: u32,
    /// Images that there is always room for, beside those of one small batch.
    kept: u32,
    epoch: u64,
    /// The first position that there is, a multiple of the chunk.
    base: u32,
    start: u32,
    next: u32,
    images: u32,
    /// Where the open group begins, its images, those of them that are durable, and the versions
    /// of its header that were written.
    group: u32,
    group_images: u32,
    group_flushed: u32,
    group_versions: u32,
    header: Vec<u8>,
    is_unflushed: bool,
    /// True while images are only verified.
    is_rehearsal: bool,
}

impl Undo {
    /// Images at which a checkpoint is due, on a disk of so many units. Putting them back takes
    /// most of the time of an opening, beside the replay: that is to stay below a second on an
    /// SSD.
    fn limit_for(units: u32, part: u32) -> u32 {
        (units / part).clamp(8, 2048)
    }

    /// The same with more images if the page file `is_front` of something else: it is small, and
    /// what is changed in it over and over is to wait in memory.
    pub(super) fn for_front(mut self, is_front: bool) -> Self {
        if is_front {
            self.part = FRONT_PART;
            self.limit = Self::limit_for(self.layout.units_most(), self.part);
            self.kept = self.limit;
        }
        self
    }

    /// The same where `pages` pages are in use, and the file grows with them: as many images as
    /// they have at most, so that a small file is not kept busy with checkpoints.
    fn limit_beside(&self, pages: u32) -> u32 {
        let most = Self::limit_for(self.layout.units_most(), self.part);
        let wanted = self.layout.units_of(pages);
        if self.grows { wanted.clamp(IMAGES_LEAST.min(most), most) } else { most }
    }

    /// Bytes of memory that the run's buffer takes.
    pub(super) fn buffer_bytes(sector_bytes: u32) -> u64 {
        u64::from(sector_bytes)
    }

    /// Bytes of memory that the tables of units take, at most: there are two, if there are names.
    pub(super) fn table_bytes_of(layout: &Layout) -> u64 {
        2 * Self::table_bytes_for(layout.units_most()) as u64
    }

    /// Bytes of a bit for each unit.
    const fn table_bytes_for(units: u32) -> usize {
        units.div_ceil(8) as usize
    }

    /// The undo log of the page file `identity`.
    pub(super) fn new(identity: u64, layout: Layout, grows: bool) -> Self {
        Undo { identity, ..Self::without_table(layout, grows) }
    }

    /// A run that is only asked how much room it takes.
    pub(super) fn without_table(layout: Layout, grows: bool) -> Self {
        let units = layout.units_most();
        Undo {
            layout,
            grows,
            identity: 0,
            free_to_change: Box::default(),
            repeats: Repeats::default(),
            units_at_checkpoint: 0,
            chunk: (units / 64).clamp(1, CHUNK_MOST),
            part: PART,
            limit: Self::limit_for(units, PART),
            kept: Self::limit_for(units, PART),
            epoch: 0,
            base: 0,
            start: 0,
            next: 0,
            images: 0,
            group: 0,
            group_images: 0,
            group_flushed: 0,
            group_versions: 0,
            header: vec![0; layout.sector_bytes() as usize],
            is_unflushed: false,
            is_rehearsal: false,
        }
    }

    /// Begins the epoch after the checkpoint with this sequence, when `pages` pages were in use.
    pub(super) fn begin(&mut self, epoch: u64, pages: u32, start: u32) {
        self.units_at_checkpoint = self.layout.units_of(pages);
        self.clear_table();
        self.repeats.begin();
        self.limit = self.limit_beside(pages);
        // In a file that grows the others take room that no page has yet.
        self.kept = if self.grows { self.limit.min(IMAGES_LEAST) } else { self.limit };
        self.epoch = epoch;
        self.start = start;
        self.next = start;
        self.images = 0;
        self.begin_group();
        self.is_unflushed = false;
    }

    fn clear_table(&mut self) {
        let bytes = Self::table_bytes_for(self.units_at_checkpoint);
        if self.free_to_change.len() == bytes {
            return self.free_to_change.fill(0);
        }
        // Before the new one is made, for there is no memory for both.
        self.free_to_change = Box::default();
        self.free_to_change = vec![0; bytes].into_boxed_slice();
    }

    /// The next image begins a group.
    fn begin_group(&mut self) {
        (self.group_images, self.group_flushed, self.group_versions) = (0, 0, 0);
    }

    /// True if the image of `unit` has to go to the run before the unit is changed.
    #[inline]
    pub(super) fn needs(&self, unit: u32) -> bool {
        unit < self.units_at_checkpoint && !self.may_change(unit)
    }

    fn may_change(&self, unit: u32) -> bool {
        self.free_to_change.get(unit as usize / 8).is_some_and(|byte| byte >> (unit % 8) & 1 == 1)
    }

    /// Says that nobody will need what `unit` holds.
    pub(super) fn let_change(&mut self, unit: u32) {
        if let Some(byte) = self.free_to_change.get_mut(unit as usize / 8) {
            *byte |= 1 << (unit % 8);
        }
    }

    /// True if `unit` must not be overwritten before a flush: its image came since the last.
    pub(super) fn is_waiting(&self, unit: u32) -> bool {
        let [flushed, images] = [self.group_flushed, self.group_images].map(|it| it as usize);
        let entries = self.header[HEADER..].chunks_exact(ENTRY);
        let mut unflushed = entries.take(images).skip(flushed);
        self.is_unflushed && unflushed.any(|entry| entry.starts_with(&unit.to_le_bytes()))
    }

    /// The unit that stands at `position`, if the run can go so far.
    fn unit_at(&self, position: u32) -> Option<u32> {
        let position = position.checked_sub(self.base)?;
        let chunks = position / self.chunk + 1;
        let from_end = u64::from(chunks) * u64::from(self.chunk);
        let first = u64::from(self.layout.units()).checked_sub(from_end)?;
        Some(first as u32 + position % self.chunk)
    }

    /// The pages that there have to be room for where `pages` are in use, so that the run can have
    /// what the next epoch may come to need.
    pub(super) fn pages_wanted(&self, pages: u32, start: u32) -> u64 {
        let images = self.limit_beside(pages);
        let least = images.min(IMAGES_LEAST) + SPARE_IMAGES;
        let positions = self.positions_for(images.max(least));
        let positions = start.saturating_add(positions).max(self.next);
        let run = u64::from(self.units_before(positions));
        (u64::from(self.layout.units_of(pages)) + run) * u64::from(self.layout.pages_per_sector)
    }

    /// Units that the run takes, whole chunks.
    pub(super) fn units_taken(&self) -> u32 {
        self.units_before(self.next)
    }

    /// Units that the run takes up to `position`, whole chunks.
    fn units_before(&self, position: u32) -> u32 {
        let units = position.saturating_sub(self.base);
        units.div_ceil(self.chunk).saturating_mul(self.chunk)
    }

    /// The first position that there is.
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    /// From now on `base` is the first position that there is.
    pub(super) fn set_base(&mut self, base: u32) {
        self.base = base;
    }

    /// The base with which all from position `oldest` on can be moved to the end, clear of where it
    /// stands; the present one, if what is before `oldest` does not make room for that.
    pub(super) fn base_before(&self, oldest: u32) -> u32 {
        let hole = oldest.saturating_sub(self.base) / self.chunk * self.chunk;
        let base = self.base + hole;
        let is_clear = self.next.saturating_sub(base) <= hole;
        if is_clear { base } else { self.base }
    }

    /// Copies the run from position `base` on to where it stands with that base in the layout `to`,
    /// which leaves what stands now alone; `buffer` is a sector.
    pub(super) fn copy(
        &self,
        disk: &mut dyn Sectors,
        (to, base): (Layout, u32),
        buffer: &mut [u8],
    ) -> Result<()> {
        let (header, free_to_change) = (Vec::new(), Box::default());
        let repeats = Repeats::default();
        let moved = Undo { header, free_to_change, repeats, layout: to, base, ..*self };
        for position in base..self.next {
            let full = Error::Full { pages: u64::from(self.layout.pages) };
            let (old, new) = self.unit_at(position).zip(moved.unit_at(position)).ok_or(full)?;
            let (old, new) = (self.layout.sector_of(old), to.sector_of(new));
            for sector in 0..u64::from(to.sectors_per_page) {
                let (first, into) = (Sector(old.0 + sector), &mut *buffer);
                disk.read(&mut [Request { first, offset: 0, into }], Cause::Checkpoint)?;
                disk.write(Sector(new.0 + sector), buffer, Cause::Checkpoint)?;
            }
        }
        Ok(())
    }

    /// From now on it stands in `layout`.
    pub(super) fn set_layout(&mut self, layout: Layout) {
        self.layout = layout;
    }

    /// The position at which the run has to end if `pages` pages are in use.
    fn positions_beside(&self, pages: u32) -> u32 {
        let units = self.layout.units().saturating_sub(self.layout.units_of(pages));
        self.base.saturating_add(units / self.chunk * self.chunk)
    }

    /// Pages that trees can have beside what the run takes and may come to need.
    pub(super) fn pages_beside(&self) -> u32 {
        self.pages_beside_images(0, (0, 0))
    }

    /// As [`Undo::pages_beside`], where the run may come to need room for so many images more, and
    /// then for those of the epochs that `later` tells of, as many each.
    pub(super) fn pages_beside_images(&self, images: u32, later: (u32, u32)) -> u32 {
        let images = self.images_always().saturating_add(images);
        let reserve = self.positions_for(images).saturating_add(self.positions_later(later));
        let positions = self.start.saturating_add(reserve).max(self.next);
        let units = self.units_before(positions);
        self.layout.units().saturating_sub(units) * self.layout.pages_per_sector
    }

    /// Images that may still be made, beside those that the next checkpoint makes, `own` of them:
    /// as many as there always is room for, or as have room where `in_use` pages come to be in use,
    /// up to the limit. What names keep leaves no room that is always there.
    pub(super) fn images_left(&self, own: u32, later: (u32, u32), in_use: u32) -> u32 {
        let always = if later.0 == 0 { self.images_always() } else { 0 };
        let always = always.saturating_sub(self.images);
        let left = (self.limit + SPARE_IMAGES).saturating_sub(self.images);
        let taken = self.next.saturating_add(self.positions_later(later));
        let positions = self.positions_beside(in_use).saturating_sub(taken);
        let groups = positions.div_ceil(self.images_most());
        let images = positions.saturating_sub(groups.saturating_mul(HEADER_UNITS));
        left.min(images).max(always).saturating_sub(own)
    }

    /// Pages that there is room for beside what is in the run.
    pub(super) fn pages_left(&self) -> u32 {
        self.layout.units().saturating_sub(self.units_taken()) * self.layout.pages_per_sector
    }

    /// The most positions that `images` images and their headers take, in a group of their own.
    fn positions_for(&self, images: u32) -> u32 {
        let groups = images.div_ceil(self.images_most());
        images.saturating_add(groups.saturating_mul(HEADER_UNITS))
    }

    /// The most positions that the images of some epochs take, of so many each.
    fn positions_later(&self, (epochs, images_each): (u32, u32)) -> u32 {
        self.positions_for(images_each).saturating_mul(epochs)
    }

    /// The most images that changing `pages` pages makes.
    pub(super) fn images_for(&self, pages: u32) -> u32 {
        pages.min(self.units_at_checkpoint)
    }

    /// Images that there is room for whatever is allocated.
    pub(super) fn images_always(&self) -> u32 {
        self.kept + SPARE_IMAGES
    }

    /// True if a checkpoint is due.
    pub(super) fn is_due(&self) -> bool {
        self.images >= self.limit
    }

    /// True if a checkpoint is due before `pages` pages are changed.
    pub(super) fn is_full_for(&self, pages: u32) -> bool {
        self.images > 0 && self.images_for(self.images.saturating_add(pages)) > self.limit
    }

    /// True if there is room for the images of `pages` changed pages and then, in as many epochs as
    /// `later` says, of so many each, if `in_use` pages are in use in the end.
    pub(super) fn has_room_for(&self, pages: u32, later: (u32, u32), in_use: u32) -> bool {
        // A unit has one image in an epoch, and another in the next.
        let later = (later.0, later.1.min(self.layout.units_of(in_use)));
        let positions = self.positions_for(self.images_for(pages));
        let positions = positions.saturating_add(self.positions_later(later));
        self.next.saturating_add(positions) <= self.positions_beside(in_use)
    }

    fn images_most(&self) -> u32 {
        ((self.header.len() - HEADER) / ENTRY) as u32
    }

    /// Puts `image`, what `unit` holds on the disk, into the run; `in_use` pages are in use. The
    /// checksum of a page that was verified is `known`.
    pub(super) fn save(
        &mut self,
        disk: &mut dyn Sectors,
        unit: u32,
        (image, known): (&[u8], Option<u32>),
        in_use: u32,
    ) -> Result<()> {
        if self.group_images == self.images_most() {
            self.flush(disk)?;
            self.begin_group();
        }
        if self.group_images == 0 {
            self.group = self.next;
        }
        let position = self.group.saturating_add(HEADER_UNITS + self.group_images);
        if position >= self.positions_beside(in_use) {
            return Err(Error::Full { pages: u64::from(self.layout.pages) });
        }
        self.write(disk, position, image)?;
        let checksum = known.unwrap_or_else(|| self.checksum_of(unit, image));
        let at = HEADER + self.group_images as usize * ENTRY;
        let mut to = Writer::new(&mut self.header[at..]);
        to.u32(unit);
        to.u32(checksum);
        self.let_change(unit);
        self.repeats.saved(unit);
        self.group_images += 1;
        self.next = position + 1;
        self.images += 1;
        self.is_unflushed = true;
        Ok(())
    }

    /// The checksum of the image of `unit`: of a page it is the one that it begins with, so a page
    /// that was read, and verified, is not gone through again.
    fn checksum_of(&self, unit: u32, image: &[u8]) -> u32 {
        match self.layout.pages_per_sector {
            1 => checksum::of_page(self.identity, LogicalPage(unit), image),
            _ => checksum::of(u64::from(unit), image),
        }
    }

    /// Of headers: that of an address which no page of this page file has.
    const fn address(&self) -> u64 {
        self.identity ^ ADDRESS
    }

    fn write(&self, disk: &mut dyn Sectors, position: u32, bytes: &[u8]) -> Result<()> {
        let full = Error::Full { pages: u64::from(self.layout.pages) };
        let unit = self.unit_at(position).ok_or(full)?;
        Ok(disk.write(self.layout.sector_of(unit), bytes, Cause::Checkpoint)?)
    }

    /// Writes the next version of the header of the open group.
    fn seal(&mut self, disk: &mut dyn Sectors) -> Result<()> {
        let used = HEADER + self.group_images as usize * ENTRY;
        self.header[used..].fill(0);
        let mut to = Writer::new(&mut self.header[checksum::BYTES..HEADER]);
        to.bytes(&MAGIC);
        to.u64(self.epoch);
        to.u32(self.group);
        to.u32(self.group_images);
        let checksum = checksum::of(self.address(), &self.header[checksum::BYTES..]);
        self.header[..checksum::BYTES].copy_from_slice(&checksum.to_le_bytes());
        let first = self.group + self.group_versions % 2 * COPIES;
        self.group_versions += 1;
        for position in first..first + COPIES {
            self.write(disk, position, &self.header)?;
        }
        Ok(())
    }

    /// Makes every image durable, so that the units may be overwritten.
    pub(super) fn flush(&mut self, disk: &mut dyn Sectors) -> Result<()> {
        if self.is_unflushed {
            self.seal(disk)?;
            disk.flush(Cause::Checkpoint)?;
            self.is_unflushed = false;
            self.group_flushed = self.group_images;
        }
        Ok(())
    }

    /// Images since the checkpoint.
    pub(super) fn images(&self) -> u32 {
        self.images
    }

    /// The position behind the last image.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// The position behind the last image that a named checkpoint needs.
    pub(super) fn next_kept(&self) -> u32 {
        if self.repeats.are_all() { self.start } else { self.next }
    }

    /// True if a named checkpoint may need what `unit` holds, which was free at the last.
    pub(super) fn names_may_need(&self, unit: u32) -> bool {
        self.repeats.may_need(unit)
    }

    /// Of so many units that were free at the last checkpoint, those that a named one may need.
    pub(super) fn names_need_of(&self, units: u32) -> u32 {
        units.min(self.repeats.left())
    }

    /// No image that there is serves the newest name; at most `pages` pages were in use at a named
    /// checkpoint.
    pub(super) fn begin_name(&mut self, pages: u32) {
        self.repeats.reset(self.layout.units_of(pages));
    }

    /// Bytes of the images since the checkpoint, at which a checkpoint is due, and of the run.
    pub(super) fn bytes(&self) -> (u64, u64, u64) {
        let unit = self.layout.unit_bytes() as u64;
        let all = self.next.saturating_sub(self.base);
        let [images, limit, all] = [self.images, self.limit, all].map(u64::from);
        (images * unit, limit * unit, all * unit)
    }

    /// Bytes that the tables of units take, at most.
    pub(super) fn table_bytes(&self) -> u64 {
        Self::table_bytes_of(&self.layout)
    }
}
