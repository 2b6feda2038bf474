//! Ranges: the list is read again and again, and each time the next keys are sorted in memory.
//!
//! A pass over the list, from its newest entry back, keeps the keys that come first in the range's
//! direction in a window of bounded size (`window.rs`), each with its newest entry. What has no
//! room there sets a limit: keys from it on are left to the next pass. So a range costs one pass
//! for each windowful of keys, deleted ones included.

use alloc::vec::Vec;
use core::ops::Bound;

use device::Cause;

use super::List;
use super::window::is_beyond;
use index::{Cursor, Direction, Error, KeyRange, KeyValue, Result, Value, read_piece};

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
        let range = range.within_length(|key| list.archive.form.limits().check_key(key))?;
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
        window.clear();
        (self.taken, *limit) = (0, None);
        let mut walk = archive.walk();
        loop {
            let page = walk.page;
            let Some(mut rest) = archive.step(&mut walk, Cause::Lookup)? else {
                window.sort();
                return Ok(());
            };
            while !rest.is_empty() {
                let (item, before) =
                    form.last(rest).map_err(|what| super::archive::damaged_at(page, what))?;
                rest = before;
                let is_beyond = is_beyond(item.key, *direction, limit.as_deref());
                if !is_beyond && is_within(item.key, from, to) {
                    window.offer(item, *direction, limit);
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
        self.key.clear();
        self.key.extend_from_slice(window.key(place));
        Ok(window.value(place).map(|value| (self.key.as_slice(), Value::Inline(value))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        let value = self.last.and_then(|place| self.list.window.value(place));
        value.map(|value| read_piece(value, offset, into)).ok_or(Error::NoEntry)
    }
}
