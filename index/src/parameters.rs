//! The parameters of trees: declared as data by each tree, read from text, checked here.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use crate::{Error, Result};

/// What a parameter's value can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A size in bytes; suffixes KiB, MiB, GiB are binary, kB, MB, GB decimal.
    Bytes,
    /// A whole number within these bounds.
    Count(u64, u64),
    /// A ratio within these bounds.
    Ratio(f64, f64),
    /// A percentage, from this to 100.
    Percent(u8),
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words, or a size from 1 byte to this many.
    WordOrBytes(&'static [&'static str], u64),
    /// One of these words, or a whole number from 1 to this.
    WordOrCount(&'static [&'static str], u64),
}

/// Says what is possible, as behind "it must be".
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Bytes => f.write_str("a size in bytes, such as 4096 or 4KiB"),
            Kind::Count(0, u64::MAX) => f.write_str("a whole number"),
            Kind::Count(least, most) => write!(f, "a whole number from {least} to {most}"),
            Kind::Ratio(least, most) => write!(f, "a ratio from {least} to {most}"),
            Kind::Percent(least) => write!(f, "a whole percentage from {least} to 100"),
            Kind::Word(words) => f.write_str(&words.join(" or ")),
            Kind::WordOrBytes(words, most) => {
                write!(f, "{}, or a size from 1 to {most} bytes", words.join(", "))
            }
            Kind::WordOrCount(words, most) => {
                write!(f, "{}, or a whole number from 1 to {most}", words.join(", "))
            }
        }
    }
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
    /// Its value where none is given; empty if the value follows from the device.
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

/// As [`Settings::parse`] reads it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Ratio(ratio) => ratio.fmt(f),
            Value::Word(word) => word.fmt(f),
        }
    }
}

/// The values of a tree's parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    values: Vec<Setting>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Setting {
    name: &'static str,
    value: Value,
    /// False if it is the default because none was given.
    is_given: bool,
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
                return Err(bad(parameter, text, "a parameter is given only once".into()));
            }
            let value = parse_value(parameter, text)?;
            settings.values.push(Setting { name: parameter.name, value, is_given: true });
        }
        for parameter in parameters {
            if settings.value(parameter.name).is_none() && !parameter.default.is_empty() {
                let value = parse_value(parameter, parameter.default)?;
                settings.values.push(Setting { name: parameter.name, value, is_given: false });
            }
        }
        Ok(settings)
    }

    /// The value of the parameter `name`, if it has one.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Value> {
        self.setting(name).map(|setting| setting.value)
    }

    /// Sets the parameter `name` to `value`, if the tree has it and it was not given.
    pub fn default_to(&mut self, name: &str, value: Value) {
        let setting = self.values.iter_mut().find(|setting| setting.name == name);
        if let Some(setting) = setting.filter(|setting| !setting.is_given) {
            setting.value = value;
        }
    }

    /// True if the parameter `name` was given, even with its default value.
    #[must_use]
    pub fn is_given(&self, name: &str) -> bool {
        self.setting(name).is_some_and(|setting| setting.is_given)
    }

    /// The parameters that were given, with their values.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let given = self.values.iter().filter(|setting| setting.is_given);
        given.map(|setting| (setting.name, setting.value))
    }

    fn setting(&self, name: &str) -> Option<&Setting> {
        self.values.iter().find(|setting| setting.name == name)
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

    /// Packs the given values of `parameters` into bytes, except those named in `without`. Defaults
    /// are not packed.
    ///
    /// ```text
    ///  for each   | its place among the parameters u8 | a word: its place among the words u8
    ///             |                                   | a size, a count, a percentage: u64
    ///             |                                   | a ratio: f64
    /// ```
    ///
    /// Where a word or a size can stand, a size is behind a byte of `0xFF`.
    #[must_use]
    pub fn pack(&self, parameters: &'static [Parameter], without: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (place, parameter) in parameters.iter().enumerate() {
            let setting = self.setting(parameter.name).filter(|setting| setting.is_given);
            let Some(setting) = setting.filter(|given| !without.contains(&given.name)) else {
                continue;
            };
            bytes.push(place as u8);
            pack_value(parameter, setting.value, &mut bytes);
        }
        bytes
    }

    /// Replaces these settings by those that [`Settings::pack`] packed, as given ones. Returns
    /// false, and changes nothing, if the bytes make no sense.
    #[must_use]
    pub fn unpack(&mut self, parameters: &'static [Parameter], mut bytes: &[u8]) -> bool {
        let mut taken: Vec<Setting> = Vec::new();
        while let Some((place, rest)) = bytes.split_first() {
            let parameter = parameters.get(usize::from(*place));
            let unpacked = parameter.and_then(|parameter| unpack_value(parameter, rest));
            let (Some(parameter), Some((value, rest))) = (parameter, unpacked) else {
                return false;
            };
            if taken.iter().any(|setting| setting.name == parameter.name) {
                return false;
            }
            taken.push(Setting { name: parameter.name, value, is_given: true });
            bytes = rest;
        }
        self.values.retain(|known| taken.iter().all(|setting| setting.name != known.name));
        self.values.append(&mut taken);
        true
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

fn bad(parameter: &Parameter, text: &str, expected: Cow<'static, str>) -> Error {
    Error::BadParameter { name: parameter.name, value: text.to_string(), expected }
}

/// Stands in front of a size where a word could stand.
const NO_WORD: u8 = 0xFF;

const fn words(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Word(words) | Kind::WordOrBytes(words, _) | Kind::WordOrCount(words, _) => words,
        _ => &[],
    }
}

