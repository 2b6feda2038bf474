//! How a tree is made and opened on raw flash; on a disk [`in_place`](super::in_place) has it. Both
//! end in [`LaTree::over`], and a new tree in [`LaTree::plant`].

use alloc::boxed::Box;

use device::Medium;
use store::{PageLog, Recovery};

use super::bare_tree::BareTree;
use super::buffers::Buffers;
use super::cost::Estimator;
use super::counters::Counters;
use super::empty_buffer::{PutBack, Top};
use super::flight::Flight;
use super::ground::Ground;
use super::limits::Limits;
use super::nodes::{CHILD_BYTES, Nodes};
use super::plan::{self, Plan};
use super::rebalance::Lean;
use super::reclaim::Generation;
use super::sharing::Sharing;
use super::sort_merge::Sorter;
use super::stream::Form;
use super::{LaTree, checkpoint_state, in_place};
use index::{Durable, Index, Result, Tree};
use index::{MediumShape, Options};

pub(super) fn create<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let chip = match medium {
        Medium::Nand(chip) => chip,
        Medium::Sectors(disk) => return in_place::create(disk, options),
    };
    let geometry = chip.geometry();
    let choices = plan::choices(options, geometry)?;
    let plan = Plan::new(options, options.shape, choices, geometry)?;
    plan.check_memory()?;
    let (medium, needs) = (MediumShape::Nand(geometry), |like| plan::footprint(options, like));
    medium.check_units(geometry.blocks(), needs)?;
    let log = PageLog::create(chip, &options.page_log())?;
    medium.check_units(log.good_blocks(), needs)?;
    let mut tree = LaTree::over(Ground::Chip(log), plan)?;
    tree.plant()?;
    Ok(Box::new(Durable::create(tree)?))
}

pub(super) fn open<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let chip = match medium {
        Medium::Nand(chip) => chip,
        Medium::Sectors(disk) => return in_place::open(disk, options),
    };
    let geometry = chip.geometry();
    let (log, record) = PageLog::open_with(chip, &options.page_log())?;
    let (shape, choices) = checkpoint_state::describe(&record)?;
    let durability = Some(log.durability());
    let options = Options { durability, ..options.clone() };
    let plan = Plan::new(&options, shape, choices, geometry)?;
    plan.check_memory()?;
    let mut tree = LaTree::over(Ground::Chip(log), plan)?;
    tree.restore(&record)?;
    tree.check_tables_now()?;
    Ok(Box::new(Durable::open(tree)?))
}

impl<'d> LaTree<'d> {
    /// A tree on `log` that has no node yet.
    pub(super) fn over(mut log: Ground<'d>, plan: Plan) -> Result<Self> {
        if let Some(log) = log.chip_mut() {
            log.give_back_at_rollback();
        }
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
            flight: Flight::new(sorter, most),
            policy: plan.policy,
            estimator: Estimator::new(units, plan.basis),
            room: Box::default(),
            top: Top::new(most),
            put_back: PutBack::default(),
            lean: Lean::new(most),
            generation: Generation::default(),
            pinned_blocks: 0,
            counters: Counters::default(),
            sharing: Sharing::default(),
            is_open: false,
            is_poisoned: false,
            plan,
        };
        tree.expect_root();
        Ok(tree)
    }

    /// Makes the root of an empty tree.
    pub(super) fn plant(&mut self) -> Result<()> {
        self.bare.plant()?;
        self.begin_buffer(self.bare.root, true)?;
        self.is_open = true;
        Ok(())
    }
}
