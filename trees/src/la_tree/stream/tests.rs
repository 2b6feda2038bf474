use alloc::vec;
use alloc::vec::Vec;

use store::{EntryShape, Width};

use super::{Form, Pending, Writer, find};

fn keys(count: u32) -> Vec<[u8; 4]> {
    (0..count).map(|number| number.wrapping_mul(0x9E37_79B9).to_be_bytes()).collect()
}

#[test]
fn eight_entries_of_4_and_4_bytes_take_one_byte_more_than_their_bytes() {
    let form = Form::new(EntryShape::fixed(4, 4));
    let mut bytes = [0; 100];
    let mut writer = Writer::new(form, &mut bytes);
    for key in keys(8) {
        assert!(writer.push(&Pending { key: &key, value: Some(b"four") }));
    }
    assert_eq!((writer.bytes(), writer.entries()), (65, 8));
}

#[test]
fn what_is_written_is_read_in_order_puts_and_deletes_of_every_shape() {
    let variable = EntryShape { key: Width::Fixed(4), value: Width::Variable };
    for shape in [EntryShape::fixed(4, 4), EntryShape::VARIABLE, variable] {
        let form = Form::new(shape);
        let mut bytes = vec![0; 8000];
        let keys = keys(40);
        let long = [7; 300];
        let value = |place: usize| match (shape.value, place % 3) {
            (_, 0) => None,
            (Width::Variable, 1) => Some(&long[..place * 5]),
            _ => Some(&b"four"[..]),
        };
        let mut writer = Writer::new(form, &mut bytes);
        for (place, key) in keys.iter().enumerate() {
            assert!(writer.push(&Pending { key, value: value(place) }));
        }
        let end = writer.bytes();
        let mut reader = form.reader(&bytes[..end]);
        for (place, key) in keys.iter().enumerate() {
            let (entry, _) = reader.next().unwrap().unwrap();
            assert_eq!(entry, Pending { key, value: value(place) }, "{shape}, {place}");
        }
        assert_eq!(reader.next(), Ok(None));
    }
}

#[test]
fn an_entry_without_room_is_not_written() {
    let form = Form::new(EntryShape::fixed(4, 4));
    let mut bytes = [0; 16];
    let mut writer = Writer::new(form, &mut bytes);
    assert!(writer.push(&Pending { key: b"key1", value: Some(b"four") }));
    assert!(!writer.push(&Pending { key: b"key2", value: Some(b"four") }));
    assert!(writer.push(&Pending { key: b"key2", value: None }));
    assert_eq!(writer.bytes(), 13);
}

#[test]
fn the_newest_entry_for_a_key_is_found() {
    let form = Form::new(EntryShape::fixed(4, 4));
    let mut bytes = [0; 64];
    let mut writer = Writer::new(form, &mut bytes);
    for value in [Some(&b"old "[..]), Some(b"new "), None, Some(b"last")] {
        assert!(writer.push(&Pending { key: b"key1", value }));
    }
    assert!(writer.push(&Pending { key: b"key2", value: None }));
    let end = writer.bytes();
    let newest = |key| find(form, &bytes[..end], key).unwrap().map(|entry| entry.value);
    assert_eq!(newest(b"key1"), Some(Some(&b"last"[..])));
    assert_eq!(newest(b"key2"), Some(None));
    assert_eq!(newest(b"key3"), None);
}

#[test]
fn no_bytes_make_the_reader_panic() {
    for shape in [EntryShape::fixed(4, 4), EntryShape::VARIABLE, EntryShape::fixed(0, 0)] {
        let form = Form::new(shape);
        for seed in 0..2000_u32 {
            let length = seed % 70;
            let bytes: Vec<u8> = (0..length)
                .map(|place| (seed.wrapping_mul(0x9E37_79B9) >> (place % 25)) as u8)
                .collect();
            let mut reader = form.reader(&bytes);
            let mut entries = 0;
            while let Ok(Some(_)) = reader.next() {
                entries += 1;
            }
            assert!(entries <= bytes.len(), "{shape}, seed {seed}");
        }
    }
}

#[test]
fn streams_that_are_cut_or_name_other_kinds_are_refused() {
    let form = Form::new(EntryShape::fixed(4, 4));
    let mut bytes = [0; 17];
    let mut writer = Writer::new(form, &mut bytes);
    assert!(writer.push(&Pending { key: b"key1", value: Some(b"four") }));
    assert!(find(form, &bytes[..8], b"key1").is_err());
    bytes[0] |= 2;
    assert!(find(form, &bytes[..9], b"key1").is_err());
    assert!(find(form, &bytes[..1], b"key1").is_err(), "kinds without an entry");
}
