//! Reading buffers: chains of fragments, and what is in the pool.

use core::ops::Range;

use device::{Cause, Page};

use super::super::buffer_pool::{BufferId, Copied};
use super::super::layout::{FRAGMENT_HEADER_BYTES, Link, Owner, damaged, open_fragment};
use super::super::sorter::{self, Sorter};
use super::super::storage::Storage;
use super::super::stream::{self, Pending};
use super::super::table::BufferRecord;
use super::{Buffers, Wanted, is_leaf};
use index::Result;

/// Fragments on flash, from the newest on. They are written one after the other, so a chain can't
/// run in a circle; one of made-up links ends with the number that is told.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Chain {
    owner: Owner,
    newest: Option<Link>,
    fragments: u32,
}

impl Chain {
    /// The chain of the buffer with this record.
    pub(in super::super) fn of(record: &BufferRecord) -> Self {
        let (newest, fragments) = (record.newest(), record.fragments_most());
        Chain { owner: record.owner, newest, fragments }
    }

    /// The newest fragment that is left.
    pub(in super::super) fn newest(&self) -> Option<Link> {
        self.newest.filter(|_| self.fragments > 0)
    }
}

impl Buffers {
    /// Reads the newest fragment of a chain that may have one of the keys `wanted`, for a lookup
    /// or a range, as [`Buffers::next_fragment`] does.
    fn next_with(
        &mut self,
        log: &mut Storage<'_>,
        chain: &mut Chain,
        wanted: &Wanted,
    ) -> Result<Option<(Link, Range<usize>)>> {
        if !self.fences.is_used() {
            return self.next_fragment(log, chain, Cause::Lookup);
        }
        let read_of = usize::from(wanted.is_range());
        while let Some(link) = chain.newest() {
            let Some(before) = self.fences.passed(link, wanted) else {
                self.read_of[read_of].add(1, 1);
                let read = self.next_fragment(log, chain, Cause::Lookup)?;
                if let Some((link, stream)) = &read
                    && !self.fences.is_known(*link)
                {
                    let stream = &self.read[stream.clone()];
                    let noted = self.fences.note((*link, chain.newest), self.form, stream);
                    noted.map_err(|what| damaged(link.page, what))?;
                }
                return Ok(read);
            };
            self.read_of[read_of].add(0, 1);
            chain.newest = before;
            chain.fragments -= 1;
        }
        Ok(None)
    }

    /// The least prefix above `after` of a key that is the greatest of its fragment, of those of
    /// buffer `number` that are known.
    pub(in super::super) fn end_after(&self, number: u32, after: u64) -> Option<u64> {
        let mut chain = Chain::of(&self.record(number));
        let mut least = None;
        while let Some((end, before)) = chain.newest().and_then(|link| self.fences.end(link)) {
            if end > after {
                least = Some(least.map_or(end, |least: u64| least.min(end)));
            }
            chain.newest = before;
            chain.fragments -= 1;
        }
        least
    }

    /// Reads the newest fragment of a chain, whose stream is in [`Buffers::read`] then, and goes on
    /// to the one before it; `None` at the end.
    pub(in super::super) fn next_fragment(
        &mut self,
        log: &mut Storage<'_>,
        chain: &mut Chain,
        cause: Cause,
    ) -> Result<Option<(Link, Range<usize>)>> {
        let Some(link) = chain.newest() else {
            return Ok(None);
        };
        let pages = log.pages();
        self.pages.check_link(link, pages).map_err(|what| damaged(link.page, what))?;
        let bytes = &mut self.read[..usize::from(link.bytes)];
        log.read(link.page, u32::from(link.offset) - self.pages.first(), bytes, cause)?;
        self.counters.fetched += 1;
        let opened = open_fragment(chain.owner, link, bytes);
        (chain.newest, _) = opened.map_err(|what| damaged(link.page, what))?;
        chain.fragments -= 1;
        Ok(Some((link, FRAGMENT_HEADER_BYTES..usize::from(link.bytes))))
    }

    /// Searches buffer `number` for the newest entry of `key`, which `found` gets.
    pub(in super::super) fn find<T>(
        &mut self,
        log: &mut Storage<'_>,
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
        let (mut chain, wanted) = (Chain::of(&record), Wanted::one(key));
        while let Some((link, stream)) = self.next_with(log, &mut chain, &wanted)? {
            self.counters.fragments_read[is_leaf(&record)] += 1;
            let entry = stream::find(self.form, &self.read[stream], key);
            if let Some(entry) = entry.map_err(|what| damaged(link.page, what))? {
                return Ok(Some(found(&entry)));
            }
        }
        Ok(None)
    }

