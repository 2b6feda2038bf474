//! Where reading goes on behind damage, found on the path that damage ends.

use alloc::vec::Vec;

use device::Cause;
use index::{Error, Result, Resume};

use super::{At, NodeSource};

/// Where reading goes on behind what can't be read on the path to `key`, or to the lowest one: the
/// lowest separator above it on that path ends the subtree.
///
/// # Errors
/// The device failed.
pub(crate) fn resume_after<S: NodeSource>(
    source: &mut S,
    root: At<S::Id>,
    key: Option<&[u8]>,
) -> Result<Resume> {
    let (mut at, mut behind) = (root, Resume::End);
    while at.level > 0 {
        let node = match source.node(at, Cause::Lookup) {
            Ok(node) => node,
            Err(Error::Store(error)) if error.is_damage() => break,
            Err(error) => return Err(error),
        };
        let place = key.map_or(0, |key| node.search_child(key));
        if place + 1 < node.count() {
            let mut separator = Vec::new();
            node.key(place + 1).copy_to(&mut separator);
            behind = Resume::From(separator);
        }
        if place >= node.count() {
            break;
        }
        at = At { id: node.child(place), level: at.level - 1 };
    }
    Ok(behind)
}
