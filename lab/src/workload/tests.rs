//! Workloads as a whole: what they do, whether it is the same each time, and wrong specs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Operation, WORKLOADS, Workload, WorkloadOptions};
use crate::error::{Error, InputFault};

fn prepare(spec: &str, operations: Option<u64>, seed: u64) -> Result<Workload, Error> {
    let options = WorkloadOptions { operations, seed, ..WorkloadOptions::default() };
    Workload::prepare(spec, &options)
}

fn ready(spec: &str) -> Workload {
    prepare(spec, None, 1).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

fn from_file(text: &[u8], spec: &str, operations: Option<u64>) -> Result<Workload, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input.csv");
    std::fs::write(&path, text).unwrap();
    read(&path, spec, operations)
}

fn read(path: &Path, spec: &str, operations: Option<u64>) -> Result<Workload, Error> {
    let input = Some(path.to_path_buf());
    Workload::prepare(spec, &WorkloadOptions { operations, input, ..WorkloadOptions::default() })
}

/// What a workload did, operation by operation, checked on the way.
#[derive(Debug, Default, PartialEq, Eq)]
struct Account {
    puts: u64,
    puts_again: u64,
    deletes: u64,
    hits: u64,
    misses: u64,
    ranges: u64,
    there: BTreeMap<Vec<u8>, Vec<u8>>,
    ever: BTreeSet<Vec<u8>>,
    /// A number that all bytes of all operations went into.
    mixed: u64,
}

impl Account {
    fn of(workload: &Workload) -> Self {
        let mut account = Account::default();
        let mut preload = workload.preload();
        let mut last: Option<Vec<u8>> = None;
        while let Some((key, value)) = preload.next() {
            assert!(last.as_deref().is_none_or(|last| last < key), "the preload is sorted");
            last = Some(key.to_vec());
            account.ever.insert(key.to_vec());
            account.there.insert(key.to_vec(), value.to_vec());
        }
        assert_eq!(account.there.len() as u64, workload.loaded());
        let mut operations = workload.operations();
        while let Some(operation) = operations.next() {
            account.take(operation, workload.longest_value());
        }
        assert_eq!(account.operations(), workload.before() + workload.total());
        account
    }

    fn take(&mut self, operation: Operation<'_>, longest: usize) {
        let (kind, key) = match operation {
            Operation::Put { key, value } => {
                assert!(value.len() <= longest, "{} > {longest}", value.len());
                self.mix(value);
                if let Some(old) = self.there.insert(key.to_vec(), value.to_vec()) {
                    self.puts_again += 1;
                    assert_ne!(old, value, "a put again changes the value");
                }
                self.ever.insert(key.to_vec());
                self.puts += 1;
                (0, key)
            }
            Operation::Delete { key } => {
                assert!(self.there.remove(key).is_some(), "a delete meets a key that is there");
                self.deletes += 1;
                (1, key)
            }
            Operation::Get { key } if self.there.contains_key(key) => {
                self.hits += 1;
                (2, key)
            }
            Operation::Get { key } => {
                assert!(!self.ever.contains(key), "a miss was never there");
                self.misses += 1;
                (2, key)
            }
            Operation::Range { from, count, .. } => {
                assert!(count > 0);
                self.ranges += 1;
                (3, from)
            }
        };
        self.mix(&[kind]);
        self.mix(key);
    }

    fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.mixed = super::scatter64(self.mixed ^ u64::from(*byte));
        }
    }

    fn operations(&self) -> u64 {
        self.puts + self.deletes + self.hits + self.misses + self.ranges
    }
}

#[test]
fn the_registry_is_sorted_and_each_default_can_be_prepared() {
    assert!(WORKLOADS.is_sorted_by(|one, next| one.name < next.name));
    for entry in WORKLOADS.iter().filter(|entry| entry.name != "csv") {
        let workload = ready(entry.name);
        assert!(workload.total() > 0, "{}", entry.name);
        let about = entry.about;
        assert!(!about.contains('\n') && !about.is_empty(), "{}", entry.name);
    }
}

#[test]
fn weather_puts_every_reading_once_and_looks_up_a_tenth() {
    let account = Account::of(&ready("weather"));
    assert_eq!((account.puts, account.puts_again), (211_061, 0));
    assert_eq!((account.hits, account.misses, account.deletes), (21_106, 0, 0));
    assert_eq!(account.there.len(), 211_061);
}

#[test]
fn flights_put_every_departure_once() {
    let account = Account::of(&ready("flights:ltu=0"));
    assert_eq!((account.puts, account.puts_again, account.hits), (336_776, 0, 0));
    assert_eq!(account.there.len(), 336_776);
}

