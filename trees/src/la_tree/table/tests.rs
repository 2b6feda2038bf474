use alloc::vec::Vec;

use device::Page;

use super::{BufferRecord, CHUNK, FREE, NodeTable};
use crate::la_tree::layout::{Link, NodeId, Owner, Place};

impl NodeTable {
    /// True if a node has this number.
    fn contains(&self, id: NodeId) -> bool {
        self.value(id.0).is_some_and(|value| value & FREE == 0)
    }
}

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
        after.fill(number, before.stored(number), |place| place < Place(places))?;
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

const NEWEST: Link = Link { page: Page(9), offset: 100, bytes: 64 };

fn record() -> BufferRecord {
    let mut record = BufferRecord::new(Owner(77), 12, true);
    (0..40).for_each(|_| record.add_entry(9));
    record.add_fragments(NEWEST, 3);
    record.set_dirty(false);
    record
}

#[test]
fn a_buffer_record_that_is_stored_comes_back() {
    for record in [record(), BufferRecord::new(Owner(1), 1, true)] {
        let mut stored = Vec::new();
        record.encode(&mut stored);
        assert_eq!(stored.len(), BufferRecord::BYTES);
        stored.push(5);
        assert_eq!(BufferRecord::decode(&stored), Ok((record, &[5_u8][..])));
        for length in 0..BufferRecord::BYTES {
            assert!(BufferRecord::decode(&stored[..length]).is_err(), "{length} bytes");
        }
    }
    let record = record();
    assert_eq!((record.entries(), record.bytes, record.fragments()), (40, 360, 3));
    assert_eq!((record.nodes(), record.leaves()), (12, 11));
    assert_eq!(record.newest(), Some(NEWEST));
}

#[test]
fn a_buffer_record_that_contradicts_itself_is_refused() {
    let mut stored = Vec::new();
    record().encode(&mut stored);
    let with = |at: usize, bytes: &[u8]| {
        let mut stored = stored.clone();
        stored[at..at + bytes.len()].copy_from_slice(bytes);
        BufferRecord::decode(&stored).map(|(record, _)| record)
    };
    assert_eq!(with(0, &[]), Ok(record()));
    assert!(with(0, &[0xFF; 8]).is_err(), "fragments, and no newest one");
    assert!(with(12, &39_u32.to_le_bytes()).is_err(), "fewer bytes than entries");
    assert!(with(19, &[0x90]).is_err(), "it changed since");
    assert!(with(20, &[0, 0]).is_err(), "a newest fragment, and none");
    assert!(with(20, &[41, 0]).is_err(), "more fragments than entries");
    assert!(with(22, &[0, 0]).is_err(), "no nodes");
}

#[test]
fn counts_that_a_record_has_no_room_for_stay_the_greatest() {
    let mut record = record();
    record.add_fragments(NEWEST, 70_000);
    assert_eq!(record.fragments_most(), u32::MAX, "as many as there may be");
    record.add_nodes(70_000);
    record.add_nodes(-5);
    assert!(record.has_nodes(100_000, true), "it is not known how many");
    assert!(!record.has_nodes(100_000, false));
    assert!(record.above(30, false).has_nodes(30, false));
}
