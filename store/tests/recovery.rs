//! A page file comes back to its last checkpoint, its journal and its named checkpoints, wherever
//! the power is cut.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use device::{Cause, DiskCosts, SectorGeometry};
use flashtree_store::{
    Durability, Error, LogicalPage, PageCheck, PageFile, PageFileOptions, Recovery, Replayed,
    Result, Update,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, DiskFaultPlan, SimulatedDisk, Trimmed};

const CAUSE: Cause = Cause::Update;

struct Any;

impl PageCheck for Any {
    fn check(&self, _page: &[u8]) -> std::result::Result<(), &'static str> {
        Ok(())
    }

    fn is_kind(&self, _page: &[u8]) -> bool {
        true
    }
}

/// What the pages in use hold.
type Pages = BTreeMap<u32, u64>;

/// What must be there after a cut: the last checkpoint, or the one that was being made.
#[derive(Clone, Default)]
struct Model {
    now: Pages,
    last: Option<(u64, Pages)>,
    next: Option<(u64, Pages)>,
    named: BTreeMap<String, (u64, Pages)>,
    /// What was forgotten: going back to an earlier checkpoint brings its list of names back.
    forgotten: BTreeMap<String, (u64, Pages)>,
    /// Names that may be there or not, since the cut fell when they came or went.
    uncertain: BTreeSet<String>,
    /// Updates recorded since the last checkpoint, of which so many were synced.
    recorded: u64,
    synced: u64,
}

#[derive(Clone, Debug)]
struct Case {
    sector_bytes: u32,
    page_bytes: u32,
    durability: Durability,
    frames: u64,
    /// In front of something, this many sectors as a power of two.
    front: Option<u8>,
    seed: u64,
}

impl Case {
    fn options(&self) -> PageFileOptions {
        let frame = u64::from(self.page_bytes) + 48;
        let memory = 3 * u64::from(self.sector_bytes) + self.frames * frame;
        PageFileOptions {
            durability: self.durability,
            journal_bytes: Some(u64::from(self.sector_bytes) * 16),
            front: self.front,
            ..PageFileOptions::new(self.page_bytes, memory)
        }
    }

    fn disk(&self) -> SimulatedDisk {
        let geometry = SectorGeometry::new(self.sector_bytes, 900).unwrap();
        SimulatedDisk::new(geometry, DiskCosts::default())
    }
}

fn write(file: &mut PageFile<'_>, page: u32, mark: u64) -> Result<()> {
    let bytes = file.page_mut(LogicalPage(page), CAUSE, &Any)?;
    bytes[16..24].copy_from_slice(&mark.to_le_bytes());
    Ok(())
}

fn read(file: &mut PageFile<'_>, page: u32) -> Result<u64> {
    let bytes = file.page(LogicalPage(page), CAUSE, &Any)?;
    Ok(u64::from_le_bytes(*bytes[16..].first_chunk().unwrap()))
}

fn names(file: &PageFile<'_>) -> Vec<String> {
    file.checkpoints().iter().map(|kept| kept.name.clone()).collect()
}

struct Run<'c> {
    case: &'c Case,
    random: ChaCha8Rng,
    model: Model,
}

