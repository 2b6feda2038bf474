//! Ranges in both directions, streamed, through the leaves and the buffers above them.
//!
//! For each buffer on the way to the present leaf a range holds, sorted, its entries in what is
//! left of the range: so a buffer is scanned once however many leaves lie below it, as figure 2(c)
//! has it. Memory is bounded: where the entries of a buffer do not fit its share, those that come
//! first are held, and the buffer is scanned again when they are used up.
//!
//! Every scan of a buffer is a lookup to ADAPT, which may have it emptied before; then all that was
//! held is read anew.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Bound;

use device::Cause;
use store::{LongValue, node};

use super::LaTree;
use super::descent::{Bounds, Toward};
use super::in_place::values::handed_out;
use super::stream::{Form, Pending};
use index::{Cursor, Direction, Error, KeyRange, KeyValue, Result, read_piece};

/// Marks the place of a delete.
const DELETE: u32 = 0x8000_0000;

/// An entry that is held: where it stands, and how new it is.
type Place = (u32, u64);

/// The entries of a buffer that come next in a range.
struct Hold {
    /// The buffer, and the level of its node; `None` if nothing is known.
    buffer: Option<u32>,
    level: u8,
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// The next of the places.
    next: usize,
    /// From this key on, in the range's direction, nothing is known.
    end: Option<Vec<u8>>,
    /// Bytes that it may take.
    share: usize,
}

impl Hold {
    fn new(share: usize) -> Self {
        Hold {
            buffer: None,
            level: 0,
            bytes: Vec::with_capacity(share / 2),
            places: Vec::with_capacity(share / 2 / size_of::<Place>()),
            next: 0,
            end: None,
            share,
        }
    }

    fn entry(&self, form: Form, place: Place) -> Pending<'_> {
        let bytes = self.bytes.get((place.0 & !DELETE) as usize..).unwrap_or_default();
        let read = form.read(bytes, place.0 & DELETE != 0);
        // It was written by the same form.
        read.map_or(Pending { key: &[], value: None }, |(entry, _)| entry)
    }

    fn peek(&self, form: Form) -> Option<Pending<'_>> {
        self.places.get(self.next).map(|place| self.entry(form, *place))
    }

    fn is_full(&self, bytes: usize) -> bool {
        let half = self.share / 2;
        self.bytes.len() + bytes > half || (self.places.len() + 1) * size_of::<Place>() > half
    }

    /// Takes an entry; where there is no room, those that come last are given up.
    fn push(&mut self, form: Form, direction: Direction, entry: &Pending<'_>, age: u64) {
        let beyond = |end: &Vec<u8>| direction.order(entry.key.cmp(end)) != Ordering::Less;
        if self.end.as_ref().is_some_and(beyond) {
            return;
        }
        let bytes = form.bytes(entry);
        if self.is_full(bytes) {
            self.shrink(form, direction);
            if self.end.as_ref().is_some_and(beyond) {
                return;
            }
        }
        let mark = if entry.value.is_none() { DELETE } else { 0 };
        self.places.push((self.bytes.len() as u32 | mark, age));
        form.write(entry, &mut |piece| self.bytes.extend_from_slice(piece));
    }

    /// Sorts what is held and keeps the newest entry of each key.
    fn sort(&mut self, form: Form, direction: Direction) {
        let mut places = core::mem::take(&mut self.places);
        places.sort_unstable_by(|one, other| {
            let (one_key, other_key) = (self.entry(form, *one).key, self.entry(form, *other).key);
            direction.order(one_key.cmp(other_key)).then(other.1.cmp(&one.1))
        });
        places.dedup_by(|later, kept| self.entry(form, *later).key == self.entry(form, *kept).key);
        self.places = places;
    }

    /// Makes room: drops what is outdated and, if that is little, the second half.
    fn shrink(&mut self, form: Form, direction: Direction) {
        self.sort(form, direction);
        let used: usize =
            self.places.iter().map(|place| form.bytes(&self.entry(form, *place))).sum();
        let half = self.share / 2;
        let many = self.places.len() * size_of::<Place>() > half * 3 / 4;
        if (many || used > half * 3 / 4) && self.places.len() > 1 {
            let kept = self.places.len() / 2;
            let key = self.entry(form, self.places[kept]).key.to_vec();
            self.end = Some(key);
            self.places.truncate(kept);
        }
        self.places.sort_unstable_by_key(|place| place.0 & !DELETE);
        let mut at = 0;
        for place in 0..self.places.len() {
            let old = self.places[place];
            let from = (old.0 & !DELETE) as usize;
            let bytes = form.bytes(&self.entry(form, old));
            self.bytes.copy_within(from..from + bytes, at);
            self.places[place].0 = at as u32 | old.0 & DELETE;
            at += bytes;
        }
        self.bytes.truncate(at);
    }
}

