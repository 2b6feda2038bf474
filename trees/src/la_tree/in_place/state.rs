//! The state at a checkpoint: the records of buffers and the pool, in pages of their own.
//!
//! They are written anew for a checkpoint if anything changed since the last one, whose pages are
//! given back then: so none of them has to be kept. How many fragments of a page are in use is not
//! stored: an opening counts them.

use core::fmt::Display;

use device::{Cause, Page};

use super::super::LaTree;
use index::{Error, Result};

/// Bytes of a root record that only a tree on a disk has.
const TAIL: usize = 12;

impl LaTree<'_> {
    /// Gives back the pages of the last state, before the next is written.
    pub(in super::super) fn begin_state(&mut self) -> Result<()> {
        if let Some(disk) = self.log.disk_mut() {
            disk.drop_state(Cause::Checkpoint)?;
            disk.gone_down = 0;
            self.nodes.buffered.chunks.fill(None);
        }
        Ok(())
    }

    /// Lists the pages of the pool as they stand in `record`: behind those of the chunks.
    pub(in super::super) fn list_pool(&self, record: &mut alloc::vec::Vec<u8>) {
        let state = self.log.disk().map_or(&[][..], |disk| disk.state.as_slice());
        let pool = state.get(self.chunk_pages() as usize..).unwrap_or_default();
        record.extend_from_slice(&(pool.len() as u32).to_le_bytes());
        pool.iter().for_each(|page| record.extend_from_slice(&page.0.to_le_bytes()));
    }

    /// Appends what only a tree on a disk has to its root record.
    pub(in super::super) fn encode_tail(&self, record: &mut alloc::vec::Vec<u8>) {
        if let Some(disk) = self.log.disk() {
            record.extend_from_slice(&disk.nodes.to_le_bytes());
            record.extend_from_slice(&disk.longest_value.to_le_bytes());
        }
    }

    /// Takes what is in use from a root record's lists, and counts the fragments.
    pub(in super::super) fn take_state(
        &mut self,
        tail: &[u8],
        pages: &mut dyn Iterator<Item = Page>,
    ) -> Result<()> {
        let damaged: Error =
            store::Error::NotAnIndex { is_ours: true, what: "its root record is damaged" }.into();
        let leaves = self.leaves();
        let Some(disk) = self.log.disk_mut() else {
            return if tail.is_empty() { Ok(()) } else { Err(damaged) };
        };
        let (Some((nodes, longest)), TAIL) = (tail.split_first_chunk(), tail.len()) else {
            return Err(damaged);
        };
        disk.forget();
        disk.gone_down = 0;
        disk.nodes = u64::from_le_bytes(*nodes);
        let (all, bytes) = (u64::from(disk.file.pages_most()), u64::from(disk.file.page_bytes()));
        if disk.nodes > all || leaves > all || self.entries > all * bytes {
            return Err(damaged);
        }
        disk.longest_value = longest.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        for page in pages {
            disk.keep_state(page);
        }
        for number in 0..self.buffers.records.len() as u32 {
            let record = self.buffers.record(number);
            match self.buffers.hold_chain(&mut self.log, &record, Cause::Recovery) {
                // What is behind damage can't be reached. Whoever reads the buffer is told.
                Err(Error::Store(damage)) if damage.is_damage() => {}
                held => held?,
            }
        }
        Ok(())
    }

    /// Compares the pages that the tree has, `pages` of them nodes and long values, with those in
    /// use.
    pub(in super::super) fn check_pages(
        &mut self,
        pages: u64,
        finding: &mut dyn FnMut(&dyn Display),
    ) -> Result<()> {
        let Some(disk) = self.log.disk_mut() else {
            return Ok(());
        };
        let (used, _) = disk.file.pages_used();
        let own = used.saturating_sub(disk.file.record_pages());
        let has = pages + u64::from(disk.pages_live);
        if has != u64::from(own) {
            finding(&format_args!("{own} pages are in use, but the tree has {has}"));
        }
        match disk.file.check_pages(finding) {
            Ok(()) => Ok(()),
            Err(error) => Error::Store(error).report_damage(finding),
        }
    }
}
