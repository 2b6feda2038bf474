//! A generation of pages, and what is left of the one before it: which buffers and nodes have to
//! leave old pages, in which order.
//!
//! A buffer has old fragments only if its owner is older than the generation, for a buffer gets a
//! new owner whenever it is emptied.

use super::buffers::Buffers;
use super::layout::NodeId;
use super::nodes::Nodes;
use super::table::BufferRecord;

/// How far reclamation came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Emptying the buffers of inner subtrees, from this one on; then those of leaf subtrees.
    InnerBuffers(u32),
    LeafBuffers(u32),
    /// Copying nodes without buffers, from this one on; then those with buffers.
    Plain(u32),
    Buffered(u32),
}

/// What is to leave old pages next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// What a buffer has on flash.
    Buffer(u32),
    /// A node, if it stands in an old page.
    Node(NodeId),
}

/// The present generation of pages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Generation {
    /// The sequence of its first page.
    pub(super) first: u64,
    /// Owners below this are older.
    pub(super) first_owner: u32,
    /// What is still to be done, if pages before it are in use.
    pub(super) stage: Option<Stage>,
    /// True if old blocks wait for a checkpoint to be erased.
    pub(super) is_waiting: bool,
    /// True if buffers are copied, for emptying them might take more pages than are free.
    pub(super) copies: bool,
    /// True if it was begun to make room for emptying, and nothing was emptied, changed or
    /// forgotten since.
    pub(super) is_vain: bool,
}

impl Generation {
    /// A generation that begins with such a sequence and owner.
    pub(super) const fn begin(first: u64, first_owner: u32, copies: bool) -> Self {
        let stage = Some(Stage::InnerBuffers(0));
        Generation { first, first_owner, stage, copies, is_waiting: false, is_vain: false }
    }

    /// True if no generation can begin yet: the last one is being cleared, or waits for its erase.
    pub(super) const fn is_busy(&self) -> bool {
        self.stage.is_some() || self.is_waiting
    }

    /// What is to be done next; `None` once nothing is left in old pages.
    pub(super) fn next(&mut self, buffers: &Buffers, nodes: &Nodes) -> Option<Task> {
        loop {
            let old = |from: u32, is_leaf| {
                (from..buffers.records.len() as u32).find(|number| {
                    let record = buffers.record(*number);
                    self.is_old(&record) && record.is_leaf() == is_leaf
                })
            };
            let (task, next) = match self.stage? {
                Stage::InnerBuffers(from) => match old(from, false) {
                    Some(number) => (Task::Buffer(number), Stage::InnerBuffers(number + 1)),
                    None => {
                        self.stage = Some(Stage::LeafBuffers(0));
                        continue;
                    }
                },
                Stage::LeafBuffers(from) => match old(from, true) {
                    Some(number) => (Task::Buffer(number), Stage::LeafBuffers(number + 1)),
                    None => {
                        // A buffer that was split or merged meanwhile may have got a number that
                        // was passed.
                        let are_left = buffers.records.iter().any(|record| self.is_old(record));
                        self.stage = Some(match are_left {
                            true => Stage::InnerBuffers(0),
                            false => Stage::Plain(0),
                        });
                        continue;
                    }
                },
                Stage::Plain(next) if next < nodes.plain.numbers.high_water() => {
                    (Task::Node(NodeId(next)), Stage::Plain(next + 1))
                }
                Stage::Plain(_) => {
                    self.stage = Some(Stage::Buffered(0));
                    continue;
                }
                Stage::Buffered(next) if next < nodes.buffered.numbers.high_water() => {
                    (Task::Node(NodeId::of_buffer(next)), Stage::Buffered(next + 1))
                }
                Stage::Buffered(_) => {
                    self.stage = None;
                    continue;
                }
            };
            self.stage = Some(next);
            return Some(task);
        }
    }

    fn is_old(&self, record: &BufferRecord) -> bool {
        record.is_chained() && record.owner.0 < self.first_owner
    }
}

#[cfg(test)]
mod tests;
