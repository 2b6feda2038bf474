//! How a chip is divided: where metadata goes, and how many sectors there are.

use device::{Error, Geometry, Result, SectorGeometry};

use super::{closing, spare};
use crate::Options;

/// Where the metadata of data pages goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// To the spare area of each page.
    Spare,
    /// To a page that closes each group of at most this many data pages.
    Closing {
        /// The most data pages in a group.
        group: u32,
    },
}

/// A chip as this layer uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) geometry: Geometry,
    pub(crate) place: Place,
    /// Blocks that are filled at the same time, at most.
    pub(crate) frontiers: u8,
}

impl Shape {
    /// # Errors
    /// [`Error::TooFewPages`] if blocks have too few pages.
    pub(crate) fn new(geometry: Geometry, frontiers: u8) -> Result<Self> {
        let pages = geometry.pages_per_block();
        let (place, least) = if geometry.spare_bytes() as usize >= spare::BYTES {
            (Place::Spare, 4)
        } else {
            let group = closing::capacity(geometry.page_bytes()).min(pages.saturating_sub(2));
            (Place::Closing { group }, 5 + u32::from(frontiers))
        };
        if pages < least {
            return Err(Error::TooFewPages { have: pages, need: least });
        }
        Ok(Shape { geometry, place, frontiers })
    }

    /// The most data pages in a group; 0 where there are no groups.
    pub(crate) const fn group(&self) -> u32 {
        match self.place {
            Place::Spare => 0,
            Place::Closing { group } => group,
        }
    }

    /// True if pages close groups.
    pub(crate) const fn has_groups(&self) -> bool {
        matches!(self.place, Place::Closing { .. })
    }

    /// Data pages that a block surely holds when it is filled without a flush.
    pub(crate) const fn data_pages(&self) -> u32 {
        let pages = self.geometry.pages_per_block() - 1;
        match self.place {
            Place::Spare => pages,
            Place::Closing { group } => pages - pages.div_ceil(group + 1),
        }
    }

    /// Data pages that a block holds if no header stands in it.
    const fn most_data_pages(&self) -> u32 {
        match self.place {
            Place::Spare => self.geometry.pages_per_block(),
            Place::Closing { .. } => self.data_pages(),
        }
    }

    /// Free blocks that collection restores before a user's write may take one.
    ///
    /// There is one for each frontier. The others are for power cuts: a cut during a collection
    /// closes the block that it wrote to, and leaves the live pages of its victim in two blocks.
    /// As the next collection takes the emptier one, each cut at least halves what has to be moved
    /// to win a block back, whatever the moment of the cut: after log2(pages a block) cuts in a
    /// row it is nothing.
    pub(crate) const fn reserve(&self) -> u32 {
        let halvings = self.geometry.pages_per_block().next_power_of_two().ilog2();
        self.frontiers as u32 + halvings
    }

    /// Blocks beyond those that the live sectors fill: the reserve, the frontiers, and the block
    /// with the newest header, which is no victim. With them there is always a block which is
    /// worth collecting.
    pub(crate) const fn spare_blocks(&self) -> u32 {
        self.reserve() + self.frontiers as u32 + 1
    }

    /// Data pages that a block has to lack before it is worth collecting: without them nothing
    /// is won, with groups a page of each frontier may go to a group that is closed early.
    pub(crate) const fn slack(&self) -> u32 {
        match self.place {
            Place::Spare => 0,
            Place::Closing { .. } => self.frontiers as u32,
        }
    }

    /// The disk that `good` blocks make: without the spare blocks and without the share that is
    /// to be kept of the others. So a small chip has as much room for pages that died as a large
    /// one, in proportion, and collection costs as much.
    ///
    /// # Errors
    /// [`Error::TooFewBlocks`] if they are too few.
    pub(crate) fn disk(&self, good: u32, options: &Options) -> Result<SectorGeometry> {
        let spare = self.spare_blocks();
        let Some(filled @ 1..) = good.checked_sub(spare) else {
            return Err(Error::TooFewBlocks { have: good, need: spare + 1 });
        };
        let most = u64::from(filled) * u64::from(self.data_pages() - self.slack());
        let pages = u64::from(filled) * u64::from(self.most_data_pages());
        let kept = (pages as f64 * options.over_provision()) as u64;
        let wanted = pages.saturating_sub(kept);
        SectorGeometry::new(self.geometry.page_bytes(), wanted.clamp(1, most))
    }
}

#[cfg(test)]
mod tests {
    use device::{Error, Geometry};

    use super::{Place, Shape};
    use crate::Options;

    fn shape(page: u32, pages: u32, spare: u32) -> Shape {
        let geometry = Geometry::new(page, pages, 64).unwrap().with_spare(spare).unwrap();
        Shape::new(geometry, 3).unwrap()
    }

    #[test]
    fn metadata_goes_to_the_spare_area_if_it_has_room() {
        assert_eq!(shape(512, 32, 16).place, Place::Spare);
        assert_eq!(shape(512, 32, 15).place, Place::Closing { group: 30 });
        assert_eq!(shape(512, 128, 0).place, Place::Closing { group: 60 });
        assert_eq!(shape(512, 128, 0).data_pages(), 127 - 3);
    }

    #[test]
    fn over_provisioning_comes_beside_what_collection_needs() {
        let shape = shape(2048, 64, 64);
        let sectors = |good, ratio| {
            let options = Options::default().with_over_provision(ratio).unwrap();
            shape.disk(good, &options).map(|disk| disk.sectors())
        };
        assert_eq!(sectors(1000, 0.07), Ok(58_747));
        assert_eq!(sectors(1000, 0.0), Ok((1000 - 13) * 63));
        assert_eq!(sectors(14, 0.07), Ok(60));
        assert_eq!(sectors(13, 0.07), Err(Error::TooFewBlocks { have: 13, need: 14 }));
    }
}
