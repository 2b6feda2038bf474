//! Numbers of the command line, and how figures are written for people.

use std::num::NonZeroU64;
use std::time::Duration;

/// Reads a size in bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    index::parameters::parse_bytes(text)
        .ok_or_else(|| "expected a size in bytes, such as 131072, 128KiB or 1MB".to_owned())
}

/// Reads a size in bytes that can't be 0.
pub(crate) fn parse_size_not_0(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("0 bytes can't be used".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Reads a time in seconds.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected seconds, such as 5 or 0.5".to_owned())
}

/// Reads a whole number from 0.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "expected a whole number from 0 to 18446744073709551615".to_owned())
}

/// Reads a whole number from 1.
pub(crate) fn parse_positive(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| "expected a whole number, 1 or more".to_owned())
}

/// A size as one would type it: in the largest binary unit that divides it.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    UNITS
        .iter()
        .find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit))
        .map_or_else(|| bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

/// A size to read: with three digits and a space before the unit.
pub(crate) fn rounded_size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    UNITS.iter().find(|(_, unit)| bytes >= *unit).map_or_else(
        || format!("{bytes} B"),
        |(name, unit)| format!("{} {name}", short(bytes as f64 / *unit as f64)),
    )
}

/// A whole number with its thousands set apart: `211,061`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A figure with about three digits that count: `0.0123`, `4.56`, `78.9`, `1,234`.
pub(crate) fn three_digits(figure: f64) -> String {
    let size = figure.abs();
    if !figure.is_finite() {
        return "-".to_owned();
    }
    match size {
        0.0 => "0".to_owned(),
        _ if size >= 99.95 => {
            let whole = thousands(size.round() as u64);
            if figure < 0.0 { format!("-{whole}") } else { whole }
        }
        _ if size >= 9.995 => format!("{figure:.1}"),
        _ if size >= 0.9995 => format!("{figure:.2}"),
        _ if size >= 0.1 => format!("{figure:.3}"),
        _ if size >= 0.0005 => format!("{figure:.4}"),
        _ => format!("{figure:.1e}"),
    }
}

/// The same without zeros at its end: `2`, `0.5`.
pub(crate) fn short(figure: f64) -> String {
    let text = three_digits(figure);
    if !text.contains('.') || text.contains('e') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A figure that a device may not have.
pub(crate) fn optional(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_owned(), three_digits)
}

/// A count that a device may not have.
pub(crate) fn optional_count(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), thousands)
}

/// So many things, each called `thing`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{} {thing}s", thousands(number)),
    }
}

/// Seconds as people say them.
pub(crate) fn seconds(seconds: f64) -> String {
    if seconds < 60.0 {
        format!("{} s", three_digits(seconds))
    } else {
        let whole = seconds.round() as u64;
        format!("{} min {} s", whole / 60, whole % 60)
    }
}

/// Microseconds in the unit that suits them.
pub(crate) fn microseconds(us: f64) -> String {
    match us {
        _ if us >= 10_000_000.0 => format!("{} s", three_digits(us / 1e6)),
        _ if us >= 10_000.0 => format!("{} ms", three_digits(us / 1e3)),
        _ => format!("{} µs", three_digits(us)),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        microseconds, parse_count, parse_positive, parse_size, rounded_size, seconds, short, size,
        thousands, three_digits,
    };

    #[test]
    fn figures_keep_about_three_digits() {
        let cases = [
            (0.0, "0"),
            (0.000_01, "1.0e-5"),
            (0.0123, "0.0123"),
            (0.456, "0.456"),
            (4.567, "4.57"),
            (9.999, "10.0"),
            (78.91, "78.9"),
            (99.96, "100"),
            (1234.5, "1,235"),
            (-1234.4, "-1,234"),
        ];
        for (figure, text) in cases {
            assert_eq!(three_digits(figure), text);
        }
        assert_eq!(three_digits(f64::NAN), "-");
        for (figure, text) in [(20.0, "20"), (0.5, "0.5"), (1.25, "1.25"), (1e-6, "1.0e-6")] {
            assert_eq!(short(figure), text);
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (211_061, "211,061")] {
            assert_eq!(thousands(number), text);
        }
        assert_eq!(thousands(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn a_size_is_written_as_it_can_be_read_again() {
        for bytes in [0, 1, 1000, 1024, 131_072, 3 << 30, (1 << 20) + 1] {
            assert_eq!(parse_size(&size(bytes)), Ok(bytes));
        }
        assert_eq!(size(131_072), "128KiB");
        assert_eq!(rounded_size(131_072), "128 KiB");
        assert_eq!(rounded_size(1_500_000), "1.43 MiB");
        assert_eq!(rounded_size(512), "512 B");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "x", "-1", "1.5", "1e6", "99999999999999999999"] {
            assert!(parse_count(text).is_err(), "{text}");
            assert!(parse_positive(text).is_err(), "{text}");
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert!(parse_positive("0").is_err());
        assert_eq!(parse_count("0"), Ok(0));
    }

    #[test]
    fn times_are_written_in_the_unit_that_suits_them() {
        assert_eq!(microseconds(12.34), "12.3 µs");
        assert_eq!(microseconds(12_340.0), "12.3 ms");
        assert_eq!(microseconds(12_340_000.0), "12.3 s");
        assert_eq!(seconds(1.234), "1.23 s");
        assert_eq!(seconds(125.4), "2 min 5 s");
    }
}
