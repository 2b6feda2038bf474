use alloc::vec;
use alloc::vec::Vec;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::entry::{Entry, Kind, Kinds};
use super::{Builder, Form, Pieces, Seed, UnitShape};
use crate::{EntryShape, Width};

const SEED: Seed = Seed { identity: 1, run: 2, unit: 3 };

fn shape(random: &mut ChaCha8Rng) -> UnitShape {
    let mut width = || match random.random_bool(0.5) {
        true => Width::Fixed(random.random_range(0..40)),
        false => Width::Variable,
    };
    let entries = EntryShape { key: width(), value: width() };
    let kinds = [Kinds::Puts, Kinds::Deletes, Kinds::Fences][random.random_range(0..3)];
    let bytes = [24, 100, 128, 130, 256, 300, 4096][random.random_range(0..7)];
    UnitShape::new(bytes, entries, kinds).unwrap()
}

#[test]
fn bytes_that_mean_nothing_are_refused_or_read_without_a_panic() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let mut opened = 0;
    for _ in 0..20_000 {
        let shape = shape(&mut random);
        let mut bytes: Vec<u8> = (0..shape.bytes()).map(|_| random.random()).collect();
        let zeros = random.random_range(0..bytes.len());
        match random.random_range(0..3) {
            0 => bytes[..zeros].fill(0),
            1 => bytes[zeros..].fill(0),
            _ => {}
        }
        let most = shape.count_most().min(8);
        bytes[shape.checksum_bytes()] = random.random_range(0..=most) as u8;
        SEED.seal(&shape, &mut bytes);
        let Ok((form, unit)) = shape.open(SEED, &bytes) else { continue };
        let _ = shape.piece(form, &bytes);
        let _ = shape.record(&bytes).map(|record| record.entry(0));
        if form == Form::Entries {
            opened += 1;
            for place in 0..=unit.len() {
                let key = unit.entry(place).key.to_vec();
                let _ = (unit.get(&key), unit.fence(&key), unit.lower(&key), unit.upper(&key));
            }
        }
    }
    assert!(opened > 500, "{opened}");
}

#[test]
fn a_page_of_two_kib_holds_as_many_small_entries_as_the_paper_says() {
    let fences = UnitShape::new(2048, EntryShape::fixed(4, 4), Kinds::Fences).unwrap();
    assert_eq!(fences.capacity(4, 4), 247);
    let puts = UnitShape::new(4096, EntryShape::fixed(8, 8), Kinds::Puts).unwrap();
    assert_eq!(puts.capacity(8, 8), 255);
    let small = UnitShape::new(100, EntryShape::fixed(4, 4), Kinds::Deletes).unwrap();
    assert_eq!(small.capacity(4, 4), 11);
}

#[test]
fn a_capacity_is_what_goes_in() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    for _ in 0..2000 {
        let shape = shape(&mut random);
        let length = |width: Width| match width {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => 9,
        };
        let (key, value) = (length(shape.entries().key), length(shape.entries().value));
        let (mut builder, mut bytes) = (Builder::new(shape), vec![0; shape.bytes() as usize]);
        let (key, value) = (vec![7; key], vec![8; value]);
        let mut count = 0;
        while builder.push(&mut bytes, &Entry { key: &key, kind: Kind::Put, value: &value }) {
            count += 1;
        }
        assert_eq!(count, shape.capacity(key.len(), value.len()), "{shape:?}");
        if count > 0 {
            builder.seal(SEED, &mut bytes);
            let unit = shape.open(SEED, &bytes).unwrap().1;
            assert_eq!((unit.len(), unit.entry(count - 1).key), (count, &key[..]));
        }
    }
}

#[test]
fn a_record_comes_back_from_as_many_pieces_as_it_says() {
    let shape = UnitShape::new(24, EntryShape::VARIABLE, Kinds::Deletes).unwrap();
    for length in 1..200 {
        let record: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let mut pieces = Pieces::new(shape, &record, false);
        let (mut count, mut read) = (0, Vec::new());
        while !pieces.is_done() {
            let mut bytes = vec![0; 24];
            pieces.put(SEED, &mut bytes);
            let (form, _) = shape.open(SEED, &bytes).unwrap();
            let first = Form::First(length);
            assert_eq!(form, if count == 0 { first } else { Form::Next });
            read.extend_from_slice(shape.piece(form, &bytes));
            count += 1;
        }
        read.truncate(record.len());
        assert!(count == shape.pieces(record.len()) && read == record, "{length}");
    }
}
