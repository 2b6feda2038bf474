//! The lazy-adaptive tree, read in pieces: each range goes on where the one before it stopped.

use std::ops::Bound;

use contract::tree::{Model, figure};
use index::{Direction, Durability, Index, KeyRange, Update};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::spill::{change, made, new_disk, options};

/// Changes before anything is read.
const UPDATES: u64 = 150_000;

/// Entries of a piece at most, and how many pieces are read while the tree changes.
const PIECE: usize = 60;
const PIECES: u32 = 600;

/// Reads up to `most` entries behind `key`, and goes on there; false at the end. Every entry must
/// be the model's.
fn read(
    index: &mut dyn Index,
    model: &Model,
    (direction, key): (Direction, &mut Option<Vec<u8>>),
    most: usize,
) -> bool {
    let start = key.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let range = match direction {
        Direction::Ascending => KeyRange { from: start, ..KeyRange::ALL },
        Direction::Descending => KeyRange { to: start, ..KeyRange::ALL.reversed() },
    };
    let expected: Vec<_> = model.range(range).into_iter().take(most).collect();
    let mut cursor = index.range(range).unwrap();
    for (wanted, value) in &expected {
        let found = cursor.next().unwrap().unwrap();
        assert_eq!((found.0, found.1.whole().unwrap()), (*wanted, *value));
    }
    if expected.len() < most {
        assert!(cursor.next().unwrap().is_none(), "there is nothing behind the last");
    }
    drop(cursor);
    *key = expected.last().map(|(last, _)| last.to_vec());
    key.is_some()
}

/// Fragments that are read for a number of entries from the first on, in pieces of so many.
fn fragments_read(index: &mut dyn Index, model: &Model, pieces: usize, most: usize) -> u64 {
    let counted = |index: &dyn Index| {
        figure(index, "fragments read inner") + figure(index, "fragments read leaf")
    };
    let (before, mut key) = (counted(index), None);
    for _ in 0..pieces {
        assert!(read(index, model, (Direction::Ascending, &mut key), most));
    }
    counted(index) - before
}

#[test]
fn a_range_in_pieces_reads_the_fragments_that_it_reads_as_a_whole() {
    let options = options(Durability::Checkpoint);
    let (mut disk, mut model) = (new_disk(), Model::default());
    let mut index = made(&mut disk, &options, &mut model);
    change(&mut *index, &mut model, &mut ChaCha8Rng::seed_from_u64(3), UPDATES);
    let whole = fragments_read(&mut *index, &model, 1, 60_000);
    let in_pieces = fragments_read(&mut *index, &model, 1000, 60);
    println!("{whole} fragments as a whole, {in_pieces} in pieces");
    assert!(whole > 10, "only {whole} fragments are read");
    assert_eq!(in_pieces, whole);
}

#[test]
fn a_range_that_goes_on_sees_what_changed_since_it_stopped() {
    let options = options(Durability::Checkpoint);
    let (mut disk, mut model) = (new_disk(), Model::default());
    let mut index = made(&mut disk, &options, &mut model);
    let mut random = ChaCha8Rng::seed_from_u64(4);
    change(&mut *index, &mut model, &mut random, UPDATES);
    let (mut key, mut direction) = (None, Direction::Ascending);
    for piece in 0..PIECES {
        let most = random.random_range(1..=PIECE);
        if !read(&mut *index, &model, (direction, &mut key), most) {
            direction = match direction {
                Direction::Ascending => Direction::Descending,
                Direction::Descending => Direction::Ascending,
            };
        }
        match random.random_range(0..8) {
            0 => change(&mut *index, &mut model, &mut random, 64),
            // Right behind where the range stopped, too.
            1 => {
                let next = key.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
                let range = KeyRange { from: next, ..KeyRange::ALL };
                let next = model.range(range).first().map(|(next, _)| next.to_vec());
                if let Some(next) = next {
                    index.update(&[Update::Delete { key: &next }]).unwrap();
                    model.entries.remove(&next);
                }
            }
            2 => {
                let key: u64 = random.random_range(0..100_000);
                model.compare_get(&mut *index, &key.to_be_bytes(), 0);
            }
            3 if piece % 16 == 0 => drop(index.checkpoint(None).unwrap()),
            _ => {}
        }
    }
}
