//! What the root record holds: the choices, the head, which runs make which level, the manifest.

use alloc::vec::Vec;

use store::runs::RunId;
use store::{EntryShape, LogicalPage};

use super::head::HeadState;
use super::{Choices, Component};
use crate::btree::At;
use index::{Result, root_record};

/// What stands in the root record before the manifest.
pub(super) struct Root {
    pub(super) shape: EntryShape,
    pub(super) choices: Choices,
    pub(super) head: HeadState,
    /// The full head, and its pages.
    pub(super) full: Option<(HeadState, u32)>,
    /// The longest key, and the longest entry, that there ever was.
    pub(super) longest: (u32, u32),
    pub(super) components: Vec<Component>,
}

const DAMAGED: store::Error =
    store::Error::NotAnIndex { is_ours: true, what: "its root record is damaged" };

/// The most runs of fences above one run, and the most levels: with two fences a unit more units
/// than there are numbers.
const STACK_MOST: u8 = 33;
const LEVEL_MOST: u8 = 63;

/// The most bytes, and entries, of a head: those of 2^32 pages of 32 KiB.
const BYTES_MOST: u64 = 1 << 47;

impl Root {
    pub(super) fn encode(&self, tree: &str) -> Vec<u8> {
        let mut record = root_record::encode(tree, self.shape);
        let to = &mut record;
        to.extend_from_slice(&self.choices.pages.to_le_bytes());
        to.extend_from_slice(&self.choices.head_pages.to_le_bytes());
        to.extend_from_slice(&self.choices.ratio.to_le_bytes());
        to.push(u8::from(self.choices.is_deamortized));
        encode_head(&self.head, to);
        to.push(u8::from(self.full.is_some()));
        if let Some((full, pages)) = &self.full {
            encode_head(full, to);
            to.extend_from_slice(&pages.to_le_bytes());
        }
        to.extend_from_slice(&self.longest.0.to_le_bytes());
        to.extend_from_slice(&self.longest.1.to_le_bytes());
        to.push(self.components.len() as u8);
        for component in &self.components {
            to.extend_from_slice(&[component.level, component.stack.len() as u8]);
            to.extend_from_slice(&component.run.0.to_le_bytes());
            for run in &component.stack {
                to.extend_from_slice(&run.0.to_le_bytes());
            }
        }
        record
    }

    /// The choices of the tree whose record begins with `record`, and its shape.
    pub(super) fn choices(record: &[u8], tree: &str) -> Result<(EntryShape, Choices)> {
        let (shape, rest) = root_record::decode(record, tree)?;
        let mut from = From { rest };
        let (pages, head_pages, ratio) = (from.u32()?, from.u32()?, from.u32()?);
        let choices = Choices { pages, head_pages, ratio, is_deamortized: from.flag()? };
        if choices.ratio < 2 || choices.head_pages == 0 {
            return Err(DAMAGED.into());
        }
        Ok((shape, choices))
    }

    /// What `record` holds, and the manifest behind it.
    pub(super) fn decode<'r>(record: &'r [u8], tree: &str) -> Result<(Self, &'r [u8])> {
        let (shape, choices) = Self::choices(record, tree)?;
        let (_, rest) = root_record::decode(record, tree)?;
        let mut from = From { rest };
        from.take::<13>()?;
        let head = from.head()?;
        let full = if from.flag()? { Some((from.head()?, from.u32()?)) } else { None };
        let longest = (from.u32()?, from.u32()?);
        let mut components: Vec<Component> = Vec::new();
        for _ in 0..from.u8()? {
            let (level, count) = (from.u8()?, from.u8()?);
            let run = RunId(from.u64()?);
            let above = components.last().map_or(0, |component| component.level);
            if level <= above || level > LEVEL_MOST || count > STACK_MOST {
                return Err(DAMAGED.into());
            }
            let mut stack = Vec::new();
            for _ in 0..count {
                stack.push(RunId(from.u64()?));
            }
            components.push(Component { level, run, stack });
        }
        let root = Root { shape, choices, head, full, longest, components };
        Ok((root, from.rest))
    }
}

fn encode_head(head: &HeadState, to: &mut Vec<u8>) {
    to.extend_from_slice(&head.root.id.0.to_le_bytes());
    to.push(head.root.level);
    to.extend_from_slice(&head.entries.to_le_bytes());
    to.extend_from_slice(&head.bytes.to_le_bytes());
}

struct From<'r> {
    rest: &'r [u8],
}

impl From<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(DAMAGED)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn u8(&mut self) -> Result<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Result<bool> {
        match self.u8()? {
            flag @ 0..=1 => Ok(flag == 1),
            _ => Err(DAMAGED.into()),
        }
    }

    fn head(&mut self) -> Result<HeadState> {
        let root = At { id: LogicalPage(self.u32()?), level: self.u8()? };
        let (entries, bytes) = (self.u64()?, self.u64()?);
        match entries <= BYTES_MOST && bytes <= BYTES_MOST {
            true => Ok(HeadState { root, entries, bytes }),
            false => Err(DAMAGED.into()),
        }
    }

    fn u32(&mut self) -> Result<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{BYTES_MOST, HeadState, Root};
    use crate::btree::At;
    use crate::levels::Choices;
    use store::{EntryShape, LogicalPage};

    #[test]
    fn a_head_of_more_than_a_disk_has_is_damage() {
        let record = |entries, bytes| {
            let shape = EntryShape::VARIABLE;
            let choices = Choices { pages: 100, head_pages: 4, ratio: 8, is_deamortized: true };
            let (root, components) = (At::leaf(LogicalPage(0)), Vec::new());
            let head = HeadState { root, entries, bytes };
            let full = Some((HeadState { root, entries: 8, bytes: 8 }, 1));
            let longest = (8, 16);
            Root { shape, choices, head, full, longest, components }.encode("fd-tree")
        };
        assert!(Root::decode(&record(BYTES_MOST, BYTES_MOST), "fd-tree").is_ok());
        assert!(Root::decode(&record(BYTES_MOST + 1, 8), "fd-tree").is_err());
        assert!(Root::decode(&record(8, u64::MAX), "fd-tree").is_err());
    }
}