impl Run<'_> {
    fn play(&mut self, disk: &mut SimulatedDisk, fresh: bool, steps: u32) -> Result<()> {
        let mut file = match fresh {
            true => PageFile::create(Box::new(disk), &self.case.options())?,
            false => self.reopen(disk)?,
        };
        // As the index does when it was made, and after a replay.
        self.checkpoint(&mut file, None)?;
        for _ in 0..steps {
            self.step(&mut file)?;
        }
        Ok(())
    }

    fn reopen<'d>(&mut self, disk: &'d mut SimulatedDisk) -> Result<PageFile<'d>> {
        let (mut file, root) = PageFile::open(Box::new(disk), &self.case.options())?;
        let id = u64::from_le_bytes(*root.first_chunk().unwrap());
        let last = self.model.last.take();
        let is_last = last.as_ref().is_some_and(|(made, _)| *made == id);
        let state = if is_last { last } else { self.model.next.take() };
        let (made, pages) = state.unwrap();
        assert_eq!(made, id, "the root record is of no checkpoint that may be there");
        let journal = if is_last { (self.model.synced, self.model.recorded) } else { (0, 0) };
        self.model.now.clone_from(&pages);
        self.model.last = Some((id, pages));
        self.model.next = None;
        self.compare(&mut file)?;
        self.compare_names(&file);
        let mut buffer = [0; 64];
        let mut replayed = 0;
        while let Some(next) = file.next_replayed(&mut buffer)? {
            let Replayed::Update(update) = next else { panic!("{next:?}") };
            assert_eq!(update.key(), format!("{id}/{replayed}").as_bytes());
            replayed += 1;
        }
        let (synced, recorded) = journal;
        assert!((synced..=recorded).contains(&replayed), "{synced}, {replayed}, {recorded}");
        self.model.synced = replayed;
        self.model.recorded = replayed;
        Ok(file)
    }

    fn compare(&self, file: &mut PageFile<'_>) -> Result<()> {
        for (&page, &mark) in &self.model.now {
            assert_eq!(read(file, page)?, mark, "page {page}");
        }
        let (used, high_water) = file.pages_used();
        let free = file.count_free(CAUSE)?;
        // Directories and long root records take pages of their own.
        assert!(used as usize >= self.model.now.len(), "{used} pages in use");
        assert_eq!(used + free, high_water);
        Ok(())
    }

    fn compare_names(&mut self, file: &PageFile<'_>) {
        let names = names(file);
        let model = &mut self.model;
        for name in &names {
            if let Some(state) = model.forgotten.remove(name) {
                model.named.insert(name.clone(), state);
            }
        }
        let strange: Vec<_> =
            names.iter().filter(|name| !model.named.contains_key(*name)).collect();
        assert!(strange.is_empty(), "{strange:?} from nowhere");
        let is_lost = |name: &&String| !names.contains(name) && !model.uncertain.contains(*name);
        let lost: Vec<_> = model.named.keys().filter(is_lost).collect();
        assert!(lost.is_empty(), "{lost:?} lost");
        let gone = model.named.extract_if(.., |name, _| !names.contains(name));
        model.forgotten.extend(gone);
        model.uncertain.clear();
    }

    fn checkpoint(&mut self, file: &mut PageFile<'_>, name: Option<String>) -> Result<()> {
        let id = self.random.random::<u64>();
        let mut root = id.to_le_bytes().to_vec();
        root.resize(self.random.random_range(8..1200), 7);
        let state = (id, self.model.now.clone());
        if let Some(name) = &name {
            self.model.named.insert(name.clone(), state.clone());
            self.model.uncertain.insert(name.clone());
        }
        self.model.next = Some(state);
        file.checkpoint(&root, name.as_deref())?;
        self.settle();
        Ok(())
    }

    /// What was being made is made.
    fn settle(&mut self) {
        self.model.last = self.model.next.take();
        self.model.uncertain.clear();
        self.model.recorded = 0;
        self.model.synced = 0;
    }

    fn step(&mut self, file: &mut PageFile<'_>) -> Result<()> {
        let pick = self.random.random_range(0..self.model.now.len().max(1));
        let page = self.model.now.keys().nth(pick).copied();
        let mark = self.random.random();
        match (self.random.random_range(0..200), page) {
            (0..30, _) if file.pages_free() > 8 => {
                let page = file.allocate(CAUSE)?.0;
                file.fresh(LogicalPage(page))?;
                write(file, page, mark)?;
                assert_eq!(self.model.now.insert(page, mark), None, "page {page} given out twice");
            }
            (30..55, Some(page)) => {
                self.model.now.remove(&page);
                file.free(LogicalPage(page), CAUSE)?;
            }
            (55..110, Some(page)) => {
                write(file, page, mark)?;
                self.model.now.insert(page, mark);
            }
            (110..150, Some(page)) => {
                assert_eq!(read(file, page)?, self.model.now[&page], "page {page}");
            }
            (150..180, _) => self.record(file)?,
            (180..183, _) => {
                file.sync()?;
                self.model.synced = self.model.recorded;
            }
            (183..187, _) => self.checkpoint(file, None)?,
            (187..190, _) if self.model.named.len() < 4 => {
                self.checkpoint(file, Some(format!("name {mark}")))?;
            }
            (190..192, _) => self.forget(file)?,
            (192..194, _) => self.roll_back(file)?,
            _ => {}
        }
        self.make_room(file)
    }

    fn make_room(&mut self, file: &mut PageFile<'_>) -> Result<()> {
        match file.needs_checkpoint(&[], 8) {
            Ok(false) => Ok(()),
            Ok(true) => self.checkpoint(file, None),
            Err(Error::Kept { .. }) => {
                while !self.model.named.is_empty() {
                    self.forget(file)?;
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn record(&mut self, file: &mut PageFile<'_>) -> Result<()> {
        let id = self.model.last.as_ref().map_or(0, |(id, _)| *id);
        let count = self.random.random_range(1..20);
        let first = self.model.recorded;
        let keys: Vec<String> =
            (first..first + count).map(|place| format!("{id}/{place}")).collect();
        let batch: Vec<Update<'_>> =
            keys.iter().map(|key| Update::Put { key: key.as_bytes(), value: &[1; 9] }).collect();
        match file.needs_checkpoint(&batch, 1) {
            Ok(false) => {}
            _ => return Ok(()),
        }
        if self.case.durability == Durability::Checkpoint {
            return file.record(&batch);
        }
        self.model.recorded += count;
        file.record(&batch)?;
        if self.case.durability == Durability::Every {
            self.model.synced = self.model.recorded;
        }
        Ok(())
    }

    fn some_name(&mut self) -> Option<String> {
        let pick = self.random.random_range(0..self.model.named.len().max(1));
        self.model.named.keys().nth(pick).cloned()
    }

    fn forget(&mut self, file: &mut PageFile<'_>) -> Result<()> {
        let Some(name) = self.some_name() else { return Ok(()) };
        self.model.uncertain.insert(name.clone());
        file.forget(&name)?;
        self.checkpoint(file, None)?;
        if let Some(state) = self.model.named.remove(&name) {
            self.model.forgotten.insert(name, state);
        }
        Ok(())
    }

    fn roll_back(&mut self, file: &mut PageFile<'_>) -> Result<()> {
        let Some(name) = self.some_name() else { return Ok(()) };
        let target = self.model.named[&name].clone();
        self.model.next = Some(target.clone());
        let listed = names(file);
        let place = listed.iter().position(|kept| *kept == name).unwrap();
        self.model.uncertain.extend(listed[place + 1..].iter().cloned());
        // If it is the last checkpoint to which the cut leads back, its journal may be gone.
        self.model.synced = 0;
        let root = file.roll_back(&name)?;
        assert_eq!(root[..8], target.0.to_le_bytes());
        self.model.named.retain(|kept, _| listed[..=place].contains(kept));
        self.model.now.clone_from(&target.1);
        self.settle();
        self.compare_names(file);
        self.compare(file)
    }
}

fn storm(case: &Case, cuts: u32) {
    let random = ChaCha8Rng::seed_from_u64(case.seed);
    let mut run = Run { case, random, model: Model::default() };
    let mut disk = case.disk();
    run.play(&mut disk, true, 50).unwrap();
    // Drops what is in memory only, as a cut does.
    disk.arm(DiskFaultPlan::seeded(case.seed));
    disk.cut_power();
    for cut in 0..cuts {
        let at = Cut::Change(run.random.random_range(1..400));
        let mut plan = DiskFaultPlan::cut(case.seed + u64::from(cut), at);
        plan.trimmed = Trimmed::Any;
        disk.restore_power();
        disk.arm(plan);
        match run.play(&mut disk, false, 600) {
            Ok(()) => disk.cut_power(),
            Err(Error::Device(device::Error::PowerCut)) => {}
            Err(error) => panic!("{error} after {cut} cuts"),
        }
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (sector_bytes, page_bytes) in [(512, 512), (512, 1024), (1024, 256), (4096, 4096)] {
        for durability in [Durability::Checkpoint, Durability::Batch, Durability::Every] {
            for (frames, front) in [(3, None), (24, None), (3, Some(9)), (24, Some(9))] {
                let seed = 1000 * cases.len() as u64;
                cases.push(Case { sector_bytes, page_bytes, durability, frames, front, seed });
            }
        }
    }
    cases
}

#[test]
fn checkpoints_journal_and_names_come_back_after_every_cut() {
    for case in cases() {
        println!("{case:?}");
        storm(&case, 60);
    }
}

#[test]
fn checkpoints_of_the_same_pages_in_front_keep_no_more_for_a_name() {
    let case = Case {
        sector_bytes: 512,
        page_bytes: 512,
        durability: Durability::Batch,
        frames: 24,
        front: Some(9),
        seed: 0,
    };
    let mut disk = case.disk();
    let mut file = PageFile::create(Box::new(&mut disk), &case.options()).unwrap();
    for page in 0..5 {
        assert_eq!(file.allocate(CAUSE).unwrap(), LogicalPage(page));
        file.fresh(LogicalPage(page)).unwrap();
        write(&mut file, page, 7).unwrap();
    }
    file.checkpoint(b"", Some("first")).unwrap();
    let change = |file: &mut PageFile<'_>, marks: std::ops::Range<u64>| {
        for mark in marks {
            (0..5).for_each(|page| write(file, page, mark).unwrap());
            file.checkpoint(b"", None).unwrap();
        }
        file.statistics().kept_bytes
    };
    let once = change(&mut file, 100..110);
    assert!(once > 0 && once <= 512 * 3 * 20, "{once}");
    assert_eq!(change(&mut file, 110..300), once);
    drop(file);
    let mut file = PageFile::open(Box::new(&mut disk), &case.options()).unwrap().0;
    assert_eq!(change(&mut file, 300..400), once, "an opening knows what there is");
    file.checkpoint(b"", Some("second")).unwrap();
    let twice = change(&mut file, 400..500);
    assert!(twice > once && twice <= 2 * once + 512 * 4, "{twice}");
    for (name, mark) in [("second", 399), ("first", 7)] {
        file.roll_back(name).unwrap();
        for page in 0..5 {
            assert_eq!(read(&mut file, page).unwrap(), mark, "{name}");
        }
        change(&mut file, 500..510);
    }
}

/// Each checkpoint adds to what a name keeps, so none comes for what a batch may change at most.
#[test]
fn while_a_name_keeps_images_a_checkpoint_is_due_when_they_are_many() {
    let case = Case {
        sector_bytes: 512,
        page_bytes: 512,
        durability: Durability::Batch,
        frames: 64,
        front: None,
        seed: 0,
    };
    let mut disk = case.disk();
    let mut file = PageFile::create(Box::new(&mut disk), &case.options()).unwrap();
    let pages = 50;
    for page in 0..pages {
        assert_eq!(file.allocate(CAUSE).unwrap(), LogicalPage(page));
        file.fresh(LogicalPage(page)).unwrap();
        write(&mut file, page, 7).unwrap();
    }
    file.checkpoint(b"", None).unwrap();
    let limit = (file.statistics().undo_bytes_most / 512) as u32;
    assert!((2..pages).contains(&limit), "{limit}");
    write(&mut file, 0, 8).unwrap();
    assert!(file.needs_checkpoint(&[], limit).unwrap());
    file.checkpoint(b"", Some("name")).unwrap();
    for page in 0..limit {
        assert!(!file.needs_checkpoint(&[], limit).unwrap(), "{page} of {limit}");
        write(&mut file, page, 9).unwrap();
    }
    assert!(file.needs_checkpoint(&[], 1).unwrap());
}
