//! How a tree is made, opened and stored.

use alloc::boxed::Box;
use alloc::vec::Vec;

use device::{Medium, Nand, Sectors};
use store::{Growth, PageFile, PageLog, Recovery};

use super::LaTree;
use super::bare_tree::BareTree;
use super::buffers::Buffers;
use super::checkpoint_state::{self, Head, Root, State, damaged_root, pages_in};
use super::compaction::Compaction;
use super::cost::Estimator;
use super::counters::Counters;
use super::disk::Disk;
use super::empty_buffer::{PutBack, Top};
use super::emptying::Emptying;
use super::footprint::footprint;
use super::generation::Generation;
use super::layout::PIECE_BYTES;
use super::limits::Limits;
use super::nodes::Nodes;
use super::plan::{self, Plan};
use super::rebalance::Lean;
use super::sharing::Sharing;
use super::sorter::Sorter;
use super::storage::Storage;
use super::stream::Form;
use crate::btree::CHILD_BYTES;
use index::{Durable, Index, Result, Tree};
use index::{MediumShape, Options};

pub(super) fn create<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let (storage, plan) = match medium {
        Medium::Nand(chip) => create_on_flash(chip, options)?,
        Medium::Sectors(disk) => create_on_disk(disk, options)?,
    };
    let mut tree = LaTree::over(storage, plan)?;
    tree.plant()?;
    Ok(Box::new(Durable::create(tree)?))
}

pub(super) fn open<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let (storage, plan, record) = match medium {
        Medium::Nand(chip) => open_on_flash(chip, options)?,
        Medium::Sectors(disk) => open_on_disk(disk, options)?,
    };
    let mut tree = LaTree::over(storage, plan)?;
    tree.restore(&record)?;
    tree.check_tables_now()?;
    Ok(Box::new(Durable::open(tree)?))
}

fn create_on_flash<'d>(chip: Box<dyn Nand + 'd>, options: &Options) -> Result<(Storage<'d>, Plan)> {
    let geometry = chip.geometry();
    let choices = plan::choices(options, geometry)?;
    let plan = Plan::new(options, options.shape, choices, geometry)?;
    plan.check_memory()?;
    let (medium, needs) = (MediumShape::Nand(geometry), |like| footprint(options, like));
    medium.check_units(geometry.blocks(), needs)?;
    let mut log = PageLog::create(chip, &options.page_log())?;
    medium.check_units(log.good_blocks(), needs)?;
    log.give_back_at_rollback();
    Ok((Storage::Chip(log), plan))
}

fn open_on_flash<'d>(
    chip: Box<dyn Nand + 'd>,
    options: &Options,
) -> Result<(Storage<'d>, Plan, Vec<u8>)> {
    let geometry = chip.geometry();
    let (mut log, record) = PageLog::open_with(chip, &options.page_log())?;
    let (shape, choices) = checkpoint_state::describe(&record)?;
    let durability = Some(log.durability());
    let options = Options { durability, ..options.clone() };
    let plan = Plan::new(&options, shape, choices, geometry)?;
    plan.check_memory()?;
    log.give_back_at_rollback();
    Ok((Storage::Chip(log), plan, record))
}

/// Makes `disk` ready for an empty tree.
fn create_on_disk<'d>(
    disk: Box<dyn Sectors + 'd>,
    options: &Options,
) -> Result<(Storage<'d>, Plan)> {
    let geometry = disk.geometry();
    let choices = plan::disk::choices(options, geometry)?;
    let durability = options.durability.unwrap_or_default();
    let (plan, bytes) = plan::disk::plan(options, options.shape, (choices, durability), geometry)?;
    plan.check_memory()?;
    let needs = |like| footprint(options, like);
    MediumShape::Sectors(geometry).check_units(geometry.sectors(), needs)?;
    let file = PageFile::create(disk, &options.page_file(choices.node_bytes, bytes))?;
    Ok((Storage::Disk(Box::new(Disk::new(file))), plan))
}

/// Opens `disk`, and reads the root record of its tree.
fn open_on_disk<'d>(
    mut disk: Box<dyn Sectors + 'd>,
    options: &Options,
) -> Result<(Storage<'d>, Plan, Vec<u8>)> {
    let geometry = disk.geometry();
    let found = PageFile::describe(&mut *disk)?;
    let (shape, choices) = checkpoint_state::describe(&found.root_head)?;
    if choices.node_bytes != found.page_bytes {
        return Err(damaged_root());
    }
    let (plan, bytes) = plan::disk::plan(options, shape, (choices, found.durability), geometry)?;
    plan.check_memory()?;
    let (file, record) = PageFile::open(disk, &options.page_file(found.page_bytes, bytes))?;
    Ok((Storage::Disk(Box::new(Disk::new(file))), plan, record))
}

