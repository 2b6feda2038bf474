//! The lazy-adaptive tree on a chip of which a page is damaged: what is around the damage can be
//! read, and nothing wrong ever is.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Mutex;

use contract::nand::{Hook, Hooked, Read};
use device::{Cause, Geometry, Medium, Nand, NandCosts, Page, Result};
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, KeyRange, Resume, Update, Value};
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

/// Reads all that can be read; also returns how often it goes on behind damage.
fn saved(index: &mut dyn Index) -> (BTreeMap<u32, u32>, u32) {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let (mut saved, mut gaps) = (BTreeMap::new(), 0);
    let (mut from, mut place) = (None, None);
    loop {
        let bound = from.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let mut cursor = index.range(KeyRange { from: bound, ..KeyRange::ALL }).unwrap();
        let damage = loop {
            match cursor.next() {
                Ok(Some((key, Value::Inline(value)))) => {
                    assert!(saved.insert(number(key), number(value)).is_none(), "it came before");
                    place = Some(key.to_vec());
                }
                Ok(Some(_)) => panic!("values are short"),
                Ok(None) => return (saved, gaps),
                Err(error) => break error,
            }
        };
        drop(cursor);
        assert!(matches!(&damage, index::Error::Store(error) if error.is_damage()), "{damage}");
        gaps += 1;
        match index.resume_after(place.as_deref()).unwrap() {
            Resume::From(next) => {
                assert!(Some(&next) > place.as_ref(), "it leads back");
                (place, from) = (Some(next.clone()), Some(next));
            }
            Resume::End => return (saved, gaps),
            Resume::Unknown => panic!("it can be told"),
        }
    }
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
        right.insert(key, turn);
    }
    index.close().unwrap();
    drop(index);
    let read = Mutex::default();
    let mut save = |page| {
        let damaged = Hooked { chip: &mut nand, hook: Damage { page, read: &read } };
        let mut index = (entry().open)(Medium::Nand(Box::new(damaged)), &options).unwrap();
        saved(&mut *index)
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
