//! Where reading goes on behind damage.

use alloc::vec::Vec;

use device::Cause;
use store::node;

use super::Ipl;
use crate::{Behind, Error, Result};

pub(super) fn behind(tree: &mut Ipl<'_>, key: Option<&[u8]>) -> Result<Behind> {
    if let Some(key) = key {
        tree.check_key(key)?;
    }
    let forms = tree.ground.forms;
    let (mut level, mut id) = (tree.height.saturating_sub(1), tree.root);
    let mut behind = Behind::End;
    // The lowest separator above `key` on the way ends the subtree that can't be read.
    while level > 0 {
        let bytes = match tree.ground.node(id, Cause::Lookup) {
            Ok(bytes) if node::level(bytes) == level => bytes,
            Ok(_) => break,
            Err(Error::Store(error)) if error.is_damage() => break,
            Err(error) => return Err(error),
        };
        let children = node::count(bytes);
        if children == 0 {
            break;
        }
        let place = key.map_or(0, |key| {
            forms.inner.search(bytes, key).unwrap_or_else(|place| place.saturating_sub(1))
        });
        if place + 1 < children {
            let mut separator = Vec::new();
            forms.inner.key(bytes, place + 1).copy_to(&mut separator);
            behind = Behind::From(separator);
        }
        id = forms.child(bytes, place);
        level -= 1;
    }
    Ok(behind)
}