/// What is left of a range.
struct Rest {
    start: Bound<Vec<u8>>,
    limit: Bound<Vec<u8>>,
    direction: Direction,
}

impl Rest {
    /// True if `key` is not before the start.
    fn is_ahead(&self, key: &[u8]) -> bool {
        match &self.start {
            Bound::Unbounded => true,
            Bound::Included(start) => self.direction.order(key.cmp(start)) != Ordering::Less,
            Bound::Excluded(start) => self.direction.order(key.cmp(start)) == Ordering::Greater,
        }
    }

    /// True if `key` is behind the end.
    fn is_beyond(&self, key: &[u8]) -> bool {
        self.direction.is_beyond(&self.limit, |limit| key.cmp(limit))
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.is_ahead(key) && !self.is_beyond(key)
    }
}

/// A range that is being read.
pub(super) struct Scan<'t, 'd> {
    tree: &'t mut LaTree<'d>,
    direction: Direction,
    rest: Rest,
    holds: Vec<Hold>,
    /// The keys of the present leaf, if the way to it is known.
    leaf: Bounds,
    at_leaf: bool,
    /// The place in the leaf of the next entry; descending, one above it.
    place: usize,
    ended: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Where the value stands, if it is a long one.
    long: Option<LongValue>,
    has_entry: bool,
}

/// Which entry comes next.
#[derive(Clone, Copy)]
enum Source {
    Leaf(usize),
    Hold(usize),
}

