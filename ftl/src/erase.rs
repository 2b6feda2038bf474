//! Erasing a whole chip for a new disk.

use device::{Block, Cause, Error, Nand, Result};

use crate::blocks::{Blocks, Role};

/// Erases every good block; all of them are free then.
///
/// `guard` programs on the first page of the first one what says that this is no disk, and returns
/// false if the chip refuses; it stands there until all others are erased. So no old disk is found
/// on a chip half of which is erased.
///
/// # Errors
/// The chip failed.
pub(crate) fn erase_all<N: Nand>(
    nand: &mut N,
    guard: impl Fn(&mut N, Block) -> Result<()>,
) -> Result<Blocks> {
    let mut blocks = Blocks::new(nand.geometry().blocks());
    let mut guarded = None;
    for block in (0..nand.geometry().blocks()).map(Block) {
        if nand.is_bad(block)? || !erase(nand, block)? {
            continue;
        }
        if guarded.is_some() {
            blocks.release(block, Role::Erased);
        } else {
            match guard(nand, block) {
                Ok(()) => guarded = Some(block),
                Err(Error::ProgramRefused { .. }) => nand.mark_bad(block)?,
                Err(error) => return Err(error),
            }
        }
    }
    if let Some(block) = guarded
        && erase(nand, block)?
    {
        blocks.release(block, Role::Erased);
    }
    Ok(blocks)
}

/// Erases a block; returns false, and the block is retired, if the chip refuses.
fn erase<N: Nand>(nand: &mut N, block: Block) -> Result<bool> {
    match nand.erase(block, Cause::Recovery) {
        Ok(()) => Ok(true),
        Err(Error::EraseRefused { .. }) => nand.mark_bad(block).map(|()| false),
        Err(error) => Err(error),
    }
}
