//! The table that a scan finds beside the one that the root record has (FlashDB, section 5.1.3).

use std::boxed::Box;
use std::format;
use std::vec::Vec;

use contract::RamDisk;
use device::{Cause, Error, Medium, Request, Result, Sector, SectorGeometry, Sectors};
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, MediumShape, Options, TreeDescriptor, Update};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::make::restored;
use super::{Kindred, ListTree};
use crate::bftl::Bftl;
use crate::flashdb::FlashDb;

const KEYS: u32 = 6000;

/// Memory for what a scan finds.
const SPARE: u64 = 1 << 18;

/// A disk that loses power after some writes.
struct Cut<'d> {
    below: &'d mut RamDisk,
    writes_left: u32,
}

impl Cut<'_> {
    fn spend(&mut self) -> Result<()> {
        self.writes_left = self.writes_left.checked_sub(1).ok_or(Error::PowerCut)?;
        Ok(())
    }
}

impl Sectors for Cut<'_> {
    fn geometry(&self) -> SectorGeometry {
        self.below.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        self.below.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        self.spend()?;
        self.below.write(first, from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        self.spend()?;
        self.below.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.below.flush(cause)
    }
}

/// What happened, and what was found.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    cuts: u32,
    rollbacks: u32,
    compared: u32,
    kept: u32,
    nodes: u32,
    pages: u32,
}

fn options(entry: &TreeDescriptor, mode: Option<&'static str>, disk: &RamDisk) -> Options {
    let given = mode.map(|mode| ("mode", mode));
    let settings = Settings::parse(entry.name, entry.parameters, given).unwrap();
    let mut options = Options::new(EntryShape::fixed(4, 4), 0, settings);
    options.durability = Some(Durability::Batch);
    let shape = MediumShape::Sectors(disk.geometry());
    let least = (entry.footprint)(&options, shape).unwrap().memory_least;
    Options { memory_bytes: least, ..options }
}

/// Changes the entries of a region often, then deletes them.
fn go(index: &mut dyn Index, first: u32, keys: u32) -> index::Result<()> {
    for round in 0..4 {
        for key in first..first + keys {
            let key = &key.to_be_bytes();
            let put = Update::Put { key, value: &[round; 4] };
            index.update(&[if round < 3 { put } else { Update::Delete { key } }])?;
        }
    }
    Ok(())
}

/// Uses an index at random; an error is the cut.
fn live(index: &mut dyn Index, random: &mut ChaCha8Rng, seen: &mut Seen) -> index::Result<()> {
    for step in 0..random.random_range(0..3000u32) {
        let key = random.random_range(0..KEYS).to_be_bytes();
        let value = step.to_le_bytes();
        match random.random_range(0..1000) {
            0 if index.checkpoints().is_empty() => {
                index.checkpoint(Some("kept"))?;
            }
            1 if !index.checkpoints().is_empty() => {
                index.roll_back("kept")?;
                seen.rollbacks += 1;
            }
            2 if !index.checkpoints().is_empty() => index.forget("kept")?,
            3 => index.checkpoint(None).map(drop)?,
            // A region goes whose nodes were changed often: what is left of them is stale.
            4 => go(index, random.random_range(0..KEYS), 150)?,
            5..600 => drop(index.get(&(step % 256).to_be_bytes(), 0, &mut [0; 4])?),
            // Nodes go, and their numbers come again.
            600..750 => index.update(&[Update::Delete { key: &key }])?,
            _ => index.update(&[Update::Put { key: &key, value: &value }])?,
        }
    }
    index.close()
}

/// What must be alike: the nodes, their modes and lists, and what the tree has of them.
fn told(tree: &ListTree<'_>) -> impl PartialEq + core::fmt::Debug + use<> {
    let table = &tree.store.table;
    let nodes: Vec<_> = table.numbers().filter(|node| table.exists(*node)).collect();
    let each = |node: &_| (*node, table.is_page(*node), table.list(*node).collect());
    let lists: Vec<(_, bool, Vec<_>)> = nodes.iter().map(each).collect();
    let counts = (table.nodes(), table.sectors(), table.listed(), table.pages());
    (lists, counts, tree.store.levels, tree.btree.root, tree.btree.entries)
}

fn compare<K: Kindred>(disk: &RamDisk, options: &Options, seen: &mut Seen) {
    let (mut one, mut other) = (disk.clone(), disk.clone());
    let medium = |disk| Medium::Sectors(Box::new(disk) as Box<dyn Sectors>);
    let options = &Options { memory_bytes: options.memory_bytes + SPARE, ..options.clone() };
    let kept = restored::<K>(medium(&mut one), options, false).unwrap();
    let scanned = restored::<K>(medium(&mut other), options, true).unwrap();
    assert_eq!(format!("{:?}", told(&kept)), format!("{:?}", told(&scanned)));
    seen.compared += 1;
    seen.kept += u32::from(!store::Recovery::checkpoints(&kept.store.file).is_empty());
    seen.nodes += kept.store.table.nodes();
    seen.pages += kept.store.table.pages();
}

fn histories<K: Kindred>(entry: &TreeDescriptor, mode: Option<&'static str>) -> Seen {
    let mut seen = Seen::default();
    let mut random = ChaCha8Rng::seed_from_u64(20);
    for _ in 0..4 {
        let mut disk = RamDisk::new(SectorGeometry::new(512, 3000).unwrap());
        let options = options(entry, mode, &disk);
        let mut index = (entry.create)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
        for key in 0..KEYS / 2 {
            let update = Update::Put { key: &(2 * key).to_be_bytes(), value: &[0; 4] };
            index.update(&[update]).unwrap();
        }
        index.close().unwrap();
        drop(index);
        for _ in 0..60 {
            let writes_left = random.random_range(0..1500);
            let below = Cut { below: &mut disk, writes_left };
            let used = (entry.open)(Medium::Sectors(Box::new(below)), &options)
                .and_then(|mut index| live(&mut *index, &mut random, &mut seen));
            match used {
                Err(index::Error::Store(store::Error::Device(Error::PowerCut))) => seen.cuts += 1,
                used => used.unwrap(),
            }
            compare::<K>(&disk, &options, &mut seen);
        }
    }
    seen
}

#[test]
fn a_scan_finds_the_table_of_the_last_checkpoint_whatever_happened() {
    for mode in ["self-tuning", "log", "disk"] {
        let seen = histories::<FlashDb>(&crate::flashdb::ENTRY, Some(mode));
        check(mode, seen);
        assert_eq!(seen.pages > 0, mode != "log", "{mode}: {seen:?}");
    }
    check("bftl", histories::<Bftl>(&crate::bftl::ENTRY, None));
}

fn check(name: &str, seen: Seen) {
    let Seen { cuts, rollbacks, compared, kept, nodes, .. } = seen;
    let is_enough = cuts >= 40 && rollbacks >= 40 && kept >= 20 && nodes >= 20 * compared;
    assert!(is_enough, "{name}: {seen:?}");
}
