//! `weather`: hourly readings of three airports, as a secondary index on sensor readings.

use index::EntryShape;
use ruzstd::decoding::StreamingDecoder;

use super::table::{Arena, Misses, Table};
use super::{Chosen, Source, WorkloadEntry, parameters as p};
use crate::error::{Error, InputFault, Result};

/// What the registry says.
pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "weather",
    about: "211061 hourly readings of three New York airports in 2013, in the order of time: key \
            sensor, quantised value, row; value number of the reading; entries 4+4",
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

static FILE: &[u8] = include_bytes!("../../../data/nyc_weather_2013.csv.zst");

/// Bits of a key that number the row.
const ROW_BITS: u32 = 15;

/// Bits of a key that hold the quantised value.
const VALUE_BITS: u32 = 13;

/// A sensor: its column, what is added to a reading, and what the sum is multiplied by.
type Sensor = (&'static str, f64, f64);

/// In the order of the columns.
const SENSORS: [Sensor; 9] = [
    ("temp", 100.0, 10.0),
    ("dewp", 100.0, 10.0),
    ("humid", 0.0, 10.0),
    ("wind_dir", 0.0, 1.0),
    ("wind_speed", 0.0, 10.0),
    ("wind_gust", 0.0, 10.0),
    ("precip", 0.0, 100.0),
    ("pressure", -900.0, 10.0),
    ("visib", 0.0, 100.0),
];

/// Columns before the first sensor: the hour and the airport.
const FIRST_SENSOR: usize = 2;

fn source(_chosen: &Chosen, _seed: u64) -> Result<Source> {
    let table = read().map_err(|fault| Error::BuiltIn { name: "nyc_weather_2013", fault })?;
    Ok(Source::Table(table))
}

fn read() -> std::result::Result<Table, InputFault> {
    let decoder = StreamingDecoder::new(FILE)
        .map_err(|error| InputFault::Unreadable(std::io::Error::other(error.to_string())))?;
    let mut rows = csv::Reader::from_reader(decoder);
    let (mut keys, mut values) = (Arena::default(), Arena::default());
    let mut record = csv::StringRecord::new();
    let mut row: u32 = 0;
    while rows.read_record(&mut record).map_err(super::csv::fault)? {
        for (number, sensor) in SENSORS.iter().enumerate() {
            let Some(field) = record.get(FIRST_SENSOR + number).filter(|field| !field.is_empty())
            else {
                continue;
            };
            let reading: f64 = field.parse().map_err(|_| bad_reading(row, sensor, field))?;
            let key = (number as u32) << (VALUE_BITS + ROW_BITS)
                | quantised(sensor, reading) << ROW_BITS
                | row;
            values.push(&(values.len() as u32).to_be_bytes());
            keys.push(&key.to_be_bytes());
        }
        row += 1;
    }
    let most = (1 << ROW_BITS) - 1;
    if row > most {
        return Err(InputFault::TooLong { most: u64::from(most) });
    }
    Ok(Table {
        shape: EntryShape::fixed(4, 4),
        keys,
        values,
        row_ids: Vec::new(),
        asked: Vec::new(),
        numbered: false,
        misses: Misses::FreeRows { mask: most, from: row, to: most },
    })
}

fn quantised((_, add, times): &Sensor, reading: f64) -> u32 {
    let most = f64::from((1_u32 << VALUE_BITS) - 1);
    ((reading + add) * times).round().clamp(0.0, most) as u32
}

fn bad_reading(row: u32, sensor: &Sensor, field: &str) -> InputFault {
    InputFault::BadField {
        line: u64::from(row) + 2,
        column: sensor.0.to_string(),
        value: field.to_string(),
        expected: "a number",
    }
}

#[cfg(test)]
mod tests {
    use super::{SENSORS, quantised, read};

    #[test]
    fn all_readings_are_there_with_keys_of_sensor_value_and_row() {
        let table = read().unwrap();
        assert_eq!(table.rows(), 211_061);
        let key = |place| u32::from_be_bytes(table.keys.get(place).try_into().unwrap());
        // 2013-01-01T06:00:00Z, EWR: 39.02 F, dew point 26.06, humidity 59.37, wind from 270 at
        // 10.36 mph, no gust, no rain, 1012 mbar, 10 miles.
        assert_eq!(key(0), 1390 << 15);
        assert_eq!(key(1), 1 << 28 | 1261 << 15);
        assert_eq!(key(2), 2 << 28 | 594 << 15);
        assert_eq!(key(3), 3 << 28 | 270 << 15);
        assert_eq!(key(4), 4 << 28 | 104 << 15);
        assert_eq!(key(5), 6 << 28);
        assert_eq!(key(6), 7 << 28 | 1120 << 15);
        assert_eq!(key(7), 8 << 28 | 1000 << 15);
        // The next row is number 1.
        assert_eq!(key(8), 1390 << 15 | 1);
        assert_eq!(table.values.get(8), 8_u32.to_be_bytes());
    }

    #[test]
    fn readings_beyond_the_scale_are_clamped() {
        assert_eq!(quantised(&SENSORS[0], -200.0), 0);
        assert_eq!(quantised(&SENSORS[5], 1048.36), 8191);
        assert_eq!(quantised(&SENSORS[6], 0.05), 5);
    }
}
