//! What a root record says.

use alloc::vec::Vec;

use device::Page;
use store::EntryShape;
use store::bytes::Reader;

use super::super::NAME;
use super::super::generation::Stage;
use super::super::layout::{NodeId, ROOT_BYTES};
use crate::btree::HEIGHT_MOST;
use index::{Error, Result, root_record};

/// The version of what a tree writes: the high half of the byte with K. It was 0 in flashtree 0.2.
const FORMAT: u8 = 1;

pub(in super::super) fn damaged_root() -> Error {
    store::Error::NotAnIndex { is_ours: true, what: "its root record is damaged" }.into()
}

/// The pages in a list of a root record.
pub(in super::super) fn pages_in(list: &[u8]) -> impl Iterator<Item = Page> + '_ {
    let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    list.chunks_exact(4).map(move |bytes| Page(number(bytes)))
}

/// What is stored of the choices that shape the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Choices {
    pub(in super::super) node_bytes: u32,
    pub(in super::super) levels_a_buffer: u8,
}

/// What a root record says, tables and pool aside.
#[derive(Clone, Debug)]
pub(in super::super) struct Head {
    pub(in super::super) shape: EntryShape,
    pub(in super::super) choices: Choices,
    pub(in super::super) root: NodeId,
    pub(in super::super) height: u8,
    pub(in super::super) entries: u64,
    pub(in super::super) levels: [u32; HEIGHT_MOST],
    pub(in super::super) next_owner: u32,
    pub(in super::super) first: u64,
    pub(in super::super) first_owner: u32,
    pub(in super::super) stage: Option<Stage>,
}

impl Head {
    /// The beginning of a root record, with room for `more` bytes: growing, it would be in memory
    /// twice.
    pub(in super::super) fn encode(&self, more: u64) -> Vec<u8> {
        let mut record = root_record::encode(NAME, self.shape);
        record.reserve_exact((ROOT_BYTES + 4 * u64::from(self.height) + more) as usize);
        record.extend_from_slice(&self.choices.node_bytes.to_le_bytes());
        record.push(self.choices.levels_a_buffer | FORMAT << 4);
        record.extend_from_slice(&self.root.0.to_le_bytes());
        record.push(self.height);
        record.extend_from_slice(&self.entries.to_le_bytes());
        for nodes in self.levels.iter().take(self.height.into()) {
            record.extend_from_slice(&nodes.to_le_bytes());
        }
        record.extend_from_slice(&self.next_owner.to_le_bytes());
        record.extend_from_slice(&self.first.to_le_bytes());
        record.extend_from_slice(&self.first_owner.to_le_bytes());
        let (stage, next) = match self.stage {
            None => (0, 0),
            Some(Stage::InnerBuffers(next)) => (1, next),
            Some(Stage::LeafBuffers(next)) => (2, next),
            Some(Stage::Plain(next)) => (3, next),
            Some(Stage::Buffered(next)) => (4, next),
        };
        record.push(stage);
        record.extend_from_slice(&u32::to_le_bytes(next));
        record
    }
}

/// What a root record says.
pub(in super::super) struct Root<'r> {
    pub(in super::super) head: Head,
    /// Numbers of each table, and the pages of its chunks.
    pub(in super::super) plain: (u32, &'r [u8]),
    pub(in super::super) buffered: (u32, &'r [u8]),
    pub(in super::super) pool: &'r [u8],
    /// What only a tree on a disk has.
    pub(in super::super) tail: &'r [u8],
}

/// The shape and the choices of a tree, and what of its root record comes behind them.
fn decode_choices(record: &[u8]) -> Result<(EntryShape, Choices, Reader<'_>)> {
    let (shape, rest) = root_record::decode(record, NAME)?;
    let mut from = Reader::new(rest);
    let numbers = from.u32().zip(from.array::<1>());
    let (node_bytes, [levels]) = numbers.ok_or_else(damaged_root)?;
    let (format, levels_a_buffer) = (levels >> 4, levels & 0xF);
    if format != FORMAT {
        let what = match format {
            0 => root_record::EARLIER_FORMAT,
            _ => "its tree has the format of a later flashtree",
        };
        return Err(store::Error::NotAnIndex { is_ours: true, what }.into());
    }
    if !(1..=8).contains(&levels_a_buffer) {
        return Err(damaged_root());
    }
    Ok((shape, Choices { node_bytes, levels_a_buffer }, from))
}

/// What has to be known of a tree before it is made: the shape of its entries, and the choices it
/// was made with.
pub(in super::super) fn describe(record: &[u8]) -> Result<(EntryShape, Choices)> {
    decode_choices(record).map(|(shape, choices, _)| (shape, choices))
}

impl<'r> Root<'r> {
    /// Reads `record` of a tree whose chunks have so many numbers.
    pub(in super::super) fn decode(record: &'r [u8], chunks: (u32, u32)) -> Result<Self> {
        let (shape, choices, from) = decode_choices(record)?;
        Self::decode_rest((shape, choices), from, chunks).ok_or_else(damaged_root)
    }

    /// `None` if it makes no sense.
    fn decode_rest(
        (shape, choices): (EntryShape, Choices),
        mut from: Reader<'r>,
        chunks: (u32, u32),
    ) -> Option<Self> {
        let (root, [height]) = (NodeId(from.u32()?), from.array()?);
        let is_possible = (1..=HEIGHT_MOST).contains(&height.into()) && root.buffer().is_some();
        let entries = from.u64().filter(|_| is_possible)?;
        let mut levels = [0; HEIGHT_MOST];
        for nodes in levels.iter_mut().take(height.into()) {
            *nodes = from.u32()?;
        }
        let (next_owner, first, first_owner) = (from.u32()?, from.u64()?, from.u32()?);
        let (stage, next) = (from.array()?, from.u32()?);
        let stage = match stage {
            [0] => None,
            [1] => Some(Stage::InnerBuffers(next)),
            [2] => Some(Stage::LeafBuffers(next)),
            [3] => Some(Stage::Plain(next)),
            [4] => Some(Stage::Buffered(next)),
            _ => return None,
        };
        let mut table = |chunk: u32| {
            let numbers = from.u32()?;
            let chunks = usize::try_from(numbers.div_ceil(chunk.max(1))).ok()?;
            Some((numbers, from.bytes(chunks.checked_mul(4)?)?))
        };
        let (plain, buffered) = (table(chunks.0)?, table(chunks.1)?);
        let count = from.u32()?;
        let pool = from.bytes(usize::try_from(count).ok()?.checked_mul(4)?)?;
        let tail = from.bytes(from.left())?;
        let head = Head {
            shape,
            choices,
            root,
            height,
            entries,
            levels,
            next_owner,
            first,
            first_owner,
            stage,
        };
        Some(Root { head, plain, buffered, pool, tail })
    }
}
