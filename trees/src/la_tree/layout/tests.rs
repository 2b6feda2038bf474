use alloc::vec;
use alloc::vec::Vec;

use device::{Geometry, Page};
use store::{EntryShape, Width};

use super::{
    FRAGMENT_HEADER_BYTES, Link, NodeId, Owner, PageShape, Place, codec, node_bytes, open_fragment,
    seal_fragment, seal_node, verify_node,
};

fn toshiba(spare: u32) -> Geometry {
    Geometry::new(512, 32, 8192).unwrap().with_spare(spare).unwrap()
}

fn shape(spare: u32) -> PageShape {
    PageShape::new(&toshiba(spare), 128).unwrap()
}

#[test]
fn a_page_of_512_bytes_holds_four_small_nodes_and_three_without_a_spare_area() {
    assert_eq!(node_bytes(16, EntryShape::fixed(4, 4), 512), 128);
    assert_eq!(shape(16).nodes_per_page(), 4);
    assert_eq!(shape(0).nodes_per_page(), 3);
    assert!(shape(0).first() > 0 && shape(16).first() == 0);
    let node = codec(128, Width::Fixed(4), Width::Fixed(4)).unwrap();
    assert_eq!(node.capacity(4, 4), 15, "16 entries less the header of 8 bytes");
}

#[test]
fn nodes_of_every_shape_fit_their_page_and_hold_four_entries() {
    for room in [496, 512, 2048, 4080] {
        for fanout in [1, 4, 16, 64, u32::MAX] {
            for (key, value) in [(4, 4), (4, 0), (8, 4), (8, 8), (24, 40)] {
                let bytes = node_bytes(fanout, EntryShape::fixed(key, value), room);
                assert!((64..=room).contains(&bytes), "{fanout}, {key}+{value}: {bytes}");
                let inner = codec(bytes, Width::Fixed(key), Width::Fixed(4)).unwrap();
                assert!(inner.capacity(usize::from(key), 4) >= 4);
            }
            assert!(node_bytes(fanout, EntryShape::VARIABLE, room) <= room);
        }
    }
}

#[test]
fn every_place_is_one_run_of_units_of_one_page() {
    for shape in [shape(0), shape(16)] {
        let room = shape.room() as usize;
        let mut numbers = std::collections::BTreeSet::new();
        for page in [0, 1, 8191] {
            for offset in (0..room).step_by(8) {
                for bytes in (8..=128).step_by(8) {
                    let place = shape.place(Page(page), offset, bytes);
                    assert_eq!(place.is_some(), offset + bytes <= room, "{offset}, {bytes}");
                    let Some(place) = place else { continue };
                    assert!(numbers.insert(place), "each has a number of its own");
                    assert_eq!(shape.locate(place), (Page(page), offset as u32, bytes));
                    assert!(shape.is_place(place, 8192) && !shape.is_place(place, page));
                }
            }
            assert_eq!(shape.place(Page(page), 0, 136), None, "longer than a node");
            assert_eq!(shape.place(Page(page), 0, 0), None);
        }
        assert_eq!(shape.place(Page(u32::MAX), 0, 128), None);
        assert_eq!(shape.places(u32::MAX), None);
        assert!(numbers.into_iter().all(|place| place.0 < shape.places(8192).unwrap()));
    }
}

#[test]
fn a_node_takes_the_units_that_are_in_use() {
    let shape = shape(16);
    for (used, stored) in [(0, 8), (8, 8), (9, 16), (88, 88), (128, 128)] {
        assert_eq!(shape.stored_bytes(used), stored);
    }
    // Where places could not be numbered otherwise, units are larger, up to whole nodes.
    let large = Geometry::new(2048, 64, 1 << 20).unwrap().with_spare(64).unwrap();
    let coarse = PageShape::new(&large, 128).unwrap();
    assert!(coarse.places(large.pages()).is_some());
    assert!(coarse.stored_bytes(9) > 16);
    assert_eq!(coarse.stored_bytes(128), 128);
    let odd = PageShape::new(&toshiba(16), 125).unwrap();
    assert_eq!(odd.stored_bytes(9), 125, "it has no units");
}

