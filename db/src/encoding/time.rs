//! Points in time.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, civil};

use super::Error;

/// A point in time: nanoseconds since the start of 1970 in UTC, from 21 September 1677 to 11 April
/// 2262. Its text form is that of RFC 3339, all of it and nothing else, with at most nine digits of
/// a second. A leap second, `:60`, is refused.
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

/// Forms of the user's own.
impl Time {
    /// Reads a time that is written in `format`, with the conversions of C's `strptime`, such as
    /// `%Y-%m-%d %H:%M:%S%.f`. Without an offset in it, it is in UTC; without a time of day,
    /// midnight.
    ///
    /// # Errors
    /// The text is not in this format, or the time is not from 21 September 1677 to 11 April 2262.
    ///
    /// ```
    /// use flashtree::encoding::Time;
    /// let time = Time::strptime("%d.%m.%Y %H:%M", "01.01.2013 05:00")?;
    /// assert_eq!(time.to_string(), "2013-01-01T05:00:00Z");
    /// # Ok::<(), flashtree::encoding::Error>(())
    /// ```
    pub fn strptime(format: &str, text: &str) -> Result<Self, Error> {
        let expected = "time, in the format that was given, which has to tell all of it";
        let bad = |_| Error::bad_text(text, expected);
        let parts = strtime::parse(format, text).map_err(bad)?;
        let stamp = moment(&parts).map_err(bad)?;
        // What the format leaves open, or would take twice, is not guessed: the time has to be
        // written as it was read.
        let zone = TimeZone::fixed(parts.offset().unwrap_or(Offset::UTC));
        let written = strtime::format(format, &stamp.to_zoned(zone)).map_err(bad)?;
        if !is_written_alike(&written, text) {
            return Err(Error::bad_text(text, expected));
        }
        i64::try_from(stamp.as_nanosecond()).map(Time).map_err(|_| {
            Error::bad_text(text, "time: it is not from 21 September 1677 to 11 April 2262")
        })
    }

    /// Writes the time in UTC, in `format`, with the conversions of C's `strftime`.
    ///
    /// # Errors
    /// There is no such conversion.
    ///
    /// ```
    /// use flashtree::encoding::Time;
    /// let time: Time = "2013-01-01T05:00:00Z".parse()?;
    /// assert_eq!(time.strftime("%d.%m.%Y")?, "01.01.2013");
    /// # Ok::<(), flashtree::encoding::Error>(())
    /// ```
    pub fn strftime(self, format: &str) -> Result<String, Error> {
        let stamp = Timestamp::from_nanosecond(i128::from(self.0));
        let written = stamp.and_then(|stamp| strtime::format(format, stamp));
        written.map_err(|_| Error::bad_text(format, "format: conversions as those of strftime"))
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
        if !is_rfc_3339(text.as_bytes()) {
            let expected = "time: write all of RFC 3339, as 2013-01-01T05:00:00Z or \
                            2013-01-01T00:00:00.123-05:00, with at most nine digits of a second";
            return Err(Error::bad_text(text, expected));
        }
        if text.get(17..19) == Some("60") {
            return Err(Error::bad_text(text, "time: a leap second has no number of its own"));
        }
        let expected = "time: no such day or hour, or not from 21 September 1677 to 11 April 2262";
        text.parse::<Timestamp>()
            .ok()
            .and_then(|time| i64::try_from(time.as_nanosecond()).ok())
            .map(Time)
            .ok_or_else(|| Error::bad_text(text, expected))
    }
}

/// The time that was read: without an offset in UTC, without a time of day at midnight.
fn moment(parts: &BrokenDownTime) -> Result<Timestamp, jiff::Error> {
    if let Ok(stamp) = parts.to_timestamp() {
        return Ok(stamp);
    }
    let is_day = parts.hour().is_none();
    let time = if is_day { civil::Time::midnight() } else { parts.to_time()? };
    TimeZone::UTC.to_timestamp(parts.to_date()?.to_datetime(time))
}

/// True if two texts differ in nothing but zeros in front of numbers, zeros behind fractions, and
/// capital letters.
fn is_written_alike(one: &str, other: &str) -> bool {
    let simple = |text: &str| {
        let text = text.trim().to_ascii_lowercase();
        let mut simple = String::with_capacity(text.len());
        for run in text.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
            let run = String::from_utf8_lossy(run);
            let number = run.trim_start_matches('0');
            simple.push_str(match run.as_bytes().first() {
                Some(letter) if !letter.is_ascii_digit() => &run,
                _ if simple.ends_with('.') => number.trim_end_matches('0'),
                _ => number,
            });
        }
        simple
    };
    simple(one) == simple(other)
}

/// True if `text` has the form of RFC 3339, with `d` for each digit of a date and a time of day, at
/// most nine of a second, and an offset of less than a day. What is parsed more freely would take
/// parts of it for others, or leave them out.
fn is_rfc_3339(text: &[u8]) -> bool {
    const FORM: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    let has_form = |form: &[u8], text: &[u8]| {
        form.len() == text.len()
            && form.iter().zip(text).all(|(form, letter)| match form {
                b'd' => letter.is_ascii_digit(),
                b'T' => b"Tt ".contains(letter),
                form => form == letter,
            })
    };
    let Some((start, rest)) = text.split_at_checked(FORM.len()) else { return false };
    let digits = rest
        .strip_prefix(b".")
        .map_or(0, |rest| 1 + rest.iter().take_while(|letter| letter.is_ascii_digit()).count());
    let is_offset = match &rest[digits..] {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', clock @ ..] => {
            has_form(b"dd:dd", clock) && clock[..2] <= b"23"[..] && clock[3..] <= b"59"[..]
        }
        _ => false,
    };
    has_form(FORM, start) && digits != 1 && digits <= 10 && is_offset
}
