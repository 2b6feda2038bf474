//! The tables, in Markdown, of the lines that a run wrote.

use std::fmt::Write;

use serde_json::Value;

use crate::Outcome;

/// Between these lines of a document stand the tables.
const START: &str = "<!-- made by bench/run -->\n";
const END: &str = "<!-- end of what bench/run made -->\n";

const DURABILITIES: [(&str, &str); 2] =
    [("none", "No commit synced"), ("synced", "Each commit synced")];

/// The tree that the others are measured against.
const OURS: &str = "flat-tree";

/// A column: its head, the phase and the path of its figure, and how it is read.
struct Column {
    head: &'static str,
    phase: &'static str,
    figure: &'static str,
    form: Form,
    /// Whether more is better; none for what is neither.
    more_is_better: Option<bool>,
}

#[derive(Clone, Copy)]
enum Form {
    Rate,
    Times,
    Microseconds,
    Seconds,
    Mebibytes,
}

const fn column(
    head: &'static str,
    (phase, figure): (&'static str, &'static str),
    form: Form,
    more_is_better: Option<bool>,
) -> Column {
    Column { head, phase, figure, form, more_is_better }
}

const COLUMNS: [Column; 15] = [
    column("load /s", ("load", "/per_second"), Form::Rate, Some(true)),
    column("ampl.", ("load", "/write_amplification"), Form::Times, Some(false)),
    column("overwrite /s", ("overwrite", "/per_second"), Form::Rate, Some(true)),
    column("ampl.", ("overwrite", "/write_amplification"), Form::Times, Some(false)),
    column("wait s", ("reopen", "/wait_seconds"), Form::Seconds, None),
    column("space", ("reopen", "/space"), Form::Times, Some(false)),
    column("reads a get", ("gets", "/reads_each"), Form::Times, Some(false)),
    column("gets /s", ("gets", "/per_second"), Form::Rate, Some(true)),
    column("mixed /s", ("mixed", "/per_second"), Form::Rate, Some(true)),
    column("p99.9 µs", ("mixed", "/update_us/p99_9"), Form::Microseconds, Some(false)),
    column("p99.99 µs", ("mixed", "/update_us/p99_99"), Form::Microseconds, Some(false)),
    column("max µs", ("mixed", "/update_us/max"), Form::Microseconds, Some(false)),
    column("scans /s", ("scans", "/per_second"), Form::Rate, Some(true)),
    column("commits /s", ("commits", "/per_second"), Form::Rate, Some(true)),
    column("peak MiB", ("memory", "/peak_bytes"), Form::Mebibytes, None),
];

/// One engine on one kind of entries.
struct Row<'r> {
    engine: &'r str,
    phases: Vec<&'r Value>,
}

impl Row<'_> {
    fn phase(&self, name: &str) -> Option<&Value> {
        self.phases.iter().copied().find(|phase| phase["phase"] == name)
    }

    fn figure(&self, column: &Column) -> Option<f64> {
        self.phase(column.phase)?.pointer(column.figure)?.as_f64()
    }

    fn cell(&self, column: &Column) -> String {
        let Some(figure) = self.figure(column) else { return "-".to_owned() };
        let phase = self.phase(column.phase).unwrap_or(&Value::Null);
        let mark = if phase["is_cut"] == true || phase["is_settled"] == false { "\\*" } else { "" };
        column.form.text(figure) + mark
    }

    /// What ended it early, if anything did.
    fn end(&self) -> Option<String> {
        let status = self.phase("end").map_or(-1, |end| end["status"].as_i64().unwrap_or(-1));
        let last = self.phases.iter().rev().find_map(|phase| match phase["phase"].as_str()? {
            "end" | "error" => None,
            name => Some(name),
        });
        let last = last.unwrap_or("the beginning");
        match (status, self.phase("error")) {
            (0, _) => None,
            (137, _) => Some(format!("killed after {last}: it needs more than the group's memory")),
            (_, Some(error)) if last == "settings" => {
                Some(format!("not run: {}", error["what"].as_str().unwrap_or_default()))
            }
            (_, Some(error)) => {
                Some(format!("failed after {last}: {}", error["what"].as_str().unwrap_or_default()))
            }
            (status, None) => Some(format!("ended with status {status} after {last}")),
        }
    }
}

