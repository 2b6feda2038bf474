//! The root record: the table, and what it takes to read it.
//!
//! ```text
//!  | tree, shape | root's number u32 | height u8 | list u8 | buffer and mode u16 | entries u64 |
//!  | levels u8 | nodes of each u32 | numbers u32 | sequence u64 | the table |
//! ```

use alloc::vec::Vec;

use store::{EntryShape, LEVELS_MOST};

use super::ListTree;
use crate::btree::At;
use crate::sector_lists::{Choices, NodeId, Table};
use index::{Result, root_record};

/// Bytes of a root record beside the table, at most.
pub(super) const BESIDE_BYTES: u64 = 160;

/// Bytes of the root's number, the height and what was chosen.
const CHOICES: usize = 8;
const ENTRIES: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) shape: EntryShape,
    pub(super) choices: Choices,
    pub(super) node: NodeId,
    pub(super) level: u8,
    pub(super) entries: u64,
    pub(super) levels: [u32; LEVELS_MOST],
    pub(super) numbers: u32,
    pub(super) sequence: u64,
}

pub(super) const fn damaged() -> store::Error {
    store::Error::NotAnIndex { is_ours: true, what: "its root record is damaged" }
}

impl Root {
    pub(super) fn of(tree: &ListTree<'_>) -> Self {
        let ListTree { store, btree, choices, .. } = tree;
        Root {
            shape: store.shape.codecs.shape,
            choices: *choices,
            node: btree.root.id,
            level: btree.root.level,
            entries: btree.entries,
            levels: store.levels,
            numbers: store.table.numbers().len() as u32,
            sequence: store.sequence,
        }
    }

    pub(super) fn encode(&self, name: &str, table: &Table) -> Vec<u8> {
        let head = root_record::encode(name, self.shape);
        let mut record = Vec::with_capacity(BESIDE_BYTES as usize + table.written_bytes());
        record.extend_from_slice(&head);
        record.extend_from_slice(&self.node.0.to_le_bytes());
        record.push(self.level + 1);
        record.push(self.choices.list as u8);
        record.extend_from_slice(&self.choices.pack().to_le_bytes());
        record.extend_from_slice(&self.entries.to_le_bytes());
        record.push(LEVELS_MOST as u8);
        for nodes in self.levels {
            record.extend_from_slice(&nodes.to_le_bytes());
        }
        record.extend_from_slice(&self.numbers.to_le_bytes());
        record.extend_from_slice(&self.sequence.to_le_bytes());
        table.write(&mut record);
        record
    }

    /// The choices in the first bytes of a root record of the tree called `name`.
    pub(super) fn choices(head: &[u8], name: &str) -> Result<(EntryShape, Choices)> {
        let (shape, rest) = root_record::decode(head, name)?;
        let ([.., list, p0, p1], _) = rest.split_first_chunk::<CHOICES>().ok_or(damaged())?;
        let is_sound = (1..=super::LIST_MOST).contains(&u64::from(*list));
        let choices = Choices::unpack(usize::from(*list), u16::from_le_bytes([*p0, *p1]));
        Ok((shape, choices.filter(|_| is_sound).ok_or(damaged())?))
    }

    /// What else the first bytes tell: the root and its level, and the entries.
    pub(super) fn head(head: &[u8], name: &str) -> Result<(At<NodeId>, u64)> {
        let (_, rest) = root_record::decode(head, name)?;
        let (first, rest) = rest.split_first_chunk::<CHOICES>().ok_or(damaged())?;
        let [n0, n1, n2, n3, height, ..] = *first;
        let level = height.checked_sub(1).filter(|level| usize::from(*level) < LEVELS_MOST);
        let id = NodeId(u32::from_le_bytes([n0, n1, n2, n3]));
        let entries = rest.first_chunk().ok_or(damaged())?;
        let root = At { id, level: level.ok_or(damaged())? };
        Ok((root, u64::from_le_bytes(*entries)))
    }

    /// A root record, and the bytes of its table.
    pub(super) fn decode<'r>(record: &'r [u8], name: &str) -> Result<(Self, &'r [u8])> {
        let (shape, choices) = Root::choices(record, name)?;
        let (_, rest) = root_record::decode(record, name)?;
        let (root, entries) = Root::head(record, name)?;
        let rest = rest.get(CHOICES + ENTRIES..).unwrap_or_default();
        let (count, mut rest) = rest.split_first().ok_or(damaged())?;
        if usize::from(*count) != LEVELS_MOST {
            return Err(damaged().into());
        }
        let mut levels = [0; LEVELS_MOST];
        for nodes in &mut levels {
            let (found, more) = rest.split_first_chunk().ok_or(damaged())?;
            (*nodes, rest) = (u32::from_le_bytes(*found), more);
        }
        let (numbers, rest) = rest.split_first_chunk().ok_or(damaged())?;
        let (sequence, table) = rest.split_first_chunk().ok_or(damaged())?;
        let root = Root {
            shape,
            choices,
            node: root.id,
            level: root.level,
            entries,
            levels,
            numbers: u32::from_le_bytes(*numbers),
            sequence: u64::from_le_bytes(*sequence),
        };
        Ok((root, table))
    }
}