impl<'t, 'd> Scan<'t, 'd> {
    pub(super) fn new(tree: &'t mut LaTree<'d>, range: KeyRange<'_>) -> Result<Self> {
        let range = range.within_length(|key| tree.check_key(key))?;
        let (start, limit) = match range.direction {
            Direction::Ascending => (range.from, range.to),
            Direction::Descending => (range.to, range.from),
        };
        Ok(Scan {
            tree,
            direction: range.direction,
            rest: Rest {
                start: start.map(<[u8]>::to_vec),
                limit: limit.map(<[u8]>::to_vec),
                direction: range.direction,
            },
            holds: Vec::new(),
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
            self.tree.bounds.reset();
            let (mut level, mut id) = (self.tree.height - 1, self.tree.root);
            self.tree.path.set(level, id, 0);
            loop {
                if let Some(number) = id.buffer()
                    && self.hold(number, level)?
                {
                    self.holds.clear();
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
                id = self.tree.step_down(level, id, toward, Cause::Lookup)?;
                level -= 1;
            }
            break;
        }
        self.leaf.copy_from(&self.tree.bounds);
        let (leaf, codec) = (self.tree.path.at(0).id, self.tree.nodes.leaf);
        let node = self.tree.nodes.node(&mut self.tree.log, leaf, 0, Cause::Lookup)?;
        let start = self.rest.start.as_ref().map(Vec::as_slice);
        let search = |key: &[u8]| codec.search(node, key);
        self.place = self.direction.first_place(start, node::count(node), search);
        self.at_leaf = true;
        Ok(())
    }

    /// Makes sure that the entries of buffer `number`, which the way has come to, are held; true if
    /// it was emptied instead.
    fn hold(&mut self, number: u32, level: u8) -> Result<bool> {
        let known = self.holds.iter().position(|hold| hold.level == level);
        let at = match known {
            Some(at) if self.holds[at].buffer == Some(number) => return Ok(false),
            Some(at) => at,
            None => {
                let levels = (self.tree.height / self.tree.levels_a_buffer + 1).max(1);
                let least = 4 * (self.tree.plan.sizes.entry_most + size_of::<Place>());
                let share = self.tree.plan.range_bytes as usize / usize::from(levels);
                self.holds.push(Hold { level, ..Hold::new(share.max(least)) });
                self.holds.len() - 1
            }
        };
        if self.tree.is_to_be_emptied(number) {
            self.tree.empty_for_lookup(number)?;
            return Ok(true);
        }
        self.fill(at, number)?;
        Ok(false)
    }

    /// Reads the entries of buffer `number`, whose node's bounds are the tree's.
    fn fill(&mut self, at: usize, number: u32) -> Result<()> {
        let mut hold = core::mem::replace(&mut self.holds[at], Hold::new(0));
        hold.bytes.clear();
        hold.places.clear();
        (hold.next, hold.end, hold.buffer) = (0, None, Some(number));
        let bounds = core::mem::take(&mut self.tree.bounds);
        let direction = self.direction;
        let form = self.tree.buffers.form;
        let rest = &self.rest;
        let scanned = self.tree.buffers.scan(&mut self.tree.log, number, &mut |entry, age| {
            if bounds.contains(entry.key) && rest.contains(entry.key) {
                hold.push(form, direction, entry, age);
            }
        });
        self.tree.bounds = bounds;
        hold.sort(form, direction);
        if scanned.is_err() {
            hold.buffer = None;
        }
        self.holds[at] = hold;
        scanned
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
                            self.holds[at].buffer = None;
                            return false;
                        }
                        break;
                    }
                }
            }
        }
        true
    }

    /// The next entry of all that the present leaf and the buffers above it have.
    fn next_source(&mut self) -> Result<Option<Source>> {
        let (leaf, codec) = (self.tree.path.at(0).id, self.tree.nodes.leaf);
        let form = self.tree.buffers.form;
        let node = self.tree.nodes.node(&mut self.tree.log, leaf, 0, Cause::Lookup)?;
        let place = match self.direction {
            Direction::Ascending if self.place < node::count(node) => Some(self.place),
            Direction::Descending => self.place.checked_sub(1),
            Direction::Ascending => None,
        };
        let mut best = None;
        self.key.clear();
        if let Some(place) = place.filter(|place| *place < node::count(node)) {
            codec.key(node, place).copy_to(&mut self.key);
            best = Some(Source::Leaf(place));
        }
        // From the lowest level up: of equal keys the highest buffer's entry is the newest.
        for level in 0..self.tree.height {
            for (at, hold) in self.holds.iter().enumerate().filter(|(_, hold)| hold.level == level)
            {
                let Some(entry) = hold.peek(form).filter(|entry| self.leaf.contains(entry.key))
                else {
                    continue;
                };
                let comes_first = best.is_none()
                    || self.direction.order(entry.key.cmp(&self.key)) != Ordering::Greater;
                if hold.buffer.is_some() && comes_first {
                    self.key.clear();
                    self.key.extend_from_slice(entry.key);
                    best = Some(Source::Hold(at));
                }
            }
        }
        Ok(best)
    }

    /// Takes the entry of `source`, whose key is `self.key`; false if it is a delete.
    fn take(&mut self, source: Source) -> Result<bool> {
        let (leaf, codec) = (self.tree.path.at(0).id, self.tree.nodes.leaf);
        let form = self.tree.buffers.form;
        let node = self.tree.nodes.node(&mut self.tree.log, leaf, 0, Cause::Lookup)?;
        // The leaf's entry for the same key is passed by, too.
        let here = codec.search(node, &self.key);
        self.long = None;
        let is_put = match source {
            Source::Leaf(place) => {
                self.value.clear();
                self.value.extend_from_slice(codec.value(node, place).bytes());
                self.long = codec.value(node, place).as_long();
                true
            }
            Source::Hold(at) => {
                let entry = self.holds[at].peek(form);
                let value = entry.and_then(|entry| entry.value);
                self.value.clear();
                self.value.extend_from_slice(value.unwrap_or_default());
                value.is_some()
            }
        };
        self.place = match (self.direction, here) {
            (Direction::Ascending, Ok(place)) => place + 1,
            (_, Ok(place) | Err(place)) => place,
        };
        match &mut self.rest.start {
            Bound::Excluded(start) => {
                start.clear();
                start.extend_from_slice(&self.key);
            }
            start => *start = Bound::Excluded(self.key.clone()),
        }
        Ok(is_put)
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
                let is_last = self.leaf.lower <= self.tree.lowest_key();
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
            if !self.pass() {
                self.at_leaf = false;
                continue;
            }
            match self.next_source()? {
                Some(_) if self.rest.is_beyond(&self.key) => return Ok(false),
                Some(source) => {
                    if self.take(source)? {
                        return Ok(true);
                    }
                }
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
        Ok(Some((&self.key, handed_out(self.long, &self.value))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        if !self.has_entry {
            return Err(Error::NoEntry);
        }
        match self.long {
            Some(long) => self.tree.read_long(long, offset, into),
            None => Ok(read_piece(&self.value, offset, into)),
        }
    }
}
