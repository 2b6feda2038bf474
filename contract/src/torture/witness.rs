//! What happened in the histories, so that a test can see that they were no child's play.

use std::fmt;
use std::ops::{AddAssign, Sub};

macro_rules! witness {
    ($($(#[$about:meta])* $name:ident: $words:literal,)*) => {
        /// How often what happened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Witness {
            $($(#[$about])* pub $name: u64,)*
        }

        impl Witness {
            /// Every count with the words for it.
            #[must_use]
            pub fn counts(&self) -> Vec<(&'static str, u64)> {
                vec![$(($words, self.$name)),*]
            }
        }

        impl AddAssign for Witness {
            fn add_assign(&mut self, other: Witness) {
                $(self.$name += other.$name;)*
            }
        }

        impl Sub for Witness {
            type Output = Witness;

            fn sub(self, earlier: Witness) -> Witness {
                Witness { $($name: self.$name - earlier.$name,)* }
            }
        }
    };
}

witness! {
    /// Cuts of the power.
    cuts: "cuts",
    /// Cuts while an index was being made.
    cuts_while_making: "cuts while an index was made",
    /// Cuts while an index was being opened.
    recovery_cuts: "cuts during recovery",
    /// Indexes that were opened after a cut, and compared.
    recoveries: "recoveries",
    /// Recoveries that put images back.
    restored: "recoveries that put images back",
    /// Recoveries that replayed updates.
    replayed: "recoveries that replayed the journal",
    /// Recoveries from a checkpoint inside a batch.
    resumed: "recoveries from inside a batch",
    /// Checkpoints inside batches and in replays.
    within: "checkpoints inside a batch",
    /// Cuts while a file was made longer.
    cuts_growing: "cuts while a file grew",
    /// Cuts while a file was made shorter.
    cuts_shrinking: "cuts while a file shrank",
    /// Cuts in the midst of a batch of more than one update.
    cuts_in_batches: "cuts inside a batch",
    /// Cuts while runs were merged, with those that were written above them.
    cuts_in_merges: "cuts inside a merge of runs",
    /// Cuts while a batch with a value too long for a node was written.
    cuts_in_long_values: "cuts while a long value was written",
    /// Those of them that came when pages of the value stood there, and nothing told of them.
    cuts_before_record: "cuts between a long value's pages and what makes them last",
    /// Recoveries that found updates beyond those acknowledged.
    beyond: "recoveries that found more than was acknowledged",
    /// Events that were neither acknowledged nor found again.
    events_lost: "unacknowledged events lost",
    /// Updates of batches.
    updates: "updates",
    /// Batches of more than one update.
    batches: "batches",
    /// Steps that were made before a batch.
    prepared: "merges and flushes before a batch",
    /// Keys that were looked up in the midst of them.
    looked_up: "lookups in the midst of them",
    /// Deletes.
    deletes: "deletes",
    /// Values too long for a node.
    long_values: "long values",
    /// Values too long for one page that names their pages.
    longest_values: "values too long for one index page",
    /// Batches and checkpoints that were refused for want of room.
    refused: "refused for want of room",
    /// Batches that were refused since one change of them is impossible.
    impossible: "refused since impossible",
    /// Batches that were refused since the journal is shorter.
    longer_than_journal: "refused since longer than the journal",
    /// Sessions after which nothing more was taken, since the device failed a request.
    failed_requests: "sessions broken off by a failed request",
    /// Batches after which the tree had more pages.
    splits: "splits",
    /// Batches after which the tree had fewer pages.
    merges: "merges",
    /// Actions in which nodes went, since nothing was left in them.
    emptied: "nodes emptied",
    /// Batches after which the tree had another height.
    heights: "changes of height",
    /// Blocks that were reclaimed.
    reclamations: "blocks reclaimed",
    /// Batches in which all pages of a generation were reclaimed.
    generations: "generations reclaimed",
    /// Syncs.
    syncs: "syncs",
    /// Checkpoints without a name that were asked for.
    checkpoints: "checkpoints asked for",
    /// Checkpoints that an update forced.
    forced: "checkpoints that an update forced",
    /// Checkpoints with a name.
    named: "named checkpoints",
    /// Rollbacks.
    rollbacks: "rollbacks",
    /// Names forgotten.
    forgotten: "checkpoints forgotten",
    /// Indexes that were closed and used again.
    closes: "closes",
    /// Devices that were used.
    devices: "devices",
    /// Devices that lost too many blocks.
    worn_out: "devices worn out",
    /// Short histories that were cut at every operation.
    histories: "histories cut at every operation",
    /// Short histories that were cut and contain, each of them, everything that [`Witness::lacks`]
    /// names.
    complete: "histories that contain a split, a merge or an emptied node (where trees have them), \
               a reclamation (on chips), a checkpoint, a delete and a batch",
}

/// What a complete history contains; reclamations are wanted on chips only, merges, emptied nodes
/// and generations where a tree has them.
const WANTED: [&str; 8] = [
    "splits",
    MERGES,
    EMPTIED,
    "blocks reclaimed",
    GENERATIONS,
    "checkpoints asked for",
    "deletes",
    "batches",
];

/// What only trees come to that balance their nodes.
pub(super) const MERGES: &str = "merges";

/// What only trees come to whose nodes stay until they are empty.
pub(super) const EMPTIED: &str = "nodes emptied";

/// What only trees come to that reclaim all pages at once.
pub(super) const GENERATIONS: &str = "generations reclaimed";

impl Witness {
    /// What a history would have to contain as well to be complete: a split, a merge, an
    /// emptied node, a reclamation, a checkpoint, a delete and a batch, without those that are
    /// `impossible` for its tree or device.
    #[must_use]
    pub fn lacks(&self, impossible: &[&str]) -> Vec<&'static str> {
        let count =
            |wanted: &str| self.counts().iter().find(|(words, _)| *words == wanted).copied();
        let is_lacking = |wanted: &&str| {
            !impossible.contains(wanted) && count(wanted).is_none_or(|(_, count)| count == 0)
        };
        WANTED.into_iter().filter(is_lacking).collect()
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (words, count) in self.counts() {
            writeln!(f, "{count:>10}  {words}")?;
        }
        Ok(())
    }
}
