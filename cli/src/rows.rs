//! The rows of a comparison as tables for people, as JSON and as CSV.

use std::cmp::Ordering;

use lab::{Clock, Measured, MemoryLimit, Row, Verified};
use serde_json::{Map, Value};

use device::Cause;

use crate::failure::Failure;
use crate::numbers::{optional, optional_count, rounded_size, seconds, thousands, three_digits};
use crate::output::{self, Sheet, Written};

/// What `--save` writes: [`json`] of one row or more.
pub(crate) const WRITTEN: Written =
    Written { option: "--save", is_in: |head| head.starts_with(b"[\n  {\n    \"tree\": \"") };

/// The words for what was verified.
pub(crate) fn verified(row: &Row) -> &'static str {
    match row.verified {
        _ if row.error.is_some() => "failed",
        Verified::Full => "in full",
        Verified::Sampled => "sampled",
        Verified::No => "no",
    }
}

/// What the device times of a comparison are, which all have the same clock.
pub(crate) fn time_name(measured: &[Measured]) -> &'static str {
    match clock(measured) {
        Clock::Model => "device time",
        Clock::Wall => "wall-clock time",
    }
}

/// The clock of a comparison's device times.
pub(crate) fn clock(measured: &[Measured]) -> Clock {
    measured.first().map(|measured| measured.clock).unwrap_or_default()
}

/// A name at the start of a sentence.
pub(crate) fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

type Figure = (&'static str, fn(&Row) -> String);

/// What people look for first: what an operation takes. Behind the mean stands how long single ones
/// took.
const COST: &[Figure] = &[
    ("mean\nµs/op", |row| three_digits(row.device_us_per_op)),
    ("energy\nµJ/op", |row| optional(row.energy_uj_per_op)),
    ("median", |row| three_digits(row.latency_us.p50)),
    ("99 %", |row| three_digits(row.latency_us.p99)),
    ("99.9 %", |row| three_digits(row.latency_us.p99_9)),
    ("99.99 %", |row| optional(row.latency_us.p99_99)),
    ("slowest\nµs", |row| three_digits(row.latency_us.max)),
];

/// What was done to the device.
const DEVICE: &[Figure] = &[
    ("page\nreads", |row| thousands(row.page_reads)),
    ("page\nprograms", |row| thousands(row.page_programs)),
    ("block\nerases", |row| optional_count(row.block_erases)),
    ("erases\nmost/mean", |row| match row.erases_most {
        Some(most) => format!("{}/{}", thousands(most), optional(row.erases_mean)),
        None => "-".to_owned(),
    }),
    ("write\nampl.", |row| optional(row.write_amplification)),
    ("flash wr.\nampl.", |row| optional(row.flash_write_amplification)),
];

/// What the tree is in the end, the memory that it took, and the time of the run itself.
const TREE: &[Figure] = &[
    ("height", |row| row.height.to_string()),
    ("live\npages", |row| thousands(row.live_pages)),
    ("memory", |row| rounded_size(row.memory.cache + row.memory.buffers + row.memory.tables)),
    ("peak\nmemory", |row| rounded_size(row.peak_memory_bytes)),
    ("FTL\nmemory", |row| size_or_dash(row.memory.ftl)),
    ("system\nread", |row| size_or_dash(row.system_bytes_read)),
    ("system\nwritten", |row| size_or_dash(row.system_bytes_written)),
    ("wall\ntime", |row| seconds(row.wall_seconds)),
];

fn size_or_dash(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), rounded_size)
}

/// What a limit on memory is on: tables and mappings come beside a budget.
pub(crate) fn memory(limit: MemoryLimit) -> String {
    match limit {
        MemoryLimit::CachesAndBuffers(bytes) => {
            format!("{} for caches and buffers", rounded_size(bytes))
        }
        MemoryLimit::Total(bytes) => format!("{} for everything", rounded_size(bytes)),
    }
}

