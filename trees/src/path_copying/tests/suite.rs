//! The trees that copy their paths, alone, on raw flash.

use std::ops::Bound;
use std::sync::{Arc, Mutex};

use crate::raw_flash_cuts::survives_on_raw_flash;
use contract::nand::{Hook, Hooked, Program, Read};
use contract::tree::Model;
use device::{Cause, Geometry, Medium, Nand, NandCosts, Page};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, KeyRange, Resume, Update};
use index::{MediumShape, Options};
use sim::SimulatedNand;

/// Tortures the cells of `tree` on raw flash.
fn survives(tree: &str) {
    let all = survives_on_raw_flash(tree, 144, 8_000);
    assert!(all.reclamations > 0, "{all}");
}

#[test]
fn mu_star_keeps_what_it_acknowledged_when_the_power_is_cut() {
    survives("mu-star");
}

#[test]
fn mu_keeps_what_it_acknowledged_when_the_power_is_cut() {
    survives("mu");
}

#[test]
fn the_wandering_b_plus_tree_keeps_what_it_acknowledged_when_the_power_is_cut() {
    survives("b-plus");
}

/// What collection wrote since it last gave a block up: level and first key of each node.
#[derive(Default)]
struct OfVictim {
    written: Vec<(u8, [u8; 4])>,
    /// Of each victim: leaves, parents, parents that were written before, and roots.
    victims: Vec<[usize; 4]>,
}

#[derive(Clone, Default)]
struct Moves(Arc<Mutex<OfVictim>>);

impl Hook<SimulatedNand> for Moves {
    fn program(&mut self, chip: &mut SimulatedNand, program: Program<'_>) -> device::Result<()> {
        if program.cause == Cause::Reclamation {
            // The header says the lowest level of the page; behind it stands a packed node.
            let key = program.data[36 + 8..36 + 12].try_into().unwrap();
            self.0.lock().unwrap().written.push((program.data[27], key));
        }
        program.on(chip)
    }

    fn erase(
        &mut self,
        chip: &mut SimulatedNand,
        block: device::Block,
        cause: Cause,
    ) -> device::Result<()> {
        if cause == Cause::Reclamation {
            let mut moves = self.0.lock().unwrap();
            let mut written = std::mem::take(&mut moves.written);
            let of = |written: &[(u8, [u8; 4])], level| {
                written.iter().filter(|node| node.0 == level).count()
            };
            let [leaves, parents, roots] = [0, 1, 2].map(|level| of(&written, level));
            written.sort_unstable();
            written.dedup();
            moves.victims.push([leaves, parents, parents - of(&written, 1), roots]);
        }
        chip.erase(block, cause)
    }
}

/// A number that looks like chance.
fn random(number: u32) -> u32 {
    let mixed = (number ^ number >> 16).wrapping_mul(0x85EB_CA6B);
    let mixed = (mixed ^ mixed >> 13).wrapping_mul(0xC2B2_AE35);
    mixed ^ mixed >> 16
}

#[test]
fn the_wandering_b_plus_tree_moves_a_victims_pages_with_each_parent_once() {
    const ENTRIES: u32 = 45_000;
    let moves = Moves::default();
    let geometry = Geometry::new(2048, 64, 26).unwrap().with_spare(64).unwrap();
    let chip = SimulatedNand::new(geometry, NandCosts::default());
    let mut index =
        with(("b-plus", Durability::None), Hooked { chip, hook: moves.clone() }, 32 << 10);
    let mut model = Model::default();
    for number in 0..3 * ENTRIES {
        // Leaves that are written at random: some live on when their turn comes.
        let which = if number < ENTRIES { number } else { random(number) % ENTRIES };
        let key = which.wrapping_mul(0x9E37_79B9).to_be_bytes();
        let value = number.to_le_bytes();
        index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
        model.entries.insert(key.to_vec(), value.to_vec());
    }
    assert_eq!(index.statistics().height, 3);
    let victims = moves.0.lock().unwrap().victims.clone();
    let sums = [0, 1, 2, 3].map(|what| victims.iter().map(|victim| victim[what]).sum::<usize>());
    let [leaves, parents, twice, roots] = sums;
    let seen = format!(
        "{} victims: {leaves} leaves, {parents} parents, {twice} of them again, {roots} roots",
        victims.len()
    );
    println!("{seen}");
    assert_eq!(twice, 0, "{seen}");
    assert!(leaves > 2 * parents && leaves > 500, "too few are shared: {seen}");
    // A victim is moved in four steps at the most.
    assert!(victims.iter().all(|victim| victim[3] <= 4), "{seen}");
    model.compare_all(&mut *index);
    index.check(&mut |finding| panic!("{finding}")).unwrap();
}

/// The page that was programmed last, and the page that reads wrong.
#[derive(Clone, Default)]
struct Damage(Arc<Mutex<(Option<Page>, Option<Page>)>>);

impl Hook<SimulatedNand> for Damage {
    fn read(&mut self, chip: &mut SimulatedNand, read: Read<'_>) -> device::Result<u16> {
        let Read { page, offset, into, spare, cause } = read;
        let corrected = chip.read(page, offset, into, spare, cause)?;
        if self.0.lock().unwrap().1 == Some(page) {
            into.iter_mut().for_each(|byte| *byte ^= 1);
        }
        Ok(corrected)
    }

    fn program(&mut self, chip: &mut SimulatedNand, program: Program<'_>) -> device::Result<()> {
        self.0.lock().unwrap().0 = Some(program.page);
        program.on(chip)
    }
}

