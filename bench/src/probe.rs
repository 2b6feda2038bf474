//! What the disk itself gives: plain direct requests of 4 KiB, one at a time.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::fs::OFlags;
use serde_json::{Value, json};

use crate::Outcome;
use crate::workload::Random;

const PAGE: usize = 4096;
const FILE_BYTES: u64 = 256 << 20;
/// How long each kind of request is made.
const LIMIT: Duration = Duration::from_secs(3);

/// Makes a file in `folder`, reads and writes it, and takes it away.
///
/// # Errors
/// What the system says.
pub fn probe(folder: &Path) -> Outcome<Value> {
    let path = folder.join("probe");
    let figures = probe_file(&path);
    fs::remove_file(&path)?;
    figures
}

fn probe_file(path: &Path) -> Outcome<Value> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(path)?;
    let long = vec![0x5A; 1 << 20];
    for at in (0..FILE_BYTES).step_by(long.len()) {
        file.write_all_at(&long, at)?;
    }
    file.sync_all()?;
    let mut direct = OpenOptions::new();
    direct.read(true).write(true).custom_flags(OFlags::DIRECT.bits().cast_signed());
    let (file, is_direct) = direct.open(path).map_or((file, false), |file| (file, true));
    let reads = requests(1, |page, at| Ok(file.read_exact_at(page, at)?))?;
    let writes = requests(2, |page, at| write(&file, page, at))?;
    Ok(json!({ "phase": "probe", "is_direct": is_direct, "reads": reads, "writes": writes }))
}

fn write(file: &File, page: &[u8], at: u64) -> Outcome<()> {
    file.write_all_at(page, at)?;
    Ok(file.sync_data()?)
}

/// Requests at random places for a while.
fn requests(seed: u64, mut act: impl FnMut(&mut [u8], u64) -> Outcome<()>) -> Outcome<Value> {
    let mut memory = vec![0xA5; 2 * PAGE];
    // Direct requests want memory at the start of a page.
    let start = memory.as_ptr().align_offset(PAGE);
    let page = &mut memory[start..start + PAGE];
    let mut random = Random(seed);
    let mut latency_ns = Histogram::<u64>::new_with_bounds(1, 600_000_000_000, 3)?;
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        let one = Instant::now();
        act(page, random.below(FILE_BYTES / PAGE as u64) * PAGE as u64)?;
        latency_ns.saturating_record(one.elapsed().as_nanos() as u64);
    }
    let per_second = latency_ns.len() as f64 / begun.elapsed().as_secs_f64();
    let at = |quantile| latency_ns.value_at_quantile(quantile) as f64 / 1000.0;
    Ok(json!({
        "per_second": per_second,
        "p50_us": at(0.5),
        "p99_9_us": at(0.999),
        "max_us": latency_ns.max() as f64 / 1000.0,
    }))
}
