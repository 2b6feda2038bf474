//! Memory that the buffer pool and the node cache lend each other (section 6.2: a small working set
//! of nodes "frees up most of the memory for its buffer pool"): the setting `share=shared`.
//!
//! The paper does not say how. Here memory goes, a small part at a time, to where it saves more:
//!
//! - to the cache it saves reading nodes, and what a part of it saves is known: nodes that are
//!   found in the tail, the eighth of the frames used longest ago, would be read without it;
//! - to the pool it saves fragments. Those of a pool of twice the size are twice as large, so half
//!   as many are read: a part that is one n-th of the pool saves one n-th of the fixed costs of
//!   reading them. (Had their bytes counted as well, the pool would get too much: they are read
//!   from one fragment or from two.)
//!
//! After every [`WINDOW`] nodes and fragments that were read both are compared by what they save a
//! byte, older windows counting for less and less; a part moves if one saves twice as much as the
//! other. An idle cache (nothing is found in its tail) and an idle pool (no fragments are read)
//! save nothing, so they lend all but the least they work with, and get it back when they miss it.
//!
//! Where all memory is bounded, tables take of it, too, when they outgrow their own: before a node
//! is made. What may come of the entries that wait is only counted against it, and so used
//! meanwhile. They keep what they got.
//!
//! Memory is a hard budget: what one gets is given back by the other before.

use device::Cause;

use super::bare_tree::BareTree;
use super::buffers::Buffers;
use super::cache::FRAMES_LEAST;
use super::cost::UnitCosts;
use super::nodes::Nodes;
use super::plan::Plan;
use index::Result;

/// Nodes and fragments read between two decisions.
const WINDOW: u64 = 512;

/// Which memory is lent, and what is known of its worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sharing {
    /// What pool and cache share, in bytes; `None` if each has its own.
    shared: Option<u64>,
    /// The most bytes that the tables may take, if that is bounded.
    pub(super) tables: Option<u64>,
    /// The fewest bytes of the pool.
    pool_least: u64,
    /// Accesses, finds in the tail and the costs of fragments before this window.
    accesses: u64,
    tail_hits: u64,
    fragments: u64,
    /// What a byte more of the cache, and of the pool, would have saved, in 2^-24 ns.
    cache_saves: u64,
    pool_saves: u64,
    /// How often memory moved to the cache, and to the pool.
    pub(super) moved: [u64; 2],
}

impl Sharing {
    pub(super) const fn new(plan: &Plan) -> Self {
        Sharing {
            shared: plan.shared_bytes,
            tables: plan.tables_most,
            pool_least: plan.pool_least,
            accesses: 0,
            tail_hits: 0,
            fragments: 0,
            cache_saves: 0,
            pool_saves: 0,
            moved: [0; 2],
        }
    }

    /// True if memory may move now: it is shared, and a window is over.
    pub(super) fn is_due(&self, nodes: &Nodes, buffers: &Buffers) -> bool {
        let accesses = nodes.reads.all() + buffers.counters.fetched;
        self.shared.is_some() && accesses - self.accesses >= WINDOW
    }

    /// Moves memory between pool and cache, if that is worth it.
    pub(super) fn share(
        &mut self,
        units: &UnitCosts,
        bare: &mut BareTree<'_>,
        buffers: &mut Buffers,
    ) -> Result<()> {
        self.observe(units, &bare.nodes, buffers);
        let (to_cache, to_pool) = (self.cache_saves, self.pool_saves);
        if to_cache / 2 > to_pool {
            let need = bare.nodes.cache.chunk_bytes();
            while self.idle(&bare.nodes, buffers) < need {
                if !self.shrink_pool(bare, buffers)? {
                    return Ok(());
                }
            }
            bare.nodes.cache.grow();
            self.moved[0] += 1;
        } else if to_pool / 2 > to_cache {
            let need = buffers.pool.cells.chunk_bytes;
            while self.idle(&bare.nodes, buffers) < need {
                if !Self::shrink_cache(bare)? {
                    return Ok(());
                }
            }
            buffers.pool.cells.grow();
            self.moved[1] += 1;
        }
        Ok(())
    }

