//! Components that tell where they end, and tuples of them.

use super::Error;
use super::traits::{Decode, Encode, all};

/// What follows a zero byte that belongs to the component.
const ESCAPED: u8 = 0xFF;

/// What follows the zero byte at the end of a component. It is lower than [`ESCAPED`], so that a
/// component comes before those that it is the beginning of, whatever stands behind it.
const END: u8 = 0x00;

/// Appends `bytes` and their end.
pub(super) fn escape(bytes: &[u8], into: &mut Vec<u8>) {
    into.reserve(bytes.len() + 2);
    for &byte in bytes {
        into.push(byte);
        if byte == 0 {
            into.push(ESCAPED);
        }
    }
    into.extend_from_slice(&[0, END]);
}

/// Reads a component from the start of `bytes`; returns it with the bytes behind its end.
pub(super) fn unescape(bytes: &[u8]) -> Result<(Vec<u8>, &[u8]), Error> {
    let mut component = Vec::new();
    let mut rest = bytes;
    loop {
        let zero = rest.iter().position(|byte| *byte == 0).ok_or(Error::Unterminated)?;
        component.extend_from_slice(&rest[..zero]);
        let (&mark, behind) = rest[zero + 1..].split_first().ok_or(Error::Unterminated)?;
        rest = behind;
        match mark {
            ESCAPED => component.push(0),
            END => return Ok((component, rest)),
            _ => return Err(Error::Unterminated),
        }
    }
}

macro_rules! tuples {
    ($(($($name:ident $place:tt),+))*) => {$(
        impl<$($name: Encode),+> Encode for ($($name,)+) {
            fn encode_to(&self, into: &mut Vec<u8>) {
                self.encode_component(into);
            }

            fn encode_component(&self, into: &mut Vec<u8>) {
                $(self.$place.encode_component(into);)+
            }
        }

        impl<$($name: Decode),+> Decode for ($($name,)+) {
            fn decode_all(bytes: &[u8]) -> Result<Self, Error> {
                all(Self::decode_component(bytes)?)
            }

            fn decode_component(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
                let mut rest = bytes;
                let value = ($({
                    let (component, behind) = $name::decode_component(rest)?;
                    rest = behind;
                    component
                },)+);
                Ok((value, rest))
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}
