//! The superblock: what a page file is opened from.
//!
//! Two copies stand in the first two sectors. The first is written and flushed before the second,
//! so one whole copy always stands; the one with the higher sequence counts. Nothing that an older
//! superblock needs is overwritten before both copies are durable.
//!
//! ```text
//!  0        4       12       16         24      28      29      30     31
//!  +--------+-------+--------+----------+-------+-------+-------+------+-------+----
//!  | check- | magic | format | sequence | page  | state | dura- | front| label |
//!  | sum    |       | u32    | u64      | bytes | u8    | bility|      | bytes |
//!  +--------+-------+--------+----------+-------+-------+-------+------+-------+----
//!  32        40        44       48        52     56        64      72
//!  +---------+---------+--------+---------+------+---------+-------+----------+----
//!  | sectors | journal | pages  | journal | undo | journal | undo  | identity |
//!  | of disk | most    |        | sectors | end  | epoch   | epoch |          |
//!  +---------+---------+--------+---------+------+---------+-------+----------+----
//!  80       88        92      then         then
//!  +--------+---------+-------+------------+-----------+-----------+
//!  | record | updates | label | checkpoint | undo base | forgotten |
//!  | u64    | u32     |       |            | u32       | u64       |
//!  +--------+---------+-------+------------+-----------+-----------+
//! ```
//!
//! What a checkpoint says stands in `state.rs`.

use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Request, Sector, SectorGeometry, Sectors};

use super::front::front_of;
use super::layout::Layout;
use super::state::CheckpointState;
use crate::bytes::{Reader, Writer};
use crate::{Durability, Error, Result, checksum};

/// Sectors that superblocks take.
pub(super) const SLOTS: u64 = 2;

/// The version of the bytes on the device.
pub(super) const FORMAT_VERSION: u32 = 5;

/// The most bytes in a label.
pub(crate) const LABEL_BYTES_MOST: usize = 64;

/// The highest sequence: no device lives so long.
const SEQUENCE_MOST: u64 = 1 << 62;

const MAGIC: [u8; 8] = *b"flshtree";
const FORMAT: usize = 12;
const SEQUENCE: usize = 16;

/// Checksums of superblocks are those of addresses that no page has.
const ADDRESS: u64 = u64::MAX;

/// What the pages on the device are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Without durability: something may be in memory only.
    Open,
    /// All that there is, or the state to come back to.
    Whole,
    /// On their way back to a named checkpoint.
    RollingBack {
        /// Where the undo log ends.
        undo_end: u32,
    },
}

/// A place in the stream of the journal: before an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Bytes of the stream before the update's record.
    pub(super) record: u64,
    /// Updates of the record before it.
    pub(super) updates: u32,
}

/// A superblock.
#[derive(Clone, Debug)]
pub(super) struct Superblock {
    pub(super) sequence: u64,
    pub(super) page_bytes: u32,
    pub(super) state: State,
    pub(super) durability: Durability,
    /// Sectors that the device has, or can have.
    pub(super) sectors: u64,
    /// If the page file takes only the first sectors of the device: the power of two that they are.
    pub(super) front: Option<u8>,
    /// The most sectors of the journal.
    pub(super) journal_most: u32,
    /// Pages that there is room for: the undo log and the journal are found by it.
    pub(super) pages: u32,
    pub(super) journal_sectors: u32,
    /// The sequence with which the journal's pages are marked: that of the superblock that made the
    /// checkpoint.
    pub(super) journal_epoch: u64,
    /// The sequence with which the images are marked: that of the superblock that began the epoch.
    pub(super) undo_epoch: u64,
    /// Where the journal is replayed from.
    pub(super) replay: Place,
    /// What goes into every checksum, so that nothing of another page file is taken for its own.
    pub(super) identity: u64,
    pub(super) label: Vec<u8>,
    pub(super) checkpoint: CheckpointState,
    /// The first position in the undo log that there is.
    pub(super) undo_base: u32,
    /// A bit for each slot whose checkpoint was forgotten before the index went back to this one,
    /// whose directory has it.
    pub(super) forgotten: u64,
}

impl Superblock {
    /// Makes all that was written before durable, and then both copies of the superblock; `sector`
    /// is as long as a sector.
    pub(super) fn write(&self, disk: &mut dyn Sectors, sector: &mut [u8]) -> Result<()> {
        self.encode(sector)?;
        disk.flush(Cause::Checkpoint)?;
        disk.write(Sector(0), sector, Cause::Checkpoint)?;
        disk.flush(Cause::Checkpoint)?;
        disk.write(Sector(1), sector, Cause::Checkpoint)?;
        // Journal, undo log and pages of the superblock before are overwritten from now on. As long
        // as that stands in the second sector, damage of the first would bring it back.
        Ok(disk.flush(Cause::Checkpoint)?)
    }

