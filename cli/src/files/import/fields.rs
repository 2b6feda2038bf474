//! Keys and values out of fields.

use db::encoding::{Datum, Error, Time, Type};

/// Writes the key or value of type `kind` that stands in `fields`: one, or one for each component
/// of a tuple. Bytes and texts are taken as they are, of others the text form is read, of times
/// that of `time_format`.
///
/// # Errors
/// A field is not of its type.
pub(super) fn encode<'f>(
    kind: &Type,
    time_format: Option<&str>,
    fields: impl ExactSizeIterator<Item = &'f [u8]>,
    into: &mut Vec<u8>,
) -> Result<(), Error> {
    into.clear();
    let datum = |kind: &Type, field| datum(kind, time_format, field);
    match kind {
        Type::Tuple(types) if fields.len() == types.len() => {
            let components = types.iter().zip(fields).map(|(kind, field)| datum(kind, field));
            let tuple = Datum::Tuple(components.collect::<Result<_, _>>()?);
            into.extend_from_slice(&kind.encode(&tuple)?);
        }
        _ => {
            for field in fields {
                match kind {
                    Type::Bytes => into.extend_from_slice(field),
                    kind => into.extend_from_slice(&kind.encode(&datum(kind, field)?)?),
                }
            }
        }
    }
    Ok(())
}

fn datum(kind: &Type, time_format: Option<&str>, field: &[u8]) -> Result<Datum, Error> {
    match (kind, time_format) {
        (Type::Bytes, _) => Ok(Datum::Bytes(field.to_vec())),
        (Type::Text, _) => Type::Text.decode(field),
        (Type::Time, Some(format)) => {
            Ok(Datum::Time(Time::strptime(format, Type::Text.to_text(field)?.trim())?))
        }
        (kind, _) => kind.parse_datum(Type::Text.to_text(field)?.trim()),
    }
}

#[cfg(test)]
mod tests {
    use db::encoding::Type;

    use super::encode;

    fn encoded(kind: &str, fields: &[&[u8]]) -> Option<Vec<u8>> {
        let kind: Type = kind.parse().unwrap();
        let mut bytes = Vec::new();
        encode(&kind, None, fields.iter().copied(), &mut bytes).ok().map(|()| bytes)
    }

    #[test]
    fn times_are_read_in_the_format_that_was_given() {
        let mut bytes = Vec::new();
        let fields = [&b"01.02.2013 10:30"[..]];
        encode(&Type::Time, Some("%d.%m.%Y %H:%M"), fields.into_iter(), &mut bytes).unwrap();
        assert_eq!(Type::Time.to_text(&bytes).unwrap(), "2013-02-01T10:30:00Z");
        assert!(encode(&Type::Time, Some("%d.%m.%Y"), fields.into_iter(), &mut bytes).is_err());
    }

    #[test]
    fn bytes_are_taken_as_they_are_and_others_are_read() {
        assert_eq!(encoded("bytes", &[b"a\\\xFF"]), Some(b"a\\\xFF".to_vec()));
        assert_eq!(encoded("text", &[b"\xFF"]), None);
        assert_eq!(encoded("u64", &[b" 7 "]), Some(7_u64.to_be_bytes().to_vec()));
        assert_eq!(encoded("u64", &[b""]), None);
    }

    #[test]
    fn tuples_come_from_several_fields_or_from_an_array() {
        let both = encoded("tuple(text,u64)", &[b"a", b"7"]).unwrap();
        assert_eq!(encoded("tuple(text,u64)", &[b"[\"a\",7]"]), Some(both));
        assert_eq!(encoded("tuple(text,u64)", &[b"a"]), None);
    }
}
