//! The page around the plots.

use askama::Template;
use lab::{Clock, Comparison, Durability, Measured, MemoryLimit, Plan, Row, Verify};

use super::heat::Maps;
use super::{Result, bars, course, heat, theme};
use crate::numbers::{
    microseconds, optional, optional_count, rounded_size, seconds, size, thousands, three_digits,
};
use crate::rows;

/// The report on `comparison`, as HTML.
///
/// # Errors
/// A plot or the page could not be made.
pub(crate) fn page(plan: &Plan, comparison: &Comparison) -> Result<String> {
    let measured = &comparison.measured;
    let causes = rows::causes_that_cost(measured);
    let (course, logarithmic) = course::plot(measured)?.unzip();
    let page = Page {
        version: env!("CARGO_PKG_VERSION"),
        time: rows::capital(rows::time_name(measured)),
        of_the_model: rows::clock(measured) == Clock::Model,
        dark_rules: theme::dark_rules(),
        headline: headline(measured),
        best: ranked(measured).first().map(|row| row.tree.clone()).unwrap_or_default(),
        lede: lede(plan, measured),
        tiles: tiles(measured),
        bars: bars::plot(measured, &causes)?,
        causes: causes.iter().map(|cause| swatch(cause)).collect(),
        maps: heat::plot(measured)?,
        course,
        logarithmic: logarithmic.unwrap_or(false),
        lines: lines(measured),
        trees: measured.iter().map(|measured| measured.row.tree.clone()).collect(),
        groups: groups(measured, &causes),
        failed: failed(measured),
        left_out: pairs(comparison.left_out.iter().map(|out| (&out.tree, &out.reason))),
        facts: facts(plan, comparison),
        command: command(plan, measured),
    };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    version: &'static str,
    time: String,
    of_the_model: bool,
    dark_rules: String,
    headline: String,
    best: String,
    lede: String,
    tiles: Vec<(String, String)>,
    bars: Option<String>,
    causes: Vec<Swatch>,
    maps: Maps,
    course: Option<String>,
    logarithmic: bool,
    lines: Vec<Swatch>,
    trees: Vec<String>,
    groups: Vec<Group>,
    failed: Vec<(String, String)>,
    left_out: Vec<(String, String)>,
    facts: Vec<(String, String)>,
    command: String,
}

/// A colour of a legend, and what it stands for.
struct Swatch {
    colour: String,
    text: String,
}

/// Figures that belong together.
struct Group {
    name: &'static str,
    figures: Vec<Figure>,
}

/// A figure of every tree.
struct Figure {
    name: String,
    cells: Vec<String>,
}

/// The parts of a spec between which a line may end.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive([',', ':'])
}

fn swatch(cause: &str) -> Swatch {
    Swatch { colour: theme::cause(cause).0.hex(), text: cause.to_owned() }
}

fn lines(measured: &[Measured]) -> Vec<Swatch> {
    let drawn = measured.iter().enumerate().filter(|(_, measured)| measured.row.error.is_none());
    drawn
        .map(|(place, m)| Swatch { colour: theme::tree(place).hex(), text: m.row.tree.clone() })
        .collect()
}

fn pairs<'t>(pairs: impl Iterator<Item = (&'t String, &'t String)>) -> Vec<(String, String)> {
    pairs.map(|(one, other)| (one.clone(), other.clone())).collect()
}

fn failed(measured: &[Measured]) -> Vec<(String, String)> {
    pairs(measured.iter().filter_map(|m| Some((&m.row.tree, m.row.error.as_ref()?))))
}

/// The rows of trees that were measured to the end, cheapest first.
fn ranked(measured: &[Measured]) -> Vec<&Row> {
    let whole = measured.iter().map(|measured| &measured.row).filter(|row| row.error.is_none());
    let mut rows: Vec<_> = whole.collect();
    rows.sort_by(|a, b| a.device_us_per_op.total_cmp(&b.device_us_per_op));
    rows
}

