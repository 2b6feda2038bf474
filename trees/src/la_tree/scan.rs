//! Ranges in both directions, streamed, through the leaves and the buffers above them.
//!
//! For each buffer on the way to the present leaf a range holds, sorted, its entries in what is
//! left of the range: so a buffer is scanned once however many leaves lie below it, as section 2.1
//! has it. Memory is bounded: where the entries of a buffer do not fit its share, those that come
//! first are held, and the buffer is scanned again when they are used up.
//!
//! What a buffer has in the pool is held apart from what it has on flash, for it costs no reading:
//! at first a few entries, those that come next, and more each time when they are used up. Where it
//! is known which fragments may have a key, these are read for the first leaves one by one, and the
//! pool for a few leaves at once: most ranges end there.
//!
//! Every scan of a buffer is a lookup to ADAPT, which may have it emptied before; then all that was
//! held is read anew. To hold more of what is in the pool is none.
//!
//! What a range held is kept for the next one until the tree changes. One that goes on where it
//! stopped, as those do that are read in pieces, is the same range: it scans no buffer again.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Bound;

use device::{Cause, Page};
use store::OverflowValue;

use super::LaTree;
use super::bare_tree::{BareTree, Bounds, Toward};
use super::buffer_pool::BufferId;
use super::buffers::Wanted;
use super::layout::damaged;
use super::stream::{Pending, prefix};
use crate::btree::{Node, NodeSource};
use index::{Cursor, Direction, Error, KeyRange, KeyValue, Result, Value, read_piece};

mod hold;

use hold::{Hold, Rest};

/// Of a buffer's share, one part in so many is for its entries in the pool.
const POOL_PART: usize = 16;

/// Leaves for each of which alone fragments are read, before that is done for all that come.
const LEAVES_AT_FIRST: u32 = 2;

/// With the entries of a leaf in the pool go those of so many behind it, if they are as wide: to
/// walk the pool costs more than to hold them.
const LEAVES_BEHIND: u64 = 3;

/// Bytes that those take at first, and how many times as much each time more are wanted.
const FIRST_SHARE: usize = 4096;
const SHARE_TIMES: usize = 4;

/// What a range held when it stopped, and what was left of it.
pub(super) struct Paused {
    rest: Rest,
    holds: Vec<Hold>,
}

/// A range that is being read.
pub(super) struct Scan<'t, 'd> {
    tree: &'t mut LaTree<'d>,
    direction: Direction,
    rest: Rest,
    /// For each buffer of the way two: what it has on flash, and behind that what is in the pool;
    /// from the lowest level up, so of equal keys the last is the newest.
    holds: Vec<Hold>,
    /// Which of them has the entry of the present leaf that comes first, and the newest of its key.
    first_hold: Option<usize>,
    /// False if what the holds have may have been passed by, and the first is not known.
    is_first_known: bool,
    /// The keys of the present leaf, if the way to it is known.
    leaf: Bounds,
    at_leaf: bool,
    /// The place in the leaf of the next entry; descending, one above it.
    place: usize,
    ended: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Where the value stands, if it is a long one.
    long: Option<OverflowValue>,
    has_entry: bool,
}

impl<'t, 'd> Scan<'t, 'd> {
    pub(super) fn new(tree: &'t mut LaTree<'d>, range: KeyRange<'_>) -> Result<Self> {
        let range = range.within_length(|key| tree.limits.check_key(key))?;
        let (start, limit) = match range.direction {
            Direction::Ascending => (range.from, range.to),
            Direction::Descending => (range.to, range.from),
        };
        let rest = Rest {
            start: start.map(<[u8]>::to_vec),
            limit: limit.map(<[u8]>::to_vec),
            direction: range.direction,
        };
        let paused = tree.paused.take().filter(|paused| paused.rest == rest);
        Ok(Scan {
            tree,
            direction: range.direction,
            rest,
            holds: paused.map_or(Vec::new(), |paused| paused.holds),
            first_hold: None,
            is_first_known: false,
            leaf: Bounds::default(),
            at_leaf: false,
            place: 0,
            ended: false,
            key: Vec::new(),
            value: Vec::new(),
            long: None,
            has_entry: false,
        })
    }

