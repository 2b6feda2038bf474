//! The way of one put, from the index to the chip, as ARCHITECTURE.md quotes it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::{Arc, Mutex};

use contract::nand::{Hook, Hooked, Program};
use device::{
    Block, Cause, Geometry, Medium, Nand, NandCosts, Request, Result, Sector, SectorGeometry,
    Sectors,
};
use index::Options;
use index::parameters::Settings;
use index::{Durability, EntryShape, Update};
use sim::SimulatedNand;

/// What was called, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A disk that notes every change that passes it.
struct Noted<D> {
    below: D,
    log: Log,
}

impl<S: Sectors> Sectors for Noted<S> {
    fn geometry(&self) -> SectorGeometry {
        self.below.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        self.below.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        let bytes = from.len();
        self.log.note(format!("Sectors::write   {first}, {bytes} bytes, cause {cause}"));
        self.below.write(first, from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        self.below.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.log.note(format!("Sectors::flush   cause {cause}"));
        self.below.flush(cause)
    }
}

impl<N: Nand> Hook<N> for Log {
    fn program(&mut self, chip: &mut N, program: Program<'_>) -> Result<()> {
        let Program { page, data, spare, cause, .. } = program;
        let (bytes, spare_bytes) = (data.len(), spare.len());
        let what = format!("{page}, {bytes} + {spare_bytes} bytes, cause {cause}");
        self.note(format!("Nand::program    {what}"));
        program.on(chip)
    }

    fn erase(&mut self, chip: &mut N, block: Block, cause: Cause) -> Result<()> {
        self.note(format!("Nand::erase      {block}, cause {cause}"));
        chip.erase(block, cause)
    }
}

#[test]
fn one_put_goes_down_through_every_layer_once() {
    let log = Log::default();
    let geometry = Geometry::new(2048, 64, 32).unwrap().with_spare(64).unwrap();
    let chip = SimulatedNand::new(geometry, NandCosts::default());
    let nand = Hooked { chip, hook: log.clone() };
    let page_map = ftl::find("page-map").unwrap();
    let disk = (page_map.create)(Box::new(nand), &ftl::Options::default()).unwrap();
    let medium = Medium::Sectors(Box::new(Noted { below: disk, log: log.clone() }));

    let entry = flashtree_trees::find("b-plus").unwrap();
    let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
    let shape = EntryShape::fixed(4, 4);
    let options =
        Options { durability: Some(Durability::Every), ..Options::new(shape, 64 << 10, settings) };
    let mut index = (entry.create)(medium, &options).unwrap();
    log.take();

    log.note("Index::update    put of 4 + 4 bytes".to_string());
    index.update(&[Update::Put { key: b"ewr1", value: b"39.0" }]).unwrap();
    log.note("Index::close".to_string());
    index.close().unwrap();
    let way = log.take();
    for line in &way {
        println!("{line}");
    }

    let expected = [
        "Index::update    put of 4 + 4 bytes",
        "Sectors::write   sector 1113, 2048 bytes, cause journal",
        "Nand::program    page 70, 2048 + 32 bytes, cause journal",
        "Sectors::flush   cause journal",
        "Sectors::write   sector 1101, 2048 bytes, cause checkpoint",
        "Nand::program    page 71, 2048 + 32 bytes, cause checkpoint",
        "Index::close",
        "Sectors::write   sector 1097, 2048 bytes, cause checkpoint",
        "Nand::program    page 72, 2048 + 32 bytes, cause checkpoint",
        "Sectors::write   sector 1098, 2048 bytes, cause checkpoint",
        "Nand::program    page 73, 2048 + 32 bytes, cause checkpoint",
        "Sectors::flush   cause checkpoint",
        "Sectors::write   sector 2, 2048 bytes, cause flush",
        "Nand::program    page 74, 2048 + 32 bytes, cause flush",
        "Sectors::flush   cause checkpoint",
        "Sectors::write   sector 0, 2048 bytes, cause checkpoint",
        "Nand::program    page 75, 2048 + 32 bytes, cause checkpoint",
        "Sectors::flush   cause checkpoint",
        "Sectors::write   sector 1, 2048 bytes, cause checkpoint",
        "Nand::program    page 76, 2048 + 32 bytes, cause checkpoint",
        "Sectors::flush   cause checkpoint",
    ];
    assert_eq!(way, expected, "the way of a put has changed: ARCHITECTURE.md quotes it");
    let architecture = include_str!("../../ARCHITECTURE.md");
    for line in expected {
        assert!(architecture.contains(line), "ARCHITECTURE.md does not quote {line:?}");
    }
}
