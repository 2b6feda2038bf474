//! What long values cost the device that are put one by one.
//!
//! `cargo run --release -p flashtree --example long_values -- FOLDER [BYTES [SHORT [TREE]]]`
//!
//! In FOLDER it makes a database of TREE (`b-plus`), else as `Options::new()` does, and puts values
//! of 10 KB, 100 KB, 1 MB and 10 MB, BYTES (40,000,000) bytes of each, under both durabilities that
//! have a journal; and then others in their place. Between two values it puts SHORT (0) entries of
//! 8 + 8 bytes. It counts what reaches the file, closing included, and prints JSON.

use std::path::{Path, PathBuf};
use std::time::Instant;

use device::{Cause, Sector};
use flashtree::{Database, Durability, OpenOptions, Options};
use serde_json::{Value, json};

use common::{CAPACITY, Outcome, Watch, open_watched};

mod common;

const LENGTHS: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// Values of this length are written once.
const ONCE_FROM: u64 = 1_000_000;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let usage = "usage: long_values FOLDER [BYTES [SHORT [TREE]]]";
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let mut number = |usual: u64| -> Outcome<u64> {
        let text = arguments.next();
        text.map_or(Ok(usual), |text| Ok(text.to_str().ok_or(usage)?.parse()?))
    };
    let (bytes, short) = (number(40_000_000)?, number(0)?);
    let tree = arguments.next().map_or(Some("b-plus".to_owned()), |tree| tree.into_string().ok());
    let options = Options::new().tree(tree.ok_or(usage)?).capacity(CAPACITY).overwrite(true);
    let folder = tempfile::tempdir_in(folder)?;
    let path = folder.path().join("long.db");
    let (mut rows, mut most) = (Vec::new(), 0.0_f64);
    for durability in [Durability::Batch, Durability::Every] {
        let options = options.clone().durability(durability);
        for length in LENGTHS {
            for occasion in ["new", "again"] {
                if occasion == "new" {
                    Database::create(&path, &options)?.close()?;
                }
                let (amplification, mut row) = run(&path, (length, bytes), short)?;
                if length >= ONCE_FROM {
                    most = most.max(amplification);
                }
                row["durability"] = json!(durability.name());
                row["occasion"] = json!(occasion);
                rows.push(row);
            }
        }
    }
    println!("{:#}", json!({ "once_write_amplification": most, "rows": rows }));
    Ok(())
}

/// Puts values of `length` bytes, `all` bytes in all, with `short` entries between them; tells how
/// many times their bytes were written, and more.
fn run(path: &Path, (length, all): (u64, u64), short: u64) -> Outcome<(f64, Value)> {
    let values = (all / length).max(1);
    let put = (values * (length + 8 + short * 16)) as f64;
    let value = vec![0xA5; usize::try_from(length)?];
    let (database, seen) = open_watched::<Counts>(path, &OpenOptions::new())?;
    let (before, start) = (*seen.now(), Instant::now());
    // Spread by an odd multiplier, a bijection.
    let mut keys = (1_u64..).map(|key| key.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    for _ in 0..values {
        database.put(keys.next().ok_or("no key")?, &value)?;
        for key in keys.by_ref().take(usize::try_from(short)?) {
            database.put(key, key)?;
        }
    }
    database.close()?;
    let after = *seen.now();
    let times = |of: fn(&Counts) -> u64| (of(&after) - of(&before)) as f64 / put;
    let each = |of: fn(&Counts) -> u64| (of(&after) - of(&before)) as f64 / values as f64;
    let amplification = times(|counts| counts.bytes);
    let row = json!({
        "value": length,
        "values": values,
        "write_amplification": amplification,
        "of_which_journal": times(|counts| counts.journal),
        "of_which_checkpoints": times(|counts| counts.checkpoint),
        "flushes_per_value": each(|counts| counts.flushes),
        "superblocks_per_value": each(|counts| counts.superblocks),
        "ms_per_value": start.elapsed().as_secs_f64() * 1e3 / values as f64,
    });
    Ok((amplification, row))
}

/// What reached the device.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    bytes: u64,
    journal: u64,
    checkpoint: u64,
    flushes: u64,
    superblocks: u64,
}

impl Watch for Counts {
    fn writes(&mut self, first: Sector, bytes: u64, cause: Cause) {
        self.bytes += bytes;
        match cause {
            Cause::Journal => self.journal += bytes,
            Cause::Checkpoint => self.checkpoint += bytes,
            _ => {}
        }
        // The superblock's first copy stands in sector 0.
        self.superblocks += u64::from(first.0 == 0);
    }

    fn flushes(&mut self) -> bool {
        self.flushes += 1;
        true
    }
}
