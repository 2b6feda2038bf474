//! Which entries are in the index at the moment, for drawing one of them.

/// A set of entry numbers from which any one can be drawn in constant time.
///
/// Invariant: `positions[id]` is the place of `id` in `order`, or `ABSENT`.
#[derive(Clone, Debug, Default)]
pub(super) struct Present {
    order: Vec<u32>,
    positions: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl Present {
    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        // Each is there once, and `ABSENT` never is.
        self.order.len() as u32
    }

    /// True if `id` is there.
    pub(super) fn contains(&self, id: u32) -> bool {
        self.positions.get(id as usize).is_some_and(|position| *position != ABSENT)
    }

    /// Adds `id`; returns false if it was there.
    pub(super) fn insert(&mut self, id: u32) -> bool {
        if self.contains(id) {
            return false;
        }
        if self.positions.len() <= id as usize {
            self.positions.resize(id as usize + 1, ABSENT);
        }
        self.positions[id as usize] = self.len();
        self.order.push(id);
        true
    }

    /// Takes `id` out, if it is there.
    pub(super) fn remove(&mut self, id: u32) {
        if !self.contains(id) {
            return;
        }
        let position = self.positions[id as usize];
        self.order.swap_remove(position as usize);
        if let Some(moved) = self.order.get(position as usize) {
            self.positions[*moved as usize] = position;
        }
        self.positions[id as usize] = ABSENT;
    }

    /// The entry at `place`, which is below `len`.
    pub(super) fn at(&self, place: u32) -> u32 {
        self.order[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Present;
    use std::collections::BTreeSet;

    #[test]
    fn it_holds_what_a_set_holds() {
        let mut present = Present::default();
        let mut set = BTreeSet::new();
        let mut state = 1_u32;
        for _ in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let id = (state >> 8) % 300;
            if state >> 31 == 0 {
                assert_eq!(present.insert(id), set.insert(id));
            } else {
                present.remove(id);
                set.remove(&id);
            }
            assert_eq!(present.len() as usize, set.len());
        }
        let drawn: BTreeSet<u32> = (0..present.len()).map(|place| present.at(place)).collect();
        assert_eq!(drawn, set);
    }
}
