//! `flashtree compare`: runs a workload through trees and shows what it cost.

use std::path::{Path, PathBuf};

use lab::Comparison;

use crate::arguments::{CompareFormat, CompareRequest};
use crate::failure::Failure;
use crate::interrupts;
use crate::output::{self, Target};
use crate::progress::Progress;
use crate::{report, rows};

/// Refuses to replace a database. What comparisons left is replaced.
fn spare_databases(plan: &lab::Plan) -> Result<(), Failure> {
    let path = ["file:", "nand-file:"].into_iter().find_map(|kind| plan.device.strip_prefix(kind));
    match path {
        Some(path) if !plan.overwrite && db::Database::is_at(path) => {
            Err(Failure::HoldsDatabase { path: path.to_owned() })
        }
        _ => Ok(()),
    }
}

/// Runs the comparison, prints it and writes its files.
///
/// # Errors
/// The plan is wrong or failed, a file can't be written, a tree failed, or Ctrl-C.
pub(crate) fn run(request: &CompareRequest) -> Result<(), Failure> {
    interrupts::catch_interrupts();
    let check = |path: &Option<PathBuf>, written| {
        path.as_deref().map(|path| Target::check(path, written)).transpose()
    };
    let report = check(&request.report, report::WRITTEN)?;
    let save = check(&request.save, rows::WRITTEN)?;
    if let (Some(report), Some(save)) = (&report, &save) {
        report.check_other(save)?;
    }
    spare_databases(&request.plan)?;
    let watcher = Progress::new(request.quiet);
    let mut comparison = lab::compare(&request.plan, &watcher)?;
    let verdict = verdict(&comparison);
    if let Err(Failure::Interrupted { .. }) = verdict {
        comparison.measured.retain(|measured| measured.row.error.is_none());
    }
    if !request.quiet {
        for left_out in &comparison.left_out {
            output::remark(&format!("{} is left out: {}", left_out.tree, left_out.reason));
        }
        for remark in &comparison.remarks {
            output::remark(remark);
        }
    }
    if !comparison.measured.is_empty() {
        if let Some(target) = save {
            target.write(&rows::json(&comparison.measured)?)?;
        }
        if let Some(target) = report {
            let page = report::page(&request.plan, &comparison);
            target.write(&page.map_err(|error| Failure::Report(error.into()))?)?;
        }
    }
    print(request, &comparison)?;
    verdict
}

fn print(request: &CompareRequest, comparison: &Comparison) -> Result<(), Failure> {
    let measured = &comparison.measured;
    let text = match request.format {
        CompareFormat::Table => rows::tables(measured, request.plan.memory),
        CompareFormat::Json => rows::json(measured)?,
        CompareFormat::Csv => rows::csv(measured)?,
    };
    output::print(&text)?;
    match &request.report {
        Some(path) if request.announce && !measured.is_empty() => output::print(&told(path)),
        _ => Ok(()),
    }
}

fn told(path: &Path) -> String {
    format!("\nThe report with plots is in {}: open it in a browser.\n", path.display())
}

/// Whether all went well. Trees that Ctrl-C ended are rows with an error.
fn verdict(comparison: &Comparison) -> Result<(), Failure> {
    let rows = comparison.measured.iter().map(|measured| &measured.row);
    let failed: Vec<_> =
        rows.filter_map(|row| Some((row.tree.clone(), row.error.clone()?))).collect();
    let all = comparison.measured.len();
    match failed.len() {
        0 => Ok(()),
        ended if interrupts::interrupted() => {
            Err(Failure::Interrupted { finished: all - ended, all })
        }
        _ => Err(Failure::Trees { failed, all, is_usage: comparison.refused > 0 }),
    }
}
