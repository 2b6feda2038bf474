//! Which frontier a page goes to.
//!
//! Page mapping tells apart who writes: users, collection, levelling. **DAC** (Chiang, Lee, Chang:
//! "Using data clustering to improve cleaning performance for flash memory", Software: Practice
//! and Experience 29, 1999) clusters sectors into regions by how often they are updated. A region
//! is the blocks that were filled by one frontier; the first region is the coldest:
//!
//! ```text
//!              updated while young          updated while young
//!            ---------------------->      ---------------------->
//!  written   region 0 (coldest)     ...   region n - 1 (hottest)
//!            <----------------------      <----------------------
//!             moved by collection          moved by collection
//! ```
//!
//! A sector is young if fewer pages were programmed since the block that holds it was begun than
//! the disk has sectors. An update of a sector that is not young leaves it in its region. Nothing
//! is kept for a sector: its block tells its region and its age. After a restart all blocks count
//! as the coldest region, and sectors are sorted again.
//!
//! Clusters pay if blocks of cold sectors are collected seldom and late, which is what cost-benefit
//! does and greedy does not: so cost-benefit is the default here.

use crate::{Options, Victim};

/// A frontier by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream(pub(crate) u8);

/// What is known of the block that holds a sector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// The region that it was filled for.
    pub(crate) region: Stream,
    /// Pages programmed since it was begun.
    pub(crate) age: u64,
}

/// How soon what a frontier takes will be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Warmth {
    /// Sooner than what the others take.
    Hot,
    /// Neither sooner nor later.
    Mean,
    /// Later than what the others take.
    Cold,
}

/// Which frontier a page goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// By who writes.
    Origin {
        /// The frontier of what collection moves.
        moved: Stream,
        /// The frontier of what levelling moves.
        at_rest: Stream,
    },
    /// By how often the sector is updated.
    Regions {
        /// The hottest region.
        hottest: Stream,
        /// Sectors in blocks that were begun fewer programs ago are young.
        young: u64,
    },
}

/// A kind of disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    PageMap,
    Dac,
}

impl Kind {
    /// The first bytes of its headers.
    pub(crate) const fn mark(self) -> [u8; 4] {
        match self {
            Kind::PageMap => *b"FTPM",
            Kind::Dac => *b"FTDC",
        }
    }

    /// How it chooses what to collect, if nothing else is wanted.
    pub(crate) const fn victim(self) -> Victim {
        match self {
            Kind::PageMap => Victim::Greedy,
            Kind::Dac => Victim::CostBenefit,
        }
    }

    /// Frontiers that a new disk has room for.
    pub(crate) const fn frontiers(self, options: &Options) -> u8 {
        match self {
            Kind::PageMap => options.frontiers() + 1,
            Kind::Dac => options.regions(),
        }
    }

    /// The placement on a disk of `sectors` sectors that has room for so many frontiers.
    pub(crate) fn placement(self, options: &Options, frontiers: u8, sectors: u64) -> Placement {
        let last = frontiers - 1;
        match self {
            Kind::PageMap => Placement::Origin {
                moved: Stream((options.frontiers() - 1).min(last)),
                at_rest: Stream(options.frontiers().min(last)),
            },
            Kind::Dac => Placement::Regions {
                hottest: Stream((options.regions() - 1).min(last)),
                young: sectors,
            },
        }
    }
}

impl Placement {
    /// Where a user's write goes to a sector that was held so.
    pub(crate) fn of_write(self, before: Option<Held>) -> Stream {
        match (self, before) {
            (Placement::Origin { .. }, _) | (_, None) => Stream(0),
            (Placement::Regions { hottest, young }, Some(Held { region, age })) => {
                let hotter = u8::from(age < young);
                Stream((region.0 + hotter).min(hottest.0))
            }
        }
    }

    /// Where collection moves what it finds in a block of `region`.
    pub(crate) const fn of_collected(self, region: Stream) -> Stream {
        match self {
            Placement::Origin { moved, .. } => moved,
            Placement::Regions { .. } => Stream(region.0.saturating_sub(1)),
        }
    }

    /// Where data goes that did not change for long.
    pub(crate) const fn of_rest(self) -> Stream {
        match self {
            Placement::Origin { at_rest, .. } => at_rest,
            Placement::Regions { .. } => Stream(0),
        }
    }

    /// How soon what goes to `stream` will be overwritten, compared with the other frontiers.
    pub(crate) fn warmth(self, stream: Stream) -> Warmth {
        let hottest = match self {
            Placement::Origin { .. } => Stream(0),
            Placement::Regions { hottest, .. } => hottest,
        };
        match self {
            _ if stream == hottest => Warmth::Hot,
            Placement::Regions { .. } if stream.0 > 0 => Warmth::Mean,
            _ => Warmth::Cold,
        }
    }

    /// True if placement depends on how a sector was held.
    pub(crate) const fn looks_back(self) -> bool {
        matches!(self, Placement::Regions { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::{Held, Kind, Placement, Stream};
    use crate::Options;

    #[test]
    fn page_mapping_tells_apart_who_writes_as_far_as_there_are_frontiers() {
        let options = Options::default();
        let frontiers = Kind::PageMap.frontiers(&options);
        let apart = Kind::PageMap.placement(&options, frontiers, 1000);
        assert_eq!(apart.of_write(None), Stream(0));
        assert_eq!(apart.of_collected(Stream(0)), Stream(1));
        assert_eq!(apart.of_rest(), Stream(2));
        let narrow = Kind::PageMap.placement(&options, 2, 1000);
        assert_eq!((narrow.of_collected(Stream(0)), narrow.of_rest()), (Stream(1), Stream(1)));
        let single = options.with_frontiers(1).unwrap();
        let single = Kind::PageMap.placement(&single, 2, 1000);
        assert_eq!((single.of_collected(Stream(0)), single.of_rest()), (Stream(0), Stream(1)));
    }

    #[test]
    fn dac_promotes_what_is_updated_while_young_and_demotes_what_collection_moves() {
        let hottest = Stream(3);
        let dac = Placement::Regions { hottest, young: 100 };
        let write = |region, age| dac.of_write(Some(Held { region: Stream(region), age })).0;
        assert_eq!(dac.of_write(None), Stream(0));
        assert_eq!([0, 1, 2, 3].map(|region| write(region, 99)), [1, 2, 3, 3]);
        assert_eq!([0, 1, 2, 3].map(|region| write(region, 100)), [0, 1, 2, 3]);
        let moved = [0, 1, 2, 3].map(|region| dac.of_collected(Stream(region)).0);
        assert_eq!(moved, [0, 0, 1, 2]);
        assert_eq!(dac.of_rest(), Stream(0));
    }
}
