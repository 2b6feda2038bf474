//! Points in time.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

use super::Error;

/// A point in time: nanoseconds since the start of 1970 in UTC, from the year 1677 to 2262. Its
/// text form is that of RFC 3339, with at most nine digits of a second. What would have to be
/// rounded is refused: a leap second, `:60`, and offsets with parts of a second.
///
/// ```
/// use flashtree::encoding::Time;
///
/// let start: Time = "2013-01-01T05:00:00Z".parse()?;
/// assert_eq!(start, Time(1_357_016_400_000_000_000));
/// assert_eq!("2013-01-01T00:00:00-05:00".parse(), Ok(start));
/// assert_eq!(start.to_string(), "2013-01-01T05:00:00Z");
/// # Ok::<(), flashtree::encoding::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    /// The time now, by the system's clock.
    ///
    /// ```
    /// use flashtree::encoding::Time;
    /// assert!(Time::now() > "2020-01-01T00:00:00Z".parse()?);
    /// # Ok::<(), flashtree::encoding::Error>(())
    /// ```
    #[must_use]
    pub fn now() -> Self {
        let nanoseconds = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => {
                i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, i64::wrapping_neg)
            }
        };
        Time(nanoseconds)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(time) => time.fmt(f),
            // 64 bits of nanoseconds are well inside of what it can be.
            Err(_) => write!(f, "{} ns", self.0),
        }
    }
}

impl FromStr for Time {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if is_leap_second(text) {
            return Err(Error::bad_text(text, "time: a leap second has no number of its own"));
        }
        if has_part_of_second_in_offset(text) {
            return Err(Error::bad_text(text, "time: its offset has parts of a second"));
        }
        let expected = "time: write it as 2013-01-01T05:00:00Z, from the year 1677 to 2262";
        text.parse::<Timestamp>()
            .ok()
            .and_then(|time| i64::try_from(time.as_nanosecond()).ok())
            .map(Time)
            .ok_or_else(|| Error::bad_text(text, expected))
    }
}

/// True if the seconds of the time of day are 60, which would be read as 59.
fn is_leap_second(text: &str) -> bool {
    let time_of_day = text.split(['T', 't', ' ']).nth(1).unwrap_or_default();
    let clock = time_of_day.split(['Z', 'z', '+', '-', '[', '.', ',']).next().unwrap_or_default();
    let digits: Vec<u8> = clock.bytes().filter(u8::is_ascii_digit).collect();
    digits.get(4..6) == Some(b"60")
}

/// True if the offset from UTC has a fraction, which would be rounded.
fn has_part_of_second_in_offset(text: &str) -> bool {
    let time_of_day = text.split(['T', 't', ' ']).nth(1).unwrap_or_default();
    let offset = time_of_day.split_once(['+', '-']).map_or("", |(_, offset)| offset);
    offset.split('[').next().unwrap_or_default().contains(['.', ','])
}
