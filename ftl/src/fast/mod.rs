//! FAST: a log-block translation layer with fully associative sectors.
//!
//! After Lee, Park, Chung, Lee, Park, Song: "A log buffer-based flash translation layer using
//! fully-associative sector translation", 2007. Data blocks are mapped by block. Newer content
//! goes to log blocks, which are mapped by page:
//!
//! - one **sequential** log block: a write to the first sector of a logical block begins it, writes
//!   that follow in order go on. When it is full it becomes the data block (a switch merge); when
//!   another begins, or its logical block is written out of order, the rest is copied before (a
//!   partial merge);
//! - `logs` **random** log blocks, shared by all logical blocks, which take all other writes. When
//!   they are full, the one that was begun first is the victim: each logical block that has its
//!   newest sector there is copied from wherever its sectors are to a new data block (a full
//!   merge). That takes the logical block's sectors out of the other log blocks, too.
//!
//! How all this survives power cuts and bad blocks stands in `hybrid`.
//!
//! # What it costs
//! With P pages a block, N random log blocks and n logical blocks of L sectors, times of reading,
//! programming and erasing r, p and e, and a spare area (so L = P; a log block takes P - 1 sectors
//! beside its header):
//!
//! - **Sequential** writes: p + e / L each.
//! - **Random** writes, uniform over all sectors: 1 of L is the first sector of its logical block
//!   and costs a partial merge, (L - 1)(r + p) + p + e. The others go to random log blocks. A
//!   logical block that is not in the log waits n such writes for the first that is its own; that
//!   one stays, on average, W = (N - 1)(P - 1) + (P - 2) / 2 further writes until its log block is
//!   the victim, and what comes meanwhile is merged with it. So a write causes n / (n + W) full
//!   merges, of L(r + p) + e each, less the share W / (n(L - 1)) of them that a partial merge of
//!   the same logical block makes needless; and it costs p + (p + e) / (P - 1) beside.
//!
//! Without a spare area L = P - 2, a merge programs two pages of metadata more, and a log block
//! takes P - 2 sectors, beside its header and a page that names them; flush programs one more.
//!
//! `contract/tests/fast.rs` holds these formulas and measures against them.

use device::{Cause, Nand, Result};

use crate::hybrid::{Content, Core, Hybrid, Kind, Scheme};

/// A disk out of a raw NAND chip, by FAST.
pub type Fast<N> = Hybrid<N, Logs>;

/// The scheme of FAST.
pub struct Logs;

impl Scheme for Logs {
    const KIND: Kind = Kind { mark: *b"FTFA", sectors_in_log: true };

    fn write<N: Nand>(core: &mut Core<N>, sector: u32, data: &[u8], cause: Cause) -> Result<()> {
        let (logical, offset) = core.shape.split(sector);
        let content = Content { data, check: core.check_of(data) };
        loop {
            let slot = match core.slot_of(logical) {
                Some(slot) if core.filling(slot).follows(offset) => slot,
                Some(slot) => {
                    core.finish(slot)?;
                    continue;
                }
                None if offset == 0 => core.start(logical)?,
                None => return core.append(sector, content, cause),
            };
            if core.write_at(slot, offset, content, cause)? {
                return Ok(());
            }
        }
    }
}
