//! Golden rows: what each tree costs on small runs, to the last byte.
//!
//! A change that is to leave figures alone leaves `golden.jsonl` alone; one that moves them writes
//! it anew, and its commit says why. To write it:
//!
//! ```text
//! GOLDEN=write cargo test -p flashtree-lab --test golden
//! ```

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use flashtree_lab::{Durability, MemoryLimit, Plan, Row, Unwatched, Verify, compare};
use trees::TREES;

const CHIP: &str = "winbond-w25n01gv:blocks=64";
const MEMORIES: [u64; 2] = [96 << 10, 512 << 10];
const WORKLOADS: [&str; 3] = [
    "uniform:preload=3000,updates=6000,ltu=100,deletes=30,hits=70,ranges=2,scan=20",
    "weather:updates=6000",
    "flights:updates=3000",
];

/// Each tree on raw flash where it can stand there, and over a translation layer where it can.
fn specs() -> Vec<String> {
    let over = TREES.iter().filter(|entry| entry.has_choice());
    let over = over.map(|entry| format!("{}:over=ftl", entry.name));
    TREES.iter().map(|entry| entry.name.to_string()).chain(over).collect()
}

fn plan(workload: &str, memory: u64) -> Plan {
    Plan {
        device: CHIP.to_string(),
        chip: None,
        overwrite: false,
        workload: workload.to_string(),
        trees: specs(),
        ftl: None,
        memory: MemoryLimit::CachesAndBuffers(memory),
        size_bytes: None,
        operations: None,
        seed: 1,
        durability: Durability::Batch,
        verify: Verify::Full,
        input: None,
        jobs: 2,
    }
}

/// What no chip has.
const NEVER_ON_A_CHIP: [&str; 5] = [
    "flash_bytes_programmed",
    "flash_write_amplification",
    "system_bytes_read",
    "system_bytes_written",
    "p99_99",
];

/// A row without its wall times, and without what no chip has.
fn line(mut row: Row) -> String {
    assert_eq!(row.error, None, "{} on {}", row.tree, row.workload);
    (row.wall_seconds, row.wall_us_per_op) = (0.0, 0.0);
    let mut line = serde_json::to_string(&row).unwrap();
    for name in NEVER_ON_A_CHIP {
        let nothing = format!(",\"{name}\":null");
        assert!(line.contains(&nothing), "{name} in {line}");
        line = line.replace(&nothing, "");
    }
    line
}

fn rows() -> String {
    let mut lines = String::new();
    for workload in WORKLOADS {
        for memory in MEMORIES {
            let comparison = compare(&plan(workload, memory), &Unwatched).unwrap();
            for measured in comparison.measured {
                writeln!(lines, "{}", line(measured.row)).unwrap();
            }
        }
    }
    lines
}

#[test]
fn every_tree_costs_what_it_cost_before() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden.jsonl");
    let rows = rows();
    if std::env::var_os("GOLDEN").is_some_and(|wish| wish == "write") {
        std::fs::write(path, &rows).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(path).unwrap();
    for (number, (row, golden)) in rows.lines().zip(golden.lines()).enumerate() {
        assert_eq!(row, golden, "line {}", number + 1);
    }
    assert_eq!(rows.lines().count(), golden.lines().count());
}
