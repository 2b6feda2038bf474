//! Integers of every size, truth values, what may be absent, and arrays.

use super::Error;
use super::traits::{Decode, Encode, all, split};

macro_rules! unsigned {
    ($($kind:ty)*) => {$(
        impl Encode for $kind {
            fn encode_to(&self, into: &mut Vec<u8>) {
                into.extend_from_slice(&self.to_be_bytes());
            }

            fn encode_component(&self, into: &mut Vec<u8>) {
                self.encode_to(into);
            }
        }

        impl Decode for $kind {
            fn decode_all(bytes: &[u8]) -> Result<Self, Error> {
                all(Self::decode_component(bytes)?)
            }

            fn decode_component(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
                let (first, rest) = split(bytes)?;
                Ok((<$kind>::from_be_bytes(first), rest))
            }
        }
    )*};
}

unsigned!(u8 u16 u32 u128);

/// Signed numbers are the unsigned ones with the sign bit turned over.
macro_rules! signed {
    ($($kind:ty: $order:ty,)*) => {$(
        impl Encode for $kind {
            fn encode_to(&self, into: &mut Vec<u8>) {
                (self.cast_unsigned() ^ <$kind>::MIN.cast_unsigned()).encode_to(into);
            }

            fn encode_component(&self, into: &mut Vec<u8>) {
                self.encode_to(into);
            }
        }

        impl Decode for $kind {
            fn decode_all(bytes: &[u8]) -> Result<Self, Error> {
                all(Self::decode_component(bytes)?)
            }

            fn decode_component(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
                let (order, rest) = <$order>::decode_component(bytes)?;
                Ok(((order ^ <$kind>::MIN.cast_unsigned()).cast_signed(), rest))
            }
        }
    )*};
}

signed! {
    i8: u8,
    i16: u16,
    i32: u32,
    i128: u128,
}

/// Numbers of the processor's length have the bytes of 64 bits on every one.
macro_rules! of_the_processor {
    ($($kind:ty: $wide:ty,)*) => {$(
        impl Encode for $kind {
            fn encode_to(&self, into: &mut Vec<u8>) {
                (*self as $wide).encode_to(into);
            }

            fn encode_component(&self, into: &mut Vec<u8>) {
                self.encode_to(into);
            }
        }

        impl Decode for $kind {
            fn decode_all(bytes: &[u8]) -> Result<Self, Error> {
                all(Self::decode_component(bytes)?)
            }

            fn decode_component(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
                let (wide, rest) = <$wide>::decode_component(bytes)?;
                let fits = <$kind>::try_from(wide);
                let number = fits.map_err(|_| Error::bad_text(&wide.to_string(), "number here"))?;
                Ok((number, rest))
            }
        }
    )*};
}

of_the_processor! {
    usize: u64,
    isize: i64,
}

impl Encode for bool {
    fn encode_to(&self, into: &mut Vec<u8>) {
        into.push((*self).into());
    }

    fn encode_component(&self, into: &mut Vec<u8>) {
        self.encode_to(into);
    }
}

/// Reads a byte that is 0 or 1.
fn mark(bytes: &[u8]) -> Result<(bool, &[u8]), Error> {
    match u8::decode_component(bytes)? {
        (found @ 0..=1, rest) => Ok((found == 1, rest)),
        (found, _) => Err(Error::BadMark { found }),
    }
}

impl Decode for bool {
    fn decode_all(bytes: &[u8]) -> Result<Self, Error> {
        all(mark(bytes)?)
    }

    fn decode_component(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        mark(bytes)
    }
}

/// What is absent comes first.
impl<T: Encode> Encode for Option<T> {
    fn encode_to(&self, into: &mut Vec<u8>) {
        self.is_some().encode_to(into);
        if let Some(value) = self {
            value.encode_to(into);
        }
    }

    fn encode_component(&self, into: &mut Vec<u8>) {
        self.is_some().encode_to(into);
        if let Some(value) = self {
            value.encode_component(into);
        }
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode_all(bytes: &[u8]) -> Result<Self, Error> {
        match mark(bytes)? {
            (true, rest) => T::decode_all(rest).map(Some),
            (false, rest) => all((None, rest)),
        }
    }

    fn decode_component(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        match mark(bytes)? {
            (true, rest) => T::decode_component(rest).map(|(value, rest)| (Some(value), rest)),
            (false, rest) => Ok((None, rest)),
        }
    }
}

/// One component behind the other: so the bytes of a UUID, an array, stand as they are.
impl<T: Encode, const N: usize> Encode for [T; N] {
    fn encode_to(&self, into: &mut Vec<u8>) {
        self.encode_component(into);
    }

