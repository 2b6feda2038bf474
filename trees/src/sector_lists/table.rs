//! The node translation table: for each node its sectors, and for each sector the nodes in it.
//!
//! ```text
//!  in a root record, each number   | sectors u8, 255 if no node has it | each u32, oldest first |
//! ```

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use store::LogicalPage;

use super::choices::Mode;
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

/// Bytes in front of lists in a root record.
const LENGTH_BYTES: usize = 1;
const SECTOR_BYTES: usize = 4;

/// Numbers in pieces of one length, so that none is moved when more come.
#[derive(Debug)]
struct Pieces<T> {
    pieces: Vec<Box<[T]>>,
    items: usize,
    width: usize,
}

impl<T: Copy> Pieces<T> {
    const fn new(items: usize, width: usize) -> Self {
        Pieces { pieces: Vec::new(), items, width }
    }

    fn get(&self, item: usize) -> Option<&[T]> {
        let at = item % self.items * self.width;
        self.pieces.get(item / self.items)?.get(at..at + self.width)
    }

    fn get_mut(&mut self, item: usize) -> Option<&mut [T]> {
        let at = item % self.items * self.width;
        self.pieces.get_mut(item / self.items)?.get_mut(at..at + self.width)
    }

    /// There is an item of this number; those that come have this value.
    fn reach(&mut self, item: usize, value: T) {
        while self.pieces.len() <= item / self.items {
            if self.pieces.len() == self.pieces.capacity() {
                self.pieces.reserve_exact(self.pieces.len() / 8 + 4);
            }
            self.pieces.push(vec![value; self.items * self.width].into_boxed_slice());
        }
    }

