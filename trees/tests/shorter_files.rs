//! A file gets longer and shorter while it is in use, again and again; and the power is cut on the
//! way: at each operation around the moment in which it gets shorter, and at some of the others.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;

use contract::tree::{figure, findings};
use contract::{RamDisk, on_all_cores};
use device::{Cause, Error, Medium, Request, Result, Sector, SectorGeometry, Sectors};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, MediumShape, Options, Update};

const SECTOR: usize = 1024;
const SECTORS: u64 = 5000;

/// Entries at first; one in so many stays.
const ENTRIES: u32 = 5000;
const STAYS: u32 = 25;

/// Updates behind that, in which the file gets shorter.
const UPDATES: u32 = 900;

/// Operations around a change of length at each of which a run is cut, and among how many others
/// at one.
const AROUND: u64 = 120;
const BEHIND: u64 = 40;
const ELSEWHERE: usize = 41;

/// A disk that grows, keeps back what is not flushed, and is cut at an operation.
struct Disk {
    flushed: RamDisk,
    pending: BTreeMap<u64, Vec<u8>>,
    operation: u64,
    cut: Option<u64>,
    /// The operations in which it got shorter, and how often it got longer.
    shorter: Vec<u64>,
    longer: u32,
}

impl Disk {
    fn of(flushed: &RamDisk, cut: Option<u64>) -> Self {
        let (flushed, pending) = (flushed.clone(), BTreeMap::new());
        Disk { flushed, pending, operation: 0, cut, shorter: Vec::new(), longer: 0 }
    }

    /// Counts an operation; once there is no power, nothing comes to the disk.
    fn count(&mut self) -> Result<()> {
        self.operation += 1;
        match self.cut {
            Some(cut) if self.operation >= cut => Err(Error::PowerCut),
            _ => Ok(()),
        }
    }

    /// What the disk holds when the power comes back: of each sector that was not flushed what it
    /// was, what was written, or half of that.
    fn into_left(mut self) -> RamDisk {
        let fate = self.operation;
        for (number, bytes) in self.pending {
            let bytes = match (number ^ fate).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62 {
                0 => continue,
                1 => &bytes[..],
                _ => {
                    let mut old = vec![0; SECTOR];
                    let request = Request { first: Sector(number), offset: 0, into: &mut old };
                    self.flushed.read(&mut [request], Cause::Load).unwrap();
                    old[..SECTOR / 2].copy_from_slice(&bytes[..SECTOR / 2]);
                    &old.clone()[..]
                }
            };
            self.flushed.write(Sector(number), bytes, Cause::Load).unwrap();
        }
        self.flushed
    }
}

impl Sectors for Disk {
    fn geometry(&self) -> SectorGeometry {
        self.flushed.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        self.count()?;
        self.flushed.read(requests, cause)?;
        for Request { first, offset, into } in requests {
            let start = first.0 as usize * SECTOR + *offset as usize;
            let end = start + into.len();
            let sectors = start as u64 / SECTOR as u64..end.div_ceil(SECTOR) as u64;
            for (sector, bytes) in self.pending.range(sectors) {
                let at = *sector as usize * SECTOR;
                let (from, to) = (at.max(start), (at + SECTOR).min(end));
                into[from - start..to - start].copy_from_slice(&bytes[from - at..to - at]);
            }
        }
        Ok(())
    }

    fn write(&mut self, first: Sector, from: &[u8], _cause: Cause) -> Result<()> {
        self.count()?;
        let sectors = from.chunks(SECTOR).map(<[u8]>::to_vec);
        self.pending.extend((first.0..).zip(sectors));
        assert!(self.pending.keys().all(|sector| *sector < self.flushed.sectors_held().unwrap()));
        Ok(())
    }

    fn trim(&mut self, _: Sector, _: u64, _: Cause) -> Result<()> {
        self.count()
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.count()?;
        for (sector, bytes) in std::mem::take(&mut self.pending) {
            self.flushed.write(Sector(sector), &bytes, cause)?;
        }
        Ok(())
    }

    fn sectors_held(&self) -> Option<u64> {
        self.flushed.sectors_held()
    }

