//! Verifying every invariant of the tree.

use alloc::vec::Vec;
use core::fmt::Display;
use core::ops::Bound;

use device::Cause;
use index::{Direction, Error, Result};
use store::OverflowValue;

use super::FlatTree;
use super::runs::{Form, Run, RunCursor};
use crate::btree::{self, Rules};

const RULES: Rules =
    Rules { has_exact_separators: true, is_half_full: false, has_branching_root: true };

pub(super) fn check(tree: &mut FlatTree<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    let mut pages = 0;
    for at in 0..tree.directory.partitions.len() {
        let Some(partition) = tree.directory.partitions.get(at) else {
            break;
        };
        let fragments = partition.fragments.iter().map(|it| (Form::Fragment, it.run));
        let runs: Vec<_> = fragments.chain(partition.bottom.map(|it| (Form::Bottom, it))).collect();
        for (place, run) in runs.into_iter().enumerate() {
            let (nodes, is_whole) = check_run(tree, run, finding)?;
            pages += nodes;
            if let Err(error) = check_entries(tree, (at, place), run, &mut pages, finding) {
                // What is damaged was told when its nodes were read.
                let told: &mut dyn FnMut(&dyn Display) =
                    if is_whole { finding } else { &mut |_| {} };
                error.report_damage(told)?;
            }
        }
    }
    let mut beside = tree.directory.garbage.clone();
    beside.extend(tree.long_values_waiting());
    for value in beside {
        pages += check_long(tree, value, finding)?;
    }
    let file = &mut tree.runs.store.file;
    let own = file.pages_used().0.saturating_sub(file.record_pages());
    if pages != u64::from(own) {
        finding(&format_args!("{own} pages are in use, but the runs have {pages}"));
    }
    match file.check_pages(finding) {
        Ok(()) => Ok(()),
        Err(error) => Error::Store(error).report_damage(finding),
    }
}

/// Checks the nodes of a run; returns how many there are, and whether all of it is.
fn check_run(
    tree: &mut FlatTree<'_>,
    (form, run): (Form, Run),
    finding: &mut dyn FnMut(&dyn Display),
) -> Result<(u64, bool)> {
    let mut lowest = Vec::new();
    tree.runs.forms.of(form).lowest(&mut lowest);
    let store = tree.runs.choose(form);
    let counted = btree::check((store, run.root), &lowest, RULES, &mut (), &mut *finding)?;
    let Run { root, pages, entries } = run;
    let is_whole = (counted.nodes, counted.entries) == (pages.into(), entries);
    if !is_whole {
        finding(&format_args!(
            "the run at page {} has {} pages and {} entries, and should have {pages} and {entries}",
            root.id.0, counted.nodes, counted.entries
        ));
    }
    Ok((counted.nodes, is_whole))
}

/// Checks that the entries of a run belong to its partition, and that its filter has them.
fn check_entries(
    tree: &mut FlatTree<'_>,
    (at, place): (usize, usize),
    run: (Form, Run),
    pages: &mut u64,
    finding: &mut dyn FnMut(&dyn Display),
) -> Result<()> {
    let all = (Bound::Unbounded, Direction::Ascending);
    let mut cursor = RunCursor::seek(&mut tree.runs, run, all, Cause::Lookup)?;
    let (mut strangers, mut missed) = (0_u64, 0_u64);
    while cursor.load(&mut tree.runs, Direction::Ascending)? {
        let Some(partition) = tree.directory.partitions.get(at) else {
            break;
        };
        let key = cursor.key();
        let is_beyond = tree.directory.high(at).is_some_and(|high| key >= high);
        strangers += u64::from(key < &*partition.low || is_beyond);
        let filter = partition.fragments.get(place).filter(|_| run.0 == Form::Fragment);
        let filter = filter.and_then(|fragment| fragment.filter.as_ref());
        missed += u64::from(filter.is_some_and(|filter| !filter.may_have(key)));
        if let Some(value) = cursor.held().long() {
            *pages += check_long(tree, value, finding)?;
        }
        cursor.pass(Direction::Ascending);
    }
    let page = run.1.root.id.0;
    if strangers > 0 {
        finding(&format_args!("the run at page {page}: {strangers} keys of other partitions"));
    }
    if missed > 0 {
        finding(&format_args!("the run at page {page}: its filter misses {missed} keys"));
    }
    Ok(())
}

/// Checks a long value; returns the pages that it takes.
fn check_long(
    tree: &mut FlatTree<'_>,
    value: OverflowValue,
    finding: &mut dyn FnMut(&dyn Display),
) -> Result<u64> {
    let most = tree.directory.longest;
    if value.bytes() > most {
        let bytes = value.bytes();
        finding(&format_args!("a value has {bytes} bytes, but the longest has {most}"));
    }
    let mut told = |damage: store::Error| finding(&damage);
    let file = &mut tree.runs.store.file;
    Ok(file.check_long(value, Cause::Lookup, &mut told).map(u64::from)?)
}