impl<'d> LaTree<'d> {
    /// A tree on `log` that has no node yet.
    fn over(log: Storage<'d>, plan: Plan) -> Result<Self> {
        let form = Form::new(plan.shape);
        let what = "they can't hold four entries";
        let bytes = plan.pages.node_bytes();
        let nodes = Nodes::new(plan.shape, plan.pages, plan.cache, plan.chunks);
        let nodes = nodes.ok_or(store::Error::NodeSize { bytes, what })?;
        let what = "the chip has more places for such nodes than can be numbered";
        plan.pages.places(log.pages()).ok_or(store::Error::NodeSize { bytes, what })?;
        let units = log.unit_costs(&plan.pages);
        let most = plan.sizes.entry_most;
        let key_most = nodes.codecs.inner.entry_bytes_most().min(plan.entry_most);
        let key_most = key_most.saturating_sub(usize::from(CHILD_BYTES));
        let sorter = Sorter::new(form, plan.sorter_bytes, plan.sorter_entries);
        let mut tree = LaTree {
            limits: Limits::new(plan.shape, key_most, plan.entry_most, log.is_disk()),
            bare: BareTree::new(log, nodes, plan.levels_a_buffer, most),
            buffers: Buffers::new(form, plan.pages, &plan.sizes),
            emptying: Emptying::new(sorter, most),
            policy: plan.policy,
            estimator: Estimator::new(units, plan.basis),
            room: Box::default(),
            top: Top::new(most),
            put_back: PutBack::default(),
            lean: Lean::new(most),
            generation: Generation::default(),
            pinned_blocks: 0,
            counters: Counters::default(),
            sharing: Sharing::new(&plan),
            paused: None,
            is_open: false,
            is_poisoned: false,
            plan,
        };
        // From now on the log keeps as much back as the longest root record needs.
        let bytes = tree.plan.root_bytes_most(tree.bare.log.pages());
        if let Some(log) = tree.bare.log.chip_mut() {
            log.expect_root(bytes);
        }
        Ok(tree)
    }

    /// Makes the root of an empty tree.
    pub(super) fn plant(&mut self) -> Result<()> {
        self.bare.plant()?;
        self.begin_buffer(self.bare.root, true)?;
        self.is_open = true;
        Ok(())
    }

    fn state(&mut self) -> State<'_, 'd> {
        let BareTree { log, nodes, .. } = &mut self.bare;
        State { log, nodes, buffers: &mut self.buffers }
    }

    /// Writes all that is only in memory; returns the root record.
    pub(super) fn write_state(&mut self) -> Result<Vec<u8>> {
        self.is_poisoned = true;
        let stands = self.bare.log.is_disk() && !self.is_open;
        if !stands {
            self.reclaim_if_it_fits()?;
            self.state().write_tables()?;
        }
        let pool = self.census().waiting_pages(self.buffers.held_bytes(PIECE_BYTES));
        let head = Head {
            shape: self.plan.shape,
            choices: self.plan.choices(),
            root: self.bare.root,
            height: self.bare.height,
            entries: self.bare.entries,
            levels: self.bare.levels,
            next_owner: self.buffers.next_owner,
            first: self.generation.first,
            first_owner: self.generation.first_owner,
            stage: self.generation.stage,
        };
        let chunks = self.bare.nodes.chunk_pages();
        let mut record = head.encode(4 * (chunks + pool + 4));
        self.bare.nodes.plain.encode(&mut record);
        self.bare.nodes.buffered.encode(&mut record);
        match self.bare.log.disk() {
            // Its pages stand behind those of the chunks.
            Some(disk) if stands => disk.encode_state_from(chunks as usize, &mut record),
            _ => self.state().write_pool(&mut record)?,
        }
        if let Some(disk) = self.bare.log.disk() {
            disk.encode_tail(&mut record);
        }
        self.generation.is_waiting = false;
        self.is_open = false;
        if !self.bare.log.is_disk() {
            self.begin_room();
        }
        self.is_poisoned = false;
        Ok(record)
    }

    /// Becomes the tree that `record` describes.
    pub(super) fn read_state(&mut self, record: &[u8]) -> Result<()> {
        let root = Root::decode(record, self.plan.chunks)?;
        let head = &root.head;
        if head.choices != self.plan.choices() || head.shape != self.plan.shape {
            return Err(damaged_root());
        }
        self.is_poisoned = true;
        self.lean.forget();
        self.bare.forget();
        self.buffers.forget();
        let numbers = (root.plain.0.into(), root.buffered.0.into());
        self.lend_to_tables(numbers, Growth::default())?;
        self.state().read(&root)?;
        (self.bare.entries, self.bare.levels) = (head.entries, head.levels);
        self.room.forget();
        self.room.compaction = Compaction::default();
        let lists = [root.plain.1, root.buffered.1, root.pool].into_iter();
        let known = (head.entries, self.bare.leaves());
        let is_possible = match self.bare.log.disk_mut() {
            Some(disk) => disk.take_state(root.tail, known, lists.flat_map(pages_in)),
            None => root.tail.is_empty(),
        };
        if !is_possible {
            return Err(damaged_root());
        }
        self.state().hold_chains()?;
        if self.bare.nodes.place(head.root).is_none() {
            return Err(damaged_root());
        }
        (self.bare.root, self.bare.height) = (head.root, head.height);
        self.buffers.next_owner = head.next_owner;
        let Head { first, first_owner, stage, .. } = *head;
        self.generation = Generation { first, first_owner, stage, ..self.generation };
        self.generation.is_waiting = false;
        if let Some(log) = self.bare.log.chip_mut() {
            log.mark_old(first)?;
            if stage.is_none() {
                log.release_old();
            }
        }
        self.generation.copies = stage.is_some() && self.census().is_to_copy();
        self.is_open = false;
        self.is_poisoned = false;
        Ok(())
    }

    /// Pins every page that a named checkpoint reaches.
    pub(super) fn pin_named(&mut self) -> Result<()> {
        // On a disk the page file keeps the way back by itself.
        let Some(log) = self.bare.log.chip_mut() else {
            return Ok(());
        };
        log.unpin_all()?;
        let names: Vec<_> = log.checkpoints().iter().map(|kept| kept.name.clone()).collect();
        for name in names {
            let root =
                self.bare.log.chip_mut().map_or(Ok(Vec::new()), |log| log.kept_root(&name))?;
            let root = Root::decode(&root, self.plan.chunks)?;
            self.state().pin(&root)?;
        }
        self.pinned_blocks = self.bare.log.chip().map_or(0, PageLog::pinned_blocks);
        // What a name does not keep any more may be what there was no room for.
        self.generation.is_vain = false;
        Ok(())
    }
}
