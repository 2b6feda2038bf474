//! Nodes that deletes left less than half full.
//!
//! Such a node is joined with a neighbour below the same parent, or takes entries from it, as in
//! the B+-tree that all schemes of the paper share. What takes over entries is written anew, as a
//! page: as deltas they would take more.

use alloc::vec::Vec;

use device::Cause;
use store::Width;
use store::node::{self, Codec, Shift};

use super::Ipl;
use super::ground::bad_node;
use super::layout::Delta;
use super::table::NodeId;
use index::Result;

/// Two neighbours below one parent.
#[derive(Clone, Copy, Debug)]
struct Neighbours {
    level: u8,
    parent: NodeId,
    left: NodeId,
    right: NodeId,
}

impl Ipl<'_> {
    /// Fills up the node at `level` of the present way, if it is less than half full; true if it
    /// was joined with a neighbour, so that its parent has a child less.
    pub(super) fn fill_up(&mut self, level: u8) -> Result<bool> {
        let Some(pair) = self.neighbours(level)? else {
            return Ok(false);
        };
        let codec = *self.ground.forms.at(level);
        // The right neighbour stands in `kept`, the key between both in `separator`.
        let left = self.ground.node(pair.left, Cause::Update)?;
        check_neighbours(&codec, (pair, left), &self.kept, &mut self.key)?;
        if codec.joint_bytes(left, &self.kept) <= codec.node_bytes() {
            self.join(pair, &codec)?;
            return Ok(true);
        }
        if let Some(shift) = codec.shift(left, &self.kept) {
            self.borrow(pair, &codec, shift)?;
        }
        Ok(false)
    }

    /// The node at `level` of the present way with a neighbour, if it is less than half full.
    fn neighbours(&mut self, level: u8) -> Result<Option<Neighbours>> {
        let cause = Cause::Update;
        let here = self.way[usize::from(level)].node;
        let forms = self.ground.forms;
        if level + 1 == self.height || !forms.at(level).is_underfull(self.ground.node(here, cause)?)
        {
            return Ok(None);
        }
        let parent = self.way[usize::from(level) + 1];
        let bytes = self.ground.node(parent.node, cause)?;
        let right_place = parent.place.max(1);
        if right_place >= node::count(bytes) {
            return Ok(None);
        }
        let (left, right) = (forms.child(bytes, right_place - 1), forms.child(bytes, right_place));
        forms.inner.key(bytes, right_place).copy_to(&mut self.separator);
        device::copy(&mut self.kept, self.ground.node(right, cause)?);
        Ok(Some(Neighbours { level, parent: parent.node, left, right }))
    }

    fn join(&mut self, pair: Neighbours, codec: &Codec) -> Result<()> {
        let Ipl { ground, kept, .. } = self;
        ground.rewrite(pair.left, Cause::Update, |left, scratch| {
            codec.join(left, kept, scratch);
        })?;
        self.drop_separator(pair)?;
        self.ground.free(pair.right);
        let nodes = &mut self.levels[usize::from(pair.level)];
        *nodes = nodes.saturating_sub(1);
        Ok(())
    }

    fn drop_separator(&mut self, pair: Neighbours) -> Result<()> {
        let separator = core::mem::take(&mut self.separator);
        let dropped =
            self.ground.change(pair.parent, Delta::Delete { key: &separator }, Cause::Update);
        self.separator = separator;
        dropped.map(|_| ())
    }

    /// Moves entries between two neighbours, if the parent has room for the new separator.
    fn borrow(&mut self, pair: Neighbours, codec: &Codec, shift: Shift) -> Result<()> {
        let key_width = self.ground.forms.shape.key;
        let left = self.ground.node(pair.left, Cause::Update)?;
        let (before, first) = match shift {
            Shift::Right(place) => (codec.key(left, place - 1), codec.key(left, place)),
            Shift::Left(moved) => (codec.key(&self.kept, moved - 1), codec.key(&self.kept, moved)),
        };
        first.copy_to(&mut self.key);
        if pair.level == 0 && key_width == Width::Variable {
            let whole = before.prefix.iter().chain(before.suffix);
            let shared = self.key.iter().zip(whole).take_while(|(one, other)| one == other);
            let shared = shared.count();
            self.key.truncate(shared + 1);
        }
        if !self.has_room_for_key(pair.parent)? {
            return Ok(());
        }
        self.drop_separator(pair)?;
        core::mem::swap(&mut self.separator, &mut self.key);
        self.adopt(pair.parent, pair.right, Cause::Update)?;
        let Ipl { ground, kept, .. } = self;
        ground.rewrite(pair.left, Cause::Update, |left, scratch| {
            codec.apply_shift(left, kept, shift, scratch);
        })?;
        ground.rewrite(pair.right, Cause::Update, |right, _| device::copy(right, kept))
    }

    /// True if `self.key` finds room in `parent` in place of another.
    fn has_room_for_key(&mut self, parent: NodeId) -> Result<bool> {
        let inner = self.ground.forms.inner;
        let is_fixed = self.ground.forms.shape.key != Width::Variable;
        let bytes = self.ground.node(parent, Cause::Update)?;
        Ok(is_fixed || inner.has_room(bytes, &self.key, 4))
    }

    /// Makes the root's only child the root, as long as it has only one.
    pub(super) fn lower_root(&mut self) -> Result<()> {
        while self.height > 1 {
            let forms = self.ground.forms;
            let bytes = self.ground.node(self.root, Cause::Update)?;
            if node::count(bytes) != 1 {
                return Ok(());
            }
            let child = forms.child(bytes, 0);
            self.ground.free(self.root);
            self.root = child;
            self.height -= 1;
            self.levels[usize::from(self.height)] = 0;
        }
        Ok(())
    }
}

/// What is joined has to fit together: it may be damaged.
fn check_neighbours(
    codec: &Codec,
    (pair, left): (Neighbours, &[u8]),
    right: &[u8],
    key: &mut Vec<u8>,
) -> Result<()> {
    for (id, bytes) in [(pair.left, left), (pair.right, right)] {
        if node::level(bytes) != pair.level {
            return Err(bad_node(id, "it is at another level").into());
        }
    }
    let Some(last) = node::count(left).checked_sub(1).filter(|_| node::count(right) > 0) else {
        return Ok(());
    };
    codec.key(left, last).copy_to(key);
    if codec.key(right, 0).compare(key).is_le() {
        return Err(bad_node(pair.right, "its keys are not above its left neighbour's").into());
    }
    Ok(())
}
