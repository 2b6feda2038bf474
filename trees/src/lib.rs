//! Ordered indexes for flash: one folder a tree.
//!
//! [`TREES`] lists them. Each is made by its [`TreeDescriptor`](index::TreeDescriptor) on a
//! [`device::Medium`], and from then on is an [`Index`](index::Index).
//!
//! Invariant: no tree knows of another.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod b_plus;
mod bftl;
mod btree;
#[cfg(test)]
mod example;
mod fd_tree;
mod flashdb;
mod flat_tree;
mod ipl;
pub mod la_tree;
mod lazy_update;
mod levels;
mod list;
mod lsm;
pub mod mu;
mod path_copying;
mod registry;
mod sector_lists;

pub use registry::{TREES, find};
