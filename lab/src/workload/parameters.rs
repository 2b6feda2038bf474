//! The parameters of workloads: what they are, and how their values are read.

use index::EntryShape;

use crate::error::{Error, Result, Thing};
use spec::near;
use spec::{Spec, parse_count, parse_decimal};

/// A parameter of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadParameter {
    /// Its name.
    pub name: &'static str,
    /// What it decides, in a line.
    pub about: &'static str,
    /// Its value where none is given; empty if that follows from other parameters.
    pub default: &'static str,
}

const fn parameter(
    name: &'static str,
    about: &'static str,
    default: &'static str,
) -> WorkloadParameter {
    WorkloadParameter { name, about, default }
}

pub(super) const PRELOAD: WorkloadParameter =
    parameter("preload", "entries loaded before measuring", "0");
pub(super) const PRELOAD_MANY: WorkloadParameter =
    parameter("preload", "entries loaded before measuring", "100000");
pub(super) const BEFORE: WorkloadParameter =
    parameter("before", "new entries put one by one after the preload and before measuring", "0");
pub(super) const UPDATES: WorkloadParameter =
    parameter("updates", "puts and deletes that are measured", "100000");
pub(super) const UPDATES_ROWS: WorkloadParameter = parameter(
    "updates",
    "puts and deletes that are measured; all rows after the preload if not given, and after the \
     last row the first again",
    "",
);
pub(super) const LTU: WorkloadParameter = parameter("ltu", "lookups per 100 updates", "10");
pub(super) const DELETES: WorkloadParameter =
    parameter("deletes", "percent of the updates that delete a key that is there", "0");
pub(super) const HITS: WorkloadParameter =
    parameter("hits", "percent of the gets whose key is there", "100");
pub(super) const RANGES: WorkloadParameter =
    parameter("ranges", "percent of the lookups that read a range, half of them descending", "0");
pub(super) const SCAN: WorkloadParameter = parameter("scan", "entries a range", "100");
pub(super) const SKEW: WorkloadParameter =
    parameter("skew", "exponent of the Zipf distribution by which keys are drawn", "0.99");
pub(super) const ENTRY_NUMBERS: WorkloadParameter =
    parameter("entry", "bytes of key and value: 4+4, 8+4, 8+8 or variable", "4+4");
pub(super) const ENTRY_CSV: WorkloadParameter =
    parameter("entry", "4+4, 8+4 or 8+8 for whole numbers, variable for texts", "8+8");
pub(super) const MIX: WorkloadParameter = parameter(
    "mix",
    "search/insert/delete/update in percent, of --ops operations (100000 if not given), instead \
     of ltu, updates and deletes",
    "",
);
pub(super) const KEY: WorkloadParameter = parameter("key", "the column of the keys", "");
pub(super) const VALUE: WorkloadParameter =
    parameter("value", "the column of the values; numbers of rows if not given", "");
pub(super) const OPERATION: WorkloadParameter = parameter(
    "operation",
    "the column that says put, delete, get or range; puts only if not given",
    "",
);

/// The most of anything that is counted.
pub(super) const MOST: u64 = 1 << 40;

/// The values that were chosen.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) preload: u64,
    pub(super) before: u64,
    pub(super) updates: Option<u64>,
    pub(super) ltu: f64,
    pub(super) deletes: f64,
    pub(super) hits: f64,
    pub(super) ranges: f64,
    pub(super) scan: u32,
    pub(super) skew: f64,
    pub(super) entry: EntryShape,
    /// Search, insert, delete, update.
    pub(super) mix: Option<[f64; 4]>,
    pub(super) key: Option<String>,
    pub(super) value: Option<String>,
    pub(super) operation: Option<String>,
    pub(super) input: Option<std::path::PathBuf>,
}

impl Chosen {
    /// Reads the values of `parameters` from `spec`, defaults for those that it does not name.
    pub(super) fn read(spec: &Spec<'_>, parameters: &[WorkloadParameter]) -> Result<Self> {
        let mut chosen = Chosen::default();
        for parameter in parameters.iter().filter(|parameter| !parameter.default.is_empty()) {
            chosen.set(spec.name, parameter.name, parameter.default)?;
        }
        let names = || parameters.iter().map(|parameter| parameter.name);
        for (name, value) in &spec.parameters {
            if !names().any(|known| known == *name) {
                return Err(Error::Unknown {
                    thing: Thing::Parameter,
                    name: (*name).to_string(),
                    near: near(name, names()),
                    known: names().map(String::from).collect(),
                });
            }
            chosen.set(spec.name, name, value)?;
        }
        chosen.refuse_contradictions(spec)?;
        Ok(chosen)
    }

