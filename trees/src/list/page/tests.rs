use alloc::vec;
use alloc::vec::Vec;

use device::Page;
use store::{EntryShape, Width};

use super::{Form, HEADER_BYTES, Header, Item, Root, check};

const SHAPES: [EntryShape; 4] = [
    EntryShape::fixed(4, 4),
    EntryShape::VARIABLE,
    EntryShape { key: Width::Variable, value: Width::Fixed(4) },
    EntryShape { key: Width::Fixed(4), value: Width::Variable },
];

#[test]
fn an_entry_longer_than_a_range_holds_is_refused() {
    // A range that has no room for one would read the list for ever.
    let form = Form::new(512, EntryShape::VARIABLE).unwrap();
    let most = form.entry_bytes_most();
    let longer = vec![7; most];
    for (key, is_taken) in [(&b""[..], true), (b"k", false)] {
        let mut bytes = Vec::new();
        form.append(Item { key, value: Some(&longer) }, &mut bytes);
        assert_eq!(form.last(&bytes).is_ok(), is_taken, "a key of {} bytes", key.len());
    }
}

#[test]
fn entries_of_every_shape_come_back_from_the_newest_to_the_oldest() {
    for shape in SHAPES {
        let form = Form::new(512, shape).unwrap();
        let items = [
            Item { key: b"key1", value: Some(b"four") },
            Item { key: b"key2", value: None },
            Item { key: b"key1", value: Some(b"five") },
        ];
        let mut bytes = Vec::new();
        for item in items {
            let before = bytes.len();
            form.append(item, &mut bytes);
            let length = form.bytes(item.key.len(), item.value.map(<[u8]>::len));
            assert_eq!(bytes.len() - before, length, "{shape}");
        }
        let mut rest = &bytes[..];
        for item in items.iter().rev() {
            let (found, before) = form.last(rest).unwrap();
            assert_eq!(&found, item, "{shape}");
            rest = before;
        }
        assert!(rest.is_empty() && form.last(rest).is_err(), "{shape}");
    }
}

#[test]
fn a_page_that_changed_or_stands_elsewhere_is_refused() {
    let mut content = vec![0xFF; 100];
    let header = Header { previous: Some(Page(7)), number: 3, used: 30 };
    header.seal(Page(9), &mut content);
    assert_eq!(check(Page(9), &content).unwrap(), (header, HEADER_BYTES + 30));
    assert!(check(Page(8), &content).is_err() && check(Page(9), &content[..40]).is_err());
    for byte in 0..HEADER_BYTES + 30 {
        content[byte] ^= 1;
        assert!(check(Page(9), &content).is_err(), "byte {byte}");
        content[byte] ^= 1;
    }
}

#[test]
fn a_root_record_says_what_was_written_into_it() {
    for (newest, pages) in [(None, 0), (Some(Page(5)), 12)] {
        let shape = EntryShape::fixed(4, 4);
        let root = Root { shape, newest, pages, entries: 99, open: b"open" };
        let record = root.encode();
        assert_eq!(Root::decode(&record).unwrap(), root);
        assert!(Root::decode(&record[..record.len() - 5]).is_err());
    }
}

#[test]
fn no_bytes_make_the_readers_panic() {
    for seed in 0..3000_u32 {
        let bytes: Vec<u8> = (0..seed % 60)
            .map(|place| (seed.wrapping_mul(0x9E37_79B9) >> (place % 25)) as u8)
            .collect();
        assert!(check(Page(1), &bytes).is_err(), "seed {seed}");
        assert!(Root::decode(&bytes).is_err(), "seed {seed}");
        for shape in SHAPES {
            let form = Form::new(512, shape).unwrap();
            let mut rest = &bytes[..];
            while let Ok((_, before)) = form.last(rest) {
                assert!(before.len() < rest.len(), "seed {seed}");
                rest = before;
            }
        }
    }
}
