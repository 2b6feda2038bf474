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
        let accesses = self.bare.nodes.reads.all() + self.buffers.counters.fetched;
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
        let (units, cache) = (self.estimator.units, &self.bare.nodes.cache);
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
        let taken = self.buffers.pool.memory_bytes() + self.bare.nodes.cache.memory_bytes();
        shared_bytes.saturating_sub(taken)
    }

    fn move_to_cache(&mut self, shared_bytes: u64) -> Result<()> {
        let need = self.bare.nodes.cache.chunk_bytes();
        while self.idle_bytes(shared_bytes) < need {
            if !self.shrink_pool()? {
                return Ok(());
            }
        }
        self.bare.nodes.cache.grow();
        self.sharing.moved[0] += 1;
        Ok(())
    }

    fn move_to_pool(&mut self, shared_bytes: u64) -> Result<()> {
        let need = self.buffers.pool.cells.chunk_bytes;
        while self.idle_bytes(shared_bytes) < need {
            if !self.shrink_cache()? {
                return Ok(());
            }
        }
        self.buffers.pool.cells.grow();
        self.sharing.moved[1] += 1;
        Ok(())
    }

    /// Chunks that the pool can give back and work.
    fn chunks_of_pool(&self) -> u64 {
        let pool = &self.buffers.pool;
        let beyond = pool.memory_bytes().saturating_sub(self.plan.pool_least);
        let chunks = (pool.cells.chunks() as u64).saturating_sub(1);
        chunks.min(beyond / pool.cells.chunk_bytes.max(1))
    }

    /// Gives a chunk of the pool back; false if it has none to give.
    fn shrink_pool(&mut self) -> Result<bool> {
        if self.chunks_of_pool() == 0 {
            return Ok(false);
        }
        while !self.buffers.pool.cells.can_shrink() {
            self.buffers.write_page(&mut self.bare.log, None, Cause::Flush)?;
        }
        self.buffers.pool.shrink();
        Ok(true)
    }

    /// Gives a chunk of the cache back; false if it has none to give.
    fn shrink_cache(&mut self) -> Result<bool> {
        let can_shrink = self.bare.nodes.cache.chunks_beyond(FRAMES_LEAST as usize) > 0;
        if can_shrink {
            self.bare.nodes.give_frames_back(&mut self.bare.log)?;
        }
        Ok(can_shrink)
    }

    /// Bytes that the tables may still get of pool and cache: however these lend each other theirs,
    /// it is as much.
    pub(super) fn lendable_bytes(&self) -> u64 {
        let Some(shared_bytes) = self.plan.shared_bytes else {
            return 0;
        };
        let cache = &self.bare.nodes.cache;
        let frames = cache.chunks_beyond(FRAMES_LEAST as usize) as u64 * cache.chunk_bytes();
        let cells = self.chunks_of_pool() * self.buffers.pool.cells.chunk_bytes;
        self.idle_bytes(shared_bytes) + frames + cells
    }

    /// Lets the tables have `need` bytes, as far as pool and cache can give what is missing: what
    /// saves less gives first.
    pub(super) fn lend_to_tables(&mut self, need: u64) -> Result<()> {
        let (Some(have), Some(shared_bytes)) = (self.plan.tables_most, self.plan.shared_bytes)
        else {
            return Ok(());
        };
        let more = need.saturating_sub(have);
        while self.idle_bytes(shared_bytes) < more {
            let cache_first = self.sharing.cache_saves < self.sharing.pool_saves;
            let given = match cache_first {
                true => self.shrink_cache()? || self.shrink_pool()?,
                false => self.shrink_pool()? || self.shrink_cache()?,
            };
            if !given {
                break;
            }
        }
        let more = more.min(self.idle_bytes(shared_bytes));
        self.plan.tables_most = Some(have + more);
        self.plan.shared_bytes = Some(shared_bytes - more);
        Ok(())
    }
}

/// What `saved` nanoseconds are to each of `bytes` bytes, in 2^-24 of them.
fn a_byte(saved: u64, bytes: u64) -> u64 {
    let each = (u128::from(saved) << 24) / u128::from(bytes.max(1));
    u64::try_from(each).unwrap_or(u64::MAX / 8).min(u64::MAX / 8)
}
