//! Block mapping with replacement blocks.
//!
//! Sectors are mapped by block. A write goes to a **replacement block** of its logical block,
//! which is filled in order: it begins with copies of the places before the one that is written,
//! and copies what later writes skip. When it is full it takes the place of the data block. A write
//! to a place that is filled already can't go on: the rest is copied, the blocks are merged, and a
//! new replacement block begins. `logs` replacement blocks may be open at the same time; one more
//! merges the one that was written longest ago.
//!
//! How all this survives power cuts and bad blocks stands in `hybrid`.
//!
//! # What it costs
//! With L sectors in a logical block, times of reading, programming and erasing r, p and e, and a
//! spare area:
//!
//! - **Sequential** writes: L programs and an erase a block, so p + e / L each.
//! - **Random** writes, each to a logical block that has no replacement block: all other places
//!   are copied, those before with the write and those behind with the merge, so
//!   (L - 1)(r + p) + p + e each. Uniform writes over n logical blocks find one of k replacement
//!   blocks in k / n of the cases, and go on in half of those.
//!
//! Without a spare area a block has two pages of metadata, which cost two programs a block.
//! `contract/tests/block_map.rs` holds these formulas and measures against them.

use device::{Cause, Nand, Result};

use crate::hybrid::{Content, Core, Hybrid, Kind, Scheme};

/// A disk out of a raw NAND chip, by block mapping.
pub type BlockMap<N> = Hybrid<N, Replacements>;

/// The scheme of block mapping.
pub struct Replacements;

impl Scheme for Replacements {
    const KIND: Kind = Kind { mark: *b"FTBM", sectors_in_log: false };

    fn write<N: Nand>(core: &mut Core<N>, sector: u32, data: &[u8], cause: Cause) -> Result<()> {
        let (logical, offset) = core.shape.split(sector);
        let content = Content { data, check: core.check_of(data) };
        loop {
            let slot = match core.slot_of(logical) {
                Some(slot) if core.filling(slot).takes(offset) => slot,
                Some(slot) => {
                    core.finish(slot)?;
                    continue;
                }
                None => core.start(logical)?,
            };
            if core.write_at(slot, offset, content, cause)? {
                return Ok(());
            }
        }
    }
}
