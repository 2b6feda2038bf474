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
use super::cascade::Merging;
use super::head::{Head, HeadState};

/// A head that takes no more updates.
pub(super) struct FullHead {
    pub(super) head: Head,
    /// Pages that it has.
    pub(super) pages: u32,
}

/// Pages that an update may cost, however small its share is: of a page there is no part, and an
/// entry may want one of two inputs, and end one of the run and one of the fences above it.
const PAGES_LEAST: u64 = 4;

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
        let (bytes, pages) = self.request_bytes()?;
        let mut merging = self.begin(false, bytes)?;
        if !self.plan.is_unit_given {
            let full = self.head_to_merge();
            let each = (full.used() / full.btree.entries.max(1)).max(1);
            let updates = (self.room_to_end_in(&merging) / each).max(1);
            // So it never gets behind, whatever the requests of the single updates are.
            merging.most = (pages.div_ceil(updates) + merging.request).max(PAGES_LEAST);
        }
        let is_beside = self.has_room_beside(merging.pages);
        self.merging = Some(merging);
        if !is_beside {
            self.end_merge()?;
        }
        Ok(())
    }

    /// Bytes of a request with which all buffers of a merge take no more than half of an update's
    /// share of its pages: for so much may come to an update beside its share. And these pages.
    /// Larger requests are for who asks for them: on average they cost less time, at worst more.
    fn request_bytes(&self) -> Result<(u32, u64)> {
        if self.plan.is_unit_given {
            return Ok((u32::MAX, 0));
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
        Ok((u32::try_from(each).unwrap_or(u32::MAX).saturating_mul(page), pages))
    }

    /// Does an update's share of the merge under way.
    pub(super) fn merge_share(&mut self) -> Result<()> {
        if self.full.is_none() {
            return Ok(());
        }
        let Some(mut merging) = self.merging.take() else {
            return self.begin_steps();
        };
        let shared = if merging.is_read() {
            // The end of each run that it writes is an update's share of its own.
            merging.end_one(&mut self.store.file)
        } else {
            let due = self.due(&merging);
            let most = merging.most;
            merging.share(&mut self.store.file, (due, most)).map(|()| true)
        };
        match shared {
            Ok(true) => self.merging = Some(merging),
            Ok(false) => return self.complete(merging),
            Err(error) => {
                merging.abandon(&mut self.store.file)?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Entries that are to be read by now.
    fn due(&self, merging: &Merging) -> u64 {
        let used = self.head.used() - merging.from.min(self.head.used());
        let room = self.room_to_end_in(merging);
        let due = u128::from(merging.entries) * u128::from(used) / u128::from(room);
        u64::try_from(due).unwrap_or(u64::MAX)
    }

    /// What the other head takes until all entries are read, which leaves room for the ends of runs
    /// and for what has to wait a little: most of what it takes at least.
    fn room_to_end_in(&self, merging: &Merging) -> u64 {
        let room = merging.room - merging.from.min(merging.room);
        let ends = (u64::from(self.plan.stack) + 3) * self.plan.longest.1 as u64;
        (room - room / 8).saturating_sub(ends).max(room / 2).max(1)
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
