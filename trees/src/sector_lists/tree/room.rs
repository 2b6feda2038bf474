//! Room: sectors are counted before an update is let in.
//!
//! All lists together name no more sectors than there are, less those that are kept:
//!
//! ```text
//!  sectors in use <= lengths of all lists <= room - kept
//! ```
//!
//! Where that gets tight, commits write nodes as a whole and so make lists shorter, down to one
//! sector each. So nodes are all that has to be counted: as many as there are, and as puts may
//! add, find room. `kept` is what a commit and one update may write before a checkpoint gives back
//! what they replace, and the root records that come.

use store::node::Codec;
use store::{Demand, Durability, Growth, LEVELS_MOST, Recovery, Update, Width};

use super::ListTree;
use super::root::BESIDE_BYTES;
use crate::btree::{CHILD_BYTES, Codecs, Puts};
use crate::sector_lists::{Shape, Store, Waits};
use index::Result;

/// Pages of free lists, and of the page file's own, whose images a step takes.
const STEP_IMAGES: u32 = 8;

/// Sectors that puts leave to deletes.
const LEFT_TO_DELETES: u64 = 8;

/// Pages of a root record beside those that its bytes fill, and bytes of a page that are not its.
const RECORD_PAGES: u64 = 3;
const RECORD_BESIDE: u32 = 64;

/// Nodes for which tables and root records of a new tree have room.
pub(super) const NODES_AT_FIRST: u64 = 16;

/// Sectors that one update of a tree so high may write beside what waited: on each level a node,
/// its neighbour and their parent, and a new root. Each is logged or is a page, whatever its mode
/// was before. Nodes that are due to become pages wait where there is no room beside that.
const fn sectors_of_one(height: u8) -> u64 {
    3 * height as u64 + 6
}

/// Sectors that a commit and an update may write. A commit writes no node twice; one amid
/// the update makes no more lists shorter than nodes came.
pub(super) fn step(shape: &Shape, height: u8, nodes: u64) -> u64 {
    let commit = nodes.saturating_add(2 + u64::from(height));
    commit.min(shape.sectors_most() as u64) + sectors_of_one(height)
}

const fn nodes_of(growth: &Growth) -> u64 {
    growth.leaves.saturating_add(growth.inner)
}

fn record_pages(bytes: u64, sector: u32) -> u64 {
    (bytes + BESIDE_BYTES) / u64::from(sector.saturating_sub(RECORD_BESIDE).max(1)) + RECORD_PAGES
}

/// Sectors that an empty tree needs to take its first entries: where checkpoints give back what was
/// replaced, two steps.
pub(super) fn needs_at_first(shape: &Shape, durability: Durability) -> u64 {
    let list = 1 + 4 * shape.list as u64;
    let records = 2 * record_pages(NODES_AT_FIRST * list, shape.sector);
    let steps = if durability == Durability::None { 1 } else { 2 };
    let mut levels = [0; LEVELS_MOST];
    levels[0] = 1;
    let growth = demand(&shape.codecs, levels).growth(1);
    let nodes = 1 + nodes_of(&growth);
    nodes + steps * step(shape, 1 + growth.levels, nodes) + records + 2 * LEFT_TO_DELETES
}

/// What puts demand of a tree with so many nodes on each level.
fn demand(codecs: &Codecs, levels: [u32; LEVELS_MOST]) -> Demand {
    let half = |codec: &Codec, value: u16| match (codecs.shape.key, codecs.shape.value) {
        (Width::Fixed(key), Width::Fixed(_)) => {
            (codec.capacity(key.into(), value.into()) as u32 / 2).max(2)
        }
        _ => 1,
    };
    let value = if let Width::Fixed(bytes) = codecs.shape.value { bytes } else { 0 };
    Demand {
        levels,
        puts_a_leaf: half(&codecs.leaf, value),
        children_a_node: half(&codecs.inner, CHILD_BYTES).max(2),
        leaves_a_put: 1,
    }
}

