//! Verifying every invariant of the tree.

use core::fmt::Display;

use device::Cause;
use store::LogicalPage;

use super::BPlus;
use crate::btree::{At, Inspector, KeyBounds, NodeSource, PageStore};
use index::Result;

/// Looks at the long values of leaves.
struct LongValues {
    /// Pages that they take.
    pages: u64,
    /// Bytes of the longest that there is said to be.
    bytes_most: u32,
}

impl Inspector<PageStore<'_>> for LongValues {
    fn inspect(
        &mut self,
        store: &mut PageStore<'_>,
        at: At<LogicalPage>,
        _: &KeyBounds<'_>,
        finding: &mut dyn FnMut(&dyn Display),
    ) -> Result<()> {
        if at.level > 0 || !store.codecs.has_long_values() {
            return Ok(());
        }
        let (leaf, mut place) = (at.id, 0);
        // A damaged leaf may tell of the same value over and over.
        while self.pages <= store.nodes_most() {
            let node = store.node(at, Cause::Lookup)?;
            if place >= node.count() {
                break;
            }
            if let Some(long) = node.value(place).as_long() {
                let mut told = |damage: store::Error| {
                    finding(&format_args!("the long value at place {place} of {leaf}: {damage}"));
                };
                self.pages += u64::from(store.file.check_long(long, Cause::Lookup, &mut told)?);
                let (bytes, most) = (long.bytes(), self.bytes_most);
                if bytes > most {
                    finding(&format_args!(
                        "{leaf}: the value at place {place} has {bytes} bytes, but the longest has \
                         {most}"
                    ));
                }
            }
            place += 1;
        }
        Ok(())
    }
}

pub(super) fn check(tree: &mut BPlus<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    let BPlus { store, btree, longest_value, .. } = tree;
    let mut values = LongValues { pages: 0, bytes_most: *longest_value };
    store.check(btree, (&mut values, |_, values, _| Ok(values.pages)), finding)
}
