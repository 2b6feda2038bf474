//! The blocks of the lazy-update list.

use store::LogicalPage;

use crate::btree::At;

/// Which block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockId(pub(super) u16);

/// No block.
pub(super) const NONE: BlockId = BlockId(u16::MAX);

/// The block of the root: its range is that of all keys.
pub(super) const ROOT: BlockId = BlockId(0);

/// The most leaf nodes that are written for one group.
const GAIN_MOST: u8 = 2;

impl BlockId {
    #[inline]
    pub(super) const fn place(self) -> usize {
        self.0 as usize
    }

    pub(super) const fn to_bytes(self) -> [u8; 2] {
        self.0.to_le_bytes()
    }

    pub(super) const fn from_bytes(bytes: [u8; 2]) -> Self {
        BlockId(u16::from_le_bytes(bytes))
    }
}

/// What changes in a block's requests: how many, and how many more puts than deletes.
pub(super) type Change = (i32, i32);

/// What a leaf has room for, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Entries that it takes before it is split.
    pub(super) more: u16,
    /// Entries that it spares before it is less than half full.
    pub(super) less: u16,
}

impl Room {
    pub(super) const UNKNOWN: Room = Room { more: u16::MAX, less: u16::MAX };
}

/// What a group's requests do to its leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Normal,
    Splitting,
    /// Merging or redistributing.
    Shrinking,
}

/// An index block stands for an inner node, a group block for a leaf. Its requests are those whose
/// keys are in its range, but in that of no child of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) page: LogicalPage,
    /// When it was hit last, or, under first in, first out, began.
    pub(super) hit: u32,
    pub(super) parent: BlockId,
    /// Where it stands in the order, if it has requests; of a free block, which is free behind it.
    pub(super) place: u16,
    /// Its requests.
    pub(super) count: u16,
    /// How many more puts than deletes they are.
    pub(super) growth: i16,
    /// Blocks whose parent it is.
    pub(super) children: u16,
    /// Of a group block what its leaf has room for; of an index block its best super group.
    pub(super) room: Room,
    pub(super) level: u8,
    pub(super) is_live: bool,
    /// It is to be committed with another that was.
    pub(super) is_chosen: bool,
    /// It is in a super group that was looked at.
    pub(super) is_visited: bool,
}

impl Block {
    pub(super) const FREE: Block = Block {
        page: LogicalPage(0),
        hit: 0,
        parent: NONE,
        place: 0,
        count: 0,
        growth: 0,
        children: 0,
        room: Room::UNKNOWN,
        level: 0,
        is_live: false,
        is_chosen: false,
        is_visited: false,
    };

    pub(super) fn change(&mut self, (count, growth): Change) {
        self.count = (i32::from(self.count) + count).clamp(0, i32::from(u16::MAX)) as u16;
        let growth = i32::from(self.growth) + growth;
        self.growth = growth.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
    }

    pub(super) const fn at(&self) -> At<LogicalPage> {
        At { id: self.page, level: self.level }
    }

    pub(super) const fn is_group(&self) -> bool {
        self.level == 0
    }

    pub(super) fn is_known(&self) -> bool {
        self.room != Room::UNKNOWN
    }

    /// Of an index block: a member of the best super group below it, and its score, of which lower
    /// ones are better; `None` if that is not known.
    pub(super) fn best(&self) -> Option<(BlockId, u16)> {
        self.is_known().then_some((BlockId(self.room.more), self.room.less))
    }

    /// What its requests do to its leaf, by how many they are. A leaf that is not known is taken
    /// to be neither split nor merged.
    pub(super) fn operation(&self) -> Operation {
        let growth = i32::from(self.growth);
        // The room of an index block is something else.
        match self.is_known() && self.is_group() {
            true if growth > i32::from(self.room.more) => Operation::Splitting,
            true if -growth > i32::from(self.room.less) => Operation::Shrinking,
            _ => Operation::Normal,
        }
    }

    /// Leaf nodes that are written when its requests are committed: formula (5).
    pub(super) fn gain(&self) -> u8 {
        if self.operation() == Operation::Normal { 1 } else { GAIN_MOST }
    }
}
