//! Running cells: how many cuts each gets, where it stands, and what comes of it.

use std::cell::Cell as Shared;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sim::FaultLog;

use super::cell::Cell;
use super::each::{self, Which};
use super::failure::Failure;
use super::id::{Play, ReplayId};
use super::life;
use super::session::Storage;
use super::witness::Witness;

/// After so many failures a cell is given up.
const FAILURES_MOST: u64 = 3;

/// What is to be tortured, and how much.
#[derive(Clone)]
pub struct Plan {
    /// The cells.
    pub cells: Vec<Cell>,
    /// Cuts in all cells together, at least.
    pub cuts: u64,
    /// Decides everything that is random.
    pub seed: u64,
    /// Cells that are tortured at the same time.
    pub jobs: usize,
}

/// Who watches a run, and may end it.
pub trait Watcher: Sync {
    /// Says that `cuts` more cuts were made.
    fn advance(&self, cuts: u64);

    /// True if the run should end.
    fn cancelled(&self) -> bool;
}

/// Nobody.
impl Watcher for () {
    fn advance(&self, _cuts: u64) {}

    fn cancelled(&self) -> bool {
        false
    }
}

/// What came of a cell.
#[derive(Clone)]
pub struct Row {
    /// The cell's name.
    pub cell: String,
    /// What happened.
    pub witness: Witness,
    /// What went wrong on its devices.
    pub faults: FaultLog,
    /// How many histories failed.
    pub failures: u64,
    /// The first failure: what plays it again, and what it was.
    pub first: Option<(ReplayId, String)>,
    /// How many cuts there were when the first failure was found.
    pub first_after: Option<u64>,
}

/// Fails if a cell did, with the commands that play the failures again.
///
/// # Panics
/// A cell failed.
pub fn assert_clean(rows: &[Row]) {
    let failed: Vec<String> = rows
        .iter()
        .filter_map(|row| row.first.as_ref())
        .map(|(id, failure)| format!("{failure}\n  {}", id.command()))
        .collect();
    assert!(failed.is_empty(), "{} cells failed\n{}", failed.len(), failed.join("\n"));
}

/// A cell in work.
pub(super) struct Run<'r> {
    row: Row,
    budget: u64,
    watcher: &'r dyn Watcher,
    /// Cuts of the history at hand that the watcher knows of.
    told: Shared<u64>,
    at: Shared<Play>,
    /// The session after which a life ends.
    last_session: Option<u32>,
}

impl<'r> Run<'r> {
    fn new(cell: &Cell, budget: u64, watcher: &'r dyn Watcher) -> Self {
        let row = Row {
            cell: cell.to_string(),
            witness: Witness::default(),
            faults: FaultLog::default(),
            failures: 0,
            first: None,
            first_after: None,
        };
        let nowhere = Play::Life { seed: 0, session: 0 };
        let (told, at) = (Shared::new(0), Shared::new(nowhere));
        Run { row, budget, watcher, told, at, last_session: None }
    }

    /// Says where the history stands.
    pub(super) fn at_session(&self, seed: u64, session: u32) {
        self.at.set(Play::Life { seed, session });
    }

    /// Says where the history stands.
    pub(super) fn at_cut(&self, seed: u64, which: Which) {
        self.at.set(Play::Each { seed, which });
    }

    /// True if the history on `storage` shall end.
    pub(super) fn is_over(&self, storage: &Storage<'_>) -> bool {
        let cuts = storage.witness.cuts;
        self.watcher.advance(cuts - self.told.replace(cuts));
        let is_last = match (self.at.get(), self.last_session) {
            (Play::Life { session, .. }, Some(last)) => session >= last,
            _ => false,
        };
        is_last || self.row.witness.cuts + cuts >= self.budget || self.watcher.cancelled()
    }