#[test]
fn every_share_is_met() {
    let shares = "updates=4000,deletes=25,ltu=50,hits=75,ranges=20,scan=7,preload=1000";
    for name in ["uniform", "sequential", "weather", "flights"] {
        let account = Account::of(&ready(&format!("{name}:{shares}")));
        assert_eq!((account.puts, account.deletes), (3000, 1000), "{name}");
        let lookups = (account.hits, account.misses, account.ranges);
        assert_eq!(lookups, (1200, 400, 400), "{name}");
        assert_eq!(account.there.len(), 1000 + 3000 - 1000, "{name}");
    }
}

#[test]
fn entries_have_the_shape_that_was_chosen() {
    for (entry, lengths) in [("4+4", (4, 4)), ("8+4", (8, 4)), ("8+8", (8, 8))] {
        for name in ["uniform", "sequential", "zipf"] {
            let account =
                Account::of(&ready(&format!("{name}:entry={entry},preload=100,updates=100")));
            for (key, value) in account.there {
                assert_eq!((key.len(), value.len()), lengths, "{name} {entry}");
            }
        }
    }
    for name in ["uniform", "sequential", "zipf"] {
        let spec = format!("{name}:entry=variable,preload=1000,updates=1000,hits=50,ltu=100");
        assert!(Account::of(&ready(&spec)).there.len() >= 1000, "{name}");
    }
}

#[test]
fn sequential_keys_ascend() {
    let workload = ready("sequential:preload=100,updates=1000,ltu=0");
    let mut last = workload.preload().next().map(|(key, _)| key.to_vec()).unwrap();
    let mut operations = workload.operations();
    while let Some(Operation::Put { key, .. }) = operations.next() {
        assert!(key > last.as_slice());
        last = key.to_vec();
    }
}

#[test]
fn zipf_puts_hot_keys_again_and_again() {
    let workload = ready("zipf:preload=10000,updates=20000,deletes=5");
    let account = Account::of(&workload);
    assert_eq!((account.puts, account.deletes), (19_000, 1000));
    assert!(account.puts_again > 15_000, "{}", account.puts_again);
    // With this skew the first of 10,000 ranks has about a tenth of all draws.
    let mut counts: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    let mut operations = workload.operations();
    while let Some(operation) = operations.next() {
        if let Operation::Put { key, .. } = operation {
            *counts.entry(key.to_vec()).or_default() += 1;
        }
    }
    let most = counts.values().max().copied().unwrap_or_default();
    assert!((1500..2700).contains(&most), "{most}");
    let flat = ready("zipf:preload=10000,updates=20000,skew=0");
    assert_eq!(Account::of(&flat).puts, 20_000);
}

#[test]
fn a_mix_has_its_four_parts() {
    for name in ["uniform", "sequential", "zipf", "weather", "flights"] {
        let spec = format!("{name}:preload=5000,mix=50/20/10/20");
        let account = Account::of(&prepare(&spec, Some(10_000), 3).unwrap());
        assert_eq!((account.puts, account.deletes), (4000, 1000), "{name}");
        assert_eq!(account.hits, 5000, "{name}");
        // By rank, a put may also bring a deleted key back.
        assert!(account.puts_again > 1000, "{name}: {}", account.puts_again);
    }
    let searches = prepare("uniform:preload=10,mix=100/0/0/0", Some(10), 1).unwrap();
    assert_eq!(Account::of(&searches).hits, 10);
}

#[test]
fn the_total_is_what_ops_says() {
    for (spec, operations) in
        [("weather", 1), ("weather", 110), ("uniform:ltu=33.3", 1000), ("flights:ltu=900", 10)]
    {
        let account = Account::of(&prepare(spec, Some(operations), 1).unwrap());
        assert_eq!(account.operations(), operations, "{spec}");
    }
    let account = Account::of(&prepare("weather", Some(110), 1).unwrap());
    assert_eq!((account.puts, account.hits), (100, 10));
}

#[test]
fn more_updates_than_rows_begin_again() {
    let weather = Account::of(&ready("weather:updates=250000,ltu=0"));
    assert_eq!((weather.puts, weather.puts_again), (250_000, 250_000 - 211_061));
    // The rows of flights are numbered on.
    let flights = Account::of(&ready("flights:updates=400000,ltu=0"));
    assert_eq!((flights.puts, flights.puts_again), (400_000, 0));
}

#[test]
fn one_seed_gives_one_workload() {
    let all = "preload=500,updates=2000,ltu=100,deletes=20,hits=50,ranges=10";
    for name in ["uniform", "sequential", "zipf", "weather", "flights"] {
        let spec = format!("{name}:{all}");
        let account = |seed| Account::of(&prepare(&spec, None, seed).unwrap());
        assert_eq!(account(7), account(7), "{name}");
        assert_ne!(account(7).mixed, account(8).mixed, "{name}");
    }
}