#[test]
fn nodes_that_do_not_fit_a_page_are_refused() {
    assert!(PageShape::new(&toshiba(16), 512).is_some());
    assert!(PageShape::new(&toshiba(15), 512).is_none());
    assert!(PageShape::new(&toshiba(16), 63).is_none());
}

#[test]
fn a_node_that_is_another_or_elsewhere_or_changed_is_refused() {
    let mut node = [7; 128];
    seal_node(NodeId(5), Place(9), &mut node);
    assert_eq!(verify_node(NodeId(5), Place(9), &node), Ok(()));
    assert!(verify_node(NodeId(6), Place(9), &node).is_err());
    assert!(verify_node(NodeId(5), Place(8), &node).is_err());
    for byte in 0..node.len() {
        node[byte] ^= 4;
        assert!(verify_node(NodeId(5), Place(9), &node).is_err(), "byte {byte}");
        node[byte] ^= 4;
    }
    assert!(verify_node(NodeId(5), Place(9), &[]).is_err());
}

/// Three fragments of one buffer, the newest last, with their links.
fn chain(owner: Owner) -> Vec<(Link, Vec<u8>)> {
    let mut chain: Vec<(Link, Vec<u8>)> = Vec::new();
    for number in 0..3_u8 {
        let before = chain.last().map(|(link, _)| *link);
        let mut bytes = vec![number; FRAGMENT_HEADER_BYTES + 20];
        let at = (Page(100 + u32::from(number)), 40);
        let link = seal_fragment(owner, at, before, &mut bytes).unwrap();
        chain.push((link, bytes));
    }
    chain
}

#[test]
fn fragments_lead_back_from_the_newest_to_the_oldest() {
    let chain = chain(Owner(3));
    let mut link = Some(chain[2].0);
    for number in [2, 1, 0_u8] {
        let at = link.unwrap();
        assert_eq!(shape(16).check_link(at, 200), Ok(()));
        let (before, entries) = open_fragment(Owner(3), at, &chain[usize::from(number)].1).unwrap();
        assert_eq!(entries, [number; 20]);
        link = before;
    }
    assert_eq!(link, None);
}

#[test]
fn a_fragment_of_another_buffer_or_place_or_with_other_bytes_is_refused() {
    let (link, mut bytes) = chain(Owner(3)).pop().unwrap();
    assert!(open_fragment(Owner(3), link, &bytes).is_ok());
    assert!(open_fragment(Owner(4), link, &bytes).is_err());
    assert!(open_fragment(Owner(3), Link { offset: 41, ..link }, &bytes).is_err());
    assert!(open_fragment(Owner(3), Link { page: Page(9), ..link }, &bytes).is_err());
    for length in 0..bytes.len() {
        assert!(open_fragment(Owner(3), link, &bytes[..length]).is_err(), "{length} bytes");
    }
    for byte in 0..bytes.len() {
        bytes[byte] ^= 0x80;
        assert!(open_fragment(Owner(3), link, &bytes).is_err(), "byte {byte}");
        bytes[byte] ^= 0x80;
    }
}

#[test]
fn links_to_where_no_fragment_can_be_are_refused() {
    let shape = shape(0);
    assert_eq!(shape.room(), 496);
    let good = Link { page: Page(199), offset: 16, bytes: 496 };
    assert_eq!(shape.check_link(good, 200), Ok(()));
    for bad in [
        Link { page: Page(200), ..good },
        Link { offset: 15, ..good },
        Link { offset: 17, ..good },
        Link { offset: u16::MAX, bytes: u16::MAX, ..good },
        Link { bytes: FRAGMENT_HEADER_BYTES as u16, ..good },
    ] {
        assert!(shape.check_link(bad, 200).is_err(), "{bad:?}");
    }
    assert_eq!(Link::decode(Link::encode(Some(good))), Ok(Some(good)));
    assert_eq!(Link::decode(Link::encode(None)), Ok(None));
    assert!(Link::decode([0xFF, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0]).is_err());
}
