//! Spaces on simulated media, and runs on them.

use device::{Cause, DiskCosts, Geometry, NandCosts, SectorGeometry};
use flashtree_store::runs::{
    CursorOptions, Fences, FileSpace, Kind, Kinds, LogSpace, NoHooks, Run, RunId, RunWriter, Space,
    UnitShape, WriterOptions,
};
use flashtree_store::{Durability, EntryShape, PageFileOptions, PageLog, PageLogOptions, Width};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use sim::{SimulatedDisk, SimulatedNand};

pub(crate) const CAUSE: Cause = Cause::Merge;

/// An entry: key, kind, value.
pub(crate) type Owned = (Vec<u8>, Kind, Vec<u8>);

/// A disk with pages of 4 KiB for runs, and chips with and without a spare area.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Medium {
    Disk { page_bytes: u32 },
    Chip { page_bytes: u32, spare_bytes: u32 },
}

pub(crate) const MEDIA: [Medium; 4] = [
    Medium::Disk { page_bytes: 4096 },
    Medium::Disk { page_bytes: 512 },
    Medium::Chip { page_bytes: 512, spare_bytes: 16 },
    Medium::Chip { page_bytes: 2048, spare_bytes: 0 },
];

impl Medium {
    pub(crate) fn disk() -> SimulatedDisk {
        SimulatedDisk::new(SectorGeometry::new(512, 20_000).unwrap(), DiskCosts::default())
    }

    pub(crate) fn chip(page_bytes: u32, spare_bytes: u32) -> SimulatedNand {
        let chip = Geometry::new(page_bytes, 16, 400).unwrap().with_spare(spare_bytes).unwrap();
        SimulatedNand::new(chip, NandCosts::default())
    }

    pub(crate) fn space(self) -> Box<dyn Space> {
        match self {
            Medium::Disk { page_bytes } => {
                let options = PageFileOptions {
                    durability: Durability::Batch,
                    journal_bytes: Some(16 << 10),
                    identity: 77,
                    front: Some(8),
                    ..PageFileOptions::new(512, 1 << 16)
                };
                let disk = Box::new(Self::disk());
                Box::new(FileSpace::create(disk, page_bytes, &options).unwrap())
            }
            Medium::Chip { page_bytes, spare_bytes } => {
                let options =
                    PageLogOptions { durability: Durability::Batch, ..PageLogOptions::default() };
                let chip = Box::new(Self::chip(page_bytes, spare_bytes));
                Box::new(LogSpace::new(PageLog::create(chip, &options).unwrap(), 77))
            }
        }
    }

    /// Sizes of units that pages of this medium can have.
    pub(crate) fn unit_bytes(self, space: &dyn Space) -> Vec<u32> {
        let sizes = [24, 40, 100, 128, 129, 256, 500, 512, 2048, 4096];
        sizes.into_iter().filter(|bytes| *bytes <= space.page_bytes()).collect()
    }
}

pub(crate) const SHAPES: [EntryShape; 5] = [
    EntryShape::fixed(4, 4),
    EntryShape::fixed(8, 0),
    EntryShape::fixed(16, 100),
    EntryShape { key: Width::Fixed(8), value: Width::Variable },
    EntryShape::VARIABLE,
];

/// A key of this shape with few possible values.
pub(crate) fn key(random: &mut ChaCha8Rng, shape: EntryShape) -> Vec<u8> {
    let number = random.random_range(0..3000u32).to_be_bytes();
    let length = match shape.key {
        Width::Fixed(bytes) => bytes.into(),
        Width::Variable => random.random_range(0..40),
    };
    (0..length).map(|at| number.get(at).copied().unwrap_or(7)).collect()
}

pub(crate) fn value(random: &mut ChaCha8Rng, shape: EntryShape) -> Vec<u8> {
    let length = match shape.value {
        Width::Fixed(bytes) => bytes.into(),
        Width::Variable if random.random_bool(0.02) => random.random_range(0..1500),
        Width::Variable => random.random_range(0..30),
    };
    (0..length).map(|_| random.random()).collect()
}

pub(crate) fn cursor_options(random: &mut ChaCha8Rng) -> CursorOptions {
    CursorOptions {
        window_bytes: random.random_range(1..20_000),
        request_bytes: random.random_range(1..10_000),
        record_bytes_most: 2000,
        is_whole: random.random_bool(0.5),
        cause: CAUSE,
    }
}

pub(crate) fn writer_options(id: u64, shape: UnitShape, pages: u32) -> WriterOptions {
    WriterOptions {
        id: RunId(id),
        label: id * 3,
        shape,
        sequences: 1..=9,
        request_bytes: 8192,
        pages,
        fence_step: 0,
        cause: CAUSE,
    }
}

/// Pages that hold these entries for certain.
pub(crate) fn pages_for(space: &dyn Space, shape: &UnitShape, entries: &[Owned]) -> u32 {
    let units = entries.iter().map(|(key, _, value)| {
        2 + (key.len() + value.len()) as u64 / u64::from(shape.bytes() - 10)
    });
    RunWriter::pages_for(space, shape, units.sum(), (40, 1)) as u32
}

/// Writes a run of `entries`, which are in order.
pub(crate) fn write(
    space: &mut dyn Space,
    entries: &[Owned],
    options: WriterOptions,
) -> (Run, Fences) {
    let mut writer = RunWriter::new(space, options).unwrap();
    for (key, kind, value) in entries {
        let entry = flashtree_store::runs::Entry { key, kind: *kind, value };
        writer.push(space, &entry, &mut NoHooks).unwrap();
    }
    let run = writer.finish(space).unwrap();
    space.flush(CAUSE).unwrap();
    run
}

/// Random entries in order, deletes among them if there may be.
pub(crate) fn entries(random: &mut ChaCha8Rng, shape: EntryShape, kinds: Kinds) -> Vec<Owned> {
    let mut entries = std::collections::BTreeMap::new();
    for _ in 0..random.random_range(0..400) {
        let is_delete = kinds.allow(Kind::Delete) && random.random_bool(0.2);
        let entry = match is_delete {
            true => (Kind::Delete, Vec::new()),
            false => (Kind::Put, value(random, shape)),
        };
        entries.insert(key(random, shape), entry);
    }
    entries.into_iter().map(|(key, (kind, value))| (key, kind, value)).collect()
}
