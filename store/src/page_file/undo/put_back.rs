//! The way back: the images of the undo log are put back, or only verified.
//!
//! Groups are read one after the other. Of several images of a unit the first counts. Images are
//! read, and written back, as many at once as stand together.
//!
//! Invariants:
//! - A unit holds what it held at the checkpoint once its first image is put back, and no later
//!   image of it is.
//! - An image that is damaged is an error, unless its unit still holds what it should have.

use device::{Cause, Request, Sectors};

use super::{ENTRY, HEADER, HEADER_UNITS, MAGIC, Undo};
use crate::bytes::Reader;
use crate::{Error, LogicalPage, Result, checksum};

/// Where a pass over the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum End {
    /// Behind the last whole group of this epoch.
    OfEpoch(u64),
    /// Here; all groups before are whole.
    At(u32),
}

impl Undo {
    /// Puts back every image from position `from` on, each unit's first; `buffer` is as long as a
    /// unit or longer, and as many images as it takes are read at once. Returns how many were put
    /// back, or `None` if there is no group at all. Units hold then what they held at the
    /// checkpoint, for good, and a new epoch has to begin.
    pub(in super::super) fn put_back(
        &mut self,
        disk: &mut dyn Sectors,
        from: u32,
        end: End,
        buffer: &mut [u8],
    ) -> Result<Option<u64>> {
        let (mut position, mut restored) = (from, 0);
        loop {
            if let End::At(end) = end
                && position >= end
            {
                break;
            }
            let Some(images) = self.read_header(disk, position, end)? else {
                if let End::At(_) = end {
                    return Err(Error::DamagedUndo { position });
                }
                break;
            };
            restored += self.put_back_group(disk, position, images, buffer)?;
            position = position.saturating_add(HEADER_UNITS + images);
        }
        if restored > 0 {
            disk.flush(Cause::Recovery)?;
        }
        Ok((position > from).then_some(restored))
    }

    /// Verifies all that [`put_back`](Undo::put_back) would need, and changes nothing on the disk.
    pub(in super::super) fn rehearse(
        &mut self,
        disk: &mut dyn Sectors,
        from: u32,
        end: End,
        buffer: &mut [u8],
    ) -> Result<()> {
        self.is_rehearsal = true;
        let outcome = self.put_back(disk, from, end, buffer);
        self.is_rehearsal = false;
        outcome.map(drop)
    }

    /// Notes which units have an image from position `from` on, where the newest name's begin, up
    /// to `to`; nothing, if that can't be read.
    pub(in super::super) fn recall(&mut self, disk: &mut dyn Sectors, from: u32, to: u32) {
        let mut position = from;
        while position < to {
            let Ok(Some(images)) = self.read_header(disk, position, End::At(to)) else {
                return self.repeats.forget();
            };
            for entry in self.header[HEADER..].chunks_exact(ENTRY).take(images as usize) {
                if let Some(unit) = Reader::new(entry).u32() {
                    self.repeats.saved(unit);
                }
            }
            position = position.saturating_add(HEADER_UNITS + images);
        }
        self.repeats.begin();
    }

    /// Reads the header at `at`, the last version that is whole; the images of its group, if there
    /// is any. What an earlier epoch left there has a lower number.
    fn read_header(&mut self, disk: &mut dyn Sectors, at: u32, end: End) -> Result<Option<u32>> {
        let (mut best, mut is_torn) = (None, false);
        for place in 0..HEADER_UNITS {
            match self.read_copy(disk, (at, place), end) {
                Ok(Some(found)) if best.is_none_or(|(most, _)| found > most) => {
                    best = Some((found, place));
                }
                Ok(_) => {}
                // A power cut leaves one that can't be read, before the other was written.
                Err(Error::Device(device::Error::Uncorrectable { .. })) if !is_torn => {
                    is_torn = true;
                }
                Err(error) => return Err(error),
            }
        }
        let Some(((_, images), place)) = best else {
            return Ok(None);
        };
        if place + 1 < HEADER_UNITS {
            self.read_copy(disk, (at, place), end)?;
        }
        Ok(Some(images))
    }

    /// Reads copy `place` of the header at `at`: its epoch and images, if it is one.
    fn read_copy(
        &mut self,
        disk: &mut dyn Sectors,
        (at, place): (u32, u32),
        end: End,
    ) -> Result<Option<(u64, u32)>> {
        let Some(unit) = at.checked_add(place).and_then(|at| self.unit_at(at)) else {
            return Ok(None);
        };
        let (first, into) = (self.layout.sector_of(unit), &mut self.header[..]);
        disk.read(&mut [Request { first, offset: 0, into }], Cause::Recovery)?;
        Ok(self.decode_header(at, end).filter(|(_, images)| *images <= self.images_most()))
    }

