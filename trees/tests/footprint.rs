//! What a tree says that it needs, without being made, is what it takes when it is made.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use device::{DiskCosts, Geometry, Medium, NandCosts, SectorGeometry};
use flashtree_trees::TREES;
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, Result, Update, Width};
use index::{Footprint, MediumShape, Options, TreeDescriptor};
use sim::{SimulatedDisk, SimulatedNand};

fn media(entry: &TreeDescriptor) -> impl Iterator<Item = MediumShape> {
    let chips = [(512, 16, 400, 16), (2048, 32, 200, 0), (4096, 64, 100, 128)];
    let chip = |(page, pages, blocks, spare)| {
        MediumShape::Nand(Geometry::new(page, pages, blocks).unwrap().with_spare(spare).unwrap())
    };
    let disks = [(512, 3000), (2048, 1000), (4096, 5000)];
    let disk =
        |(bytes, sectors)| MediumShape::Sectors(SectorGeometry::new(bytes, sectors).unwrap());
    let (on_chips, on_disks) = (entry.nand, entry.sectors);
    let chips = chips.into_iter().filter(move |_| on_chips).map(chip);
    chips.chain(disks.into_iter().filter(move |_| on_disks).map(disk))
}

fn make(entry: &TreeDescriptor, medium: MediumShape, options: &Options) -> Result<Box<dyn Index>> {
    let medium = match medium {
        MediumShape::Nand(chip) => {
            Medium::Nand(Box::new(SimulatedNand::new(chip, NandCosts::default())))
        }
        MediumShape::Sectors(disk) => {
            Medium::Sectors(Box::new(SimulatedDisk::new(disk, DiskCosts::default())))
        }
    };
    (entry.create)(medium, options)
}

fn check(entry: &TreeDescriptor, medium: MediumShape, options: &Options) {
    let name = format!("{} {medium:?} {options:?}", entry.name);
    let Footprint { memory_least, tables, .. } = (entry.footprint)(options, medium).unwrap();
    for memory_bytes in [memory_least, 3 * memory_least, memory_least + 200_000] {
        let options = Options { memory_bytes, tables_bytes: Some(tables), ..options.clone() };
        let again = (entry.footprint)(&options, medium).unwrap();
        assert_eq!((again.memory_least, again.tables), (memory_least, tables), "{name}");
        let mut index = make(entry, medium, &options).unwrap();
        let of = |width| vec![7; if let Width::Fixed(bytes) = width { bytes.into() } else { 20 }];
        let (key, value) = (of(options.shape.key), of(options.shape.value));
        let put = index.update(&[Update::Put { key: &key, value: &value }]);
        put.and_then(|()| index.close()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let memory = index.statistics().memory;
        let (taken, most) = (memory.cache + memory.buffers + memory.tables, memory_bytes + tables);
        assert!(taken <= most, "{name}: {taken} of {memory_bytes} and {tables}");
        // Tables that grow have only begun.
        let (taken, most, percent) = match entry.tables_grow() {
            true => (memory.cache + memory.buffers, memory_bytes, 90),
            false => (taken, most, 99),
        };
        let is_least = memory_bytes == memory_least;
        assert!(!is_least || 100 * taken >= percent * most, "{name}: {taken} of {most}");
    }
    let less = Options { memory_bytes: memory_least - 1, ..options.clone() };
    match make(entry, medium, &less).map(drop) {
        Err(Error::Store(store::Error::LittleMemory { have, need })) if need == have + 1 => {}
        other => panic!("{name}: {other:?}"),
    }
    // `small_chips` and `refusals` fill the smallest devices.
    let footprint = |like| (entry.footprint)(options, like);
    let few = medium.with_units(2).unwrap();
    let units = few.units_that_suffice(|like| Ok(footprint(like)?.units_least)).unwrap();
    for (units, suffices) in [(units, true), (units - 1, false)] {
        let medium = medium.with_units(units).unwrap();
        let memory_bytes = footprint(medium).unwrap().memory_least;
        let made = make(entry, medium, &Options { memory_bytes, ..options.clone() });
        assert_eq!(made.is_ok(), suffices, "{name}: {units}");
    }
}

#[test]
fn what_is_made_takes_the_memory_and_the_units_that_were_told() {
    let shapes = [EntryShape::fixed(4, 4), EntryShape::fixed(16, 60), EntryShape::VARIABLE];
    for entry in TREES {
        for medium in media(entry) {
            for (shape, durability) in shapes
                .iter()
                .flat_map(|shape| Durability::ALL.map(|durability| (shape, durability)))
            {
                let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
                let options = Options::new(*shape, 0, settings);
                let durability = Some(durability);
                check(entry, medium, &Options { durability, ..options });
            }
        }
    }
}
