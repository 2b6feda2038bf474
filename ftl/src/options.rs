//! What a user chooses when a translation layer is made.

use core::fmt;

use crate::Entry;

/// The choices. A layer reads those among its [`Entry::parameters`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    over_provision: f64,
    logs: u32,
}

impl Options {
    /// The share of the chip's pages that is kept from users, if nothing else is chosen.
    pub const OVER_PROVISION: f64 = 0.07;

    /// The most that can be kept from users.
    pub const OVER_PROVISION_MOST: f64 = 0.9;

    /// Log blocks, if nothing else is chosen.
    pub const LOGS: u32 = 8;

    /// The most log blocks that can be chosen.
    pub const LOGS_MOST: u32 = 1024;

    /// The share of the chip's pages that is kept from users, from 0 to 0.9. It comes beside the
    /// few blocks that collection needs to work and to survive power cuts.
    #[must_use]
    pub const fn over_provision(&self) -> f64 {
        self.over_provision
    }

    /// The same choices with another share of pages kept from users.
    ///
    /// # Errors
    /// [`BadOption::Value`] if the ratio is not from 0 to 0.9.
    pub fn with_over_provision(mut self, ratio: f64) -> Result<Self, BadOption> {
        if !(0.0..=Self::OVER_PROVISION_MOST).contains(&ratio) {
            return Err(BadOption::Value { expected: "a ratio from 0 to 0.9" });
        }
        self.over_provision = ratio;
        Ok(self)
    }

    /// FAST's random log blocks, or the blocks that block mapping fills in order at the same time,
    /// from 1 to 1024. A disk keeps the number that it was made with.
    #[must_use]
    pub const fn logs(&self) -> u32 {
        self.logs
    }

    /// The same choices with another number of log blocks.
    ///
    /// # Errors
    /// [`BadOption::Value`] if it is not from 1 to 1024.
    pub fn with_logs(mut self, logs: u32) -> Result<Self, BadOption> {
        if !(1..=Self::LOGS_MOST).contains(&logs) {
            return Err(BadOption::Value { expected: "a number from 1 to 1024" });
        }
        self.logs = logs;
        Ok(self)
    }

    /// Reads the text `value` as the parameter `name` of the layer `entry`.
    ///
    /// # Errors
    /// The layer has no such parameter, or the text does not fit it.
    pub fn set(self, entry: &Entry, name: &str, value: &str) -> Result<Self, BadOption> {
        if !entry.parameters.iter().any(|parameter| parameter.name == name) {
            return Err(BadOption::Unknown);
        }
        match name {
            "over-provision" => self.with_over_provision(value.parse().unwrap_or(f64::NAN)),
            "logs" => self.with_logs(value.parse().unwrap_or(0)),
            _ => Err(BadOption::Unknown),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options { over_provision: Self::OVER_PROVISION, logs: Self::LOGS }
    }
}

/// A parameter of a translation layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it decides, in a line.
    pub about: &'static str,
    /// Its value where none is given.
    pub default: &'static str,
}

/// Why an option is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadOption {
    /// The layer has no parameter of this name.
    Unknown,
    /// The value does not fit.
    Value {
        /// What is possible.
        expected: &'static str,
    },
}

impl fmt::Display for BadOption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadOption::Unknown => formatter.write_str("this layer has no such parameter"),
            BadOption::Value { expected } => write!(formatter, "expected {expected}"),
        }
    }
}

impl core::error::Error for BadOption {}

#[cfg(test)]
mod tests {
    use super::{BadOption, Options};
    use crate::FTLS;

    #[test]
    fn every_parameter_of_every_layer_takes_its_default_and_refuses_nonsense() {
        for entry in FTLS {
            for parameter in entry.parameters {
                let options = Options::default().set(entry, parameter.name, parameter.default);
                assert_eq!(options, Ok(Options::default()), "{}", parameter.name);
                for nonsense in ["", "much", "-0.1", "NaN", "inf"] {
                    let refused = Options::default().set(entry, parameter.name, nonsense);
                    assert!(matches!(refused, Err(BadOption::Value { .. })), "{nonsense}");
                }
            }
            assert_eq!(Options::default().set(entry, "page", "1"), Err(BadOption::Unknown));
        }
    }
}
