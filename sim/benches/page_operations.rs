//! How many page operations a second the simulated chip serves, on one core:
//! `cargo bench -p flashtree-sim`. The figure is the column of items a second. `mixed` and `read`
//! run without a plan of faults, `armed_but_idle` runs `mixed` with every fault armed, none of
//! which ever comes.

#![allow(clippy::expect_used, reason = "a benchmark may stop")]

use device::{Block, Cause, Geometry, Linear, Nand, NandCosts, Page};
use divan::counter::ItemsCount;
use flashtree_sim::{Cut, Failure, FaultKind, FaultPlan, Flips, Growth, SimulatedNand, WearOut};

const PAGES_PER_BLOCK: u32 = 32;
const BLOCKS: u32 = 1024;

fn main() {
    divan::main();
}

/// A chip of 16 MiB with the costs of toshiba-tc58dvg02a1ft00.
fn chip(page_bytes: u32) -> SimulatedNand {
    let geometry = Geometry::new(page_bytes, PAGES_PER_BLOCK, BLOCKS)
        .and_then(|geometry| geometry.with_spare(16))
        .expect("the numbers are in their bounds");
    let mut costs = NandCosts::default();
    costs.read.time = Linear { fixed: 69_000, per_byte_thousandths: 1_759_000, per_page: 0 };
    costs.program.time = Linear { fixed: 274_000, per_byte_thousandths: 1_500_000, per_page: 0 };
    costs.erase.time = Linear::fixed(1_881_000);
    SimulatedNand::new(geometry, costs)
}

/// Every fault that has a rate or a time, so seldom or so late that none comes.
fn idle_plan() -> FaultPlan {
    const SELDOM: f64 = 1e-15;
    FaultPlan {
        power_cut: Some(Cut::Change(1 << 50)),
        refused_program: Failure { at_operation: Some(1 << 50), ..Failure::with_rate(SELDOM) },
        refused_erase: Failure::with_rate(SELDOM),
        silent_program: Failure::with_rate(SELDOM),
        silent_erase: Failure::with_rate(SELDOM),
        flips: Flips {
            corrected_rate: SELDOM,
            uncorrectable_rate: SELDOM,
            growth: Growth { per_erase: 0.001, ..Growth::default() },
            ..Flips::default()
        },
        wear_out: Some(WearOut { endurance: 1 << 30, certain: 1 << 31 }),
        random_bad_blocks: 0,
        ..FaultPlan::seeded(1)
    }
}

/// Turns over the whole chip: each block is erased, then each of its pages is programmed and some
/// page of the chip is read.
fn turn_over(chip: &mut SimulatedNand, page: &mut [u8]) -> u64 {
    let mut spare = [0; 16];
    let mut operations = 0;
    let mut somewhere = 1_u32;
    for block in (0..BLOCKS).map(Block) {
        chip.erase(block, Cause::Reclamation).expect("no block is bad");
        for place in 0..PAGES_PER_BLOCK {
            let target = Page(block.0 * PAGES_PER_BLOCK + place);
            chip.program(target, 0, page, &spare, Cause::Flush).expect("the page is erased");
            somewhere = somewhere.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let source = Page(somewhere % (PAGES_PER_BLOCK * BLOCKS));
            chip.read(source, 0, page, &mut spare, Cause::Lookup).expect("the page exists");
        }
        operations += 1 + 2 * u64::from(PAGES_PER_BLOCK);
    }
    operations
}

#[divan::bench(args = [512, 2048])]
fn mixed(bencher: divan::Bencher<'_, '_>, page_bytes: u32) {
    let mut chip = chip(page_bytes);
    let mut page = vec![0x5A; page_bytes as usize];
    let operations = turn_over(&mut chip, &mut page);
    bencher
        .counter(ItemsCount::new(operations))
        .bench_local(|| turn_over(&mut chip, divan::black_box(&mut page)));
}

#[divan::bench(args = [512, 2048])]
fn armed_but_idle(bencher: divan::Bencher<'_, '_>, page_bytes: u32) {
    let mut chip = chip(page_bytes).with_faults(idle_plan());
    let mut page = vec![0x5A; page_bytes as usize];
    let operations = turn_over(&mut chip, &mut page);
    bencher
        .counter(ItemsCount::new(operations))
        .bench_local(|| turn_over(&mut chip, divan::black_box(&mut page)));
    let happened: Vec<(FaultKind, u64)> = chip.faults().iter().collect();
    assert!(happened.is_empty(), "the plan was not idle: {happened:?}");
}

#[divan::bench(args = [16, 512])]
fn read(bencher: divan::Bencher<'_, '_>, bytes: usize) {
    let mut chip = chip(512);
    let mut page = vec![0x5A; 512];
    turn_over(&mut chip, &mut page);
    let mut somewhere = 1_u32;
    bencher.counter(ItemsCount::new(1000_u64)).bench_local(|| {
        for _ in 0..1000 {
            somewhere = somewhere.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let source = Page(somewhere % (PAGES_PER_BLOCK * BLOCKS));
            let read = chip.read(source, 0, &mut page[..bytes], &mut [], Cause::Lookup);
            divan::black_box(read).expect("the page exists");
        }
    });
}

/// Copies of a chip of `blocks` full blocks of 16 KiB, as tests of power cuts make them.
#[divan::bench(args = [16, 64])]
fn copy(bencher: divan::Bencher<'_, '_>, blocks: u32) {
    let page = vec![0x5A; 512];
    let geometry = Geometry::new(512, PAGES_PER_BLOCK, blocks).expect("they are in their bounds");
    let mut chip = SimulatedNand::new(geometry, NandCosts::default());
    for page_number in 0..geometry.pages() {
        chip.program(Page(page_number), 0, &page, &[], Cause::Flush).expect("it is erased");
    }
    bencher.bench_local(|| divan::black_box(&chip).clone());
}
