//! The B+-tree over nodes: descents, puts with splits, deletes.

use device::Cause;
use store::{LEVELS_MOST, node};

use super::Ipl;
use super::ground::bad_node;
use super::layout::Delta;
use super::table::NodeId;
use index::Result;

/// One node on the way to a leaf; in an inner node, the place of the child that it goes on with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) node: NodeId,
    pub(super) place: usize,
}

/// Where a descent turns to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Toward<'k> {
    /// The leaf where this key is or belongs.
    Key(&'k [u8]),
}

impl Ipl<'_> {
    /// Goes down from `node` at `level` to a leaf, and keeps the way.
    pub(super) fn descend(
        &mut self,
        mut node: NodeId,
        mut level: u8,
        toward: Toward<'_>,
        cause: Cause,
    ) -> Result<NodeId> {
        loop {
            let forms = self.ground.forms;
            let bytes = self.ground.node(node, cause)?;
            if node::level(bytes) != level {
                return Err(bad_node(node, "it is at another level").into());
            }
            if level == 0 {
                self.way[0] = Step { node, place: 0 };
                return Ok(node);
            }
            let Some(last) = node::count(bytes).checked_sub(1) else {
                return Err(bad_node(node, "it has no children").into());
            };
            let place = match toward {
                Toward::Key(key) => {
                    forms.inner.search(bytes, key).unwrap_or_else(|place| place.saturating_sub(1))
                }
            };
            let child = forms.child(bytes, place);
            self.is_rightmost &= place == last;
            self.way[usize::from(level)] = Step { node, place };
            node = child;
            level -= 1;
        }
    }

    pub(super) fn descend_to(&mut self, toward: Toward<'_>, cause: Cause) -> Result<NodeId> {
        self.is_rightmost = true;
        self.descend(self.root, self.height - 1, toward, cause)
    }

    pub(super) fn put(&mut self, key: &[u8], value: &[u8], cause: Cause) -> Result<()> {
        loop {
            let leaf = self.descend_to(Toward::Key(key), cause)?;
            let codec = self.ground.forms.leaf;
            let bytes = self.ground.node(leaf, cause)?;
            let found = codec.search(bytes, key);
            let is_append = found == Err(node::count(bytes)) && self.is_rightmost;
            let is_filled = is_append
                && cause == Cause::Load
                && codec.is_filled(bytes, self.fill_percent)
                && node::count(bytes) > 1;
            if !is_filled && self.ground.change(leaf, Delta::Put { key, value }, cause)? {
                self.entries = self.entries.saturating_add(u64::from(found.is_err()));
                return Ok(());
            }
            if is_filled {
                self.begin_right(key, cause)?;
            } else {
                self.split(0, cause)?;
            }
        }
    }

    /// Begins an empty leaf to the right of the last one, for `key` and those behind it.
    fn begin_right(&mut self, key: &[u8], cause: Cause) -> Result<()> {
        if self.height == 1 {
            self.grow(cause)?;
        }
        self.separator.clear();
        self.separator.extend_from_slice(key);
        let parent = self.way[1].node;
        let inner = self.ground.forms.inner;
        let bytes = self.ground.node(parent, cause)?;
        if !inner.has_room(bytes, &self.separator, 4) {
            return self.split(1, cause);
        }
        self.ground.forms.leaf.initialise(&mut self.kept, 0);
        let right = self.ground.give_birth_of(&self.kept, cause)?;
        self.levels[0] += 1;
        self.adopt(parent, right, cause)
    }

    /// Splits the node at `level` of the present way, or, where its parent has no room for one more
    /// child, a node above it. The way has to be walked again.
    fn split(&mut self, level: u8, cause: Cause) -> Result<()> {
        if level + 1 == self.height {
            self.grow(cause)?;
        }
        let (left, parent) = (self.way[usize::from(level)].node, self.way[usize::from(level) + 1]);
        let (codec, key_width) = (*self.ground.forms.at(level), self.ground.forms.shape.key);
        let bytes = self.ground.node(left, cause)?;
        if node::count(bytes) < 2 {
            return Err(bad_node(left, "it is full with one entry").into());
        }
        let place = codec.middle(bytes);
        codec.key(bytes, place).copy_to(&mut self.key);
        self.separator.clear();
        self.separator.extend_from_slice(&self.key);
        if level == 0 && key_width == store::Width::Variable {
            let before = codec.key(bytes, place - 1);
            let whole = before.prefix.iter().chain(before.suffix);
            let shared = self.separator.iter().zip(whole).take_while(|(a, b)| a == b).count();
            self.separator.truncate(shared + 1);
        }
        let inner = self.ground.forms.inner;
        let bytes = self.ground.node(parent.node, cause)?;
        if !inner.has_room(bytes, &self.separator, 4) {
            return self.split(level + 1, cause);
        }
        // What is cut off stands in `fresh`.
        let key = core::mem::take(&mut self.key);
        let cut = self.ground.change(left, Delta::Cut { key: &key }, cause);
        self.key = key;
        cut?;
        self.keep_fresh();
        let right = self.ground.give_birth_of(&self.kept, cause)?;
        self.levels[usize::from(level)] += 1;
        self.adopt(parent.node, right, cause)
    }

    /// What was cut off must not be worked in while room is made for it.
    fn keep_fresh(&mut self) {
        device::copy(&mut self.kept, &self.ground.fresh);
    }

    /// Gives the root a parent.
    fn grow(&mut self, cause: Cause) -> Result<()> {
        if usize::from(self.height) + 1 >= LEVELS_MOST {
            return Err(bad_node(self.root, "the tree is higher than its nodes allow").into());
        }
        self.ground.forms.inner.initialise(&mut self.kept, self.height);
        let root = self.ground.give_birth_of(&self.kept, cause)?;
        self.levels[usize::from(self.height)] = 1;
        self.lowest_key();
        self.adopt(root, self.root, cause)?;
        self.way[usize::from(self.height)] = Step { node: root, place: 0 };
        self.root = root;
        self.height += 1;
        Ok(())
    }

    /// Replaces the separator by the lowest key there is.
    fn lowest_key(&mut self) {
        self.separator.clear();
        if let store::Width::Fixed(bytes) = self.ground.forms.shape.key {
            self.separator.resize(usize::from(bytes), 0);
        }
    }

    /// Makes `child` a child of `parent`, which has room, from `self.separator` on.
    pub(super) fn adopt(&mut self, parent: NodeId, child: NodeId, cause: Cause) -> Result<()> {
        let value = child.0.to_le_bytes();
        let separator = core::mem::take(&mut self.separator);
        let delta = Delta::Put { key: &separator, value: &value };
        let done = self.ground.change(parent, delta, cause);
        self.separator = separator;
        if done? { Ok(()) } else { Err(bad_node(parent, "it has no room").into()) }
    }

    pub(super) fn delete(&mut self, key: &[u8]) -> Result<()> {
        let cause = Cause::Update;
        let leaf = self.descend_to(Toward::Key(key), cause)?;
        let codec = self.ground.forms.leaf;
        if codec.search(self.ground.node(leaf, cause)?, key).is_err() {
            return Ok(());
        }
        let what = "the root counts fewer entries than there are";
        let entries = self.entries.checked_sub(1).ok_or(bad_node(leaf, what))?;
        self.ground.change(leaf, Delta::Delete { key }, cause)?;
        self.entries = entries;
        let mut level = 0;
        while self.fill_up(level)? {
            level += 1;
        }
        self.lower_root()
    }
}
