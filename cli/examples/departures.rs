//! Prints the departures of `data/`, as many times as the first argument says, with row numbers
//! that run on; a second argument limits the rows. So there is an input of any length whose keys
//! are all different.
//!
//! `cargo run --release -p flashtree-cli --example departures -- 6 >departures.csv`

#![expect(clippy::print_stderr, reason = "an example that runs in a terminal")]

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use ruzstd::decoding::StreamingDecoder;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/nyc_flights_2013.csv.zst");

/// The columns that are printed, behind the row's number.
const COLUMNS: [&str; 6] = ["tailnum", "time_hour", "carrier", "flight", "dep_delay", "arr_delay"];

fn main() -> ExitCode {
    let numbers: Option<Vec<u64>> =
        std::env::args().skip(1).map(|word| word.parse().ok()).collect();
    let (times, most) = match numbers.as_deref() {
        Some([times]) => (*times, u64::MAX),
        Some([times, most]) => (*times, *most),
        _ => {
            eprintln!("usage: departures TIMES [ROWS]");
            return ExitCode::from(2);
        }
    };
    match print(times, most) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(times: u64, most: u64) -> Result<(), Box<dyn Error>> {
    let mut out = csv::Writer::from_writer(BufWriter::new(io::stdout().lock()));
    out.write_record(["row"].iter().chain(&COLUMNS))?;
    let mut rows = 0;
    for _ in 0..times {
        let decoder = StreamingDecoder::new(File::open(DATA)?)?;
        let mut input = csv::Reader::from_reader(decoder);
        let heading = input.headers()?.clone();
        let places: Option<Vec<usize>> =
            COLUMNS.iter().map(|name| heading.iter().position(|known| known == *name)).collect();
        let places = places.ok_or("a column is missing")?;
        let mut record = csv::StringRecord::new();
        while rows < most && input.read_record(&mut record)? {
            let number = rows.to_string();
            let fields = places.iter().map(|place| record.get(*place).unwrap_or_default());
            out.write_record(std::iter::once(number.as_str()).chain(fields))?;
            rows += 1;
        }
    }
    Ok(out.into_inner().map_err(|error| error.into_error())?.flush()?)
}
