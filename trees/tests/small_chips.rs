//! The smallest chip on which a tree can be made takes a block's worth of entries: as many as have
//! the bytes of an erase block. A smaller one is refused with a number of blocks that suffices.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use contract::sample;
use device::{Geometry, Medium, Nand, NandCosts, ProgramOrder};
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Update, Value, Width};
use index::{MediumShape, Options, TreeDescriptor};
use sim::SimulatedNand;

/// What a key, or a value, of variable length has here, in bytes.
const VARIABLE_BYTES: usize = 16;

/// A tree on chips that differ in nothing but how many blocks they have.
#[derive(Clone, Copy, Debug)]
struct Kind {
    tree: &'static str,
    durability: Durability,
    shape: EntryShape,
    page_bytes: u32,
    spare_bytes: u32,
    pages_per_block: u32,
    programs: u16,
    order: ProgramOrder,
    /// The memory, as so many times the least.
    memory: u64,
}

/// In which order keys come.
#[derive(Clone, Copy, Debug)]
enum Order {
    Scattered,
    Ascending,
    Descending,
}

impl Order {
    const ALL: [Order; 3] = [Order::Scattered, Order::Ascending, Order::Descending];

    const fn number(self, place: u32) -> u32 {
        match self {
            Order::Scattered => place.wrapping_mul(0x9E37_79B9),
            Order::Ascending => place,
            Order::Descending => u32::MAX - place,
        }
    }
}

fn bytes_of(width: Width) -> usize {
    match width {
        Width::Fixed(bytes) => bytes.into(),
        Width::Variable => VARIABLE_BYTES,
    }
}

impl Kind {
    fn entry(&self) -> &'static TreeDescriptor {
        flashtree_trees::find(self.tree).unwrap()
    }

    fn chip(&self, blocks: u32) -> SimulatedNand {
        let chip = Geometry::new(self.page_bytes, self.pages_per_block, blocks).unwrap();
        let chip = chip.with_spare(self.spare_bytes).unwrap();
        let chip = chip.with_programs(self.programs).unwrap().with_order(self.order);
        SimulatedNand::new(chip, NandCosts::default())
    }

    fn make<'c>(
        &self,
        chip: &'c mut SimulatedNand,
        open: bool,
    ) -> index::Result<Box<dyn Index + 'c>> {
        let entry = self.entry();
        let settings = Settings::parse(self.tree, entry.parameters, []).unwrap();
        let options = Options::new(self.shape, 0, settings);
        let mut options = Options { durability: Some(self.durability), ..options };
        let medium = MediumShape::Nand(chip.geometry());
        options.memory_bytes = entry.least_memory(&options, medium).unwrap() * self.memory;
        let make = if open { entry.open } else { entry.create };
        make(Medium::Nand(Box::new(chip)), &options)
    }

    /// The blocks that a chip of so many needs, going by what is said; `None` if it suffices.
    fn refusal(&self, blocks: u32) -> Option<u32> {
        match self.make(&mut self.chip(blocks), false) {
            Ok(_) => None,
            Err(Error::Store(store::Error::Device(refused))) => {
                let device::Error::TooFewBlocks { have, need } = refused else {
                    panic!("{self:?}, {blocks} blocks: {refused}");
                };
                assert!(have == blocks && need > have, "{self:?}: {refused}");
                Some(need)
            }
            Err(other) => panic!("{self:?}, {blocks} blocks: {other}"),
        }
    }

    /// The fewest blocks that are taken. What is said of smaller chips suffices at once.
    fn smallest(&self) -> u32 {
        let said = self.refusal(1).unwrap_or_else(|| panic!("{self:?}: one block is taken"));
        assert_eq!(self.refusal(said), None, "{self:?}: {said} blocks do not suffice");
        let smallest = (1..=said).rev().take_while(|blocks| self.refusal(*blocks).is_none()).last();
        let smallest = smallest.unwrap_or(said);
        let said = self.refusal(smallest - 1).unwrap_or_default();
        assert_eq!(self.refusal(said), None, "{self:?}: {said} blocks do not suffice");
        smallest
    }

    fn key(&self, number: u32) -> Vec<u8> {
        let bytes = bytes_of(self.shape.key);
        [vec![0; bytes.saturating_sub(4)], number.to_be_bytes().to_vec()].concat()
    }

    /// Puts a block's worth of entries, and reads them back after the index was closed.
    fn fill(&self, blocks: u32, order: Order) {
        let value = vec![7; bytes_of(self.shape.value)];
        let each = (self.key(0).len() + value.len()) as u32;
        let entries = (self.page_bytes * self.pages_per_block).div_ceil(each);
        let mut chip = self.chip(blocks);
        let mut index = self.make(&mut chip, false).unwrap();
        let mut taken = 0;
        for place in 0..entries {
            let key = self.key(order.number(place));
            match index.update(&[Update::Put { key: &key, value: &value }]) {
                Ok(()) => taken += 1,
                // Where nodes share small pages, a tree can't have more levels on any chip.
                Err(Error::TreeFull { .. }) => break,
                Err(error) => {
                    panic!("{self:?}, {order:?}, {blocks} blocks: {place} of {entries}: {error}")
                }
            }
            if self.durability != Durability::None && place % 61 == 60 {
                index.checkpoint(None).unwrap();
            }
        }
        index.close().unwrap();
        drop(index);
        let mut index = self.make(&mut chip, true).unwrap();
        let mut keys: Vec<_> = (0..taken).map(|place| self.key(order.number(place))).collect();
        keys.sort();
        let mut cursor = index.range(KeyRange::ALL).unwrap();
        for key in &keys {
            let found = cursor.next().unwrap();
            assert_eq!(found, Some((&key[..], Value::Inline(&value))), "{self:?}, {order:?}");
        }
        assert!(cursor.next().unwrap().is_none(), "{self:?}, {order:?}");
        drop(cursor);
        for place in 0..taken.min(20) {
            let key = self.key(order.number(place));
            index.update(&[Update::Delete { key: &key }]).unwrap();
        }
        index.close().unwrap();
    }
}

