use alloc::vec::Vec;

use device::{Block, Geometry, ProgramOrder};

use super::super::block::{BlockShape, RecordPlace};
use super::{BLOCK_BYTES, NODE_BYTES, Table};

#[test]
fn a_table_comes_back_from_its_checkpoint() {
    let chip = Geometry::new(512, 16, 8).unwrap().with_order(ProgramOrder::Ascending);
    let shape = BlockShape::new(&chip, None).unwrap();
    let mut table = Table::new(8, 4);
    let nodes = [table.allocate(), table.allocate(), table.allocate()];
    for (block, node) in [(3, nodes[0]), (3, nodes[1]), (5, nodes[2])] {
        if table.live_in(Block(block)) == 0 {
            table.begin_block(Block(block));
        }
        let page = table.state(Block(block)).take_node(&shape).unwrap();
        assert_eq!(table.put(node, Block(block), page), None);
    }
    table.set_record(nodes[1], RecordPlace { page: 2, offset: 40, bytes: 30 });
    assert_eq!(table.free(nodes[2]), Some(Block(5)));
    table.end_block(Block(5));
    let mut bytes = Vec::new();
    let written = table.write::<()>(&mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    assert_eq!((written, bytes.len()), (Ok(()), table.bytes()));

    let mut read = Table::new(8, 4);
    let (nodes_part, blocks_part) = bytes.split_at(3 * NODE_BYTES);
    for node in nodes_part.chunks_exact(NODE_BYTES) {
        assert!(read.read_node(node.first_chunk().unwrap(), &shape));
    }
    assert!(!read.is_sound());
    for block in blocks_part.chunks_exact(BLOCK_BYTES) {
        assert!(read.read_block(block.first_chunk().unwrap()));
    }
    assert!(read.is_sound());
    for node in nodes {
        assert_eq!(read.place(node), table.place(node));
    }
    assert_eq!((read.live(), read.used(), read.exists(nodes[2])), (2, 1, false));
    assert_eq!(read.allocate(), nodes[2], "numbers are given again");
}
