//! Where reading goes on behind damage.

use device::Cause;
use store::node;

use super::Ipl;
use crate::behind::Way;
use index::{Behind, Error, Result};

pub(super) fn behind(tree: &mut Ipl<'_>, key: Option<&[u8]>) -> Result<Behind> {
    if let Some(key) = key {
        tree.check_key(key)?;
    }
    let forms = tree.ground.forms;
    let mut id = tree.root;
    let mut way = Way::new(key);
    for level in (1..tree.height).rev() {
        let node = match tree.ground.node(id, Cause::Lookup) {
            Ok(node) if node::level(node) == level => node,
            Ok(_) => break,
            Err(Error::Store(error)) if error.is_damage() => break,
            Err(error) => return Err(error),
        };
        let Some(place) = way.through(&forms.inner, node) else { break };
        id = forms.child(node, place);
    }
    Ok(way.behind())
}
