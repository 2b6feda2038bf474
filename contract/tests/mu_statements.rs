//! What the mu*-Tree's paper says of single operations, which no map and no power cut would show.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "the figures use more of it")]
#[path = "mu_figures/stage.rs"]
mod stage;

use device::{Cause, Tally};
use index::registry::find;
use index::{EntryShape, Index, Update};
use stage::{Stage, TREES, key};

fn tally(index: &dyn Index, cause: Cause) -> Tally {
    *index.meter().unwrap().tally(cause)
}

/// Pages that updates wrote, at once or from the operation buffer.
fn written(index: &dyn Index) -> u64 {
    [Cause::Update, Cause::Flush].map(|cause| tally(index, cause).page_programs).iter().sum()
}

fn put(index: &mut dyn Index, key: [u8; 4]) {
    index.update(&[Update::Put { key: &key, value: &[7; 4] }]).unwrap();
}

/// Section 5.1: alpha 0.9, beta 0.5, delta 1/256, and collection at 10 % of free blocks.
#[test]
fn the_defaults_of_mu_star_are_those_of_the_paper() {
    let parameters = find("mu-star").unwrap().parameters;
    let default = |name| {
        let parameter = parameters.iter().find(|it| it.name == name).unwrap();
        parameter.default.parse::<f64>().unwrap()
    };
    let found = ["alpha", "beta", "delta", "collect"].map(default);
    assert_eq!(found, [0.9, 0.5, 1.0 / 256.0, 0.1]);
}

/// Section 5.1: nothing is collected before less than a tenth of the blocks is free.
#[test]
fn collection_begins_when_a_tenth_of_the_chip_is_free() {
    for tree in TREES {
        let (mut index, _) = Stage::paper(tree, 64 << 20).make();
        let pages = (64 << 20) / 4096;
        let mut number = 0;
        while tally(&*index, Cause::Reclamation) == Tally::default() {
            put(&mut *index, key(number % 10_000));
            number += 1;
            assert!(number < pages as u32, "{tree}: nothing was collected");
        }
        let used = index.meter().unwrap().total().page_programs as f64 / f64::from(pages);
        println!("{tree}: collection begins with {:.1} % used", used * 100.0);
        // Four of the 128 blocks are the log's.
        assert!((0.83..=0.91).contains(&used), "{tree}: {used}");
    }
}

/// Equation 6: a page that lives is moved by reading a path and writing a page.
#[test]
fn moving_a_page_reads_one_path_and_writes_one_page() {
    for tree in TREES {
        let (mut index, _) = Stage::paper(tree, 16 << 20).make();
        (0..100_000).for_each(|number| put(&mut *index, key(number)));
        // All in one leaf, or a few, so that the others live on in most blocks.
        (0..30_000).for_each(|number| put(&mut *index, [0, 0, 0, number as u8]));
        let moves = tally(&*index, Cause::Reclamation);
        let height = u64::from(index.statistics().height);
        let nodes = if tree == "b-plus" { height } else { 1 };
        println!("{tree}, height {height}: {moves:?}");
        assert!(moves.block_erases > 10 && moves.page_programs > 100, "{tree}: {moves:?}");
        let reads = moves.page_programs as f64 / nodes as f64 * height as f64;
        let ratio = moves.page_reads as f64 / reads;
        assert!((0.99..1.01).contains(&ratio), "{tree}: {ratio} times as many reads: {moves:?}");
    }
}

/// Section 4.3.2: a delete can split nodes, for they are rewritten by a layout with smaller leaves.
#[test]
fn a_delete_splits_a_leaf_that_is_larger_than_leaves_are_now() {
    let (mut index, witness) = Stage::paper("mu-star", 16 << 20).make();
    let low = |number| [key(number)[0] & 0x7F, key(number)[1], key(number)[2], key(number)[3]];
    let high = |number| [key(number)[0] | 0x80, key(number)[1], key(number)[2], key(number)[3]];
    // Their leaves are nine tenths full.
    (0..6_500).for_each(|number| put(&mut *index, low(number)));
    let wide = witness.layout().unwrap();
    // They make the leaves smaller, but do not come to those of the low keys.
    (6_500..35_000).for_each(|number| put(&mut *index, high(number)));
    let narrow = witness.layout().unwrap();
    assert!(narrow.height == wide.height && narrow.leaf < 0.85 * wide.leaf, "{narrow:?}");
    let mut splits = 0;
    for number in 0..500 {
        let before = written(&*index);
        index.update(&[Update::Delete { key: &low(number) }]).unwrap();
        splits += u64::from(written(&*index) - before > 1);
    }
    println!("{splits} of 500 deletes split a leaf");
    assert!(splits > 0);
}

/// Nodes are split in halves where entries vary in length, too, and keys have a beginning in common
/// which a node keeps once.
#[test]
fn leaves_of_entries_of_many_lengths_are_half_full_and_more() {
    for tree in TREES {
        let stage = Stage { shape: EntryShape::VARIABLE, ..Stage::paper(tree, 16 << 20) };
        let (mut index, witness) = stage.make();
        let mut bytes = 0;
        for number in 0..20_000 {
            let bits = u32::from_be_bytes(key(number));
            let month = 1 + bits % 12;
            let key = format!("2013-{month:02} {:02} {}", bits / 12 % 28, bits / 336 % 5_000);
            let value = &[9; 60][..30 + bits as usize % 30];
            index.update(&[Update::Put { key: key.as_bytes(), value }]).unwrap();
            bytes += key.len() + value.len();
        }
        let leaf = if tree == "b-plus" { 1.0 } else { witness.layout().unwrap().leaf };
        let fill = bytes as f64 / (index.statistics().live_pages as f64 * 4096.0 * leaf);
        println!("{tree}: {:.0} % full", 100.0 * fill);
        assert!(fill > 0.5, "{tree}: {fill}");
    }
}
