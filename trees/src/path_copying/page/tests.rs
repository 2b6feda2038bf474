use alloc::vec;
use alloc::vec::Vec;

use device::Page;
use store::EntryShape;
use store::node::Stored;

use super::{Damage, HEADER_BYTES, Header, check_page, header_checksum, seal_node};
use crate::path_copying::layout::{Division, Pages, Share};
use crate::path_copying::policy::{Splits, State};

const ADDRESS: Page = Page(77);

fn pages() -> Pages {
    Pages::new(2048, EntryShape::fixed(4, 4), Division::Even).unwrap()
}

fn header(pages: &Pages) -> Header {
    let layout = pages.layout(Share::from_ratio(0.75).unwrap(), 3);
    let next = pages.layout(Share::from_ratio(0.746).unwrap(), 3);
    Header {
        sequence: 0x0123_4567_89AB,
        live_pages: 321,
        layout,
        lowest: 0,
        highest: 2,
        has_root: true,
        next: State { layout: next, splits: Splits { inner: 7, leaf: 99 } },
    }
}

fn page(pages: &Pages, header: &Header) -> Vec<u8> {
    let mut page = vec![0xFF; pages.page_bytes() as usize];
    for level in header.lowest..=header.highest {
        let node = &mut page[pages.bytes_of(&header.layout, level).unwrap()];
        let codec = pages.codec(&header.layout, level).unwrap();
        codec.initialise(node, level);
        assert!(codec.insert(node, 0, b"key.", Stored::inline(b"1234"), &mut []));
        seal_node(&codec, ADDRESS, header.sequence, node);
    }
    header.encode(ADDRESS, &mut page);
    page
}

#[test]
fn a_header_says_what_was_written_into_it() {
    let pages = pages();
    for (lowest, highest, has_root) in [(0, 2, true), (1, 2, true), (0, 1, false), (1, 1, false)] {
        let header = Header { lowest, highest, has_root, ..header(&pages) };
        let page = page(&pages, &header);
        assert_eq!(Header::decode(&pages, ADDRESS, &page), Ok(header));
        assert_eq!(check_page(&pages, ADDRESS, &page), Ok(header));
    }
}

#[test]
fn every_changed_byte_of_a_header_and_of_what_nodes_use_is_found() {
    let pages = pages();
    let header = header(&pages);
    let mut page = page(&pages, &header);
    let used = (0..3).flat_map(|level| {
        let range = pages.bytes_of(&header.layout, level).unwrap();
        let codec = pages.codec(&header.layout, level).unwrap();
        range.start..range.start + codec.used_bytes(&page[range])
    });
    for byte in (0..HEADER_BYTES).chain(used.collect::<Vec<_>>()) {
        for bit in [0x01, 0x80] {
            page[byte] ^= bit;
            let found = check_page(&pages, ADDRESS, &page);
            assert!(matches!(found, Err(Damage::Checksum { .. })), "byte {byte}: {found:?}");
            page[byte] ^= bit;
        }
    }
    assert_eq!(check_page(&pages, ADDRESS, &page), Ok(header));
}

#[test]
fn a_torn_program_never_passes_for_a_page() {
    let pages = pages();
    let whole = page(&pages, &header(&pages));
    for end in 0..whole.len() {
        let mut torn = whole.clone();
        torn[end..].fill(0xFF);
        if torn == whole {
            continue;
        }
        assert!(check_page(&pages, ADDRESS, &torn).is_err(), "torn at {end}");
    }
    let erased = vec![0xFF; whole.len()];
    assert_eq!(check_page(&pages, ADDRESS, &erased), Err(Damage::Erased));
}

#[test]
fn a_page_in_the_wrong_place_is_refused() {
    let pages = pages();
    let page = page(&pages, &header(&pages));
    let moved = Header::decode(&pages, Page(78), &page);
    assert!(matches!(moved, Err(Damage::Checksum { .. })));
}

/// Bytes with a good checksum but any content: what they lead to must be inside the page.
#[test]
fn no_header_with_a_good_checksum_leads_outside_of_its_page() {
    let pages = pages();
    let mut state = 1u64;
    let mut accepted = 0;
    for round in 0..200_000 {
        let mut bytes = [0; HEADER_BYTES];
        header(&pages).encode(ADDRESS, &mut bytes);
        for _ in 0..=round % 4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = 24 + (state >> 33) as usize % (HEADER_BYTES - 24);
            bytes[at] = (state >> 48) as u8;
        }
        let checksum = header_checksum(ADDRESS, &bytes);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        let Ok(read) = Header::decode(&pages, ADDRESS, &bytes) else {
            continue;
        };
        accepted += 1;
        for level in 0..=u8::MAX {
            let Some(range) = pages.bytes_of(&read.layout, level) else {
                assert!(!read.holds(level), "{read:?}");
                continue;
            };
            assert!(range.start >= HEADER_BYTES && range.end <= 2048, "{read:?}");
            assert!(pages.codec(&read.layout, level).is_some(), "{read:?}");
        }
    }
    assert!(accepted > 1000, "{accepted}");
}

#[test]
fn short_pages_are_refused() {
    let pages = pages();
    let page = page(&pages, &header(&pages));
    for length in [0, 1, HEADER_BYTES - 1, HEADER_BYTES, 100, 2047] {
        assert!(check_page(&pages, ADDRESS, &page[..length]).is_err(), "{length}");
    }
}
