//! The figures of a solid-state drive: its chips, how they are joined, and what its translation
//! layer works with.

use crate::{GeometryFault, Result, SectorGeometry};

/// What a solid-state drive is made of.
///
/// Chip `d` hangs on channel `d mod channels`. A **stripe** is the block of the same number on
/// every chip: what is erased at once. The translation layer moves **mapping units**, which lie in
/// stripes page by page over the chips, and collects units in the write cache before it writes
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SolidState {
    /// Bytes that the whole drive offers, also where only a part of it is used.
    pub drive_bytes: u64,
    /// Bytes of flash in it, spare areas not counted. What is beyond `drive_bytes` is free for
    /// writing out of place.
    pub flash_bytes: u64,
    /// Channels: so many transfers between chips and controller at a time.
    pub channels: u32,
    /// Chips on each channel that work at the same time.
    pub chips_per_channel: u32,
    /// Bytes in a page of a chip.
    pub page_bytes: u32,
    /// Bytes of its spare area, which cross the channel with it.
    pub spare_bytes: u32,
    /// Pages in a block of a chip.
    pub pages_per_block: u32,
    /// Time in which a chip reads a page into its register, in nanoseconds.
    pub read_ns: u64,
    /// Time in which it programs a page from its register, in nanoseconds.
    pub program_ns: u64,
    /// Time in which it erases a block, in nanoseconds.
    pub erase_ns: u64,
    /// Time of each byte on a channel, in picoseconds.
    pub bus_ps_per_byte: u64,
    /// Bytes of a mapping unit.
    pub mapping_unit_bytes: u64,
    /// Bytes of the write cache; each unit in it takes all of its bytes.
    pub write_cache_bytes: u64,
    /// What the controller spends on each command, in nanoseconds.
    pub command_ns: u64,
    /// Time of each byte between drive and host, in picoseconds.
    pub link_ps_per_byte: u64,
    /// Commands that it takes before the first of them is done.
    pub queue_depth: u32,
}

/// The least stripes beside those that data fill: one being written, two kept to collect into, and
/// one to gain by it.
pub const SPARE_STRIPES_LEAST: u64 = 4;

impl SolidState {
    /// Chips that work at the same time.
    #[must_use]
    pub const fn chips(&self) -> u64 {
        self.channels as u64 * self.chips_per_channel as u64
    }

    /// Bytes of a stripe.
    #[must_use]
    pub const fn stripe_bytes(&self) -> u64 {
        self.chips()
            .saturating_mul(self.pages_per_block as u64)
            .saturating_mul(self.page_bytes as u64)
    }

    /// Mapping units in a stripe.
    #[must_use]
    pub const fn units_per_stripe(&self) -> u64 {
        match self.stripe_bytes().checked_div(self.mapping_unit_bytes) {
            Some(units) => units,
            None => 0,
        }
    }

    /// Stripes that hold the first `sectors` sectors, and those that are free for all of the drive.
    #[must_use]
    pub const fn stripes(&self, sectors: &SectorGeometry) -> (u64, u64) {
        let units = sectors.bytes().div_ceil(self.mapping_unit_bytes);
        let per_stripe = self.units_per_stripe();
        let whole_drive = self.drive_bytes.div_ceil(self.mapping_unit_bytes).div_ceil(per_stripe);
        let flash = self.flash_bytes / self.stripe_bytes();
        (units.div_ceil(per_stripe), flash.saturating_sub(whole_drive))
    }

    /// Checks that the drive can exist and offer `sectors`.
    ///
    /// # Errors
    /// [`GeometryFault::SolidState`] says what does not fit.
    pub fn check(&self, sectors: &SectorGeometry) -> Result<()> {
        let sector = u64::from(sectors.sector_bytes());
        let page = u64::from(self.page_bytes);
        let unit = self.mapping_unit_bytes;
        let is_multiple = |of: u64, what: u64| what > 0 && what.is_multiple_of(of);
        let fault = if self.chips() == 0 || self.pages_per_block == 0 || self.queue_depth == 0 {
            "it has no chip, no page or no command"
        } else if self.chips() > 4096 {
            "it has more than 4096 chips"
        } else if !is_multiple(sector, page) {
            "a page of its chips is no multiple of a sector"
        } else if !is_multiple(page, unit) {
            "a mapping unit is no multiple of a page of its chips"
        } else if self.units_per_stripe() == 0 || unit / sector > 1 << 16 {
            "a mapping unit is more than a block of each of its chips, or than 65536 sectors"
        } else if self.write_cache_bytes / unit < 2 || self.write_cache_bytes / unit > 65_000 {
            "the write cache holds fewer than 2 mapping units, or more than 65000"
        } else if sectors.bytes() > self.drive_bytes {
            "it is smaller than what is used of it"
        } else if self.stripes(sectors).1 < SPARE_STRIPES_LEAST {
            "it has too little flash beyond what it offers"
        } else if self.stripes(sectors).0.saturating_add(self.stripes(sectors).1)
            > u64::from(u32::MAX) / self.units_per_stripe()
        {
            "it has more mapping units than 32 bits can count"
        } else {
            return Ok(());
        };
        Err(GeometryFault::SolidState(fault).into())
    }
}

#[cfg(test)]
mod tests;