/// `tree` with pages of 4 KiB, entries of 4+4 bytes, no cache and no buffer.
fn over<'c>(tree: &str, chip: impl Nand + 'c) -> Box<dyn Index + 'c> {
    with((tree, Durability::Every), chip, 0)
}

/// A tree with entries of 4+4 bytes, and so many bytes of memory beside the least.
fn with<'c>(
    (tree, durability): (&str, Durability),
    chip: impl Nand + 'c,
    memory: u64,
) -> Box<dyn Index + 'c> {
    let entry = find(tree).unwrap();
    let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
    let mut options = Options::new(EntryShape::fixed(4, 4), 0, settings);
    let shape = MediumShape::Nand(chip.geometry());
    options.durability = Some(durability);
    options.memory_bytes = memory + entry.least_memory(&options, shape).unwrap();
    (entry.create)(Medium::Nand(Box::new(chip)), &options).unwrap()
}

fn chip() -> SimulatedNand {
    let geometry = Geometry::new(4096, 64, 64).unwrap().with_spare(64).unwrap();
    SimulatedNand::new(geometry, NandCosts::default())
}

fn entries(count: u32) -> Model {
    let mut model = Model::default();
    for number in 0..count {
        model.entries.insert(number.to_be_bytes().to_vec(), number.to_le_bytes().to_vec());
    }
    model
}

#[test]
fn reading_goes_on_behind_a_damaged_leaf_and_loses_nothing_else() {
    const ENTRIES: u32 = 20_000;
    for tree in ["b-plus", "mu", "mu-star"] {
        let damage = Damage::default();
        let mut index = over(tree, Hooked { chip: chip(), hook: damage.clone() });
        index.load(&mut entries(ENTRIES).cursor(), 70).unwrap();
        let put = |index: &mut dyn Index, number: u32| {
            let (key, value) = (number.to_be_bytes(), number.to_le_bytes());
            index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
        };
        // The root moves on, and the leaf of the first keys stays where it is.
        put(&mut *index, 0);
        let find_leaf = || damage.0.lock().unwrap().0.unwrap();
        let last = find_leaf();
        put(&mut *index, ENTRIES - 1);
        let leaf = (last.0 - 3..=last.0).map(Page).find(|page| {
            damage.0.lock().unwrap().1 = Some(*page);
            let (mut into, first) = ([0; 4], 0u32.to_be_bytes());
            let is_gone = index.get(&first, 0, &mut into).is_err();
            let last = (ENTRIES - 1).to_be_bytes();
            is_gone && index.get(&last, 0, &mut into).is_ok()
        });
        assert!(leaf.is_some(), "{tree}: a leaf that stands alone");
        let first = index.resume_after(None).unwrap();
        let Resume::From(first) = first else { panic!("{tree}: {first:?}") };
        let number = u32::from_be_bytes(*first.first_chunk().unwrap());
        assert!((100..600).contains(&number), "{tree}: {number}");
        assert_eq!(
            index.resume_after(Some(&5u32.to_be_bytes())).unwrap(),
            Resume::From(first.clone())
        );
        let range = KeyRange { from: Bound::Included(&first), ..KeyRange::ALL };
        let mut cursor = index.range(range).unwrap();
        let mut next = number;
        while let Some((key, _)) = cursor.next().unwrap() {
            assert_eq!(key, next.to_be_bytes(), "{tree}");
            next += 1;
        }
        assert_eq!(next, ENTRIES, "{tree}");
        drop(cursor);
        assert_eq!(index.resume_after(Some(&(ENTRIES - 1).to_be_bytes())).unwrap(), Resume::End);
    }
}

/// Pages that loading programmed, and those that live then.
fn load(tree: &str, count: u32, fill: u8) -> (u64, u64) {
    let mut index = over(tree, chip());
    assert_eq!(index.load(&mut entries(count).cursor(), fill).unwrap(), u64::from(count));
    let model = entries(count);
    model.compare_all(&mut *index);
    let programs = index.meter().unwrap().tally(Cause::Load).page_programs;
    (programs, index.statistics().live_pages)
}

#[test]
fn loading_writes_a_page_a_leaf_which_is_filled_as_far_as_is_asked_for() {
    // Leaves of 252 entries.
    for (fill, leaf) in [(50, 126), (70, 177), (100, 252)] {
        let (programs, live) = load("mu", 40_000, fill);
        println!("mu, {fill} %: {programs} programs, {live} live pages");
        // Where a parent falls into two, one of them may have a page without a leaf.
        let leaves = 40_000u64.div_ceil(leaf);
        assert!((leaves..leaves + 3).contains(&live), "{fill} %: {live} live pages");
        assert!(programs <= live + 2, "{fill} %: {programs} programs, {live} live pages");
    }
    let [half, most] = [50, 100].map(|fill| load("mu-star", 40_000, fill));
    println!("mu-star: {half:?} programs and live pages at 50 %, {most:?} at 100 %");
    assert!(half.1 * 2 > most.1 * 3, "{half:?}, {most:?}");
    for (programs, live) in [half, most] {
        assert!(programs <= live + live / 10, "{programs} programs, {live} live pages");
    }
    // A root that changes with every leaf has a page there, too.
    let (programs, live) = load("b-plus", 40_000, 70);
    println!("b-plus: {programs} programs, {live} live pages");
    assert!(programs <= 2 * live, "{programs} programs, {live} live pages");
}
