//! Databases of the frozen format are read, whatever changes in the code: a closed one, and what a
//! killed process left, of every tree, in a file and on a chip. A tree whose own pages have another
//! version since has its images under that, and those of before are refused.
//!
//! `cargo test -p flashtree --test formats -- --ignored` writes the images of the present format
//! that are not there yet; those that are there never change.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use std::fs;
use std::path::{Path, PathBuf};

use flashtree::{Batch, Database, Durability, Geometry, OpenOptions, Options};
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use storage::{Model, compare, place};
use trees::TREES;

/// The folder of the present format's images.
const PRESENT: &str = "tests/formats/5";

/// Versions of what trees have on flash, where that changed: the images of before stay.
const VERSIONS: [(&str, u32); 2] = [("ipl", 1), ("la-tree", 1)];

/// Trees that are new since.
const NOT_FROZEN: [&str; 6] = ["bftl", "fd-tree", "flashdb", "flat-tree", "lazy-update", "lsm"];

/// A database of which there is an image.
struct Kind {
    tree: &'static str,
    on_chip: bool,
    is_killed: bool,
}

impl Kind {
    fn all() -> impl Iterator<Item = Kind> {
        let frozen = TREES.iter().filter(|entry| !NOT_FROZEN.contains(&entry.name));
        let stands = frozen.flat_map(|entry| {
            [(entry.sectors, false), (entry.nand, true)]
                .map(|(stands, on_chip)| stands.then_some((entry.name, on_chip)))
        });
        stands.flatten().flat_map(|(tree, on_chip)| {
            [false, true].map(|is_killed| Kind { tree, on_chip, is_killed })
        })
    }

    fn path(&self) -> PathBuf {
        let storage = if self.on_chip { "chip" } else { "file" };
        let end = if self.is_killed { "killed" } else { "closed" };
        let version = VERSIONS.iter().find(|(tree, _)| *tree == self.tree);
        let version = version.map_or(String::new(), |(_, version)| format!("-{version}"));
        Self::image(&format!("{}{version}-{storage}-{end}", self.tree))
    }

    fn image(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{PRESENT}/{name}.gz"))
    }

    fn options(&self) -> Options {
        let options = Options::new().tree(self.tree).durability(Durability::Batch).identity(7);
        match self.on_chip {
            true => options.chip(Geometry::new(512, 16, 256).unwrap()),
            false => options.page_bytes(1024).capacity(1 << 20),
        }
    }

    /// Makes the database, as far as its named checkpoint and to its end.
    fn fill(&self, database: &mut Database<'_>) {
        let mut batch = Batch::new();
        for (key, value) in model(false) {
            batch.put(key, value);
        }
        database.write_batch(&batch).unwrap();
        database.checkpoint("harvest").unwrap();
        let mut batch = Batch::new();
        for number in 0..40_u32 {
            batch.delete(key(number));
        }
        database.write_batch(&batch).unwrap();
        database.put(key(7), "again").unwrap();
        database.sync().unwrap();
    }
}

fn key(number: u32) -> Vec<u8> {
    format!("fruit/{number:04}").into_bytes()
}

/// What stands in it at the named checkpoint, or at its end.
fn model(at_end: bool) -> Model {
    let long = (key(9999), (0..3000_u32).map(|byte| (byte % 251) as u8).collect());
    let numbers = if at_end { 40..120_u32 } else { 0..120 };
    let entries = numbers.map(|number| (key(number), vec![number as u8; number as usize % 40]));
    let again = at_end.then(|| (key(7), b"again".to_vec()));
    entries.chain([long]).chain(again).collect()
}

#[test]
fn databases_of_a_frozen_format_are_read_changed_and_rolled_back() {
    for kind in Kind::all() {
        let (_folder, path) = place();
        let what = kind.path().display().to_string();
        unpack(&kind.path(), &path);
        if !kind.is_killed {
            let mut read = Database::open_read_only(&path, &OpenOptions::new()).expect(&what);
            compare(&mut read, &model(true), &what);
        }
        let mut database = Database::open(&path, &OpenOptions::new()).expect(&what);
        compare(&mut database, &model(true), &what);
        database.put("more", "fruit").unwrap();
        database.rollback("harvest").unwrap();
        compare(&mut database, &model(false), &what);
        database.close().unwrap();
    }
}

fn unpack(image: &Path, path: &Path) {
    let mut bytes = GzDecoder::new(fs::File::open(image).unwrap());
    std::io::copy(&mut bytes, &mut fs::File::create(path).unwrap()).unwrap();
}

#[test]
fn a_tree_of_an_earlier_format_is_refused_and_its_program_is_named() {
    for (tree, _) in VERSIONS {
        for name in ["file-closed", "file-killed", "chip-closed", "chip-killed"] {
            let image = Kind::image(&format!("{tree}-{name}"));
            if !image.exists() {
                assert!(tree == "ipl" && name.starts_with("file"), "{tree}-{name} is gone");
                continue;
            }
            let (_folder, path) = place();
            unpack(&image, &path);
            let before = fs::read(&path).unwrap();
            let error = Database::open(&path, &OpenOptions::new()).map(drop).unwrap_err();
            let said = error.to_string();
            assert!(said.contains("format of flashtree 0.2"), "{tree}-{name}: {said}");
            assert!(fs::read(&path).unwrap() == before, "{tree}-{name}: it was written");
        }
    }
}

#[test]
#[ignore = "writes the images of the present format"]
fn images_of_the_present_format_are_written() {
    for kind in Kind::all().filter(|kind| !kind.path().exists()) {
        let (_folder, path) = place();
        let mut database = Database::create(&path, &kind.options()).unwrap();
        kind.fill(&mut database);
        if !kind.is_killed {
            database.close().unwrap();
        }
        let mut bytes = GzEncoder::new(fs::File::open(&path).unwrap(), Compression::best());
        fs::create_dir_all(kind.path().parent().unwrap()).unwrap();
        std::io::copy(&mut bytes, &mut fs::File::create(kind.path()).unwrap()).unwrap();
    }
}
