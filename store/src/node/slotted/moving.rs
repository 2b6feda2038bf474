//! Moving entries between slotted nodes: splitting, joining and evening out.

use core::cmp::Ordering;
use core::ops::Range;

use super::super::{NodeKey, Shift, count, set_count, write_u16};
use super::{HEAP, PREFIX, SLOT_BYTES, SLOTS, Slotted};

/// Some entries of a node.
type Run<'n> = (&'n [u8], Range<usize>);

/// What the left and the right node hold after a shift, each as two runs of today's nodes.
fn shifted<'n>(left: &'n [u8], right: &'n [u8], shift: Shift) -> [(Run<'n>, Run<'n>); 2] {
    let (lefts, rights) = (count(left), count(right));
    match shift {
        Shift::Right(place) => {
            [((left, 0..place), (left, 0..0)), ((left, place..lefts), (right, 0..rights))]
        }
        Shift::Left(moved) => {
            [((left, 0..lefts), (right, 0..moved)), ((right, moved..rights), (right, 0..0))]
        }
    }
}

impl Slotted {
    pub(in super::super) fn split_off(
        &self,
        node: &mut [u8],
        place: usize,
        fresh: &mut [u8],
        scratch: &mut [u8],
    ) {
        device::copy(scratch, node);
        let old: &[u8] = scratch;
        self.fill(node, old, 0..place);
        self.fill(fresh, old, place..count(old));
    }

    /// Makes `node` hold these entries of `from` and no others, with the longest prefix.
    fn fill(&self, node: &mut [u8], from: &[u8], places: Range<usize>) {
        let none: Run<'_> = (from, 0..0);
        self.fill_from_two(node, &(from, places), &none);
    }

    /// Makes `node` hold the entries of two runs and no others, with the longest prefix.
    fn fill_from_two(&self, node: &mut [u8], one: &Run<'_>, other: &Run<'_>) {
        self.initialise(node);
        set_count(node, 0);
        let Some((first, last)) = self.ends(one, other) else {
            return;
        };
        let prefix = self.shared(&first, &last);
        let start = self.node_bytes() - prefix;
        for (to, byte) in node[start..].iter_mut().zip(first.bytes()) {
            *to = byte;
        }
        write_u16(node, PREFIX, prefix);
        write_u16(node, HEAP, start);
        self.append(node, one.0, one.1.clone());
        self.append(node, other.0, other.1.clone());
    }

    /// The first and the last key of two runs, if they are not both empty.
    fn ends<'n>(&self, one: &Run<'n>, other: &Run<'n>) -> Option<(NodeKey<'n>, NodeKey<'n>)> {
        let runs = [one, other];
        let first = runs.iter().find(|run| !run.1.is_empty())?;
        let last = runs.iter().rfind(|run| !run.1.is_empty())?;
        Some((self.key(first.0, first.1.start), self.key(last.0, last.1.end - 1)))
    }

    /// Bytes of a node that holds two runs of entries.
    fn bytes_of_two(&self, one: &Run<'_>, other: &Run<'_>) -> usize {
        let Some((first, last)) = self.ends(one, other) else {
            return SLOTS;
        };
        let prefix = self.shared(&first, &last);
        let cells: usize = [one, other]
            .iter()
            .flat_map(|run| run.1.clone().map(|place| (run.0, place)))
            .map(|(node, place)| self.whole_cell_bytes(node, place) + SLOT_BYTES - prefix)
            .sum();
        SLOTS + prefix + cells
    }

    pub(in super::super) fn is_filled_from(
        &self,
        node: &[u8],
        place: usize,
        percent: usize,
    ) -> bool {
        let bytes = self.bytes_of_two(&(node, place..count(node)), &(node, 0..0));
        (bytes - SLOTS) * 100 >= (self.node_bytes() - SLOTS) * percent
    }

    /// Bytes of a cell that would hold the whole key.
    pub(super) fn whole_cell_bytes(&self, node: &[u8], place: usize) -> usize {
        let cell = self.cell(node, place);
        cell.end - cell.suffix + self.length_bytes() + self.prefix_bytes(node)
    }

    pub(in super::super) fn shift(&self, left: &[u8], right: &[u8]) -> Option<Shift> {
        let lefts: Run<'_> = (left, 0..count(left));
        let rights: Run<'_> = (right, 0..count(right));
        let sizes = |run: &Run<'_>| -> usize {
            run.1.clone().map(|place| self.whole_cell_bytes(run.0, place)).sum()
        };
        let half = usize::midpoint(sizes(&lefts), sizes(&rights));
        let mut bytes = 0;
        let mut all = (lefts.1.clone().map(|place| (left, place)))
            .chain(rights.1.clone().map(|place| (right, place)));
        let kept = all.position(|(node, place)| {
            bytes += self.whole_cell_bytes(node, place);
            bytes >= half
        })? + 1;
        let shift = match kept.cmp(&count(left)) {
            Ordering::Less => Shift::Right(kept),
            Ordering::Greater => Shift::Left(kept - count(left)),
            Ordering::Equal => return None,
        };
        let [(left_one, left_two), (right_one, right_two)] = shifted(left, right, shift);
        let fit = self.bytes_of_two(&left_one, &left_two) <= self.node_bytes()
            && self.bytes_of_two(&right_one, &right_two) <= self.node_bytes()
            && !right_one.1.is_empty() | !right_two.1.is_empty();
        fit.then_some(shift)
    }

    pub(in super::super) fn apply_shift(
        &self,
        left: &mut [u8],
        right: &mut [u8],
        shift: Shift,
        scratch: &mut [u8],
    ) {
        match shift {
            Shift::Right(place) => {
                device::copy(scratch, right);
                let moved: Run<'_> = (left, place..count(left));
                self.fill_from_two(right, &moved, &(scratch, 0..count(scratch)));
                device::copy(scratch, left);
                self.fill(left, scratch, 0..place);
            }
            Shift::Left(moved) => {
                device::copy(scratch, left);
                let kept: Run<'_> = (scratch, 0..count(scratch));
                self.fill_from_two(left, &kept, &(right, 0..moved));
                device::copy(scratch, right);
                self.fill(right, scratch, moved..count(scratch));
            }
        }
    }

    pub(in super::super) fn join(&self, left: &mut [u8], right: &mut [u8], scratch: &mut [u8]) {
        if count(left) == 0 {
            self.fill(left, right, 0..count(right));
        } else {
            let prefix = self.joint_prefix(left, right).unwrap_or(0);
            self.rebuild(left, prefix, None, scratch);
            self.append(left, right, 0..count(right));
        }
        self.initialise(right);
        set_count(right, 0);
    }

    /// How many bytes the keys of both nodes share; `None` if both are empty.
    fn joint_prefix(&self, left: &[u8], right: &[u8]) -> Option<usize> {
        match (count(left), count(right)) {
            (0, 0) => None,
            (_, 0) => Some(self.longest_prefix(left, None)),
            (0, _) => Some(self.longest_prefix(right, None)),
            (_, more) => {
                let (first, last) = (self.key(left, 0), self.key(right, more - 1));
                Some(self.shared(&first, &last))
            }
        }
    }

    pub(in super::super) fn joint_bytes(&self, left: &[u8], right: &[u8]) -> usize {
        let prefix = self.joint_prefix(left, right).unwrap_or(0);
        let cells = |node| self.rebuilt_bytes(node, prefix) - prefix;
        SLOTS + (count(left) + count(right)) * SLOT_BYTES + prefix + cells(left) + cells(right)
    }
}
