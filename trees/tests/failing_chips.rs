//! A chip that refuses everything for a while is failing, not worn: no block of it is lost for it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use contract::nand::{Hook, Hooked, Program};
use device::{Block, Cause, Geometry, Medium, Nand, NandCosts, Watched};
use flashtree_trees::TREES;
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, Update};
use index::{MediumShape, Options};
use sim::{Failure, FaultKind, FaultPlan, SimulatedNand};

/// What a controller refuses while it fails.
#[derive(Clone, Copy, Debug)]
enum Refused {
    Programs,
    Erases,
    Both,
}

/// A controller that refuses while it is told to.
#[derive(Clone)]
struct Controller {
    refused: Refused,
    fails: Arc<AtomicBool>,
}

impl Controller {
    fn new(refused: Refused) -> Self {
        Controller { refused, fails: Arc::default() }
    }

    fn set(&self, fails: bool) {
        self.fails.store(fails, Ordering::Relaxed);
    }

    /// A chip behind this controller.
    fn over<N>(&self, chip: N) -> Hooked<N, Self> {
        Hooked { chip, hook: self.clone() }
    }

    fn fails(&self) -> bool {
        self.fails.load(Ordering::Relaxed)
    }
}

impl<N: Nand> Hook<N> for Controller {
    fn program(&mut self, chip: &mut N, program: Program<'_>) -> device::Result<()> {
        if self.fails() && !matches!(self.refused, Refused::Erases) {
            return Err(device::Error::ProgramRefused { page: program.page });
        }
        program.on(chip)
    }

    fn erase(&mut self, chip: &mut N, block: Block, cause: Cause) -> device::Result<()> {
        if self.fails() && !matches!(self.refused, Refused::Programs) {
            return Err(device::Error::EraseRefused { block });
        }
        chip.erase(block, cause)
    }
}

fn geometry() -> Geometry {
    Geometry::new(512, 16, 96).unwrap().with_spare(16).unwrap()
}

fn chip() -> SimulatedNand {
    SimulatedNand::new(geometry(), NandCosts::default())
}

fn bad_blocks(chip: &mut SimulatedNand) -> usize {
    (0..96).filter(|block| chip.is_bad(Block(*block)).unwrap()).count()
}

/// The device's error at the root of `error`.
fn of_device(error: &index::Error) -> Option<device::Error> {
    let mut error: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(present) = error {
        if let Some(found) = present.downcast_ref() {
            return Some(*found);
        }
        error = present.source();
    }
    None
}

const FAILING: Option<device::Error> = Some(device::Error::Failing { refusals: 4 });

/// A tree on raw flash, or on a translation layer.
#[derive(Clone, Copy)]
struct Stage {
    tree: &'static index::TreeDescriptor,
    layer: Option<&'static ftl::Entry>,
}

impl Stage {
    fn all() -> Vec<Stage> {
        let on_nand = TREES.iter().filter(|tree| tree.nand).map(|tree| (*tree, None));
        let b_plus = flashtree_trees::find("b-plus").unwrap();
        let on_layers = ftl::FTLS.iter().map(|layer| (b_plus, Some(*layer)));
        on_nand.chain(on_layers).map(|(tree, layer)| Stage { tree, layer }).collect()
    }

    fn name(&self) -> String {
        format!("{} over {}", self.tree.name, self.layer.map_or("nothing", |layer| layer.name))
    }

