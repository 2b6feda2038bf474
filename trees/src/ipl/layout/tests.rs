use alloc::vec;
use alloc::vec::Vec;

use device::Page;
use store::EntryShape;

use super::{Address, Delta, EARLIER_MOST, FRONT_BYTES_MOST, begin_record, read_record, seal};
use crate::ipl::block::RecordPlace;

const SHAPE: EntryShape = EntryShape::fixed(4, 4);

const DELTAS: [Delta<'static>; 3] = [
    Delta::Put { key: b"key1", value: b"four" },
    Delta::Delete { key: b"key2" },
    Delta::Cut { key: b"key3" },
];

const ADDRESS: Address = Address { page: Page(40), offset: 100, node: 3 };

fn place(number: usize) -> RecordPlace {
    RecordPlace { page: number as u16, offset: 7, bytes: 90 }
}

/// A record with so many before it and the deltas above.
fn record(earlier: usize) -> Vec<u8> {
    let mut record = vec![0; FRONT_BYTES_MOST];
    let mut bytes = begin_record(&mut record, None).unwrap();
    for number in 0..earlier {
        bytes = begin_record(&mut record, Some(place(number))).unwrap();
    }
    record.truncate(bytes);
    for delta in DELTAS {
        let mut one = vec![0; delta.bytes(SHAPE)];
        delta.write(SHAPE, &mut one);
        record.extend_from_slice(&one);
    }
    seal(ADDRESS, &mut record);
    record
}

#[test]
fn deltas_of_every_shape_come_back() {
    for shape in [EntryShape::fixed(4, 4), EntryShape::fixed(4, 0), EntryShape::VARIABLE] {
        let value: &[u8] = if shape == EntryShape::fixed(4, 0) { b"" } else { b"four" };
        let deltas = [Delta::Put { key: b"key1", value }, DELTAS[1], DELTAS[2]];
        let mut bytes = Vec::new();
        for delta in &deltas {
            let mut one = vec![0; delta.bytes(shape)];
            delta.write(shape, &mut one);
            bytes.extend_from_slice(&one);
        }
        let mut rest = &bytes[..];
        for delta in deltas {
            let (read, more) = Delta::read(shape, rest).unwrap();
            assert_eq!(read, delta);
            rest = more;
        }
        assert!(rest.is_empty() && Delta::read(shape, rest).is_err());
    }
}

#[test]
fn a_record_names_those_before_it_the_oldest_first() {
    for earlier in 0..=EARLIER_MOST {
        let record = record(earlier);
        let (places, deltas) = read_record(ADDRESS, &record).unwrap();
        let places: Vec<_> = places.iter().map(|it| RecordPlace::from_bytes(*it)).collect();
        assert_eq!(places, (0..earlier).map(place).collect::<Vec<_>>());
        assert_eq!(Delta::read(SHAPE, deltas).unwrap().0, DELTAS[0]);
    }
    let mut full = record(EARLIER_MOST);
    assert_eq!(begin_record(&mut full, Some(place(9))), None);
    assert_eq!(full, record(EARLIER_MOST));
}

#[test]
fn a_record_that_changed_or_stands_elsewhere_is_refused() {
    let mut record = record(2);
    for wrong in [
        Address { page: Page(41), ..ADDRESS },
        Address { offset: 99, ..ADDRESS },
        Address { node: 2, ..ADDRESS },
    ] {
        assert!(read_record(wrong, &record).is_err(), "{wrong:?}");
    }
    for bytes in 0..record.len() {
        assert!(read_record(ADDRESS, &record[..bytes]).is_err(), "cut off after {bytes}");
    }
    for byte in 0..record.len() {
        record[byte] ^= 1;
        assert!(read_record(ADDRESS, &record).is_err(), "byte {byte}");
        record[byte] ^= 1;
    }
}

#[test]
fn no_bytes_make_the_readers_panic() {
    for seed in 0..3000_u32 {
        let length = seed % 60;
        let mut bytes: Vec<u8> = (0..length)
            .map(|place| (seed.wrapping_mul(0x9E37_79B9) >> (place % 25)) as u8)
            .collect();
        seal(ADDRESS, &mut bytes);
        let deltas = read_record(ADDRESS, &bytes).map_or(&bytes[..], |(_, deltas)| deltas);
        for shape in [EntryShape::fixed(4, 4), EntryShape::VARIABLE] {
            let mut rest = deltas;
            while let Ok((_, more)) = Delta::read(shape, rest) {
                assert!(more.len() < rest.len(), "seed {seed}");
                rest = more;
            }
        }
    }
}
