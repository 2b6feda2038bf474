use alloc::vec::Vec;

use device::{Cause, Page};

use super::{Choices, Head, Root, State};
use crate::btree::HEIGHT_MOST;
use crate::la_tree::buffers::tests::{SHAPE, chip};
use crate::la_tree::buffers::{self, Buffers};
use crate::la_tree::cache::CacheSize;
use crate::la_tree::layout::NodeId;
use crate::la_tree::nodes::Nodes;
use crate::la_tree::storage::Storage;
use crate::la_tree::stream::Pending;

/// Numbers in a chunk of each table.
const CHUNKS: (u32, u32) = (8, 4);
const BUFFERS: u32 = 10;
const PLAIN: u32 = 30;

/// Nodes and buffers, and the chip below them.
struct Parts {
    log: Storage<'static>,
    nodes: Nodes,
    buffers: Buffers,
}

/// None yet, with a pool of so many bytes.
fn none(pool: u64) -> (Nodes, Buffers) {
    let buffers = buffers::tests::none(pool);
    (Nodes::new(SHAPE, buffers.pages, CacheSize::Fixed(12), CHUNKS).unwrap(), buffers)
}

/// Nodes with and without buffers, in which entries wait, in the pool and on flash.
fn parts() -> Parts {
    let (mut log, (mut nodes, mut buffers)) = (chip(), none(6000));
    for _ in 0..PLAIN {
        nodes.create(&mut log, false, 0).unwrap();
    }
    for number in 0..BUFFERS {
        nodes.create(&mut log, true, 1).unwrap();
        buffers.begin(&log, number, number % 2 == 0).unwrap();
    }
    let mut parts = Parts { log, nodes, buffers };
    for number in 0..2000_u32 {
        parts.append(number % (BUFFERS - 1), number);
    }
    parts
}

impl Parts {
    fn append(&mut self, buffer: u32, number: u32) {
        let (key, value) = ((number % 64).to_be_bytes(), number.to_be_bytes());
        let entry = Pending { key: &key, value: Some(&value) };
        self.buffers.append(&mut self.log, buffer, &entry, Cause::Update).unwrap();
    }

    fn state(&mut self) -> State<'_, 'static> {
        State { log: &mut self.log, nodes: &mut self.nodes, buffers: &mut self.buffers }
    }

    /// Writes a checkpoint; returns its root record.
    fn write(&mut self) -> Vec<u8> {
        self.state().write_tables().unwrap();
        let head = Head {
            shape: SHAPE,
            choices: Choices { node_bytes: 128, levels_a_buffer: 2 },
            root: NodeId::of_buffer(0),
            height: 2,
            entries: 0,
            levels: [1; HEIGHT_MOST],
            next_owner: self.buffers.next_owner,
            first: 0,
            first_owner: 0,
            stage: None,
        };
        let mut record = head.encode(1000);
        self.nodes.plain.encode(&mut record);
        self.nodes.buffered.encode(&mut record);
        self.state().write_pool(&mut record).unwrap();
        record
    }

    /// Becomes what the record says, on the same chip, with a pool of so many bytes.
    fn read(mut self, record: &[u8], pool: u64) -> index::Result<Parts> {
        (self.nodes, self.buffers) = none(pool);
        self.state().read(&Root::decode(record, CHUNKS)?)?;
        Ok(self)
    }

    /// Where nodes stand.
    fn places(&self) -> Vec<(u32, u32)> {
        let plain = (0..PLAIN).map(|number| self.nodes.plain.numbers.stored(number));
        let buffered = (0..BUFFERS).map(|number| self.nodes.buffered.numbers.stored(number));
        (0..).zip(plain.chain(buffered)).collect()
    }

    /// The value that waits for each key, buffer by buffer, and what is counted of the buffers.
    fn waiting(&mut self) -> Vec<(Option<Vec<u8>>, u32)> {
        let mut all = Vec::new();
        for number in 0..BUFFERS {
            let entries = self.buffers.record(number).entries();
            for key in 0..64_u32 {
                let value = &mut |entry: &Pending<'_>| entry.value.unwrap().to_vec();
                let key = key.to_be_bytes();
                let found = self.buffers.find(&mut self.log, number, &key, value).unwrap();
                all.push((found, entries));
            }
        }
        all
    }
}

fn pages(chunks: &[Option<Page>]) -> Vec<Page> {
    chunks.iter().map(|page| page.unwrap()).collect()
}

#[test]
fn what_was_written_is_read_again_into_a_pool_of_any_size() {
    for pool in [6000, 3000, 20_000] {
        let mut parts = parts();
        let record = parts.write();
        let (places, waiting) = (parts.places(), parts.waiting());
        let mut read = parts.read(&record, pool).unwrap();
        assert_eq!(read.places(), places);
        assert_eq!(read.waiting(), waiting, "with a pool of {pool} bytes");
        assert!(waiting.iter().filter(|(value, _)| value.is_some()).count() > 500);
    }
}

#[test]
fn only_chunks_that_changed_are_written_again() {
    let mut parts = parts();
    parts.write();
    let before = [pages(&parts.nodes.plain.chunks), pages(&parts.nodes.buffered.chunks)];
    assert_eq!(before.each_ref().map(Vec::len), [4, 3]);
    parts.write();
    let after = [pages(&parts.nodes.plain.chunks), pages(&parts.nodes.buffered.chunks)];
    assert_eq!(after, before, "nothing changed");

    // The last buffer is in the last chunk; a node without buffer in the second.
    parts.append(BUFFERS - 1, 7);
    parts.buffers.evict(&mut parts.log, BUFFERS - 1, Cause::Update).unwrap();
    parts.nodes.free(&mut parts.log, NodeId(9)).unwrap();
    parts.write();
    let after = [pages(&parts.nodes.plain.chunks), pages(&parts.nodes.buffered.chunks)];
    let changed = |table: usize| {
        let both = before[table].iter().zip(&after[table]);
        both.map(|(before, after)| before != after).collect::<Vec<_>>()
    };
    assert_eq!(changed(0), [false, true, false, false]);
    assert_eq!(changed(1), [false, false, true]);
}

#[test]
fn a_page_of_another_chunk_or_of_none_is_damage() {
    let mut parts = parts();
    let record = parts.write();
    let list = pages(&parts.nodes.plain.chunks);
    let list: Vec<u8> = list.iter().flat_map(|page| page.0.to_le_bytes()).collect();
    let at = record.windows(list.len()).position(|bytes| bytes == list).unwrap();
    let swapped = [&list[4..8], &list[..4]].concat();
    let empty = 2000_u32.to_le_bytes();
    for wrong in [&swapped[..], &empty] {
        let mut record = record.clone();
        record[at..at + wrong.len()].copy_from_slice(wrong);
        (parts.nodes, parts.buffers) = none(6000);
        let root = Root::decode(&record, CHUNKS).unwrap();
        assert!(parts.state().read(&root).is_err());
    }
}

#[test]
fn a_root_record_that_is_cut_off_is_refused() {
    let mut parts = parts();
    let record = parts.write();
    // What is behind the list of the pool's pages only a tree on a disk has.
    for bytes in 0..record.len() {
        assert!(Root::decode(&record[..bytes], CHUNKS).is_err(), "{bytes} of {}", record.len());
    }
    assert!(Root::decode(&record, CHUNKS).is_ok());
}
