//! Made-up rows for tests.

use std::collections::BTreeMap;

use lab::{
    Clock, Comparison, Durability, Latency, LeftOut, Measured, MemoryLimit, MemoryUse, Plan,
};
use lab::{Row, Verified, Verify};

const TREES: [&str; 10] = [
    "b-plus",
    "b-plus:node=4096,fill=80",
    "la-tree:k=3,fanout=16,buffer=adaptive,pool=0.75,share=fixed,place=log",
    "mu-star",
    "fd-tree:ratio=8,levels=3,head=65536,unit=131072,deamortized=on",
    "lazy-update:policy=cost-based,pool=0.5,pruning=on,super-groups=second",
    "flashdb:mode=self-tuning",
    "bftl",
    "lsm",
    "ipl:log-pages=4",
];

/// A plan that could have given these rows.
pub(crate) fn plan(trees: usize) -> Plan {
    Plan {
        device: "winbond-w25n01gv".to_owned(),
        chip: None,
        overwrite: false,
        workload: "weather:ltu=10".to_owned(),
        trees: TREES.iter().take(trees).map(ToString::to_string).collect(),
        ftl: Some("page-map".to_owned()),
        memory: MemoryLimit::CachesAndBuffers(128 << 10),
        size_bytes: None,
        operations: None,
        seed: 1,
        durability: Durability::None,
        verify: Verify::Full,
        input: None,
        jobs: 1,
    }
}

/// The outcome of `trees` trees, and one that was left out.
pub(crate) fn comparison(trees: usize) -> Comparison {
    let reason = "it stands on raw NAND only; name it to see why".to_owned();
    let left_out = vec![LeftOut { tree: "list".to_owned(), reason }];
    Comparison { measured: measured(trees), refused: 0, left_out, remarks: Vec::new() }
}

/// The rows of `trees` trees, at most ten.
pub(crate) fn measured(trees: usize) -> Vec<Measured> {
    TREES.iter().take(trees).enumerate().map(|(place, tree)| one(place, tree)).collect()
}

fn one(place: usize, tree: &str) -> Measured {
    let size = 900.0 / (1.0 + place as f64);
    let by_cause = [
        ("lookup", 0.12),
        ("update", 0.38),
        ("flush", 0.27),
        ("merge", if place.is_multiple_of(2) { 0.0 } else { 0.11 }),
        ("reclamation", 0.23),
    ];
    let by_cause: BTreeMap<_, _> =
        by_cause.iter().map(|(cause, part)| ((*cause).to_owned(), part * size)).collect();
    let erases_by_block: Vec<u32> =
        (0..1024_u32).map(|block| wear(block, place as u32 + 1)).collect();
    let total: u64 = erases_by_block.iter().map(|erases| u64::from(*erases)).sum();
    let device_us_per_op: f64 = by_cause.values().sum();
    let row = Row {
        tree: tree.to_owned(),
        device: "winbond-w25n01gv".to_owned(),
        ftl: Some("page-map".to_owned()),
        workload: "weather:ltu=10".to_owned(),
        seed: 1,
        memory_bytes: 128 << 10,
        memory_total_bytes: None,
        durability: "none".to_owned(),
        operations: 232_167,
        device_us_per_op,
        energy_uj_per_op: Some(size / 30.0),
        settle_us: 18_250.0,
        page_reads: (size * 450.0) as u64,
        page_programs: (size * 260.0) as u64,
        block_erases: Some(total),
        bytes_read: (size * 450.0) as u64 * 2048,
        bytes_programmed: (size * 260.0) as u64 * 2048,
        write_amplification: Some(size / 3.0),
        flash_bytes_programmed: None,
        flash_write_amplification: None,
        system_bytes_read: None,
        system_bytes_written: None,
        live_pages: 1_893,
        height: 3,
        memory: MemoryUse { cache: 118_784, buffers: 8_192, tables: 512, ftl: Some(262_144) },
        peak_memory_bytes: 130_560,
        erases_most: erases_by_block.iter().max().map(|most| u64::from(*most)),
        erases_mean: Some(total as f64 / 1024.0),
        wall_seconds: 1.83,
        wall_us_per_op: 7.9,
        by_cause,
        latency_us: Latency {
            p50: 61.2,
            p99: size * 4.0,
            p99_9: size * 9.0,
            p99_99: None,
            max: size * 90.0,
        },
        verified: Verified::Full,
        error: None,
    };
    let course = |part: u32| size * (0.6 + 0.4 * (f64::from(part) / 100.0).sqrt() + noise(part));
    let course_us_per_op = (0..100).map(course).collect();
    Measured { row, clock: Clock::Model, erases_by_block, course_us_per_op }
}

/// A wavy pattern with some noise, and blocks that were never erased.
fn wear(block: u32, size: u32) -> u32 {
    let wave = ((f64::from(block) / 90.0).sin() + 1.2) * 9.0 / f64::from(size);
    if block > 1000 { 0 } else { wave as u32 + block.wrapping_mul(2_654_435_761) % 5 }
}

fn noise(part: u32) -> f64 {
    f64::from(part.wrapping_mul(2_654_435_761) >> 16) / 65_536.0 * 0.12
}
