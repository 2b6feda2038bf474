use std::vec::Vec;

use device::Block;

use super::{Cost, Victims};

fn victims(most: usize) -> Victims {
    let mut victims = Victims::new(most);
    for (block, lives) in [(5, 9), (1, 4), (7, 6), (2, 15), (3, 4), (9, 8)] {
        victims.offer(Block(block), lives);
    }
    victims
}

#[test]
fn the_emptiest_blocks_are_kept() {
    assert_eq!(victims(3).lives(), 14);
    assert_eq!(victims(3).in_order(), [Block(1), Block(3), Block(7)]);
    assert_eq!(victims(10).lives(), 46);
    let mut some = victims(2);
    assert_eq!(some.dead().count(), 0);
    some.offer(Block(8), 0);
    assert_eq!(some.dead().collect::<Vec<_>>(), [Block(8)]);
}

#[test]
fn as_many_go_as_gain_most_for_what_is_written_and_fit_what_is_free() {
    let chosen = |above: u64, free: u64| {
        let mut victims = victims(6);
        let cost = |lives| Cost { moved: lives + above, ..Cost::default() };
        victims.keep(victims.best(cost, (16, free)).map_or(0, |best| best.count));
        victims.in_order()
    };
    // Each block gains by itself: 12 pages for 4, and no more beside it gain as much.
    assert_eq!(chosen(0, 100), [Block(1)]);
    // 20 pages more, however many are emptied.
    assert_eq!(chosen(20, 100).len(), 5);
    assert_eq!(chosen(20, 36), [Block(1), Block(3), Block(7)]);
    assert_eq!(chosen(20, 27), []);
    assert_eq!(chosen(60, 1000), []);
}