fn pack_value(parameter: &Parameter, value: Value, into: &mut Vec<u8>) {
    match value {
        Value::Word(word) => {
            let place = words(parameter.kind).iter().position(|known| *known == word);
            into.push(place.map_or(NO_WORD, |place| place as u8));
        }
        Value::Number(number) => {
            if let Kind::WordOrBytes(..) | Kind::WordOrCount(..) = parameter.kind {
                into.push(NO_WORD);
            }
            into.extend_from_slice(&number.to_le_bytes());
        }
        Value::Ratio(ratio) => into.extend_from_slice(&ratio.to_bits().to_le_bytes()),
    }
}

/// The value of `parameter` that `bytes` begin with, if it is one, and what is behind it.
fn unpack_value<'b>(parameter: &Parameter, bytes: &'b [u8]) -> Option<(Value, &'b [u8])> {
    let number = |bytes: &'b [u8]| -> Option<(u64, &'b [u8])> {
        let (number, rest) = bytes.split_first_chunk()?;
        Some((u64::from_le_bytes(*number), rest))
    };
    let within = |least: u64, most: u64, bytes| {
        let (number, rest) = number(bytes)?;
        (least..=most).contains(&number).then_some((Value::Number(number), rest))
    };
    match parameter.kind {
        Kind::Bytes => within(0, u64::MAX, bytes),
        Kind::Count(least, most) => within(least, most, bytes),
        Kind::Percent(least) => within(least.into(), 100, bytes),
        Kind::Ratio(least, most) => {
            let (bits, rest) = number(bytes)?;
            let ratio = f64::from_bits(bits);
            (least..=most).contains(&ratio).then_some((Value::Ratio(ratio), rest))
        }
        Kind::Word(words) | Kind::WordOrBytes(words, _) | Kind::WordOrCount(words, _) => {
            let (place, rest) = bytes.split_first()?;
            match (words.get(usize::from(*place)), parameter.kind) {
                (Some(word), _) => Some((Value::Word(word), rest)),
                (None, Kind::WordOrBytes(_, most) | Kind::WordOrCount(_, most))
                    if *place == NO_WORD =>
                {
                    within(1, most, rest)
                }
                _ => None,
            }
        }
    }
}

