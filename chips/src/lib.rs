//! Real flash devices as data: one TOML entry a device, no code for any of them.
//!
//! ```
//! use flashtree_chips::{Overrides, find};
//!
//! let device = find("winbond-w25n01gv").expect("it is in the catalogue");
//! let chip = device.nand(&Overrides::default()).expect("every figure is known");
//! assert_eq!(chip.geometry.page_bytes(), 2048);
//! assert_eq!(chip.costs.program.time.fixed, 250_000);
//! ```
//!
//! # The form of an entry
//!
//! ```toml
//! name = "maker-model"          # small letters, digits, hyphens; the file has the same name
//! maker = "Maker"
//! model = "MODEL"
//! kind = "nand"                 # nand, nor or disk
//! about = "One line."
//!
//! [figures]
//! page_bytes = { value = 2048, unit = "B", kind = "datasheet-typical", source = "Rev B p. 7" }
//! read_most = { value = 60, unit = "us", kind = "datasheet-max", source = "Rev B p. 61" }
//! ```
//!
//! Every figure has a value, a unit where it measures something, a kind and a source:
//!
//! | kind | says |
//! |---|---|
//! | `datasheet-typical` | the sheet gives it as typical, or gives just one value |
//! | `datasheet-max` | the sheet gives it as a limit |
//! | `driver` | a driver or the code of another simulator has it |
//! | `paper` | a paper gives it, or it follows from what a paper gives |
//! | `assumed` | nobody gives it; the source says why it was assumed |
//!
//! A figure that is not known is left out. An entry that lacks one that a simulation needs stays
//! in the catalogue; [`Device::missing`] names what it lacks, and simulating it is an error that
//! says so.
//!
//! Figures of a chip (`nand`, `nor`) follow the ONFI parameter page:
//!
//! | figures | |
//! |---|---|
//! | `page_bytes`, `spare_bytes`, `pages_per_block`, `blocks`, `dies`, `cell`, `capacity` | shape |
//! | `spare_free_bytes` | of the spare bytes, those that on-chip error correction leaves free |
//! | `programs_per_page`, `program_order` (`any`, `ascending`) | rules; without them 1, ascending |
//! | `good_blocks_guaranteed`, `bad_blocks_most`, `endurance_cycles`, `ecc_bits` | reliability |
//! | `read_typical`, `program_typical`, `erase_typical`, and `..._most`, `..._least` | times |
//! | `bus`, `read_per_byte`, `program_per_byte` | time a byte: of both, or of one |
//! | `read_energy`, `program_energy`, `erase_energy`, and `..._energy_per_byte` | energies |
//!
//! [`Device::nand`] says which of the times are charged. `read_least`, `program_least` and
//! `read_most_ecc_off` are there to be read and not charged.
//!
//! Figures of a disk:
//!
//! | figures | |
//! |---|---|
//! | `capacity`, `sector_bytes` (the page of the other figures), `mapping`, `cell` | shape |
//! | `random_read`, `sequential_read`, `random_write`, `sequential_write` | a request of one page |
//! | `read_next_page`, `write_next_page` | each further page of a request |
//! | `read_per_byte`, `write_per_byte` | time a byte |
//! | `read_energy`, `write_energy`, and `..._energy_per_page`, `..._energy_per_byte` | energies |
//!
//! [`Device::disk`] says what a request of several pages is charged.
//!
//! A disk with `mapping_unit` is a solid-state drive whose times follow from its flash, as
//! [`device::SolidState`] has it; it has none of the times above, but these:
//!
//! | figures | |
//! |---|---|
//! | `flash_capacity`, `channels`, `chips_per_channel`, `queue_depth` | what it is made of |
//! | `flash_page_bytes`, `flash_spare_bytes`, `flash_pages_per_block` | the shape of its chips |
//! | `flash_read`, `flash_program`, `flash_erase`, `flash_bus` | the times of its chips |
//! | `mapping_unit`, `write_cache` | what its translation layer works with |
//! | `command`, `link` | time of each command, and of each byte between drive and host |
//!
//! The four kinds of cost function are which of these figures are there: whole page (times
//! alone), fixed + per byte (`bus` or `..._per_byte`), fixed + per page of a request
//! (`..._next_page`, `..._energy_per_page`), four numbers (a disk's four times alone).
//!
//! # How to add a chip
//!
//! 1. Write `devices/NAME.toml`. Copy the entry of a similar chip, and put into each figure what
//!    *your* source says; leave out what it does not say.
//! 2. Add `NAME` to the sorted list in `src/catalogue.rs`.
//! 3. Run the tests of this crate. If the entry is incomplete, a test shows the line to add to
//!    the list of incomplete devices.
//!
//! A chip that is only yours needs no change here: the program takes the path of a `.toml` file
//! wherever it takes a device's name, and [`Device::from_toml`] reads it.
//!
//! Invariant: everything that this crate knows of a single device is in that device's file.

#![forbid(unsafe_code)]

mod catalogue;
mod chip;
mod disk;
mod entry;
mod error;
mod figures;
mod parse;

pub use catalogue::{all, find, near};
pub use chip::{Chip, Overrides};
pub use disk::{Disk, DiskTiming};
pub use entry::{Device, Figure, FigureKind, Kind, Value};
pub use error::CatalogueError;
