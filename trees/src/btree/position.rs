//! A place between two entries of a tree, from which reading goes on to either neighbour.

use core::ops::Bound;

use device::Cause;
use index::{Direction, Result};

use super::{At, NodeSource, Path, Toward, descend};

/// Where reading stands. It is plain data: whoever asks for the next entry brings the source.
pub(crate) struct Position<I> {
    root: At<I>,
    cause: Cause,
    path: Path<I>,
    /// Entries of the leaf, and how many of them are before this position.
    count: usize,
    place: usize,
    /// Leaves that there may be yet.
    leaves_left: u64,
}

impl<I: super::NodeId> Position<I> {
    /// The place where reading in `direction` starts.
    ///
    /// # Errors
    /// A node is damaged, or the device failed.
    pub(crate) fn seek<S: NodeSource<Id = I>>(
        source: &mut S,
        root: At<I>,
        (start, direction): (Bound<&[u8]>, Direction),
        cause: Cause,
    ) -> Result<Self> {
        let toward = match (start, direction) {
            (Bound::Included(key) | Bound::Excluded(key), _) => Toward::Key(key),
            (Bound::Unbounded, Direction::Ascending) => Toward::First,
            (Bound::Unbounded, Direction::Descending) => Toward::Last,
        };
        let mut path = Path::new(root.id);
        let leaf = descend(source, root, toward, cause, &mut path)?;
        let leaves_left = source.nodes_most();
        let node = source.node(At::leaf(leaf), cause)?;
        let count = node.count();
        let place = direction.first_place(start, count, |key| node.search(key));
        Ok(Position { root, cause, path, count, place, leaves_left })
    }

    /// Why it reads.
    pub(crate) const fn cause(&self) -> Cause {
        self.cause
    }

    /// The leaf that it stands in.
    pub(crate) fn leaf(&self) -> I {
        self.path.at(0).id
    }

    /// Writes the leaves behind that in which it stands, below the same node, into `into`, as many
    /// as there are and have room; returns how many.
    ///
    /// # Errors
    /// As [`peek`](Position::peek).
    pub(crate) fn leaves_ahead<S: NodeSource<Id = I>>(
        &self,
        source: &mut S,
        into: &mut [I],
    ) -> Result<usize> {
        if self.root.level == 0 {
            return Ok(0);
        }
        let step = self.path.at(1);
        let parent = source.node(At { id: step.id, level: 1 }, self.cause)?;
        let ahead = step.place() + 1..parent.count();
        let count = ahead.len().min(into.len());
        for (to, place) in into.iter_mut().zip(ahead) {
            *to = parent.child(place);
        }
        Ok(count)
    }

    /// Goes on to a leaf that has a further entry; its place there, `None` if there is none.
    ///
    /// # Errors
    /// A node is damaged, or the device failed.
    pub(crate) fn peek<S: NodeSource<Id = I>>(
        &mut self,
        source: &mut S,
        direction: Direction,
    ) -> Result<Option<usize>> {
        loop {
            match direction {
                Direction::Ascending if self.place < self.count => return Ok(Some(self.place)),
                Direction::Descending if self.place > 0 => return Ok(Some(self.place - 1)),
                _ if !self.next_leaf(source, direction)? => return Ok(None),
                _ => {}
            }
        }
    }

    /// Passes the entry that was peeked at.
    pub(crate) fn pass(&mut self, direction: Direction) {
        match direction {
            Direction::Ascending => self.place += 1,
            Direction::Descending => self.place -= 1,
        }
    }

    /// Goes to the neighbouring leaf; false if this is the last.
    fn next_leaf<S: NodeSource<Id = I>>(
        &mut self,
        source: &mut S,
        direction: Direction,
    ) -> Result<bool> {
        for level in 1..=self.root.level {
            let step = self.path.at(level);
            let node = source.node(At { id: step.id, level }, self.cause)?;
            let (place, toward) = match direction {
                Direction::Ascending if step.place() + 1 < node.count() => {
                    (step.place() + 1, Toward::First)
                }
                Direction::Descending if step.place() > 0 => (step.place() - 1, Toward::Last),
                _ => continue,
            };
            let child = At { id: node.child(place), level: level - 1 };
            // Damaged nodes may share children, and theirs theirs: there would be no end.
            let Some(left) = self.leaves_left.checked_sub(1) else {
                let what = "it and those before it have more children than there are nodes";
                return Err(source.damaged(step.id, what));
            };
            self.leaves_left = left;
            self.path.set(level, step.id, place);
            let leaf = descend(source, child, toward, self.cause, &mut self.path)?;
            self.count = source.node(At::leaf(leaf), self.cause)?.count();
            self.place = match direction {
                Direction::Ascending => 0,
                Direction::Descending => self.count,
            };
            return Ok(true);
        }
        Ok(false)
    }
}
