//! `flashtree torture`: cuts the power, and shows that nothing is lost.

use std::collections::BTreeMap;
use std::fmt::Write;

use contract::torture::{self, Cell, Plan, ReplayId, Row, Watcher, Witness};
use serde::Serialize;
use sim::FaultLog;
use trees::TREES;

use crate::arguments::ListFormat;
use crate::arguments::torture::Request;
use crate::failure::Failure;
use crate::interrupts;
use crate::numbers::thousands;
use crate::output::{self, Sheet};
use crate::progress::CutBar;

/// Lists the cells, tortures them, or plays a failure again.
///
/// # Errors
/// There is no such tree or failure, something was lost, or Ctrl-C.
pub(crate) fn run(request: &Request) -> Result<(), Failure> {
    let arguments = &request.arguments;
    if let Some(text) = &arguments.replay {
        let id =
            ReplayId::parse(TREES, text).ok_or_else(|| Failure::Replay { id: text.clone() })?;
        return show(vec![torture::replay(&id)], arguments.format, 1);
    }
    let cells = cells(arguments.tree.as_deref())?;
    if arguments.list {
        return list(&cells, arguments.format);
    }
    interrupts::catch_interrupts();
    let cuts = arguments.cuts.get();
    let bar = CutBar::new(request.quiet, cuts);
    let plan = Plan { cells, cuts, seed: arguments.seed, jobs: request.jobs };
    let rows = torture::torture(&plan, &bar);
    bar.finish();
    let is_cut_short = bar.cancelled();
    let made = rows.iter().map(|row| row.witness.cuts).sum();
    show(rows, arguments.format, plan.cells.len())?;
    if is_cut_short {
        return Err(Failure::TortureInterrupted { made, wanted: cuts, seed: plan.seed });
    }
    Ok(())
}

/// The cells of `tree`, or all.
fn cells(tree: Option<&str>) -> Result<Vec<Cell>, Failure> {
    let mut cells = torture::cells(TREES);
    let Some(spec) = tree else { return Ok(cells) };
    cells.retain(|cell| {
        let name = cell.to_string();
        let rest = name.strip_prefix(spec);
        let is_part = |rest: &str| rest.is_empty() || rest.starts_with(['/', '+']);
        cell.entry.name == spec || rest.is_some_and(is_part)
    });
    if cells.is_empty() { Err(no_cells(spec)) } else { Ok(cells) }
}

/// What is wrong with `spec`, which names no cell.
fn no_cells(spec: &str) -> Failure {
    let name = spec.split([':', '/']).next().unwrap_or(spec);
    let Some(entry) = trees::find(name) else {
        return Failure::unknown("tree", name, TREES.iter().map(|entry| entry.name));
    };
    if !spec.contains('/') {
        let parameters = spec.split_once(':').map_or("", |(_, parameters)| parameters);
        return Failure::NoCell { tree: name.to_owned(), parameters: parameters.to_owned() };
    }
    // As much of each cell's name as there is of this one.
    let slashes = spec.matches('/').count();
    let start = |cell: &Cell| {
        let name = cell.to_string();
        let end = name.match_indices('/').nth(slashes).map_or(name.len(), |(at, _)| at);
        name[..end].to_owned()
    };
    let mut known: Vec<String> = torture::cells_of(entry).iter().map(start).collect();
    known.dedup();
    Failure::unknown("cell", spec, known.iter().map(String::as_str))
}

fn list(cells: &[Cell], format: ListFormat) -> Result<(), Failure> {
    let names: Vec<String> = cells.iter().map(ToString::to_string).collect();
    let text = match format {
        ListFormat::Table => names.join("\n") + "\n",
        ListFormat::Json => output::json(&names)?,
    };
    output::print(&text)
}

/// A row as JSON has it.
#[derive(Serialize)]
struct JsonRow<'r> {
    cell: &'r str,
    cuts: u64,
    recoveries: u64,
    recovery_cuts: u64,
    failures: u64,
    replay: Option<String>,
}

fn show(rows: Vec<Row>, format: ListFormat, cells: usize) -> Result<(), Failure> {
    let text = match format {
        ListFormat::Json => json(&rows)?,
        ListFormat::Table => table(&rows),
    };
    output::print(&text)?;
    let failed: Vec<_> = rows.into_iter().filter_map(|row| row.first).collect();
    for (id, failure) in &failed {
        output::remark(&format!("{}\n  {failure}", id.command()));
    }
    match failed.first() {
        None => Ok(()),
        Some((id, _)) => {
            Err(Failure::Torture { failed: failed.len(), cells, command: id.command() })
        }
    }
}

