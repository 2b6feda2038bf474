//! The memory that a tree works in, by its height.

use super::super::layout::HEIGHT_MOST;
use super::super::node_cache::GRAIN_BYTES;
use super::super::path::{CopiedPath, Spot};
use super::super::plan::Level;
use super::super::plan::worst::path_bytes;
use super::super::policy::Policy;
use super::{BareTree, CUTS};
use index::Result;

/// Bytes of memory that a tree works in, without the page log's: the nodes of a path, the page that
/// is made of them, a plan, keys and an entry, what a cursor or a replay holds, and, where lengths
/// vary, two more nodes.
pub(in crate::path_copying) fn working_bytes(policy: &Policy, page_bytes: u32) -> u64 {
    let pages = policy.pages();
    let nodes = if pages.is_variable() { 2 * u64::from(pages.area()) } else { 0 };
    let limits = policy.limits();
    let plan = usize::from(policy.height_most()) * size_of::<Level>() + CUTS * size_of::<usize>();
    let keys = 4 * limits.key + 4 * limits.entry;
    path_bytes(policy) + u64::from(page_bytes) + nodes + (plan + keys) as u64
}

impl BareTree<'_> {
    /// Bytes of memory that the tree works in.
    pub(in crate::path_copying) fn working_bytes(&self) -> u64 {
        let log = &self.nodes.log;
        working_bytes(&self.policy, log.geometry().page_bytes()) + log.buffer_bytes()
    }

    /// The most levels that the tree can have where the node cache gives way to longer paths. As
    /// many stay possible however it does, though a smaller cache uses a little less of its memory.
    pub(in crate::path_copying) fn height_possible(&self) -> u8 {
        let more = self.nodes.cache_bytes() / (self.level_bytes() + GRAIN_BYTES as u64);
        let height = u64::from(self.policy.height_most()).saturating_add(more);
        height.min(HEIGHT_MOST.into()) as u8
    }

    /// Lets the tree get two levels higher, or one, if it has the memory: before an update, which
    /// adds one at the most.
    pub(in crate::path_copying) fn allow_growth(&mut self) {
        if !self.allow_height(self.height() + 2) {
            self.allow_height(self.height() + 1);
        }
    }

    /// Lets the tree have `height` levels: the node cache gives way to longer paths. False where it
    /// is too small for that. The path is forgotten.
    fn allow_height(&mut self, height: u8) -> bool {
        if height <= self.policy.height_most() {
            return true;
        }
        let cache = self.nodes.cache_bytes();
        let Some(left) = cache.checked_sub(self.more_for(height)).filter(|_| height <= HEIGHT_MOST)
        else {
            return false;
        };
        self.nodes.shrink_cache(left as usize);
        self.policy = self.policy.clone().up_to(height);
        // Before the new one is made, for there is no memory for both.
        self.path = CopiedPath::new(&self.nodes.pages, 0, 0);
        let height = self.policy.height_most();
        self.path = CopiedPath::new(&self.nodes.pages, height, path_bytes(&self.policy));
        true
    }

    /// Bytes of memory that the tree works in beside what it does now, at most, if it has `height`
    /// levels.
    fn more_for(&self, height: u8) -> u64 {
        u64::from(height.saturating_sub(self.policy.height_most())) * self.level_bytes()
    }

    /// Bytes of memory for one level more, which has a page to itself.
    fn level_bytes(&self) -> u64 {
        let place = size_of::<Level>() + size_of::<Spot>();
        u64::from(self.nodes.pages.area()) + place as u64
    }

    /// Refuses a tree of `height` levels where the memory is too small for its paths beside so many
    /// bytes for updates that wait: more memory made it.
    pub(super) fn check_height(&mut self, height: u8, waiting: u64) -> Result<()> {
        if self.allow_height(height) {
            return Ok(());
        }
        let have = self.working_bytes() + waiting + self.nodes.cache_bytes();
        let need = self.working_bytes() + waiting + self.more_for(height);
        Err(store::Error::LittleMemory { have, need }.into())
    }
}
