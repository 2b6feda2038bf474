//! The bytes of what a [`Plan`] says: one page after the other, into one buffer.

use device::Page;
use store::node::{self, Codec, Stored};

use super::layout::CHILD_BYTES;
use super::page::{self, Header};
use super::plan::{Edit, Plan, Rewrite, Scratch, Source};
use super::policy::{Change, Policy, RootUse, State};

/// What the pages of a change say beside their nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp<'s> {
    /// The pages that the change goes to, in order.
    pub(super) addresses: &'s [Page],
    /// The sequence of the first of them.
    pub(super) sequence: u64,
    /// What the page of the root says before the change.
    pub(super) before: &'s Header,
    pub(super) change: Change,
}

/// Writes page `number` of `plan` into `into`, as long as a page; returns its header.
///
/// # Errors
/// What does not fit: `plan` is not one of `change`, or `change` was not checked.
pub(super) fn write_page(
    policy: &Policy,
    (plan, change): (&Plan, &Rewrite<'_>),
    number: u32,
    stamp: &Stamp<'_>,
    (into, scratch): (&mut [u8], &mut Scratch),
) -> Result<Header, &'static str> {
    let address = *stamp.addresses.get(number as usize).ok_or("a page has no address")?;
    let sequence = stamp.sequence + u64::from(number);
    let pages = policy.pages();
    let layout = if plan.is_empty { plan.layout } else { plan.layout_of(number) };
    let is_shared = layout == plan.layout && pages.together > 1;
    // Only what no node stands in is filled: where lengths are fixed, each level's turn sees to it.
    if pages.is_variable() || !is_shared {
        into.fill(0xFF);
    }
    let (mut lowest, mut highest) = (None, 0);
    let mut root = None;
    for level in 0..plan.layout.height {
        let Some(part) = plan.part_in(level, number) else {
            if is_shared && !pages.stands_alone(level) {
                let range = pages.bytes_of(&layout, level).ok_or("a page has no such level")?;
                into[range].fill(0xFF);
            }
            continue;
        };
        let place = pages.place_of(&layout, level);
        let (range, codec) = place.ok_or("a page has no room for a level")?;
        lowest = lowest.or(Some(level));
        highest = level;
        let node = &mut into[range];
        write_node((plan, change), (level, part, &codec), stamp.addresses, (node, scratch))?;
        if level + 1 == plan.layout.height {
            root = Some(use_of_root(policy, &codec, node));
        }
        let kept = codec.kept_bytes(node);
        node[kept..].fill(0xFF);
        page::seal_node(&codec, address, sequence, node);
    }
    let splits = match plan.is_empty {
        true => policy.first().splits,
        false => stamp.before.next.splits.plus(plan.splits),
    };
    let written = State { layout: plan.layout, splits };
    let next = match (root, stamp.change) {
        // What was split before says nothing of what comes.
        _ if plan.is_empty => policy.first().layout,
        // A move may take another layout, which is not the one to go on with.
        (Some(_), Change::Move) if plan.layout.height == stamp.before.next.layout.height => {
            stamp.before.next.layout
        }
        (Some(root), change) => policy.next(&written, change, root),
        (None, _) => plan.layout,
    };
    let header = Header {
        sequence,
        live_pages: (stamp.before.live_pages + plan.pages).saturating_sub(change.pages_given_up()),
        layout,
        lowest: lowest.ok_or("a page has no node")?,
        highest,
        has_root: root.is_some(),
        next: State { layout: next, splits },
    };
    header.encode(address, into);
    Ok(header)
}

fn use_of_root(policy: &Policy, codec: &Codec, root: &[u8]) -> RootUse {
    RootUse {
        entries: node::count(root),
        is_full: codec.used_bytes(root) + policy.child_bytes_most() > codec.node_bytes(),
        is_below_half: codec.is_underfull(root),
    }
}

