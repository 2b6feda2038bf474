//! Verifying what every B+-tree keeps: order, bounds, levels, numbers of nodes and entries.

use alloc::vec::Vec;
use core::fmt::Display;

use device::Cause;
use index::Result;

use super::{At, HEIGHT_MOST, Node, NodeId, NodeSource};

/// The keys that a node may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyBounds<'k> {
    pub(crate) lower: &'k [u8],
    /// Keys are below this; `None` at the right edge.
    pub(crate) upper: Option<&'k [u8]>,
}

/// What a tree keeps beside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The first key of an inner node is its parent's separator; without it, what is below the
    /// first key is in the first child.
    pub(crate) has_exact_separators: bool,
    /// Nodes are half full, except at the right edge.
    pub(crate) is_half_full: bool,
    /// The root has two children or more, or is a leaf.
    pub(crate) has_branching_root: bool,
}

/// Who looks further at each node.
pub(crate) trait Inspector<S: NodeSource> {
    /// Called for each node whose own order is right, or was told of.
    ///
    /// # Errors
    /// The device failed. Damage is a finding.
    fn inspect(
        &mut self,
        source: &mut S,
        at: At<S::Id>,
        bounds: &KeyBounds<'_>,
        finding: &mut dyn FnMut(&dyn Display),
    ) -> Result<()>;
}

impl<S: NodeSource> Inspector<S> for () {
    fn inspect(
        &mut self,
        _: &mut S,
        _: At<S::Id>,
        _: &KeyBounds<'_>,
        _: &mut dyn FnMut(&dyn Display),
    ) -> Result<()> {
        Ok(())
    }
}

/// What a walk over a tree counted.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) nodes: u64,
    /// Nodes of each level, leaves first.
    pub(crate) levels: [u32; HEIGHT_MOST],
    pub(crate) entries: u64,
}

impl Counted {
    /// Compares it with what is known: the nodes of the table, those of each level, the entries.
    pub(crate) fn compare(
        &self,
        (live, levels, known): (u64, &[u32], u64),
        finding: &mut dyn FnMut(&dyn Display),
    ) {
        let nodes = self.nodes;
        if nodes != live {
            finding(&format_args!("the table has {live} nodes, but the tree {nodes}"));
        }
        for (level, (known, found)) in levels.iter().zip(&self.levels).enumerate() {
            if known != found {
                finding(&format_args!(
                    "the root counts {known} nodes at level {level}, but the tree has {found}"
                ));
            }
        }
        self.compare_entries(known, finding);
    }

    /// Compares the entries with those that the root counts.
    pub(crate) fn compare_entries(&self, known: u64, finding: &mut dyn FnMut(&dyn Display)) {
        let found = self.entries;
        if known != found {
            finding(&format_args!("the root counts {known} entries, but the leaves hold {found}"));
        }
    }
}

struct Walk<'w, S, N> {
    source: &'w mut S,
    inspector: &'w mut N,
    rules: Rules,
    root_level: u8,
    counted: Counted,
    finding: &'w mut dyn FnMut(&dyn Display),
}

/// Walks over all nodes below `root`, whose keys are not below `lowest`, and tells what is wrong.
///
/// # Errors
/// The device failed. Damage is a finding.
pub(crate) fn check<S: NodeSource, N: Inspector<S>>(
    (source, root): (&mut S, At<S::Id>),
    lowest: &[u8],
    rules: Rules,
    inspector: &mut N,
    finding: &mut dyn FnMut(&dyn Display),
) -> Result<Counted> {
    let counted = Counted { nodes: 0, levels: [0; HEIGHT_MOST], entries: 0 };
    let root_level = root.level;
    let mut walk = Walk { source, inspector, rules, root_level, counted, finding };
    walk.subtree(root, &KeyBounds { lower: lowest, upper: None })?;
    Ok(walk.counted)
}

impl<S: NodeSource, N: Inspector<S>> Walk<'_, S, N> {
    fn subtree(&mut self, at: At<S::Id>, bounds: &KeyBounds<'_>) -> Result<()> {
        self.counted.nodes += 1;
        self.counted.levels[usize::from(at.level) % HEIGHT_MOST] += 1;
        // Damaged nodes may share children, and theirs theirs: there would be no end.
        if self.counted.nodes > self.source.nodes_most() {
            return Ok(());
        }
        let children = match self.node(at, bounds) {
            Ok(children) => children,
            Err(error) => return error.report_damage(self.finding),
        };
        if let Err(error) = self.inspector.inspect(self.source, at, bounds, self.finding) {
            error.report_damage(self.finding)?;
        }
        // Two keys a level are all that this holds beside the nodes.
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        for place in 0..children {
            let node = match self.source.node(at, Cause::Lookup) {
                Ok(node) => node,
                Err(error) => return error.report_damage(self.finding),
            };
            node.key(place).copy_to(&mut lower);
            let child = At { id: node.child(place), level: at.level - 1 };
            let has_next = place + 1 < children;
            if has_next {
                node.key(place + 1).copy_to(&mut upper);
            }
            let is_first = place == 0 && !self.rules.has_exact_separators;
            self.subtree(
                child,
                &KeyBounds {
                    lower: if is_first { bounds.lower } else { &lower },
                    upper: if has_next { Some(&upper) } else { bounds.upper },
                },
            )?;
        }
        Ok(())
    }

    /// Checks one node; returns how many children it has.
    fn node(&mut self, at: At<S::Id>, bounds: &KeyBounds<'_>) -> Result<usize> {
        let Walk { source, rules, root_level, counted, finding, .. } = self;
        let id = u32::from_le_bytes(at.id.to_bytes());
        let node = source.node(at, Cause::Lookup)?;
        let count = node.count();
        if rules.is_half_full && bounds.upper.is_some() && node.codec.is_underfull(node.bytes) {
            finding(&format_args!("node {id} is less than half full: {count} entries"));
        }
        if rules.has_branching_root && at.level == *root_level && at.level > 0 && count < 2 {
            finding(&format_args!("the root, node {id}, has {count} children"));
        }
        let is_inner = at.level > 0 && count > 0;
        if rules.has_exact_separators && is_inner && node.key(0).compare(bounds.lower).is_ne() {
            finding(&format_args!("node {id} does not begin with its parent's separator"));
        }
        if let Some(place) = first_stranger(&node, bounds) {
            finding(&format_args!("node {id}: the key at place {place} belongs to another node"));
        }
        if at.level == 0 {
            counted.entries += count as u64;
            return Ok(0);
        }
        Ok(count)
    }
}

/// The place of the first key beyond `bounds`: its source checked the order within a node.
fn first_stranger(node: &Node<'_>, bounds: &KeyBounds<'_>) -> Option<usize> {
    let is_within = |place: usize| {
        let key = node.key(place);
        key.compare(bounds.lower).is_ge()
            && bounds.upper.is_none_or(|upper| key.compare(upper).is_lt())
    };
    (0..node.count()).find(|place| !is_within(*place))
}