/// The tables for people, of a comparison whose memory had that limit: the cheapest tree first,
/// those that failed last.
pub(crate) fn tables(measured: &[Measured], limit: MemoryLimit) -> String {
    let mut ranked = measured.to_vec();
    ranked.sort_by(|one, other| {
        let cost = |of: &Measured| (of.row.error.is_some(), of.row.device_us_per_op);
        cost(one).partial_cmp(&cost(other)).unwrap_or(Ordering::Equal)
    });
    let measured = &ranked[..];
    let Some(first) = measured.first().map(|measured| &measured.row) else {
        return String::new();
    };
    let ftl = first.ftl.as_ref().map(|ftl| format!(" under {ftl}")).unwrap_or_default();
    let name = capital(time_name(measured));
    let mut text = format!(
        "{} on {}{ftl}: {} operations, memory {}, seed {}, durability {}\n\n\
         {name} of an operation\n\n{}",
        first.workload,
        first.device,
        thousands(measured.iter().map(|measured| measured.row.operations).max().unwrap_or(0)),
        memory(limit),
        first.seed,
        first.durability,
        figures(measured, COST, true).to_text_or_turned(),
    );
    let causes = causes(measured);
    if !causes.rows.is_empty() {
        text += &format!("\n{name} by cause, in µs an operation\n\n");
        text += &causes.to_text_or_turned();
        text += "\nThe device\n\n";
        text += &figures(measured, DEVICE, false).to_text_or_turned();
        text += "\nThe tree\n\n";
        text += &figures(measured, TREE, false).to_text_or_turned();
    }
    text
}

/// A table of those `figures` that one of the trees has, of the trees that did not fail or, with
/// what was verified in its last column, of all.
fn figures(measured: &[Measured], figures: &[Figure], is_first: bool) -> Sheet {
    let whole = |row: &&Row| row.error.is_none();
    let rows = || measured.iter().map(|measured| &measured.row);
    let has = |(_, figure): &&Figure| rows().filter(whole).any(|row| figure(row) != "-");
    let shown: Vec<Figure> = figures.iter().filter(has).copied().collect();
    let mut heading = vec!["tree".to_owned()];
    heading.extend(shown.iter().map(|(name, _)| (*name).to_owned()));
    let mut text_columns = vec![0];
    if is_first {
        text_columns.push(heading.len());
        heading.push("verified".to_owned());
    }
    let row = |row: &Row| {
        let mut cells = vec![row.tree.clone()];
        cells.extend(shown.iter().map(|(_, figure)| match row.error {
            None => figure(row),
            Some(_) => "-".to_owned(),
        }));
        cells.extend(is_first.then(|| verified(row).to_owned()));
        cells
    };
    let rows = rows().filter(|row| is_first || whole(row)).map(row).collect();
    Sheet { heading, rows, text_columns }
}

fn causes(measured: &[Measured]) -> Sheet {
    let causes = causes_that_cost(measured);
    let mut heading = vec!["tree".to_owned()];
    heading.extend(causes.iter().cloned());
    heading.push("closing".to_owned());
    let row = |row: &Row| {
        let mut cells = vec![row.tree.clone()];
        cells.extend(causes.iter().map(|cause| {
            row.by_cause.get(cause).map_or_else(|| "-".to_owned(), |us| three_digits(*us))
        }));
        cells.push(crate::numbers::microseconds(row.settle_us));
        cells
    };
    let whole = measured.iter().filter(|measured| measured.row.error.is_none());
    Sheet { heading, rows: whole.map(|m| row(&m.row)).collect(), text_columns: vec![0] }
}

/// The causes that cost something in a row, in the order of their numbers; unknown ones last.
pub(crate) fn causes_that_cost(measured: &[Measured]) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    for (cause, us) in measured.iter().flat_map(|measured| &measured.row.by_cause) {
        if *us > 0.0 && !causes.contains(cause) {
            causes.push(cause.clone());
        }
    }
    let number = |cause: &String| Cause::ALL.iter().position(|known| known.name() == cause);
    causes.sort_by_key(|cause| (number(cause).unwrap_or(usize::MAX), cause.clone()));
    causes
}

/// The rows as a JSON array.
pub(crate) fn json(measured: &[Measured]) -> Result<String, Failure> {
    output::json(&measured.iter().map(|measured| &measured.row).collect::<Vec<_>>())
}

/// The rows as CSV: a heading, and a line a tree. Nested fields are joined with `_`, and a figure
/// that there is not is empty.
pub(crate) fn csv(measured: &[Measured]) -> Result<String, Failure> {
    let mut rows = Vec::with_capacity(measured.len());
    for measured in measured {
        let value = serde_json::to_value(&measured.row).map_err(|e| Failure::Print(e.into()))?;
        let mut row = Map::new();
        flatten(String::new(), value, &mut row);
        rows.push(row);
    }
    let heading = union(&rows);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let broken = |error: csv::Error| Failure::Print(std::io::Error::other(error));
    writer.write_record(&heading).map_err(broken)?;
    for row in &rows {
        writer.write_record(heading.iter().map(|name| text(row.get(name)))).map_err(broken)?;
    }
    let bytes = writer.into_inner().map_err(|error| Failure::Print(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn flatten(name: String, value: Value, into: &mut Map<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let name = if name.is_empty() { field } else { format!("{name}_{field}") };
                flatten(name, value, into);
            }
        }
        value => drop(into.insert(name, value)),
    }
}

