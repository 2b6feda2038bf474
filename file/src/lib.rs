//! Devices in files: a disk out of a real file or block device, and raw NAND imitated in a file.
//!
//! - [`FileDisk`] keeps the contract of [`device::Sectors`] with direct I/O where the file system
//!   has it, and serves the requests of one call all at once.
//! - [`NandFile`] keeps the contract of [`device::Nand`], every rule of a chip included, so that
//!   trees made for raw flash keep their data on any machine.
//!
//! Both lock their file against other users, and neither writes to a file or block device that
//! is not its own unless it is told to.
//!
//! Invariant: this crate is the only one that opens device files, and the module `engine` is the
//! only place with unsafe code.

#![deny(unsafe_code)]

mod aligned;
mod disk;
mod engine;
mod error;
mod flusher;
mod nand;
mod opening;
mod options;
mod rights;
mod system;

pub use disk::{FileDisk, is_page_file};
pub use error::{Error, HeaderFault, Result};
pub use nand::{NandFile, is_nand_file};
pub use options::{
    Buffered, Direct, DiskOptions, Durability, EngineChoice, EngineKind, Existing, IN_FLIGHT_MOST,
    NandOptions, Transfer,
};
pub use rights::Rights;
pub use system::holder;
