//! Ranges: the list is read again and again, and each time the next keys are sorted in memory.
//!
//! A pass over the list, from its newest entry back, keeps the keys that come first in the range's
//! direction in a node of bounded size, each with its newest entry. What has no room there sets a
//! limit: keys from it on are left to the next pass. So a range costs one pass for each windowful
//! of keys, deleted ones included.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Bound;

use device::Cause;
use store::node::{self, Codec, Stored};

use super::List;
use super::page::{Form, Item, window_codec};
use crate::{Cursor, Direction, Error, KeyRange, KeyValue, Result, Value, read_piece};

/// A sorted run of entries in a bounded number of bytes.
pub(super) struct Window {
    codec: Codec,
    node: Vec<u8>,
    scratch: Vec<u8>,
    /// A value behind the byte that tells a put from a delete.
    value: Vec<u8>,
}

impl Window {
    /// A window of `bytes` bytes; `None` if that is too little or too much for entries of that
    /// form.
    pub(super) fn new(bytes: u32, form: &Form) -> Option<Self> {
        let codec = window_codec(bytes, form.shape)?;
        Some(Window {
            codec,
            node: vec![0; bytes as usize],
            scratch: vec![0; bytes as usize],
            value: Vec::with_capacity(form.entry_bytes_most() + 1),
        })
    }

    /// Bytes of memory of a window of `bytes` bytes with entries of at most `entry` bytes, and of a
    /// range that uses it: two bounds, a limit, and a key.
    pub(super) fn memory_bytes(bytes: u32, entry: usize) -> u64 {
        2 * u64::from(bytes) + 5 * (entry as u64 + 1)
    }

    fn clear(&mut self) {
        self.codec.initialise(&mut self.node, 0);
    }

    fn count(&self) -> usize {
        node::count(&self.node)
    }

    /// The value at `place`; `None` if its key is absent.
    fn value(&self, place: usize) -> Option<&[u8]> {
        let (kind, value) = self.codec.value(&self.node, place).bytes().split_first()?;
        (*kind > 0).then_some(value)
    }

    /// Takes an entry unless it knows a newer one of the key. Where there is no room, what comes
    /// last in `direction` goes, and its key is the new `limit`.
    fn offer(
        &mut self,
        item: Item<'_>,
        width: Option<usize>,
        direction: Direction,
        limit: &mut Option<Vec<u8>>,
    ) {
        let Err(mut place) = self.codec.search(&self.node, item.key) else {
            return;
        };
        self.value.clear();
        self.value.push(u8::from(item.value.is_some()));
        self.value.extend_from_slice(item.value.unwrap_or_default());
        if let Some(width) = width {
            self.value.resize(1 + width, 0);
        }
        loop {
            let Window { codec, node, scratch, value } = self;
            if codec.insert(node, place, item.key, Stored::inline(value), scratch) {
                return;
            }
            let count = node::count(node);
            let is_last = match direction {
                Direction::Ascending => place == count,
                Direction::Descending => place == 0,
            };
            let limit = limit.get_or_insert_default();
            if is_last || count == 0 {
                limit.clear();
                limit.extend_from_slice(item.key);
                return;
            }
            let last = if direction == Direction::Ascending { count - 1 } else { 0 };
            codec.key(node, last).copy_to(limit);
            codec.remove(node, last);
            place -= usize::from(direction == Direction::Descending);
        }
    }
}

/// A range that is being read. The list can't change meanwhile.
pub(super) struct Scan<'t, 'd> {
    list: &'t mut List<'d>,
    direction: Direction,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    /// Entries of the window that were handed out, or passed over.
    taken: usize,
    /// Where the window ends; `None` if that is the end of the range.
    limit: Option<Vec<u8>>,
    ended: bool,
    /// The place in the window of the entry that was returned last.
    last: Option<usize>,
    key: Vec<u8>,
}

impl<'t, 'd> Scan<'t, 'd> {
    pub(super) fn new(list: &'t mut List<'d>, range: KeyRange<'_>) -> Result<Self> {
        for bound in [range.from, range.to] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                list.archive.form.check_key(key)?;
            }
        }
        let mut scan = Scan {
            list,
            direction: range.direction,
            from: range.from.map(<[u8]>::to_vec),
            to: range.to.map(<[u8]>::to_vec),
            taken: 0,
            limit: None,
            ended: false,
            last: None,
            key: Vec::new(),
        };
        scan.pass()?;
        Ok(scan)
    }

    /// Reads the whole list, and fills the window.
    fn pass(&mut self) -> Result<()> {
        let Scan { list, direction, from, to, limit, .. } = self;
        let List { archive, window, .. } = &mut **list;
        let form = archive.form;
        let width = form.value_width();
        window.clear();
        (self.taken, *limit) = (0, None);
        let mut walk = archive.walk();
        loop {
            let page = walk.page;
            let Some(mut rest) = archive.step(&mut walk, Cause::Lookup)? else {
                return Ok(());
            };
            while !rest.is_empty() {
                let (item, before) =
                    form.last(rest).map_err(|what| super::archive::damaged_at(page, what))?;
                rest = before;
                let is_beyond = limit.as_deref().is_some_and(|limit| match direction {
                    Direction::Ascending => item.key >= limit,
                    Direction::Descending => item.key <= limit,
                });
                if !is_beyond && is_within(item.key, from, to) {
                    window.offer(item, width, *direction, limit);
                }
            }
        }
    }

    /// The place in the window of the next entry; `None` at the end.
    fn advance(&mut self) -> Result<Option<usize>> {
        loop {
            let window = &self.list.window;
            while self.taken < window.count() {
                let place = match self.direction {
                    Direction::Ascending => self.taken,
                    Direction::Descending => window.count() - 1 - self.taken,
                };
                self.taken += 1;
                if window.value(place).is_some() {
                    return Ok(Some(place));
                }
            }
            let Some(limit) = self.limit.take() else {
                return Ok(None);
            };
            match self.direction {
                Direction::Ascending => self.from = Bound::Included(limit),
                Direction::Descending => self.to = Bound::Included(limit),
            }
            self.pass()?;
        }
    }
}

fn is_within(key: &[u8], from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    let above = match from {
        Bound::Unbounded => true,
        Bound::Included(from) => key >= from.as_slice(),
        Bound::Excluded(from) => key > from.as_slice(),
    };
    above
        && match to {
            Bound::Unbounded => true,
            Bound::Included(to) => key <= to.as_slice(),
            Bound::Excluded(to) => key < to.as_slice(),
        }
}

impl Cursor for Scan<'_, '_> {
    fn next(&mut self) -> Result<Option<KeyValue<'_>>> {
        if self.ended {
            return Ok(None);
        }
        // Until an entry was found, the range counts as ended: so it does after an error.
        self.ended = true;
        self.last = None;
        let Some(place) = self.advance()? else {
            return Ok(None);
        };
        self.ended = false;
        self.last = Some(place);
        let window = &self.list.window;
        window.codec.key(&window.node, place).copy_to(&mut self.key);
        Ok(window.value(place).map(|value| (self.key.as_slice(), Value::Whole(value))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        let value = self.last.and_then(|place| self.list.window.value(place));
        value.map(|value| read_piece(value, offset, into)).ok_or(Error::NoEntry)
    }
}