    fn encode(&self, sector: &mut [u8]) -> Result<()> {
        sector.fill(0);
        let limit = sector.len() as u64;
        let mut to = Writer::new(&mut sector[checksum::BYTES..]);
        to.bytes(&MAGIC);
        to.u32(FORMAT_VERSION);
        to.u64(self.sequence);
        to.u32(self.page_bytes);
        let (state, undo_end) = match self.state {
            State::Open => (0, 0),
            State::Whole => (1, 0),
            State::RollingBack { undo_end } => (2, undo_end),
        };
        let front = self.front.unwrap_or(0);
        to.bytes(&[state, self.durability as u8, front, self.label.len() as u8]);
        to.u64(self.sectors);
        to.u32(self.journal_most);
        to.u32(self.pages);
        to.u32(self.journal_sectors);
        to.u32(undo_end);
        to.u64(self.journal_epoch);
        to.u64(self.undo_epoch);
        to.u64(self.identity);
        to.u64(self.replay.record);
        to.u32(self.replay.updates);
        to.bytes(&self.label);
        self.checkpoint.encode(&mut to);
        to.u32(self.undo_base);
        to.u64(self.forgotten);
        let need = to.written();
        if need.is_none() {
            return Err(Error::Superblock { limit });
        }
        let checksum = checksum::of(ADDRESS, &sector[checksum::BYTES..]);
        sector[..checksum::BYTES].copy_from_slice(&checksum.to_le_bytes());
        Ok(())
    }

    /// A sequence above that of any superblock that stands on `disk`.
    pub(super) fn next_sequence(disk: &mut dyn Sectors) -> Result<u64> {
        match Superblock::read(disk) {
            Ok(superblock) => Ok(superblock.sequence.saturating_add(1)),
            Err(Error::Device(error)) => Err(error.into()),
            Err(_) => Ok(1),
        }
    }

    /// Reads the superblock that counts.
    pub(super) fn read(disk: &mut dyn Sectors) -> Result<Superblock> {
        let mut sector = vec![0; disk.geometry().sector_bytes() as usize];
        Ok(Self::find(disk, &mut sector)?.superblock)
    }

    /// Refuses a superblock that tells of no state to come back to.
    pub(super) fn check_settled(&self) -> Result<()> {
        match (self.durability, self.state) {
            (Durability::None, State::Open | State::RollingBack { .. }) => Err(Error::NotClosed),
            (_, State::Open) => {
                Err(Error::NotAnIndex { is_ours: true, what: "its creation was interrupted" })
            }
            _ => Ok(()),
        }
    }

    /// Where things lie on `disk`; refuses one that is not as long as when the page file was made,
    /// or does not hold all that there is room for.
    pub(super) fn layout(&self, disk: &dyn Sectors) -> Result<Layout> {
        let geometry = disk.geometry();
        let pages_on = |sectors| -> Result<u64> {
            let device = SectorGeometry::new(geometry.sector_bytes(), sectors)?;
            match Layout::new(device, self.page_bytes, self.journal_most) {
                Ok(layout) => Ok(u64::from(layout.pages)),
                Err(Error::Device(device::Error::TooSmall { .. })) => Ok(0),
                Err(other) => Err(other),
            }
        };
        if geometry.sectors() != self.sectors {
            let (expected, found) = (pages_on(self.sectors)?, pages_on(geometry.sectors())?);
            return Err(Error::OtherLength { expected, found });
        }
        let most = match self.front {
            Some(front) => {
                Layout::new(front_of(geometry, front)?, self.page_bytes, self.journal_most)?
            }
            None => Layout::new(geometry, self.page_bytes, self.journal_most)?.on(disk),
        };
        let layout = most.with(u64::from(self.pages), self.journal_sectors);
        if (layout.pages, layout.journal_sectors) != (self.pages, self.journal_sectors) {
            let what = "it counts more pages than the device has";
            return Err(Error::NotAnIndex { is_ours: true, what });
        }
        match disk.sectors_held().filter(|held| *held < layout.end().0) {
            None => Ok(layout),
            Some(held) => {
                let (expected, found) = (u64::from(layout.pages), pages_on(held)?);
                Err(Error::OtherLength { expected, found })
            }
        }
    }

