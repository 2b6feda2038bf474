//! Verifying every invariant of the tree.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Display;

use device::Block;
use index::{Error, Result};
use store::runs::{Kind, Source as _, Way, Which};

use super::ChipTree;
use super::keys;
use super::read::{Buffers, Where, read_unit};
use super::run::{View, views};

pub(super) fn check(tree: &mut ChipTree<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    let mut live = vec![0_u32; tree.storage.geometry().blocks() as usize];
    for at in 0..tree.directory.parts.len() {
        let Some(part) = tree.directory.parts.get(at) else {
            break;
        };
        let list = part.runs.clone();
        for view in views(&list) {
            for extent in view.extents() {
                for page in extent.page..extent.page + extent.pages {
                    let block = page / tree.storage.geometry().pages_per_block();
                    if let Some(live) = live.get_mut(block as usize) {
                        *live += 1;
                    }
                }
            }
            check_run(tree, at, &view, finding)?;
        }
        check_waiting(tree, at, finding);
    }
    for (block, counted) in live.iter().enumerate() {
        let known = tree.storage.parts_in(Block(block as u32));
        if known != *counted {
            finding(&format_args!(
                "block {block}: {counted} parts of runs, but {known} are counted"
            ));
        }
    }
    Ok(())
}

/// Checks the units of a run, that its entries belong to its partition, and its tables.
fn check_run(
    tree: &mut ChipTree<'_>,
    at: usize,
    view: &View<'_>,
    finding: &mut dyn FnMut(&dyn Display),
) -> Result<()> {
    let run = view.run;
    let form = run.units(tree.shape)?;
    let low = tree.directory.parts.get(at).map(|part| &*part.low).unwrap_or_default();
    let (mut entries, mut strangers, mut missed, mut damaged) = (0, 0_u32, 0_u32, 0_u32);
    let mut before: Option<Vec<u8>> = None;
    let mut disordered = 0_u32;
    for unit in 0..run.units {
        let (storage, Buffers { unit: into, short }) = (&mut tree.storage, &mut tree.buffers);
        let held = match read_unit(storage, (view, &form), unit, into, Where::OnChip) {
            Ok(held) => held,
            Err(error @ Error::Store(_)) => {
                error.report_damage(finding)?;
                damaged += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        let scale = tree.directory.scale(at);
        for place in 0..held.len() {
            let key = keys::whole(held.entry(place).key, run.kept, (low, tree.shape), short);
            entries += 1;
            let is_beyond = tree.directory.high(at).is_some_and(|high| key >= high);
            strangers += u32::from(key < low || is_beyond);
            let is_found = view.plan(scale.fence(key)).contains(&unit);
            missed += u32::from(!is_found || !view.may_have(key));
            disordered += u32::from(before.as_deref().is_some_and(|before| before >= key));
            let before = before.get_or_insert_default();
            before.clear();
            before.extend_from_slice(key);
        }
    }
    let number = run.number;
    if damaged == 0 && entries != run.entries {
        let said = run.entries;
        finding(&format_args!("run {number} has {entries} entries, and should have {said}"));
    }
    for (count, what) in [
        (strangers, "keys of other partitions"),
        (missed, "keys that its fences or its filter miss"),
        (disordered, "keys out of order"),
    ] {
        if count > 0 {
            finding(&format_args!("run {number}: {count} {what}"));
        }
    }
    Ok(())
}

/// Checks how many updates wait for a partition.
fn check_waiting(tree: &ChipTree<'_>, at: usize, finding: &mut dyn FnMut(&dyn Display)) {
    let Some(part) = tree.directory.parts.get(at) else {
        return;
    };
    let mut cursor = tree.memtable.cursor(Which::Active, [Vec::new(), Vec::new()]);
    cursor.seek(&part.low, false);
    let mut count = 0;
    while cursor.advance(Way::Up) {
        let high = tree.directory.high(at);
        let entry = cursor.head(Way::Up).filter(|it| high.is_none_or(|high| it.key < high));
        let Some(entry) = entry else {
            break;
        };
        count += u32::from(matches!(entry.kind, Kind::Put | Kind::Delete));
        cursor.step(Way::Up);
    }
    if count != part.waiting {
        let waiting = part.waiting;
        finding(&format_args!("partition {at}: {count} updates wait, but {waiting} are counted"));
    }
}
