//! Chips with a database over every translation layer, damaged.

use db::{Database, OpenOptions};
use device::{Cause, Geometry, Medium, NandCosts, Sector, Sectors};
use ftl::FTLS;
use proptest::prelude::*;
use proptest::sample::Index as Choice;
use proptest::test_runner::TestRunner;
use sim::SimulatedNand;

use super::databases;
use crate::OPERATIONS_MOST;
use crate::cell::{SECTOR_BYTES, cells};
use crate::chip::{ImageChip, Metadata, own_metadata};
use crate::damage::{Number, numbers};
use crate::image::{Image, image};
use crate::outcome::{Outcome, is_world};
use crate::reach::Reach;
use crate::structure::{number, set_number};

/// Pages in a block, and blocks.
const SHAPE: (u32, u32) = (16, 48);

/// Bytes of a spare area, where there is one.
const SPARE: u32 = 32;

/// Bytes of memory for caches and buffers.
const MEMORY: u64 = 16 << 10;

/// A chip, and what the database on it may hold.
#[derive(Clone)]
pub struct Seed {
    /// The layer on it, and bytes of its pages' spare areas.
    pub layer: (&'static str, u32),
    /// The chip.
    pub chip: ImageChip,
    /// The disk that the layer makes of it.
    pub image: Image,
}

/// The shape of the chips.
///
/// # Panics
/// Never: it is one.
#[must_use]
pub fn geometry(spare: u32) -> Geometry {
    let (pages, blocks) = SHAPE;
    let geometry = Geometry::new(SECTOR_BYTES, pages, blocks).expect("it is a chip");
    geometry.with_spare(spare).expect("its pages are larger than that")
}

/// `count` chips, with every layer in turn.
///
/// # Panics
/// A layer fails.
pub fn seeds(runner: &mut TestRunner, count: usize) -> Vec<Seed> {
    let cells = cells();
    let mut seeds = Vec::with_capacity(count);
    let mut place = 0;
    while seeds.len() < count {
        place += 1;
        let layer = FTLS[place % FTLS.len()];
        let spare = SPARE * (place / FTLS.len() % 2) as u32;
        let mut chip = SimulatedNand::new(geometry(spare), NandCosts::default());
        let disk = (layer.create)(Box::new(&mut chip), &ftl::Options::default());
        let mut disk = disk.expect("the chip suits every layer");
        let cell = cells[(place * 7 + place / FTLS.len()) % cells.len()];
        let Some(image) = image(runner, cell, disk.geometry()) else { continue };
        transplant(&image, &mut *disk);
        drop(disk);
        let chip = ImageChip::of(&mut chip);
        seeds.push(Seed { layer: (layer.name, spare), chip, image });
    }
    seeds
}

/// Writes to `disk` what the image held, and then what it holds, with something to collect between.
///
/// # Panics
/// The disk fails.
pub fn transplant(image: &Image, disk: &mut dyn Sectors) {
    let sector_bytes = SECTOR_BYTES as usize;
    let sectors = |bytes: &[u8]| -> Vec<(u64, Vec<u8>)> {
        let sectors = bytes.chunks_exact(sector_bytes).map(<[u8]>::to_vec);
        (0..).zip(sectors).collect()
    };
    let blank = vec![0; sector_bytes];
    for round in 0..3 {
        for (sector, bytes) in sectors(&image.older) {
            if bytes != blank && (round == 0 || sector % 3 == round) {
                disk.write(Sector(sector), &bytes, Cause::Update).expect("it has room");
            }
        }
        disk.flush(Cause::Flush).expect("it can be flushed");
    }
    for ((sector, bytes), (_, older)) in
        sectors(&image.bytes).into_iter().zip(sectors(&image.older))
    {
        if bytes != older {
            disk.write(Sector(sector), &bytes, Cause::Update).expect("it has room");
        }
    }
    disk.flush(Cause::Flush).expect("it can be flushed");
}

/// What is done to a page of a chip.
#[derive(Clone, Debug)]
pub enum Change {
    /// A bit of the data flips, or of the spare area.
    Flip(bool, u16, u8),
    /// More bits flip than can be corrected.
    Spoil,
    /// All bytes become this one.
    Fill(u8),
    /// What stands on another page stands here too.
    Copy(Choice),
    /// A number of the metadata becomes another, and the checksums are repaired.
    Number(Choice, Number),
    /// The block is marked bad.
    Condemn,
}

/// Changes, each of a page that holds metadata of its own, or of any page.
pub type Case = (Choice, Vec<(Choice, bool, Change)>, Vec<Choice>);

/// Cases of this target.
pub fn cases() -> impl Strategy<Value = Case> {
    let change = prop_oneof![
        4 => (any::<bool>(), any::<u16>(), 0..8u8)
            .prop_map(|(spare, at, bit)| Change::Flip(spare, at, bit)),
        3 => Just(Change::Spoil),
        1 => prop_oneof![Just(0), Just(0xFF), any::<u8>()].prop_map(Change::Fill),
        1 => any::<Choice>().prop_map(Change::Copy),
        6 => (any::<Choice>(), numbers()).prop_map(|(field, new)| Change::Number(field, new)),
        1 => Just(Change::Condemn),
    ];
    let hits = prop::collection::vec((any::<Choice>(), prop::bool::weighted(0.3), change), 1..4);
    (any::<Choice>(), hits, prop::collection::vec(any::<Choice>(), 0..6))
}

/// What a hit left of the chip's own word on what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// Only sectors were hit.
    Whole,
    /// Metadata was hit: the layer may take a sector for what it was earlier.
    Forgetful,
    /// Metadata was made up.
    None,
}

