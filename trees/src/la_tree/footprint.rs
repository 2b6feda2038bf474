//! What a tree needs, and what it will cost, before it is made.

use device::SectorGeometry;
use store::PageFile;

use super::census::needs_at_first;
use super::cost::{UnitCosts, predict as model};
use super::disk::Disk;
use super::plan::{Plan, choices, disk, needs};
use index::{Footprint, MediumShape, Options, Prediction, Profile, Result};

pub(super) fn footprint(options: &Options, medium: MediumShape) -> Result<Footprint> {
    match medium {
        MediumShape::Nand(chip) => needs(options, choices(options, chip)?, chip),
        MediumShape::Sectors(geometry) => footprint_on_disk(options, geometry),
    }
}

fn footprint_on_disk(options: &Options, geometry: SectorGeometry) -> Result<Footprint> {
    let durability = options.durability.unwrap_or_default();
    let (shape, choices) = (options.shape, disk::choices(options, geometry)?);
    let given = (choices, durability);
    let memory_least = disk::least(options, shape, given, geometry)?;
    // With the least memory it takes the most room.
    let options = Options { memory_bytes: memory_least, ..options.clone() };
    let (plan, _) = disk::plan(&options, shape, given, geometry)?;
    let is_shared = choices.node_bytes < geometry.sector_bytes();
    let (pages, images) = needs_at_first(&plan, durability, is_shared);
    let (most, tables) = PageFile::pages_and_tables(geometry, choices.node_bytes, durability)?;
    let file = options.page_file(choices.node_bytes, 0);
    Ok(Footprint {
        memory_least,
        tables: plan.table_bytes_of(options.entries)
            + tables
            + Disk::table_bytes_of(most.into(), pages),
        units_least: PageFile::sectors_least(geometry, &file, pages, images)?,
    })
}

pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let plan = match medium {
        MediumShape::Nand(chip) => {
            let plan = Plan::new(options, options.shape, choices(options, chip)?, chip)?;
            plan.for_predicting(UnitCosts::usual(&plan.pages), plan.cache.frames())
        }
        MediumShape::Sectors(geometry) => {
            let durability = options.durability.unwrap_or_default();
            let given = (disk::choices(options, geometry)?, durability);
            let (plan, file) = disk::plan(options, options.shape, given, geometry)?;
            let bytes = plan.pages.node_bytes();
            let file = options.page_file(bytes, file);
            let nodes = PageFile::frames(geometry, &file)?;
            plan.for_predicting(UnitCosts::usual_on_disk(bytes), nodes)
        }
    };
    Ok(model::predict(profile, &plan))
}
