//! Files with a database, damaged: plain ones, and chips imitated in files.

use std::fs;
use std::path::Path;

use contract::torture::truth::World;
use db::{Database, OpenOptions, Options};
use device::Geometry;
use file::{NandFile, NandOptions};
use ftl::FTLS;
use proptest::prelude::*;
use proptest::sample::Index as Choice;
use proptest::test_runner::TestRunner;
use rand::Rng;

use super::{chips, databases};
use crate::cell::cells;
use crate::damage::{Hit, Number, Target, hits, numbers};
use crate::image::image;
use crate::outcome::{Outcome, is_world};
use crate::reach::Reach;
use crate::structure::{Kind, Plan, number, set_number};

/// Bytes of the header of an imitated chip, and of a sector of a plain file.
const HEADER: usize = 4096;

/// Bytes of memory for caches and buffers.
const MEMORY: u64 = 64 << 10;

/// Bytes that a file's buffers take: those of four transfers.
const DRIVER: u64 = 4 * (32 << 10) + (16 << 10);

/// A file, and what the database in it may hold.
#[derive(Clone)]
pub struct Seed {
    bytes: Vec<u8>,
    worlds: Vec<World>,
    /// Where everything stands, in a plain file.
    plan: Option<Plan>,
    /// The shape of the chip.
    geometry: Option<Geometry>,
}

/// `count` files, plain ones and chips in turn.
///
/// # Panics
/// The system refuses.
pub fn seeds(runner: &mut TestRunner, count: usize) -> Vec<Seed> {
    let folder = folder();
    let mut seeds = Vec::new();
    while seeds.len() < count {
        let path = folder.path().join(format!("{}", seeds.len()));
        seeds.extend(match seeds.len() % 2 {
            0 => Some(plain(runner, &path)),
            _ => chip(runner, &path, seeds.len() / 2),
        });
    }
    seeds
}

/// A folder of its own; in memory, where the system has one there.
///
/// # Panics
/// The system refuses.
#[must_use]
pub fn folder() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).expect("there is a folder for files")
}

fn plain(runner: &mut TestRunner, path: &Path) -> Seed {
    // The same seed makes the same bytes.
    let options = Options::new().identity(7);
    let options = options.capacity(1 << 20).page_bytes(1024).journal_bytes(32 << 10);
    let mut database = Database::create(path, &options).expect("it can be made");
    let mut world = World::default();
    let mut put = |database: &mut Database<'_>, key: u32, length: u32| {
        let (key, value) = (format!("key {key}"), vec![length as u8; length as usize]);
        database.put(&key, &value).expect("there is room");
        world.entries.insert(key.into_bytes().into(), value.into());
    };
    for place in 0..120 {
        let random = runner.rng().next_u32();
        put(&mut database, random % 200, random >> 8 & if place % 30 == 0 { 0xFFF } else { 63 });
    }
    database.close().expect("it can be closed");
    let bytes = fs::read(path).expect("it can be read");
    let plan = Plan::of(&bytes, HEADER);
    Seed { bytes, worlds: vec![world], plan, geometry: None }
}

fn chip(runner: &mut TestRunner, path: &Path, place: usize) -> Option<Seed> {
    let layer = FTLS[place % FTLS.len()];
    let geometry = chips::geometry(16 * (place / FTLS.len() % 2) as u32);
    let made = NandFile::create(path, geometry, &NandOptions::default());
    let chip = made.expect("it can be made");
    let disk = (layer.create)(Box::new(chip), &ftl::Options::default());
    let mut disk = disk.expect("the chip suits every layer");
    let cells = cells();
    let image =
        image(runner, cells[(place * 7 + place / FTLS.len()) % cells.len()], disk.geometry())?;
    chips::transplant(&image, &mut *disk);
    drop(disk);
    let bytes = fs::read(path).expect("it can be read");
    Some(Seed { bytes, worlds: image.worlds, plan: None, geometry: Some(geometry) })
}

/// What is done to a file that imitates a chip.
#[derive(Clone, Debug)]
pub enum Change {
    /// A number of the header becomes another, and its checksum is repaired or not.
    Header(Choice, Number, bool),
    /// A byte of the header, the marks or the states of pages becomes another.
    Table(Choice, u8),
    /// A byte becomes another, wherever it is.
    Byte(Choice, u8),
    /// The file is cut off, or gets longer.
    Length(Choice),
}

/// What is done to a plain file: to its superblocks or to anything, with checksums repaired or not.
type Hits = (Vec<Hit>, bool, bool);

