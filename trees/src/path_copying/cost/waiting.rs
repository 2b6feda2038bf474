//! How many updates wait in the operation buffer, and how many of them are written together.

use device::Geometry;

use super::super::census::growth_of;
use super::super::flush::Flush;
use super::super::make::Choice;
use super::super::policy::Policy;
use super::super::recent::ENTRY_BYTES;
use super::{Levels, room_on};
use index::random_keys::average_bytes;

/// What waits in an operation buffer.
pub(super) struct Waiting {
    updates: f64,
    flush: Flush,
}

impl Waiting {
    /// What waits in `bytes` bytes for the tree that `choice` and `policy` describe: as many
    /// updates as memory has room for, or the chip, on which all have it in the worst case.
    pub(super) fn of(
        choice: &Choice,
        policy: &Policy,
        levels: &Levels,
        (bytes, chip): (u64, Geometry),
    ) -> Self {
        let shape = policy.pages().shape;
        let entry = f64::from(average_bytes(shape.key)) + f64::from(average_bytes(shape.value));
        let held = bytes as f64 / (entry + ENTRY_BYTES as f64);
        let updates = if is_room_for(held as u64, policy, levels, chip) {
            held
        } else {
            let (mut fitting, mut most) = (0, held as u64);
            while most - fitting > 1 {
                let middle = fitting.midpoint(most);
                match is_room_for(middle, policy, levels, chip) {
                    true => fitting = middle,
                    false => most = middle,
                }
            }
            fitting as f64
        };
        Waiting { updates, flush: choice.flush }
    }

    /// The chance that the key of an operation waits, of so many that there are.
    pub(super) fn absorbed(&self, entries: u64) -> f64 {
        (self.updates / entries.max(1) as f64).min(1.0)
    }

    /// Updates that go to one of `leaves` leaves together.
    ///
    /// The oldest of them goes after `t` updates, with what came for its leaf in this time, which
    /// is `t / leaves` on average. A leaf for which something waits has half of that waiting beside
    /// the oldest, and `t / (t + leaves)` of the leaves are such ones. With `x = t / leaves`, and
    /// `w` updates that wait for a leaf on average,
    ///
    /// ```text
    /// w = x (1 + x / 2) / (1 + x)        so        1 + x = w + sqrt(1 + w^2)
    /// ```
    pub(super) fn together(&self, leaves: f64) -> f64 {
        match self.flush {
            Flush::Entry => 1.0,
            Flush::Leaf => {
                let each = self.updates / leaves;
                each + libm::sqrt(1.0 + each * each)
            }
        }
    }

    /// The part of the time between two changes of one of `leaves` leaves that always passes: `x`
    /// of `1 + x`, while the oldest update waits. Until it comes, what passes is at random.
    pub(super) fn regular(&self, leaves: f64) -> f64 {
        1.0 - 1.0 / self.together(leaves)
    }
}

/// True if admission lets so many updates wait for the tree, which does not last.
fn is_room_for(updates: u64, policy: &Policy, levels: &Levels, chip: Geometry) -> bool {
    let mut demand = growth_of(policy, average_bytes(policy.pages().shape.key).into());
    for (held, (nodes, _)) in demand.levels.iter_mut().zip(levels.iter()) {
        *held = nodes as u32;
    }
    let room = room_on(policy, levels.layout.height, chip);
    room.fits_grown(&demand, demand.growth(updates))
}