fn parse_value(parameter: &Parameter, text: &str) -> Result<Value> {
    let word = |words: &[&'static str]| {
        words.iter().find(|word| **word == text).map(|word| Value::Word(word))
    };
    let number = |bounds: core::ops::RangeInclusive<u64>| {
        text.parse().ok().filter(|number| bounds.contains(number)).map(Value::Number)
    };
    let value = match parameter.kind {
        Kind::Bytes => parse_bytes(text).map(Value::Number),
        Kind::Count(least, most) => number(least..=most),
        Kind::Percent(least) => number(u64::from(least)..=100),
        Kind::Ratio(least, most) => {
            text.parse().ok().filter(|ratio| (least..=most).contains(ratio)).map(Value::Ratio)
        }
        Kind::Word(words) => word(words),
        Kind::WordOrBytes(words, most) => word(words).or_else(|| {
            let bytes = parse_bytes(text).filter(|bytes| (1..=most).contains(bytes));
            bytes.map(Value::Number)
        }),
        Kind::WordOrCount(words, most) => word(words).or_else(|| number(1..=most)),
    };
    let expected = || format!("it must be {}", parameter.kind).into();
    value.ok_or_else(|| bad(parameter, text, expected()))
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
    use alloc::format;
    use alloc::string::ToString;

    use super::{Kind, Parameter, Settings, parse_bytes};
    use crate::Error;

    const PARAMETERS: &[Parameter] = &[
        Parameter { name: "node", about: "", kind: Kind::Bytes, default: "" },
        Parameter { name: "pool", about: "", kind: Kind::Ratio(0.0, 1.0), default: "0.5" },
        Parameter { name: "policy", about: "", kind: Kind::Word(&["lru", "fifo"]), default: "lru" },
        Parameter { name: "fill", about: "", kind: Kind::Percent(1), default: "70" },
        Parameter { name: "levels", about: "", kind: Kind::Count(1, 8), default: "" },
        Parameter {
            name: "buffer",
            about: "",
            kind: Kind::WordOrBytes(&["none"], 1024),
            default: "none",
        },
        Parameter {
            name: "runs",
            about: "",
            kind: Kind::WordOrCount(&["auto"], 63),
            default: "auto",
        },
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
    fn what_was_given_is_packed_and_comes_back() {
        let given =
            [("node", "512"), ("pool", "0.99"), ("policy", "fifo"), ("levels", "8"), ("fill", "7")];
        for others in [[("buffer", "77"), ("runs", "auto")], [("buffer", "none"), ("runs", "9")]] {
            let made = given.into_iter().chain(others);
            let made = Settings::parse("a-tree", PARAMETERS, made).unwrap();
            let packed = made.pack(PARAMETERS, &["node"]);
            let mut back = Settings::parse("a-tree", PARAMETERS, [("node", "512")]).unwrap();
            assert!(back.unpack(PARAMETERS, &packed));
            for parameter in PARAMETERS {
                assert_eq!(back.value(parameter.name), made.value(parameter.name));
                assert_eq!(back.is_given(parameter.name), made.is_given(parameter.name));
            }
            for cut in 1..packed.len() {
                let _ = back.unpack(PARAMETERS, &packed[..cut]);
            }
            let twice = [&packed[..], &packed[..]].concat();
            assert!(!back.unpack(PARAMETERS, &twice));
        }
        let mut usual = Settings::parse("a-tree", PARAMETERS, []).unwrap();
        assert!(usual.pack(PARAMETERS, &[]).is_empty() && !usual.is_given("pool"));
        let given = Settings::parse("a-tree", PARAMETERS, [("pool", "0.50")]).unwrap();
        assert!(usual.unpack(PARAMETERS, &given.pack(PARAMETERS, &[])));
        assert!(usual.is_given("pool") && !usual.is_given("fill"));
        for wrong in [&[9][..], &[1, 0, 0], &[1, 255, 255, 255, 255, 255, 255, 255, 255], &[2, 2]] {
            assert!(!usual.clone().unpack(PARAMETERS, wrong), "{wrong:?}");
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
    fn what_is_refused_is_told_with_what_is_permitted() {
        for (name, value, permitted) in [
            ("node", "large", "it must be a size in bytes, such as 4096 or 4KiB"),
            ("pool", "1.5", "it must be a ratio from 0 to 1"),
            ("policy", "best", "it must be lru or fifo"),
            ("fill", "0", "it must be a whole percentage from 1 to 100"),
            ("levels", "9", "it must be a whole number from 1 to 8"),
            ("buffer", "2KiB", "it must be none, or a size from 1 to 1024 bytes"),
            ("buffer", "0", "it must be none, or a size from 1 to 1024 bytes"),
            ("runs", "2KiB", "it must be auto, or a whole number from 1 to 63"),
            ("runs", "0", "it must be auto, or a whole number from 1 to 63"),
        ] {
            let refused = Settings::parse("a-tree", PARAMETERS, [(name, value)]).unwrap_err();
            assert_eq!(refused.to_string(), format!("{name}={value}: {permitted}"));
        }
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