    /// Walks the way to the leaf where the rest of the range begins.
    fn find_leaf(&mut self) -> Result<()> {
        'again: loop {
            let (mut id, mut level) = self.tree.bare.begin();
            loop {
                if let Some(number) = id.buffer()
                    && self.hold(number, level)?
                {
                    continue 'again;
                }
                if level == 0 {
                    break;
                }
                let toward = match (&self.rest.start, self.direction) {
                    (Bound::Unbounded, Direction::Ascending) => Toward::Key(&[]),
                    (Bound::Unbounded, Direction::Descending) => Toward::Last,
                    (Bound::Excluded(key), Direction::Descending) => Toward::Below(key),
                    (Bound::Included(key) | Bound::Excluded(key), _) => Toward::Key(key),
                };
                id = self.tree.bare.step_down(level, id, toward, Cause::Lookup)?;
                level -= 1;
            }
            break;
        }
        self.leaf.copy_from(&self.tree.bare.bounds);
        self.fill_holds()?;
        let node = leaf_of(&mut self.tree.bare)?;
        let start = self.rest.start.as_ref().map(Vec::as_slice);
        self.place = self.direction.first_place(start, node.count(), |key| node.search(key));
        (self.at_leaf, self.is_first_known) = (true, false);
        Ok(())
    }

    /// Notes that the entries of buffer `number`, which the way has come to, are to be held; true
    /// if it was emptied instead.
    fn hold(&mut self, number: u32, level: u8) -> Result<bool> {
        let known = self.holds.iter().position(|hold| hold.level == level);
        let at = known.unwrap_or_else(|| {
            let levels = (self.tree.bare.height / self.tree.bare.levels_a_buffer + 1).max(1);
            let least = 4 * (self.tree.plan.sizes.entry_most + size_of::<hold::Place>());
            let share = self.tree.plan.range_bytes as usize / usize::from(levels);
            let of_pool = (share / POOL_PART).max(least);
            // What is held stands in its memory.
            self.tree.emptying.sorter.lend();
            let at = self.holds.partition_point(|hold| hold.level < level);
            self.holds.insert(at, Hold::new(level, of_pool));
            self.holds.insert(at, Hold::new(level, share.saturating_sub(of_pool).max(least)));
            at
        });
        let is_same = self.holds[at].buffer == Some(number);
        if is_same && self.holds[at].is_known {
            return Ok(false);
        }
        if self.tree.is_to_be_emptied(number, true) {
            self.holds.clear();
            self.tree.empty_for_lookup(number)?;
            return Ok(true);
        }
        for hold in &mut self.holds[at..at + 2] {
            let fills = if is_same { hold.fills } else { 0 };
            (hold.buffer, hold.is_known, hold.fills) = (Some(number), false, fills);
        }
        Ok(false)
    }

    /// Reads on in the buffers of the way of which nothing is known from the present leaf's keys
    /// on. Where a buffer on flash is to be scanned once more than for each of the first leaves,
    /// ADAPT is asked before ([`Scan::hold`]).
    fn fill_holds(&mut self) -> Result<()> {
        let form = self.tree.buffers.form;
        for at in 0..self.holds.len() {
            let (hold, in_pool) = (&self.holds[at], at % 2 == 1);
            let ends_here = || hold.end.as_ref().is_some_and(|end| self.leaf.contains(end));
            let goes_on = (in_pool || self.is_for_leaf(hold)) && hold.peek(form).is_none();
            let is_wanted = !hold.is_known || goes_on && ends_here();
            match hold.buffer.filter(|_| is_wanted) {
                Some(number) if in_pool => self.fill_from_pool(at, number)?,
                Some(number) => self.fill(at, number)?,
                None => {}
            }
        }
        Ok(())
    }

    /// True if a buffer is to be read for the present leaf alone.
    fn is_for_leaf(&self, hold: &Hold) -> bool {
        self.direction == Direction::Ascending
            && self.leaf.has_upper
            && hold.fills < LEAVES_AT_FIRST
            && self.tree.buffers.knows_fragments()
    }

    /// Reads the entries that buffer `number` has on flash.
    fn fill(&mut self, at: usize, number: u32) -> Result<()> {
        let for_leaf = self.is_for_leaf(&self.holds[at]);
        let hold = &mut self.holds[at];
        let passed = hold.end.as_deref().map_or(0, prefix);
        hold.begin();
        let (direction, form, rest) = (self.direction, self.tree.buffers.form, &self.rest);
        let mut keys = rest.prefixes(None);
        // Where the next fragment ends, those behind it are read when the range comes to them. An
        // end that was passed is not taken again: nothing may have come before it.
        if for_leaf {
            hold.end = Some(self.leaf.upper.clone());
            keys = rest.prefixes(hold.end.as_deref());
        } else if direction == Direction::Ascending
            && let Some(end) = self.tree.buffers.end_after(number, passed.max(*keys.start()))
            && end < *keys.end()
        {
            hold.end = Some(end.to_be_bytes().to_vec());
            keys = *keys.start()..=end;
        }
        let wanted = Wanted::all(keys);
        let scanned = self.tree.buffers.scan_chain(
            &mut self.tree.bare.log,
            number,
            &wanted,
            &mut |entry, age| {
                if wanted.prefixes.contains(&prefix(entry.key)) && rest.contains(entry.key) {
                    hold.push(form, direction, entry, age);
                }
            },
        );
        hold.sort(form, direction);
        hold.is_known = scanned.is_ok();
        scanned
    }

    /// As [`Scan::fill`], of what is in the pool: at first what has keys of the present leaf and of
    /// a few behind it, and then more each time.
    fn fill_from_pool(&mut self, at: usize, number: u32) -> Result<()> {
        let for_leaf = self.is_for_leaf(&self.holds[at]);
        let hold = &mut self.holds[at];
        let least = 4 * (self.tree.plan.sizes.entry_most + size_of::<hold::Place>());
        let share = match hold.fills {
            0 => FIRST_SHARE.max(least),
            _ if for_leaf => hold.share,
            _ => hold.share * SHARE_TIMES,
        };
        hold.share = share.min(hold.most);
        hold.begin();
        if for_leaf {
            hold.end = Some(end_behind(&self.leaf));
        }
        let (direction, form, rest) = (self.direction, self.tree.buffers.form, &self.rest);
        let (mut prefixes, mut age) = (rest.prefixes(hold.end.as_deref()), 0);
        let all = prefixes.clone();
        let visited = self.tree.buffers.pool.visit(BufferId(number), &all, &mut |entry| {
            age += 1;
            if prefixes.contains(&prefix(entry.key))
                && rest.contains(entry.key)
                && hold.push(form, direction, entry, age)
            {
                prefixes = rest.prefixes(hold.end.as_deref());
            }
        });
        hold.sort(form, direction);
        hold.is_known = visited.is_ok();
        visited.map_err(|what| damaged(Page(0), what))
    }

    /// Passes by what was used up; false if a buffer has to be scanned again.
    fn pass(&mut self) -> bool {
        let form = self.tree.buffers.form;
        for at in 0..self.holds.len() {
            loop {
                let hold = &self.holds[at];
                match hold.peek(form) {
                    Some(entry) if !self.rest.is_ahead(entry.key) => self.holds[at].next += 1,
                    Some(_) => break,
                    None => {
                        if hold.end.as_ref().is_some_and(|end| self.leaf.contains(end)) {
                            self.holds[at].is_known = false;
                            return false;
                        }
                        break;
                    }
                }
            }
        }
        true
    }

    /// Finds the hold whose entry comes first; false if a buffer has to be scanned again.
    fn find_first_hold(&mut self) -> bool {
        self.is_first_known = self.pass();
        let form = self.tree.buffers.form;
        let mut first: Option<(usize, Pending<'_>)> = None;
        for (at, hold) in self.holds.iter().enumerate() {
            let entry = hold.peek(form).filter(|entry| self.leaf.contains(entry.key));
            let comes_first = |entry: &Pending<'_>| match &first {
                Some((_, first)) => {
                    self.direction.order(entry.key.cmp(first.key)) != Ordering::Greater
                }
                None => true,
            };
            if let Some(entry) = entry.filter(comes_first) {
                first = Some((at, entry));
            }
        }
        self.first_hold = first.map(|(at, _)| at);
        self.is_first_known
    }

    /// Takes the next entry of all that the present leaf and the buffers above it have: whether it
    /// is a put, or `None` if there is none left here.
    fn take_next(&mut self) -> Result<Option<bool>> {
        let form = self.tree.buffers.form;
        let node = leaf_of(&mut self.tree.bare)?;
        let place = match self.direction {
            Direction::Ascending => Some(self.place).filter(|place| *place < node.count()),
            Direction::Descending => self.place.checked_sub(1).filter(|it| *it < node.count()),
        };
        self.key.clear();
        if let Some(place) = place {
            node.key(place).copy_to(&mut self.key);
        }
        let held = self.first_hold.and_then(|at| self.holds[at].peek(form));
        let order = held.map(|entry| self.direction.order(entry.key.cmp(&self.key)));
        // The leaf's entry for the same key is passed by, too.
        let is_of_leaf = place.is_some() && order != Some(Ordering::Less);
        self.long = None;
        self.value.clear();
        let is_put = match (held.filter(|_| !is_of_leaf || order == Some(Ordering::Equal)), place) {
            (Some(entry), _) => {
                self.key.clear();
                self.key.extend_from_slice(entry.key);
                self.value.extend_from_slice(entry.value.unwrap_or_default());
                self.is_first_known = false;
                entry.value.is_some()
            }
            (None, Some(place)) => {
                self.value.extend_from_slice(node.value(place).bytes());
                self.long = node.value(place).as_long();
                true
            }
            (None, None) => return Ok(None),
        };
        self.place = match self.direction {
            _ if !is_of_leaf => self.place,
            Direction::Ascending => self.place + 1,
            Direction::Descending => self.place - 1,
        };
        match &mut self.rest.start {
            Bound::Excluded(start) => {
                start.clear();
                start.extend_from_slice(&self.key);
            }
            start => *start = Bound::Excluded(self.key.clone()),
        }
        Ok(Some(is_put))
    }

    /// Goes on behind the present leaf; false if it is the last.
    fn leave_leaf(&mut self) -> bool {
        self.at_leaf = false;
        match self.direction {
            Direction::Ascending => {
                self.rest.start = Bound::Included(self.leaf.upper.clone());
                self.leaf.has_upper
            }
            Direction::Descending => {
                let is_last = self.leaf.lower <= self.tree.bare.lowest_key();
                self.rest.start = Bound::Excluded(self.leaf.lower.clone());
                !is_last
            }
        }
    }

    fn advance(&mut self) -> Result<bool> {
        // As many leaves as there are, and as many scans: damage can't make this run for ever.
        loop {
            if !self.at_leaf {
                self.find_leaf()?;
            }
            if !self.is_first_known && !self.find_first_hold() {
                self.at_leaf = false;
                continue;
            }
            match self.take_next()? {
                Some(_) if self.rest.is_beyond(&self.key) => return Ok(false),
                Some(true) => return Ok(true),
                Some(false) => {}
                None => {
                    let end = match self.direction {
                        Direction::Ascending => &self.leaf.upper,
                        Direction::Descending => &self.leaf.lower,
                    };
                    if self.rest.is_beyond(end) && !end.is_empty() {
                        return Ok(false);
                    }
                    if !self.leave_leaf() {
                        return Ok(false);
                    }
                }
            }
        }
    }
}

