//! A comparison: everything is read and checked first, then each tree runs by itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use index::registry::{Entry, TREES};

use crate::candidate::{Candidate, Footing, Ground, Layer};
use crate::error::{Error, Misfit, Result};
use crate::model::Model;
use crate::outcome::{Comparison, LeftOut, Measured};
use crate::plan::{Plan, Watcher};
use crate::run::{Task, blank, run};
use crate::workload::{Workload, WorkloadOptions};

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
    trees: &[&'static Entry],
) -> Result<Comparison> {
    let named: Vec<Candidate> =
        plan.trees.iter().map(|spec| Candidate::read(spec, trees)).collect::<Result<_>>()?;
    let layer = Layer::read(&plan.ftl)?;
    let model = Model::read(plan)?;
    let options = WorkloadOptions {
        operations: plan.operations,
        seed: plan.seed,
        input: plan.input.clone(),
        device_bytes: Some(model.bytes()),
    };
    let workload = Workload::prepare(&plan.workload, &options)?;
    let ground = Ground {
        model,
        layer,
        shape: workload.shape(),
        memory: plan.memory,
        durability: plan.durability,
    };
    let (standing, left_out) = if named.is_empty() {
        choose(trees, &ground)?
    } else {
        (stand(named, &ground)?, Vec::new())
    };
    let tasks: Vec<Task<'_>> = standing
        .iter()
        .enumerate()
        .map(|(place, (candidate, footing))| Task {
            place,
            candidate,
            footing,
            ground: &ground,
            workload: &workload,
            plan,
            watcher,
        })
        .collect();
    // From here on there may be a file: all that makes no sense was refused before.
    let mut remarks: Vec<String> = ground.model.prepare()?.into_iter().collect();
    let jobs = if ground.model.is_in_file() { 1 } else { plan.jobs };
    let measured = run_all(&tasks, jobs);
    remarks.extend(
        ground
            .model
            .file_that_stays()
            .map(|path| format!("{} stays: remove it when it is not needed", path.display())),
    );
    Ok(Comparison { measured, left_out, remarks })
}

type Standing = Vec<(Candidate, Footing)>;

/// The trees that were named; each has to fit.
fn stand(named: Vec<Candidate>, ground: &Ground) -> Result<Standing> {
    let mut standing = Vec::new();
    for candidate in named {
        match candidate.fit(ground) {
            Ok(footing) => standing.push((candidate, footing)),
            Err(reason) => return Err(Error::DoesNotFit { tree: candidate.spec, reason }),
        }
    }
    Ok(standing)
}

/// Every tree that fits, and why the others don't.
fn choose(trees: &[&'static Entry], ground: &Ground) -> Result<(Standing, Vec<LeftOut>)> {
    let mut standing = Vec::new();
    let mut misfits: Vec<(String, Misfit)> = Vec::new();
    for candidate in trees.iter().map(|entry| Candidate::plain(entry)) {
        match candidate.fit(ground) {
            Ok(footing) => standing.push((candidate, footing)),
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
        task.ground.model.discard();
    }
    measured
}
