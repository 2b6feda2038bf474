//! The node translation table: for each node its sectors, and for each sector the nodes in it.
//!
//! In memory the lists of 64 nodes stand one behind the other, as long as they are: their lengths
//! say where each begins. A sector's number has as many bytes as the disk's sectors need.
//!
//! ```text
//!  in a root record, each number   | sectors u8, 255 if no node has it | its counter, if any |
//!                                  | each sector u32, oldest first |
//! ```

use alloc::vec::Vec;

use store::LogicalPage;

use super::choices::Mode;
use super::layout::GROUP_BYTES;
use super::packed::{Lists, Numbers, SLACK, read_number};
use super::switching::counter_bytes;
use crate::btree;

/// A node: its number in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(pub(crate) u32);

impl btree::NodeId for NodeId {
    fn from_bytes(bytes: [u8; 4]) -> Self {
        NodeId(u32::from_le_bytes(bytes))
    }

    fn to_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }
}

/// Nodes in a piece of the table, and sectors.
const NODES_A_PIECE: usize = 64;
const SECTORS_A_PIECE: usize = 256;

/// The length of the list of a number that no node has.
const NONE: u8 = u8::MAX;

/// Set in the length of the list of a node in disk mode, in memory and in a root record.
const PAGE: u8 = 1 << 7;

/// Bytes of a list's length in a root record, and of a sector.
const LENGTH_BYTES: usize = 1;
const SECTOR_BYTES: usize = 4;

/// Bytes of the shortest group of a sector: how many lists name a sector follows from that.
const GROUP_LEAST: u32 = (GROUP_BYTES + 2) as u32;

/// What the sizes of a table follow from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most sectors in a list.
    pub(crate) most: usize,
    pub(crate) mode: Mode,
    /// Bytes of a sector, and sectors of the disk.
    pub(crate) sector: u32,
    pub(crate) sectors: u32,
}

impl Limits {
    /// Bytes of a sector's number.
    const fn number(self) -> usize {
        bytes_for(self.sectors.saturating_sub(1))
    }

    /// Bytes of the number of lists that name a sector.
    const fn uses(self) -> usize {
        bytes_for(self.sector / GROUP_LEAST)
    }

    /// Bytes of a node's counter.
    const fn counter(self) -> usize {
        match self.mode {
            Mode::SelfTuning { is_printed, .. } => counter_bytes(self.most, is_printed),
            _ => 0,
        }
    }

    /// Bytes in front of a list in a root record.
    const fn front(self) -> usize {
        LENGTH_BYTES + self.counter()
    }

    /// Bytes of a node whose list is as long as can be, its part of a piece included.
    const fn node(self) -> u64 {
        let piece = 2 * SLACK * self.number() + 3 * size_of::<Vec<u8>>();
        let beside = 1 + piece.div_ceil(NODES_A_PIECE);
        (1 + self.most * self.number() + self.counter() + beside) as u64
    }
}

/// Bytes that numbers up to `most` need.
const fn bytes_for(most: u32) -> usize {
    match most {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFF_FFFF => 3,
        _ => 4,
    }
}

/// The sectors in a list of this length, with what is set in it; `None` if no node has it.
fn sectors_of(length: u8) -> Option<usize> {
    (length != NONE).then_some(usize::from(length & !PAGE))
}

/// The table.
#[derive(Debug)]
pub(crate) struct Table {
    /// The length of a node's list.
    lengths: Numbers,
    /// The sectors in it.
    lists: Lists,
    /// Lists that name a sector.
    uses: Numbers,
    /// The counter of each node, where they have any.
    counters: Numbers,
    limits: Limits,
    /// Nodes in disk mode.
    pages: u32,
    /// Numbers that were given, of nodes that exist or do no more.
    numbers: u32,
    /// Nodes that exist, sectors that lists name, and the lengths of all lists.
    nodes: u32,
    sectors: u32,
    listed: u64,
    /// Where the search for a free number begins.
    free_from: u32,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(limits: Limits) -> Self {
        let mut table = Table {
            counters: Numbers::new(NODES_A_PIECE, limits.counter()),
            pages: 0,
            lengths: Numbers::new(NODES_A_PIECE, 1),
            lists: Lists::new(limits.number()),
            uses: Numbers::new(SECTORS_A_PIECE, limits.uses()),
            limits,
            numbers: 0,
            nodes: 0,
            sectors: 0,
            listed: 0,
            free_from: 0,
        };
        table.reach(0);
        table.uses.reach(0, 0);
        table
    }