    fn resize(&mut self, sectors: u64, cause: Cause) -> Result<()> {
        self.count()?;
        let held = self.flushed.sectors_held().unwrap();
        if sectors < held {
            self.shorter.push(self.operation);
        }
        self.longer += u32::from(sectors > held);
        self.pending.retain(|sector, _| *sector < sectors);
        self.flushed.resize(sectors, cause)
    }
}

/// A tree with its parameters. The lists of sectors move their nodes; others get shorter where no
/// node is left at the end, so there the entries stay that came first.
type Spec = (&'static str, &'static [(&'static str, &'static str)]);

fn moves((tree, _): Spec) -> bool {
    matches!(tree, "bftl" | "flashdb")
}

const TREES: [Spec; 7] = [
    ("b-plus", &[]),
    // Pages that share sectors.
    ("b-plus", &[("node", "512")]),
    ("bftl", &[]),
    ("flashdb", &[]),
    ("flashdb", &[("mode", "log")]),
    ("flashdb", &[("mode", "disk")]),
    ("lazy-update", &[]),
];

fn options((tree, given): Spec, durability: Durability) -> Options {
    let entry = find(tree).unwrap();
    let settings = Settings::parse(entry.name, entry.parameters, given.iter().copied()).unwrap();
    let mut options = Options::new(EntryShape::fixed(4, 100), 0, settings);
    options.durability = Some(durability);
    let disk = SectorGeometry::new(SECTOR as u32, SECTORS).unwrap();
    let least = (entry.footprint)(&options, MediumShape::Sectors(disk)).unwrap();
    Options { memory_bytes: 4 * least.memory_least, ..options }
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn put(index: &mut dyn Index, number: u32, value: u8) -> index::Result<()> {
    index.update(&[Update::Put { key: &key(number), value: &[value; 100] }])
}

/// The entries that stay.
fn left(tree: Spec) -> Vec<u32> {
    let step = if moves(tree) { STAYS } else { 1 };
    (0..ENTRIES / STAYS).map(|place| place * step).collect()
}

/// A file most of whose pages are free, which was not closed.
fn long_file(tree: Spec) -> RamDisk {
    let geometry = SectorGeometry::new(SECTOR as u32, SECTORS).unwrap();
    let mut disk = Disk::of(&RamDisk::growing(geometry), None);
    let create = find(tree.0).unwrap().create;
    let mut index =
        create(Medium::Sectors(Box::new(&mut disk)), &options(tree, Durability::Every)).unwrap();
    for number in 0..ENTRIES {
        put(&mut *index, number, 0).unwrap();
    }
    let left = left(tree);
    let gone: Vec<_> = (0..ENTRIES).filter(|it| !left.contains(it)).map(key).collect();
    let batch: Vec<_> = gone.iter().map(|key| Update::Delete { key }).collect();
    for some in batch.chunks(400) {
        index.update(some).unwrap();
    }
    drop(index);
    disk.into_left()
}

/// Updates what is left, round by round; returns how many updates were acknowledged.
fn run(disk: &mut Disk, tree: Spec, from: u32) -> u32 {
    let open = find(tree.0).unwrap().open;
    let Ok(mut index) = open(Medium::Sectors(Box::new(disk)), &options(tree, Durability::Every))
    else {
        return from;
    };
    let left = left(tree);
    for update in from..UPDATES {
        let number = left[update as usize % left.len()];
        if put(&mut *index, number, (update + 1) as u8).is_err() {
            return update;
        }
    }
    UPDATES
}

/// Asserts that the index has what it had after `updates` updates, or one more; returns how many.
fn assert_has(disk: &mut RamDisk, tree: Spec, updates: u32, when: &str) -> u32 {
    let open = find(tree.0).unwrap().open;
    let mut index =
        open(Medium::Sectors(Box::new(disk)), &options(tree, Durability::Every)).unwrap();
    let left = left(tree);
    let value = |place: usize, updates: u32| {
        let rounds = (updates as usize + left.len() - 1 - place) / left.len();
        rounds.checked_sub(1).map_or(0, |round| (round * left.len() + place + 1) as u8)
    };
    let mut found = BTreeMap::new();
    for number in 0..ENTRIES {
        let mut value = [0; 100];
        if index.get(&key(number), 0, &mut value).unwrap().is_some() {
            assert!(value.iter().all(|byte| *byte == value[0]));
            found.insert(number, value[0]);
        }
    }
    let expected = |updates| {
        left.iter().enumerate().map(|(place, number)| (*number, value(place, updates))).collect()
    };
    let made = [updates, updates + 1].into_iter().find(|updates| found == expected(*updates));
    assert_eq!(findings(&mut *index), Vec::<String>::new(), "{tree:?}, {when}");
    made.unwrap_or_else(|| panic!("{tree:?}, {when}: {updates} updates are not there"))
}

#[test]
fn a_file_that_gets_shorter_keeps_what_was_acknowledged_wherever_it_is_cut() {
    for tree in TREES {
        let long = long_file(tree);
        let mut whole = Disk::of(&long, None);
        assert_eq!(run(&mut whole, tree, 0), UPDATES);
        let (shorter, end) = (whole.shorter.clone(), whole.operation);
        let before = long.sectors_held().unwrap();
        let after = whole.sectors_held().unwrap();
        println!("{tree:?}: {before} sectors, then {after}, {shorter:?} of {end} operations");
        assert!(!shorter.is_empty() && after < before * 2 / 3);
        let is_near = |cut: &u64| shorter.iter().any(|at| (at - AROUND..at + BEHIND).contains(cut));
        let near = (1..end).filter(is_near);
        let cuts: Vec<_> = near.chain((1..end).step_by(ELSEWHERE)).collect();
        on_all_cores(&cuts, |cut| {
            let mut disk = Disk::of(&long, Some(*cut));
            let updates = run(&mut disk, tree, 0);
            let (mut left, when) = (disk.into_left(), format!("cut at {cut}"));
            let made = assert_has(&mut left, tree, updates, &when);
            let mut disk = Disk::of(&left, None);
            assert_eq!(run(&mut disk, tree, made), UPDATES);
            assert_has(&mut disk.into_left(), tree, UPDATES, &when);
        });
    }
}

/// A round: as many entries come, and go, in a file that grows. Returns how often it got longer and
/// shorter while it was open, and how many nodes were moved for that.
fn grow_and_shrink(tree: Spec, rounds: u32) -> ([usize; 2], u64) {
    let geometry = SectorGeometry::new(SECTOR as u32, SECTORS).unwrap();
    let mut disk = Disk::of(&RamDisk::growing(geometry), None);
    let (entry, options) = (find(tree.0).unwrap(), options(tree, Durability::Batch));
    let left = left(tree);
    let medium = Medium::Sectors(Box::new(&mut disk));
    let (mut index, mut moved) = ((entry.create)(medium, &options).unwrap(), 0);
    for round in 0..rounds {
        for number in 0..ENTRIES {
            put(&mut *index, number, round as u8).unwrap();
        }
        for number in (0..ENTRIES).filter(|number| !left.contains(number)) {
            index.update(&[Update::Delete { key: &key(number) }]).unwrap();
        }
        for number in left.iter().cycle().take(UPDATES as usize) {
            put(&mut *index, *number, round as u8).unwrap();
        }
        if round % 10 == 9 {
            assert_eq!(findings(&mut *index), Vec::<String>::new());
            moved += figure(&*index, "nodes moved for a shorter file");
            drop(index);
            let medium = Medium::Sectors(Box::new(&mut disk));
            index = (entry.open)(medium, &options).unwrap();
        }
        for number in 0..ENTRIES {
            let mut value = [0; 100];
            let found = index.get(&key(number), 0, &mut value).unwrap().map(|_| value);
            assert_eq!(found, left.contains(&number).then_some([round as u8; 100]));
        }
    }
    drop(index);
    ([disk.longer as usize, disk.shorter.len()], moved)
}

#[test]
fn the_file_gets_longer_and_shorter_while_it_is_in_use() {
    for (tree, rounds, least) in [(3, 200, 100), (2, 20, 5), (4, 20, 5), (5, 20, 5)] {
        let tree = TREES[tree];
        let ([longer, shorter], moved) = grow_and_shrink(tree, rounds);
        println!("{tree:?}: longer {longer}, shorter {shorter}, {moved} nodes moved");
        assert!(longer.min(shorter) >= least && moved >= 100);
    }
}