fn damage(chip: &mut ImageChip, hits: &[(Choice, bool, Change)], reach: &Reach) -> Trust {
    let used = chip.used_pages();
    let own: Vec<_> = used.iter().copied().filter(|page| is_own(chip, *page)).collect();
    let mut trust = Trust::Whole;
    for (page, among_own, change) in hits {
        let pages = if *among_own && !own.is_empty() { &own } else { &used };
        let page = *page.get(pages);
        trust = trust.max(hit(chip, page, change, &used, reach));
    }
    trust
}

fn is_own(chip: &ImageChip, page: u32) -> bool {
    own_metadata(chip.page(page).0).is_some()
}

/// False for the first page of a block, which tells whether the block was begun since it was
/// erased, and for the last: damaged, it looks as if a cut had torn it.
fn is_inside(page: u32, used: &[u32]) -> bool {
    let block = page / SHAPE.0;
    !page.is_multiple_of(SHAPE.0)
        && used.iter().any(|other| *other > page && other / SHAPE.0 == block)
}

fn hit(chip: &mut ImageChip, page: u32, change: &Change, used: &[u32], reach: &Reach) -> Trust {
    let own = own_metadata(chip.page(page).0);
    let has_spare = !chip.page(page).1.is_empty();
    let block = page / SHAPE.0;
    let is_inside = is_inside(page, used);
    let weakened = |whole: bool| if whole && is_inside { Trust::Whole } else { Trust::Forgetful };
    match change {
        Change::Flip(spare, at, bit) => {
            let (data, area) = chip.page_mut(page);
            let hits_spare = *spare && has_spare;
            let bytes = if hits_spare { area } else { data };
            let at = usize::from(*at) % bytes.len();
            bytes[at] ^= 1 << bit;
            weakened(own.is_none() && !hits_spare)
        }
        Change::Spoil => {
            chip.spoil(page);
            weakened(own.is_none() && !has_spare)
        }
        Change::Fill(byte) => {
            let (data, area) = chip.page_mut(page);
            data.fill(*byte);
            area.fill(*byte);
            weakened(own.is_none() && !has_spare)
        }
        Change::Copy(from) => {
            let (data, spare) = chip.page(*from.get(used));
            let (data, spare) = (data.to_vec(), spare.to_vec());
            let (to, area) = chip.page_mut(page);
            to.copy_from_slice(&data);
            area.copy_from_slice(&spare);
            // It may be what the same sector held earlier.
            Trust::Forgetful
        }
        Change::Number(field, new) => {
            let metadata = own.or(has_spare.then_some(Metadata::Spare));
            let Some(metadata) = metadata else { return Trust::Whole };
            reach.note(format!("{metadata:?}"));
            let (at, bytes) = *field.get(metadata.fields());
            let (data, spare) = chip.page_mut(page);
            let into = if metadata == Metadata::Spare { &mut *spare } else { &mut *data };
            let new = new.of(number(into, at, bytes), bytes, used.len());
            set_number(into, at, bytes, new);
            metadata.repair(page, data, spare);
            Trust::None
        }
        Change::Condemn => {
            chip.condemn(block);
            Trust::Forgetful
        }
    }
}

/// Damages a chip, and uses what is left.
///
/// # Panics
/// Wrong data, memory beyond the budget, a use of the chip without end.
pub fn play(seeds: &[Seed], (choice, hits, after): &Case, reach: &Reach) -> Outcome {
    let seed = choice.get(seeds);
    let mut chip = seed.chip.clone();
    let trust = damage(&mut chip, hits, reach);
    let most = seed.image.bytes.len() / 4;
    chip.start();
    let medium = Medium::Nand(Box::new(&mut chip));
    let open = || Database::open_on(medium, &OpenOptions::new().memory(MEMORY));
    let found = databases::read_measured(open, MEMORY, most);
    assert!(!chip.is_endless(), "more than {OPERATIONS_MOST} operations of the chip");
    chip.start();
    if let Err(error) = databases::change(Medium::Nand(Box::new(&mut chip)), MEMORY, after) {
        reach.note_database(&error);
    }
    assert!(!chip.is_endless(), "more than {OPERATIONS_MOST} operations of the chip");
    match found {
        Ok(found) => {
            let is_right = seed.image.worlds.iter().any(|world| is_world(&found, world));
            assert!(
                is_right || trust > Trust::Whole,
                "{:?} with {:?}: wrong data: {} entries that never stood there together",
                seed.layer,
                seed.image,
                found.entries.len()
            );
            match (is_right, trust) {
                (true, _) => Outcome::Right,
                (false, Trust::None) => Outcome::Believed,
                (false, _) => Outcome::Earlier,
            }
        }
        Err(error) => {
            reach.note_database(&error);
            Outcome::Error
        }
    }
}
