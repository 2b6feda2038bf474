//! The anchor: what a page file is opened from.
//!
//! Two sectors take turns, so that one whole anchor always stands; the one with the higher
//! sequence counts.
//!
//! ```text
//!  0        4       12       16         24      28      32      36      40      44       48
//!  +--------+-------+--------+----------+-------+-------+-------+-------+-------+--------+------
//!  | check- | magic | format | sequence | page  | state | high  | free  | free  | root   | root
//!  | sum    |       | u32    | u64      | bytes | u32   | water | head  | pages | bytes  | record
//!  +--------+-------+--------+----------+-------+-------+-------+-------+-------+--------+------
//! ```

use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Request, Sector, Sectors};

use super::free_list::{self, FreeList};
use super::layout::Layout;
use crate::{Error, Result, checksum};

/// Sectors that take turns.
pub(super) const SLOTS: u64 = 2;

/// The version of the bytes on the device.
pub(super) const FORMAT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"flshtree";
const ROOT: usize = 48;

/// Checksums of anchors are those of addresses that no page has.
const ADDRESS: u64 = u64::MAX;

/// Whether the pages on the device are all that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Something may be in memory only.
    Open,
    /// The device holds everything.
    Closed,
}

/// Which anchor was written last, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    sequence: u64,
    pub(super) state: State,
}

/// An anchor that was read, with all that stands in it.
pub(super) struct Found {
    pub(super) anchor: Anchor,
    pub(super) page_bytes: u32,
    pub(super) high_water: u32,
    pub(super) free: FreeList,
    pub(super) root: Vec<u8>,
}

impl Anchor {
    /// Before the first was written.
    pub(super) const NEW: Anchor = Anchor { sequence: 0, state: State::Open };

    /// The anchor that follows this one.
    pub(super) fn next(&self, state: State) -> Anchor {
        Anchor { sequence: self.sequence + 1, state }
    }

    /// The sector where this anchor goes.
    pub(super) fn sector(&self) -> Sector {
        Sector(self.sequence % SLOTS)
    }

    /// Fills `sector` with this anchor.
    pub(super) fn encode(
        &self,
        layout: &Layout,
        (high_water, free): (u32, FreeList),
        root: &[u8],
        sector: &mut [u8],
    ) -> Result<()> {
        let limit = sector.len().saturating_sub(ROOT);
        if root.len() > limit {
            return Err(Error::RootRecord { bytes: root.len() as u64, limit: limit as u64 });
        }
        sector.fill(0);
        sector[4..12].copy_from_slice(&MAGIC);
        sector[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        let numbers = [
            (12, FORMAT_VERSION),
            (24, layout.page_bytes),
            (28, u32::from(self.state == State::Closed)),
            (32, high_water),
            (36, free_list::number(free.head)),
            (40, free.pages),
            (44, root.len() as u32),
        ];
        for (at, number) in numbers {
            sector[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        sector[ROOT..ROOT + root.len()].copy_from_slice(root);
        let checksum = checksum::of(ADDRESS, &sector[checksum::BYTES..]);
        sector[..checksum::BYTES].copy_from_slice(&checksum.to_le_bytes());
        Ok(())
    }

    /// Reads the anchor that counts.
    pub(super) fn read(disk: &mut dyn Sectors) -> Result<Found> {
        let mut sector = vec![0; disk.geometry().sector_bytes() as usize];
        let mut best: Option<Found> = None;
        let mut reason = Error::NotAnIndex { what: "no anchor stands in its first two sectors" };
        for slot in 0..SLOTS {
            let into = &mut sector[..];
            disk.read(&mut [Request { first: Sector(slot), offset: 0, into }], Cause::Recovery)?;
            match decode(&sector) {
                Ok(found) => {
                    let newer = |best: &Found| best.anchor.sequence < found.anchor.sequence;
                    if best.as_ref().is_none_or(newer) {
                        best = Some(found);
                    }
                }
                Err(Error::NotAnIndex { .. }) => {}
                Err(error) => reason = error,
            }
        }
        best.ok_or(reason)
    }
}

/// Reads an anchor out of its sector.
fn decode(sector: &[u8]) -> Result<Found> {
    let no_anchor = Error::NotAnIndex { what: "no anchor stands in its first two sectors" };
    if sector.len() < ROOT || sector[4..12] != MAGIC {
        return Err(no_anchor);
    }
    let number = |at: usize| {
        sector[at..].first_chunk().map_or(0, |bytes: &[u8; 4]| u32::from_le_bytes(*bytes))
    };
    if number(12) != FORMAT_VERSION {
        return Err(Error::OtherVersion { expected: FORMAT_VERSION, found: number(12) });
    }
    if number(0) != checksum::of(ADDRESS, &sector[checksum::BYTES..]) {
        return Err(Error::NotAnIndex { what: "its anchor is corrupt" });
    }
    let root = sector[ROOT..]
        .get(..number(44) as usize)
        .ok_or(Error::NotAnIndex { what: "its root record is longer than its anchor" })?;
    let sequence = u64::from(number(16)) | u64::from(number(20)) << 32;
    let state = if number(28) == 1 { State::Closed } else { State::Open };
    Ok(Found {
        anchor: Anchor { sequence, state },
        page_bytes: number(24),
        high_water: number(32),
        free: FreeList { head: free_list::link(number(36)), pages: number(40) },
        root: root.to_vec(),
    })
}