/// Writes one node.
fn write_node(
    (plan, change): (&Plan, &Rewrite<'_>),
    (level, part, codec): (u8, usize, &Codec),
    addresses: &[Page],
    (into, scratch): (&mut [u8], &mut Scratch),
) -> Result<(), &'static str> {
    codec.initialise(into, level);
    if plan.is_empty {
        return Ok(());
    }
    let planned = plan.level(level).ok_or("a level was not planned")?;
    if planned.is_copied {
        return copy_node((plan, change), level, addresses, (into, scratch));
    }
    let other = scratch.other.get_mut(..codec.node_bytes()).unwrap_or_default();
    let mut key = core::mem::take(&mut scratch.key);
    let mut outcome = Ok(());
    let places = plan.part(level, part);
    let mut next = places.start;
    while next < places.end {
        let place = next;
        let copied = copy_run((plan, change), (level, place..places.end), (codec, into));
        next += copied.max(1);
        if copied > 0 {
            continue;
        }
        plan.key(change, level, place).copy_to(&mut key);
        let child;
        let value = match value(plan, change, level, place) {
            Value::Bytes(bytes) => bytes,
            Value::Part(part) => {
                child = address_of(plan, level - 1, part, addresses)?;
                &child
            }
        };
        let at = node::count(into);
        if !codec.insert(into, at, &key, Stored::inline(value), other) {
            outcome = Err("a node has no room for what was planned for it");
            break;
        }
    }
    scratch.key = key;
    outcome
}

/// Copies as many entries as stand together in the old node from the first of `places` on; returns
/// how many these are.
fn copy_run(
    (plan, change): (&Plan, &Rewrite<'_>),
    (level, places): (u8, core::ops::Range<usize>),
    (codec, into): (&Codec, &mut [u8]),
) -> usize {
    let Some((step, run)) = change.step(level).zip(plan.level(level).map(|level| level.run)) else {
        return 0;
    };
    if places.start == 0 && level > 0 {
        // Its key is the separator above.
        return 0;
    }
    let old = run.old_run(places);
    let count = old.len();
    if count > 0 && codec.append(into, (&step.codec, step.node), old) { count } else { 0 }
}

/// Copies a node that keeps its size to where nothing stands, and makes its one edit.
fn copy_node(
    (plan, change): (&Plan, &Rewrite<'_>),
    level: u8,
    addresses: &[Page],
    (into, scratch): (&mut [u8], &mut Scratch),
) -> Result<(), &'static str> {
    let step = change.step(level).ok_or("a copied node is not on the path")?;
    let codec = step.codec;
    let other = scratch.other.get_mut(..codec.node_bytes()).unwrap_or_default();
    let kept = codec.kept_bytes(step.node);
    device::copy(&mut into[..kept], &step.node[..kept]);
    let place = step.place;
    let is_done = match change.edit {
        Edit::Keep | Edit::Append if level == change.base => true,
        Edit::Insert { key, value } if level == change.base => {
            codec.insert(into, place, key, Stored::inline(value), other)
        }
        Edit::Replace { value } if level == change.base => {
            codec.replace(into, place, Stored::inline(value), other)
        }
        Edit::Remove if level == change.base => {
            codec.remove(into, place);
            true
        }
        _ if plan.level(level - 1).is_some_and(|below| below.parts == 0) => {
            codec.remove(into, place);
            true
        }
        _ => {
            let child = address_of(plan, level - 1, 0, addresses)?;
            codec.replace(into, place, Stored::inline(&child), other)
        }
    };
    if is_done { Ok(()) } else { Err("a copied node has no room for its edit") }
}

enum Value<'v> {
    Bytes(&'v [u8]),
    /// The page of this part of the level below.
    Part(usize),
}

fn value<'v>(plan: &Plan, change: &Rewrite<'v>, level: u8, place: usize) -> Value<'v> {
    let run = plan.level(level).map(|planned| planned.run).unwrap_or_default();
    let Some(step) = change.step(level) else {
        return Value::Part(place);
    };
    match (run.source(place), change.edit) {
        (Source::Old(place), _) => Value::Bytes(step.codec.value(step.node, place).bytes()),
        (Source::New(_), Edit::Insert { value, .. } | Edit::Replace { value })
            if level == change.base =>
        {
            Value::Bytes(value)
        }
        (Source::New(part), _) => Value::Part(part),
    }
}

fn address_of(
    plan: &Plan,
    level: u8,
    part: usize,
    addresses: &[Page],
) -> Result<[u8; CHILD_BYTES as usize], &'static str> {
    let page = addresses.get(plan.page_of(level, part) as usize);
    Ok(page.ok_or("a page has no address")?.0.to_le_bytes())
}

#[cfg(test)]
mod tests;
