use alloc::vec;

use device::Page;
use store::EntryShape;
use store::node::Stored;

use super::{Brief, CopiedPath};
use crate::path_copying::layout::{Division, Pages, Share};

#[test]
fn a_copy_is_known_until_another_node_or_another_use_takes_its_room() {
    let pages = Pages::new(2048, EntryShape::fixed(4, 4), Division::Even).unwrap();
    let layout = pages.layout(Share::HALF, 3);
    let (brief, codec) = (Brief { layout, lowest: 0 }, pages.codec(&layout, 2).unwrap());
    let mut node = vec![0xFF; codec.node_bytes()];
    codec.initialise(&mut node, 2);
    assert!(codec.insert(&mut node, 0, b"key.", Stored::inline(b"1234"), &mut []));
    let mut path = CopiedPath::new(&pages, 8, 4096);
    let at = (Page(7), 2);
    let known = (&brief, 0, 5);
    let holds = |path: &CopiedPath, node: &[u8]| path.holds(at, known, &codec, node);
    assert!(path.copy(at, (&brief, 0), &codec, &node) && !holds(&path, &node));
    path.know(2, 5);
    assert!(holds(&path, &node));
    assert!(!path.holds((Page(8), 2), known, &codec, &node), "it is of another page");
    assert!(!path.holds(at, (&brief, 0, 6), &codec, &node), "its page was written again");
    assert!(!path.holds(at, (&brief, 8, 5), &codec, &node), "it stands elsewhere");
    for byte in 0..codec.used_bytes(&node) {
        let mut other = node.clone();
        other[byte] ^= 4;
        assert!(!holds(&path, &other), "byte {byte} is another");
    }
    let leaf = pages.codec(&layout, 0).unwrap();
    let behind = codec.node_bytes();
    assert!(path.copy((Page(9), 0), (&brief, behind), &leaf, &[0xFF; 2048]));
    assert!(holds(&path, &node), "the leaf stands behind it");
    assert!(path.copy((Page(9), 0), (&brief, behind - 1), &leaf, &[0xFF; 2048]));
    assert!(!holds(&path, &node), "the leaf stands in it");
    assert!(path.copy(at, (&brief, 0), &codec, &node));
    path.know(2, 5);
    assert!(path.room(8).is_some() && !holds(&path, &node));
}

/// A path through three levels: the second of the root's three children, and the first of this
/// one's two.
#[test]
fn a_key_leads_to_the_leaf_between_the_nearest_separators() {
    let pages = Pages::new(2048, EntryShape::fixed(4, 4), Division::Even).unwrap();
    let layout = pages.layout(Share::HALF, 3);
    let mut path = CopiedPath::new(&pages, 8, 4096);
    let nodes: [(&[&[u8; 4]], usize); 3] =
        [(&[b"cat.", b"cow."], 0), (&[b"bee.", b"elk."], 0), (&[b"ant.", b"bat.", b"owl."], 1)];
    let mut start = 0;
    for (level, (keys, place)) in nodes.into_iter().enumerate() {
        let level = level as u8;
        let codec = pages.codec(&layout, level).unwrap();
        let mut node = vec![0xFF; codec.node_bytes()];
        codec.initialise(&mut node, level);
        for (at, key) in keys.iter().enumerate() {
            assert!(codec.insert(&mut node, at, *key, Stored::inline(b"1234"), &mut []));
        }
        assert!(path.copy((Page(7), level), (&Brief { layout, lowest: 0 }, start), &codec, &node));
        path.go_on(level, place);
        start += codec.node_bytes();
    }
    // To the left of the path stands "bat.", to the right "elk.".
    for (key, leads) in [
        (b"bas.", false),
        (b"bat.", true),
        (b"bed.", true),
        (b"elj.", true),
        (b"elk.", false),
        (b"owl.", false),
    ] {
        assert_eq!(path.leads_to(key, 3), leads, "{key:?}");
    }
    // In a tree of two levels nothing stands to the left.
    assert!(path.leads_to(b"aaa.", 2) && !path.leads_to(b"elk.", 2));
    assert!(path.amend(b"cat.", None, &mut []) && !path.amend(b"cow.", None, &mut []));
    assert!(path.amend(b"dog.", Some(b"1234"), &mut []) && path.amend(b"eel.", None, &mut []));
    assert_eq!(store::node::count(path.node(0)), 2);
}
