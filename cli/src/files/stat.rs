//! `flashtree stat`.

use std::path::Path;

use db::{Database, Health, Stats};
use serde::Serialize;

use super::checkpoints::{self, Row};
use super::{chip, opening};
use crate::arguments::ListFormat;
use crate::arguments::files::Stat;
use crate::failure::Failure;
use crate::failure::FileFailure;
use crate::interrupts;
use crate::numbers::{count as counted, rounded_size, thousands, three_digits};
use crate::output;
use crate::progress::Counter;

/// How a database stands. What it does not have, or does not know, is null.
#[derive(Serialize)]
struct Standing {
    file: String,
    tree: &'static str,
    key: String,
    value: String,
    durability: &'static str,
    entries: Option<u64>,
    page_bytes: u32,
    height: u32,
    live_pages: u64,
    #[serde(skip)]
    live_page_bytes: u32,
    file_bytes: Option<u64>,
    capacity_bytes: Option<u64>,
    memory_bytes: u64,
    memory: MemoryParts,
    checkpoint: u64,
    journal_bytes: u64,
    journal_bytes_most: u64,
    undo_bytes: u64,
    undo_bytes_most: u64,
    /// What an opening reads at most to come back, beside the pages of the database itself.
    opening_bytes_most: u64,
    checkpoints: Vec<Row>,
    kept_bytes: u64,
    health: Option<ChipHealth>,
}

#[derive(Serialize)]
struct MemoryParts {
    cache: u64,
    buffers: u64,
    tables: u64,
    ftl: u64,
    driver: u64,
}

/// How the chip is.
#[derive(Serialize)]
struct ChipHealth {
    blocks: u32,
    bad_blocks: u32,
    erases_least: Option<u32>,
    erases_mean: Option<f64>,
    erases_most: Option<u32>,
    bits_corrected: u64,
    endurance: Option<u32>,
    life_left_percent: Option<f64>,
}

/// Shows how a database stands.
///
/// # Errors
/// It can't be read.
pub(super) fn run(arguments: &Stat, quiet: bool) -> Result<(), Failure> {
    let path = arguments.home.file.path();
    let chip = arguments.chip.as_deref().map(|spec| chip::find(Some(spec), None)).transpose()?;
    let endurance = chip.and_then(|chip| chip.endurance);
    let mut database = opening::to_read(&arguments.home, quiet)?;
    // Before all entries are read, the memory is not in use yet.
    let entries = match arguments.no_count {
        true => None,
        false => count(&mut database, path, quiet)?,
    };
    let stats = database.stats().map_err(FileFailure::of(path))?;
    let kept = checkpoints::rows(&database).map_err(FileFailure::of(path))?;
    let standing = standing(path, &stats, entries, kept, endurance);
    let text = match arguments.format {
        ListFormat::Json => output::json(&standing)?,
        ListFormat::Table => table(&standing),
    };
    output::print(&text)?;
    opening::close(database, path)
}

/// How many entries there are; unknown, and told so, where the database is damaged.
fn count(database: &mut Database<'_>, path: &Path, quiet: bool) -> Result<Option<u64>, Failure> {
    interrupts::catch_interrupts();
    let bar = Counter::new(quiet, "counting", None);
    let mut entries = 0_u64;
    let mut counted = || -> Result<Option<u64>, db::Error> {
        let mut range = database.all()?;
        while range.next()?.is_some() {
            entries += 1;
            if entries.is_multiple_of(1 << 14) {
                bar.set(entries);
                if interrupts::interrupted() {
                    return Ok(None);
                }
            }
        }
        Ok(Some(entries))
    };
    let counted = counted();
    bar.finish();
    match counted {
        Ok(None) => Err(FileFailure::Interrupted.into()),
        Ok(counted) => Ok(counted),
        Err(error) if error.is_damage() => {
            output::remark(&format!("the entries can't be counted: {error}"));
            Ok(None)
        }
        Err(error) => Err(FileFailure::of(path)(error).into()),
    }
}

