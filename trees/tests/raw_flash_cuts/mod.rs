//! Power cuts in all cells of a tree on raw flash.

use contract::torture::{Plan, Stand, Witness, assert_clean, cells_of, torture};

/// Tortures the cells of `tree` on raw flash, of which there are so many, with so many cuts, or as
/// many as the environment says; none may fail. Returns what was seen.
pub(crate) fn survives_on_raw_flash(tree: &str, count: usize, cuts: u64) -> Witness {
    let entry = flashtree_trees::find(tree).unwrap_or_else(|| panic!("there is no {tree}"));
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse().ok());
    let cuts = number("FLASHTREE_CUTS").unwrap_or(cuts / contract::share(4) as u64);
    let seed = number("FLASHTREE_SEED").unwrap_or(1);
    let is_raw_flash = |stand: &Stand| matches!(stand, Stand::Nand { .. });
    let cells = cells_of(entry).into_iter().filter(|cell| is_raw_flash(&cell.stand));
    let cells: Vec<_> = cells.collect();
    assert_eq!(cells.len(), count);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let rows = torture(&Plan { cells, cuts, seed, jobs }, &());
    let mut all = Witness::default();
    rows.iter().for_each(|row| all += row.witness);
    println!("{all}");
    assert_clean(&rows);
    assert!(all.cuts >= cuts, "{all}");
    all
}
