//! Why an entry or a device can't be used: facts, with the line where there is one.

use crate::Kind;

/// What is wrong with an entry, or with what was asked of a device.
///
/// Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// The text is longer than any entry.
    #[error("{bytes} bytes are too long for a device: at most {most}")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// The most that is read.
        most: usize,
    },
    /// The text is not TOML.
    #[error("line {line}: {message}")]
    Syntax {
        /// Where.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A key that every entry, or every figure, needs is not there.
    #[error("line {line}: `{key}` is missing")]
    MissingKey {
        /// Where the table begins that lacks it.
        line: usize,
        /// The key.
        key: &'static str,
    },
    /// A key or a figure that no device has.
    #[error("line {line}: `{key}` is unknown{}", did_you_mean(near))]
    UnknownKey {
        /// Where.
        line: usize,
        /// The key.
        key: String,
        /// Known ones with a similar name, the nearest first.
        near: Vec<String>,
    },
    /// A value of another type than it must have.
    #[error("line {line}: `{key}` must be {wanted}, not {found}")]
    WrongType {
        /// Where.
        line: usize,
        /// The key.
        key: String,
        /// The type it must have.
        wanted: &'static str,
        /// The type it has.
        found: &'static str,
    },
    /// A text that is empty, too long, or has characters that its key does not allow.
    #[error("line {line}: `{key}` must be {wanted}")]
    BadText {
        /// Where.
        line: usize,
        /// The key.
        key: &'static str,
        /// What it must be.
        wanted: &'static str,
    },
    /// A word that is not one of those allowed.
    #[error("line {line}: `{key}` is \"{word}\", but must be one of: {}", allowed.join(", "))]
    UnknownWord {
        /// Where.
        line: usize,
        /// The key.
        key: String,
        /// The word.
        word: String,
        /// The words allowed.
        allowed: Vec<&'static str>,
    },
    /// A figure with a unit that it can't have, or without one that it needs.
    #[error("line {line}: {figure} has {}, but needs {}", unit_words(unit), allowed_units(allowed))]
    WrongUnit {
        /// Where.
        line: usize,
        /// The figure.
        figure: &'static str,
        /// Its unit, if it has one.
        unit: Option<String>,
        /// The units it may have; empty if it has none.
        allowed: Vec<&'static str>,
    },
    /// A number out of the bounds that make sense.
    #[error("line {line}: {figure} is {value}, but must be from {least} to {most} {unit}")]
    OutOfRange {
        /// Where.
        line: usize,
        /// The figure.
        figure: &'static str,
        /// The number, as it is written.
        value: String,
        /// The least, in `unit`.
        least: u64,
        /// The most, in `unit`.
        most: u64,
        /// The unit of both; empty for a count.
        unit: &'static str,
    },
    /// A figure that this kind of device does not have.
    #[error("line {line}: {figure} means nothing for a {kind} device")]
    NotForKind {
        /// Where.
        line: usize,
        /// The figure.
        figure: &'static str,
        /// The kind of the device.
        kind: Kind,
    },
    /// Two figures that can't both be right.
    #[error("{device}: {smaller} is more than {larger}")]
    Contradiction {
        /// The device.
        device: String,
        /// The figure that should be the smaller one.
        smaller: &'static str,
        /// The figure that should be the larger one.
        larger: &'static str,
    },
    /// The numbers do not make a device.
    #[error("{device}: {fault}")]
    Geometry {
        /// The device.
        device: String,
        /// What the geometry says.
        #[source]
        fault: device::Error,
    },
    /// Figures are needed that are not known.
    #[error(
        "{device} can't be simulated: not known is {}; copy its entry to a .toml file and add it",
        figures.join(", ")
    )]
    Lacks {
        /// The device.
        device: String,
        /// The figures.
        figures: Vec<&'static str>,
    },
    /// A disk was wanted where the device is a chip, or the other way round.
    #[error("{device} is a {kind} device, not {wanted}")]
    WrongKind {
        /// The device.
        device: String,
        /// Its kind.
        kind: Kind,
        /// What was wanted.
        wanted: &'static str,
    },
    /// An override out of its bounds.
    #[error("{device}: {name}={value} must be from {least} to {most}")]
    Override {
        /// The device.
        device: String,
        /// The override.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The least that is allowed.
        least: u64,
        /// The most that is allowed.
        most: u64,
    },
    /// An override that means nothing for a disk.
    #[error("{device}: {name}= means nothing for a disk")]
    OverrideNotForDisk {
        /// The device.
        device: String,
        /// The override.
        name: &'static str,
    },
    /// `spare=on` for a chip that has no spare area, or none that is known.
    #[error("{device}: spare=on, but it has no spare area that is known")]
    NoSpare {
        /// The device.
        device: String,
    },
    /// The size is more than the device has.
    #[error("{device}: a size of {size_bytes} bytes is too large: it has {most_bytes}")]
    SizeTooLarge {
        /// The device.
        device: String,
        /// The size that was asked for.
        size_bytes: u64,
        /// All of it.
        most_bytes: u64,
    },
    /// The size leaves no whole block or sector.
    #[error("{device}: a size of {size_bytes} bytes is too small: the least is {least_bytes}")]
    SizeTooSmall {
        /// The device.
        device: String,
        /// The size that was asked for.
        size_bytes: u64,
        /// A block or a sector.
        least_bytes: u64,
    },
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; {}", spec::did_you_mean(near)) }
}

fn unit_words(unit: &Option<String>) -> String {
    unit.as_ref().map_or_else(|| String::from("no unit"), |unit| format!("the unit \"{unit}\""))
}

fn allowed_units(allowed: &[&str]) -> String {
    if allowed.is_empty() { String::from("none") } else { allowed.join(" or ") }
}