/// Every kind of chip, each with every durability of `tree`.
fn kinds(tree: &'static str) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for durability in Durability::ALL {
        for page_bytes in [512, 2048, 4096] {
            for spare_bytes in [page_bytes / 32, 0] {
                for pages_per_block in [8, 16, 64] {
                    for shape in [EntryShape::fixed(4, 4), EntryShape::VARIABLE] {
                        let place = kinds.len();
                        let (programs, order) = match place / 2 % 3 {
                            0 => (1, ProgramOrder::Any),
                            1 => (4, ProgramOrder::Any),
                            _ => (1, ProgramOrder::Ascending),
                        };
                        let memory = [1, 2, 16, 200][place * 7 / 5 % 4];
                        kinds.push(Kind {
                            tree,
                            durability,
                            shape,
                            page_bytes,
                            spare_bytes,
                            pages_per_block,
                            programs,
                            order,
                            memory,
                        });
                    }
                }
            }
        }
    }
    kinds
}

/// The smallest chip, and some larger ones, take a block's worth of entries.
fn takes_a_block_of_entries(tree: &'static str) {
    let (mut least, mut most) = (u32::MAX, 0);
    for (place, kind) in sample(11, kinds(tree).into_iter().enumerate()) {
        let smallest = kind.smallest();
        (least, most) = (least.min(smallest), most.max(smallest));
        for blocks in [smallest, smallest + 1, smallest + 7] {
            kind.fill(blocks, Order::ALL[(place + blocks as usize) % 3]);
        }
        Order::ALL.into_iter().for_each(|order| kind.fill(smallest, order));
    }
    println!("{tree}: {least} to {most} blocks");
}

#[test]
fn the_smallest_chip_for_b_plus_takes_a_block_of_entries() {
    takes_a_block_of_entries("b-plus");
}

#[test]
fn the_smallest_chip_for_flat_tree_takes_a_block_of_entries() {
    takes_a_block_of_entries("flat-tree");
}

#[test]
fn the_smallest_chip_for_ipl_takes_a_block_of_entries() {
    takes_a_block_of_entries("ipl");
}

#[test]
fn the_smallest_chip_for_la_tree_takes_a_block_of_entries() {
    takes_a_block_of_entries("la-tree");
}

#[test]
fn the_smallest_chip_for_list_takes_a_block_of_entries() {
    takes_a_block_of_entries("list");
}

#[test]
fn the_smallest_chip_for_mu_takes_a_block_of_entries() {
    takes_a_block_of_entries("mu");
}

#[test]
fn the_smallest_chip_for_mu_star_takes_a_block_of_entries() {
    takes_a_block_of_entries("mu-star");
}

#[test]
fn every_tree_on_raw_flash_is_tried() {
    let trees: Vec<_> =
        flashtree_trees::TREES.iter().filter(|entry| entry.nand).map(|entry| entry.name).collect();
    assert_eq!(trees, ["b-plus", "flat-tree", "ipl", "la-tree", "list", "mu", "mu-star"]);
}
