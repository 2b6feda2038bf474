//! Going down to several leaves at once, so that the device reads their pages together.

use alloc::vec::Vec;

use device::Cause;
use index::Result;
use store::LogicalPage;

use super::page_store::Pages;
use super::{At, NodeSource, PageStore, Position};

/// The most leaves that are read ahead at once.
const AHEAD_MOST: usize = 32;

/// A key, and the node from which its lookup goes on.
pub(crate) type Descent<'k> = (At<LogicalPage>, &'k [u8]);

impl<'d, F: Pages<'d>> PageStore<'d, F> {
    /// Brings the nodes on the way of each descent into the cache, those of a level at once. What
    /// is damaged or has no room is left to the lookup.
    ///
    /// # Errors
    /// A changed page had to leave the cache, and its write failed.
    pub(crate) fn prefetch(&mut self, mut descents: Vec<Descent<'_>>) -> Result<()> {
        let mut wanted = Vec::with_capacity(descents.len());
        while !descents.is_empty() {
            let file = self.file.pages_mut();
            wanted.clear();
            wanted.extend(descents.iter().map(|(at, _)| at.id).filter(|id| !file.is_cached(*id)));
            file.bring(&wanted, Cause::Lookup, &self.codecs)?;
            descents.retain_mut(|(at, key)| {
                let child = if at.level > 0 && self.file.pages().is_cached(at.id) {
                    let node = self.node(*at, Cause::Lookup).ok();
                    node.filter(|it| it.count() > 0).map(|it| it.child(it.search_child(key)))
                } else {
                    None
                };
                child.map(|id| *at = At { id, level: at.level - 1 }).is_some()
            });
        }
        Ok(())
    }

    /// Reads up to `most` of the leaves behind that in which `position` stands, all at once, if the
    /// next is not in the cache.
    ///
    /// # Errors
    /// As [`prefetch`](PageStore::prefetch), or the node above can't be read.
    pub(crate) fn read_ahead(
        &mut self,
        position: &Position<LogicalPage>,
        most: usize,
    ) -> Result<()> {
        let mut wanted = [LogicalPage(0); AHEAD_MOST];
        let count = position.leaves_ahead(self, &mut wanted[..most.min(AHEAD_MOST)])?;
        let file = self.file.pages_mut();
        match wanted.get(..count) {
            Some(wanted @ [next, ..]) if !file.is_cached(*next) => {
                Ok(file.bring(wanted, position.cause(), &self.codecs)?)
            }
            _ => Ok(()),
        }
    }
}
