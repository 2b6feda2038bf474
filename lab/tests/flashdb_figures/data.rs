//! What is indexed: 30,000 data points of 16 bytes.

use std::path::PathBuf;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use ruzstd::decoding::StreamingDecoder;

/// Data points.
pub(crate) const POINTS: u32 = 30_000;

/// A folder with `ulb_library_motes.csv.zst`.
const FOLDER: &str = "FLASHTREE_DATA";

/// Sensors of the paper's building.
const SENSORS: usize = 35;

/// Names of data and keys in the order in which they come.
pub(crate) type Data = (&'static str, Vec<u64>);

/// SEQUENTIAL.
pub(crate) fn sequential() -> Data {
    ("SEQ", (0..u64::from(POINTS)).collect())
}

/// As many sequences side by side.
pub(crate) fn in_streams(streams: u64) -> Vec<u64> {
    let key = |number: u64| ((number % streams) << 32) | (number / streams);
    (0..u64::from(POINTS)).map(key).collect()
}

/// RANDOM.
pub(crate) fn random() -> Data {
    let (_, mut keys) = sequential();
    keys.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
    ("RND", keys)
}

/// In place of LABDATA, which is not public.
pub(crate) fn readings() -> Data {
    ("LAB", keys_of(&generated()))
}

/// Of motes in a library, in place of LABDATA.
pub(crate) fn readings_of_motes() -> Data {
    let folder = std::env::var_os(FOLDER).expect("FLASHTREE_DATA names a folder with readings");
    ("MOTES", keys_of(&motes(folder.into())))
}

/// Readings by what they are, and equal ones by when they came.
fn keys_of(hundredths: &[u32]) -> Vec<u64> {
    (0..).zip(hundredths).map(|(number, value)| (u64::from(*value) << 32) | number).collect()
}

/// Degrees as sensors of a building tell them once a minute each: a day's course, and steps of
/// some hundredths.
fn generated() -> Vec<u32> {
    let mut dice = ChaCha8Rng::seed_from_u64(1);
    let mut walks: Vec<f64> = (0..SENSORS).map(|_| dice.random_range(21.0..22.5)).collect();
    let reading = |number: u32| {
        let minute = f64::from(number / SENSORS as u32);
        let walk = &mut walks[number as usize % SENSORS];
        *walk += dice.random_range(-0.02..0.02);
        let day = 0.9 * (minute / 1440.0 * std::f64::consts::TAU).sin();
        ((*walk + day) * 100.0) as u32
    };
    (0..POINTS).map(reading).collect()
}

/// The first readings of motes in a library, in the order in which they came.
fn motes(folder: PathBuf) -> Vec<u32> {
    let file = std::fs::File::open(folder.join("ulb_library_motes.csv.zst")).unwrap();
    let text = StreamingDecoder::new(file).unwrap();
    let mut rows = csv::ReaderBuilder::new().has_headers(false).from_reader(text);
    let degrees = |row: csv::StringRecord| row[3].parse::<f64>().unwrap();
    let rows = rows.records().take(POINTS as usize).map(|row| degrees(row.unwrap()));
    rows.map(|degrees| (degrees * 100.0).round() as u32).collect()
}
