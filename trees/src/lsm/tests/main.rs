//! What lsm does by itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use contract::on_all_cores;
use contract::tree::{cases, run};
use flashtree_trees::find;

#[test]
fn it_agrees_with_an_ordered_map_in_every_case() {
    let cases: Vec<_> = cases(find("lsm").unwrap()).into_iter().collect();
    on_all_cores(&cases, run);
}
