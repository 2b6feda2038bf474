//! What each block is for, and the lists that they stand in.

use alloc::boxed::Box;
use alloc::vec;

use device::Block;

/// What a block is for.
///
/// ```text
/// Erased --> Open --> Closed --> (collected) --> Dirty --> (erased) --> Open
///              \-> Pinned -^  \-> Held
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Free and erased in this session.
    Erased,
    /// Free, to be erased before use: it may hold what is dead, or anything.
    Dirty,
    /// A frontier.
    Open,
    /// Closed, and a candidate for collection.
    Closed,
    /// Closed, but no candidate, since the newest header stands in it.
    Pinned,
    /// Refused a program: to be emptied and marked bad.
    Worn,
    /// Being collected, or left with pages that cannot be read.
    Held,
    /// Marked bad.
    Bad,
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Link {
    next: u32,
    previous: u32,
}

/// A chain of blocks. A block stands in at most one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
}

impl List {
    pub(crate) const EMPTY: List = List { first: NONE, last: NONE };

    pub(crate) fn first(&self) -> Option<Block> {
        (self.first != NONE).then_some(Block(self.first))
    }
}

/// The links of all chains.
pub(crate) struct Links(Box<[Link]>);

impl Links {
    pub(crate) fn push(&mut self, list: &mut List, block: Block) {
        self.0[block.0 as usize] = Link { next: NONE, previous: list.last };
        match list.last {
            NONE => list.first = block.0,
            last => self.0[last as usize].next = block.0,
        }
        list.last = block.0;
    }

    pub(crate) fn remove(&mut self, list: &mut List, block: Block) {
        let Link { next, previous } = self.0[block.0 as usize];
        match previous {
            NONE => list.first = next,
            previous => self.0[previous as usize].next = next,
        }
        match next {
            NONE => list.last = previous,
            next => self.0[next as usize].previous = previous,
        }
    }

    pub(crate) fn iter(&self, list: &List) -> impl Iterator<Item = Block> {
        core::iter::successors(list.first(), |block| {
            let next = self.0[block.0 as usize].next;
            (next != NONE).then_some(Block(next))
        })
    }
}

/// All blocks of a chip.
///
/// Invariant: `free` holds exactly the erased and the dirty blocks, `worn` exactly the worn ones.
pub(crate) struct Blocks {
    roles: Box<[Role]>,
    pub(crate) links: Links,
    free: List,
    free_count: u32,
    worn: List,
}

impl Blocks {
    /// `count` blocks, all of them bad until something else is said.
    pub(crate) fn new(count: u32) -> Self {
        let link = Link { next: NONE, previous: NONE };
        Blocks {
            roles: vec![Role::Bad; count as usize].into_boxed_slice(),
            links: Links(vec![link; count as usize].into_boxed_slice()),
            free: List::EMPTY,
            free_count: 0,
            worn: List::EMPTY,
        }
    }

    pub(crate) fn role(&self, block: Block) -> Role {
        self.roles[block.0 as usize]
    }

    /// Gives a block that stands in no list a role that has none.
    pub(crate) fn set(&mut self, block: Block, role: Role) {
        self.roles[block.0 as usize] = role;
    }

    pub(crate) const fn free_count(&self) -> u32 {
        self.free_count
    }

    /// The block that was freed first.
    pub(crate) fn next_free(&self) -> Option<(Block, Role)> {
        self.free.first().map(|block| (block, self.role(block)))
    }

    /// The free blocks, in the order in which they will be used.
    pub(crate) fn free(&self) -> impl Iterator<Item = Block> {
        self.links.iter(&self.free)
    }

    /// Adds a block to the free ones, as erased or dirty.
    pub(crate) fn release(&mut self, block: Block, role: Role) {
        self.set(block, role);
        self.links.push(&mut self.free, block);
        self.free_count += 1;
    }

    /// Takes a free block away.
    pub(crate) fn take(&mut self, block: Block, role: Role) {
        self.links.remove(&mut self.free, block);
        self.free_count -= 1;
        self.set(block, role);
    }

    /// A block that should be emptied and marked bad.
    pub(crate) fn next_worn(&self) -> Option<Block> {
        self.worn.first()
    }

    pub(crate) fn wear_out(&mut self, block: Block) {
        self.set(block, Role::Worn);
        self.links.push(&mut self.worn, block);
    }

    pub(crate) fn hold_worn(&mut self, block: Block) {
        self.links.remove(&mut self.worn, block);
        self.set(block, Role::Held);
    }

    /// Bytes of memory that the tables take.
    pub(crate) fn memory(&self) -> u64 {
        (size_of_val(&*self.roles) + size_of_val(&*self.links.0)) as u64
    }
}
