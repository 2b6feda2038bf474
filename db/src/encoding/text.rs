//! The text forms of values: what a user types and reads.

use std::fmt::Write as _;

use super::{Datum, Error, Time, Type};

impl Type {
    /// The bytes of the value whose text form is `text`.
    ///
    /// # Errors
    /// It is no text form of a value of this type.
    ///
    /// ```
    /// use flashtree::encoding::Type;
    /// assert_eq!(Type::Hex.to_bytes("00fF")?, [0x00, 0xFF]);
    /// assert_eq!(Type::Bytes.to_bytes(r"a\x00\\")?, b"a\0\\");
    /// assert!(Type::U64.to_bytes("-1").is_err());
    /// # Ok::<(), flashtree::encoding::Error>(())
    /// ```
    pub fn to_bytes(&self, text: &str) -> Result<Vec<u8>, Error> {
        self.encode(&self.parse_datum(text)?)
    }

    /// The text form of the value that `bytes` stand for.
    ///
    /// # Errors
    /// They stand for none of this type.
    ///
    /// ```
    /// use flashtree::encoding::Type;
    /// assert_eq!(Type::Hex.to_text(b"\0\xFF")?, "00ff");
    /// assert_eq!(Type::Bytes.to_text(b"a\0\\")?, r"a\x00\\");
    /// # Ok::<(), flashtree::encoding::Error>(())
    /// ```
    pub fn to_text(&self, bytes: &[u8]) -> Result<String, Error> {
        Ok(self.print_datum(&self.decode(bytes)?))
    }

    /// The value of this type whose text form is `text`.
    ///
    /// # Errors
    /// It is no text form of a value of this type.
    ///
    /// ```
    /// use flashtree::encoding::{Datum, Type};
    /// assert_eq!(Type::F64.parse_datum("-2.5")?, Datum::F64(-2.5));
    /// # Ok::<(), flashtree::encoding::Error>(())
    /// ```
    pub fn parse_datum(&self, text: &str) -> Result<Datum, Error> {
        let bad = |expected| Error::bad_text(text, expected);
        Ok(match self {
            Type::Bytes => Datum::Bytes(parse_bytes(text).ok_or_else(|| {
                bad("bytes: write \\\\ for a backslash and \\xHH for the byte HH")
            })?),
            Type::Hex => Datum::Bytes(
                parse_hex(text).ok_or_else(|| bad("hex: write two hexadecimal digits a byte"))?,
            ),
            Type::Text => Datum::Text(text.to_owned()),
            Type::I64 => Datum::I64(text.parse().map_err(|_| bad("whole number of 64 bits"))?),
            Type::U64 => {
                // -0 is 0 here, too.
                let zeros = text.strip_prefix('-').filter(|rest| rest.bytes().all(|it| it == b'0'));
                let number = zeros.unwrap_or(text).parse();
                Datum::U64(number.map_err(|_| bad("whole number of 64 bits without sign"))?)
            }
            Type::F64 => Datum::F64(parse_f64(text).map_err(bad)?),
            Type::Time => Datum::Time(text.parse::<Time>()?),
            Type::Tuple(_) => {
                let json = serde_json::from_str(text)
                    .map_err(|_| bad("tuple: write it as a JSON array, such as [\"a\",1]"))?;
                self.datum_from_json(json)?
            }
        })
    }

    /// The text form of `datum`, which is taken as what it is where it is not of this type.
    pub(super) fn print_datum(&self, datum: &Datum) -> String {
        match (self, datum) {
            (Type::Hex, Datum::Bytes(bytes)) => print_hex(bytes),
            (_, Datum::Bytes(bytes)) => print_bytes(bytes),
            (_, Datum::Text(text)) => text.clone(),
            (_, Datum::I64(number)) => number.to_string(),
            (_, Datum::U64(number)) => number.to_string(),
            (_, Datum::F64(number)) => print_f64(*number),
            (_, Datum::Time(time)) => time.to_string(),
            (_, Datum::Tuple(_)) => self.datum_to_json(datum).to_string(),
        }
    }
}

fn print_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                letter if letter.is_control() => {
                    let mut buffer = [0; 4];
                    letter.encode_utf8(&mut buffer).bytes().for_each(|byte| push(&mut text, byte));
                }
                letter => text.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|byte| push(&mut text, *byte));
    }
    text
}

fn push(text: &mut String, byte: u8) {
    // Writing to a string can't fail.
    let _ = write!(text, "\\x{byte:02x}");
}

fn parse_bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..place]);
        let behind = &rest[place + 1..];
        rest = if let Some(behind) = behind.strip_prefix('\\') {
            bytes.push(b'\\');
            behind
        } else {
            let digits = behind.strip_prefix('x')?;
            bytes.push(hex_byte(digits.as_bytes().get(..2)?)?);
            &digits[2..]
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

fn print_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes().chunks(2).map(hex_byte).collect()
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    Some((digit(*digits.first()?)? << 4 | digit(*digits.get(1)?)?) as u8)
}

/// What a NaN other than the usual one begins with; its bits follow.
const NAN: &str = "nan:";

/// The shortest text that is read as the same number; so is each NaN.
pub(super) fn print_f64(number: f64) -> String {
    if number.is_nan() && number.to_bits() != f64::NAN.to_bits() {
        return format!("{NAN}{:016x}", number.to_bits());
    }
    // Zeros beyond the digits that count are for an exponent.
    let size = number.abs();
    match size != 0.0 && size.is_finite() && !(1e-7..1e16).contains(&size) {
        true => format!("{number:e}"),
        false => number.to_string(),
    }
}

/// The number, or what was expected instead.
pub(super) fn parse_f64(text: &str) -> Result<f64, &'static str> {
    const NUMBER: &str = "number";
    match text.strip_prefix(NAN) {
        Some(bits) if bits.len() == 16 && bits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            let bits = u64::from_str_radix(bits, 16).map_err(|_| NUMBER)?;
            Some(f64::from_bits(bits)).filter(|number| number.is_nan()).ok_or(NUMBER)
        }
        Some(_) => Err(NUMBER),
        None => {
            let number: f64 = text.parse().map_err(|_| NUMBER)?;
            let digits = text.split(['e', 'E']).next().unwrap_or_default();
            let is_digit = |least: u8| move |letter: u8| (least..=b'9').contains(&letter);
            // Digits that are too large are not infinity, and those that are too small not 0.
            let is_lost = match number {
                0.0 => digits.bytes().any(is_digit(b'1')),
                number => number.is_infinite() && digits.bytes().any(is_digit(b'0')),
            };
            match number {
                0.0 if is_lost => Err("float of 64 bits: it is too small, and would become 0"),
                _ if is_lost => Err("float of 64 bits: it is too large, and would become infinity"),
                0.0 => Ok(0.0),
                number => Ok(number),
            }
        }
    }
}
