//! What happened in the histories, so that a test can see that they were no child's play.

use std::fmt;
use std::ops::AddAssign;

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
    /// Recoveries that found updates beyond those acknowledged.
    beyond: "recoveries that found more than was acknowledged",
    /// Events that were neither acknowledged nor found again.
    events_lost: "unacknowledged events lost",
    /// Updates of batches.
    updates: "updates",
    /// Batches of more than one update.
    batches: "batches",
    /// Deletes.
    deletes: "deletes",
    /// Values too long for a node.
    long_values: "long values",
    /// Batches that were refused.
    refused: "refused",
    /// Batches after which the tree had more pages.
    splits: "splits",
    /// Batches after which the tree had fewer pages.
    merges: "merges",
    /// Batches after which the tree had another height.
    heights: "changes of height",
    /// Blocks that were reclaimed.
    reclamations: "blocks reclaimed",
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
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (words, count) in self.counts() {
            writeln!(f, "{count:>10}  {words}")?;
        }
        Ok(())
    }
}