    fn bytes(&self) -> u64 {
        let each = self.items * self.width * size_of::<T>();
        (self.pieces.len() * each + self.pieces.capacity() * size_of::<Box<[T]>>()) as u64
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct Table {
    /// The length of a node's list.
    lengths: Pieces<u8>,
    /// The sectors in it.
    lists: Pieces<u32>,
    /// Lists that name a sector.
    uses: Pieces<u16>,
    /// The counter of each node, where they have any.
    counters: Pieces<i32>,
    mode: Mode,
    /// The most sectors in a list.
    most: usize,
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
    /// An empty table with lists of at most `most` sectors.
    pub(crate) fn new(most: usize, mode: Mode) -> Self {
        let mut table = Table {
            counters: Pieces::new(NODES_A_PIECE, 1),
            mode,
            pages: 0,
            lengths: Pieces::new(NODES_A_PIECE, 1),
            lists: Pieces::new(NODES_A_PIECE, most),
            uses: Pieces::new(SECTORS_A_PIECE, 1),
            most,
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

    /// Bytes of memory.
    pub(crate) fn own_bytes(&self) -> u64 {
        self.lengths.bytes() + self.lists.bytes() + self.counters.bytes() + self.uses.bytes()
    }

    /// The same, a root record included that is made of it.
    pub(crate) fn bytes(&self) -> u64 {
        self.own_bytes() + self.record_bytes(u64::from(self.numbers))
    }

    /// The same with so many nodes and sectors more.
    pub(crate) fn bytes_with(&self, nodes: u64, sectors: u64) -> u64 {
        let counter = if self.has_counters() { size_of::<i32>() } else { 0 };
        let list = (self.most * size_of::<u32>() + counter + 2) as u64;
        let piece = NODES_A_PIECE as u64 * list + SECTORS_A_PIECE as u64 * 2;
        self.bytes() + nodes * (list + self.record_bytes(1)) + sectors * 3 + piece
    }

    /// Bytes of the lists of so many more numbers in a root record, at most, where all lists
    /// together name no more than `listed` sectors.
    pub(crate) fn record_bytes_with(&self, nodes: u64, listed: u64) -> u64 {
        let numbers = u64::from(self.numbers) + nodes;
        let together = numbers * LENGTH_BYTES as u64 + listed * SECTOR_BYTES as u64;
        self.record_bytes(numbers).min(together)
    }

    const fn record_bytes(&self, numbers: u64) -> u64 {
        numbers.saturating_mul((LENGTH_BYTES + self.most * SECTOR_BYTES) as u64)
    }

    /// The most sectors in a list.
    pub(crate) const fn most(&self) -> usize {
        self.most
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

    fn entry(&self, node: NodeId) -> Option<(usize, &[u32])> {
        if node.0 >= self.numbers {
            return None;
        }
        let length = self.length(node);
        let list = self.lists.get(node.0 as usize)?;
        (length != NONE).then_some((usize::from(length & !PAGE), list))
    }

    /// The length of a node's list, with what is set in it.
    fn length(&self, node: NodeId) -> u8 {
        self.lengths.get(node.0 as usize).and_then(<[u8]>::first).copied().unwrap_or(NONE)
    }

    const fn has_counters(&self) -> bool {
        matches!(self.mode, Mode::SelfTuning { .. })
    }

    /// The counter of a node.
    pub(super) fn counter(&self, node: NodeId) -> i32 {
        self.counters.get(node.0 as usize).and_then(<[i32]>::first).copied().unwrap_or(0)
    }

    pub(super) fn set_counter(&mut self, node: NodeId, counter: i32) {
        if let Some([place]) = self.counters.get_mut(node.0 as usize) {
            *place = counter;
        }
    }

    /// Nodes in disk mode.
    pub(crate) const fn pages(&self) -> u32 {
        self.pages
    }

    /// True if a node is in disk mode.
    pub(super) fn is_page(&self, node: NodeId) -> bool {
        let length = self.length(node);
        length != NONE && length & PAGE > 0
    }

    /// Puts a node into disk mode, or log mode: its counter is 0 then.
    pub(super) fn set_page(&mut self, node: NodeId, is_page: bool) {
        if self.is_page(node) != is_page
            && let Some([length]) = self.lengths.get_mut(node.0 as usize)
        {
            *length ^= PAGE;
            self.pages = if is_page { self.pages + 1 } else { self.pages - 1 };
        }
        self.set_counter(node, 0);
    }

    /// True if there is such a node.
    pub(crate) fn exists(&self, node: NodeId) -> bool {
        self.entry(node).is_some()
    }

    /// The sectors of a node, oldest first.
    pub(crate) fn list(&self, node: NodeId) -> &[u32] {
        let list = self.entry(node).and_then(|(length, list)| list.get(..length));
        list.unwrap_or_default()
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
        self.lists.reach(number, 0);
        if self.has_counters() {
            self.counters.reach(number, 0);
        }
    }

    /// A node is there, in log mode and with an empty list.
    fn begin(&mut self, node: NodeId) {
        if let Some([first]) = self.lengths.get_mut(node.0 as usize) {
            *first = 0;
        }
        self.set_counter(node, 0);
    }

    fn set_length(&mut self, node: NodeId, length: u8) {
        if let Some([first]) = self.lengths.get_mut(node.0 as usize) {
            *first = *first & PAGE | length;
        }
    }

    /// True if a list names a sector.
    pub(super) fn is_listed(&self, sector: LogicalPage) -> bool {
        self.uses.get(sector.0 as usize).is_some_and(|uses| *uses != [0])
    }

    /// A sector holds a unit of a node, behind all others. False if its list is full.
    #[must_use]
    pub(crate) fn push(&mut self, node: NodeId, sector: LogicalPage) -> bool {
        let length = self.list(node).len();
        if length >= self.most || !self.exists(node) {
            return false;
        }
        self.uses.reach(sector.0 as usize, 0);
        let Some([uses]) = self.uses.get_mut(sector.0 as usize) else {
            return false;
        };
        let Some(more) = uses.checked_add(1) else {
            return false;
        };
        *uses = more;
        self.sectors += u32::from(more == 1);
        self.listed += 1;
        if let Some(place) = self.lists.get_mut(node.0 as usize) {
            place[length] = sector.0;
        }
        self.set_length(node, length as u8 + 1);
        true
    }

    /// Takes the newest sector from a node's list; returns it if no list names it any more.
    pub(crate) fn pop(&mut self, node: NodeId) -> Option<Option<LogicalPage>> {
        let (length, list) = self.entry(node)?;
        let sector = *list.get(length.checked_sub(1)?)?;
        self.set_length(node, length as u8 - 1);
        self.listed -= 1;
        let [uses] = self.uses.get_mut(sector as usize)? else {
            return None;
        };
        *uses = uses.saturating_sub(1);
        let is_free = *uses == 0;
        self.sectors -= u32::from(is_free);
        Some(is_free.then_some(LogicalPage(sector)))
    }

    /// A node, whose list is empty, is no more.
    pub(crate) fn free(&mut self, node: NodeId) {
        self.set_page(node, false);
        if let Some([first]) = self.lengths.get_mut(node.0 as usize) {
            *first = NONE;
        }
        self.free_from = self.free_from.min(node.0);
        self.nodes -= 1;
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Table::new(self.most, self.mode);
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
            for sector in list {
                record.extend_from_slice(&sector.to_le_bytes());
            }
        }
    }

    /// Bytes that [`Table::write`] appends.
    pub(crate) fn written_bytes(&self) -> usize {
        self.numbers as usize * LENGTH_BYTES + self.listed as usize * SECTOR_BYTES
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
            self.reach(number as usize);
            self.numbers = number + 1;
            if *length == NONE {
                continue;
            }
            self.begin(NodeId(number));
            self.nodes += 1;
            let (length, is_page) = (length & !PAGE, length & PAGE > 0);
            if is_page && (length != 1 || self.mode == Mode::Log) {
                return false;
            }
            self.set_page(NodeId(number), is_page);
            for _ in 0..length {
                let Some((sector, rest)) = record.split_first_chunk() else {
                    return false;
                };
                record = rest;
                let sector = u32::from_le_bytes(*sector);
                let is_sound = sector < sectors && !self.list(NodeId(number)).contains(&sector);
                if !is_sound || !self.push(NodeId(number), LogicalPage(sector)) {
                    return false;
                }
            }
            // A node that was written has a sector.
            if length == 0 {
                return false;
            }
        }
        record.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_is_free_when_the_last_list_that_names_it_gives_it_up() {
        let mut table = Table::new(2, Mode::Log);
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
        let mut table = Table::new(3, Mode::Log);
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
        let mut again = Table::new(3, Mode::Log);
        assert!(again.read(&record, 200, 400));
        assert!(nodes.iter().all(|node| again.list(*node) == table.list(*node)));
        assert_eq!((again.nodes(), again.sectors()), (table.nodes(), table.sectors()));
        assert!(!again.read(&record[1..], 200, 400));
        assert!(!again.read(&record[..record.len() - 1], 200, 400));
        assert!(!again.read(&record, 200, 150));
        assert!(!again.read(&record, 199, 400));
    }
}
