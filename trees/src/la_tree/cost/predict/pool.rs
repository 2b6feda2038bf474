//! What of the buffers is in the pool, and in which pieces the rest goes to flash (section 4.2).
//!
//! In a pool of P entries the fullest buffers leave, so what all have there is spread evenly
//! between nothing and some x, the size of a fragment: x is such that this fills the pool.
//!
//! On raw flash the pool is small beside a page, and leaves by whole pages. If g updates pass
//! between two of them and r entries come to a buffer for an update, in batches of c, the buffer
//! goes at `max(g r, x + (g r + c) / 2)`. In place g is left out: buffers are few there. One that
//! a few batches fill goes at about x by a whole number of them, and while it has fewer it has a
//! whole number of them in the pool.
//!
//! Few buffers are not spread evenly: what they have together goes up and down, and leaves the
//! pool at its highest, though the average would fit. If each is anywhere between nothing and twice
//! its average h with the same chance, the sum has the variance `sum of h^2 / 3`; as if it were a
//! normal distribution, its average without what is above P tells what stays in the pool.

use super::level::{Buffers, Fragments};
use super::plan::Plan;
use index::random_keys::last_that_holds;

/// The most lists of buffers that the pool has.
const LISTS_MOST: f64 = 256.0;

/// Standard deviations above the average that are never reached.
const NEVER_BEYOND: f64 = 3.0;

/// Entries that the pool has on the average, with buffers that would be so large if it had all.
pub(super) fn pool_entries(plan: &Plan, buffers: &[Buffers]) -> f64 {
    let page = plan.page_entries();
    // A cell has a link of two bytes, and each number of entries up to a page a list of buffers.
    let lists = 4.0 * (page.min(LISTS_MOST) + 1.0);
    let room = (plan.pool_bytes as f64 - lists).max(0.0) / (plan.entry_bytes() - 0.125 + 2.0);
    // When the pool is full, a page of it leaves.
    let pool = (room - page / 2.0).max(room / 2.0);
    let all = buffers.iter().map(|all| all.count * all.held()).sum::<f64>();
    let variance = buffers.iter().map(|all| all.count * all.held() * all.held() / 3.0).sum::<f64>();
    let deviation = libm::sqrt(variance).max(f64::MIN_POSITIVE);
    let beside = (room - all) / deviation;
    if all <= pool && beside > NEVER_BEYOND {
        return pool;
    }
    let kept = all - deviation * mean_above(beside);
    // It is not always full.
    if all < room { kept } else { pool.min(kept) }
}

/// Lets so much of the buffers go to flash that they have `pool` entries in the pool, when a page
/// of it leaves every `between` updates; as before, if they have no more.
pub(super) fn share(plan: &Plan, buffers: &mut [Buffers], pool: f64, between: f64) {
    let page = plan.page_entries();
    let of = |buffer: &Buffers, fullest: f64| {
        if plan.shape.is_in_place() {
            let first = buffer.in_batches(fullest);
            return Fragments { first, each: first.min(page), fullest };
        }
        let comes = buffer.rate * between;
        let first = comes.max(fullest + (comes + buffer.batch) / 2.0);
        // A batch that comes seldom is gone soon.
        let fullest = first - (buffer.batch - comes).max(0.0) / 2.0;
        Fragments { first, each: first.min(page), fullest }
    };
    let held = |fullest: f64| {
        buffers
            .iter()
            .map(|all| all.count * all.in_pool(&of(all, fullest), plan.shape.is_in_place()))
            .sum::<f64>()
    };
    let most = buffers.iter().map(|all| all.emptied).fold(1.0, f64::max);
    if held(most + 1.0) <= pool {
        return;
    }
    let fullest = last_that_holds(1.0, most, |fullest| held(fullest) <= pool);
    for buffer in buffers {
        buffer.flash = of(buffer, fullest);
    }
}

/// By how much a standard normal variable is above `bound` on the average, nothing if it is below.
fn mean_above(bound: f64) -> f64 {
    let density = libm::exp(-bound * bound / 2.0) / libm::sqrt(2.0 * core::f64::consts::PI);
    density - bound * libm::erfc(bound / core::f64::consts::SQRT_2) / 2.0
}