    /// Bytes of memory but for the lists themselves.
    fn fixed_bytes(&self) -> u64 {
        let numbers = self.lengths.bytes() + self.counters.bytes() + self.uses.bytes();
        numbers + self.lists.own_bytes()
    }

    /// Bytes of memory.
    pub(crate) fn own_bytes(&self) -> u64 {
        self.fixed_bytes() + self.lists.held
    }

    /// Bytes of the counters in it.
    pub(crate) fn counter_bytes(&self) -> u64 {
        self.counters.bytes()
    }

    /// The most so far, a piece of lists that is moved to get longer, and a root record that is
    /// made of it.
    pub(crate) fn bytes(&self) -> u64 {
        let record = self.written_bytes() as u64;
        self.fixed_bytes() + self.lists.held_most + self.piece_bytes() + record
    }

    /// Bytes of a piece of lists that are all as long as can be.
    const fn piece_bytes(&self) -> u64 {
        ((NODES_A_PIECE * self.limits.most + 2 * SLACK) * self.limits.number()) as u64
    }

    /// The same at most with so many nodes and sectors more, and lists as long as can be.
    pub(crate) fn bytes_with(&self, nodes: u64, sectors: u64) -> u64 {
        let all = u64::from(self.numbers) + nodes;
        let uses = self.limits.uses() as u64;
        // A piece more of each, and four more in the list of pieces.
        let beside = NODES_A_PIECE as u64 * self.limits.node()
            + SECTORS_A_PIECE as u64 * uses
            + 16 * size_of::<Vec<u8>>() as u64;
        self.uses.bytes()
            + sectors * (uses + 1)
            + all * self.limits.node()
            + beside
            + self.piece_bytes()
            + self.record_bytes(all)
    }

    /// Bytes of the lists of so many more numbers in a root record, at most, where all lists
    /// together name no more than `listed` sectors.
    pub(crate) fn record_bytes_with(&self, nodes: u64, listed: u64) -> u64 {
        let numbers = u64::from(self.numbers) + nodes;
        let together = numbers * self.limits.front() as u64 + listed * SECTOR_BYTES as u64;
        self.record_bytes(numbers).min(together)
    }

    const fn record_bytes(&self, numbers: u64) -> u64 {
        numbers.saturating_mul((self.limits.front() + self.limits.most * SECTOR_BYTES) as u64)
    }

    /// The most sectors in a list.
    pub(crate) const fn most(&self) -> usize {
        self.limits.most
    }

    /// Nodes that exist.
    pub(crate) const fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Sectors that lists name.
    pub(crate) const fn sectors(&self) -> u32 {
        self.sectors
    }

    /// The lengths of all lists together.
    pub(crate) const fn listed(&self) -> u64 {
        self.listed
    }

    /// Numbers that nodes have or had.
    pub(crate) fn numbers(&self) -> impl ExactSizeIterator<Item = NodeId> + use<> {
        (0..self.numbers).map(NodeId)
    }

    /// How many sectors are in a node's list; `None` if there is no such node.
    fn count(&self, node: NodeId) -> Option<usize> {
        (node.0 < self.numbers).then(|| self.length(node)).and_then(sectors_of)
    }

    /// Where the list of a node stands: its piece, and the sectors in front of it there.
    fn place(&self, node: NodeId) -> (usize, usize) {
        let (piece, at) = (node.0 as usize / NODES_A_PIECE, node.0 as usize % NODES_A_PIECE);
        let lengths = self.lengths.pieces.get(piece).and_then(|lengths| lengths.get(..at));
        let before = lengths.unwrap_or_default().iter().filter_map(|length| sectors_of(*length));
        (piece, before.sum())
    }

    /// The length of a node's list, with what is set in it.
    fn length(&self, node: NodeId) -> u8 {
        self.lengths.get(node.0 as usize).map_or(NONE, |length| length as u8)
    }

    const fn has_counters(&self) -> bool {
        self.counters.width > 0
    }

    /// The counter of a node.
    pub(super) fn counter(&self, node: NodeId) -> i32 {
        self.counters.get(node.0 as usize).unwrap_or(0).cast_signed()
    }

    /// Sets it: in two bytes it goes no higher than they do, which is beyond what it is due at.
    pub(super) fn set_counter(&mut self, node: NodeId, counter: i32) {
        let counter = match self.counters.width {
            2 => counter.clamp(0, u16::MAX.into()),
            _ => counter,
        };
        self.counters.set(node.0 as usize, counter.cast_unsigned());
    }

    /// Nodes in disk mode.
    pub(crate) const fn pages(&self) -> u32 {
        self.pages
    }

