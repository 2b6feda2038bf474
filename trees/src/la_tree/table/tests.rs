use alloc::vec::Vec;

use device::Page;

use super::{BufferRecord, CHUNK, NodeTable};
use crate::la_tree::layout::{Link, NodeId, Owner, Place};

fn table(nodes: u32) -> NodeTable {
    let mut table = NodeTable::new();
    for number in 0..nodes {
        assert_eq!(table.allocate(), Some(NodeId(number)));
        assert!(table.move_to(NodeId(number), Place(2 * number)));
    }
    table
}

#[test]
fn a_node_is_found_where_it_was_last_written() {
    let mut table = table(3000);
    assert_eq!(table.place(NodeId(2999)), Some(Place(5998)));
    assert!(table.move_to(NodeId(7), Place(6001)));
    assert_eq!(table.place(NodeId(7)), Some(Place(6001)));
    assert_eq!(table.place(NodeId(3000)), None);
    let fresh = table.allocate().unwrap();
    assert!(table.contains(fresh));
    assert_eq!(table.place(fresh), None, "it was not written yet");
}

#[test]
fn released_numbers_are_handed_out_again_and_only_once() {
    let mut table = table(10);
    for number in [3, 8] {
        assert!(table.release(NodeId(number)));
        assert!(!table.release(NodeId(number)), "it has no node any more");
        assert!(!table.move_to(NodeId(number), Place(1)));
        assert!(!table.contains(NodeId(number)));
    }
    assert!(!table.release(NodeId(10)));
    assert!(!table.release(NodeId(u32::MAX)));
    assert_eq!(table.nodes(), 8);
    let mut numbers: Vec<u32> = (0..3).map(|_| table.allocate().unwrap().0).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [3, 8, 10]);
    assert_eq!((table.nodes(), table.high_water()), (11, 11));
}

#[test]
fn the_table_takes_four_bytes_a_node_and_at_most_one_chunk_more() {
    for nodes in [1, 1024, 1025, 20_000] {
        let bytes = table(nodes).memory_bytes();
        let chunks = (nodes as usize).div_ceil(CHUNK);
        let most = 4 * u64::from(nodes) + 4 * CHUNK as u64 + 32 * chunks.max(4) as u64;
        assert!(bytes <= most, "{nodes} nodes: {bytes} bytes");
    }
}

/// The table that is made of what is stored of another.
fn restored(before: &NodeTable, places: u32) -> Result<NodeTable, &'static str> {
    let mut after = NodeTable::with_numbers(before.high_water())?;
    for number in 0..before.high_water() {
        after.fill(number, before.stored(number), places)?;
    }
    after.release_unwritten();
    Ok(after)
}

#[test]
fn a_table_that_is_stored_comes_back_with_its_free_numbers() {
    let mut before = table(2000);
    for number in [0, 5, 1999] {
        assert!(before.release(NodeId(number)));
    }
    let mut after = restored(&before, 4000).unwrap();
    assert_eq!((after.nodes(), after.high_water()), (1997, 2000));
    for number in 0..2000 {
        assert_eq!(after.place(NodeId(number)), before.place(NodeId(number)));
    }
    assert_eq!(after.allocate(), Some(NodeId(0)));
}

#[test]
fn tables_that_are_too_long_or_lead_nowhere_are_refused() {
    let table = table(50);
    assert!(restored(&table, 99).is_ok());
    assert!(restored(&table, 98).is_err(), "its last place is 98");
    assert!(NodeTable::with_numbers(u32::MAX).is_err());
}

fn record() -> BufferRecord {
    let newest = Link { page: Page(9), offset: 100, bytes: 64 };
    BufferRecord {
        newest: Some(newest),
        below_batch: Some(Link { page: Page(7), ..newest }),
        fragments: 3,
        stored_bytes: 192,
        entries: 40,
        bytes: 330,
        batch: 12,
        batch_ascends: false,
        ..BufferRecord::new(Owner(77), 12, 11)
    }
}

#[test]
fn a_buffer_record_that_is_stored_comes_back() {
    for record in [record(), BufferRecord::new(Owner(1), 1, 1)] {
        let mut stored = Vec::new();
        record.encode(&mut stored);
        assert_eq!(stored.len(), BufferRecord::BYTES);
        stored.push(5);
        assert_eq!(BufferRecord::decode(&stored), Ok((record, &[5_u8][..])));
        for length in 0..BufferRecord::BYTES {
            assert!(BufferRecord::decode(&stored[..length]).is_err(), "{length} bytes");
        }
    }
}

#[test]
fn a_buffer_record_that_contradicts_itself_is_refused() {
    for wrong in [
        BufferRecord { newest: None, ..record() },
        BufferRecord { stored_bytes: 0, ..record() },
        BufferRecord { batch: 41, ..record() },
        BufferRecord { bytes: 39, ..record() },
        BufferRecord { nodes: 0, ..record() },
        BufferRecord { leaves: 13, ..record() },
    ] {
        let mut stored = Vec::new();
        wrong.encode(&mut stored);
        assert!(BufferRecord::decode(&stored).is_err(), "{wrong:?}");
    }
}
