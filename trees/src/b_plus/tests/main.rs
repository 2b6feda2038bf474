//! What b-plus does where textbooks leave a choice: see its module documentation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use contract::RamDisk;
use contract::tree::Model;
use device::{Medium, SectorGeometry};
use flashtree_trees::find;
use index::Options;
use index::parameters::Settings;
use index::{EntryShape, Error, Index, KeyValue, Update, Value, read_piece};

fn b_plus<'d>(disk: &'d mut RamDisk, shape: EntryShape, fill: &str) -> Box<dyn Index + 'd> {
    let entry = find("b-plus").unwrap();
    let settings = Settings::parse(entry.name, entry.parameters, [("fill", fill)]).unwrap();
    let options = Options::new(shape, 64 << 10, settings);
    (entry.create)(Medium::Sectors(Box::new(disk)), &options).unwrap()
}

fn disk() -> RamDisk {
    RamDisk::new(SectorGeometry::new(512, 4096).unwrap())
}

#[test]
fn keys_in_ascending_order_fill_nodes_to_the_percentage_asked_for() {
    for fill in [50, 70, 100] {
        let mut disk = disk();
        let mut index = b_plus(&mut disk, EntryShape::fixed(4, 4), &fill.to_string());
        for number in 0..10_000u32 {
            let key = number.to_be_bytes();
            index.update(&[Update::Put { key: &key, value: &key }]).unwrap();
        }
        let leaves = 10_000.0 / (63.0 * f64::from(fill) / 100.0);
        let pages = index.statistics().live_pages as f64;
        assert!((0.98..1.08).contains(&(pages / leaves)), "fill {fill}: {pages} pages, {leaves}");
    }
}

#[test]
fn separators_of_variable_keys_are_cut_so_that_the_tree_stays_low() {
    let mut disk = disk();
    let mut index = b_plus(&mut disk, EntryShape::VARIABLE, "70");
    for number in 0..3000u32 {
        let key = [&number.wrapping_mul(0x9E37_79B9).to_be_bytes()[..], &[b'x'; 90]].concat();
        index.update(&[Update::Put { key: &key, value: b"" }]).unwrap();
    }
    // Four or five whole keys fit a node, so a tree of them would have five levels or six.
    assert!(index.statistics().height <= 4, "height {}", index.statistics().height);
}

#[test]
fn entries_to_load_must_ascend_without_equals() {
    struct Twice(u32);
    impl index::Cursor for Twice {
        fn next(&mut self) -> index::Result<Option<KeyValue<'_>>> {
            self.0 += 1;
            Ok((self.0 <= 2).then_some((b"same", Value::Inline(b"four"))))
        }

        fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
            Ok(read_piece(b"four", offset, into))
        }
    }
    let mut disk = disk();
    let mut index = b_plus(&mut disk, EntryShape::fixed(4, 4), "70");
    assert_eq!(index.load(&mut Twice(0), 70), Err(Error::NotSorted { position: 1 }));
    let mut model = Model::default();
    model.entries.insert(b"same".to_vec(), b"four".to_vec());
    model.compare_all(&mut *index);
}