    fn encode_component(&self, into: &mut Vec<u8>) {
        self.iter().for_each(|component| component.encode_component(into));
    }
}

impl<T: Decode, const N: usize> Decode for [T; N] {
    fn decode_all(bytes: &[u8]) -> Result<Self, Error> {
        all(Self::decode_component(bytes)?)
    }

    fn decode_component(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let mut rest = bytes;
        let mut components = Vec::with_capacity(N);
        for _ in 0..N {
            let (component, behind) = T::decode_component(rest)?;
            components.push(component);
            rest = behind;
        }
        let found = components.len();
        let array = components.try_into();
        Ok((array.map_err(|_| Error::Components { expected: N, found })?, rest))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use crate::encoding::{Decode, Encode, Error, decode, encode};

    /// Values in ascending order have bytes in that order, alone and before others.
    fn is_ordered<T: Encode + Decode + PartialEq + Debug>(values: &[T]) {
        for value in values {
            assert_eq!(decode::<T>(&encode(value)).as_ref(), Ok(value));
            let mut tuple = Vec::new();
            value.encode_component(&mut tuple);
            tuple.extend_from_slice(b"rest");
            assert_eq!(
                T::decode_component(&tuple),
                Ok((decode(&encode(value)).unwrap(), &b"rest"[..]))
            );
        }
        for pair in values.windows(2) {
            assert!(encode(&pair[0]) < encode(&pair[1]), "{pair:?}");
            let [mut low, mut high] = [Vec::new(), Vec::new()];
            pair[0].encode_component(&mut low);
            pair[1].encode_component(&mut high);
            low.push(0xFF);
            high.push(0);
            assert!(low < high, "{pair:?}");
        }
    }

    #[test]
    fn integers_of_every_size_are_in_their_order() {
        is_ordered(&[0_u8, 1, 127, 128, u8::MAX]);
        is_ordered(&[i8::MIN, -1, 0, 1, i8::MAX]);
        is_ordered(&[0_u16, 255, 256, u16::MAX]);
        is_ordered(&[i16::MIN, -256, -1, 0, 255, i16::MAX]);
        is_ordered(&[0_u32, 1 << 31, u32::MAX]);
        is_ordered(&[i32::MIN, -1, 0, 65_536, i32::MAX]);
        is_ordered(&[0_u64, 1 << 40, u64::MAX]);
        is_ordered(&[i64::MIN, -1, 0, i64::MAX]);
        is_ordered(&[0_u128, 1 << 64, u128::MAX]);
        is_ordered(&[i128::MIN, -(1 << 64), 0, 1 << 64, i128::MAX]);
        is_ordered(&[0_usize, 70_000, usize::MAX]);
        is_ordered(&[isize::MIN, -1, 0, isize::MAX]);
        assert_eq!(encode(&5_usize), encode(&5_u64));
    }

    #[test]
    fn truth_values_absent_ones_and_arrays_are_in_their_order() {
        is_ordered(&[false, true]);
        is_ordered(&[None, Some(0_u32), Some(7)]);
        is_ordered(&[None, Some(String::new()), Some("a".into()), Some("ab".into())]);
        is_ordered(&[[1_u8; 16], [2; 16]]);
        is_ordered(&[[-1_i32, 9], [0, -5], [0, 3]]);
        is_ordered(&[["a".to_owned(), "z".to_owned()], ["ab".to_owned(), "a".to_owned()]]);
        is_ordered(&[(1_u8, None::<bool>), (1, Some(false)), (2, None)]);
        assert_eq!(encode(&[7_u8; 16]), [7; 16]);
    }

    #[test]
    fn bytes_that_are_none_of_these_are_refused() {
        assert_eq!(decode::<bool>(&[2]), Err(Error::BadMark { found: 2 }));
        assert!(decode::<bool>(&[]).is_err() && decode::<bool>(&[1, 0]).is_err());
        assert!(decode::<Option<u8>>(&[1]).is_err() && decode::<Option<u8>>(&[0, 1]).is_err());
        assert!(decode::<[u16; 2]>(&[1, 2, 3]).is_err());
        assert!(decode::<u32>(&[1, 2, 3]).is_err());
    }
}