    /// Hands every entry of buffer `number` to `take`, with an age: a higher one is newer.
    pub(in super::super) fn scan(
        &mut self,
        log: &mut Storage<'_>,
        number: u32,
        take: &mut dyn FnMut(&Pending<'_>, u64),
    ) -> Result<()> {
        let mut age = u64::from(u32::MAX) << 32;
        let visited = self.pool.visit(BufferId(number), &(0..=u64::MAX), &mut |entry| {
            take(entry, age);
            age += 1;
        });
        visited.map_err(|what| damaged(Page(0), what))?;
        let mut chain = Chain::of(&self.record(number));
        while let Some(read) = self.next_fragment(log, &mut chain, Cause::Lookup)? {
            self.hand_out(read, chain.fragments, take)?;
        }
        Ok(())
    }

    /// Hands the entries of a fragment that was read, with so many older ones, to `take`.
    fn hand_out(
        &self,
        (link, stream): (Link, Range<usize>),
        older: u32,
        take: &mut dyn FnMut(&Pending<'_>, u64),
    ) -> Result<()> {
        let mut reader = self.form.reader(&self.read[stream]);
        let mut age = u64::from(older + 1) << 32;
        while let Some((entry, _)) = reader.next().map_err(|what| damaged(link.page, what))? {
            take(&entry, age);
            age += 1;
        }
        Ok(())
    }

    /// As [`Buffers::scan`], of the entries that are on flash, for a range: in all fragments that
    /// may have keys that are `wanted`.
    pub(in super::super) fn scan_chain(
        &mut self,
        log: &mut Storage<'_>,
        number: u32,
        wanted: &Wanted,
        take: &mut dyn FnMut(&Pending<'_>, u64),
    ) -> Result<()> {
        let record = self.record(number);
        let mut chain = Chain::of(&record);
        while let Some(read) = self.next_with(log, &mut chain, wanted)? {
            self.counters.fragments_read[is_leaf(&record)] += 1;
            self.hand_out(read, chain.fragments, take)?;
        }
        Ok(())
    }

    /// Loads the entries that buffer `number` has in the pool, which are newer than all that is
    /// loaded later.
    pub(in super::super) fn load_held(&mut self, number: u32, sorter: &mut Sorter) -> Result<()> {
        let bytes = self.pool.held(BufferId(number)).bytes;
        let room = sorter.room(bytes).ok_or(damaged(Page(0), sorter::FULL))?;
        let copied = self.pool.copy(BufferId(number), &mut Copied::default(), room);
        let loaded = copied.and_then(|_| sorter.load(bytes));
        loaded.map(drop).map_err(|what| damaged(Page(0), what))
    }

    /// Loads the oldest fragments of a chain, as many as find room, and lets go of them; the newer
    /// ones are left. A chain that `fits` is loaded as a whole, behind what is newer.
    pub(in super::super) fn load_chain(
        &mut self,
        log: &mut Storage<'_>,
        chain: &mut Chain,
        (sorter, fits): (&mut Sorter, bool),
        cause: Cause,
    ) -> Result<()> {
        let (mut rest, all) = (*chain, *chain);
        let (mut read, mut left) = (0, 0);
        while let Some((link, stream)) = self.next_fragment(log, &mut rest, cause)? {
            let mut loaded = sorter.load_older(&self.read[stream.clone()]);
            if loaded == Ok(false) && !fits {
                sorter.clear();
                left = read;
                loaded = sorter.load_older(&self.read[stream]);
            }
            let has_room = loaded.map_err(|what| damaged(link.page, what))?;
            if !has_room {
                return Err(damaged(link.page, sorter::FULL));
            }
            if fits {
                self.fences.forget(link);
                log.let_go(link.page, cause)?;
            }
            read += 1;
        }
        chain.fragments = left;
        // On a disk, where it is known now which they are.
        let (mut rest, mut passed) = (all, 0);
        while !fits && log.is_disk() {
            let Some((link, _)) = self.next_fragment(log, &mut rest, cause)? else {
                break;
            };
            if passed >= left {
                self.fences.forget(link);
                log.let_go(link.page, cause)?;
            }
            passed += 1;
        }
        Ok(())
    }

    /// Notes whose the pages of a buffer's fragments are, as far as they can be read.
    pub(in super::super) fn hold_chain(
        &mut self,
        log: &mut Storage<'_>,
        record: &BufferRecord,
        cause: Cause,
    ) -> Result<()> {
        let mut chain = Chain::of(record);
        while let Some(link) = chain.newest() {
            log.hold(link.page);
            self.next_fragment(log, &mut chain, cause)?;
        }
        Ok(())
    }
}
