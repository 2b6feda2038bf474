//! Where reading goes on behind damage.

use alloc::vec::Vec;

use device::Cause;
use store::node;

use super::PathTree;
use super::ground::child;
use crate::{Behind, Error, Result};

pub(super) fn behind(tree: &mut PathTree<'_>, key: Option<&[u8]>) -> Result<Behind> {
    if let Some(key) = key {
        tree.check_key(key)?;
    }
    let mut page = tree.root;
    let mut behind = Behind::End;
    // The lowest separator above `key` on the way ends the subtree that can't be read.
    for level in (1..tree.height()).rev() {
        let visited = tree.ground.visit((page, level), Cause::Lookup, |_, codec, node| {
            let place = key.map_or(0, |key| {
                codec.search(node, key).unwrap_or_else(|place| place.saturating_sub(1))
            });
            let next = (place + 1 < node::count(node)).then(|| {
                let mut separator = Vec::new();
                codec.key(node, place + 1).copy_to(&mut separator);
                separator
            });
            (next, child(codec, node, place))
        });
        let (next, child) = match visited {
            Err(Error::Store(error)) if error.is_damage() => break,
            other => other?,
        };
        if let Some(separator) = next {
            behind = Behind::From(separator);
        }
        page = child;
    }
    Ok(behind)
}