    /// True if a node is in disk mode.
    pub(crate) fn is_page(&self, node: NodeId) -> bool {
        let length = self.length(node);
        length != NONE && length & PAGE > 0
    }

    /// Puts a node into disk mode, or log mode: its counter is 0 then.
    pub(super) fn set_page(&mut self, node: NodeId, is_page: bool) {
        if self.is_page(node) != is_page {
            self.lengths.set(node.0 as usize, u32::from(self.length(node) ^ PAGE));
            self.pages = if is_page { self.pages + 1 } else { self.pages - 1 };
        }
        self.set_counter(node, 0);
    }

    /// True if there is such a node.
    pub(crate) fn exists(&self, node: NodeId) -> bool {
        self.count(node).is_some()
    }

    /// The sectors of a node, oldest first.
    pub(crate) fn list(&self, node: NodeId) -> impl ExactSizeIterator<Item = LogicalPage> {
        let (piece, place) = self.place(node);
        let list = self.lists.get(piece, place, self.count(node).unwrap_or(0));
        list.chunks_exact(self.lists.width).map(|sector| LogicalPage(read_number(sector)))
    }

    /// True if the list of a node names a sector.
    pub(super) fn names(&self, node: NodeId, sector: LogicalPage) -> bool {
        self.list(node).any(|listed| listed == sector)
    }

    /// A number for a node that is born.
    pub(crate) fn allocate(&mut self) -> NodeId {
        let free = (self.free_from..self.numbers).find(|number| !self.exists(NodeId(*number)));
        let number = free.unwrap_or(self.numbers);
        self.reach(number as usize);
        self.numbers = self.numbers.max(number + 1);
        self.begin(NodeId(number));
        self.free_from = number + 1;
        self.nodes += 1;
        NodeId(number)
    }

    /// There is room for the node of this number.
    fn reach(&mut self, number: usize) {
        self.lengths.reach(number, NONE);
        self.lists.reach(number / NODES_A_PIECE);
        if self.has_counters() {
            self.counters.reach(number, 0);
        }
    }

    /// A node is there, in log mode and with an empty list.
    fn begin(&mut self, node: NodeId) {
        self.lengths.set(node.0 as usize, 0);
        self.set_counter(node, 0);
    }

    fn set_length(&mut self, node: NodeId, length: usize) {
        let form = self.length(node) & PAGE;
        self.lengths.set(node.0 as usize, u32::from(form) | length as u32);
    }

    /// True if a list names a sector.
    pub(super) fn is_listed(&self, sector: LogicalPage) -> bool {
        self.uses.get(sector.0 as usize).is_some_and(|uses| uses > 0)
    }

    /// A sector holds a unit of a node, behind all others. False if its list is full.
    #[must_use]
    pub(crate) fn push(&mut self, node: NodeId, sector: LogicalPage) -> bool {
        let Some(length) = self.count(node).filter(|length| *length < self.limits.most) else {
            return false;
        };
        self.uses.reach(sector.0 as usize, 0);
        let more = self.uses.get(sector.0 as usize).map_or(1, |uses| uses + 1);
        let (piece, place) = self.place(node);
        let fits = bytes_for(sector.0) <= self.lists.width && bytes_for(more) <= self.uses.width;
        if !fits || !self.lists.insert(piece, place + length, sector.0) {
            return false;
        }
        self.uses.set(sector.0 as usize, more);
        self.sectors += u32::from(more == 1);
        self.listed += 1;
        self.set_length(node, length + 1);
        true
    }

    /// Takes the newest sector from a node's list; returns it if no list names it any more.
    pub(crate) fn pop(&mut self, node: NodeId) -> Option<Option<LogicalPage>> {
        let sector = self.list(node).last()?;
        let left = self.count(node)?.checked_sub(1)?;
        let (piece, place) = self.place(node);
        self.lists.remove(piece, place + left);
        self.set_length(node, left);
        self.listed -= 1;
        let uses = self.uses.get(sector.0 as usize)?.saturating_sub(1);
        self.uses.set(sector.0 as usize, uses);
        self.sectors -= u32::from(uses == 0);
        Some((uses == 0).then_some(sector))
    }

    /// A node, whose list is empty, is no more.
    pub(crate) fn free(&mut self, node: NodeId) {
        self.set_page(node, false);
        self.lengths.set(node.0 as usize, NONE.into());
        self.free_from = self.free_from.min(node.0);
        self.nodes -= 1;
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Table::new(self.limits);
    }

