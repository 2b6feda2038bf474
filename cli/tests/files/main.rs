//! The file commands from outside, each in a process of its own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod advice;
mod bench;
mod damage;
mod ending;
mod entries;
mod export;
mod import;
mod inputs;
mod keeping;
mod refusals;
mod resuming;
mod stopped;