fn json(rows: &[Row]) -> Result<String, Failure> {
    output::json(&rows.iter().map(JsonRow::of).collect::<Vec<_>>())
}

impl<'r> JsonRow<'r> {
    fn of(row: &'r Row) -> Self {
        JsonRow {
            cell: &row.cell,
            cuts: row.witness.cuts,
            recoveries: row.witness.recoveries,
            recovery_cuts: row.witness.recovery_cuts,
            failures: row.failures,
            replay: row.first.as_ref().map(|(id, _)| id.command()),
        }
    }
}

/// What happened to cells of one kind.
#[derive(Default)]
struct Sum {
    cells: u64,
    failures: u64,
    witness: Witness,
}

impl Sum {
    fn add(&mut self, row: &Row) {
        self.cells += 1;
        self.failures += row.failures;
        self.witness += row.witness;
    }

    fn cells(&self, name: &str) -> Vec<String> {
        let Witness { cuts, recoveries, recovery_cuts, .. } = self.witness;
        let counts = [self.cells, cuts, recoveries, recovery_cuts, self.failures];
        std::iter::once(name.to_owned()).chain(counts.map(thousands)).collect()
    }
}

/// A line for each tree on each thing that it stands on, and what happened in all.
fn table(rows: &[Row]) -> String {
    let (mut kinds, mut all) = (BTreeMap::<_, Sum>::new(), Sum::default());
    let mut faults = FaultLog::default();
    for row in rows {
        let mut parts = row.cell.split('/');
        let tree = parts.next().unwrap_or_default().split(':').next().unwrap_or_default();
        let kind = format!("{tree} on {}", parts.next().unwrap_or_default());
        kinds.entry(kind).or_default().add(row);
        all.add(row);
        faults += row.faults;
    }
    let heading = ["cells of", "cells", "cuts", "recoveries", "cuts during\nrecovery", "failures"];
    let mut sheet = Sheet { text_columns: vec![0], ..Sheet::of_text(&heading) };
    sheet.rows = kinds.iter().map(|(kind, sum)| sum.cells(kind)).collect();
    sheet.rows.push(all.cells("all"));
    let mut text = sheet.to_text() + "\nWhat happened:\n";
    let faults = faults.iter().map(|(kind, count)| (kind.name(), count));
    for (words, count) in all.witness.counts().into_iter().chain(faults) {
        // Writing to a text can't fail.
        let _ = writeln!(text, "{:>12}  {words}", thousands(count));
    }
    text
}

#[cfg(test)]
mod tests {
    use contract::torture::{ReplayId, Row, Witness};
    use sim::FaultLog;

    use super::{json, show};
    use crate::arguments::ListFormat;
    use crate::failure::Failure;

    const ID: &str = "b-plus/file/512/4+4/every@life:1:2";

    fn failed() -> Row {
        Row {
            cell: "b-plus/file/512/4+4/every".to_owned(),
            witness: Witness { cuts: 5, recoveries: 4, recovery_cuts: 2, ..Witness::default() },
            faults: FaultLog::default(),
            failures: 1,
            first: ReplayId::parse(trees::TREES, ID)
                .map(|id| (id, "something was lost".to_owned())),
            first_after: Some(5),
        }
    }

    #[test]
    fn a_loss_ends_with_code_1_and_the_command_that_plays_it_again() {
        let Err(failure) = show(vec![failed()], ListFormat::Json, 1) else {
            unreachable!("a loss is a failure");
        };
        assert_eq!(failure.exit_code(), 1);
        let command = format!("flashtree torture --replay {ID}");
        assert!(failure.to_string().ends_with(&command), "{failure}");
        let Ok(rows) = json(&[failed()]) else { unreachable!("rows can be printed") };
        assert!(rows.contains(&format!("\"replay\": \"{command}\"")), "{rows}");
        assert!(rows.contains("\"failures\": 1") && rows.contains("\"recovery_cuts\": 2"));
    }

    #[test]
    fn ctrl_c_says_how_to_go_on() {
        let failure = Failure::TortureInterrupted { made: 40, wanted: 100, seed: 3 };
        assert_eq!(failure.exit_code(), 130);
        assert!(failure.to_string().ends_with("go on with --cuts 60 --seed 4"), "{failure}");
    }
}