    fn index<'c>(&self, nand: impl Nand + 'c, opens: bool) -> index::Result<Box<dyn Index + 'c>> {
        let nand: Box<dyn Nand + 'c> = Box::new(nand);
        let (medium, shape) = match self.layer {
            None => (Medium::Nand(nand), MediumShape::Nand(geometry())),
            Some(layer) => {
                let make = if opens { layer.open } else { layer.create };
                let disk = make(nand, &ftl::Options::default()).map_err(store::Error::Device)?;
                let shape = MediumShape::Sectors(disk.geometry());
                (Medium::Sectors(disk), shape)
            }
        };
        let settings = Settings::parse(self.tree.name, self.tree.parameters, []).unwrap();
        let mut options = Options::new(EntryShape::fixed(4, 4), 0, settings);
        options.durability = Some(Durability::Batch);
        options.journal_bytes = Some(4 << 10);
        options.memory_bytes = 2 * self.tree.least_memory(&options, shape).unwrap();
        (if opens { self.tree.open } else { self.tree.create })(medium, &options)
    }

    /// Fails for a while in the middle of a life; nothing that was acknowledged is lost.
    fn live(&self, refused: Refused) {
        let name = format!("{}, {refused:?} refused", self.name());
        let (mut chip, controller) = (chip(), Controller::new(refused));
        let mut index = self.index(controller.over(&mut chip), false).unwrap();
        put(&mut *index, 0..300).unwrap();
        index.sync().unwrap();
        controller.set(true);
        let error = put(&mut *index, 300..100_000).unwrap_err();
        assert_eq!(of_device(&error), FAILING, "{name}: {error}");
        drop(index);
        for _ in 0..40 {
            let opened = self.index(controller.over(&mut chip), true);
            let error = opened.and_then(|mut index| put(&mut *index, 300..100_000)).unwrap_err();
            assert_eq!(of_device(&error), FAILING, "{name}, opened again: {error}");
        }
        controller.set(false);
        assert_eq!(bad_blocks(&mut chip), 0, "{name}: blocks were marked bad");
        let mut index = self.index(controller.over(&mut chip), true).unwrap();
        for key in 0..300u32 {
            let found = index.get(&key.to_be_bytes(), 0, &mut [0; 4]).unwrap();
            assert_eq!(found, Some(4), "{name}: key {key}");
        }
        put(&mut *index, 0..300).unwrap();
        index.close().unwrap();
    }
}

impl Stage {
    /// Has a program refused from operation `at` on, and the power cut `behind` operations after
    /// it; returns whether that came to pass.
    fn cut_behind_refusal(&self, at: u64, behind: u64) -> bool {
        let name = format!("{}, refused at {at}, cut {behind} behind", self.name());
        let mut chip = chip();
        drop(self.index(&mut chip, false).unwrap());
        let refused_program = Failure::at(at);
        chip.arm(FaultPlan { refused_program, ..FaultPlan::seeded(at) });
        let mut acknowledged = 0;
        let hook = CutBehind { behind, since: None };
        if let Ok(mut index) = self.index(Hooked { chip: &mut chip, hook }, true) {
            while acknowledged < 2_000 {
                if put(&mut *index, acknowledged..acknowledged + 16).is_err() {
                    break;
                }
                acknowledged += 16;
            }
        }
        let refused = chip.faults().count(FaultKind::RefusedProgram) > 0;
        chip.arm(FaultPlan::default());
        let opened = self.index(&mut chip, true);
        let mut index = opened.unwrap_or_else(|error| panic!("{name}: {error}"));
        for key in 0..acknowledged {
            let found = index.get(&key.to_be_bytes(), 0, &mut [0; 4]).unwrap();
            assert_eq!(found, Some(4), "{name}: key {key}");
        }
        put(&mut *index, 0..64).unwrap_or_else(|error| panic!("{name}: {error}"));
        index.check(&mut |finding| panic!("{name}: {finding}")).unwrap();
        refused && acknowledged < 2_000
    }
}

/// Cuts the power so many operations after the chip refused one.
struct CutBehind {
    behind: u64,
    since: Option<u64>,
}

impl<N: Nand> Hook<N> for CutBehind {
    fn before(&mut self, _: &mut N) -> device::Result<()> {
        self.since = self.since.map(|since| since + 1);
        match self.since {
            Some(since) if since >= self.behind => Err(device::Error::PowerCut),
            _ => Ok(()),
        }
    }

