//! Verifying every invariant of the tree, the pool and the list.

use alloc::vec::Vec;
use core::fmt::Display;

use device::Cause;

use super::LazyUpdate;
use super::blocks::{BlockId, Change, ROOT};
use super::list::List;
use super::pool::Pool;
use crate::btree::{At, NodeSource, PageStore, Place};
use index::Result;

pub(super) fn check(
    tree: &mut LazyUpdate<'_>,
    finding: &mut dyn FnMut(&dyn Display),
) -> Result<()> {
    let LazyUpdate { store, btree, saved, .. } = tree;
    let pages_of_pool = |store: &mut PageStore<'_>, _: &(), told: &mut dyn FnMut(&dyn Display)| {
        let Some(pool) = saved.pool else {
            return Ok(0);
        };
        let mut told = |damage: store::Error| told(&format_args!("the pool: {damage}"));
        Ok(store.file.check_long(pool, Cause::Lookup, &mut told)?.into())
    };
    store.check(btree, (&mut (), pages_of_pool), finding)?;
    check_list(tree, finding)
}

/// Each range of the list is that of its block's node, and each block has the requests that are in
/// its ranges.
fn check_list(tree: &mut LazyUpdate<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    let LazyUpdate { store, btree, waiting, .. } = tree;
    if waiting.division.nodes == 0 {
        return Ok(());
    }
    let (mut key, mut next) = (Vec::new(), waiting.list.ranges.first());
    let mut before = None;
    while let Some(place) = next {
        if let Some((begin, _)) = waiting.list.ranges.at(place) {
            begin.copy_to(&mut key);
        }
        let Some(id) = waiting.list.of_range(place) else {
            finding(&format_args!("a range of the list is of no block"));
            return Ok(());
        };
        if before.replace(id) == Some(id) {
            finding(&format_args!("two neighbouring ranges are of block {}", id.0));
        }
        let block = *waiting.list.block(id);
        // Down to the level of the block: damage above is told of already.
        let mut at = btree.root;
        while at.level > block.level {
            let node = match store.node(at, Cause::Lookup) {
                Ok(node) if node.count() > 0 => node,
                _ => return Ok(()),
            };
            let child = node.child(node.search_child(&key));
            at = At { id: child, level: at.level - 1 };
        }
        if at != block.at() {
            finding(&format_args!("block {} stands for another node than its range", id.0));
        }
        next = waiting.list.ranges.next(place);
    }
    for place in 0..tree.waiting.list.blocks.len() {
        check_block(tree, BlockId(place as u16), finding)?;
    }
    Ok(())
}

/// A block has the requests of all its ranges, and is needed. It takes no memory a block.
fn check_block(
    tree: &mut LazyUpdate<'_>,
    id: BlockId,
    finding: &mut dyn FnMut(&dyn Display),
) -> Result<()> {
    let block = *tree.waiting.list.block(id);
    if !block.is_live {
        return Ok(());
    }
    let mut key = Vec::new();
    let LazyUpdate { store, waiting, .. } = tree;
    let is_empty = match store.node(block.at(), Cause::Lookup) {
        Ok(node) if node.count() > 0 => {
            node.key(0).copy_to(&mut key);
            false
        }
        // The root of an empty tree; or damage, which is told of already.
        _ => true,
    };
    if id == ROOT || is_empty {
        store.codecs.lowest(&mut key);
    }
    let (pool, list) = (&waiting.pool, &waiting.list);
    let mut counted = (0, 0);
    let mut next = list.find(&key).map(|(_, place)| place);
    while let Some(place) = next {
        let Some(owner) = list.of_range(place).filter(|owner| list.is_within(*owner, id)) else {
            break;
        };
        next = list.ranges.next(place);
        if owner == id {
            let (count, growth) = requests_between(pool, list, (place, next));
            counted = (counted.0 + count, counted.1 + growth);
        }
    }
    let known = (i32::from(block.count), i32::from(block.growth));
    if known != counted && !(is_empty && id != ROOT) {
        finding(&format_args!("block {} has {counted:?} requests, not {known:?}", id.0));
    }
    if block.count == 0 && block.children == 0 && id != ROOT {
        finding(&format_args!("block {} has neither requests nor children", id.0));
    }
    Ok(())
}

/// The requests from the range at `place` to the one at `end`: how many, and how many more puts
/// than deletes.
fn requests_between(pool: &Pool, list: &List, (place, end): (Place, Option<Place>)) -> Change {
    let key_at = |place: Place| {
        let mut key = Vec::new();
        if let Some((found, _)) = list.ranges.at(place) {
            found.copy_to(&mut key);
        }
        key
    };
    let (from, end) = (key_at(place), end.map(key_at));
    let mut counted = (0, 0);
    let mut next = pool.from(&from);
    while let Some((place, (key, kind, _))) = next.and_then(|at| Some((at, pool.request(at)?))) {
        if end.as_ref().is_some_and(|end| key.compare(end).is_ge()) {
            break;
        }
        counted = (counted.0 + 1, counted.1 + if kind.is_put() { 1 } else { -1 });
        next = pool.requests.next(place);
    }
    counted
}

#[cfg(test)]
mod tests;