    /// Learns what memory would have saved in the window that ends.
    fn observe(&mut self, units: &UnitCosts, nodes: &Nodes, buffers: &Buffers) {
        let cache = &nodes.cache;
        let fragments = buffers.counters.fetched * units.fragment_read;
        let hits = (cache.tail_hits - self.tail_hits) * units.node_read;
        let frame = cache.chunk_bytes() / (cache.last_chunk().len().max(1) as u64);
        let saved = [
            a_byte(hits, cache.tail_frames() as u64 * frame),
            a_byte(fragments - self.fragments, buffers.pool.memory_bytes()),
        ];
        self.cache_saves = self.cache_saves / 4 * 3 + saved[0];
        self.pool_saves = self.pool_saves / 4 * 3 + saved[1];
        (self.tail_hits, self.fragments) = (cache.tail_hits, fragments);
        self.accesses = nodes.reads.all() + buffers.counters.fetched;
    }

    /// Bytes of the shared memory that neither part has.
    fn idle(&self, nodes: &Nodes, buffers: &Buffers) -> u64 {
        let taken = buffers.pool.memory_bytes() + nodes.cache.memory_bytes();
        self.shared.unwrap_or(0).saturating_sub(taken)
    }

    /// Chunks that the pool can give back and work.
    fn chunks_of_pool(&self, buffers: &Buffers) -> u64 {
        let pool = &buffers.pool;
        let beyond = pool.memory_bytes().saturating_sub(self.pool_least);
        let chunks = (pool.cells.chunks() as u64).saturating_sub(1);
        chunks.min(beyond / pool.cells.chunk_bytes.max(1))
    }

    /// Gives a chunk of the pool back; false if it has none to give.
    fn shrink_pool(&self, bare: &mut BareTree<'_>, buffers: &mut Buffers) -> Result<bool> {
        if self.chunks_of_pool(buffers) == 0 {
            return Ok(false);
        }
        while !buffers.pool.cells.can_shrink() {
            buffers.write_page(&mut bare.log, None, Cause::Flush)?;
        }
        buffers.pool.shrink();
        Ok(true)
    }

    /// Gives a chunk of the cache back; false if it has none to give.
    fn shrink_cache(bare: &mut BareTree<'_>) -> Result<bool> {
        let can_shrink = bare.nodes.cache.chunks_beyond(FRAMES_LEAST as usize) > 0;
        if can_shrink {
            bare.nodes.give_frames_back(&mut bare.log)?;
        }
        Ok(can_shrink)
    }

    /// Refuses tables of `need` bytes if they are more than these may take, what pool and cache can
    /// give included: however those lend each other theirs, it is as much.
    pub(super) fn check_tables(&self, need: u64, nodes: &Nodes, buffers: &Buffers) -> Result<()> {
        let Some(tables) = self.tables else {
            return Ok(());
        };
        let cache = &nodes.cache;
        let frames = cache.chunks_beyond(FRAMES_LEAST as usize) as u64 * cache.chunk_bytes();
        let cells = self.chunks_of_pool(buffers) * buffers.pool.cells.chunk_bytes;
        let lendable = self.shared.map_or(0, |_| self.idle(nodes, buffers) + frames + cells);
        let have = tables + lendable;
        match need > have {
            true => Err(store::Error::LittleTables { have, need }.into()),
            false => Ok(()),
        }
    }

    /// Lets the tables have `need` bytes, as far as pool and cache can give what is missing: what
    /// saves less gives first.
    pub(super) fn lend_to_tables(
        &mut self,
        need: u64,
        bare: &mut BareTree<'_>,
        buffers: &mut Buffers,
    ) -> Result<()> {
        let (Some(have), Some(shared)) = (self.tables, self.shared) else {
            return Ok(());
        };
        let more = need.saturating_sub(have);
        while self.idle(&bare.nodes, buffers) < more {
            let given = match self.cache_saves < self.pool_saves {
                true => Self::shrink_cache(bare)? || self.shrink_pool(bare, buffers)?,
                false => self.shrink_pool(bare, buffers)? || Self::shrink_cache(bare)?,
            };
            if !given {
                break;
            }
        }
        let more = more.min(self.idle(&bare.nodes, buffers));
        (self.tables, self.shared) = (Some(have + more), Some(shared - more));
        Ok(())
    }
}

/// What `saved` nanoseconds are to each of `bytes` bytes, in 2^-24 of them.
fn a_byte(saved: u64, bytes: u64) -> u64 {
    let each = (u128::from(saved) << 24) / u128::from(bytes.max(1));
    u64::try_from(each).unwrap_or(u64::MAX / 8).min(u64::MAX / 8)
}

#[cfg(test)]
mod tests;
