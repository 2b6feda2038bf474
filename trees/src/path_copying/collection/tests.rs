use super::Collection;
use crate::path_copying::bare_tree::tests::{full, verify};
use crate::path_copying::layout::Division;

#[test]
fn the_emptiest_blocks_are_emptied_with_nothing_lost() {
    for division in [Division::Halves, Division::Even, Division::Whole] {
        let mut tree = full(division);
        let mut collection = Collection::new(0.1, 4);
        let released = |tree: &super::BareTree<'_>| tree.nodes.log.released_blocks();
        while released(&tree) < 12 {
            let before = (released(&tree), tree.standing().live_pages);
            assert!(collection.empty_blocks(&mut tree).unwrap());
            assert!(released(&tree) > before.0 || tree.is_parted);
        }
        verify(&mut tree, &[]);
    }
}

#[test]
fn blocks_are_collected_in_turn_while_few_are_free() {
    for division in [Division::Halves, Division::Even, Division::Whole] {
        let mut tree = full(division);
        let mut collection = Collection::new(0.0, 4);
        collection.collect_lazily(&mut tree, 0).unwrap();
        assert_eq!((collection.victim, tree.nodes.log.released_blocks()), (None, 0));
        collection.collect = 1.0;
        for _ in 0..8 {
            collection.collect_lazily(&mut tree, 0).unwrap();
        }
        assert_eq!(tree.nodes.log.released_blocks(), 2, "a block in four steps");
        verify(&mut tree, &[]);
    }
}
