//! Merging in steps: each update does its share, so that none has to wait for a whole merge.
//!
//! A head that is full stays as it is until it is merged, and another one takes updates meanwhile.
//! All that is to be merged is known when the merge begins: entries and fences of the head and of
//! each level. It is divided by what the other head takes at least until it is full, too.
//!
//! A merge under way stands in no root record: after an opening it begins anew, and has the rest of
//! the other head's room to end in.

use index::Result;

use super::Levels;
use super::head::{Head, HeadState};

/// A head that takes no more updates.
pub(super) struct FullHead {
    pub(super) head: Head,
    /// Pages that it has.
    pub(super) pages: u32,
}

impl Levels<'_> {
    /// The heads that there are, the one that takes updates first.
    pub(super) fn heads(&self) -> impl Iterator<Item = &Head> {
        core::iter::once(&self.head).chain(self.full.as_ref().map(|full| &full.head))
    }

    /// The head that is merged next.
    pub(super) fn head_to_merge(&self) -> &Head {
        self.full.as_ref().map_or(&self.head, |full| &full.head)
    }

    pub(super) fn head_of(&self, state: &HeadState) -> Head {
        let mut head = Head::new(state.root, self.plan.codecs, self.plan.longest.1);
        (head.btree.entries, head.bytes) = (state.entries, state.bytes);
        head
    }

    /// Pages of runs that a merge under way took.
    pub(super) fn pages_reserved(&self) -> u64 {
        self.merging.as_ref().map_or(0, |merging| merging.pages)
    }

    /// Merges a full head, or begins to.
    pub(super) fn merge_head(&mut self) -> Result<()> {
        if !self.plan.choices.is_deamortized {
            return self.cascade(false);
        }
        self.end_merge()?;
        let pages = self.head_pages();
        let root = crate::btree::NodeStore::create(&mut self.store, 0, device::Cause::Merge)?;
        let state = HeadState { root: crate::btree::At::leaf(root), entries: 0, bytes: 0 };
        let next = self.head_of(&state);
        let head = core::mem::replace(&mut self.head, next);
        self.full = Some(FullHead { head, pages });
        self.begin_steps()
    }

    /// Begins the merge of the full head; where it leaves too little room, it is made at once.
    fn begin_steps(&mut self) -> Result<()> {
        let merging = self.begin(false, self.request_bytes()?)?;
        let is_beside = self.has_room_beside(merging.pages);
        self.merging = Some(merging);
        if !is_beside {
            self.end_merge()?;
        }
        Ok(())
    }

    /// Bytes of a request with which all buffers of a merge take no more than half of an update's
    /// share of its pages: for so much may come to an update beside its share.
    /// Larger ones are for who asks for them: on average they cost less time, and at worst more.
    fn request_bytes(&self) -> Result<u32> {
        if self.plan.is_unit_given {
            return Ok(u32::MAX);
        }
        let target = self.target(false)?;
        let read = self.components[..target.below]
            .iter()
            .filter_map(|one| self.manifest.run(one.run).map(|run| u64::from(run.units)));
        let pages = target.pages + read.sum::<u64>();
        let updates = self.head_to_merge().btree.entries.max(1);
        let buffers = target.below as u64 + 2 + u64::from(self.plan.stack);
        let each = (pages / updates / (2 * buffers)).max(1);
        let page = self.plan.page_bytes;
        Ok(u32::try_from(each).unwrap_or(u32::MAX).saturating_mul(page))
    }

    /// Does an update's share of the merge under way.
    pub(super) fn merge_share(&mut self) -> Result<()> {
        if self.full.is_none() {
            return Ok(());
        }
        let Some(mut merging) = self.merging.take() else {
            return self.begin_steps();
        };
        let [used, room] = [self.head.used(), merging.room].map(|it| it - merging.from.min(it));
        let due = u128::from(merging.entries) * u128::from(used) / u128::from(room.max(1));
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        if merging.is_read() {
            // The ends of all runs that it writes are an update's share of their own.
            return self.complete(merging);
        }
        if let Err(error) = merging.step(&mut self.store.file, due) {
            merging.abandon(&mut self.store.file)?;
            return Err(error);
        }
        self.merging = Some(merging);
        Ok(())
    }

    /// Makes what is left of the merge of a full head; false if there is none.
    pub(super) fn end_merge(&mut self) -> Result<bool> {
        if self.full.is_none() {
            return Ok(false);
        }
        let merging = match self.merging.take() {
            Some(merging) => merging,
            None => self.begin(false, u32::MAX)?,
        };
        self.complete(merging).map(|()| true)
    }
}
