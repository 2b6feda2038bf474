//! The storage layer: what a flash device is, in two views, and what it costs to use it.
//!
//! - [`Nand`] is raw flash: pages are programmed once, whole blocks are erased, blocks go bad.
//! - [`Sectors`] is a disk: sectors are rewritten in place, writes are durable after a flush.
//!
//! Everything above this crate speaks of a device through these two traits, names places on it
//! by the typed addresses [`Page`], [`Block`] and [`Sector`], fails with the one [`Error`] and
//! is measured by the one [`Meter`]. No crate below this one exists.
//!
//! Invariant: this crate holds no device, no clock, no file and no randomness.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod address;
mod cause;
mod checksum;
mod copying;
mod cost;
mod error;
mod geometry;
mod meter;
mod nand;
mod sectors;
mod solid_state;
mod watched;

pub use address::{Block, Page, Sector};
pub use cause::Cause;
pub use checksum::checksum;
pub use copying::copy;
pub use cost::{Access, Charge, Cost, DiskCosts, Linear, NandCosts};
pub use error::{Error, GeometryFault, Result};
pub use geometry::{Geometry, ProgramOrder, SectorGeometry};
pub use meter::{FlashBytes, Meter, Operation, Tally};
pub use nand::Nand;
pub use sectors::{Request, Sectors};
pub use solid_state::{SPARE_STRIPES_LEAST, SolidState};
pub use watched::Watched;

use alloc::boxed::Box;

/// A device in one of the two views that a tree can stand on.
pub enum Medium<'d> {
    /// Raw flash.
    Nand(Box<dyn Nand + 'd>),
    /// A disk: an FTL over raw flash, a file, or a block device.
    Sectors(Box<dyn Sectors + 'd>),
}
