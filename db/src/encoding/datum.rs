//! Values whose types are known only when the program runs.

use std::cmp::Ordering;

use super::traits::{Decode, Encode, all, order_of_f64};
use super::{Error, Time, Type};

/// A value of any [`Type`]. The order of values of one type is that of their bytes.
///
/// ```
/// use flashtree::encoding::{Datum, Type, encode};
///
/// let key: Type = "tuple(text,u64)".parse()?;
/// let datum = Datum::Tuple(vec![Datum::Text("a".into()), Datum::U64(7)]);
/// assert_eq!(key.encode(&datum)?, encode(&("a", 7_u64)));
/// assert_eq!(key.decode(&encode(&("a", 7_u64)))?, datum);
/// # Ok::<(), flashtree::encoding::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Datum {
    /// Of type bytes or hex.
    Bytes(Vec<u8>),
    /// Of type text.
    Text(String),
    /// Of type i64.
    I64(i64),
    /// Of type u64.
    U64(u64),
    /// Of type f64.
    F64(f64),
    /// Of type time.
    Time(Time),
    /// Of a tuple.
    Tuple(Vec<Datum>),
}

impl Ord for Datum {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Datum::Bytes(one), Datum::Bytes(two)) => one.cmp(two),
            (Datum::Text(one), Datum::Text(two)) => one.cmp(two),
            (Datum::I64(one), Datum::I64(two)) => one.cmp(two),
            (Datum::U64(one), Datum::U64(two)) => one.cmp(two),
            (Datum::F64(one), Datum::F64(two)) => order_of_f64(*one).cmp(&order_of_f64(*two)),
            (Datum::Time(one), Datum::Time(two)) => one.cmp(two),
            (Datum::Tuple(one), Datum::Tuple(two)) => one.cmp(two),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Datum {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Datum {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Datum {}

impl Datum {
    /// The order of values of different types.
    const fn rank(&self) -> u8 {
        match self {
            Datum::Bytes(_) => 0,
            Datum::Text(_) => 1,
            Datum::I64(_) => 2,
            Datum::U64(_) => 3,
            Datum::F64(_) => 4,
            Datum::Time(_) => 5,
            Datum::Tuple(_) => 6,
        }
    }

    /// Its type; bytes may be hex as well.
    fn kind(&self) -> Type {
        match self {
            Datum::Bytes(_) => Type::Bytes,
            Datum::Text(_) => Type::Text,
            Datum::I64(_) => Type::I64,
            Datum::U64(_) => Type::U64,
            Datum::F64(_) => Type::F64,
            Datum::Time(_) => Type::Time,
            Datum::Tuple(components) => Type::Tuple(components.iter().map(Datum::kind).collect()),
        }
    }
}

impl Encode for Datum {
    fn encode_to(&self, into: &mut Vec<u8>) {
        match self {
            Datum::Bytes(bytes) => bytes.encode_to(into),
            Datum::Text(text) => text.encode_to(into),
            other => other.encode_component(into),
        }
    }

    fn encode_component(&self, into: &mut Vec<u8>) {
        match self {
            Datum::Bytes(bytes) => bytes.encode_component(into),
            Datum::Text(text) => text.encode_component(into),
            Datum::I64(number) => number.encode_component(into),
            Datum::U64(number) => number.encode_component(into),
            Datum::F64(number) => number.encode_component(into),
            Datum::Time(time) => time.encode_component(into),
            Datum::Tuple(components) => {
                components.iter().for_each(|component| component.encode_component(into));
            }
        }
    }
}

impl Type {
    /// The bytes of `datum`, which has to be of this type.
    ///
    /// # Errors
    /// It is of another type.
    ///
    /// ```
    /// use flashtree::encoding::{Datum, Type};
    /// assert_eq!(Type::U64.encode(&Datum::U64(1))?, [0, 0, 0, 0, 0, 0, 0, 1]);
    /// assert!(Type::I64.encode(&Datum::U64(1)).is_err());
    /// # Ok::<(), flashtree::encoding::Error>(())
    /// ```
    pub fn encode(&self, datum: &Datum) -> Result<Vec<u8>, Error> {
        if !self.takes(datum) {
            let (expected, found) = (self.to_string(), datum.kind().to_string());
            return Err(Error::OtherType { expected, found });
        }
        Ok(super::encode(datum))
    }

    fn takes(&self, datum: &Datum) -> bool {
        match (self, datum) {
            (Type::Bytes | Type::Hex, Datum::Bytes(_))
            | (Type::Text, Datum::Text(_))
            | (Type::I64, Datum::I64(_))
            | (Type::U64, Datum::U64(_))
            | (Type::F64, Datum::F64(_))
            | (Type::Time, Datum::Time(_)) => true,
            (Type::Tuple(types), Datum::Tuple(components)) => {
                types.len() == components.len()
                    && types.iter().zip(components).all(|(one, datum)| one.takes(datum))
            }
            _ => false,
        }
    }

    /// The value of this type that `bytes` stand for.
    ///
    /// # Errors
    /// They do not stand for one.
    ///
    /// ```
    /// use flashtree::encoding::{Datum, Type};
    /// assert_eq!(Type::Text.decode(b"pear")?, Datum::Text("pear".into()));
    /// assert!(Type::Text.decode(b"\xFF").is_err());
    /// # Ok::<(), flashtree::encoding::Error>(())
    /// ```
    pub fn decode(&self, bytes: &[u8]) -> Result<Datum, Error> {
        match self {
            Type::Bytes | Type::Hex => Vec::decode_all(bytes).map(Datum::Bytes),
            Type::Text => String::decode_all(bytes).map(Datum::Text),
            Type::I64 => i64::decode_all(bytes).map(Datum::I64),
            Type::U64 => u64::decode_all(bytes).map(Datum::U64),
            Type::F64 => f64::decode_all(bytes).map(Datum::F64),
            Type::Time => Time::decode_all(bytes).map(Datum::Time),
            Type::Tuple(_) => all(self.decode_component(bytes)?),
        }
    }

    fn decode_component<'b>(&self, bytes: &'b [u8]) -> Result<(Datum, &'b [u8]), Error> {
        fn of<T: Decode>(bytes: &[u8], make: fn(T) -> Datum) -> Result<(Datum, &[u8]), Error> {
            T::decode_component(bytes).map(|(value, rest)| (make(value), rest))
        }
        match self {
            Type::Bytes | Type::Hex => of(bytes, Datum::Bytes),
            Type::Text => of(bytes, Datum::Text),
            Type::I64 => of(bytes, Datum::I64),
            Type::U64 => of(bytes, Datum::U64),
            Type::F64 => of(bytes, Datum::F64),
            Type::Time => of(bytes, Datum::Time),
            Type::Tuple(types) => {
                let mut rest = bytes;
                let mut components = Vec::with_capacity(types.len());
                for one in types {
                    let (datum, behind) = one.decode_component(rest)?;
                    components.push(datum);
                    rest = behind;
                }
                Ok((Datum::Tuple(components), rest))
            }
        }
    }
}
