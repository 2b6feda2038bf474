//! Where reading goes on behind damage.

use device::Cause;

use super::PathTree;
use super::ground::child;
use crate::behind::Way;
use index::{Behind, Error, Result};

pub(super) fn behind(tree: &mut PathTree<'_>, key: Option<&[u8]>) -> Result<Behind> {
    if let Some(key) = key {
        tree.check_key(key)?;
    }
    let mut page = tree.root;
    let mut way = Way::new(key);
    for level in (1..tree.height()).rev() {
        let visited = tree.ground.visit((page, level), Cause::Lookup, |_, codec, node| {
            way.through(codec, node).map(|place| child(codec, node, place))
        });
        page = match visited {
            Ok(Some(child)) => child,
            Ok(None) => break,
            Err(Error::Store(error)) if error.is_damage() => break,
            Err(error) => return Err(error),
        };
    }
    Ok(way.behind())
}
