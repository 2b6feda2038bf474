//! Which entries are in the index at the moment, for drawing one of them.

/// A set of entry numbers from which any one can be drawn in constant time.
///
/// Invariant: the entries below `whole` are all there, and come first, each at its own place;
/// behind them `positions[id - whole]` is the place of `id` in `order`, or `ABSENT`.
#[derive(Clone, Debug, Default)]
pub(super) struct Present {
    whole: u32,
    order: Vec<u32>,
    positions: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl Present {
    /// The set of the first `count` entries, which takes no memory until one of them is taken out.
    pub(super) fn of_first(count: u32) -> Self {
        Present { whole: count, ..Present::default() }
    }

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        // Each is there once, and `ABSENT` never is.
        self.whole + self.order.len() as u32
    }

    /// The place of `id` in `order`.
    fn position(&self, id: u32) -> Option<u32> {
        let behind = id.checked_sub(self.whole)?;
        self.positions.get(behind as usize).copied().filter(|position| *position != ABSENT)
    }

    /// True if `id` is there.
    pub(super) fn contains(&self, id: u32) -> bool {
        id < self.whole || self.position(id).is_some()
    }

    /// Adds `id`; returns false if it was there.
    pub(super) fn insert(&mut self, id: u32) -> bool {
        if self.contains(id) {
            return false;
        }
        let behind = (id - self.whole) as usize;
        if self.positions.len() <= behind {
            self.positions.resize(behind + 1, ABSENT);
        }
        self.positions[behind] = self.order.len() as u32;
        self.order.push(id);
        true
    }

    /// Takes `id` out, if it is there.
    pub(super) fn remove(&mut self, id: u32) {
        if id < self.whole {
            self.list();
        }
        let Some(position) = self.position(id) else { return };
        self.order.swap_remove(position as usize);
        if let Some(moved) = self.order.get(position as usize) {
            self.positions[(*moved - self.whole) as usize] = position;
        }
        self.positions[(id - self.whole) as usize] = ABSENT;
    }

    /// Lists the first entries, too.
    fn list(&mut self) {
        let whole = std::mem::take(&mut self.whole);
        let behind = std::mem::take(&mut self.positions);
        let moved = |position: u32| if position == ABSENT { ABSENT } else { whole + position };
        self.positions = (0..whole).chain(behind.into_iter().map(moved)).collect();
        self.order.splice(0..0, 0..whole);
    }

    /// The entry at `place`, which is below `len`.
    pub(super) fn at(&self, place: u32) -> u32 {
        match place.checked_sub(self.whole) {
            Some(behind) => self.order[behind as usize],
            None => place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Present;
    use std::collections::BTreeSet;

    #[test]
    fn it_holds_what_a_set_holds() {
        for (first, removed_from) in [(0, 0), (100, 100), (100, 0)] {
            holds_what_a_set_holds(first, removed_from);
        }
    }

    /// Begins with the first entries, and takes out none below `removed_from`.
    fn holds_what_a_set_holds(first: u32, removed_from: u32) {
        let mut present = Present::of_first(first);
        let mut set: BTreeSet<u32> = (0..first).collect();
        let mut state = 1_u32;
        for _ in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let id = (state >> 8) % 300;
            if state >> 31 == 0 {
                assert_eq!(present.insert(id), set.insert(id));
            } else if id >= removed_from {
                present.remove(id);
                set.remove(&id);
            }
            assert_eq!(present.contains(id), set.contains(&id));
            assert_eq!(present.len() as usize, set.len());
        }
        let drawn: BTreeSet<u32> = (0..present.len()).map(|place| present.at(place)).collect();
        assert_eq!(drawn, set);
    }
}