    fn program(&mut self, chip: &mut N, program: Program<'_>) -> device::Result<()> {
        let programmed = program.on(chip);
        if programmed.is_err() {
            self.since.get_or_insert(0);
        }
        programmed
    }
}

fn put(index: &mut dyn Index, keys: std::ops::Range<u32>) -> index::Result<()> {
    for key in keys {
        index.update(&[Update::Put { key: &key.to_be_bytes(), value: &key.to_be_bytes() }])?;
        if key % 16 == 15 {
            index.sync()?;
        }
    }
    Ok(())
}

#[test]
fn a_chip_that_refuses_for_a_while_loses_no_block_and_is_opened_again() {
    for stage in Stage::all() {
        for refused in [Refused::Programs, Refused::Both] {
            stage.live(refused);
        }
    }
}

/// Where nothing stands yet, too: every layer that makes a disk tells, and marks nothing.
#[test]
fn nothing_is_made_on_a_chip_that_refuses_and_no_block_is_lost() {
    for stage in Stage::all() {
        for refused in [Refused::Programs, Refused::Erases, Refused::Both] {
            let (mut chip, controller) = (chip(), Controller::new(refused));
            // Old content, so that there is something to erase.
            drop(stage.index(&mut chip, false).unwrap());
            controller.set(true);
            let made = stage.index(controller.over(&mut chip), false).map(|_| ());
            let made = made.map_err(|error| of_device(&error));
            // Trees on raw flash erase nothing before they need it.
            assert!(
                made == Err(FAILING) || made.is_ok(),
                "{}, {refused:?}: {made:?}",
                stage.name()
            );
            assert_eq!(bad_blocks(&mut chip), 0, "{}, {refused:?}", stage.name());
        }
    }
}

/// A block that refused is marked a program later only: if the power is cut before, it is found
/// unmarked, with a page that may be whole.
#[test]
fn a_power_cut_behind_a_refusal_loses_nothing() {
    let mut reached = 0;
    for stage in Stage::all() {
        for at in (0..600).step_by(7) {
            for behind in 1..=3 {
                reached += u32::from(stage.cut_behind_refusal(at, behind));
            }
        }
    }
    assert!(reached > 500, "{reached} refusals with a cut behind");
}

#[test]
fn a_block_that_refuses_is_marked_as_soon_as_another_is_programmed() {
    let (mut chip, controller) = (chip(), Controller::new(Refused::Both));
    let mut nand = Watched::new(controller.over(&mut chip));
    let program = |nand: &mut Watched<_>, block: u32| {
        nand.program(geometry().first_page(Block(block)), 0, &[1; 512], &[], Cause::Update)
    };
    controller.set(true);
    for block in [3, 4] {
        assert!(program(&mut nand, block).is_err());
        nand.mark_bad(Block(block)).unwrap();
    }
    assert!(nand.erase(Block(5), Cause::Update).is_err());
    nand.mark_bad(Block(5)).unwrap();
    controller.set(false);
    let marked = |nand: &mut Watched<_>| [3, 4, 5].map(|block| nand.is_bad(Block(block)).unwrap());
    assert_eq!(marked(&mut nand), [false; 3], "marked before anything worked");
    nand.erase(Block(6), Cause::Update).unwrap();
    assert_eq!(marked(&mut nand), [false, false, true], "an erase shows that erases work");
    program(&mut nand, 6).unwrap();
    assert_eq!(marked(&mut nand), [true; 3]);
    // Nothing was refused since: four blocks may follow that are worn.
    controller.set(true);
    for block in 7..10 {
        assert_eq!(nand.erase(Block(block), Cause::Update), refused_erase(block));
    }
    assert_eq!(nand.erase(Block(10), Cause::Update).err(), FAILING);
    controller.set(false);
    assert_eq!(program(&mut nand, 11).err(), FAILING, "it is used no more");
}

fn refused_erase(block: u32) -> device::Result<()> {
    Err(device::Error::EraseRefused { block: Block(block) })
}
