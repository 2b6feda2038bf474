//! How much of a suite is played: a sample of its cases, or with `FLASHTREE_WHOLE` all of them.
//!
//! Suites are products of trees, shapes, durabilities and chips, and take half an hour together.
//! A sample takes every `step`th case, so with a step that divides none of the factors each value
//! of each factor is in it, and it is always the same one. The promise `suites-whole` plays all.

use std::env::var_os;

/// What suites are made whole by.
const WHOLE: &str = "FLASHTREE_WHOLE";

/// One in so many cases is played, where a sample takes every `step`th.
#[must_use]
pub fn share(step: usize) -> usize {
    if var_os(WHOLE).is_some_and(|value| !value.is_empty()) { 1 } else { step }
}

/// Every `step`th of `cases`, or all of them where suites are whole.
pub fn sample<I>(step: usize, cases: impl IntoIterator<Item = I>) -> impl Iterator<Item = I> {
    cases.into_iter().step_by(share(step))
}
