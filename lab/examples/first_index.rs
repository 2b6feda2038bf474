//! An index in 64 KiB of memory on a simulated chip: the example of `docs/compare.md`.

use device::Medium;
use ftl::PageMap;
use index::Options;
use index::parameters::Settings;
use index::{EntryShape, KeyRange, Update};
use sim::SimulatedNand;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let chip = chips::find("winbond-w25n01gv").ok_or("no such chip")?.nand(&Default::default())?;
    let nand = SimulatedNand::new(chip.geometry, chip.costs);
    let disk = PageMap::format(nand, ftl::Options::default())?;
    let tree = trees::find("b-plus").ok_or("no such tree")?;
    let settings = Settings::parse(tree.name, tree.parameters, [])?;
    let options = Options::new(EntryShape::VARIABLE, 64 << 10, settings);
    let mut index = (tree.create)(Medium::Sectors(Box::new(disk)), &options)?;
    index.update(&[
        Update::Put { key: b"lga", value: b"39.92" },
        Update::Put { key: b"ewr", value: b"39.02" },
        Update::Put { key: b"jfk", value: b"39.02" },
        Update::Delete { key: b"jfk" },
    ])?;
    let mut value = [0; 16];
    let length = index.get(b"ewr", 0, &mut value)?;
    assert_eq!(length, Some(5));

    let mut cursor = index.range(KeyRange::ALL)?;
    while let Some((key, value)) = cursor.next()? {
        // Values too long for a node would come as `Value::Long`, to be read in pieces.
        let value = value.whole().unwrap_or_default();
        println!("{} {}", String::from_utf8_lossy(key), String::from_utf8_lossy(value));
    }
    drop(cursor);
    index.close()?;
    if let Some(meter) = index.meter() {
        println!("{} pages programmed", meter.total().page_programs);
    }
    Ok(())
}
