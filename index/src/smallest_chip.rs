//! The smallest chip for a tree on raw flash: one that takes a block's worth of entries.
//!
//! Each tree says how many blocks suffice on chips like one that is given. A chip that has fewer is
//! refused when the tree is to be made, and one number is named that suffices; a tree that was made
//! is opened whatever went bad since.

use device::Geometry;
use store::EntryShape;

use crate::Result;
use crate::random_keys::average_bytes;
use crate::registry::Options;

/// The blocks that suffice on a chip like this one, which they may depend on, as its journal does.
pub(crate) type Fewest<'f> = &'f dyn Fn(Geometry) -> Result<u32>;

/// Entries whose keys and values have as many bytes as an erase block.
pub(crate) fn entries_of_a_block(chip: Geometry, shape: EntryShape) -> u64 {
    let bytes = u64::from(average_bytes(shape.key)) + u64::from(average_bytes(shape.value));
    chip.block_bytes().div_ceil(bytes.max(1))
}

/// Nodes of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grown {
    pub(crate) leaves: u64,
    pub(crate) inner: u64,
    pub(crate) height: u8,
    /// False if the root would have to be more than one node.
    pub(crate) is_whole: bool,
}

impl Grown {
    /// The tree of `entries` entries with half full nodes, which hold as many entries when they are
    /// full as `capacity` says of each level; it has at most `most` levels.
    pub(crate) fn new(entries: u64, capacity: &dyn Fn(u8) -> usize, most: u8) -> Self {
        let half = |level| (capacity(level) as u64 / 2).max(if level == 0 { 1 } else { 2 });
        let leaves = entries.div_ceil(half(0)).max(1);
        let mut grown = Grown { leaves, inner: 0, height: 1, is_whole: false };
        let mut nodes = leaves;
        while nodes > 1 && grown.height < most {
            nodes = nodes.div_ceil(half(grown.height));
            grown.inner += nodes;
            grown.height += 1;
        }
        grown.is_whole = nodes <= 1;
        grown
    }
}

/// Refuses a chip with `have` good blocks if these are fewer than `fewest`, unless the tree that is
/// made of `options` stands in for one that exists.
///
/// # Errors
/// They are: how many suffice is named.
pub(crate) fn check(
    options: &Options,
    chip: Geometry,
    have: u32,
    fewest: Fewest<'_>,
) -> Result<()> {
    if options.is_stand_in {
        return Ok(());
    }
    let mut need = fewest(chip)?;
    if need <= have {
        return Ok(());
    }
    while let Ok(larger) = with_blocks(chip, need) {
        match fewest(larger)? {
            more if more > need => need = more,
            _ => break,
        }
    }
    Err(device::Error::TooFewBlocks { have, need }.into())
}

/// A chip like this one of so many blocks.
pub(crate) fn with_blocks(chip: Geometry, blocks: u32) -> Result<Geometry> {
    let like = Geometry::new(chip.page_bytes(), chip.pages_per_block(), blocks)?;
    let like = like.with_spare(chip.spare_bytes())?.with_programs(chip.programs_per_page())?;
    Ok(like.with_order(chip.order()))
}

#[cfg(test)]
mod tests {
    use device::Geometry;
    use store::EntryShape;

    use super::{Grown, check, entries_of_a_block};
    use crate::parameters::Settings;
    use crate::registry::Options;

    #[test]
    fn a_number_that_grows_with_the_chip_is_named_as_it_is_on_a_chip_that_suffices() {
        let chip = Geometry::new(512, 16, 8).unwrap();
        let settings = Settings::parse("a tree", &[], []).unwrap();
        let options = Options::new(EntryShape::fixed(4, 4), 1 << 20, settings);
        let refused = check(&options, chip, 8, &|chip| Ok(16 + chip.blocks() / 4)).unwrap_err();
        let enough = device::Error::TooFewBlocks { have: 8, need: 21 };
        assert_eq!(refused, enough.into());
        assert_eq!(check(&options, chip, 8, &|_| Ok(8)), Ok(()));
    }

    #[test]
    fn nodes_are_counted_level_by_level() {
        let grown = Grown::new(100, &|level| if level == 0 { 20 } else { 8 }, 8);
        assert_eq!(grown, Grown { leaves: 10, inner: 3 + 1, height: 3, is_whole: true });
        let leaf = Grown { leaves: 1, inner: 0, height: 1, is_whole: true };
        assert_eq!(Grown::new(3, &|_| 8, 8), leaf);
        let chip = Geometry::new(512, 16, 8).unwrap();
        assert_eq!(entries_of_a_block(chip, EntryShape::fixed(4, 4)), 1024);
        assert_eq!(entries_of_a_block(chip, EntryShape::VARIABLE), 256);
    }
}
