//! How much of a file of a given size a database fills, and whether that stays so.
//!
//! `cargo run --release -p flashtree --example capacity -- FOLDER [ROUNDS [MEBIBYTES [TREE]]]`
//!
//! In FOLDER it makes databases of each tree that stands in a file, of three sizes and two shapes
//! of entries, fills each until a put is refused, empties it again, ROUNDS (10) times in changing
//! orders, and prints JSON: the share of the file that nodes take when it is full, of each round.
//! It fails if a delete is refused. With MEBIBYTES it leaves out the files that are larger, with
//! TREE it plays that tree alone.

use std::error::Error;
use std::path::PathBuf;

use flashtree::{Database, Durability, Options};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

const TREES: [&str; 3] = ["b-plus", "la-tree", "flat-tree"];

/// Bytes of the files, and the share of them that is to be filled.
const SIZES: [(u64, f64); 3] = [(1 << 20, 0.7), (4 << 20, 0.7), (16 << 20, 0.9)];

/// Bytes of the values; keys have eight.
const VALUES: [usize; 2] = [8, 100];

fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let usage = "usage: capacity FOLDER [ROUNDS [MEBIBYTES [TREE]]]";
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let mut number = |usual: u64| -> Outcome<u64> {
        let text = arguments.next();
        text.map_or(Ok(usual), |text| Ok(text.to_str().ok_or(usage)?.parse()?))
    };
    let (rounds, most) = (number(10)?, number(16)? << 20);
    let only = arguments.next().map(|tree| tree.into_string().map_err(|_| usage)).transpose()?;
    let trees = only.as_deref().map_or(TREES.to_vec(), |tree| vec![tree]);
    let folder = tempfile::tempdir_in(folder)?;
    let path = folder.path().join("filled.db");
    let (mut rows, mut least) = (Vec::new(), f64::INFINITY);
    for tree in trees {
        for (size, bound) in SIZES.into_iter().filter(|(size, _)| *size <= most) {
            for value in VALUES {
                let options = Options::new().tree(tree).capacity(size).overwrite(true);
                let options = options.durability(Durability::Batch);
                let mut database = Database::create(&path, &options)?;
                let mut shares = Vec::new();
                for round in 0..rounds {
                    let share = fill_and_empty(&mut database, (value, size), round);
                    let case = format!("{tree}, {size} bytes, values of {value}, round {round}");
                    shares.push(share.map_err(|error| format!("{case}: {error}"))?);
                }
                let worst = shares.iter().copied().fold(f64::INFINITY, f64::min);
                least = least.min(worst / bound);
                rows.push(row(tree, (size, value), &shares));
            }
        }
    }
    println!("{:#}", json!({ "least_of_bound": least, "rows": rows }));
    Ok(())
}

fn row(tree: &str, (size, value): (u64, usize), shares: &[f64]) -> Value {
    json!({ "tree": tree, "size": size, "value_bytes": value, "shares": shares })
}

/// The share of the file that is filled when a put is refused.
fn fill_and_empty(
    database: &mut Database<'_>,
    (value, size): (usize, u64),
    round: u64,
) -> Outcome<f64> {
    // A bijection, another in each round.
    let key = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15 + 2 * round).to_be_bytes();
    let mut entries = 0;
    let refused = loop {
        match database.put(key(entries), vec![round as u8; value]) {
            Ok(()) => entries += 1,
            Err(error) => break error,
        }
    };
    if !matches!(refused, flashtree::Error::Full { .. }) {
        return Err(refused.into());
    }
    let stats = database.stats()?;
    let share = (stats.live_pages * u64::from(stats.live_page_bytes)) as f64 / size as f64;
    for number in 0..entries {
        let number = if round.is_multiple_of(2) { number } else { entries - 1 - number };
        database.delete(key(number))?;
    }
    match database.count()? {
        0 => Ok(share),
        left => Err(format!("{left} entries are left of {entries}").into()),
    }
}
