//! What deltas make of a node: when it is read, and when its block is merged.

use store::node::{self, Codec};

use super::layout::{Damage, Delta, DeltaForm};

/// Makes the changes that `deltas` tell, the oldest first, to `node`, which its codec has found
/// well-formed. Two more nodes are worked in. Each delta is made as the change was that it tells,
/// so the node becomes the very bytes that it was.
///
/// # Errors
/// A delta makes no sense, or the node has no room for what it says: it was not made for this node.
pub(super) fn apply(
    form: DeltaForm,
    codec: &Codec,
    node: &mut [u8],
    deltas: &[u8],
    work: (&mut [u8], &mut [u8]),
) -> Result<(), Damage> {
    let (fresh, scratch) = work;
    let mut rest = deltas;
    while !rest.is_empty() {
        let (delta, more) = form.read(rest)?;
        apply_one(codec, node, delta, (fresh, scratch))?;
        rest = more;
    }
    Ok(())
}

fn apply_one(
    codec: &Codec,
    node: &mut [u8],
    delta: Delta<'_>,
    (fresh, scratch): (&mut [u8], &mut [u8]),
) -> Result<(), Damage> {
    match delta {
        Delta::Put { key, value } => {
            if key.len() + value.len() > codec.entry_bytes_most() {
                return Err("a delta puts an entry that is too long for a node");
            }
            let done = match codec.search(node, key) {
                Ok(place) => {
                    codec.replace(node, place, store::node::Stored::inline(value), scratch)
                }
                Err(place) => {
                    codec.insert(node, place, key, store::node::Stored::inline(value), scratch)
                }
            };
            if !done {
                return Err("a delta puts an entry into a node that has no room for it");
            }
        }
        Delta::Delete { key } => {
            if let Ok(place) = codec.search(node, key) {
                codec.remove(node, place);
            }
        }
        Delta::Cut { key } => {
            let (Ok(from) | Err(from)) = codec.search(node, key);
            if from == 0 {
                codec.initialise(node, node::level(node));
            } else if from < node::count(node) {
                codec.initialise(fresh, node::level(node));
                codec.split_off(node, from, fresh, scratch);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
