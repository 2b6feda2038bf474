use alloc::vec::Vec;

use device::{Geometry, ProgramOrder};

use super::{BlockShape, BlockState, RecordPlace};

fn chip(programs: u16, order: ProgramOrder) -> Geometry {
    Geometry::new(512, 32, 8192).unwrap().with_programs(programs).unwrap().with_order(order)
}

fn shape(programs: u16, order: ProgramOrder) -> BlockShape {
    BlockShape::new(&chip(programs, order), None).unwrap()
}

#[test]
fn a_block_has_as_many_log_pages_as_node_pages_unless_told_otherwise() {
    let half = shape(1, ProgramOrder::Any);
    assert_eq!((half.node_pages(), half.log_pages(), half.log_place(0)), (16, 16, 16));
    let chip = chip(1, ProgramOrder::Any);
    assert_eq!(BlockShape::new(&chip, Some(4)).unwrap().node_pages(), 28);
    for wrong in [0, 32, 33, u32::MAX] {
        assert_eq!(BlockShape::new(&chip, Some(wrong)), None);
    }
    let large = Geometry::new(4096, 256, 64).unwrap();
    assert_eq!(BlockShape::new(&large, None).unwrap().log_pages(), 128);
}

#[test]
fn without_partial_programs_every_write_of_deltas_takes_a_page() {
    let shape = shape(1, ProgramOrder::Any);
    let mut block = BlockState::default();
    for page in 0..16 {
        assert_eq!(block.take_log(&shape, 20), Some(RecordPlace { page, offset: 0, bytes: 20 }));
    }
    assert_eq!(block.take_log(&shape, 20), None, "the block is to be merged");
}

#[test]
fn with_partial_programs_writes_share_a_page_while_they_fit_and_may_be_programmed() {
    let shape = shape(4, ProgramOrder::Any);
    let mut block = BlockState::default();
    let places: Vec<_> = [200, 200, 200, 10, 10, 10, 10]
        .into_iter()
        .map(|bytes| block.take_log(&shape, bytes).map(|place| (place.page, place.offset)))
        .collect();
    let expected = [(0, 0), (0, 200), (1, 0), (1, 200), (1, 210), (1, 220), (2, 0)].map(Some);
    assert_eq!(places, expected);
    assert_eq!(block.take_log(&shape, 513), None);
    assert_eq!(block.take_log(&shape, 0), None);
}

#[test]
fn parts_of_a_long_page_begin_at_its_sectors() {
    let chip = Geometry::new(2048, 32, 64).unwrap().with_programs(4).unwrap();
    let places = |content| {
        let shape = BlockShape::new(&chip, None).unwrap().with_content(content);
        let mut block = BlockState::default();
        let mut place = |bytes| block.take_log(&shape, bytes);
        [300, 20, 490, 20, 20].map(|bytes| place(bytes).map(|at| (at.page, at.offset)))
    };
    let whole = [(0, 0), (0, 512), (0, 1024), (0, 1536), (1, 0)];
    assert_eq!(places(2048), whole.map(Some));
    // The tag of 16 bytes is in the first sector.
    let behind_a_tag = [(0, 0), (0, 496), (0, 1008), (0, 1520), (1, 0)];
    assert_eq!(places(2032), behind_a_tag.map(Some));
}

#[test]
fn the_logs_hold_what_fits_them_and_never_more() {
    for (programs, bytes) in [(1, 512), (64, 12), (64, 100), (4, 100), (2, 512)] {
        let shape = shape(programs, ProgramOrder::Any);
        let mut block = BlockState::default();
        let mut writes = 0;
        while let Some(place) = block.take_log(&shape, bytes) {
            assert!(place.is_in(&shape) && usize::from(place.bytes) == bytes);
            writes += 1;
        }
        let a_page = (512 / bytes).min(usize::from(programs));
        assert_eq!(writes, 16 * a_page, "{programs} programs, {bytes} bytes");
    }
}

#[test]
fn a_node_born_after_the_first_log_goes_to_another_block_where_programs_are_ordered() {
    for (order, closed) in [(ProgramOrder::Ascending, true), (ProgramOrder::Any, false)] {
        let shape = shape(1, order);
        let mut block = BlockState::default();
        assert_eq!(block.take_node(&shape), Some(0));
        assert_eq!(block.take_node(&shape), Some(1));
        assert!(!block.has_logs());
        block.take_log(&shape, 20).unwrap();
        assert!(block.has_logs());
        assert_eq!(block.take_node(&shape).is_none(), closed);
        assert_eq!(block.counts().0, if closed { 2 } else { 3 });
    }
}

#[test]
fn a_block_takes_only_as_many_nodes_as_it_has_pages_for() {
    let shape = shape(1, ProgramOrder::Ascending);
    let mut block = BlockState::default();
    let taken = (0..40).filter_map(|_| block.take_node(&shape)).count();
    assert_eq!(taken, 16);
}

#[test]
fn a_place_comes_back_and_is_told_from_one_beyond_the_block() {
    let shape = shape(4, ProgramOrder::Any);
    let place = RecordPlace { page: 15, offset: 300, bytes: 212 };
    assert_eq!(RecordPlace::from_bytes(place.to_bytes()), place);
    assert!(place.is_in(&shape));
    for wrong in [RecordPlace { page: 16, ..place }, RecordPlace { bytes: 213, ..place }] {
        assert!(!wrong.is_in(&shape), "{wrong:?}");
    }
}
