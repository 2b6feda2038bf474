//! `flashdb`: the self-tuning B+-tree of Nath and Kansal (FlashDB, MSR-TR-2006-168).
//!
//! A node is in log mode or in disk mode. In log mode what changes of it waits in the log buffer,
//! with what changes of other nodes, and a full buffer is written to one sector; the node is read
//! from all sectors that hold entries of it. In disk mode it is a sector of its own, written as a
//! whole. Each node takes the mode in which it costs less, by `SWITCHMODE`, which knows what
//! reading and writing a sector costs on the disk. All of that is `sector_lists`: `switching`
//! decides, and `pages` are the nodes in disk mode.
//!
//! # Choices that the paper leaves open
//! - A node fills a sector of its own, which may be several of the device: as many as are best by
//!   what the device costs, or one, as on chips. So k_s, the sectors of a node in disk mode, is 1.
//! - The paper has no cache of nodes. Here one is read when it is missing in the cache, and a node
//!   in disk mode is written when it leaves it: these are the operations that are counted.
//! - A node that is due to go to disk mode goes there before the next update, eight of them at
//!   once: so whoever only reads writes nothing.
//! - A list has at most five sectors before the node is compacted, so three on average, which is
//!   what the paper reckons with.

use index::parameters::{Kind, Parameter};
use index::{Options, TreeDescriptor};

use crate::sector_lists::tree::{self, Kindred, list, sector};
use crate::sector_lists::{Choices, LOG_SECTORS_MOST, Mode, Waits};

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = tree::descriptor::<FlashDb>(
    "each node is logged or written as a whole, as it costs less on the device",
    "Nath and Kansal: FlashDB: Dynamic Self-tuning Database for NAND Flash (2006)",
);

pub(crate) struct FlashDb;

impl Kindred for FlashDb {
    const NAME: &'static str = "flashdb";
    const SECTOR: &'static str = "node";
    const IS_SIZED: bool = true;

    const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "mode",
            about: "whether all nodes are logged, or written as a whole, or each as it costs less",
            kind: Kind::Word(&["self-tuning", "log", "disk"]),
            default: "self-tuning",
        },
        Parameter {
            name: "log-buffer",
            about: "bytes that are logged before they are written, in whole sectors; one if absent",
            kind: Kind::Bytes,
            default: "",
        },
        Parameter {
            name: "counter",
            about: "whether SWITCHMODE's counter stops at zero, or runs below as it is printed",
            kind: Kind::Word(&["clamped", "printed"]),
            default: "clamped",
        },
        Parameter {
            name: "split-off",
            about: "mode in which a node begins that is split off: that of the paper, which is \
                    log, or that of the node from which it is split",
            kind: Kind::Word(&["log", "alike"]),
            default: "log",
        },
        list("compaction", "5"),
        sector(Self::SECTOR),
    ];

    fn choices(options: &Options, sector: u32) -> Choices {
        let is_printed = options.settings.word("counter") == Some("printed");
        let splits_alike = options.settings.word("split-off") == Some("alike");
        let mode = match options.settings.word("mode") {
            Some("log") => Mode::Log,
            Some("disk") => Mode::Disk,
            _ => Mode::SelfTuning { is_printed, splits_alike },
        };
        let bytes = options.settings.number("log-buffer").unwrap_or(1);
        let sectors = bytes.div_ceil(u64::from(sector.max(1))).clamp(1, LOG_SECTORS_MOST.into());
        let waits = Waits::Sectors(sectors as u8);
        Choices { list: tree::list_most(options, "compaction", 5), waits, mode }
    }
}
