//! When a buffer is emptied.
//!
//! Above its limit of U entries; but entries come in batches of c from the buffer above, so it is
//! only seen to be too large after a whole number of them: after n with the chance that n are more
//! than U, and n - 1 are not. Where batches are small that is at about `U + c / 2`. Of several
//! changes of a key only the newest goes on, so the batches are smaller than what was emptied.
//! A buffer that this empties before it has so many entries as go to flash is never read there:
//! where batches are large, only some of a level's buffers come to flash at all.
//!
//! Or by ADAPT. A buffer that is in the pool costs no scan. On flash it is cut into fragments of x
//! entries ([`pool`](super::pool) says how large x is). A register taken when the buffer has k
//! fragments comes due after `e / (k s)` lookups, if scanning a fragment costs s and emptying e;
//! whole lookups count, and the one it is taken at. The first to come due empties the buffer
//! (section 2.2):
//!
//! ```text
//! b = min over k of  k x + (e / (k s) + 1.5) / q
//! ```
//!
//! A buffer that is emptied below x never reaches flash. There the processor's time to search it,
//! `c` for each entry beyond the first `n0`, takes the place of the scan:
//!
//! ```text
//! b = n0 + 2 (e / (c q))^(1/2) + 1.5 / q
//! ```
//!
//! A buffer that its last batch made too large for memory goes to flash but for a page before it is
//! emptied, if that batch is more than a page.

use super::level::{Buffers, stored};
use super::plan::Plan;
use crate::la_tree::cost::SHORT_ABOVE;
use crate::la_tree::cost::{ENTRY_SEARCH, SEARCHED_AT_ONCE};
use crate::la_tree::policy::{Buffering, Policy};
use crate::la_tree::sorter::sorted_most;
use index::Profile;
use index::random_keys::touched;

/// Registers with more fragments than this are not looked at.
const FRAGMENTS_MOST: u32 = 256;

/// Numbers of entries in the pool that are looked at, and the most of a buffer that is nowhere
/// else.
const STEPS: u32 = 8;
const ALONE_MOST: f64 = 2000.0;

/// Lookups that a register waits for besides `e / s`: the one that it is taken at, and, as only
/// whole ones count and the savings have to exceed the cost, half of one more.
const LOOKUPS_BESIDE: f64 = 1.5;

/// Rounds in which sizes of buffers and of fragments are brought together.
pub(super) const ROUNDS: usize = 12;

/// When buffers are emptied, if so much of them is on flash and so many nodes are not in the
/// cache.
pub(super) fn grow(profile: &Profile, plan: &Plan, buffers: &mut [Buffers], missed: &[f64]) {
    let most = Policy::new(plan.buffering, plan.memory_bytes).most_bytes();
    let sorted = f64::from(sorted_most(most)) / (plan.entry_bytes() + 0.875);
    let most = f64::from(most);
    // An entry counts a byte more than it has.
    let limit = (most / (plan.entry_bytes() + 0.875)).max(1.0);
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let changed = 1.0 - profile.inserts / updates.max(f64::MIN_POSITIVE);
    let came = buffers.iter().map(|all| all.rate * all.count).sum::<f64>();
    let stored = stored(buffers) / came;
    let (mut coming, mut going) = (1.0, profile.lookups / updates.max(f64::MIN_POSITIVE));
    let mut from: Option<Buffers> = None;
    for buffer in buffers {
        let keys = profile.entries as f64 / buffer.count;
        let batch = from.map_or(1.0, |above| above.passed * above.count / buffer.count);
        buffer.batch = if from.is_some() { batch } else { 0.0 };
        buffer.rate = coming / buffer.count;
        buffer.lookups = going / coming;
        let due = due(plan, buffer, missed, stored);
        buffer.limit = limit;
        let all = buffer.outgrown(f64::INFINITY).emptied;
        let grown = buffer.outgrown(buffer.flash.first);
        buffer.reach = if buffer.flash.first.is_finite() { grown.reach } else { 1.0 };
        let (before, reach) = (1.0 - buffer.reach, buffer.reach);
        let outgrown = (all - before * grown.emptied) / reach.max(f64::MIN_POSITIVE);
        buffer.longest = due.min(outgrown).max(batch).max(1.0);
        let shortest = due.min(grown.emptied).max(batch).max(1.0);
        buffer.emptied = before * shortest + reach * buffer.longest;
        // A lookup finds it after each batch but the one that makes it too large.
        buffer.seen = (buffer.emptied - batch).max(0.0);
        let page = plan.page_entries();
        let is_large = buffer.emptied > sorted.max(1.0) && batch > page;
        buffer.beyond = if is_large { buffer.emptied - page } else { 0.0 };
        // What is put to new keys has no older entry.
        let twice = (buffer.emptied - touched(keys, buffer.emptied)).max(0.0);
        buffer.passed = buffer.emptied - changed * twice;
        coming *= buffer.passed / buffer.emptied;
        going *= buffer.searched(keys).1;
        from = Some(*buffer);
    }
}

