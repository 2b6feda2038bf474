use device::Geometry;
use index::Options;
use index::parameters::Settings;
use store::EntryShape;

use super::{Census, Chip};
use crate::la_tree::layout::Owner;
use crate::la_tree::plan::{PARAMETERS, Plan, choices};
use crate::la_tree::room::Room;
use crate::la_tree::table::BufferRecord;

fn plan() -> Plan {
    let chip = Geometry::new(2048, 64, 64).unwrap();
    let settings = Settings::parse("la-tree", PARAMETERS, core::iter::empty()).unwrap();
    let options = Options::new(EntryShape::fixed(4, 4), 64 << 10, settings);
    Plan::new(&options, options.shape, choices(&options, chip).unwrap(), chip).unwrap()
}

/// A tree of so many leaves with a tenth as many nodes above, on 60 blocks that the tree may use.
fn census(plan: &Plan, leaves: u32) -> Census<'_> {
    let mut levels = [0; 32];
    levels[..2].copy_from_slice(&[leaves, leaves / 10 + 1]);
    let nodes = u64::from(leaves + leaves / 10 + 1);
    let free_pages = 30 * 64;
    let chip = Chip { block: 64, good_blocks: 64, free_blocks: 30, free_pages, ..Chip::default() };
    Census { height: 2, levels, nodes, refill: (7, 7), chip, ..Census::of_none(plan) }
}

#[test]
fn puts_and_bytes_are_taken_until_the_room_that_was_counted_is_used_up() {
    let plan = plan();
    let now = census(&plan, 1000);
    let mut room = Room::default();
    assert!(!room.take(1, 20), "nothing was counted");
    room.count(&now, true);
    let mut taken = 0_u64;
    while room.take(100, 2000) {
        taken += 100;
    }
    assert!(taken > 1000, "{taken} puts find room");
    let grown = now.pages_grown(&now.demand(), now.demand().growth(taken));
    assert!(grown <= now.capacity().0, "{grown} pages, of {:?}", now.capacity());
    // From a checkpoint on it is counted anew, with the batch that was admitted last.
    room.begin(&now);
    assert!(room.take(100, 2000));
}

#[test]
fn a_generation_is_due_before_it_would_find_no_room() {
    let plan = plan();
    let mut now = census(&plan, 1000);
    while now.has_room_to_copy() && !now.is_due() {
        now.chip.free_pages -= 1;
        now.chip.free_blocks = (now.chip.free_pages / 64) as u32;
    }
    assert!(now.is_due() && now.has_room_to_copy());
    assert!(now.pages_left() >= now.pages_to_copy());
}

#[test]
fn what_a_buffer_holds_has_to_find_room_twice_before_it_is_emptied() {
    let plan = plan();
    let mut now = census(&plan, 1000);
    let mut record = BufferRecord::new(Owner(0), 11, true);
    now.chip.free_pages = now.pages_to_copy() + 100;
    assert!(now.has_room_to_empty(&record));
    while now.has_room_to_empty(&record) {
        record.add_entry(9);
        (now.pending[1], now.pending_bytes) = (record.entries().into(), record.bytes.into());
    }
    let pages = now.waiting_pages(now.bytes_waiting());
    assert!(2 * pages <= 100 && 4 * pages > 60, "{pages} pages wait");
    assert!(now.has_room_to_change(), "what is left suffices for a leaf");
}
