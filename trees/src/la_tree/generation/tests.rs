use alloc::vec::Vec;

use device::{Geometry, Page};
use store::EntryShape;

use super::{Generation, Stage, Task};
use crate::la_tree::buffer_pool::PoolSize;
use crate::la_tree::buffers::{BufferSizes, Buffers};
use crate::la_tree::cache::CacheSize;
use crate::la_tree::layout::{Link, NodeId, Owner, PageShape};
use crate::la_tree::nodes::Nodes;
use crate::la_tree::stream::Form;
use crate::la_tree::table::BufferRecord;

/// Three buffers of each kind, of owners 0 to 5, and as many nodes, besides two without buffers.
fn parts() -> (Buffers, Nodes) {
    let shape = EntryShape::fixed(4, 4);
    let pages = PageShape::new(&Geometry::new(512, 32, 64).unwrap(), 128).unwrap();
    let pool = PoolSize::fixed(4096);
    let sizes = BufferSizes { pool, entry_most: 12, entry_least: 4, fences: 0 };
    let mut buffers = Buffers::new(Form::new(shape), pages, &sizes);
    let mut nodes = Nodes::new(shape, pages, CacheSize::Fixed(12), (128, 16)).unwrap();
    for number in 0..6 {
        chain(&mut buffers, number, number, number >= 3);
        nodes.number(64, true).unwrap();
    }
    for _ in 0..2 {
        nodes.number(64, false).unwrap();
    }
    (buffers, nodes)
}

fn chain(buffers: &mut Buffers, number: u32, owner: u32, is_leaf: bool) {
    let mut record = BufferRecord::new(Owner(owner), 1, is_leaf);
    record.add_entry(9);
    record.add_fragments(Link { page: Page(1), offset: 16, bytes: 40 }, 1);
    buffers.set_record(number, record);
}

fn tasks(generation: &mut Generation, buffers: &Buffers, nodes: &Nodes) -> Vec<Task> {
    core::iter::from_fn(|| generation.next(buffers, nodes)).collect()
}

#[test]
fn buffers_of_inner_subtrees_leave_old_pages_first_and_nodes_last() {
    let (mut buffers, nodes) = parts();
    // Owners 0, 2, 3 and 4 are older than the generation.
    chain(&mut buffers, 1, 7, false);
    let mut generation = Generation::begin(0, 5, false);
    let mut order = Vec::new();
    while let Some(task) = generation.next(&buffers, &nodes) {
        if let Task::Buffer(number) = task {
            let is_leaf = buffers.record(number).is_leaf();
            chain(&mut buffers, number, 8, is_leaf);
        }
        order.push(task);
    }
    let buffers_first = [0, 2, 3, 4].map(Task::Buffer);
    assert_eq!(order[..4], buffers_first);
    let plain = [0, 1].map(|number| Task::Node(NodeId(number)));
    let buffered = [0, 1, 2, 3, 4, 5].map(|number| Task::Node(NodeId::of_buffer(number)));
    assert_eq!(order[4..], [&plain[..], &buffered[..]].concat());
    assert_eq!(generation.stage, None);
}

#[test]
fn a_buffer_whose_number_was_passed_has_its_turn_before_the_nodes() {
    let (mut buffers, nodes) = parts();
    let mut generation = Generation::begin(0, 9, false);
    generation.stage = Some(Stage::LeafBuffers(3));
    let mut emptied = Vec::new();
    while let Some(Task::Buffer(number)) = generation.next(&buffers, &nodes) {
        let is_leaf = buffers.record(number).is_leaf();
        chain(&mut buffers, number, 9, is_leaf);
        emptied.push(number);
    }
    assert_eq!(emptied, [3, 4, 5, 0, 1, 2], "inner ones were left out, and are old");
}

#[test]
fn a_generation_goes_on_where_it_was() {
    let (buffers, nodes) = parts();
    let mut whole = Generation::begin(0, 0, false);
    let all = tasks(&mut whole, &buffers, &nodes);
    let mut begun = Generation::begin(0, 0, false);
    let first = begun.next(&buffers, &nodes).unwrap();
    let mut read = Generation { stage: begun.stage, ..Generation::begin(0, 0, false) };
    assert!(read.is_busy());
    let rest = tasks(&mut read, &buffers, &nodes);
    assert_eq!([&[first][..], &rest].concat(), all);
    assert!(!read.is_busy());
}