/// The names of all rows; one that only some rows have stands after those before it there.
fn union(rows: &[Map<String, Value>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in rows {
        let mut next = 0;
        for name in row.keys() {
            match names.iter().position(|known| known == name) {
                Some(place) => next = place + 1,
                None => {
                    names.insert(next, name.clone());
                    next += 1;
                }
            }
        }
    }
    names
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use lab::MemoryLimit;

    use super::{csv, json, tables};
    use crate::report::samples;

    /// The names of the fields of a row, nested ones joined with `_`, as INTERFACE has them.
    const FIELDS: &[&str] = &[
        "tree",
        "device",
        "ftl",
        "workload",
        "seed",
        "memory_bytes",
        "memory_total_bytes",
        "durability",
        "operations",
        "device_us_per_op",
        "energy_uj_per_op",
        "settle_us",
        "page_reads",
        "page_programs",
        "block_erases",
        "bytes_read",
        "bytes_programmed",
        "write_amplification",
        "flash_bytes_programmed",
        "flash_write_amplification",
        "system_bytes_read",
        "system_bytes_written",
        "live_pages",
        "height",
        "memory_cache",
        "memory_buffers",
        "memory_tables",
        "memory_ftl",
        "peak_memory_bytes",
        "erases_most",
        "erases_mean",
        "wall_seconds",
        "wall_us_per_op",
        "by_cause_flush",
        "by_cause_lookup",
        "by_cause_merge",
        "by_cause_reclamation",
        "by_cause_update",
        "latency_us_p50",
        "latency_us_p99",
        "latency_us_p99_9",
        "latency_us_p99_99",
        "latency_us_max",
        "verified",
    ];

    const LIMIT: MemoryLimit = MemoryLimit::CachesAndBuffers(128 << 10);

    #[test]
    fn the_heading_of_csv_is_the_flattened_fields_of_json() {
        let text = csv(&samples::measured(3)).unwrap();
        assert_eq!(text.lines().next().unwrap().split(',').collect::<Vec<_>>(), FIELDS);
        assert_eq!(text.lines().count(), 4);
    }

    #[test]
    fn what_a_device_does_not_have_is_empty_in_csv_and_null_in_json() {
        let mut measured = samples::measured(1);
        measured[0].row.energy_uj_per_op = None;
        measured[0].row.error = Some("full, \"very\"".to_owned());
        let text = csv(&measured).unwrap();
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let heading = reader.headers().unwrap().clone();
        let record = reader.records().next().unwrap().unwrap();
        let at = |name: &str| &record[heading.iter().position(|field| field == name).unwrap()];
        assert_eq!(at("energy_uj_per_op"), "");
        assert_eq!(at("error"), "full, \"very\"");
        let value: serde_json::Value = serde_json::from_str(&json(&measured).unwrap()).unwrap();
        assert!(value[0]["energy_uj_per_op"].is_null());
        assert_eq!(value[0]["error"], "full, \"very\"");
    }

    #[test]
    fn the_tables_show_every_tree_and_only_causes_that_cost() {
        let text = tables(&samples::measured(3), LIMIT);
        for tree in samples::measured(3) {
            assert!(text.matches(&tree.row.tree).count() >= 2, "{text}");
        }
        assert!(text.contains("reclamation") && !text.contains("journal"), "{text}");
        assert_eq!(tables(&[], LIMIT), "");
    }

    #[test]
    fn figures_that_only_some_devices_have_are_shown_where_there_are_any() {
        let mut measured = samples::measured(2);
        let text = tables(&measured, LIMIT);
        assert!(!text.contains("flash wr.") && !text.contains("system"), "{text}");
        measured[0].row.flash_write_amplification = Some(1234.0);
        let text = tables(&measured, LIMIT);
        assert!(text.contains("flash wr.") && !text.contains("system"), "{text}");
        assert!(text.contains("1,234") || text.contains("1234"), "{text}");
        measured[0].clock = lab::Clock::Wall;
        measured[0].row.system_bytes_written = Some(8 << 20);
        measured[0].row.latency_us.p99_99 = Some(777.0);
        let text = tables(&measured, LIMIT);
        assert!(text.contains("8 MiB") && text.contains("777"), "{text}");
    }

    #[test]
    fn a_tree_that_failed_has_no_figures_in_the_tables() {
        let mut measured = samples::measured(1);
        measured[0].row.error = Some("the device is full".to_owned());
        let text = tables(&measured, LIMIT);
        assert!(text.contains("failed"), "{text}");
    }
}
