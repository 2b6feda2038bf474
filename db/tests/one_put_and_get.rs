//! The way of one put and of one get, from the database to the chip: ARCHITECTURE.md quotes it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::{Arc, Mutex};

use contract::nand::{Hook, Hooked, Program, Read};
use device::{
    Block, Cause, Geometry, Medium, Nand, NandCosts, Request, Result, Sector, SectorGeometry,
    Sectors,
};
use flashtree::{Database, Durability, EntryShape, OpenOptions, Options};
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

/// A disk that notes every read and every change that passes it.
struct Noted<D> {
    below: D,
    log: Log,
}

impl<S: Sectors> Sectors for Noted<S> {
    fn geometry(&self) -> SectorGeometry {
        self.below.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        for Request { first, into, .. } in requests.iter() {
            let bytes = into.len();
            self.log.note(format!("Sectors::read    {first}, {bytes} bytes, cause {cause}"));
        }
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
    fn read(&mut self, chip: &mut N, read: Read<'_>) -> Result<u16> {
        let Read { page, ref into, ref spare, cause, .. } = read;
        let (bytes, spare_bytes) = (into.len(), spare.len());
        let what = format!("{page}, {bytes} + {spare_bytes} bytes, cause {cause}");
        self.note(format!("Nand::read       {what}"));
        read.on(chip)
    }

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

const GEOMETRY: (u32, u32, u32) = (2048, 64, 32);

/// Page mapping over the chip, with everything that passes it or comes out of it noted.
fn noted<'c>(chip: &'c mut SimulatedNand, log: &Log, make: Make) -> Medium<'c> {
    let nand = Hooked { chip, hook: log.clone() };
    let page_map = ftl::find("page-map").unwrap();
    let make = if make == Make::New { page_map.create } else { page_map.open };
    let below = make(Box::new(nand), &ftl::Options::default()).unwrap();
    Medium::Sectors(Box::new(Noted { below, log: log.clone() }))
}

#[derive(PartialEq)]
enum Make {
    New,
    Open,
}

/// Compares the way with what it should be, and with what ARCHITECTURE.md says.
fn compare(way: &[String], expected: &[&str]) {
    for line in way {
        println!("{line}");
    }
    assert_eq!(way, expected, "the way has changed: ARCHITECTURE.md quotes it");
    let quoted = format!("```text\n{}\n```", expected.join("\n"));
    let architecture = include_str!("../../ARCHITECTURE.md");
    assert!(architecture.contains(&quoted), "ARCHITECTURE.md does not quote\n{quoted}");
}

#[test]
fn one_put_and_one_get_go_down_through_every_layer_once() {
    let log = Log::default();
    let (page_bytes, pages, blocks) = GEOMETRY;
    let geometry = Geometry::new(page_bytes, pages, blocks).unwrap().with_spare(64).unwrap();
    let mut chip = SimulatedNand::new(geometry, NandCosts::default());

    let options = Options::new().tree("b-plus:waiting=0").shape(EntryShape::fixed(4, 4));
    let options = options.durability(Durability::Every).memory(64 << 10).identity(1);
    let medium = noted(&mut chip, &log, Make::New);
    let database = Database::create_on(medium, &options).unwrap();
    log.take();
    log.note("Database::put    4 + 4 bytes".to_string());
    database.put("ewr1", "39.0").unwrap();
    log.note("Database::close".to_string());
    database.close().unwrap();
    compare(&log.take(), PUT);

    // A tree of two levels.
    let medium = noted(&mut chip, &log, Make::Open);
    let database = Database::open_on(medium, &OpenOptions::new()).unwrap();
    for number in 0..400_u32 {
        database.put(number.to_be_bytes(), "0000").unwrap();
    }
    database.close().unwrap();
    let medium = noted(&mut chip, &log, Make::Open);
    let database = Database::open_on(medium, &OpenOptions::new()).unwrap();
    log.take();
    log.note("Database::get    4 bytes".to_string());
    assert_eq!(database.get("ewr1").unwrap().as_deref(), Some(&b"39.0"[..]));
    compare(&log.take(), GET);
}

const PUT: &[&str] = &[
    "Database::put    4 + 4 bytes",
    "Sectors::write   sector 989, 2048 bytes, cause journal",
    "Nand::program    page 70, 2048 + 32 bytes, cause journal",
    "Sectors::flush   cause journal",
    "Sectors::write   sector 978, 2048 bytes, cause checkpoint",
    "Nand::program    page 71, 2048 + 32 bytes, cause checkpoint",
    "Database::close",
    "Sectors::write   sector 974, 2048 bytes, cause checkpoint",
    "Nand::program    page 72, 2048 + 32 bytes, cause checkpoint",
    "Sectors::write   sector 975, 2048 bytes, cause checkpoint",
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
const GET: &[&str] = &[
    "Database::get    4 bytes",
    "Sectors::read    sector 3, 2048 bytes, cause lookup",
    "Nand::read       page 532, 2048 + 0 bytes, cause lookup",
    "Sectors::read    sector 5, 2048 bytes, cause lookup",
    "Nand::read       page 534, 2048 + 0 bytes, cause lookup",
];
