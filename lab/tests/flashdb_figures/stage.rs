//! An index on a device of table 1, and what its operations cost.

use device::{Access, Cost, DiskCosts, Linear, Medium, Sectors};
use index::parameters::Settings;
use index::{EntryShape, Index, MediumShape, Options, Update};
use sim::SimulatedDisk;
use trees::find;

const SECTOR_BYTES: u32 = 512;

/// Bytes of the partition: more than anything here fills.
const PARTITION: u64 = 32 << 20;

/// A device, by the paper's name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    pub(crate) paper: &'static str,
    pub(crate) costs: DiskCosts,
}

/// The four of the paper. A chip is a disk that writes out of place at once, as logical storage on
/// a partition does that never gets full: its pages' costs are the disk's.
pub(crate) fn devices() -> [Device; 4] {
    let chip = |name| {
        let chip = chips::find(name).unwrap().nand(&chips::Overrides::default()).unwrap();
        let page = |cost: &Cost| {
            let charge = cost.charge(SECTOR_BYTES.into(), 1);
            let each = |per_page| Linear { per_page, ..Linear::fixed(0) };
            fixed(Cost { time: each(charge.time_ns), energy: Some(each(charge.energy_pj)) })
        };
        DiskCosts { read: page(&chip.costs.read), write: page(&chip.costs.program) }
    };
    let card = |name| {
        let disk = chips::find(name).unwrap().disk(&chips::Overrides::default()).unwrap();
        let chips::DiskTiming::Costs(costs) = disk.timing else { panic!("{name} is a drive") };
        // Random and sequential writes of one price: the paper has one for a page.
        DiskCosts { read: fixed(costs.read.random), write: fixed(costs.write.random) }
    };
    [
        ("FLASHCHIP", chip("samsung-k9k1g08r0b")),
        ("CAPSULE", chip("capsule")),
        ("CF", card("sandisk-cf-512")),
        ("SD", card("kingston-minisd-512")),
    ]
    .map(|(paper, costs)| Device { paper, costs })
}

const fn fixed(cost: Cost) -> Access {
    Access { random: cost, sequential: cost }
}

impl Device {
    /// One that costs a microjoule to read and so many to write, and as many microseconds.
    pub(crate) fn of_ratio(ratio: f64) -> Self {
        let cost = |factor: f64| {
            let time = Linear::fixed((factor * 1e3) as u64);
            fixed(Cost { time, energy: Some(Linear::fixed((factor * 1e6) as u64)) })
        };
        let costs = DiskCosts { read: cost(1.0), write: cost(ratio) };
        Device { paper: "a device of this ratio", costs }
    }
}

impl Device {
    /// Millijoules to read and to write so many pages at once.
    pub(crate) fn mj(&self, pages: u64) -> [f64; 2] {
        let of = |cost: &Cost| cost.charge(pages * u64::from(SECTOR_BYTES), pages).energy_pj;
        [&self.costs.read.random, &self.costs.write.random].map(|cost| of(cost) as f64 / 1e9)
    }
}

/// What was done and what it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) reads: f64,
    pub(crate) writes: f64,
    /// In millijoules.
    pub(crate) energy: f64,
    /// In seconds.
    pub(crate) time: f64,
    /// The heights of the tree at all puts, added up.
    pub(crate) levels: f64,
    pub(crate) nodes: u64,
    pub(crate) in_disk_mode: u64,
    /// Of the table, and of its counters.
    pub(crate) table_bytes: u64,
    pub(crate) counter_bytes: u64,
}

impl std::ops::Sub for Spent {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Spent {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            energy: self.energy - before.energy,
            time: self.time - before.time,
            ..self
        }
    }
}

impl std::fmt::Display for Spent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Spent { reads, writes, energy, time, nodes, in_disk_mode, .. } = self;
        write!(
            formatter,
            "{reads} reads, {writes} writes, {energy:.1} mJ, {time:.2} s, {in_disk_mode} of \
             {nodes} nodes in disk mode"
        )
    }
}

/// An index in one of the three forms.
pub(crate) struct Stage {
    pub(crate) index: Box<dyn Index>,
    levels: u64,
}

/// The forms, by the words of the parameter `mode`.
pub(crate) const MODES: [(&str, &str); 3] =
    [("Disk", "disk"), ("Log", "log"), ("ST", "self-tuning")];

impl Stage {
    /// An empty index with the least memory: its cache holds what an update changes at once.
    pub(crate) fn new(device: &Device, given: &[(&str, &str)]) -> Self {
        let sectors = PARTITION / u64::from(SECTOR_BYTES);
        let geometry = device::SectorGeometry::new(SECTOR_BYTES, sectors).unwrap();
        let disk = SimulatedDisk::new(geometry, device.costs);
        let entry = find("flashdb").unwrap();
        let given = given.iter().copied();
        let settings = Settings::parse(entry.name, entry.parameters, given).unwrap();
        let mut options = Options::new(EntryShape::fixed(8, 8), 0, settings);
        let shape = MediumShape::Sectors(disk.geometry());
        options.memory_bytes = entry.least_memory(&options, shape).unwrap();
        let index = (entry.create)(Medium::Sectors(Box::new(disk)), &options).unwrap();
        Stage { index, levels: 0 }
    }

    fn put(&mut self, number: usize, key: u64) {
        let (key, value) = (key.to_be_bytes(), (number as u64).to_le_bytes());
        self.index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
        self.levels += u64::from(self.index.statistics().height);
    }

    fn get(&mut self, key: u64) {
        let found = self.index.get(&key.to_be_bytes(), 0, &mut [0; 8]).unwrap();
        assert_eq!(found, Some(8));
    }

    pub(crate) fn put_all(&mut self, keys: &[u64]) {
        keys.iter().enumerate().for_each(|(number, key)| self.put(number, *key));
    }

    /// Gets each key, and puts one anew after so many, if that is wanted.
    pub(crate) fn get_all(&mut self, keys: &[u64], put_after: Option<usize>) {
        for (number, key) in keys.iter().enumerate() {
            self.get(*key);
            if put_after.is_some_and(|after| number % after == 0) {
                self.put(number, *key);
            }
        }
    }

    /// Puts each key, and gets so many of those that are there.
    pub(crate) fn put_and_get(&mut self, keys: &[u64], gets: usize) {
        for (number, key) in keys.iter().enumerate() {
            self.put(number, *key);
            for get in 0..gets {
                self.get(keys[(number * 7919 + get * 104_729) % (number + 1)]);
            }
        }
    }

    pub(crate) fn metric(&self, name: &str) -> u64 {
        let mut found = 0;
        self.index.metrics(&mut |metric, figure| {
            if metric == name {
                found = figure;
            }
        });
        found
    }

    pub(crate) fn spent(&self) -> Spent {
        let total = self.index.meter().unwrap().total();
        Spent {
            reads: total.page_reads as f64,
            writes: total.page_programs as f64,
            energy: total.energy_pj as f64 / 1e9,
            time: total.time_ns as f64 / 1e9,
            levels: self.levels as f64,
            nodes: self.metric(index::LEAVES) + self.metric(index::INNER_NODES),
            in_disk_mode: self.metric("nodes in disk mode"),
            table_bytes: self.metric("bytes of the table"),
            counter_bytes: self.metric("bytes of counters"),
        }
    }
}
