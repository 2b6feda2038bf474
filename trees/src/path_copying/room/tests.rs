use device::Geometry;
use store::EntryShape;

use super::super::model::{mu, star};
use super::Room;

#[test]
fn more_live_the_fewer_inner_nodes_a_sweep_writes_beside_them() {
    let chip = Geometry::new(2048, 64, 256).unwrap();
    let shape = EntryShape::fixed(4, 4);
    let most = |policy: &super::Policy, inner_part: u64| {
        let room = Room::of(policy, 3, chip, (256, 4));
        let fits = |leaves: &u64| room.fits(*leaves, leaves / inner_part);
        (1..chip.pages().into()).take_while(fits).last().unwrap() * 100 / u64::from(chip.pages())
    };
    assert_eq!(most(&mu(2048, shape), 40), 85);
    let shares = [120, 40, 15].map(|part| most(&star(2048, shape), part));
    assert_eq!(shares, [84, 81, 75]);
}

#[test]
fn sweeps_gain_something_however_even_the_garbage_is() {
    let policy = star(2048, EntryShape::fixed(4, 4));
    for (block, blocks) in [(8, 40), (16, 100), (64, 32), (64, 1024)] {
        let chip = Geometry::new(2048, block, blocks).unwrap();
        let room = Room::of(&policy, 3, chip, (blocks, 3));
        for part in [4, 15, 40, 120] {
            let inner_of = |leaves: u64| leaves / part;
            let full = (1..).take_while(|most| room.fits(*most, inner_of(*most))).last();
            let Some(full) = full else { continue };
            let (reserve, apart) =
                (room.reserve(inner_of(full)), room.apart_blocks(inner_of(full)));
            // A change was made: fewer blocks are free than are to be. Every other one has as
            // much dead in it as any, and the first sweep frees none.
            let change = reserve - 2 * apart - 1;
            let free = reserve - change - apart;
            let lives = full / (room.blocks - reserve);
            assert!(lives < room.block && apart < free, "{chip:?}, {part}: {lives}");
        }
    }
}
