//! Reading buffers: chains of fragments, and what is in the pool.

use core::ops::Range;

use device::{Cause, Page};

use super::super::buffer_pool::BufferId;
use super::super::emptying::{self, Sorter};
use super::super::ground::Ground;
use super::super::layout::{FRAGMENT_HEADER_BYTES, Link, Owner, open_fragment};
use super::super::nodes::damaged;
use super::super::stream::{self, Pending};
use super::super::table::BufferRecord;
use super::{Buffers, is_leaf};
use index::Result;

impl Buffers {
    /// Reads the fragment at `link`: the bytes of its stream in [`Buffers::read`], and the link to
    /// the one before it.
    ///
    /// # Errors
    /// It is damaged, or the chip failed.
    pub(in super::super) fn read_fragment(
        &mut self,
        log: &mut Ground<'_>,
        owner: Owner,
        link: Link,
        cause: Cause,
    ) -> Result<(Range<usize>, Option<Link>)> {
        let pages = log.pages();
        self.pages.check_link(link, pages).map_err(|what| damaged(link.page, what))?;
        let bytes = &mut self.read[..usize::from(link.bytes)];
        log.read(link.page, u32::from(link.offset) - self.pages.first(), bytes, cause)?;
        self.counters.fetched += 1;
        let opened = open_fragment(owner, link, bytes);
        let (before, _) = opened.map_err(|what| damaged(link.page, what))?;
        // Fragments are written one after the other, so a chain can't run in a circle; a chain of
        // made-up links is as long as its record says.
        Ok((FRAGMENT_HEADER_BYTES..usize::from(link.bytes), before))
    }

