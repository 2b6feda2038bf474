//! The lazy-adaptive tree on a chip of which a page is damaged: what is around the damage can be
//! read, and nothing wrong ever is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use contract::nand::{Hook, Hooked, Read};
use contract::tree::saved;
use device::{Cause, Geometry, Medium, Nand, NandCosts, Page, Result};
use index::parameters::Settings;
use index::{Durability, EntryShape, Update};
use index::{MediumShape, Options, TreeDescriptor};
use sim::SimulatedNand;

const ENTRIES: u32 = 8000;

/// Reads one page with a wrong bit in each of its nodes, which the chip does not notice.
struct Damage<'r> {
    page: Option<Page>,
    /// Pages that lookups read.
    read: &'r Mutex<BTreeSet<Page>>,
}

impl<N: Nand> Hook<N> for Damage<'_> {
    fn read(&mut self, chip: &mut N, read: Read<'_>) -> Result<u16> {
        let Read { page, offset, into, spare, cause } = read;
        let corrected = chip.read(page, offset, into, spare, cause)?;
        if cause == Cause::Lookup {
            self.read.lock().unwrap().insert(page);
        }
        for (at, byte) in into.iter_mut().enumerate().filter(|_| Some(page) == self.page) {
            *byte ^= u8::from((offset as usize + at) % 16 == 8);
        }
        Ok(corrected)
    }
}

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("la-tree").unwrap()
}

#[test]
fn all_that_no_damaged_page_is_needed_for_can_be_read() {
    let chip = Geometry::new(512, 16, 120).unwrap().with_spare(16).unwrap();
    let settings = Settings::parse("la-tree", entry().parameters, []).unwrap();
    let mut options = Options {
        durability: Some(Durability::Checkpoint),
        ..Options::new(EntryShape::fixed(4, 4), 0, settings)
    };
    let least = entry().least_memory(&options, MediumShape::Nand(chip)).unwrap();
    options.memory_bytes = 2 * least;
    let mut nand = SimulatedNand::new(chip, NandCosts::default());
    let mut index = (entry().create)(Medium::Nand(Box::new(&mut nand)), &options).unwrap();
    let mut right = BTreeMap::new();
    for turn in 0..ENTRIES {
        // Each key comes twice, so that what is below a damaged buffer is old.
        let key = turn.wrapping_mul(0x9E37_79B9) % (ENTRIES / 2);
        index
            .update(&[Update::Put { key: &key.to_be_bytes(), value: &turn.to_be_bytes() }])
            .unwrap();
        right.insert(key.to_be_bytes().to_vec(), turn.to_be_bytes().to_vec());
    }
    index.close().unwrap();
    drop(index);
    let read = Mutex::default();
    let mut save = |page| {
        let damaged = Hooked { chip: &mut nand, hook: Damage { page, read: &read } };
        let mut index = (entry().open)(Medium::Nand(Box::new(damaged)), &options).unwrap();
        let saved = saved(&mut *index);
        assert!(saved.is_told, "{page:?}");
        (saved.entries, saved.gaps)
    };
    assert_eq!(save(None), (right.clone(), 0));
    let pages = core::mem::take(&mut *read.lock().unwrap());
    let (mut partly, mut most_gaps) = (0, 0);
    for page in pages.iter().copied() {
        let (saved, gaps) = save(Some(page));
        assert!(saved.iter().all(|(key, value)| right[key] == *value), "{page:?}: a wrong value");
        assert!(gaps > 0 || saved == right, "{page:?}: {} of {}", saved.len(), right.len());
        partly += usize::from(gaps > 0 && !saved.is_empty());
        most_gaps = most_gaps.max(gaps);
    }
    println!(
        "of {} pages that lookups read, {partly} can be damaged so that some of the entries are \
         read, with up to {most_gaps} gaps",
        pages.len()
    );
    assert!(partly > 50 && most_gaps > 2, "{partly}, {most_gaps}");
}
