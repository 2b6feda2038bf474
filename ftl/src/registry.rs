//! Every translation layer, in one sorted list: one more is one file and one line.

use alloc::boxed::Box;

use device::{Geometry, Nand, Result, SectorGeometry, Sectors};

use crate::block_map::Replacements;
use crate::fast::Logs;
use crate::hybrid::{self, Scheme};
use crate::page_map::{self, Kind};
use crate::{BlockMap, Dac, Fast, Options, PageMap, Parameter, Statistics};

/// All translation layers, sorted by name.
pub const FTLS: &[&Entry] = &[&BLOCK_MAP, &DAC, &FAST, &PAGE_MAP];

/// A disk made by a translation layer.
pub trait Layer: Sectors {
    /// What the disk did since it was made or opened.
    fn statistics(&self) -> &Statistics;
}

/// Makes a disk on a chip, or opens the one that is there.
pub type Open = for<'d> fn(Box<dyn Nand + 'd>, &Options) -> Result<Box<dyn Layer + 'd>>;

/// What there is to know about a translation layer without making one.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Makes an empty disk; whatever the chip holds is erased.
    pub create: Open,
    /// Opens the disk that the chip holds.
    pub open: Open,
    /// The disk that it makes of a chip without bad blocks.
    pub disk: fn(Geometry, &Options) -> Result<SectorGeometry>,
}

/// The translation layer called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    FTLS.iter().copied().find(|entry| entry.name == name)
}

const OVER_PROVISION: Parameter = Parameter {
    name: "over-provision",
    about: "the share of the chip's pages that is kept from users",
    default: "0.07",
};

const VICTIM: Parameter = Parameter {
    name: "victim",
    about: "which block is collected: greedy, round-robin or cost-benefit",
    default: "greedy",
};

const DAC_VICTIM: Parameter = Parameter { default: "cost-benefit", ..VICTIM };

const LEVELLING: Parameter = Parameter {
    name: "levelling",
    about: "how erases are spread over the blocks: none, dynamic or static",
    default: "static",
};

const FRONTIERS: Parameter = Parameter {
    name: "frontiers",
    about: "2 if what collection moves is kept apart from what users write, or 1",
    default: "2",
};

const REGIONS: Parameter =
    Parameter { name: "regions", about: "clusters of sectors, from 1 to 8", default: "4" };

const SCRUB: Parameter = Parameter {
    name: "scrub",
    about: "flipped bits in a read from which on the page is moved; 0 for never",
    default: "1",
};

const REPLACEMENTS: Parameter = Parameter {
    name: "logs",
    about: "replacement blocks that are open at the same time",
    default: "8",
};

const RANDOM_LOGS: Parameter = Parameter { name: "logs", about: "random log blocks", default: "8" };

const BLOCK_MAP: Entry = Entry {
    name: "block-map",
    about: "any logical block on any block, with replacement blocks that are filled in order",
    parameters: &[OVER_PROVISION, REPLACEMENTS],
    create: |nand, options| Ok(Box::new(BlockMap::format(nand, *options)?)),
    open: |nand, options| Ok(Box::new(BlockMap::open(nand, *options)?)),
    disk: |chip, options| hybrid::disk_on(Replacements::KIND, chip, options),
};

const DAC: Entry = Entry {
    name: "dac",
    about: "page mapping that clusters sectors by how often they are updated",
    parameters: &[OVER_PROVISION, REGIONS, DAC_VICTIM, LEVELLING, SCRUB],
    create: |nand, options| Ok(Box::new(Dac::format(nand, *options)?)),
    open: |nand, options| Ok(Box::new(Dac::open(nand, *options)?)),
    disk: |chip, options| page_map::disk_on(Kind::Dac, chip, options),
};

const FAST: Entry = Entry {
    name: "fast",
    about: "data blocks mapped by block, a sequential log block, random log blocks shared by all",
    parameters: &[OVER_PROVISION, RANDOM_LOGS],
    create: |nand, options| Ok(Box::new(Fast::format(nand, *options)?)),
    open: |nand, options| Ok(Box::new(Fast::open(nand, *options)?)),
    disk: |chip, options| hybrid::disk_on(Logs::KIND, chip, options),
};

const PAGE_MAP: Entry = Entry {
    name: "page-map",
    about: "any sector on any page",
    parameters: &[OVER_PROVISION, FRONTIERS, VICTIM, LEVELLING, SCRUB],
    create: |nand, options| Ok(Box::new(PageMap::format(nand, *options)?)),
    open: |nand, options| Ok(Box::new(PageMap::open(nand, *options)?)),
    disk: |chip, options| page_map::disk_on(Kind::PageMap, chip, options),
};

#[cfg(test)]
mod tests {
    use super::{FTLS, find};

    #[test]
    fn the_list_is_sorted_and_every_layer_is_found_by_its_name() {
        assert!(FTLS.is_sorted_by(|one, next| one.name < next.name));
        for entry in FTLS {
            assert_eq!(find(entry.name).map(|found| found.about), Some(entry.about));
        }
        assert!(find("no-map").is_none());
    }
}
