//! The path from the root to a leaf, and what stands at its end.

use device::Cause;
use index::{Result, read_piece};

use super::{At, NodeSource};

/// The most nodes on a path: with two children a node, more than 32 bits of pages could fill.
pub(crate) const HEIGHT_MOST: usize = 32;

/// A node on a path; in an inner node, the place of the child that the path goes on with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<I> {
    pub(crate) id: I,
    place: u32,
}

impl<I> Step<I> {
    pub(crate) const fn place(&self) -> usize {
        self.place as usize
    }
}

/// The nodes on the path to a leaf, by level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<I> {
    steps: [Step<I>; HEIGHT_MOST],
    is_rightmost: bool,
}

impl<I: Copy> Path<I> {
    pub(crate) const fn new(root: I) -> Self {
        Path { steps: [Step { id: root, place: 0 }; HEIGHT_MOST], is_rightmost: true }
    }

    /// The step at `level`.
    #[inline]
    pub(crate) const fn at(&self, level: u8) -> Step<I> {
        self.steps[level as usize % HEIGHT_MOST]
    }

    #[inline]
    pub(crate) fn set(&mut self, level: u8, id: I, place: usize) {
        self.steps[usize::from(level) % HEIGHT_MOST] = Step { id, place: place as u32 };
    }

    /// A descent from the root begins.
    pub(crate) fn begin(&mut self) {
        self.is_rightmost = true;
    }

    /// True if the descent from the root went to the last child of every node.
    pub(crate) const fn is_rightmost(&self) -> bool {
        self.is_rightmost
    }
}

/// Where a descent turns to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Toward<'k> {
    /// The leaf where this key is or belongs.
    Key(&'k [u8]),
    /// The first leaf.
    First,
    /// The last leaf.
    Last,
}

/// Goes down from the node `at` to a leaf, and keeps the path.
///
/// # Errors
/// A node is damaged, or the device failed.
pub(crate) fn descend<S: NodeSource>(
    source: &mut S,
    mut at: At<S::Id>,
    toward: Toward<'_>,
    cause: Cause,
    path: &mut Path<S::Id>,
) -> Result<S::Id> {
    loop {
        let node = source.node(at, cause)?;
        if at.level == 0 {
            path.set(0, at.id, 0);
            return Ok(at.id);
        }
        let Some(last) = node.count().checked_sub(1) else {
            return Err(source.damaged(at.id, "it has no children"));
        };
        let place = match toward {
            Toward::First => 0,
            Toward::Last => last,
            Toward::Key(key) => node.search_child(key),
        };
        let child = node.child(place);
        path.is_rightmost &= place == last;
        path.set(at.level, at.id, place);
        at = At { id: child, level: at.level - 1 };
    }
}

/// Reads the value of `key` from byte `offset` on; returns its whole length.
///
/// # Errors
/// A node or the value is damaged, or the device failed.
pub(crate) fn read<S: NodeSource>(
    source: &mut S,
    root: At<S::Id>,
    key: &[u8],
    (offset, into): (u32, &mut [u8]),
) -> Result<Option<u32>> {
    let mut at = root;
    loop {
        let node = source.node(at, Cause::Lookup)?;
        if at.level == 0 {
            return match node.search(key) {
                Ok(place) => read_stored(source, at.id, place, (offset, into)).map(Some),
                Err(_) => Ok(None),
            };
        }
        if node.count() == 0 {
            return Err(source.damaged(at.id, "it has no children"));
        }
        at = At { id: node.child(node.search_child(key)), level: at.level - 1 };
    }
}

/// Reads the value at `place` of a leaf from byte `offset` on; returns its whole length.
///
/// # Errors
/// The value is damaged, or the device failed.
pub(crate) fn read_stored<S: NodeSource>(
    source: &mut S,
    leaf: S::Id,
    place: usize,
    (offset, into): (u32, &mut [u8]),
) -> Result<u32> {
    let value = source.node(At::leaf(leaf), Cause::Lookup)?.value(place);
    let Some(long) = value.as_long() else {
        return Ok(read_piece(value.bytes(), offset, into));
    };
    source.read_long(long, offset, into)?;
    Ok(long.bytes())
}
