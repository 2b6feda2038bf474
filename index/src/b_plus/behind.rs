//! Where reading goes on behind damage.

use alloc::vec::Vec;

use device::Cause;
use store::node;

use super::BPlus;
use crate::{Behind, Result};

pub(super) fn behind(tree: &mut BPlus<'_>, key: Option<&[u8]>) -> Result<Behind> {
    if let Some(key) = key {
        tree.nodes.check_key(key)?;
    }
    let nodes = tree.nodes;
    let (mut level, mut page) = (tree.height.saturating_sub(1), tree.root);
    let mut behind = Behind::End;
    // The lowest separator above `key` on the way ends the subtree that can't be read.
    while level > 0 {
        let node = match tree.file.page(page, Cause::Lookup, &nodes) {
            Ok(node) if node::level(node) == level => node,
            Ok(_) => break,
            Err(error) if error.is_damage() => break,
            Err(error) => return Err(error.into()),
        };
        let children = node::count(node);
        if children == 0 {
            break;
        }
        let place = key.map_or(0, |key| {
            nodes.inner.search(node, key).unwrap_or_else(|place| place.saturating_sub(1))
        });
        if place + 1 < children {
            let mut separator = Vec::new();
            nodes.inner.key(node, place + 1).copy_to(&mut separator);
            behind = Behind::From(separator);
        }
        page = nodes.child(node, place);
        level -= 1;
    }
    Ok(behind)
}
