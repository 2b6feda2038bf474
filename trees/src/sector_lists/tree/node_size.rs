//! The best size of a node (FlashDB, section 5.2.2): the longer a node, the fewer levels there are,
//! and the more each costs to read and write.

use device::DiskCosts;
use index::random_keys::average_bytes;
use store::EntryShape;
use store::node::NODE_BYTES_MOST;

/// Entries that are reckoned with, and how full nodes are of them, as in figure 7.
const ENTRIES: f64 = 30_000.0;
const FILLED: f64 = 0.7;

/// Sizes from a sector of the device on, each twice as long as the one before.
fn sizes(sector: u32) -> impl Iterator<Item = u32> {
    let double = |size: &u32| size.checked_mul(2).filter(|size| *size <= NODE_BYTES_MOST);
    core::iter::successors(Some(sector), double)
}

/// How much closer to a leaf a node brings a search, for what a node costs on an update's path: all
/// are read, and the last is written.
fn utility_over_cost(costs: &DiskCosts, entry: f64, (size, sector): (u32, u32)) -> f64 {
    let pages = size / sector.max(1);
    let time = |cost: &device::Cost| cost.charge(size.into(), pages.into()).time_ns as f64;
    let utility = libm::log2((f64::from(size) * FILLED / entry).max(2.0));
    let height = libm::log2(ENTRIES) / utility;
    let (read, write) = (time(&costs.read.random), time(&costs.write.random));
    utility * (height + 1.0) / (height * read + write)
}

/// The size of the best ratio, among those that `fit`; a sector where the device does not tell what
/// it costs.
pub(super) fn best(
    costs: Option<DiskCosts>,
    shape: EntryShape,
    sector: u32,
    fits: impl Fn(u32) -> bool,
) -> u32 {
    let is_known = |cost: &device::Cost| cost.charge(sector.into(), 1).time_ns > 0;
    let known = |it: &DiskCosts| is_known(&it.read.random) && is_known(&it.write.random);
    let Some(costs) = costs.filter(known) else {
        return sector;
    };
    let entry = f64::from(average_bytes(shape.key)) + f64::from(average_bytes(shape.value));
    let ratio = |size: u32| utility_over_cost(&costs, entry.max(1.0), (size, sector));
    // Of equal ones the smallest.
    sizes(sector)
        .skip(1)
        .filter(|size| fits(*size))
        .fold(sector, |best, size| if ratio(size) > ratio(best) { size } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::{Access, Cost, Linear};

    /// Table 1 and equations 1 to 4: a page in microseconds or microjoules, and each behind it.
    fn costs([read, read_next]: [f64; 2], [write, write_next]: [f64; 2]) -> DiskCosts {
        let access = |first: f64, next: f64| {
            let of = |part: f64| (part * 1e3) as u64;
            let time = Linear { per_page: of(next), ..Linear::fixed(of(first - next)) };
            let cost = Cost { time, energy: None };
            Access { random: cost, sequential: cost }
        };
        DiskCosts { read: access(read, read_next), write: access(write, write_next) }
    }

    fn best_of(costs: &DiskCosts) -> u32 {
        best(Some(*costs), EntryShape::fixed(8, 8), 512, |_| true)
    }

    #[test]
    fn half_a_kilobyte_is_best_on_chips_and_four_on_a_compact_flash_card() {
        for chip in [costs([15.0, 15.0], [200.0, 200.0]), costs([969.0, 969.0], [1081.0, 1081.0])] {
            assert_eq!(best_of(&chip), 512);
        }
        // By time and by energy.
        assert_eq!(best_of(&costs([18_000.0, 558.8], [29_000.0, 564.3])), 4096);
        assert_eq!(best_of(&costs([2976.94, 92.41], [6266.5, 121.93])), 4096);
    }

    #[test]
    fn what_does_not_fit_is_not_chosen() {
        let card = costs([18_000.0, 558.8], [29_000.0, 564.3]);
        let shape = EntryShape::fixed(8, 8);
        assert_eq!(best(Some(card), shape, 512, |size| size <= 1024), 1024);
        assert_eq!(best(Some(card), shape, 512, |_| false), 512);
        assert_eq!(best(None, shape, 512, |_| true), 512);
    }
}