#[test]
fn deletes_never_run_out_of_keys() {
    let account = Account::of(&ready("uniform:preload=0,updates=1000,deletes=50"));
    assert_eq!((account.puts, account.deletes), (500, 500));
    assert!(account.there.is_empty());
}

#[test]
fn wrong_workloads_are_refused_in_one_line_that_helps() {
    for (spec, part) in [
        ("wether", "did you mean weather"),
        ("qqq", "choose from csv, flights"),
        ("weather:lut=10", "did you mean ltu"),
        ("weather:entry=4+4", "parameter"),
        ("weather:skew=1", "parameter"),
        ("weather:ltu=-1", "ltu=-1"),
        ("weather:ltu=ten", "ltu=ten"),
        ("weather:ltu=10,ltu=20", "twice"),
        ("weather:preload=300000", "211061"),
        // No row is left.
        ("weather:preload=211061", "no operation"),
        ("weather:updates=0", "no operation"),
        ("weather:hits=101", "percentage"),
        ("weather:scan=0", "scan=0"),
        ("weather:scan=99999999999", "scan"),
        ("weather:mix=50/50", "100 in sum"),
        ("weather:mix=50/50/50/50", "100 in sum"),
        ("weather:mix=25/25/25/25/0", "100 in sum"),
        ("weather:mix=25/25/25/25,ltu=10", "exclude"),
        ("uniform:entry=3+3", "8+8"),
        ("uniform:preload=0,updates=100,deletes=80", "deletes"),
        ("uniform:updates=99999999999999999999", "whole number"),
        ("uniform:updates=9999999999", "entries"),
        ("uniform:preload=9999999999", "preload"),
        ("zipf:skew=11", "skew"),
        ("zipf:skew=NaN", "skew"),
        ("csv:key=a", "--input"),
        ("weather:", "key=value"),
        ("", "name is missing"),
    ] {
        let error = prepare(spec, None, 1).err();
        let Some(error) = error else { panic!("{spec} was taken") };
        let meant = error.meant().map(|(near, known)| spec::suggestion(near, known));
        let line = format!("{error}; {}", meant.unwrap_or_default());
        assert!(line.contains(part), "{spec}: {line}");
        assert!(!line.contains('\n') && error.is_usage(), "{spec}: {line}");
    }
    assert!(prepare("weather", Some(0), 1).is_err_and(|error| error.is_usage()));
    let input = read(Path::new("x.csv"), "weather", None);
    assert!(input.is_err_and(|error| error.is_usage()));
}

#[test]
fn a_preload_is_bounded_by_the_device_before_room_is_made_for_it() {
    let options =
        WorkloadOptions { device_bytes: Some(1 << 20), seed: 1, ..WorkloadOptions::default() };
    let refused = Workload::prepare("uniform:preload=2000000000", &options);
    assert!(matches!(refused, Err(Error::PreloadTooLarge { .. })));
}

#[test]
fn a_csv_file_puts_its_rows() {
    let text = b"id,name,count\n3,Ann,30\n1,\"Bo, b\",10\n3,Cy,31\n";
    let numbers = from_file(text, "csv:key=id,value=count,ltu=0", None).unwrap();
    let account = Account::of(&numbers);
    assert_eq!((account.puts, account.puts_again), (3, 1));
    assert_eq!(account.there[&3_u64.to_be_bytes()[..]], 31_u64.to_be_bytes());
    let texts = from_file(text, "csv:key=name,entry=variable,ltu=0", None).unwrap();
    let account = Account::of(&texts);
    assert_eq!(account.there[&b"Bo, b"[..]], b"1");
    let mixed = "csv:key=id,value=count,entry=4+4,updates=100,deletes=20,ltu=100,hits=50";
    let account = Account::of(&from_file(text, mixed, None).unwrap());
    assert_eq!((account.puts, account.deletes, account.hits + account.misses), (80, 20, 100));
    assert!(account.misses >= 50);
}

#[test]
fn a_csv_file_may_be_compressed_and_its_lines_end_as_they_like() {
    use std::io::Write;
    let text = b"\xEF\xBB\xBF\"id\",name\r\n1,\"two\r\nlines\"\r\n2,x\r\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text).unwrap();
    for content in [&text[..], &gzip.finish().unwrap()] {
        let workload = from_file(content, "csv:key=id,value=name,entry=variable,ltu=0", None);
        let account = Account::of(&workload.unwrap());
        assert_eq!(account.there[&b"1"[..]], b"two\r\nlines");
        assert_eq!(account.puts, 2);
    }
}

