//! The figures that an entry may hold: one line each, in the order in which they are printed.

use crate::Kind;

/// What a figure measures, and in which units it may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// A number without a unit.
    Count,
    /// A number with a fraction, without a unit.
    Ratio,
    /// Bytes.
    Bytes,
    /// Time; kept in nanoseconds.
    Time,
    /// Time for each byte; kept in picoseconds, that is in thousandths of a nanosecond.
    TimePerByte,
    /// Energy; kept in picojoules.
    Energy,
    /// Energy for each byte; kept in femtojoules, that is in thousandths of a picojoule.
    EnergyPerByte,
    /// One of some words.
    Word(&'static [&'static str]),
}

/// A unit's name and how many of the dimension's base units it is.
pub(crate) type Unit = (&'static str, f64);

impl Dimension {
    /// The units in which a figure of this dimension may be written; none if it has no unit.
    pub(crate) const fn units(self) -> &'static [Unit] {
        match self {
            Dimension::Count | Dimension::Ratio | Dimension::Word(_) => &[],
            Dimension::Bytes => &[
                ("B", 1.0),
                ("kB", 1e3),
                ("MB", 1e6),
                ("GB", 1e9),
                ("KiB", 1024.0),
                ("MiB", 1_048_576.0),
                ("GiB", 1_073_741_824.0),
            ],
            Dimension::Time => &[("ns", 1.0), ("us", 1e3), ("ms", 1e6)],
            Dimension::TimePerByte => &[("ns/B", 1e3), ("us/B", 1e6)],
            Dimension::Energy => &[("pJ", 1.0), ("nJ", 1e3), ("uJ", 1e6), ("mJ", 1e9)],
            Dimension::EnergyPerByte => &[("pJ/B", 1e3), ("nJ/B", 1e6), ("uJ/B", 1e9)],
        }
    }

    /// The name of the base unit that amounts of this dimension are kept in.
    pub(crate) const fn base(self) -> &'static str {
        match self {
            Dimension::Count | Dimension::Ratio | Dimension::Word(_) => "",
            Dimension::Bytes => "B",
            Dimension::Time => "ns",
            Dimension::TimePerByte => "ps/B",
            Dimension::Energy => "pJ",
            Dimension::EnergyPerByte => "fJ/B",
        }
    }
}

/// For which kinds of device a figure means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    Chips,
    Disks,
    All,
}

impl For {
    pub(crate) const fn allows(self, kind: Kind) -> bool {
        match self {
            For::All => true,
            For::Chips => kind.is_chip(),
            For::Disks => !kind.is_chip(),
        }
    }
}

/// A figure that an entry may hold.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) dimension: Dimension,
    pub(crate) kinds: For,
    /// The least amount that makes sense, in base units.
    pub(crate) least: u64,
    /// The most, in base units: no sum of costs may run over in a run of any length.
    pub(crate) most: u64,
}

const fn known(name: &'static str, dimension: Dimension, kinds: For) -> Known {
    let (least, most) = match dimension {
        Dimension::Bytes => (0, 1 << 50),
        // Ten seconds; a millisecond a byte; a joule; 100 microjoules a byte.
        Dimension::Time => (0, 10_000_000_000),
        Dimension::TimePerByte => (0, 1_000_000_000),
        Dimension::Energy => (0, 1_000_000_000_000),
        Dimension::EnergyPerByte => (0, 100_000_000_000),
        Dimension::Count | Dimension::Ratio | Dimension::Word(_) => (0, u32::MAX as u64),
    };
    Known { name, dimension, kinds, least, most }
}

impl Known {
    const fn within(mut self, least: u64, most: u64) -> Known {
        self.least = least;
        self.most = most;
        self
    }
}

const ORDERS: &[&str] = &["any", "ascending"];
const CELLS: &[&str] = &["slc", "mlc", "tlc", "qlc"];
const MAPPINGS: &[&str] = &["page", "block"];

