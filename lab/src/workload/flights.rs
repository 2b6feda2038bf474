//! `flights`: departures by tail number and hour, with keys and values of variable length.

use index::EntryShape;
use ruzstd::decoding::StreamingDecoder;

use super::table::{Arena, Misses, Table};
use super::{Chosen, Source, WorkloadEntry, parameters as p};
use crate::error::{Error, InputFault, Result};

/// What the registry says.
pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "flights",
    about: "336776 departures from New York in 2013, in the file's order: key tail number, hour, \
            carrier and flight number, row; value the two delays; variable entries",
    parameters: &[
        p::PRELOAD,
        p::UPDATES_ROWS,
        p::LTU,
        p::DELETES,
        p::HITS,
        p::RANGES,
        p::SCAN,
        p::MIX,
    ],
    source,
};

static FILE: &[u8] = include_bytes!("../../../data/nyc_flights_2013.csv.zst");

/// The columns that make keys and values.
const COLUMNS: [&str; 6] = ["tailnum", "time_hour", "carrier", "flight", "dep_delay", "arr_delay"];

fn source(_chosen: &Chosen, _seed: u64) -> Result<Source> {
    let table = read().map_err(|fault| Error::BuiltIn { name: "nyc_flights_2013", fault })?;
    Ok(Source::Table(table))
}

fn read() -> std::result::Result<Table, InputFault> {
    let decoder = StreamingDecoder::new(FILE)
        .map_err(|error| InputFault::Unreadable(std::io::Error::other(error.to_string())))?;
    let mut rows = csv::Reader::from_reader(decoder);
    let header = rows.headers().map_err(super::csv::fault)?.clone();
    let mut columns = [0; COLUMNS.len()];
    for (place, name) in columns.iter_mut().zip(COLUMNS) {
        *place = super::csv::column(header.iter(), name)?;
    }
    let [tail, hour, carrier, flight, departure, arrival] = columns;
    let (mut keys, mut values) = (Arena::default(), Arena::default());
    let mut record = csv::StringRecord::new();
    let mut text = Vec::new();
    while rows.read_record(&mut record).map_err(super::csv::fault)? {
        let field = |place| record.get(place).unwrap_or_default().as_bytes();
        text.clear();
        for part in [field(tail), b"\t", field(hour), b"\t", field(carrier), field(flight), b"\t"] {
            text.extend_from_slice(part);
        }
        keys.push(&text);
        text.clear();
        for part in [field(departure), b"\t", field(arrival)] {
            text.extend_from_slice(part);
        }
        values.push(&text);
    }
    Ok(Table {
        shape: EntryShape::VARIABLE,
        keys,
        values,
        row_ids: Vec::new(),
        asked: Vec::new(),
        numbered: true,
        misses: Misses::Dashed,
    })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn all_departures_are_there_with_keys_that_end_with_their_row() {
        let table = read().unwrap();
        assert_eq!(table.rows(), 336_776);
        let text = |id| {
            let mut key = Vec::new();
            table.key(id, &mut key);
            String::from_utf8(key).unwrap()
        };
        assert_eq!(text(0), "N14228\t2013-01-01T10:00:00Z\tUA1545\t0");
        assert_eq!(text(3), "N804JB\t2013-01-01T10:00:00Z\tB6725\t3");
        assert_eq!(table.values.get(3), b"-1\t-18");
        // Read once more, the rows run on.
        assert_eq!(text(336_776), "N14228\t2013-01-01T10:00:00Z\tUA1545\t336776");
    }
}
