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
//! Memory is a hard budget: what one gets is given back by the other before.

use device::Cause;

use super::LaTree;
use super::plan::FRAMES_LEAST;
use index::Result;

/// Nodes and fragments read between two decisions.
const WINDOW: u64 = 512;

/// What is known of the worth of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sharing {
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

impl LaTree<'_> {
    /// Moves memory between pool and cache, if that is allowed and worth it.
    pub(super) fn share_memory(&mut self) -> Result<()> {
        let Some(shared_bytes) = self.plan.shared_bytes else {
            return Ok(());
        };
        let accesses = self.nodes.reads.all() + self.buffers.counters.fetched;
        if accesses - self.sharing.accesses < WINDOW || !self.has_space() {
            return Ok(());
        }
        self.sharing.accesses = accesses;
        self.observe_worth();
        let (to_cache, to_pool) = (self.sharing.cache_saves, self.sharing.pool_saves);
        if to_cache / 2 > to_pool {
            self.move_to_cache(shared_bytes)
        } else if to_pool / 2 > to_cache {
            self.move_to_pool(shared_bytes)
        } else {
            Ok(())
        }
    }

    /// Learns what memory would have saved in the window that ends.
    fn observe_worth(&mut self) {
        let (units, cache) = (self.estimator.units, &self.nodes.cache);
        let fragments = self.buffers.counters.fetched * units.fragment_read;
        let hits = (cache.tail_hits - self.sharing.tail_hits) * units.node_read;
        let frame = cache.chunk_bytes() / (cache.last_chunk().len().max(1) as u64);
        let saved = [
            a_byte(hits, cache.tail_frames() as u64 * frame),
            a_byte(fragments - self.sharing.fragments, self.buffers.pool.memory_bytes()),
        ];
        let sharing = &mut self.sharing;
        sharing.cache_saves = sharing.cache_saves / 4 * 3 + saved[0];
        sharing.pool_saves = sharing.pool_saves / 4 * 3 + saved[1];
        (sharing.tail_hits, sharing.fragments) = (cache.tail_hits, fragments);
    }

    /// Bytes of the shared memory that neither part has.
    fn idle_bytes(&self, shared_bytes: u64) -> u64 {
        let taken = self.buffers.pool.memory_bytes() + self.nodes.cache.memory_bytes();
        shared_bytes.saturating_sub(taken)
    }

    fn move_to_cache(&mut self, shared_bytes: u64) -> Result<()> {
        let need = self.nodes.cache.chunk_bytes();
        while self.idle_bytes(shared_bytes) < need {
            let pool = &self.buffers.pool;
            let left = pool.memory_bytes().saturating_sub(pool.cells.chunk_bytes);
            if left < self.plan.pool_least || pool.cells.chunks() < 2 {
                return Ok(());
            }
            while !self.buffers.pool.cells.can_shrink() {
                self.buffers.write_page(&mut self.log, None, Cause::Flush)?;
            }
            self.buffers.pool.shrink();
        }
        self.nodes.cache.grow();
        self.sharing.moved[0] += 1;
        Ok(())
    }

    fn move_to_pool(&mut self, shared_bytes: u64) -> Result<()> {
        let need = self.buffers.pool.cells.chunk_bytes;
        while self.idle_bytes(shared_bytes) < need {
            if self.nodes.cache.frames_without_last() < FRAMES_LEAST as usize {
                return Ok(());
            }
            self.nodes.give_frames_back(&mut self.log)?;
        }
        self.buffers.pool.cells.grow();
        self.sharing.moved[1] += 1;
        Ok(())
    }
}

/// What `saved` nanoseconds are to each of `bytes` bytes, in 2^-24 of them.
fn a_byte(saved: u64, bytes: u64) -> u64 {
    let each = (u128::from(saved) << 24) / u128::from(bytes.max(1));
    u64::try_from(each).unwrap_or(u64::MAX / 8).min(u64::MAX / 8)
}
