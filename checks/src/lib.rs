//! The project's checks of itself.
//!
//! [`house`] reads the whole project once and runs four checkers over it: layers, house numbers,
//! links and words. [`suites`] runs the tests. [`promises`] runs the commands in `checks/promises`
//! and compares a figure of each with its bound; [`claims`] runs those in `checks/claims`, each of
//! which measures what a paper says. Every checker works on a [`Project`](project::Project) in
//! memory, so that the tests can hand it a bad one and see it fail.

#![forbid(unsafe_code)]

pub mod claims;
pub mod error;
pub mod functions;
pub mod house;
pub mod layers;
pub mod links;
pub mod numbers;
pub mod project;
pub mod promises;
pub mod report;
pub mod rules;
pub mod sources;
pub mod suites;
pub mod words;

pub use error::{Error, Result};
