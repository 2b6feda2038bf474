//! What a user chooses when a translation layer is made.

use core::fmt;

use crate::policies::named;
use crate::{Entry, Levelling, Victim};

/// The choices. A layer reads those among its [`Entry::parameters`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    over_provision: f64,
    logs: u32,
    victim: Option<Victim>,
    levelling: Levelling,
    frontiers: u8,
    regions: u8,
    scrub: u16,
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

    /// Frontiers of page mapping, if nothing else is chosen.
    pub const FRONTIERS: u8 = 2;

    /// Regions of DAC, if nothing else is chosen.
    pub const REGIONS: u8 = 4;

    /// The most regions that can be chosen.
    pub const REGIONS_MOST: u8 = 8;

    /// Flipped bits from which on pages are moved, if nothing else is chosen.
    pub const SCRUB: u16 = 1;

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

    /// Which block page mapping collects; `None` if that is left to the layer.
    #[must_use]
    pub const fn victim(&self) -> Option<Victim> {
        self.victim
    }

    /// The same choices with another policy of collection.
    #[must_use]
    pub const fn with_victim(mut self, victim: Victim) -> Self {
        self.victim = Some(victim);
        self
    }

    /// How page mapping spreads erases.
    #[must_use]
    pub const fn levelling(&self) -> Levelling {
        self.levelling
    }

    /// The same choices with another way to spread erases.
    #[must_use]
    pub const fn with_levelling(mut self, levelling: Levelling) -> Self {
        self.levelling = levelling;
        self
    }

    /// Blocks that page mapping fills at the same time: 1, or 2 if what collection moves is kept
    /// apart from what users write. Data that levelling moves has one more.
    #[must_use]
    pub const fn frontiers(&self) -> u8 {
        self.frontiers
    }

    /// The same choices with another number of frontiers.
    ///
    /// # Errors
    /// [`BadOption::Value`] if it is not 1 or 2.
    pub fn with_frontiers(mut self, frontiers: u8) -> Result<Self, BadOption> {
        if !(1..=2).contains(&frontiers) {
            return Err(BadOption::Value { expected: "1 or 2" });
        }
        self.frontiers = frontiers;
        Ok(self)
    }

    /// Regions into which DAC clusters sectors, from 1 to 8.
    #[must_use]
    pub const fn regions(&self) -> u8 {
        self.regions
    }

    /// The same choices with another number of regions.
    ///
    /// # Errors
    /// [`BadOption::Value`] if it is not from 1 to 8.
    pub fn with_regions(mut self, regions: u8) -> Result<Self, BadOption> {
        if !(1..=Self::REGIONS_MOST).contains(&regions) {
            return Err(BadOption::Value { expected: "a number from 1 to 8" });
        }
        self.regions = regions;
        Ok(self)
    }

    /// Flipped bits in one read from which on page mapping moves the page before more of them
    /// flip; 0 if it never does. Three quarters of what the chip's code corrects is a good choice;
    /// the default suits codes of any strength.
    #[must_use]
    pub const fn scrub(&self) -> u16 {
        self.scrub
    }

    /// The same choices with another number of flipped bits from which on pages are moved.
    #[must_use]
    pub const fn with_scrub(mut self, bits: u16) -> Self {
        self.scrub = bits;
        self
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
            "victim" => named(&Victim::ALL, value)
                .map(|victim| self.with_victim(victim))
                .ok_or(BadOption::Value { expected: "greedy, round-robin or cost-benefit" }),
            "levelling" => named(&Levelling::ALL, value)
                .map(|levelling| self.with_levelling(levelling))
                .ok_or(BadOption::Value { expected: "none, dynamic or static" }),
            "frontiers" => self.with_frontiers(value.parse().unwrap_or(0)),
            "regions" => self.with_regions(value.parse().unwrap_or(0)),
            "scrub" => value
                .parse()
                .map(|bits| self.with_scrub(bits))
                .map_err(|_| BadOption::Value { expected: "a number of bits from 0 to 65535" }),
            _ => Err(BadOption::Unknown),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            over_provision: Self::OVER_PROVISION,
            logs: Self::LOGS,
            victim: None,
            levelling: Levelling::default(),
            frontiers: Self::FRONTIERS,
            regions: Self::REGIONS,
            scrub: Self::SCRUB,
        }
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
                if parameter.name == "victim" {
                    assert!(options.is_ok_and(|options| options.victim().is_some()));
                } else {
                    assert_eq!(options, Ok(Options::default()), "{}", parameter.name);
                }
                for nonsense in ["", "much", "-0.1", "NaN", "inf"] {
                    let refused = Options::default().set(entry, parameter.name, nonsense);
                    assert!(matches!(refused, Err(BadOption::Value { .. })), "{nonsense}");
                }
            }
            assert_eq!(Options::default().set(entry, "page", "1"), Err(BadOption::Unknown));
        }
    }
}
