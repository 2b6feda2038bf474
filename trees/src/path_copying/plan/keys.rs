//! The keys and values of what a plan writes.

use store::node::NodeKey;

use super::super::layout::CHILD_BYTES;
use super::{Edit, Plan, Rewrite, Run, Source};

impl Plan {
    /// The key of the entry at `place` of the new run of `level`.
    pub(in crate::path_copying) fn key<'k>(
        &'k self,
        change: &'k Rewrite<'_>,
        level: u8,
        place: usize,
    ) -> NodeKey<'k> {
        let run = self.level(level).map_or(Run::default(), |level| level.run);
        let step = change.step(level);
        match (run.source(place), step, change.edit) {
            // Above the leaves the first key is the separator above, though the child that had it
            // may be gone.
            _ if place == 0 && level > 0 => self.bound(change, level),
            (Source::Old(place), Some(step), _) => step.codec.key(step.node, place),
            (Source::New(_), Some(_), Edit::Insert { key, .. }) if level == change.base => {
                NodeKey { prefix: &[], suffix: key }
            }
            (Source::New(part), _, Edit::Append) if level == change.base + 1 => {
                self.separator(change, level - 1, part)
            }
            (Source::New(0), Some(step), _) => step.codec.key(step.node, run.from),
            (Source::New(part), _, _) if level > 0 => self.separator(change, level - 1, part),
            _ => self.lowest(),
        }
    }

    fn lowest(&self) -> NodeKey<'_> {
        NodeKey { prefix: &[], suffix: &self.lowest_key }
    }

    /// The separator that the node above has for the node of `level` on the path.
    pub(super) fn bound<'k>(&'k self, change: &'k Rewrite<'_>, level: u8) -> NodeKey<'k> {
        let mut above = level + 1;
        while let Some(step) = change.step(above) {
            if step.place > 0 {
                return step.codec.key(step.node, step.place);
            }
            above += 1;
        }
        self.lowest()
    }

    /// What separates a part of `level` from the one before it: its first key, or between leaves
    /// of variable keys the shortest that is above the last key before it.
    fn separator<'k>(&'k self, change: &'k Rewrite<'_>, level: u8, part: usize) -> NodeKey<'k> {
        let place = self.part(level, part).start;
        let key = self.key(change, level, place);
        if level > 0 || self.lowest_key_is_fixed() || place == 0 {
            return key;
        }
        let before = self.key(change, level, place - 1);
        let shared = bytes(before).zip(bytes(key)).take_while(|(one, other)| one == other).count();
        let kept = (shared + 1).min(key.len());
        let prefix = &key.prefix[..kept.min(key.prefix.len())];
        NodeKey { prefix, suffix: &key.suffix[..kept - prefix.len()] }
    }

    fn lowest_key_is_fixed(&self) -> bool {
        !self.lowest_key.is_empty()
    }

    /// The value of the entry at `place` of the new run of `level`, or, for a child that is not
    /// written yet, bytes as long as its page's.
    pub(super) fn old_value<'v>(&self, change: &Rewrite<'v>, level: u8, place: usize) -> &'v [u8] {
        const CHILD: &[u8] = &[0; CHILD_BYTES as usize];
        let Some((run, step)) = self.level(level).map(|it| it.run).zip(change.step(level)) else {
            return CHILD;
        };
        match (run.source(place), change.edit) {
            (Source::Old(place), _) => step.codec.value(step.node, place).bytes(),
            (Source::New(_), Edit::Insert { value, .. } | Edit::Replace { value })
                if level == change.base =>
            {
                value
            }
            (Source::New(_), _) => CHILD,
        }
    }
}

fn bytes<'k>(key: NodeKey<'k>) -> impl Iterator<Item = &'k u8> {
    key.prefix.iter().chain(key.suffix)
}

/// True if both are the same key.
pub(super) fn are_equal(one: NodeKey<'_>, other: NodeKey<'_>) -> bool {
    bytes(one).eq(bytes(other))
}