#[test]
fn a_csv_file_may_say_what_to_do() {
    let text = b"k,v,do\n1,10,put\n2,20,insert\n1,,get\n2,,delete\n9,,get\n1,,range\n1,11,PUT\n";
    let workload =
        from_file(text, "csv:key=k,value=v,operation=do,entry=4+4,preload=1", None).unwrap();
    assert_eq!((workload.loaded(), workload.total()), (1, 6));
    let account = Account::of(&workload);
    assert_eq!((account.puts, account.deletes, account.ranges), (2, 1, 1));
    assert_eq!((account.hits, account.misses), (1, 1));
    let after = from_file(text, "csv:key=k,value=v,operation=do,preload=4", Some(2)).unwrap();
    assert_eq!((after.loaded(), after.total()), (1, 2));
    for (spec, operations) in [
        ("csv:key=k,value=v,operation=do", Some(8)),
        ("csv:key=k,value=v,operation=do,ltu=10", None),
        ("csv:key=k,value=v,operation=do,preload=7", None),
    ] {
        let refused = from_file(text, spec, operations);
        assert!(refused.is_err_and(|error| error.is_usage()), "{spec}");
    }
}

#[test]
fn a_wrong_csv_file_is_refused_with_the_place_of_the_fault() {
    let key = "csv:key=id";
    for (text, spec, parts) in [
        (&b"a,b\n1,2\n"[..], key, &["no column \"id\"", "a, b"][..]),
        (b"id,b\n1,2\n7,x\nseven,2\n", key, &["line 4", "id", "\"seven\""]),
        (b"id,b\n1,2\n-7,2\n", key, &["line 3", "\"-7\""]),
        (b"id,b\n1,2\n4294967296,2\n", "csv:key=id,entry=4+4", &["line 3", "4294967296"]),
        (b"id,b\n1,two\n", "csv:key=id,value=b", &["line 2", "column b", "\"two\""]),
        (b"id,b\n,2\n", key, &["line 2", "\"\""]),
        (b"id,b\n1,2\n3\n", key, &["line 3", "1 field", "2"]),
        (b"id,b\n1,\xff\n", key, &["line 2", "UTF-8"]),
        (b"id,b\n1,fly\n", "csv:key=id,operation=b", &["line 2", "\"fly\"", "put, delete"]),
        (b"id,b\n1,2\n2,\"x\n3,y\n", key, &["line 3", "never closed"]),
        (b"id,b\n1,\"x\"y\n", key, &["line 2", "closing quote"]),
        (b"id,b,id\n1,2,3\n", key, &["two columns are called \"id\""]),
        (b"i\0d\0,\0b\0\n\0", key, &["line 1", "UTF-16"]),
        (b"\xFF\xFEi\0d\0", key, &["UTF-16"]),
        (b"\xFD7zXZ\0\0\0", key, &["compressed with xz"]),
        (b"BZh91AY&SY\0\0", key, &["compressed with bzip2"]),
        (b"\x1F\x8B\x08\0\0\0\0\0\0\x03", key, &["cut off"]),
        (b"", key, &["no rows"]),
        (b"id,b\n", key, &["no rows"]),
    ] {
        let error = from_file(text, spec, None).err();
        let Some(error) = error else { panic!("{:?} was taken", String::from_utf8_lossy(text)) };
        let line = error.to_string();
        for part in parts {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(line.contains("input.csv") && !line.contains('\n'), "{line}");
        let no_column = matches!(&error, Error::Input { fault: InputFault::NoColumn { .. }, .. });
        assert_eq!(error.is_usage(), no_column, "{line}");
    }
    let missing = read(Path::new("no/such/file.csv"), key, None).err().unwrap().to_string();
    assert!(missing.starts_with("no/such/file.csv: "), "{missing}");
    assert!(read(Path::new("/"), key, None).is_err());
    assert!(from_file(b"id\n1\n", "csv", None).is_err_and(|error| error.is_usage()));
}

#[test]
fn new_entries_come_before_what_is_measured_and_add_to_it() {
    let plain = ready("uniform:preload=100,mix=50/30/20/0");
    let workload = ready("uniform:preload=100,before=40,mix=50/30/20/0");
    assert_eq!((workload.before(), workload.total()), (40, plain.total()));
    let mut operations = workload.operations();
    for _ in 0..40 {
        assert!(matches!(operations.next(), Some(Operation::Put { .. })));
    }
    let (account, without) = (Account::of(&workload), Account::of(&plain));
    assert_eq!(account.puts, without.puts + 40);
    assert_eq!((account.hits, account.deletes), (without.hits, without.deletes));
    assert_eq!(account.there.len(), without.there.len() + 40);
}
