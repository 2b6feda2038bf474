use alloc::vec;
use alloc::vec::Vec;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::entry::{Entry, Kind, Kinds};
use super::{Builder, Form, GapBuilder, GapShape, Pieces, Seed, UnitShape};
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

fn gap_shape(random: &mut ChaCha8Rng) -> GapShape {
    let entries = EntryShape::fixed(random.random_range(1..=8), random.random_range(0..20));
    let kinds = [Kinds::Puts, Kinds::Deletes][random.random_range(0..2)];
    let bytes = [40, 100, 128, 130, 256, 4096][random.random_range(0..6)];
    GapShape::new(UnitShape::new(bytes, entries, kinds).unwrap()).unwrap()
}

#[test]
fn gaps_are_unpacked_to_the_keys_that_were_put() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    for _ in 0..2000 {
        let shape = gap_shape(&mut random);
        let UnitShape { bytes, entries, kinds, .. } = shape.packed();
        let (Width::Fixed(key_bytes), Width::Fixed(value_bytes)) = (entries.key, entries.value)
        else {
            unreachable!()
        };
        // Keys close to each other, and far ones among them.
        let (bits, far) = (random.random_range(1..=8 * key_bytes), random.random_range(1..50));
        let mut builder = GapBuilder::new(shape);
        let (mut key, mut into) = (random.random_range(0..200_u64), Vec::new());
        for unit in 0..4 {
            let (mut image, mut put) = (vec![0; bytes as usize], Vec::new());
            loop {
                let kind = match (kinds, random.random_range(0..3)) {
                    (Kinds::Deletes, 0) => Kind::Delete,
                    _ => Kind::Put,
                };
                let value: Vec<u8> = (0..value_bytes).map(|_| random.random()).collect();
                let value = if kind == Kind::Delete { &[][..] } else { &value };
                let whole = &key.to_be_bytes()[8 - usize::from(key_bytes)..];
                let entry = Entry { key: whole, kind, value };
                if !builder.push(&mut image, &entry) {
                    break;
                }
                put.push((whole.to_vec(), kind, value.to_vec()));
                let most = if random.random_range(0..far) == 0 { 8 * key_bytes } else { bits };
                let gap = random.random_range(1..=u64::MAX >> (64 - most));
                let last = u64::MAX >> (64 - 8 * key_bytes);
                match key.checked_add(gap).filter(|next| *next <= last) {
                    Some(next) => key = next,
                    None if key < last => key = last,
                    None => break,
                }
            }
            // An entry is at most a byte longer than with a whole key.
            let plain = UnitShape::new(bytes, entries, kinds).unwrap();
            let least = plain.capacity(key_bytes.into(), value_bytes.into());
            let longer = usize::from(key_bytes + value_bytes + 1);
            let last = u64::MAX >> (64 - 8 * key_bytes);
            assert!(key == last || (put.len() + 2) * longer >= least * (longer - 1), "{shape:?}");
            if put.is_empty() {
                break;
            }
            let seed = Seed { unit, ..SEED };
            builder.seal(seed, &mut image);
            let held = shape.verify(seed, &image, &mut into).unwrap();
            let entries = (0..held.len()).map(|place| held.entry(place));
            let entries = entries.map(|it| (it.key.to_vec(), it.kind, it.value.to_vec()));
            assert_eq!(entries.collect::<Vec<_>>(), put);
            image[bytes as usize / 2] ^= 4;
            assert!(shape.verify(seed, &image, &mut into).is_err());
            builder = builder.next();
        }
    }
}

#[test]
fn random_keys_take_the_bits_of_their_mean_gap_and_one_and_a_half() {
    let mut random = ChaCha8Rng::seed_from_u64(12);
    let shape = UnitShape::new(4096, EntryShape::fixed(8, 8), Kinds::Puts).unwrap();
    let (shape, mut units, mut entries) = (GapShape::new(shape).unwrap(), 0, 0);
    let mut keys: Vec<u64> = (0..100_000).map(|_| random.random()).collect();
    keys.sort_unstable();
    let (mut builder, mut image) = (GapBuilder::new(shape), vec![0; 4096]);
    for key in keys {
        while !builder.push(&mut image, &Entry::put(&key.to_be_bytes(), &[7; 8])) {
            (builder, units) = (builder.next(), units + 1);
            image.fill(0);
        }
        entries += 1;
    }
    // 2^64 / 100,000 has 47.4 bits.
    let bits = f64::from(units * 4096 * 8) / f64::from(entries) - 64.0;
    assert!((48.0..49.5).contains(&bits), "{bits}");
}

#[test]
fn gaps_that_mean_nothing_are_refused_or_unpacked_without_a_panic() {
    let mut random = ChaCha8Rng::seed_from_u64(13);
    let (mut unpacked, mut refused, mut into) = (0, 0, Vec::new());
    for _ in 0..20_000 {
        let shape = gap_shape(&mut random);
        let packed = shape.packed();
        let mut bytes: Vec<u8> = (0..packed.bytes()).map(|_| random.random()).collect();
        bytes[packed.checksum_bytes()] = random.random_range(0..8);
        if !packed.is_short() {
            bytes[packed.checksum_bytes() + 1] = 0;
        }
        SEED.seal(&packed, &mut bytes);
        match shape.verify(SEED, &bytes, &mut into) {
            Ok(unit) => {
                unpacked += 1;
                assert!((1..unit.len()).all(|at| unit.entry(at - 1).key < unit.entry(at).key));
            }
            Err(_) => refused += 1,
        }
    }
    assert!(unpacked > 500 && refused > 500, "{unpacked} {refused}");
}
