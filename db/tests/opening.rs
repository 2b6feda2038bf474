//! What a database is made with is what it is opened with: whatever the tree and its parameters, on
//! the smallest chip and with the least memory that making it takes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use device::NandCosts;
use flashtree::{
    Database, Durability, EntryShape, Error, Geometry, Medium, OpenOptions, Options, Result,
};
use sim::SimulatedNand;

/// Trees with parameters other than the defaults, each of which decides about memory or room.
const TREES: &[&str] = &[
    "b-plus",
    "b-plus:cache=0,collect=0.5",
    "b-plus:over=ftl",
    "b-plus:over=ftl,fill=100",
    "ipl",
    "ipl:log-pages=1",
    "ipl:log-pages=3",
    "la-tree",
    "la-tree:fanout=8",
    "la-tree:k=5,buffer=100,pool=0.01",
    "la-tree:buffer=none,share=shared",
    "la-tree:buffer=65536,pool=0.9,rule=inclusive,estimate=printed",
    "la-tree:over=ftl",
    "la-tree:over=ftl,k=1,buffer=none",
    "list",
    "mu",
    "mu:collect=0.5,cache=1",
    "mu-star",
    "mu-star:alpha=0.5,beta=0.5,delta=0.5",
    "mu-star:alpha=0.9,beta=0.05,delta=0.0001",
];

const SHAPES: [EntryShape; 2] = [EntryShape::VARIABLE, EntryShape::fixed(8, 8)];

/// Bytes of a page, pages of a block, blocks, bytes of a spare area.
const CHIPS: [(u32, u32, u32, u32); 4] =
    [(512, 4, 400, 16), (512, 1, 100, 128), (2048, 16, 64, 64), (2048, 16, 64, 0)];

fn chip((page, pages, _, spare): (u32, u32, u32, u32), blocks: u32) -> SimulatedNand {
    let geometry = Geometry::new(page, pages, blocks).unwrap().with_spare(spare).unwrap();
    SimulatedNand::new(geometry, NandCosts::default())
}

fn create<'d>(chip: &'d mut SimulatedNand, options: &Options) -> Result<Database<'d>> {
    Database::create_on(Medium::Nand(Box::new(chip)), options)
}

fn open(chip: &mut SimulatedNand, memory: u64) -> Result<Database<'_>> {
    Database::open_on(Medium::Nand(Box::new(chip)), &OpenOptions::new().memory_total(memory))
}

/// Memory with which, and blocks of a chip on which, `options` make a database, as the refusals
/// name them; `None` if there is no such chip.
fn least(like: (u32, u32, u32, u32), options: &Options, start: u32) -> Option<(u64, u32)> {
    let (mut memory, mut blocks) = (1, start);
    for _ in 0..4 {
        let options = options.clone().memory_total(memory);
        match create(&mut chip(like, blocks), &options).map(drop) {
            Ok(()) => return Some((memory, blocks)),
            Err(Error::LittleMemory { need, .. }) => {
                assert_eq!(memory, 1, "{options:?}: {need} where {memory} were to suffice");
                memory = need;
            }
            Err(Error::LittleRoom { blocks: Some(need), .. }) => {
                assert_eq!(blocks, start, "{need} blocks where {blocks} were to suffice");
                (memory, blocks) = (1, need);
            }
            Err(_) => return None,
        }
    }
    panic!("what is named does not suffice: {memory} bytes, {blocks} blocks");
}

/// Every case that makes a database, from chips of `start` blocks on.
fn each(start: Option<u32>, mut visit: impl FnMut(String, &mut SimulatedNand, &Options, u64)) {
    let mut cases = 0;
    for like in CHIPS {
        for tree in TREES {
            for durability in Durability::ALL {
                for shape in SHAPES {
                    let options = Options::new().tree(*tree).durability(durability).shape(shape);
                    let name = format!("{like:?} {tree} {durability} {shape}");
                    let Some((memory, blocks)) = least(like, &options, start.unwrap_or(like.2))
                    else {
                        continue;
                    };
                    let mut chip = chip(like, blocks);
                    visit(format!("{name} {blocks}"), &mut chip, &options, memory);
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 300, "only {cases} cases make a database");
}

#[test]
fn what_is_made_is_opened_with_the_memory_that_making_it_took() {
    for start in [None, Some(3)] {
        each(start, |name, chip, options, memory| {
            let options = options.clone().memory_total(memory);
            create(chip, &options)
                .unwrap_or_else(|error| panic!("{name}: {error}"))
                .close()
                .unwrap();
            for _ in 0..2 {
                let opened = open(chip, memory);
                opened.unwrap_or_else(|error| panic!("{name}: {error}")).close().unwrap();
            }
        });
    }
}

/// The chip is filled with far more memory, so that tables that grow do.
#[test]
fn the_memory_that_a_refused_opening_names_suffices() {
    each(None, |name, chip, options, memory| {
        let made = create(chip, &options.clone().memory_total(memory + (1 << 20))).unwrap();
        for number in 0..600_u64 {
            let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
            if made.put(key, [7; 8]).is_err() {
                break;
            }
        }
        made.close().unwrap_or_else(|error| panic!("{name}: {error}"));
        let refused = open(chip, 1).err();
        let Some(Error::LittleMemory { need, .. }) = refused else {
            panic!("{name}: a byte is too little: {refused:?}");
        };
        let opened = open(chip, need).map(drop);
        opened.unwrap_or_else(|error| panic!("{name}: {need} were to suffice: {error}"));
        let between = open(chip, memory.midpoint(need)).map(drop);
        if let Err(Error::LittleMemory { need, .. }) = between {
            let opened = open(chip, need).map(drop);
            opened.unwrap_or_else(|error| panic!("{name}: {need} were to suffice: {error}"));
        }
    });
}