/// What the comparison found, in a sentence.
fn headline(measured: &[Measured]) -> String {
    // The unit stays with its number.
    let cost = |row: &Row| microseconds(row.device_us_per_op).replace(' ', "\u{a0}");
    let time = rows::time_name(measured);
    match ranked(measured).as_slice() {
        [] => "No tree finished".to_owned(),
        [only] => format!("{} costs {} of {time} an operation", only.tree, cost(only)),
        [best, .., worst] if best.device_us_per_op > 0.0 => format!(
            "{} costs least: {} of {time} an operation, {} times less than {}",
            best.tree,
            cost(best),
            three_digits(worst.device_us_per_op / best.device_us_per_op),
            worst.tree,
        ),
        [best, ..] => format!("{} costs least: no {time} at all", best.tree),
    }
}

fn lede(plan: &Plan, measured: &[Measured]) -> String {
    let operations = measured.iter().map(|measured| measured.row.operations).max().unwrap_or(0);
    let under = ftl(measured).map(|ftl| format!(" under the translation layer {ftl}"));
    format!(
        "{} operations of {} on {}{}.",
        thousands(operations),
        plan.workload,
        plan.device,
        under.unwrap_or_default(),
    )
}

fn ftl(measured: &[Measured]) -> Option<&str> {
    measured.iter().find_map(|measured| measured.row.ftl.as_deref())
}

/// The figures of the best tree that people look for first.
fn tiles(measured: &[Measured]) -> Vec<(String, String)> {
    let ranked = ranked(measured);
    let Some(best) = ranked.first() else { return Vec::new() };
    let energy = best.energy_uj_per_op.map(|uj| format!("{} µJ", three_digits(uj)));
    let tile = |name: &str, figure: String| (name.to_owned(), figure);
    let time = format!("{} an operation", rows::time_name(measured));
    let mut tiles = vec![tile(&time, microseconds(best.device_us_per_op))];
    tiles.extend(energy.map(|energy| tile("energy an operation", energy)));
    let amplification = best.write_amplification.map(three_digits);
    tiles.extend(amplification.map(|times| tile("write amplification", times)));
    tiles.extend(best.block_erases.map(|erases| tile("block erases", thousands(erases))));
    tiles.push(tile("99.9 % take less", microseconds(best.latency_us.p99_9)));
    tiles.push(tile("peak memory", rounded_size(best.peak_memory_bytes)));
    tiles
}