/// Entries at which ADAPT empties a buffer, if the share `stored` of all entries goes to flash.
fn due(plan: &Plan, buffer: &Buffers, missed: &[f64], stored: f64) -> f64 {
    let flash = &buffer.flash;
    let is_adaptive = matches!(plan.buffering, Buffering::Adaptive);
    if !is_adaptive || buffer.lookups <= 0.0 {
        return f64::INFINITY;
    }
    let (units, bytes) = (&plan.units, plan.entry_bytes());
    let (node_read, node_write) = (units.node_read as f64, units.node_write as f64);
    let fragment = flash.each * bytes * units.byte_read as f64 / 1000.0;
    let fragment = units.fragment_read as f64 + fragment;
    let emptying = |entries: f64| {
        let inner = (buffer.nodes - buffer.leaves) * node_read * missed[buffer.level];
        inner
            + if buffer.leaves > 0.0 {
                touched(buffer.leaves, entries) * (node_read * missed[0] + node_write)
            } else {
                entries * stored * bytes * units.byte_write as f64 / 1000.0
            }
    };
    // In the pool a register that is taken at n entries comes due after `e / (c (n - n0))` lookups:
    // first where `n - n0` is the square root of `e / (c q)`.
    let free = f64::from(SEARCHED_AT_ONCE);
    let searched = (0..ROUNDS).fold(free, |entries, _| {
        let each = ENTRY_SEARCH as f64 * buffer.lookups;
        free + 2.0 * libm::sqrt(emptying(entries) / each) + LOOKUPS_BESIDE / buffer.lookups
    });
    // With `number` fragments on flash and `held` entries in the pool.
    let register = |number: u32, held: f64| {
        let number = f64::from(number);
        let on_flash = if number > 0.0 { flash.first + (number - 1.0) * flash.each } else { 0.0 };
        let entries = on_flash + held;
        let in_pool = units.fragment_read as f64 + held * bytes * units.byte_read as f64 / 1000.0;
        let scan = number * fragment + if held > 0.0 { in_pool } else { 0.0 };
        let lookups = (scan + emptying(entries)) / scan + LOOKUPS_BESIDE;
        entries + lookups / buffer.lookups
    };
    let counts_pool = plan.counts_pool && stored * SHORT_ABOVE as f64 >= 1.0;
    let mut due = searched;
    if counts_pool {
        let most = flash.first.min(ALONE_MOST);
        let held = (1..=STEPS).map(|step| most * f64::from(step) / f64::from(STEPS));
        due = held.map(|held| register(0, held)).fold(due, f64::min);
    }
    if flash.first.is_infinite() {
        return due;
    }
    let steps = if counts_pool { STEPS } else { 0 };
    for number in 1..=FRAGMENTS_MOST {
        let held = (0..=steps).map(|step| flash.each * f64::from(step) / f64::from(STEPS));
        due = held.map(|held| register(number, held)).fold(due, f64::min);
    }
    due
}