    /// The epoch and the images of the group at `position`, if what was read is its header.
    fn decode_header(&self, position: u32, end: End) -> Option<(u64, u32)> {
        let (head, rest) = self.header.split_at_checked(checksum::BYTES)?;
        let mut from = Reader::new(rest);
        if from.array()? != MAGIC {
            return None;
        }
        let epoch = from.u64()?;
        if let End::OfEpoch(wanted) = end
            && epoch != wanted
        {
            return None;
        }
        if from.u32()? != position || head != checksum::of(self.address(), rest).to_le_bytes() {
            return None;
        }
        from.u32().filter(|images| *images > 0).map(|images| (epoch, images))
    }

    /// Puts the images of the group at position `group` back, whose header was read last; returns
    /// how many.
    fn put_back_group(
        &mut self,
        disk: &mut dyn Sectors,
        group: u32,
        images: u32,
        buffer: &mut [u8],
    ) -> Result<u64> {
        let damaged = Error::DamagedUndo { position: group };
        let unit_bytes = self.layout.unit_bytes();
        let at_once = (buffer.len() / unit_bytes) as u32;
        let (mut image, mut restored) = (0, 0);
        while image < images {
            let position = group.saturating_add(HEADER_UNITS + image);
            // Positions stand one behind the other in a chunk only.
            let count = (images - image).min(at_once).min(self.chunk - position % self.chunk);
            let from = self.unit_at(position).filter(|_| count > 0).ok_or(damaged)?;
            let buffer = &mut buffer[..count as usize * unit_bytes];
            self.read_units(disk, from, buffer)?;
            restored += self.put_back_run(disk, group, image, buffer)?;
            image += count;
        }
        Ok(restored)
    }

    /// Puts back those images in `buffer` that are needed, of which the first is image `first` of
    /// the group. Those of units one behind the other are written at once.
    fn put_back_run(
        &mut self,
        disk: &mut dyn Sectors,
        group: u32,
        first: u32,
        buffer: &mut [u8],
    ) -> Result<u64> {
        let unit_bytes = self.layout.unit_bytes();
        // What is to be written: the unit of the first image, and the images' bytes in the buffer.
        let (mut to, mut run, mut restored) = (0, 0..0, 0);
        for (place, image) in (0..buffer.len()).step_by(unit_bytes).zip(first..) {
            let bytes = &mut buffer[place..place + unit_bytes];
            let Some(unit) = self.needed_unit(disk, group, image, bytes)? else {
                continue;
            };
            restored += 1;
            let units = (run.len() / unit_bytes) as u32;
            if run.end == place && unit == to + units {
                run.end += unit_bytes;
                continue;
            }
            self.write_back(disk, to, &buffer[run])?;
            (to, run) = (unit, place..place + unit_bytes);
        }
        self.write_back(disk, to, &buffer[run])?;
        Ok(restored)
    }

    fn write_back(&self, disk: &mut dyn Sectors, unit: u32, images: &[u8]) -> Result<()> {
        match images {
            [] => Ok(()),
            _ if self.is_rehearsal => Ok(()),
            images => Ok(disk.write(self.layout.sector_of(unit), images, Cause::Recovery)?),
        }
    }

    /// The unit to which image `image` of the group whose header was read last has to be put back;
    /// `None` if it holds that already. `bytes` are the image's, and may be changed.
    fn needed_unit(
        &mut self,
        disk: &mut dyn Sectors,
        group: u32,
        image: u32,
        bytes: &mut [u8],
    ) -> Result<Option<u32>> {
        let damaged = Error::DamagedUndo { position: group };
        let mut entry = Reader::new(&self.header[HEADER + image as usize * ENTRY..]);
        let (unit, expected) = entry.u32().zip(entry.u32()).ok_or(damaged)?;
        if unit >= self.layout.units() {
            return Err(damaged);
        }
        if !self.needs(unit) {
            // An earlier image of the same unit counts; and one that was not in use has none.
            return Ok(None);
        }
        if self.checksum_of(unit, bytes) == expected {
            // That which a page begins with does not count itself: it may be what was torn.
            if let (1, Some(head)) = (self.layout.pages_per_sector, bytes.first_chunk_mut()) {
                *head = expected.to_le_bytes();
            }
            self.let_change(unit);
            return Ok(Some(unit));
        }
        // Either the group was torn; then the unit was not overwritten. Or the image was damaged.
        self.read_units(disk, unit, bytes)?;
        if self.checksum_of(unit, bytes) == expected {
            // A later image of it must not be put back.
            self.let_change(unit);
            return Ok(None);
        }
        let page = LogicalPage(unit * self.layout.pages_per_sector);
        Err(Error::DamagedPage { page, what: "the image of it in the undo log is damaged" })
    }

    /// Reads the units from `unit` on.
    fn read_units(&self, disk: &mut dyn Sectors, unit: u32, into: &mut [u8]) -> Result<()> {
        let first = self.layout.sector_of(unit);
        Ok(disk.read(&mut [Request { first, offset: 0, into }], Cause::Recovery)?)
    }
}
