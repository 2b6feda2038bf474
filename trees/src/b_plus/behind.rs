//! Where reading goes on behind damage.

use device::Cause;
use store::node;

use super::BPlus;
use crate::behind::Way;
use index::{Behind, Result};

pub(super) fn behind(tree: &mut BPlus<'_>, key: Option<&[u8]>) -> Result<Behind> {
    if let Some(key) = key {
        tree.nodes.check_key(key)?;
    }
    let nodes = tree.nodes;
    let mut page = tree.root;
    let mut way = Way::new(key);
    for level in (1..tree.height).rev() {
        let node = match tree.file.page(page, Cause::Lookup, &nodes) {
            Ok(node) if node::level(node) == level => node,
            Ok(_) => break,
            Err(error) if error.is_damage() => break,
            Err(error) => return Err(error.into()),
        };
        let Some(place) = way.through(&nodes.inner, node) else { break };
        page = nodes.child(node, place);
    }
    Ok(way.behind())
}