/// Cases: a file, what is done to it, and whether it is opened for writing.
pub type Case = (Choice, Hits, Vec<Change>, bool);

/// Cases of this target.
pub fn cases() -> impl Strategy<Value = Case> {
    let header = (any::<Choice>(), numbers(), any::<bool>());
    let change = prop_oneof![
        5 => header.prop_map(|(field, new, repaired)| Change::Header(field, new, repaired)),
        3 => (any::<Choice>(), any::<u8>()).prop_map(|(at, byte)| Change::Table(at, byte)),
        2 => (any::<Choice>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        1 => any::<Choice>().prop_map(Change::Length),
    ];
    let changes = prop::collection::vec(change, 1..3);
    let hits = (hits(2), any::<bool>(), any::<bool>());
    (any::<Choice>(), hits, changes, prop::bool::weighted(0.1))
}

/// Where the header's numbers stand.
const FIELDS: [(usize, usize); 8] =
    [(0, 8), (8, 4), (12, 4), (16, 4), (20, 4), (24, 4), (28, 2), (30, 4)];

fn change(bytes: &mut Vec<u8>, geometry: &Geometry, change: &Change) {
    match change {
        Change::Header(field, new, repaired) => {
            let (at, length) = *field.get(&FIELDS);
            let new = new.of(number(bytes, at, length), length, geometry.pages() as usize);
            set_number(bytes, at, length, new);
            if *repaired && bytes.len() >= HEADER {
                let sum = device::checksum(&[&bytes[..HEADER - 4]]);
                set_number(bytes, HEADER - 4, 4, u64::from(sum));
            }
        }
        Change::Table(at, byte) => {
            let tables = HEADER + HEADER + 8 * geometry.pages() as usize;
            let at = at.index(tables.min(bytes.len()).max(1));
            if let Some(place) = bytes.get_mut(at) {
                *place = *byte;
            }
        }
        Change::Byte(at, byte) => {
            let at = at.index(bytes.len().max(1));
            if let Some(place) = bytes.get_mut(at) {
                *place = *byte;
            }
        }
        Change::Length(to) => set_length(bytes, to),
    }
}

fn set_length(bytes: &mut Vec<u8>, to: &Choice) {
    let length = to.index(2 * bytes.len().max(1));
    bytes.resize(length, 0);
}

/// Damages a file, and uses what is left.
///
/// # Panics
/// Wrong data, memory beyond the budget, or the system refuses.
pub fn play(seeds: &[Seed], path: &Path, case: &Case, reach: &Reach) -> Outcome {
    let (choice, (hits, only_superblocks, sealed), changes, writing) = case;
    let seed = choice.get(seeds);
    let mut bytes = seed.bytes.clone();
    // What is on a chip may be taken for what it was earlier: see the chips' own target.
    let mut is_vouched_for = seed.geometry.is_some();
    if let Some(plan) = seed.plan {
        let older = seed.bytes.clone();
        let mut target = Target { disk: &mut bytes, older: &older, plan };
        let kinds = if *only_superblocks { &ALL[..1] } else { &ALL };
        is_vouched_for = target.damage(hits, kinds, *sealed).is_vouched_for;
        if let Some(Change::Length(to)) = changes.first() {
            set_length(&mut bytes, to);
        }
    }
    if let Some(geometry) = &seed.geometry {
        changes.iter().for_each(|hit| change(&mut bytes, geometry, hit));
    }
    let most = bytes.len() / 4 + 1;
    fs::write(path, &bytes).expect("the file can be written");
    let options = OpenOptions::new().memory(MEMORY);
    let found = databases::read_measured(
        || match writing {
            true => Database::open(path, &options),
            false => Database::open_read_only(path, &options),
        },
        MEMORY + DRIVER,
        most,
    );
    match found {
        Ok(found) => {
            let is_right = seed.worlds.iter().any(|world| is_world(&found, world));
            assert!(
                is_right || is_vouched_for,
                "wrong data: {} entries that never stood there together",
                found.entries.len()
            );
            if is_right { Outcome::Right } else { Outcome::Believed }
        }
        Err(error) => {
            reach.note_database(&error);
            Outcome::Error
        }
    }
}

const ALL: [Kind; 10] = [
    Kind::Superblock,
    Kind::Journal,
    Kind::Undo,
    Kind::Image,
    Kind::Packed,
    Kind::Slotted,
    Kind::Dense,
    Kind::Free,
    Kind::Index,
    Kind::Data,
];
