//! The report: one self-contained HTML page with plots.
//!
//! Invariant: the page refers to nothing outside itself, and all text from outside is escaped.

mod bars;
mod course;
mod heat;
mod page;
#[cfg(test)]
pub(crate) mod samples;
mod svg;
mod theme;

use std::io;

pub(crate) use page::page;

use crate::output::Written;

/// What `--report` writes: a [`page`].
pub(crate) const WRITTEN: Written = Written {
    option: "--report",
    is_in: |head| {
        let title = b"<title>flashtree: ";
        head.starts_with(b"<!DOCTYPE html>") && head.windows(title.len()).any(|part| part == title)
    },
};

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A plot.
    #[error(transparent)]
    Plot(#[from] plotters::drawing::DrawingAreaErrorKind<io::Error>),
    /// The page around the plots.
    #[error(transparent)]
    Page(#[from] askama::Error),
}

type Result<T> = std::result::Result<T, Error>;