    /// Adds what a history did.
    pub(super) fn add(&mut self, storage: &mut Storage<'_>) {
        let cuts = storage.witness.cuts;
        self.watcher.advance(cuts - self.told.replace(0));
        self.row.witness += storage.witness;
        self.row.faults += storage.device.faults();
    }

    /// Plays one history; a failure goes into the row.
    fn play(&mut self, cell: &Cell, history: impl FnOnce(&mut Self) -> Result<(), Failure>) {
        let failure = match catch_unwind(AssertUnwindSafe(|| history(&mut *self))) {
            Ok(Ok(())) => return,
            Ok(Err(failure)) => failure,
            Err(panic) => Failure::Panic(words(&*panic)),
        };
        // What a history that panicked did is not added, but for its cuts.
        self.row.witness.cuts += self.told.replace(0);
        self.row.failures += 1;
        self.row.first_after.get_or_insert(self.row.witness.cuts);
        let id = ReplayId { cell: cell.clone(), play: self.at.get() };
        self.row.first.get_or_insert((id, failure.to_string()));
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words").to_string()
}

/// Tortures every cell of `plan`, each with its share of the cuts; a row a cell, in their order.
/// A run that the watcher ends has rows with fewer cuts.
pub fn torture(plan: &Plan, watcher: &dyn Watcher) -> Vec<Row> {
    let rows: Vec<Mutex<Option<Row>>> = plan.cells.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(place) = Some(next.fetch_add(1, Ordering::Relaxed))
            && let (Some(cell), Some(row)) = (plan.cells.get(place), rows.get(place))
            && !watcher.cancelled()
        {
            let done = torture_cell(cell, plan, place, watcher);
            if let Ok(mut row) = row.lock() {
                *row = Some(done);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.clamp(1, plan.cells.len().max(1)) {
            scope.spawn(work);
        }
    });
    rows.into_iter().filter_map(|row| row.into_inner().ok().flatten()).collect()
}

/// The share of a cell: what remains of a division goes to cells all over the list.
fn share(cuts: u64, place: usize, cells: usize) -> u64 {
    let until = |place: usize| u128::from(cuts) * place as u128 / cells.max(1) as u128;
    (until(place + 1) - until(place)) as u64
}

fn torture_cell(cell: &Cell, plan: &Plan, place: usize, watcher: &dyn Watcher) -> Row {
    let budget = share(plan.cuts, place, plan.cells.len());
    let mut run = Run::new(cell, budget, watcher);
    let mut unit = 0;
    while run.row.witness.cuts < budget
        && run.row.failures < FAILURES_MOST
        && unit < budget
        && !watcher.cancelled()
    {
        let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add(unit);
        // Cells that get few cuts get one kind of history, their neighbours the other.
        if (unit + place as u64).is_multiple_of(2) {
            run.play(cell, |run| each::play(cell, seed, None, run));
        } else {
            run.play(cell, |run| life::play(cell, seed, run));
        }
        unit += 1;
    }
    run.row
}

/// Plays one history again, up to the cut that `id` names.
#[must_use]
pub fn replay(id: &ReplayId) -> Row {
    let mut run = Run::new(&id.cell, u64::MAX, &());
    match id.play {
        Play::Life { seed, session } => {
            run.last_session = Some(session);
            run.play(&id.cell, |run| life::play(&id.cell, seed, run));
        }
        Play::Each { seed, which } => {
            // The start of the history is what failed, if no operation is named.
            run.play(&id.cell, |run| each::play(&id.cell, seed, Some(which), run));
        }
    }
    run.row
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn the_shares_of_all_cells_are_the_whole() {
        for (cuts, cells) in [(100, 7), (3, 10), (0, 4), (u64::MAX, 3)] {
            let shares: Vec<u64> = (0..cells).map(|place| share(cuts, place, cells)).collect();
            let whole: u128 = shares.iter().map(|share| u128::from(*share)).sum();
            assert_eq!(whole, u128::from(cuts));
            let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
            assert!(most - least <= 1, "{shares:?}");
        }
    }
}
