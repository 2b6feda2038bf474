//! What a tree says that it needs, without being made, is what it takes when it is made.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use device::{DiskCosts, Geometry, Medium, NandCosts, SectorGeometry};
use index::parameters::Settings;
use index::registry::{Entry, Footprint, MediumShape, Options, TREES};
use index::{Durability, EntryShape, Error, Index, Result, Update, Width};
use sim::{SimulatedDisk, SimulatedNand};

const SHAPES: [EntryShape; 3] =
    [EntryShape::fixed(4, 4), EntryShape::fixed(16, 60), EntryShape::VARIABLE];

fn media(entry: &Entry) -> Vec<MediumShape> {
    let chips = [(512, 16, 400, 16), (2048, 32, 200, 0), (4096, 64, 100, 128)];
    let chip = |(page, pages, blocks, spare)| {
        MediumShape::Nand(Geometry::new(page, pages, blocks).unwrap().with_spare(spare).unwrap())
    };
    let disk =
        |(bytes, sectors)| MediumShape::Sectors(SectorGeometry::new(bytes, sectors).unwrap());
    let chips = chips.into_iter().filter(|_| entry.nand).map(chip);
    let disks = [(512, 3000), (2048, 1000), (4096, 5000)].into_iter().filter(|_| entry.sectors);
    chips.chain(disks.map(disk)).collect()
}

/// Every tree on every medium, with every shape of entries and durability.
fn each(visit: impl Fn(&Entry, MediumShape, &Options, &str)) {
    for entry in TREES {
        for medium in media(entry) {
            for (shape, durability) in SHAPES.into_iter().flat_map(|shape| {
                Durability::ALL.into_iter().map(move |durability| (shape, durability))
            }) {
                let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
                let mut options = Options::new(shape, 0, settings);
                options.durability = Some(durability);
                visit(entry, medium, &options, &format!("{} {medium:?} {options:?}", entry.name));
            }
        }
    }
}

/// Makes the tree there and hands it over.
fn make<T>(
    entry: &Entry,
    medium: MediumShape,
    options: &Options,
    look: impl FnOnce(&mut dyn Index) -> T,
) -> Result<T> {
    let medium = match medium {
        MediumShape::Nand(chip) => {
            Medium::Nand(Box::new(SimulatedNand::new(chip, NandCosts::default())))
        }
        MediumShape::Sectors(disk) => {
            Medium::Sectors(Box::new(SimulatedDisk::new(disk, DiskCosts::default())))
        }
    };
    (entry.create)(medium, options).map(|mut index| look(&mut *index))
}

fn put_one(index: &mut dyn Index, shape: EntryShape) -> Result<()> {
    let of = |width| vec![7; if let Width::Fixed(bytes) = width { bytes.into() } else { 20 }];
    index.update(&[Update::Put { key: &of(shape.key), value: &of(shape.value) }])?;
    index.close()
}

#[test]
fn the_memory_is_that_of_the_index_and_its_tables() {
    each(|entry, medium, options, name| {
        let Footprint { memory_least, tables, .. } = (entry.footprint)(options, medium).unwrap();
        for memory_bytes in [memory_least, 3 * memory_least, memory_least + 200_000] {
            let tables_bytes = Some(tables);
            let options = Options { memory_bytes, tables_bytes, ..options.clone() };
            let again = (entry.footprint)(&options, medium).unwrap();
            assert_eq!((again.memory_least, again.tables), (memory_least, tables), "{name}");
            let taken = make(entry, medium, &options, |index| {
                put_one(index, options.shape).unwrap_or_else(|error| panic!("{name}: {error}"));
                let memory = index.statistics().memory;
                memory.cache + memory.buffers + memory.tables
            });
            let (taken, most) = (taken.unwrap(), memory_bytes + tables);
            assert!(taken <= most, "{name}: {taken} of {memory_bytes} and {tables}");
            // Of all that may come, tables that grow have only begun.
            let percent = if entry.tables_grow { 85 } else { 99 };
            let is_least = memory_bytes == memory_least;
            assert!(!is_least || 100 * taken >= percent * most, "{name}: {taken} of {most}");
        }
        let less = Options { memory_bytes: memory_least - 1, ..options.clone() };
        match make(entry, medium, &less, |_| ()).unwrap_err() {
            Error::Store(store::Error::LittleMemory { have, need }) if need == have + 1 => {}
            other => panic!("{name}: {other}"),
        }
    });
}

#[test]
fn the_units_are_those_of_the_smallest_medium_that_is_taken() {
    each(|entry, medium, options, name| {
        let footprint = |like| (entry.footprint)(options, like);
        let few = medium.with_units(2).unwrap();
        let units = few.units_that_suffice(|like| Ok(footprint(like)?.units_least)).unwrap();
        let on = |units| {
            let medium = medium.with_units(units).unwrap();
            let memory_bytes = footprint(medium).unwrap().memory_least;
            let options = Options { memory_bytes, ..options.clone() };
            make(entry, medium, &options, |index| put_one(index, options.shape))
        };
        on(units).and_then(|put| put).unwrap_or_else(|error| panic!("{name} {units}: {error}"));
        let refused = on(units - 1).unwrap_err();
        let is_small = matches!(
            refused,
            Error::Store(store::Error::Device(
                device::Error::TooFewBlocks { .. } | device::Error::TooSmall { .. }
            ))
        );
        assert!(is_small, "{name} {units}: {refused}");
    });
}
