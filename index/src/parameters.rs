//! The parameters of trees: declared as data by each tree, read from text, checked here.

use alloc::string::ToString;
use alloc::vec::Vec;

use crate::{Error, Result};

/// What a parameter's value can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A size in bytes; suffixes KiB, MiB, GiB are binary, kB, MB, GB decimal.
    Bytes,
    /// A whole number.
    Count,
    /// A ratio, within these bounds.
    Ratio(f64, f64),
    /// A percentage, from this to 100.
    Percent(u8),
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words, or a size in bytes that is not 0.
    WordOrBytes(&'static [&'static str]),
}

/// One parameter of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it decides, in a line.
    pub about: &'static str,
    /// What its value can be.
    pub kind: Kind,
    /// Its value where none is given; empty if that follows from the device.
    pub default: &'static str,
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A size, a count or a percentage.
    Number(u64),
    /// A ratio.
    Ratio(f64),
    /// A word.
    Word(&'static str),
}

/// The values of a tree's parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    values: Vec<(&'static str, Value)>,
}

impl Settings {
    /// Reads `given` pairs of name and text as values of `parameters`; those not given get their
    /// defaults.
    ///
    /// # Errors
    /// `tree` has no such parameter, the value does not fit it, or it is given twice.
    pub fn parse<'t>(
        tree: &'static str,
        parameters: &'static [Parameter],
        given: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Result<Self> {
        let mut settings = Settings::default();
        for (name, text) in given {
            let Some(parameter) = parameters.iter().find(|parameter| parameter.name == name) else {
                return Err(Error::UnknownParameter { tree, name: name.to_string() });
            };
            if settings.value(parameter.name).is_some() {
                return Err(bad(parameter, text, "a parameter is given only once"));
            }
            settings.values.push((parameter.name, parse_value(parameter, text)?));
        }
        for parameter in parameters {
            if settings.value(parameter.name).is_none() && !parameter.default.is_empty() {
                let value = parse_value(parameter, parameter.default)?;
                settings.values.push((parameter.name, value));
            }
        }
        Ok(settings)
    }

    /// The value of the parameter `name`, if it has one.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Value> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The number of the parameter `name`, if it has one.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    /// The ratio of the parameter `name`, if it has one.
    #[must_use]
    pub fn ratio(&self, name: &str) -> Option<f64> {
        match self.value(name) {
            Some(Value::Ratio(ratio)) => Some(ratio),
            _ => None,
        }
    }

    /// The word of the parameter `name`, if it has one.
    #[must_use]
    pub fn word(&self, name: &str) -> Option<&'static str> {
        match self.value(name) {
            Some(Value::Word(word)) => Some(word),
            _ => None,
        }
    }
}

fn bad(parameter: &Parameter, text: &str, expected: &'static str) -> Error {
    Error::BadParameter { name: parameter.name, value: text.to_string(), expected }
}

fn parse_value(parameter: &Parameter, text: &str) -> Result<Value> {
    let (value, expected) = match parameter.kind {
        Kind::Bytes => (
            parse_bytes(text).map(Value::Number),
            "it must be a size in bytes, such as 4096 or 4KiB",
        ),
        Kind::Count => (text.parse().ok().map(Value::Number), "it must be a whole number"),
        Kind::Percent(least) => {
            let bounds = u64::from(least)..=100;
            let percent = text.parse().ok().filter(|percent| bounds.contains(percent));
            let expected = match least {
                50 => "it must be a percentage from 50 to 100",
                _ => "it must be a percentage from 1 to 100",
            };
            (percent.map(Value::Number), expected)
        }
        Kind::Ratio(least, most) => (
            text.parse().ok().filter(|ratio| (least..=most).contains(ratio)).map(Value::Ratio),
            "it must be a ratio within the parameter's bounds",
        ),
        Kind::WordOrBytes(words) => (
            words
                .iter()
                .find(|word| **word == text)
                .map(|word| Value::Word(word))
                .or_else(|| parse_bytes(text).filter(|bytes| *bytes > 0).map(Value::Number)),
            "it must be one of the parameter's words, or a size in bytes",
        ),
        Kind::Word(words) => (
            words.iter().find(|word| **word == text).map(|word| Value::Word(word)),
            "it must be one of the parameter's words",
        ),
    };
    value.ok_or_else(|| bad(parameter, text, expected))
}

/// Reads a size: KiB, MiB and GiB are binary, kB, MB and GB decimal, a bare number is bytes.
/// `None` if it is no such size or exceeds 64 bits.
#[must_use]
pub fn parse_bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 8] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ];
    let unit = UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
    let (digits, unit) = unit.unwrap_or((text, 1));
    let digits = digits.trim_end();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::{Kind, Parameter, Settings, parse_bytes};
    use crate::Error;

    const PARAMETERS: &[Parameter] = &[
        Parameter { name: "node", about: "", kind: Kind::Bytes, default: "" },
        Parameter { name: "pool", about: "", kind: Kind::Ratio(0.0, 1.0), default: "0.5" },
        Parameter { name: "policy", about: "", kind: Kind::Word(&["lru", "fifo"]), default: "lru" },
        Parameter { name: "fill", about: "", kind: Kind::Percent(1), default: "70" },
    ];

    #[test]
    fn sizes_are_read_in_binary_and_decimal_units() {
        assert_eq!(parse_bytes("512"), Some(512));
        assert_eq!(parse_bytes("128KiB"), Some(128 << 10));
        assert_eq!(parse_bytes("128 kB"), Some(128_000));
        for wrong in ["", "KiB", "-1", "+1", "1.5KiB", "12 kiB", "99999999999GiB", "x"] {
            assert_eq!(parse_bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn values_that_are_not_given_have_their_defaults() {
        let settings = Settings::parse("a-tree", PARAMETERS, [("node", "4KiB")]).unwrap();
        assert_eq!(settings.number("node"), Some(4096));
        assert_eq!(settings.ratio("pool"), Some(0.5));
        assert_eq!(settings.word("policy"), Some("lru"));
        assert_eq!(settings.number("fill"), Some(70));
        assert_eq!(Settings::parse("a-tree", PARAMETERS, []).unwrap().number("node"), None);
    }

    #[test]
    fn wrong_values_are_refused_by_name() {
        for (name, value) in [
            ("node", "large"),
            ("pool", "1.5"),
            ("pool", "NaN"),
            ("policy", "best"),
            ("fill", "0"),
            ("fill", "101"),
        ] {
            let refused = Settings::parse("a-tree", PARAMETERS, [(name, value)]);
            assert!(matches!(refused, Err(Error::BadParameter { .. })), "{name}={value}");
        }
        let twice = Settings::parse("a-tree", PARAMETERS, [("fill", "5"), ("fill", "6")]);
        assert!(matches!(twice, Err(Error::BadParameter { .. })));
        let unknown = Settings::parse("a-tree", PARAMETERS, [("nodes", "5")]);
        assert!(matches!(unknown, Err(Error::UnknownParameter { .. })));
    }
}
