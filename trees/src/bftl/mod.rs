//! `bftl`: the B-tree layer over a translation layer of Wu, Chang and Kuo, the baseline of four of
//! the five papers.
//!
//! Changes of nodes wait in a reservation buffer of so many index units. When it is full, the
//! units are packed by node into sectors, which are written anew on any translation layer; the node
//! translation table has the sectors of each node. Where a list would get longer than its most, the
//! node is read and written as a whole instead. All of that is `sector_lists`; the memory that is
//! left caches nodes.
//!
//! # Choices that the papers leave open
//! - A node has as many bytes as fit a sector beside the headers, so that it is one sector after
//!   it was compacted.
//! - A node that splits, or takes over entries of a neighbour, is written as a whole by the next
//!   commit.
//! - Sectors are filled one after the other, first with units, then with whole nodes.
//! - A checkpoint begins with a commit, so its root record has the table and no units.
//! - On a small disk the buffer is smaller, and where room gets rare lists are shorter: see
//!   `sector_lists/tree/room.rs`.

use index::parameters::{Kind, Parameter};
use index::{Options, TreeDescriptor};

use crate::sector_lists::tree::{self, Kindred, list, number, sector};
use crate::sector_lists::{Choices, Mode, UNITS_MOST, Waits};

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = tree::descriptor::<Bftl>(
    "changes of nodes wait, and are packed into sectors: a node is a list of sectors",
    "Wu, Chang and Kuo (2003), as the papers measure it",
);

pub(crate) struct Bftl;

impl Kindred for Bftl {
    const NAME: &'static str = "bftl";
    const SECTOR: &'static str = "sector";
    const IS_SIZED: bool = false;

    const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "reservation",
            about: "index units that wait before they are written; fewer on a small disk",
            kind: Kind::Count(1, UNITS_MOST as u64),
            default: "60",
        },
        list("list", "3"),
        sector(Self::SECTOR),
    ];

    fn choices(options: &Options, _: u32) -> Choices {
        let units = number(options, "reservation", 60, UNITS_MOST.into());
        let waits = Waits::Units(units as u16);
        Choices { list: tree::list_most(options, "list", 3), waits, mode: Mode::Log }
    }
}