    /// Reads the superblock that counts, and sees to it that it stands twice: the next superblock
    /// overwrites the first sector, and what stands once is gone with one damaged sector.
    pub(super) fn secure(disk: &mut dyn Sectors) -> Result<Superblock> {
        let mut sector = vec![0; disk.geometry().sector_bytes() as usize];
        let Standing { superblock, other } = Self::find(disk, &mut sector)?;
        if let Some(other) = other {
            superblock.encode(&mut sector)?;
            disk.write(other, &sector, Cause::Recovery)?;
            disk.flush(Cause::Recovery)?;
        }
        Ok(superblock)
    }

    /// The superblock that counts.
    fn find(disk: &mut dyn Sectors, sector: &mut [u8]) -> Result<Standing> {
        let mut copies = [None, None];
        let mut reason = NO_SUPERBLOCK;
        let sectors = disk.sectors_held().unwrap_or(disk.geometry().sectors());
        let slots = sectors.min(SLOTS) as usize;
        for (slot, copy) in copies.iter_mut().enumerate().take(slots) {
            let (first, into) = (Sector(slot as u64), &mut *sector);
            disk.read(&mut [Request { first, offset: 0, into }], Cause::Recovery)?;
            match decode(sector) {
                Ok(found) => *copy = Some(found),
                // What says most is told: a corrupt superblock before none at all.
                Err(NO_SUPERBLOCK) => {}
                Err(error) => reason = error,
            }
        }
        match copies {
            [Some(first), Some(second)] if first.sequence == second.sequence => {
                Ok(Standing { superblock: second, other: None })
            }
            [Some(first), second]
                if second.as_ref().is_none_or(|it| it.sequence < first.sequence) =>
            {
                Ok(Standing { superblock: first, other: Some(Sector(1)) })
            }
            // What another version wrote is never changed.
            [_, Some(superblock)] => {
                let is_foreign = matches!(reason, Error::OtherVersion { .. });
                Ok(Standing { superblock, other: (!is_foreign).then_some(Sector(0)) })
            }
            _ => Err(reason),
        }
    }
}

/// The superblock that counts.
struct Standing {
    superblock: Superblock,
    /// The sector that does not hold it, if only one does.
    other: Option<Sector>,
}

const NO_SUPERBLOCK: Error =
    Error::NotAnIndex { is_ours: false, what: "no superblock stands in its first two sectors" };
const CORRUPT: Error = Error::NotAnIndex { is_ours: true, what: "its superblock is corrupt" };

/// The sectors that the device of a page file can have, as one of its first two sectors says.
///
/// A file that grows is shorter than that, so whoever opens it asks before there is a disk.
#[must_use]
pub fn sectors_most(sector: &[u8]) -> Option<u64> {
    decode(sector).ok().map(|superblock| superblock.sectors)
}

/// Reads a superblock out of its sector.
fn decode(sector: &[u8]) -> Result<Superblock> {
    if sector.get(4..FORMAT) != Some(&MAGIC[..]) || sector.len() < SEQUENCE {
        return Err(NO_SUPERBLOCK);
    }
    let mut from = Reader::new(&sector[FORMAT..]);
    let format = from.u32().ok_or(CORRUPT)?;
    if format != FORMAT_VERSION {
        return Err(Error::OtherVersion { expected: FORMAT_VERSION, found: format });
    }
    let (head, rest) = sector.split_at(checksum::BYTES);
    if head != checksum::of(ADDRESS, rest).to_le_bytes() {
        return Err(CORRUPT);
    }
    decode_rest(&mut from).ok_or(CORRUPT)
}

fn decode_rest(from: &mut Reader<'_>) -> Option<Superblock> {
    let sequence = from.u64().filter(|sequence| *sequence <= SEQUENCE_MOST)?;
    let page_bytes = from.u32()?;
    let [state, durability, front, label_bytes] = from.array()?;
    let sectors = from.u64()?;
    let [journal_most, pages, journal_sectors] = [from.u32()?, from.u32()?, from.u32()?];
    let undo_end = from.u32()?;
    let [journal_epoch, undo_epoch] = [from.u64()?, from.u64()?];
    let identity = from.u64()?;
    let replay = Place { record: from.u64()?, updates: from.u32()? };
    let state = match state {
        0 => State::Open,
        1 => State::Whole,
        2 => State::RollingBack { undo_end },
        _ => return None,
    };
    Some(Superblock {
        sequence,
        page_bytes,
        state,
        durability: *Durability::ALL.get(usize::from(durability))?,
        sectors,
        front: (front > 0).then_some(front),
        journal_most,
        pages,
        journal_sectors,
        journal_epoch,
        undo_epoch,
        replay,
        identity,
        label: from.bytes(usize::from(label_bytes))?.to_vec(),
        checkpoint: CheckpointState::decode(from)?,
        undo_base: from.u32()?,
        forgotten: from.u64()?,
    })
}
