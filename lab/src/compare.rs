//! A comparison: everything is read and checked first, then each tree runs by itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use index::TreeDescriptor;
use trees::TREES;

use crate::candidate::{Candidate, Footing, Layer, Storage};
use crate::error::{Error, Misfit, Result};
use crate::model::Model;
use crate::outcome::{Comparison, LeftOut, Measured};
use crate::plan::{DEFAULT_FTL, Plan, Watcher};
use crate::run::{Task, blank, blank_row, run};
use crate::workload::{Workload, WorkloadOptions};
use spec::shown;

/// Runs the plan's workload through each of its trees, each on a fresh device of its own.
///
/// # Errors
/// The plan makes no sense ([`Error::is_usage`]), or its files can't be read; then nothing ran. A
/// tree that fails on its way, or is cancelled, is a row with an error instead.
pub fn compare(plan: &Plan, watcher: &dyn Watcher) -> Result<Comparison> {
    compare_among(plan, watcher, TREES)
}

/// As [`compare`], among `trees`.
pub(crate) fn compare_among(
    plan: &Plan,
    watcher: &dyn Watcher,
    trees: &[&'static TreeDescriptor],
) -> Result<Comparison> {
    let named: Vec<Candidate> =
        plan.trees.iter().map(|spec| Candidate::read(spec, trees)).collect::<Result<_>>()?;
    let layer = Layer::read(plan.ftl.as_deref().unwrap_or(DEFAULT_FTL))?;
    let model = Model::read(plan)?;
    let options = WorkloadOptions {
        operations: plan.operations,
        seed: plan.seed,
        input: plan.input.clone(),
        device_bytes: Some(model.bytes()),
    };
    let workload = Workload::prepare(&plan.workload, &options)?;
    let storage = Storage {
        model,
        layer,
        shape: workload.shape(),
        memory: plan.memory,
        durability: plan.durability,
        entries: workload.entries_most(),
    };
    let (standing, left_out) = if named.is_empty() {
        choose(trees, &storage)?
    } else {
        (stand(named, &storage)?, Vec::new())
    };
    let tasks: Vec<Task<'_>> = standing
        .iter()
        .enumerate()
        .filter_map(|(place, (candidate, footing))| {
            let footing = footing.as_ref().ok()?;
            let (storage, workload) = (&storage, &workload);
            Some(Task { place, candidate, footing, storage, workload, plan, watcher })
        })
        .collect();
    // From here on there may be a file: all that makes no sense was refused before.
    let mut remarks: Vec<String> = storage.model.prepare()?.into_iter().collect();
    remarks.extend(unused_layer(plan, &tasks));
    let jobs = if storage.model.is_in_file() { 1 } else { plan.jobs };
    let mut measured = run_all(&tasks, jobs);
    let mut refused = 0;
    for (place, (candidate, footing)) in standing.iter().enumerate() {
        if let Err(reason) = footing {
            measured.insert(place, refused_row(plan, candidate, reason));
            refused += 1;
        }
    }
    remarks.extend(
        storage
            .model
            .file_that_stays()
            .map(|path| format!("{} stays: remove it when it is not needed", path.display())),
    );
    Ok(Comparison { measured, refused, left_out, remarks })
}

/// What to say where a translation layer was asked for, and these trees do without.
fn unused_layer(plan: &Plan, tasks: &[Task<'_>]) -> Option<String> {
    let ftl = plan.ftl.as_deref()?;
    let without: Vec<&Task<'_>> = tasks.iter().filter(|task| task.footing.ftl.is_none()).collect();
    if without.is_empty() {
        return None;
    }
    let names: Vec<String> = without.iter().map(|task| shown(&task.candidate.spec)).collect();
    let on_disk = !tasks.iter().any(|task| task.storage.model.is_chip());
    let instead = match without.iter().find(|task| task.candidate.can_stand_over_ftl()) {
        _ if on_disk => "the device is a disk already".to_string(),
        Some(task) => format!(
            "on a chip they stand on raw flash; with over=ftl, {} would not",
            shown(&task.candidate.spec)
        ),
        None => "on a chip they stand on raw flash".to_string(),
    };
    Some(format!("--ftl {} means nothing for {}: {instead}", shown(ftl), names.join(", ")))
}

/// The row of a tree that was named and does not fit.
fn refused_row(plan: &Plan, candidate: &Candidate, reason: &Misfit) -> Measured {
    let mut measured = Measured { row: blank_row(plan, &candidate.spec), ..Measured::default() };
    measured.row.error = Some(reason.to_string());
    measured
}

/// Trees, and how each stands or why it can't.
type Standing = Vec<(Candidate, std::result::Result<Footing, Misfit>)>;

/// The trees that were named. One that does not fit is a row with an error, if others do; a spec
/// that makes no sense ends all.
fn stand(named: Vec<Candidate>, storage: &Storage) -> Result<Standing> {
    let mut standing = Vec::new();
    for candidate in named {
        let footing = candidate.fit(storage);
        match footing {
            Err(reason) if reason.is_of_spec() => {
                return Err(Error::DoesNotFit { tree: candidate.spec, reason });
            }
            footing => standing.push((candidate, footing)),
        }
    }
    if standing.iter().any(|(_, footing)| footing.is_ok()) {
        return Ok(standing);
    }
    let misfits = standing
        .into_iter()
        .filter_map(|(tree, footing)| footing.err().map(|reason| (tree.spec, reason)));
    let mut misfits: Vec<(String, Misfit)> = misfits.collect();
    match (misfits.len(), misfits.pop()) {
        (1, Some((tree, reason))) => Err(Error::DoesNotFit { tree, reason }),
        (_, last) => Err(Error::NothingFits(misfits.into_iter().chain(last).collect())),
    }
}

/// The tree that runs only if it is named: a lookup of it reads half of everything.
const ASIDE: &str = "list";

/// The tree that runs on a chip a second time.
const TWICE: &str = "b-plus:over=ftl";

/// Every tree that fits, and why the others don't.
fn choose(
    trees: &[&'static TreeDescriptor],
    storage: &Storage,
) -> Result<(Standing, Vec<LeftOut>)> {
    let mut standing = Vec::new();
    let mut misfits: Vec<(String, Misfit)> = Vec::new();
    let usual = trees.iter().filter(|entry| entry.name != ASIDE).map(|it| Candidate::plain(it));
    let twice = storage.model.is_chip().then(|| Candidate::read(TWICE, trees).ok()).flatten();
    for candidate in usual.chain(twice) {
        match candidate.fit(storage) {
            Ok(footing) => standing.push((candidate, Ok(footing))),
            Err(reason) => misfits.push((candidate.spec, reason)),
        }
    }
    if standing.is_empty() {
        return Err(Error::NothingFits(misfits));
    }
    let left_out = misfits
        .into_iter()
        .map(|(tree, reason)| LeftOut { tree, reason: reason.to_string() })
        .collect();
    Ok((standing, left_out))
}

/// Runs every task, `jobs` at a time; the rows are in the order of the tasks.
fn run_all(tasks: &[Task<'_>], jobs: usize) -> Vec<Measured> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((task.place, run_guarded(task)));
        }
        done
    };
    let mut rows = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..jobs.min(tasks.len())).map(|_| scope.spawn(work)).collect();
        let mut rows = work();
        for helper in helpers {
            // No helper panics: what could is guarded.
            rows.extend(helper.join().unwrap_or_default());
        }
        rows
    });
    rows.sort_by_key(|(place, _)| *place);
    rows.into_iter().map(|(_, measured)| measured).collect()
}

/// Runs a tree; if it panics, that is its row's error, and the others go on.
fn run_guarded(task: &Task<'_>) -> Measured {
    // What a panic leaves half done is the tree and its device, which are dropped.
    let measured = catch_unwind(AssertUnwindSafe(|| run(task))).unwrap_or_else(|_| {
        let mut measured = blank(task);
        let error = "the tree broke off, by a mistake in the program";
        measured.row.error = Some(error.to_string());
        task.watcher.finish(task.place);
        measured
    });
    if measured.row.error.is_some() {
        task.storage.model.discard();
    }
    measured
}
