//! What deltas make of a node: when it is read, and when its block is merged.

use store::EntryShape;
use store::node::{self, Codec, Stored};

use super::layout::{Damage, Delta};
use crate::btree::Edit;

/// Makes the changes that `deltas` tell, the oldest first, to `node` with entries of `shape`, which
/// its codec has found well-formed. Two more nodes are worked in. Each delta is made as the change
/// was that it tells, so the node becomes the very bytes that it was.
///
/// # Errors
/// A delta makes no sense, or the node has no room for what it says: it was not made for this node.
pub(super) fn apply(
    (shape, codec): (EntryShape, &Codec),
    node: &mut [u8],
    deltas: &[u8],
    (fresh, scratch): (&mut [u8], &mut [u8]),
) -> Result<(), Damage> {
    let mut rest = deltas;
    while !rest.is_empty() {
        let (delta, more) = Delta::read(shape, rest)?;
        rest = more;
        let edit = match delta {
            Delta::Put { key, value } if key.len() + value.len() > codec.entry_bytes_most() => {
                return Err("a delta puts an entry that is too long for a node");
            }
            Delta::Put { key, value } => match (codec.search(node, key), Stored::inline(value)) {
                (Ok(place), value) => Edit::Replace { place, value },
                (Err(place), value) => Edit::Insert { place, key, value },
            },
            Delta::Delete { key } => match codec.search(node, key) {
                Ok(place) => Edit::Remove { place },
                Err(_) => continue,
            },
            Delta::Cut { key } => {
                let (Ok(from) | Err(from)) = codec.search(node, key);
                if from == 0 {
                    codec.initialise(node, node::level(node));
                } else if from < node::count(node) {
                    codec.initialise(fresh, node::level(node));
                    codec.split_off(node, from, fresh, scratch);
                }
                continue;
            }
        };
        if !edit.apply(codec, node, scratch) {
            return Err("a delta puts an entry into a node that has no room for it");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