fn standing(
    path: &Path,
    stats: &Stats,
    entries: Option<u64>,
    checkpoints: Vec<Row>,
    endurance: Option<u32>,
) -> Standing {
    let (memory, recovery) = (&stats.memory, &stats.recovery);
    Standing {
        file: path.display().to_string(),
        tree: stats.tree,
        key: stats.key.to_string(),
        value: stats.value.to_string(),
        durability: recovery.durability.name(),
        entries,
        page_bytes: stats.page_bytes,
        height: stats.height,
        live_pages: stats.live_pages,
        live_page_bytes: stats.live_page_bytes,
        file_bytes: stats.file.map(|file| file.taken),
        capacity_bytes: stats.file.map(|file| file.capacity),
        memory_bytes: stats.memory_bytes(),
        memory: MemoryParts {
            cache: memory.cache,
            buffers: memory.buffers,
            tables: memory.tables,
            ftl: memory.ftl,
            driver: stats.driver_bytes,
        },
        checkpoint: recovery.checkpoint.0,
        journal_bytes: recovery.journal_bytes,
        journal_bytes_most: recovery.journal_bytes_most,
        undo_bytes: recovery.undo_bytes,
        undo_bytes_most: recovery.undo_bytes_most,
        opening_bytes_most: recovery.journal_bytes_most.saturating_add(recovery.undo_bytes_most),
        checkpoints,
        kept_bytes: recovery.kept_bytes,
        health: stats.health.as_ref().map(|health| chip_health(health, endurance)),
    }
}

/// The life that is left is that of the most worn block.
fn chip_health(health: &Health, endurance: Option<u32>) -> ChipHealth {
    let erases = health.layer.erases;
    let left = |most: u32, endurance: u32| {
        100.0 * (1.0 - f64::from(most) / f64::from(endurance.max(1))).max(0.0)
    };
    ChipHealth {
        blocks: health.blocks,
        bad_blocks: health.bad_blocks,
        erases_least: erases.map(|erases| erases.least),
        erases_mean: erases.map(|erases| erases.mean()),
        erases_most: erases.map(|erases| erases.most),
        bits_corrected: health.layer.bits_corrected,
        endurance,
        life_left_percent: erases.zip(endurance).map(|(erases, most)| left(erases.most, most)),
    }
}

fn table(standing: &Standing) -> String {
    let s = standing;
    let dash = |figure: Option<String>| figure.unwrap_or_else(|| "-".to_owned());
    let of = |now, most| format!("{}, at most {}", rounded_size(now), rounded_size(most));
    let mut rows = vec![
        ("file", s.file.clone()),
        ("tree", s.tree.to_owned()),
        ("keys, values", format!("{}, {}", s.key, s.value)),
        ("durability", s.durability.to_owned()),
        ("entries", dash(s.entries.map(thousands))),
        ("page", rounded_size(s.page_bytes.into())),
        ("height", s.height.to_string()),
        ("live pages", live_pages(s)),
        ("file size", dash(s.file_bytes.zip(s.capacity_bytes).map(|(now, most)| of(now, most)))),
        ("memory in use", rounded_size(s.memory_bytes)),
        ("checkpoint", s.checkpoint.to_string()),
        ("journal", of(s.journal_bytes, s.journal_bytes_most)),
        ("undo", of(s.undo_bytes, s.undo_bytes_most)),
        ("reads to open", format!("at most {}", rounded_size(s.opening_bytes_most))),
        ("kept by names", {
            let names = counted(s.checkpoints.len() as u64, "checkpoint");
            format!("{} of {names}", rounded_size(s.kept_bytes))
        }),
    ];
    if let Some(health) = &s.health {
        rows.extend(health_rows(health));
    }
    rows.into_iter().map(|(name, text)| format!("{name:16} {text}\n")).collect()
}

/// Pages of the device, which may be of another size than those of the tree.
fn live_pages(standing: &Standing) -> String {
    let pages = thousands(standing.live_pages);
    match standing.live_page_bytes == standing.page_bytes {
        true => pages,
        false => format!("{pages} of {}", rounded_size(standing.live_page_bytes.into())),
    }
}

fn health_rows(health: &ChipHealth) -> Vec<(&'static str, String)> {
    let spread = health.erases_least.zip(health.erases_mean).zip(health.erases_most);
    let spread = spread.map_or_else(
        || "-".to_owned(),
        |((least, mean), most)| format!("least {least}, mean {}, most {most}", three_digits(mean)),
    );
    let life = health.life_left_percent.zip(health.endurance).map_or_else(
        || "unknown; name the chip with --chip".to_owned(),
        |(left, endurance)| {
            let erases = thousands(endurance.into());
            format!("{} % left of {erases} erases a block", three_digits(left))
        },
    );
    vec![
        ("bad blocks", format!("{} of {}", health.bad_blocks, thousands(health.blocks.into()))),
        ("erases a block", spread),
        ("bits corrected", thousands(health.bits_corrected)),
        ("expected life", life),
    ]
}