/// Where the [`LEAVES_BEHIND`] a leaf that has an upper bound end, going by its prefixes.
fn end_behind(leaf: &Bounds) -> Vec<u8> {
    let (low, high) = (prefix(&leaf.lower), prefix(&leaf.upper));
    let more = high.saturating_sub(low).saturating_mul(LEAVES_BEHIND);
    match high.checked_add(more).filter(|end| *end > high) {
        Some(end) => end.to_be_bytes().to_vec(),
        None => leaf.upper.clone(),
    }
}

/// The leaf that the way has come to.
fn leaf_of<'n>(bare: &'n mut BareTree<'_>) -> Result<Node<'n>> {
    bare.node_at(bare.path.at(0).id, 0, Cause::Lookup)
}

impl Drop for Scan<'_, '_> {
    fn drop(&mut self) {
        if !self.ended {
            let rest = core::mem::replace(&mut self.rest, Rest::NONE);
            let holds = core::mem::take(&mut self.holds);
            self.tree.paused = Some(Box::new(Paused { rest, holds }));
        }
    }
}

impl Cursor for Scan<'_, '_> {
    fn next(&mut self) -> Result<Option<KeyValue<'_>>> {
        self.has_entry = false;
        if self.ended {
            return Ok(None);
        }
        // Until an entry was found, the range counts as ended: so it does after an error.
        self.ended = true;
        if !self.advance()? {
            return Ok(None);
        }
        self.ended = false;
        self.has_entry = true;
        let value = match self.long {
            Some(long) => Value::Long(long.bytes()),
            None => Value::Inline(&self.value),
        };
        Ok(Some((&self.key, value)))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        if !self.has_entry {
            return Err(Error::NoEntry);
        }
        match self.long {
            Some(long) => {
                self.tree.bare.read_long(long, offset, into)?;
                Ok(long.bytes())
            }
            None => Ok(read_piece(&self.value, offset, into)),
        }
    }
}
