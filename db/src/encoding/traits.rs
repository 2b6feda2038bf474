//! Encoding of values whose types the program knows.

use super::{Error, Time, tuple};

/// What can be encoded so that the order of the bytes is its own order.
///
/// ```
/// use flashtree::encoding::{Encode, encode};
///
/// /// A sensor and when it was read.
/// struct Reading(u64, i64);
///
/// impl Encode for Reading {
///     fn encode_to(&self, into: &mut Vec<u8>) {
///         self.encode_component(into);
///     }
///     fn encode_component(&self, into: &mut Vec<u8>) {
///         self.0.encode_component(into);
///         self.1.encode_component(into);
///     }
/// }
/// assert_eq!(encode(&Reading(7, 9)), encode(&(7_u64, 9_i64)));
/// ```
pub trait Encode {
    /// Appends the bytes of a value that stands alone.
    fn encode_to(&self, into: &mut Vec<u8>);

    /// Appends the bytes of a value that another may follow: they tell where they end.
    fn encode_component(&self, into: &mut Vec<u8>);
}

/// What can be read from the bytes that [`Encode`] makes.
///
/// ```
/// use flashtree::encoding::{Decode, Error, encode};
///
/// let key = encode(&(7_u64, "seven"));
/// let (number, rest) = u64::decode_component(&key)?;
/// assert_eq!(number, 7);
/// assert_eq!(String::decode_component(rest)?, ("seven".to_owned(), &b""[..]));
/// # Ok::<(), Error>(())
/// ```
pub trait Decode: Sized {
    /// Reads a value that takes all of `bytes`.
    ///
    /// # Errors
    /// The bytes do not stand for such a value.
    fn decode_all(bytes: &[u8]) -> Result<Self, Error>;

    /// Reads a value from the start of `bytes`; returns it with the bytes behind it.
    ///
    /// # Errors
    /// The bytes do not begin with such a value.
    fn decode_component(bytes: &[u8]) -> Result<(Self, &[u8]), Error>;
}

/// The bytes of `value`.
///
/// ```
/// use flashtree::encoding::encode;
/// assert!(encode(&-1_i64) < encode(&1_i64));
/// ```
#[must_use]
pub fn encode<T: Encode + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode_to(&mut bytes);
    bytes
}

/// The value that `bytes` stand for.
///
/// # Errors
/// They do not stand for such a value.
///
/// ```
/// use flashtree::encoding::{decode, encode};
/// assert_eq!(decode::<f64>(&encode(&-2.5)), Ok(-2.5));
/// assert!(decode::<f64>(b"-2.5").is_err());
/// ```
pub fn decode<T: Decode>(bytes: &[u8]) -> Result<T, Error> {
    T::decode_all(bytes)
}

const SIGN: u64 = 1 << 63;

/// A number whose order is that of the signed `number`.
pub(super) const fn order_of_i64(number: i64) -> u64 {
    number.cast_unsigned() ^ SIGN
}

pub(super) const fn i64_of_order(order: u64) -> i64 {
    (order ^ SIGN).cast_signed()
}

/// A number whose order is that of `number` in the total order of floats; -0 is 0.
pub(super) const fn order_of_f64(number: f64) -> u64 {
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    if bits & SIGN == 0 { bits ^ SIGN } else { !bits }
}

pub(super) const fn f64_of_order(order: u64) -> f64 {
    f64::from_bits(if order & SIGN == 0 { !order } else { order ^ SIGN })
}

/// Splits `N` bytes off.
pub(super) fn split<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), Error> {
    match bytes.split_first_chunk() {
        Some((first, rest)) => Ok((*first, rest)),
        None => Err(Error::Length { expected: N, found: bytes.len() }),
    }
}

/// Refuses bytes behind the value.
pub(super) fn all<T>((value, rest): (T, &[u8])) -> Result<T, Error> {
    match rest.len() {
        0 => Ok(value),
        bytes => Err(Error::LeftOver { bytes }),
    }
}

macro_rules! eight_bytes {
    ($($kind:ty: $to:expr, $from:expr;)*) => {$(
        impl Encode for $kind {
            fn encode_to(&self, into: &mut Vec<u8>) {
                self.encode_component(into);
            }

            fn encode_component(&self, into: &mut Vec<u8>) {
                let order: u64 = $to(*self);
                into.extend_from_slice(&order.to_be_bytes());
            }
        }

        impl Decode for $kind {
            fn decode_all(bytes: &[u8]) -> Result<Self, Error> {
                let whole: [u8; 8] = bytes
                    .try_into()
                    .map_err(|_| Error::Length { expected: 8, found: bytes.len() })?;
                Ok($from(u64::from_be_bytes(whole)))
            }

            fn decode_component(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
                let (first, rest) = split::<8>(bytes)?;
                Ok(($from(u64::from_be_bytes(first)), rest))
            }
        }
    )*};
}

eight_bytes! {
    u64: |number: u64| number, |order: u64| order;
    i64: order_of_i64, i64_of_order;
    f64: order_of_f64, f64_of_order;
    Time: |time: Time| order_of_i64(time.0), |order: u64| Time(i64_of_order(order));
}

impl Encode for [u8] {
    fn encode_to(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self);
    }

    fn encode_component(&self, into: &mut Vec<u8>) {
        tuple::escape(self, into);
    }
}

impl Encode for Vec<u8> {
    fn encode_to(&self, into: &mut Vec<u8>) {
        self.as_slice().encode_to(into);
    }

    fn encode_component(&self, into: &mut Vec<u8>) {
        self.as_slice().encode_component(into);
    }
}

impl Decode for Vec<u8> {
    fn decode_all(bytes: &[u8]) -> Result<Self, Error> {
        Ok(bytes.to_vec())
    }

    fn decode_component(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        tuple::unescape(bytes)
    }
}

impl Encode for str {
    fn encode_to(&self, into: &mut Vec<u8>) {
        self.as_bytes().encode_to(into);
    }

    fn encode_component(&self, into: &mut Vec<u8>) {
        self.as_bytes().encode_component(into);
    }
}

impl Encode for String {
    fn encode_to(&self, into: &mut Vec<u8>) {
        self.as_str().encode_to(into);
    }

    fn encode_component(&self, into: &mut Vec<u8>) {
        self.as_str().encode_component(into);
    }
}

impl Decode for String {
    fn decode_all(bytes: &[u8]) -> Result<Self, Error> {
        text(bytes.to_vec())
    }

    fn decode_component(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let (bytes, rest) = tuple::unescape(bytes)?;
        Ok((text(bytes)?, rest))
    }
}

fn text(bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes)
        .map_err(|error| Error::NotText { valid: error.utf8_error().valid_up_to() })
}

impl<T: Encode + ?Sized> Encode for &T {
    fn encode_to(&self, into: &mut Vec<u8>) {
        (**self).encode_to(into);
    }

    fn encode_component(&self, into: &mut Vec<u8>) {
        (**self).encode_component(into);
    }
}
