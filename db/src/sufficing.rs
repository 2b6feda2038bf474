//! What suffices: where a database can't be made or opened, one figure is named, of memory or of
//! room, and no row of them.

use index::{MediumShape, Options as IndexOptions, TreeDescriptor};

use crate::choice::LayerChoice;
use crate::options::MemoryLimit;
use crate::{Error, Options, Result};

/// The most steps to the memory that suffices.
const TRIES: u32 = 16;

/// The refusal `error` of memory inside `limit`, with as much as suffices: as is `needed` inside of
/// that.
pub(crate) fn sufficing(
    error: Error,
    limit: MemoryLimit,
    mut needed: impl FnMut(MemoryLimit) -> Result<u64>,
) -> Error {
    let Error::LittleMemory { have, mut need } = error else {
        return error;
    };
    for _ in 0..TRIES {
        match needed(limit.of_bytes(need)) {
            Ok(more) if more > need => need = more,
            _ => break,
        }
    }
    Error::LittleMemory { have, need }
}

/// Sectors or blocks of a device like this one on which a database finds room, over `layer` where
/// there is one.
pub(crate) fn room_that_suffices(
    device: MediumShape,
    layer: Option<&LayerChoice>,
    tree: &TreeDescriptor,
    choices: &IndexOptions,
    options: &Options,
) -> Result<u64> {
    let least = |device: MediumShape| {
        let mut below = device;
        let mut pages = 1;
        if let (MediumShape::Nand(chip), Some(layer)) = (device, layer) {
            pages = chip.pages_per_block().into();
            below = match (layer.entry.disk)(chip, &layer.options) {
                Err(device::Error::TooFewBlocks { need, .. }) => return Ok(need.into()),
                disk => MediumShape::Sectors(disk?),
            };
        }
        let journal_bytes = Some(options.journal_for(below.bytes()));
        let choices = IndexOptions { journal_bytes, ..choices.clone() };
        let need = (tree.footprint)(&choices, below)?.units_least;
        // A layer makes a sector of each page of a block at the most.
        Ok(device.units() + need.saturating_sub(below.units()).div_ceil(pages))
    };
    Ok(device.units_that_suffice(least)?)
}

/// The refusal `error` of a device, with how much suffices where room is what it lacks: what is
/// full before anything was put in is too small.
pub(crate) fn little_room(
    error: Error,
    device: MediumShape,
    least: impl FnOnce() -> Result<u64>,
) -> Error {
    use device::Error::{TooFewBlocks, TooSmall};
    use store::Error::Device;
    match error {
        Error::Full { .. }
        | Error::Index(index::Error::Store(Device(TooFewBlocks { .. } | TooSmall { .. }))) => {}
        other => return other,
    }
    let unit = device.bytes() / device.units();
    // Where blocks are bad, more of them are needed.
    let need = least().ok().map(|least| least.max(device.units() + 1));
    let blocks = need.filter(|_| matches!(device, MediumShape::Nand(_)));
    Error::LittleRoom {
        bytes: device.bytes(),
        need: need.map(|need| need.saturating_mul(unit)),
        blocks: blocks.and_then(|blocks| u32::try_from(blocks).ok()),
    }
}