impl Form {
    fn text(self, figure: f64) -> String {
        match self {
            Form::Rate => thousands(figure),
            Form::Times => three_digits(figure),
            Form::Microseconds => three_digits(figure),
            Form::Seconds => format!("{figure:.1}"),
            Form::Mebibytes => format!("{:.0}", figure / f64::from(1 << 20)),
        }
    }
}

fn three_digits(figure: f64) -> String {
    match figure {
        100.0.. => thousands(figure),
        10.0.. => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

fn thousands(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// All that a document says of a run.
///
/// # Errors
/// Lines that are no JSON.
pub fn tables(results: &str) -> Outcome<String> {
    let lines: Vec<Value> = results.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let mut text = String::new();
    write_machine(&lines, &mut text)?;
    for (durability, title) in DURABILITIES {
        let mut shapes: Vec<&str> = Vec::new();
        for line in lines.iter().filter(|line| line["durability"] == durability) {
            shapes.extend(line["shape"].as_str().filter(|shape| !shapes.contains(shape)));
        }
        if !shapes.is_empty() {
            writeln!(text, "\n## {title}")?;
        }
        for shape in shapes {
            let rows = rows(&lines, durability, shape);
            write_table(&rows, shape, &mut text)?;
            write_beside(&rows, &mut text)?;
        }
    }
    write_settings(&lines, &mut text)?;
    Ok(text)
}

/// `document` with `made` in the place for it.
///
/// # Errors
/// A document without that place.
pub fn put_into(document: &str, made: &str) -> Outcome<String> {
    let missing = "the document has no lines that say where the tables stand";
    let (before, rest) = document.split_once(START).ok_or(missing)?;
    let (_, after) = rest.split_once(END).ok_or(missing)?;
    Ok(format!("{before}{START}{made}{END}{after}"))
}

fn rows<'r>(lines: &'r [Value], durability: &str, shape: &str) -> Vec<Row<'r>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let of_table = |line: &&Value| line["durability"] == durability && line["shape"] == shape;
    for line in lines.iter().filter(of_table) {
        let Some(engine) = line["engine"].as_str() else { continue };
        match rows.iter_mut().find(|row| row.engine == engine) {
            Some(row) => row.phases.push(line),
            None => rows.push(Row { engine, phases: vec![line] }),
        }
    }
    rows
}

fn write_machine(lines: &[Value], text: &mut String) -> Outcome<()> {
    let find = |phase: &str| lines.iter().find(|line| line["phase"] == phase);
    let said = |line: &Value, name: &str| line[name].as_str().unwrap_or("unknown").to_owned();
    if let Some(machine) = find("machine") {
        writeln!(
            text,
            "\n{}: {}, {} processors, {} MiB of memory, Linux {}, {} on {}; load before: {}.",
            said(machine, "date"),
            said(machine, "processor"),
            machine["processors"],
            thousands(machine["memory_mib"].as_f64().unwrap_or(0.0)),
            said(machine, "kernel"),
            said(machine, "file_system"),
            said(machine, "disk"),
            said(machine, "load"),
        )?;
    }
    if let Some(command) = find("command") {
        let whole = find("whole").map_or(0.0, |whole| whole["seconds"].as_f64().unwrap_or(0.0));
        writeln!(
            text,
            "`{}`, {:.0} minutes in all. Each process ran in {}. Loading and overwriting ended \
             after {} s at the latest, the rest after a fourth of that.",
            said(command, "command"),
            (whole / 60.0).ceil(),
            said(command, "group"),
            command["seconds"],
        )?;
    }
    writeln!(text, "\n| plain requests of 4 KiB | a second | median µs | p99.9 µs | max µs |")?;
    writeln!(text, "|---|---|---|---|---|")?;
    let probes = lines.iter().filter(|line| line["phase"] == "probe");
    for (probe, when) in probes.zip(["before", "after"]) {
        for (kind, what) in [("reads", "direct read"), ("writes", "direct write and fdatasync")] {
            let figure = |name: &str| probe[kind][name].as_f64().unwrap_or(f64::NAN);
            let rate = thousands(figure("per_second"));
            let [median, high, max] =
                ["p50_us", "p99_9_us", "max_us"].map(|name| Form::Microseconds.text(figure(name)));
            writeln!(text, "| {what}, {when} the run | {rate} | {median} | {high} | {max} |")?;
        }
    }
    Ok(())
}

fn write_table(rows: &[Row<'_>], shape: &str, text: &mut String) -> Outcome<()> {
    let entries = rows.iter().find_map(|row| row.phase("load")?["entries"].as_f64());
    let entries = thousands(entries.unwrap_or(0.0));
    writeln!(text, "\n### {entries} entries of {shape} bytes\n")?;
    write!(text, "| engine |")?;
    for column in &COLUMNS {
        write!(text, " {} |", column.head)?;
    }
    writeln!(text, "\n|---|{}", "---|".repeat(COLUMNS.len()))?;
    for row in rows {
        write!(text, "| {} |", row.engine)?;
        for column in &COLUMNS {
            write!(text, " {} |", row.cell(column))?;
        }
        writeln!(text)?;
    }
    let notes = rows.iter().filter_map(|row| Some(format!("- {}: {}.", row.engine, row.note()?)));
    let notes: Vec<_> = notes.collect();
    if !notes.is_empty() {
        writeln!(text, "\n{}", notes.join("\n"))?;
    }
    Ok(())
}

impl Row<'_> {
    /// What a reader of the row has to know besides.
    fn note(&self) -> Option<String> {
        let entries = |phase| self.phase(phase).and_then(|phase| phase["entries"].as_u64());
        let missing = entries("load").zip(entries("fill")).filter(|(all, there)| there < all);
        let missing = missing
            .map(|(_, there)| format!("what time allowed are {} entries", thousands(there as f64)));
        let notes: Vec<_> = missing.into_iter().chain(self.end()).collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

/// Where our tree stands in each column.
fn write_beside(rows: &[Row<'_>], text: &mut String) -> Outcome<()> {
    let Some(ours) = rows.iter().find(|row| row.engine == OURS) else { return Ok(()) };
    writeln!(text, "\nWhere `{OURS}` is not the best:\n")?;
    writeln!(text, "| column | {OURS} | best | its figure | times |\n|---|---|---|---|---|")?;
    for column in &COLUMNS {
        let (Some(more), Some(own)) = (column.more_is_better, ours.figure(column)) else {
            continue;
        };
        let figures = rows.iter().filter_map(|row| Some((row, row.figure(column)?)));
        let best = figures.reduce(|best, next| match (next.1 > best.1) == more {
            true => next,
            false => best,
        });
        let Some((best, figure)) = best else { continue };
        let head = match column.head {
            "ampl." => format!("{} ampl.", column.phase),
            head => head.to_owned(),
        };
        let times = if more { figure / own } else { own / figure };
        let times = if times.is_finite() { three_digits(times) } else { "-".to_owned() };
        let (own, other) = (ours.cell(column), best.cell(column));
        if own == other {
            continue;
        }
        writeln!(text, "| {head} | {own} | {} | {other} | {times} |", best.engine)?;
    }
    Ok(())
}

/// One line for all that have the same settings.
fn write_settings(lines: &[Value], text: &mut String) -> Outcome<()> {
    let mut seen: Vec<([&str; 4], Vec<&str>)> = Vec::new();
    for line in lines.iter().filter(|line| line["phase"] == "settings") {
        let names = ["durability", "package", "version", "settings"];
        let key = names.map(|name| line[name].as_str().unwrap_or_default());
        let engine = line["engine"].as_str().unwrap_or_default();
        match seen.iter_mut().find(|(known, _)| *known == key) {
            Some((_, engines)) if engines.contains(&engine) => {}
            Some((_, engines)) => engines.push(engine),
            None => seen.push((key, vec![engine])),
        }
    }
    writeln!(text, "\n## Settings\n\n| engine | syncs | package | settings |\n|---|---|---|---|")?;
    for ([durability, package, version, settings], engines) in seen {
        let (engines, settings) = (engines.join(", "), settings.replace('|', "\\|"));
        writeln!(text, "| {engines} | {durability} | {package} {version} | {settings} |")?;
    }
    Ok(())
}