type Column = (&'static str, fn(&Row) -> String);

const COST: &[Column] = &[
    ("time an operation (µs)", |row| three_digits(row.device_us_per_op)),
    ("energy an operation (µJ)", |row| optional(row.energy_uj_per_op)),
    ("closing at the end (µs)", |row| three_digits(row.settle_us)),
    ("write amplification", |row| optional(row.write_amplification)),
    ("write amplification of the flash", |row| optional(row.flash_write_amplification)),
];

const LATENCY: &[Column] = &[
    ("median (µs)", |row| three_digits(row.latency_us.p50)),
    ("99 % take less than (µs)", |row| three_digits(row.latency_us.p99)),
    ("99.9 % take less than (µs)", |row| three_digits(row.latency_us.p99_9)),
    ("slowest (µs)", |row| three_digits(row.latency_us.max)),
];

const FLASH: &[Column] = &[
    ("pages read", |row| thousands(row.page_reads)),
    ("pages programmed", |row| thousands(row.page_programs)),
    ("blocks erased", |row| optional_count(row.block_erases)),
    ("bytes read", |row| thousands(row.bytes_read)),
    ("bytes programmed", |row| thousands(row.bytes_programmed)),
    ("erases of a block, most", |row| optional_count(row.erases_most)),
    ("erases of a block, mean", |row| optional(row.erases_mean)),
];

const TREE: &[Column] = &[
    ("height", |row| row.height.to_string()),
    ("live pages", |row| thousands(row.live_pages)),
    ("memory: cache", |row| rounded_size(row.memory.cache)),
    ("memory: buffers", |row| rounded_size(row.memory.buffers)),
    ("memory: tables", |row| rounded_size(row.memory.tables)),
    ("memory: translation layer", |row| {
        row.memory.ftl.map_or_else(|| "-".to_owned(), rounded_size)
    }),
    ("memory: peak, without the layer", |row| rounded_size(row.peak_memory_bytes)),
];

const RUN: &[Column] = &[
    ("operations", |row| thousands(row.operations)),
    ("wall time", |row| seconds(row.wall_seconds)),
    ("wall time an operation (µs)", |row| three_digits(row.wall_us_per_op)),
];

fn groups(measured: &[Measured], causes: &[String]) -> Vec<Group> {
    let mut groups = vec![group("Cost", measured, COST), by_cause(measured, causes)];
    let others = [("Latency", LATENCY), ("Flash", FLASH), ("Tree", TREE), ("Run", RUN)];
    groups.extend(others.map(|(name, columns)| group(name, measured, columns)));
    let verified = |measured: &Measured| rows::verified(&measured.row).to_owned();
    let cells = measured.iter().map(verified).collect();
    groups.push(Group {
        name: "Contents",
        figures: vec![Figure { name: "compared with an ordered map".to_owned(), cells }],
    });
    groups
}

fn group(name: &'static str, measured: &[Measured], columns: &[Column]) -> Group {
    let figures = columns.iter().map(|(name, figure)| Figure {
        name: (*name).to_owned(),
        cells: measured.iter().map(|measured| shown(&measured.row, *figure)).collect(),
    });
    Group { name, figures: figures.collect() }
}

fn by_cause(measured: &[Measured], causes: &[String]) -> Group {
    let figures = causes.iter().map(|cause| {
        let cell = |row: &Row| optional(row.by_cause.get(cause).copied());
        let cells = measured.iter().map(|measured| shown(&measured.row, cell)).collect();
        Figure { name: format!("{cause} (µs)"), cells }
    });
    Group { name: "Time an operation, by cause", figures: figures.collect() }
}

/// A figure; a tree that failed midway has none.
fn shown(row: &Row, figure: impl Fn(&Row) -> String) -> String {
    match row.error {
        None => figure(row),
        Some(_) => "-".to_owned(),
    }
}

fn facts(plan: &Plan, comparison: &Comparison) -> Vec<(String, String)> {
    let memory = crate::rows::memory(plan.memory);
    let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut facts = vec![
        fact("Device", &plan.device),
        fact("Translation layer", ftl(&comparison.measured).unwrap_or("none")),
        fact("Workload", &plan.workload),
    ];
    facts.extend(plan.chip.as_ref().map(|chip| fact("Chip", chip)));
    facts.extend(comparison.remarks.iter().map(|remark| fact("Remark", remark)));
    facts.extend(plan.input.as_ref().map(|path| fact("Input", &path.to_string_lossy())));
    facts.extend([
        fact("Memory", &memory),
        fact("Seed", &plan.seed.to_string()),
        fact("Durability", durability(plan.durability)),
        fact("Verification", verify(plan.verify)),
        fact("Program", &format!("flashtree {}", env!("CARGO_PKG_VERSION"))),
    ]);
    facts
}

const fn durability(durability: Durability) -> &'static str {
    match durability {
        Durability::None => "none",
        Durability::Checkpoint => "checkpoint",
        Durability::Batch => "batch",
        Durability::Every => "every",
    }
}

const fn verify(verify: Verify) -> &'static str {
    match verify {
        Verify::Full => "full",
        Verify::Sampled => "sampled",
        Verify::Off => "off",
    }
}

/// The command that gives the same figures again.
fn command(plan: &Plan, measured: &[Measured]) -> String {
    let trees: Vec<_> = measured.iter().map(|measured| measured.row.tree.as_str()).collect();
    let mut options = vec![
        ("--device", plan.device.clone()),
        ("--workload", plan.workload.clone()),
        ("--trees", trees.join(",")),
    ];
    options.extend(plan.ftl.as_ref().map(|ftl| ("--ftl", ftl.clone())));
    options.extend(plan.chip.as_ref().map(|chip| ("--chip", chip.clone())));
    options.extend(plan.input.as_ref().map(|path| ("--input", path.to_string_lossy().into())));
    options.push(match plan.memory {
        MemoryLimit::CachesAndBuffers(bytes) => ("--memory", size(bytes)),
        MemoryLimit::Total(bytes) => ("--memory-total", size(bytes)),
    });
    options.extend(plan.size_bytes.map(|bytes| ("--size", size(bytes))));
    options.extend(plan.operations.map(|operations| ("--ops", operations.to_string())));
    options.extend([
        ("--seed", plan.seed.to_string()),
        ("--durability", durability(plan.durability).to_owned()),
        ("--verify", verify(plan.verify).to_owned()),
    ]);
    options.iter().fold("flashtree compare".to_owned(), |command, (name, value)| {
        format!("{command} {name} {}", quoted(value))
    })
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.,:=/+%@".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
