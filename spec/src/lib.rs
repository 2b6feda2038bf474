//! What users write: specs such as `la-tree:k=3,pool=0.5`, numbers, and names that were meant.

#![forbid(unsafe_code)]

mod near;
mod spec;

pub use near::{did_you_mean, near, suggestion};
pub use spec::{Spec, SpecError, parse_count, parse_decimal, shown, split_list};