impl ListTree<'_> {
    /// Sectors that the next step may write.
    pub(super) fn step(&self) -> u64 {
        self.step_with(&Growth::default())
    }

    fn step_with(&self, growth: &Growth) -> u64 {
        let height = self.btree.height().saturating_add(growth.levels.max(1));
        let nodes = u64::from(self.store.table.nodes()).saturating_add(nodes_of(growth));
        step(&self.store.shape, height, nodes)
    }

    /// Sectors that stay free beside all lists. The next root record is written while the last one
    /// stands, and from then on the page file keeps as much for the one behind it. So room is
    /// counted for two of the longest, less what the last one has already: a longer record takes
    /// nothing then that updates were let in for.
    pub(super) fn pages_kept(&self) -> u64 {
        self.pages_kept_with(&Growth::default())
    }

    fn pages_kept_with(&self, growth: &Growth) -> u64 {
        let Store { table, file, shape, .. } = &self.store;
        let longest = table.record_bytes_with(NODES_AT_FIRST, file.pages_most().into());
        let records = 2 * record_pages(longest, shape.sector);
        let had = u64::from(file.root_record_pages());
        self.step_with(growth) + LEFT_TO_DELETES + records.saturating_sub(had)
    }

    /// Refuses a batch for which there are too few sectors, or too little memory for tables.
    pub(super) fn check_room(&mut self, batch: &[Update<'_>]) -> Result<()> {
        let puts = Puts::of(batch);
        let Store { shape, levels, .. } = &self.store;
        let demand = demand(&shape.codecs, *levels);
        let growth = shape.codecs.growth(&demand, &puts, self.btree.entries);
        let puts = puts.count;
        let left = if puts > 0 { LEFT_TO_DELETES } else { 0 };
        let kept = self.pages_kept_with(&growth) + left;
        let growth = nodes_of(&growth);
        let file = &self.store.file;
        let full = store::Error::Full { pages: u64::from(file.pages_most()) };
        let nodes = u64::from(self.store.table.nodes()).saturating_add(growth);
        // A file that can grow has room for lists of two sectors, before they have to be shorter.
        let each = if file.may_grow() && puts > 0 { 2 } else { 1 };
        let has_room = nodes.saturating_mul(each).saturating_add(kept) <= self.store.room();
        // No checkpoint falls inside a batch where there is no journal.
        let durability = file.durability();
        let lasts_at_once = durability != Durability::None && !durability.has_journal();
        let at_once = match lasts_at_once {
            true => self.at_once(puts, batch.len() as u64 - puts, growth),
            false => 0,
        };
        if !has_room || at_once > u64::from(file.pages_free()) {
            return Err(full.into());
        }
        self.store.promised = at_once.max(self.step());
        self.check_tables(growth, puts > 0)
    }

    /// Sectors that puts and deletes may write, nodes that come included, before anything is given
    /// back. What waits for a commit is written once: a put's unit, two nodes and a unit for each
    /// that comes, and what a delete has borrowed. As many lists are made shorter at most, and no
    /// more than are longer than one sector, or get so. And a commit writes no node twice; where
    /// the buffer is counted in sectors, or nodes in disk mode leave it, one may write few.
    fn at_once(&self, puts: u64, deletes: u64, growth: u64) -> u64 {
        let Store { table, shape, .. } = &self.store;
        let path = sectors_of_one(self.btree.height() + 1);
        let items = self.store.waiting() as u64 + puts + 3 * growth + 4 * deletes + path;
        let listed = table.listed().max(self.store.listed_most());
        let shortened = items.min(listed.saturating_sub(table.nodes().into()));
        let commits = match shape.waits {
            Waits::Units(_) => items / shape.units_least() as u64 + 1,
            Waits::Sectors(_) => items,
        };
        let nodes = u64::from(table.nodes()).saturating_add(growth);
        (items + shortened).min(commits.saturating_mul(nodes)) + 1
    }

    fn check_tables(&self, nodes: u64, has_puts: bool) -> Result<()> {
        let Some(most) = self.tables_most.filter(|_| has_puts) else {
            return Ok(());
        };
        let more = self.store.table.bytes_with(nodes, self.step() + nodes);
        let need = self.store.file.memory().tables
            + more.max(super::make::tables_least(&self.store.shape));
        match need <= most {
            true => Ok(()),
            false => Err(store::Error::LittleTables { have: most, need }.into()),
        }
    }

    /// There is room for one more entry that is loaded.
    pub(super) fn make_room_to_load(&mut self) -> Result<()> {
        loop {
            let put = Update::Put { key: &[], value: &[] };
            let needs = self.step() + LEFT_TO_DELETES;
            let refused = match self.check_room(core::slice::from_ref(&put)) {
                Ok(()) if needs <= u64::from(self.store.file.pages_free()) => return Ok(()),
                Ok(()) => store::Error::Full { pages: self.store.file.pages_most().into() }.into(),
                Err(refused) => refused,
            };
            let more = u64::from(self.store.file.pages_free()) + 1;
            if !self.store.file.has_pages(more)? {
                return Err(refused);
            }
        }
    }

    /// Pages whose images `batch` may take. What named checkpoints need of a free page is kept when
    /// that is written. So is what waits already, and pages that were changed: by the next
    /// checkpoint at the latest. Where lists get shorter, as many are written again.
    pub(super) fn images(&self, batch: &[Update<'_>]) -> u32 {
        let Store { file, table, shape, .. } = &self.store;
        let reused = match file.checkpoints().is_empty() {
            true => 0,
            false => {
                let each = sectors_of_one(self.btree.height() + 1) + shape.due_most() as u64;
                let waiting = (self.store.waiting() as u64).min(table.nodes().into());
                let logged = waiting + batch.len() as u64 * each;
                let has_room = table.listed() + logged <= self.store.listed_most();
                let shorter = if has_room { 0 } else { logged };
                logged + shorter + u64::from(self.store.dirty)
            }
        };
        u32::try_from(u64::from(STEP_IMAGES) + reused).unwrap_or(u32::MAX)
    }
}