    fn set(&mut self, owner: &str, name: &str, text: &str) -> Result<()> {
        let read = Read { owner, name, text };
        match name {
            "preload" => self.preload = read.count()?,
            "before" => self.before = read.count()?,
            "updates" => self.updates = Some(read.count()?),
            "ltu" => self.ltu = read.decimal(1e6, "a number from 0 to 1000000")?,
            "deletes" => self.deletes = read.percent()?,
            "hits" => self.hits = read.percent()?,
            "ranges" => self.ranges = read.percent()?,
            "scan" => self.scan = read.scan()?,
            "skew" => self.skew = read.decimal(10.0, "a number from 0 to 10")?,
            "entry" => self.entry = read.entry()?,
            "mix" => self.mix = Some(read.mix()?),
            "key" => self.key = Some(read.column()?),
            "value" => self.value = Some(read.column()?),
            _ => self.operation = Some(read.column()?),
        }
        Ok(())
    }

    fn refuse_contradictions(&self, spec: &Spec<'_>) -> Result<()> {
        const EXCLUDED: [(&str, &[&str]); 2] = [
            ("mix", &["ltu", "updates", "deletes"]),
            ("operation", &["ltu", "updates", "deletes", "hits", "ranges", "mix"]),
        ];
        let given = |name: &str| spec.parameters.iter().any(|(known, _)| *known == name);
        for (first, others) in EXCLUDED {
            if let Some(second) = others.iter().find(|second| given(first) && given(second)) {
                return Err(Error::Exclusive {
                    owner: spec.name.to_string(),
                    first: first.to_string(),
                    second: (*second).to_string(),
                });
            }
        }
        Ok(())
    }
}

impl Default for Chosen {
    fn default() -> Self {
        Chosen {
            preload: 0,
            before: 0,
            updates: None,
            ltu: 0.0,
            deletes: 0.0,
            hits: 100.0,
            ranges: 0.0,
            scan: 1,
            skew: 0.0,
            entry: EntryShape::fixed(4, 4),
            mix: None,
            key: None,
            value: None,
            operation: None,
            input: None,
        }
    }
}

/// A value that is being read, and whose it is.
struct Read<'t> {
    owner: &'t str,
    name: &'t str,
    text: &'t str,
}

impl Read<'_> {
    fn bad(&self, expected: &str) -> Error {
        Error::BadValue {
            owner: self.owner.to_string(),
            name: self.name.to_string(),
            value: self.text.to_string(),
            expected: expected.to_string(),
        }
    }

    fn count(&self) -> Result<u64> {
        parse_count(self.text)
            .filter(|count| *count <= MOST)
            .ok_or_else(|| self.bad("a whole number of at most 1099511627776"))
    }

    fn scan(&self) -> Result<u32> {
        parse_count(self.text)
            .and_then(|count| u32::try_from(count).ok())
            .filter(|count| *count > 0)
            .ok_or_else(|| self.bad("a whole number from 1 to 4294967295"))
    }

    fn decimal(&self, most: f64, expected: &str) -> Result<f64> {
        parse_decimal(self.text).filter(|number| *number <= most).ok_or_else(|| self.bad(expected))
    }

    fn percent(&self) -> Result<f64> {
        self.decimal(100.0, "a percentage from 0 to 100")
    }

    fn entry(&self) -> Result<EntryShape> {
        match self.text {
            "4+4" => Ok(EntryShape::fixed(4, 4)),
            "8+4" => Ok(EntryShape::fixed(8, 4)),
            "8+8" => Ok(EntryShape::fixed(8, 8)),
            "variable" => Ok(EntryShape::VARIABLE),
            _ => Err(self.bad("one of 4+4, 8+4, 8+8, variable")),
        }
    }

    fn mix(&self) -> Result<[f64; 4]> {
        let wrong = || self.bad("search/insert/delete/update in percent, 100 in sum");
        let mut parts = [0.0; 4];
        let mut texts = self.text.split('/');
        for part in &mut parts {
            *part = texts.next().and_then(parse_decimal).ok_or_else(wrong)?;
        }
        let sum: f64 = parts.iter().sum();
        if texts.next().is_some() || (sum - 100.0).abs() > 1e-6 {
            return Err(wrong());
        }
        Ok(parts)
    }

    fn column(&self) -> Result<String> {
        if self.text.is_empty() {
            return Err(self.bad("the name of a column"));
        }
        Ok(self.text.to_string())
    }
}
