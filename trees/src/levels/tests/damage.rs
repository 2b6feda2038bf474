//! A tree of which a page is damaged: what no damaged page is needed for can be read, and nothing
//! wrong ever is.

use std::collections::BTreeMap;

use contract::RamDisk;
use contract::tree::saved;
use device::{Medium, SectorGeometry, Sectors};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{EntryShape, Options, Update};

use crate::{figure, key};

const SECTOR: usize = 512;

#[test]
fn all_that_no_damaged_page_is_needed_for_can_be_read() {
    for name in ["fd-tree", "lsm"] {
        let entry = find(name).unwrap();
        let given = [("ratio", "4"), ("head", "8192")];
        let settings = Settings::parse(name, entry.parameters, given).unwrap();
        let options = Options::new(EntryShape::fixed(4, 4), 1 << 20, settings);
        let mut disk = RamDisk::new(SectorGeometry::new(SECTOR as u32, 20_000).unwrap());
        let medium = Medium::Sectors(Box::new(&mut disk));
        let mut index = (entry.create)(medium, &options).unwrap();
        let mut right = BTreeMap::new();
        for turn in 0..20_000u32 {
            // Keys come twice, so that what is below a damaged page is old; some are gone then.
            let (key, value) = (key(turn % 9_000), turn.to_be_bytes());
            if turn % 5 == 3 {
                index.update(&[Update::Delete { key: &key }]).unwrap();
                right.remove(&key[..]);
            } else {
                index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
                right.insert(key.to_vec(), value.to_vec());
            }
        }
        assert!(figure(&*index, "levels") >= 2);
        index.close().unwrap();
        drop(index);
        let sectors = disk.geometry().sectors() as usize;
        let is_used = |disk: &mut RamDisk, sector: usize| {
            disk.bytes_mut()[sector * SECTOR..][..SECTOR].iter().any(|byte| *byte != 0)
        };
        let used: Vec<usize> = (0..sectors).filter(|at| is_used(&mut disk, *at)).collect();
        let (mut partly, mut ends, mut most_lost) = (0, 0, 0);
        for pages in used.windows(3).step_by(2) {
            // One page, or three in a row.
            let pages = &pages[..if pages[0] % 4 == 0 { 3 } else { 1 }];
            let flip = |disk: &mut RamDisk| {
                pages.iter().for_each(|page| disk.bytes_mut()[page * SECTOR + 50] ^= 8);
            };
            flip(&mut disk);
            if let Ok(mut index) = (entry.open)(Medium::Sectors(Box::new(&mut disk)), &options) {
                let saved = saved(&mut *index);
                let is_right = |(key, value): (&Vec<u8>, &Vec<u8>)| right.get(key) == Some(value);
                assert!(saved.entries.iter().all(is_right), "{name}, {pages:?}: a wrong entry");
                let lost = right.len() - saved.entries.len();
                assert!(saved.gaps > 0 || lost == 0, "{name}, {pages:?}: {lost} without a word");
                if saved.gaps > 0 && saved.is_told {
                    partly += 1;
                    most_lost = most_lost.max(lost);
                }
                ends += usize::from(!saved.is_told);
            }
            flip(&mut disk);
        }
        println!("{name}: {partly} damages passed over, at most {most_lost} lost; {ends} not");
        assert!(partly > 50 && most_lost < right.len() / 4, "{name}: {partly}, {most_lost}");
        assert!(ends * 4 < partly, "{name}: {ends} of {partly}");
    }
}