/// Every figure there is.
pub(crate) const KNOWN: &[Known] = &[
    known("cell", Dimension::Word(CELLS), For::All),
    known("capacity", Dimension::Bytes, For::All).within(512, 1 << 50),
    known("page_bytes", Dimension::Bytes, For::Chips).within(64, 65_536),
    known("spare_bytes", Dimension::Bytes, For::Chips).within(0, 65_536),
    known("spare_free_bytes", Dimension::Bytes, For::Chips).within(0, 65_536),
    known("pages_per_block", Dimension::Count, For::Chips).within(1, 65_535),
    known("blocks", Dimension::Count, For::Chips).within(1, u32::MAX as u64),
    known("dies", Dimension::Count, For::Chips).within(1, 65_535),
    known("programs_per_page", Dimension::Count, For::Chips).within(1, 65_535),
    known("program_order", Dimension::Word(ORDERS), For::Chips),
    known("good_blocks_guaranteed", Dimension::Count, For::Chips),
    known("bad_blocks_most", Dimension::Count, For::Chips),
    known("endurance_cycles", Dimension::Count, For::Chips).within(1, u32::MAX as u64),
    known("ecc_bits", Dimension::Count, For::Chips).within(0, 65_535),
    known("bus", Dimension::TimePerByte, For::Chips),
    known("read_least", Dimension::Time, For::Chips),
    known("read_typical", Dimension::Time, For::Chips),
    known("read_most", Dimension::Time, For::Chips),
    known("read_most_ecc_off", Dimension::Time, For::Chips),
    known("program_least", Dimension::Time, For::Chips),
    known("program_typical", Dimension::Time, For::Chips),
    known("program_most", Dimension::Time, For::Chips),
    known("program_per_byte", Dimension::TimePerByte, For::Chips),
    known("erase_typical", Dimension::Time, For::Chips),
    known("erase_most", Dimension::Time, For::Chips),
    known("sector_bytes", Dimension::Bytes, For::Disks).within(64, 1 << 20),
    known("mapping", Dimension::Word(MAPPINGS), For::Disks),
    known("random_read", Dimension::Time, For::Disks),
    known("sequential_read", Dimension::Time, For::Disks),
    known("read_next_page", Dimension::Time, For::Disks),
    known("random_write", Dimension::Time, For::Disks),
    known("sequential_write", Dimension::Time, For::Disks),
    known("write_next_page", Dimension::Time, For::Disks),
    known("write_per_byte", Dimension::TimePerByte, For::Disks),
    known("flash_capacity", Dimension::Bytes, For::Disks).within(512, 1 << 50),
    known("channels", Dimension::Count, For::Disks).within(1, 1024),
    known("chips_per_channel", Dimension::Count, For::Disks).within(1, 1024),
    known("flash_page_bytes", Dimension::Bytes, For::Disks).within(64, 65_536),
    known("flash_spare_bytes", Dimension::Bytes, For::Disks).within(0, 65_536),
    known("flash_pages_per_block", Dimension::Count, For::Disks).within(1, 65_535),
    known("flash_read", Dimension::Time, For::Disks),
    known("flash_program", Dimension::Time, For::Disks),
    known("flash_erase", Dimension::Time, For::Disks),
    known("flash_bus", Dimension::TimePerByte, For::Disks),
    known("mapping_unit", Dimension::Bytes, For::Disks).within(64, 1 << 30),
    known("write_cache", Dimension::Bytes, For::Disks).within(64, 1 << 40),
    known("command", Dimension::Time, For::Disks),
    known("link", Dimension::TimePerByte, For::Disks),
    known("queue_depth", Dimension::Count, For::Disks).within(1, 65_535),
    known("read_per_byte", Dimension::TimePerByte, For::All),
    known("read_energy", Dimension::Energy, For::All),
    known("read_energy_per_byte", Dimension::EnergyPerByte, For::All),
    known("read_energy_per_page", Dimension::Energy, For::Disks),
    known("program_energy", Dimension::Energy, For::Chips),
    known("program_energy_per_byte", Dimension::EnergyPerByte, For::Chips),
    known("erase_energy", Dimension::Energy, For::Chips),
    known("write_energy", Dimension::Energy, For::Disks),
    known("write_energy_per_byte", Dimension::EnergyPerByte, For::Disks),
    known("write_energy_per_page", Dimension::Energy, For::Disks),
];

/// Pairs of which the first may not be more than the second.
pub(crate) const ORDERED: &[(&str, &str)] = &[
    ("spare_free_bytes", "spare_bytes"),
    ("spare_bytes", "page_bytes"),
    ("flash_spare_bytes", "flash_page_bytes"),
    ("bad_blocks_most", "blocks"),
    ("good_blocks_guaranteed", "blocks"),
    ("read_least", "read_typical"),
    ("read_typical", "read_most"),
    ("read_least", "read_most"),
    ("program_least", "program_typical"),
    ("program_typical", "program_most"),
    ("program_least", "program_most"),
    ("erase_typical", "erase_most"),
];
