//! The figures 8, 9, 10 and 12 of the FD-tree paper (Li, He, Yang, Luo, Yi, VLDB 2010) on models of
//! its drives: what an operation of each tree costs, as far as the registry has the tree.
//!
//! Where this differs from the paper: the pool is not warmed up before measuring, and a B+-tree is
//! measured as it was loaded, 70 % full, without the inserts that split a fifth of its leaves.
//!
//! ```text
//! cargo test --release -p flashtree-lab --test fd_tree_figures -- --ignored --nocapture
//! ```

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that reports")]

#[path = "fd_tree_figures/stage.rs"]
mod stage;

use stage::{DRIVES, Stage, trees_here};

/// A figure or a part of it: its name, searches, inserts, deletes and updates in percent, and what
/// is published of it at 8 GB on the Mtron and on the Intel drive.
type Figure = (&'static str, &'static str, [&'static str; 2]);

const FIGURES: [Figure; 9] = [
    ("fd-8", "100/0/0/0", ["FD about as B+", "FD about as B+"]),
    ("fd-9", "0/100/0/0", ["FD 280x B+, 35x BFTL", "-"]),
    ("fd-10", "50/50/0/0", ["FD 24.2x B+, 1.8x LSM", "FD 3.3x B+, 1.6x LSM"]),
    ("W-Search", "80/10/5/5", ["FD 5.7x B+, 1.6x LSM", "FD 1.7 to 3.6x B+"]),
    ("W-Insert", "20/50/20/10", ["FD 20.5 to 27.9x B+", "FD 1.7 to 3.6x B+"]),
    ("W-Delete", "20/20/50/10", ["FD 20.5 to 27.9x B+", "FD 1.7 to 3.6x B+"]),
    ("O-Insert", "0/100/0/0", ["-", "-"]),
    ("O-Delete", "0/0/100/0", ["FD 20.6 to 22.9x B+", "-"]),
    ("O-Update", "0/0/0/100", ["FD 20.6 to 22.9x B+", "-"]),
];

/// Prints what an operation of each tree costs, and what is published.
fn report(index_bytes: u64, operations: u64) {
    println!("us an operation; write amplification of the host and of the flash");
    for (place, device) in DRIVES.into_iter().enumerate() {
        println!("{device}, {} MB, pool 16 MB", index_bytes / 1_000_000);
        for (figure, mix, published) in FIGURES {
            print!("  {figure:9} {mix:12}");
            for tree in trees_here() {
                let memory_bytes = 16_000_000;
                let stage = Stage { device, index_bytes, memory_bytes, operations };
                let row = stage.row(tree, mix);
                let times = |figure: Option<f64>| figure.unwrap_or(0.0);
                let host = times(row.write_amplification);
                let flash = times(row.flash_write_amplification);
                print!("  {tree} {:.0} us, {host:.0} and {flash:.0}", row.device_us_per_op);
            }
            println!("  (published at 8 GB: {})", published[place]);
        }
    }
}

#[test]
fn random_inserts_into_a_tree_in_place_cost_many_lookups_on_a_block_mapped_drive_only() {
    let cost = |device, mix| {
        let (index_bytes, memory_bytes, operations) = (16 << 20, 512 << 10, 1500);
        Stage { device, index_bytes, memory_bytes, operations }.row("b-plus", mix)
    };
    for (device, least, most) in [(DRIVES[0], 20.0, 80.0), (DRIVES[1], 1.5, 10.0)] {
        let (search, insert) = (cost(device, "100/0/0/0"), cost(device, "0/100/0/0"));
        let times = insert.device_us_per_op / search.device_us_per_op;
        assert!((least..most).contains(&times), "{device}: {times}");
        let (host, flash) = (insert.write_amplification, insert.flash_write_amplification);
        assert!(flash > host.map(|host| 10.0 * host), "{device}: {host:?}, {flash:?}");
        assert_eq!(search.flash_write_amplification, None);
    }
}

#[test]
#[ignore = "takes some minutes"]
fn what_operations_cost_on_128_mb() {
    report(128_000_000, 200_000);
}