    /// Appends the table, as it stands in a root record, to `record`.
    pub(crate) fn write(&self, record: &mut Vec<u8>) {
        for node in self.numbers() {
            if !self.exists(node) {
                record.push(NONE);
                continue;
            }
            let list = self.list(node);
            let form = if self.is_page(node) { PAGE } else { 0 };
            record.push(form | list.len() as u8);
            let counter = self.counter(node).to_le_bytes();
            record.extend_from_slice(&counter[..self.counters.width]);
            for sector in list {
                record.extend_from_slice(&sector.0.to_le_bytes());
            }
        }
    }

    /// Bytes that [`Table::write`] appends.
    pub(crate) fn written_bytes(&self) -> usize {
        let counters = self.nodes as usize * self.counters.width;
        self.numbers as usize * LENGTH_BYTES + counters + self.listed as usize * SECTOR_BYTES
    }

    /// A node that was not entered yet gets so many sectors next; false if it can't.
    #[must_use]
    pub(super) fn enter(&mut self, node: NodeId, is_page: bool, sectors: usize) -> bool {
        self.reach(node.0 as usize);
        self.numbers = self.numbers.max(node.0 + 1);
        self.begin(node);
        self.nodes += 1;
        self.set_page(node, is_page);
        // A node that was written has a sector.
        sectors > 0 && (!is_page || (sectors == 1 && self.limits.mode != Mode::Log))
    }