    /// Searches buffer `number` for the newest entry of `key`, which `found` gets.
    ///
    /// # Errors
    /// The buffer is damaged, or the chip failed.
    pub(in super::super) fn find<T>(
        &mut self,
        log: &mut Ground<'_>,
        number: u32,
        key: &[u8],
        found: &mut dyn FnMut(&Pending<'_>) -> T,
    ) -> Result<Option<T>> {
        let record = self.record(number);
        let passed = self.pool.held(BufferId(number)).entries;
        self.counters.passed[is_leaf(&record)] += u64::from(passed);
        let held = self.pool.find(BufferId(number), key, found);
        if let Some(held) = held.map_err(|what| damaged(Page(0), what))? {
            return Ok(Some(held));
        }
        self.counters.searched[is_leaf(&record)] += u64::from(record.entries() > 0);
        let mut next = record.newest();
        let mut left = record.fragments_most();
        while let Some(link) = next.filter(|_| left > 0) {
            let (stream, before) = self.read_fragment(log, record.owner, link, Cause::Lookup)?;
            self.counters.fragments_read[is_leaf(&record)] += 1;
            let entry = stream::find(self.form, &self.read[stream], key);
            if let Some(entry) = entry.map_err(|what| damaged(link.page, what))? {
                return Ok(Some(found(&entry)));
            }
            next = before;
            left -= 1;
        }
        Ok(None)
    }

    /// Hands every entry of buffer `number` to `take`, with an age: a higher one is newer.
    ///
    /// # Errors
    /// As [`Buffers::find`].
    pub(in super::super) fn scan(
        &mut self,
        log: &mut Ground<'_>,
        number: u32,
        take: &mut dyn FnMut(&Pending<'_>, u64),
    ) -> Result<()> {
        let mut age = u64::from(u32::MAX) << 32;
        let visited = self.pool.visit(BufferId(number), &mut |entry| {
            take(entry, age);
            age += 1;
            Ok(())
        });
        visited.map_err(|what| damaged(Page(0), what))?;
        self.scan_chain(log, number, take)
    }

    /// As [`Buffers::scan`], of the entries that are on flash.
    ///
    /// # Errors
    /// As [`Buffers::find`].
    pub(in super::super) fn scan_chain(
        &mut self,
        log: &mut Ground<'_>,
        number: u32,
        take: &mut dyn FnMut(&Pending<'_>, u64),
    ) -> Result<()> {
        let record = self.record(number);
        let mut next = record.newest();
        let mut left = record.fragments_most();
        while let Some(link) = next.filter(|_| left > 0) {
            let (stream, before) = self.read_fragment(log, record.owner, link, Cause::Lookup)?;
            self.counters.fragments_read[is_leaf(&record)] += 1;
            let mut reader = self.form.reader(&self.read[stream]);
            let mut age = u64::from(left) << 32;
            while let Some((entry, _)) = reader.next().map_err(|what| damaged(link.page, what))? {
                take(&entry, age);
                age += 1;
            }
            next = before;
            left -= 1;
        }
        Ok(())
    }

    /// Loads the entries that buffer `number` has in the pool, which are newer than all that is
    /// loaded later; false if there is no room for them.
    ///
    /// # Errors
    /// The buffer is damaged.
    pub(in super::super) fn load_held(&mut self, number: u32, sorter: &mut Sorter) -> Result<bool> {
        let bytes = self.pool.held(BufferId(number)).bytes;
        let Some(room) = sorter.room(bytes) else {
            return Ok(false);
        };
        let copied = self.pool.copy(BufferId(number), 0..u32::MAX, room);
        copied.map_err(|what| damaged(Page(0), what))?;
        match sorter.load(bytes) {
            Err(emptying::FULL) => Ok(false),
            loaded => loaded.map(|_| true).map_err(|what| damaged(Page(0), what)),
        }
    }

    /// Loads the chain of `owner` from `from` on; false if there is no room for all of it.
    ///
    /// # Errors
    /// The buffer is damaged, or the chip failed.
    pub(in super::super) fn load_chain(
        &mut self,
        log: &mut Ground<'_>,
        owner: Owner,
        from: Option<Link>,
        sorter: &mut Sorter,
        cause: Cause,
    ) -> Result<bool> {
        let mut next = from;
        while let Some(link) = next {
            let (stream, before) = self.read_fragment(log, owner, link, cause)?;
            let Some(room) = sorter.room(stream.len()) else {
                return Ok(false);
            };
            room.copy_from_slice(&self.read[stream.clone()]);
            match sorter.load(stream.len()) {
                Err(emptying::FULL) => return Ok(false),
                loaded => loaded.map_err(|what| damaged(link.page, what))?,
            };
            if self.lets_go {
                log.let_go(link.page, cause)?;
            }
            next = before;
        }
        Ok(true)
    }

    /// As [`Buffers::load_chain`], of all that `record` tells of, which is let go.
    ///
    /// # Errors
    /// As [`Buffers::load_chain`], which leaves it unknown what was let go.
    pub(in super::super) fn take_chain(
        &mut self,
        log: &mut Ground<'_>,
        record: &BufferRecord,
        sorter: &mut Sorter,
        cause: Cause,
    ) -> Result<bool> {
        self.lets_go = true;
        let taken = self.load_chain(log, record.owner, record.newest(), sorter, cause);
        self.lets_go = false;
        taken
    }

    /// Selects the lowest keys above `after` of the chain that `record` tells of, as far as there
    /// is room.
    ///
    /// # Errors
    /// The buffer is damaged, or the chip failed.
    pub(in super::super) fn select_chain(
        &mut self,
        log: &mut Ground<'_>,
        record: &BufferRecord,
        after: Option<&[u8]>,
        sorter: &mut Sorter,
        cause: Cause,
    ) -> Result<()> {
        sorter.clear();
        let mut next = record.newest();
        let mut left = record.fragments_most();
        while let Some(link) = next.filter(|_| left > 0) {
            let (stream, before) = self.read_fragment(log, record.owner, link, cause)?;
            let selected = sorter.select(&self.read[stream], after);
            selected.map_err(|what| damaged(link.page, what))?;
            next = before;
            left -= 1;
        }
        sorter.sort();
        Ok(())
    }
}
