//! One entry of the catalogue.

use std::fmt;

use serde::Serialize;

use crate::CatalogueError;
use crate::figures::{Dimension, KNOWN};

/// A flash device: what is known of it, each figure with its source.
///
/// Invariant: only [`Device::from_toml`] makes one, so every figure is known by name, in its
/// bounds, and has a source and a kind; and no two figures contradict each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Device {
    pub(crate) name: String,
    pub(crate) maker: String,
    pub(crate) model: String,
    pub(crate) kind: Kind,
    pub(crate) about: String,
    pub(crate) figures: Vec<Figure>,
    pub(crate) missing: Vec<&'static str>,
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A NAND chip.
    Nand,
    /// A NOR chip; its page is what one command programs, its block what one command erases.
    Nor,
    /// A disk: a card or an SSD with its own translation layer.
    Disk,
}

/// One figure of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is.
    pub name: &'static str,
    /// The value, as its source has it.
    pub value: Value,
    /// The unit of the value; none for counts, ratios and words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'static str>,
    /// Where it was read, or why it was assumed.
    pub source: String,
    /// What stands behind it.
    pub kind: FigureKind,
    /// The value in the base unit of its dimension; 0 for ratios and words.
    #[serde(skip)]
    pub(crate) amount: u64,
}

/// The value of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Integer(u64),
    /// A number with a fraction.
    Decimal(f64),
    /// A word.
    Word(String),
}

/// What stands behind a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// The data sheet gives it as typical, or gives just one value, as for the bytes of a page.
    DatasheetTypical,
    /// The data sheet gives it as a limit.
    DatasheetMax,
    /// A driver or the code of another simulator has it.
    Driver,
    /// A paper gives it, or it follows from what a paper gives.
    Paper,
    /// Nobody gives it; the source says why it was assumed.
    Assumed,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 3] = [Kind::Nand, Kind::Nor, Kind::Disk];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Nand => "nand",
            Kind::Nor => "nor",
            Kind::Disk => "disk",
        }
    }

    /// True for raw flash, false for a disk.
    #[must_use]
    pub const fn is_chip(self) -> bool {
        !matches!(self, Kind::Disk)
    }
}

impl FigureKind {
    /// All kinds.
    pub const ALL: [FigureKind; 5] = [
        FigureKind::DatasheetTypical,
        FigureKind::DatasheetMax,
        FigureKind::Driver,
        FigureKind::Paper,
        FigureKind::Assumed,
    ];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FigureKind::DatasheetTypical => "datasheet-typical",
            FigureKind::DatasheetMax => "datasheet-max",
            FigureKind::Driver => "driver",
            FigureKind::Paper => "paper",
            FigureKind::Assumed => "assumed",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl fmt::Display for FigureKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(number) => formatter.pad(&number.to_string()),
            Value::Decimal(number) => formatter.pad(&number.to_string()),
            Value::Word(word) => formatter.pad(word),
        }
    }
}

impl Device {
    /// Reads an entry from its text, which has the form of the files in `devices/` (the
    /// [crate's page](crate) describes it).
    ///
    /// # Errors
    /// The text is no TOML, or a key, figure, type, unit or number in it is wrong: the error
    /// names the line. Two figures contradict each other, or the figures make no device.
    pub fn from_toml(text: &str) -> Result<Device, CatalogueError> {
        crate::parse::device(text)
    }

    /// The name, such as `winbond-w25n01gv`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who makes it.
    #[must_use]
    pub fn maker(&self) -> &str {
        &self.maker
    }

    /// The maker's name for it.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// One line about it.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Every figure, with its source and kind, in one fixed order.
    #[must_use]
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// The figure of this name, if it is known.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    /// The figures that a simulation needs and that are not known; empty if it can be simulated.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        self.missing.clone()
    }

    /// The bytes it holds, where they are known.
    #[must_use]
    pub fn capacity_bytes(&self) -> Option<u64> {
        let parts = ["page_bytes", "pages_per_block", "blocks"];
        let product = parts.into_iter().try_fold(1_u64, |product, part| {
            self.amount(part).and_then(|amount| product.checked_mul(amount))
        });
        product.or_else(|| self.amount("capacity"))
    }

    /// The amount of a figure, in the base unit of its dimension.
    pub(crate) fn amount(&self, name: &str) -> Option<u64> {
        self.figure(name).map(|figure| figure.amount)
    }

    /// The word of a figure that is a word.
    pub(crate) fn word(&self, name: &str) -> Option<&str> {
        match self.figure(name).map(|figure| &figure.value) {
            Some(Value::Word(word)) => Some(word),
            _ => None,
        }
    }
}

impl Figure {
    /// The value in whole base units of what it measures: bytes, nanoseconds, picoseconds a byte,
    /// picojoules or femtojoules a byte. `None` for ratios and words.
    #[must_use]
    pub fn base_amount(&self) -> Option<u64> {
        let known = KNOWN.iter().find(|known| known.name == self.name)?;
        match known.dimension {
            Dimension::Ratio | Dimension::Word(_) => None,
            _ => Some(self.amount),
        }
    }
}