    /// Becomes what [`Table::write`] wrote, all of `record`, of `numbers` numbers and sectors below
    /// `sectors`; false if it makes no sense.
    #[must_use]
    pub(crate) fn read(&mut self, mut record: &[u8], numbers: u32, sectors: u32) -> bool {
        self.clear();
        for number in 0..numbers {
            let Some((length, rest)) = record.split_first() else {
                return false;
            };
            record = rest;
            if *length == NONE {
                self.reach(number as usize);
                self.numbers = number + 1;
                continue;
            }
            let (length, is_page) = (length & !PAGE, length & PAGE > 0);
            if !self.enter(NodeId(number), is_page, length.into()) {
                return false;
            }
            let Some((counter, rest)) = record.split_at_checked(self.counters.width) else {
                return false;
            };
            record = rest;
            self.counters.set(number as usize, read_number(counter));
            for _ in 0..length {
                let Some((sector, rest)) = record.split_first_chunk() else {
                    return false;
                };
                record = rest;
                let sector = LogicalPage(u32::from_le_bytes(*sector));
                let is_sound = sector.0 < sectors && !self.names(NodeId(number), sector);
                if !is_sound || !self.push(NodeId(number), sector) {
                    return false;
                }
            }
        }
        record.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { most: 3, mode: Mode::Log, sector: 512, sectors: 1000 };

    #[test]
    fn a_sector_is_free_when_the_last_list_that_names_it_gives_it_up() {
        let mut table = Table::new(Limits { most: 2, ..LIMITS });
        let (one, other) = (table.allocate(), table.allocate());
        assert!(table.push(one, LogicalPage(7)) && table.push(other, LogicalPage(7)));
        assert!(table.push(one, LogicalPage(300)) && !table.push(one, LogicalPage(8)));
        assert_eq!((table.sectors(), table.listed()), (2, 3));
        assert_eq!(table.pop(one), Some(Some(LogicalPage(300))));
        assert_eq!(table.pop(one), Some(None));
        assert_eq!(table.pop(one), None);
        assert_eq!(table.pop(other), Some(Some(LogicalPage(7))));
        table.free(one);
        assert_eq!((table.nodes(), table.allocate()), (1, one));
    }

    #[test]
    fn a_table_comes_back_from_its_record_and_from_no_other() {
        let mut table = Table::new(LIMITS);
        let nodes: Vec<_> = (0..200).map(|_| table.allocate()).collect();
        for (at, node) in nodes.iter().enumerate() {
            for sector in 0..=at as u32 % 3 {
                assert!(table.push(*node, LogicalPage(at as u32 / 2 + 100 * sector)));
            }
        }
        while table.pop(nodes[3]).is_some() {}
        table.free(nodes[3]);
        let mut record = Vec::new();
        table.write(&mut record);
        assert_eq!(record.len(), table.written_bytes());
        let mut again = Table::new(LIMITS);
        assert!(again.read(&record, 200, 400));
        assert!(nodes.iter().all(|node| again.list(*node).eq(table.list(*node))));
        assert_eq!((again.nodes(), again.sectors()), (table.nodes(), table.sectors()));
        assert!(!again.read(&record[1..], 200, 400));
        assert!(!again.read(&record[..record.len() - 1], 200, 400));
        assert!(!again.read(&record, 200, 150));
        assert!(!again.read(&record, 199, 400));
    }

    /// Changes a table at random, and a model with it; they are alike all the time.
    fn changed_at_random(limits: Limits, lists_most: usize) -> (Table, u64) {
        let mut table = Table::new(limits);
        // Sectors are counted from the first on.
        table.uses.reach(limits.sectors as usize - 1, 0);
        let mut model: Vec<Vec<u32>> = Vec::new();
        let (mut random, mut stated) = (0x9E37_79B9_7F4A_7C15_u64, 0);
        let mut below = |most: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % most as u64) as usize
        };
        for _ in 0..40_000 {
            let least = table.bytes_with(1, 1);
            if model.len() < lists_most && below(8) == 0 {
                assert_eq!(table.allocate(), NodeId(model.len() as u32));
                model.push(Vec::new());
            } else if !model.is_empty() {
                let at = below(model.len());
                let (node, list) = (NodeId(at as u32), &mut model[at]);
                let sector = limits.sectors - 1 - below(700) as u32;
                if below(3) > 0 {
                    let has_room = list.len() < limits.most;
                    assert_eq!(table.push(node, LogicalPage(sector)), has_room);
                    if has_room {
                        list.push(sector);
                    }
                } else {
                    assert_eq!(table.pop(node).is_some(), list.pop().is_some());
                }
                assert!(table.list(node).map(|sector| sector.0).eq(list.iter().copied()));
            }
            assert!(table.bytes() <= least, "{} of {least} bytes", table.bytes());
            stated = table.bytes();
        }
        let same = |(at, list): (usize, &Vec<u32>)| {
            table.list(NodeId(at as u32)).map(|sector| sector.0).eq(list.iter().copied())
        };
        assert!(model.iter().enumerate().all(same));
        let held: usize = table.lists.pieces.iter().map(Vec::capacity).sum();
        assert_eq!(held as u64, table.lists.held);
        (table, stated)
    }

    #[test]
    fn lists_stand_packed_in_as_few_bytes_as_their_sectors_need() {
        let tuning = Mode::SelfTuning { is_printed: false, splits_alike: false };
        for sectors in [800, 60_000, 1 << 20, (1 << 24) + 800] {
            for (mode, most) in [(Mode::Log, 3), (tuning, 5), (tuning, 64)] {
                let limits = Limits { most, mode, sector: 512, sectors };
                let (table, stated) = changed_at_random(limits, 300);
                // A length and a counter a node, and the sectors in its list.
                let lists = table.listed() * limits.number() as u64;
                let node = (1 + limits.counter()) as u64;
                let beside = table.uses.bytes() + 2000;
                let bytes = table.own_bytes();
                assert!(bytes <= 300 * (node + 2) + lists + beside, "{bytes} bytes");
                assert!(bytes + table.written_bytes() as u64 <= stated);
            }
        }
    }

    #[test]
    fn counters_come_back_with_the_table() {
        for is_printed in [false, true] {
            let limits =
                Limits { mode: Mode::SelfTuning { is_printed, splits_alike: false }, ..LIMITS };
            let mut table = Table::new(limits);
            for number in 0..100 {
                let node = table.allocate();
                assert!(table.push(node, LogicalPage(number)));
                table.set_page(node, number % 3 == 0);
                table.set_counter(node, if is_printed { -70_000 } else { 500 } + number as i32);
            }
            let mut record = Vec::new();
            table.write(&mut record);
            assert_eq!(record.len(), table.written_bytes());
            let mut again = Table::new(limits);
            assert!(again.read(&record, 100, 400));
            let same = |node| again.counter(node) == table.counter(node);
            assert!(table.numbers().all(same));
            assert!(!again.read(&record[..record.len() - 5], 100, 400));
        }
    }

    #[test]
    fn a_counter_of_two_bytes_goes_no_higher_than_they_do() {
        let mode = Mode::SelfTuning { is_printed: false, splits_alike: false };
        let mut table = Table::new(Limits { mode, ..LIMITS });
        let node = table.allocate();
        assert_eq!(table.limits.counter(), 2);
        for (counter, kept) in [(0, 0), (40_000, 40_000), (65_536, 65_535), (i32::MAX, 65_535)] {
            table.set_counter(node, counter);
            assert_eq!(table.counter(node), kept);
        }
        let mode = Mode::SelfTuning { is_printed: true, splits_alike: false };
        let mut table = Table::new(Limits { mode, ..LIMITS });
        let node = table.allocate();
        table.set_counter(node, -70_000);
        assert_eq!(table.counter(node), -70_000);
    }
}
