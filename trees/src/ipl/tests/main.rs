//! What in-page logging promises beside what every tree does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../../tests/full_chips/mod.rs"]
mod full_chips;

mod on_full_chips;
mod single_operations;
