//! Byte order is value order, what was encoded is decoded, and nothing panics.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::{Datum, Decode, Encode, Time, Type, decode, encode};

/// Types of every kind, tuples in tuples among them.
fn types() -> impl Strategy<Value = Type> {
    let plain = prop_oneof![
        Just(Type::Bytes),
        Just(Type::Hex),
        Just(Type::Text),
        Just(Type::I64),
        Just(Type::U64),
        Just(Type::F64),
        Just(Type::Time),
    ];
    plain.prop_recursive(3, 12, 4, |inner| prop::collection::vec(inner, 1..5).prop_map(Type::Tuple))
}

/// Few different bytes, so that values share beginnings and contain zeros.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0), Just(1), Just(0xFE), Just(0xFF), any::<u8>()];
    prop::collection::vec(byte, 0..6)
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof!["[\0\u{1}a\\\\\"é\u{10FFFF}]{0,5}", ".{0,8}"]
}

fn data(of: &Type) -> BoxedStrategy<Datum> {
    match of {
        Type::Bytes | Type::Hex => bytes().prop_map(Datum::Bytes).boxed(),
        Type::Text => texts().prop_map(Datum::Text).boxed(),
        Type::I64 => prop_oneof![any::<i64>(), -2..3_i64].prop_map(Datum::I64).boxed(),
        Type::U64 => prop_oneof![any::<u64>(), 0..3_u64].prop_map(Datum::U64).boxed(),
        Type::F64 => any::<u64>().prop_map(|bits| Datum::F64(f64::from_bits(bits))).boxed(),
        Type::Time => any::<i64>().prop_map(|time| Datum::Time(Time(time))).boxed(),
        Type::Tuple(types) => {
            types.iter().map(data).collect::<Vec<_>>().prop_map(Datum::Tuple).boxed()
        }
    }
}

/// The same cases in every run: what fails once fails again.
fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: 2000,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn the_order_of_bytes_is_the_order_of_values(
        (one, two) in types().prop_flat_map(|of| (data(&of), data(&of)))
    ) {
        prop_assert_eq!(encode(&one).cmp(&encode(&two)), one.cmp(&two));
    }

    #[test]
    fn what_was_encoded_is_decoded(
        (of, datum) in types().prop_flat_map(|of| (Just(of.clone()), data(&of)))
    ) {
        let bytes = of.encode(&datum).unwrap();
        prop_assert_eq!(of.decode(&bytes), Ok(datum));
    }

    #[test]
    fn texts_and_json_lead_back_to_the_bytes(
        (of, datum) in types().prop_flat_map(|of| (Just(of.clone()), data(&of)))
    ) {
        let bytes = of.encode(&datum).unwrap();
        prop_assert_eq!(of.to_bytes(&of.to_text(&bytes).unwrap()).unwrap(), bytes.clone());
        let json = of.to_json(&bytes).unwrap().to_string();
        prop_assert_eq!(of.from_json(&json).unwrap(), bytes);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(of in types(), bytes in bytes()) {
        if let Ok(datum) = of.decode(&bytes) {
            prop_assert_eq!(of.encode(&datum).unwrap(), bytes);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(of in types(), text in texts()) {
        if let Ok(bytes) = of.to_bytes(&text) {
            prop_assert!(of.decode(&bytes).is_ok());
        }
    }

    #[test]
    fn types_are_printed_and_packed_as_they_are_read(of in types(), junk in bytes()) {
        prop_assert_eq!(of.to_string().parse(), Ok(of.clone()));
        let mut packed = Vec::new();
        of.pack(&mut packed);
        let mut at = 0;
        prop_assert_eq!(Type::unpack(&packed, &mut at), Ok(of));
        prop_assert_eq!(at, packed.len());
        // Whatever stands there, it is a type or an error.
        if let Ok(of) = Type::unpack(&junk, &mut 0) {
            prop_assert_eq!(of.to_string().parse(), Ok(of));
        }
    }

    #[test]
    fn tuples_of_known_types_are_those_of_described_ones(
        text in texts(), number in any::<i64>(), float in any::<f64>(), raw in bytes()
    ) {
        let key = (text.as_str(), number, (float, raw.clone()));
        let described = Datum::Tuple(vec![
            Datum::Text(text.clone()),
            Datum::I64(number),
            Datum::Tuple(vec![Datum::F64(float), Datum::Bytes(raw.clone())]),
        ]);
        prop_assert_eq!(encode(&key), encode(&described));
        let back = decode::<(String, i64, (f64, Vec<u8>))>(&encode(&key)).unwrap();
        // There is one 0.
        let float = if float == 0.0 { 0.0 } else { float };
        prop_assert_eq!((back.0, back.1, back.2.0.to_bits(), back.2.1),
            (text, number, float.to_bits(), raw));
    }

    #[test]
    fn a_prefix_of_a_tuple_is_a_prefix_of_its_bytes(text in texts(), number in any::<u64>()) {
        let mut beginning = Vec::new();
        text.encode_component(&mut beginning);
        prop_assert!(encode(&(text, number)).starts_with(&beginning));
    }
}

#[test]
fn floats_are_in_their_total_order() {
    let ascending = [
        -f64::NAN,
        f64::NEG_INFINITY,
        f64::MIN,
        -1.0,
        -f64::MIN_POSITIVE,
        0.0,
        f64::MIN_POSITIVE,
        1.0,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
    ];
    assert!(ascending.map(|number| encode(&number)).is_sorted_by(|one, next| one < next));
    for number in ascending {
        assert_eq!(f64::decode_all(&encode(&number)).unwrap().to_bits(), number.to_bits());
    }
}

#[test]
fn types_that_are_none_are_refused() {
    let deep = "tuple(".repeat(100) + "u64" + &")".repeat(100);
    let wide = format!("tuple({})", vec!["u64"; 33].join(","));
    for wrong in
        ["", "u32", "tuple", "tuple()", "tuple(u64", "tuple(u64,)", "u64)", "u64 u64", &deep, &wide]
    {
        assert!(wrong.parse::<Type>().is_err(), "{wrong}");
    }
    assert_eq!(" tuple( u64 , text ) ".parse(), Ok(Type::Tuple(vec![Type::U64, Type::Text])));
}

#[test]
fn times_are_read_from_every_zone_and_refused_beyond_their_years() {
    assert_eq!("1970-01-01T01:00:00.000000001+01:00".parse(), Ok(Time(1)));
    for (time, text) in [
        (Time(i64::MIN), "1677-09-21T00:12:43.145224192Z"),
        (Time(i64::MAX), "2262-04-11T23:47:16.854775807Z"),
        (Time(-1), "1969-12-31T23:59:59.999999999Z"),
    ] {
        assert_eq!(time.to_string(), text);
        assert_eq!(text.parse(), Ok(time));
    }
    for wrong in ["", "now", "1600-01-01T00:00:00Z", "2300-01-01T00:00:00Z", "2013-02-30T00:00:00Z"]
    {
        assert!(wrong.parse::<Time>().is_err(), "{wrong}");
    }
}

#[test]
fn numbers_are_short_and_those_too_large_are_refused() {
    for (number, text) in [
        (1e308, "1e308"),
        (-5e-324, "-5e-324"),
        (1e16, "1e16"),
        (123_456.5, "123456.5"),
        (0.000_001, "0.000001"),
        (0.0, "0"),
        (-0.0, "-0"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        assert_eq!(Type::F64.print_datum(&Datum::F64(number)), text);
        assert_eq!(Type::F64.parse_datum(text), Ok(Datum::F64(number)));
    }
    for text in ["1e400", "-1e309", &"9".repeat(400)] {
        assert!(Type::F64.parse_datum(text).is_err(), "{text}");
    }
}

#[test]
fn what_a_type_cannot_represent_is_refused_and_one_number_is_one_key() {
    let of = |kind: &str, text: &str| kind.parse::<Type>().unwrap().to_bytes(text);
    assert_eq!(of("f64", "-0"), of("f64", "0"));
    assert_eq!(of("f64", "-0.0e5"), of("f64", "0"));
    assert_eq!(encode(&-0.0_f64), encode(&0.0_f64));
    let before = [0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
    assert_eq!(decode::<f64>(&before), Ok(-0.0), "an earlier version wrote it");
    assert_eq!(of("i64", "-0"), of("i64", "0"));
    assert_ne!(of("f64", "5e-324"), of("f64", "0"));
    for text in ["1e-400", "-1e-400", "0.0001e-330", "1e400", "-2e308"] {
        assert!(of("f64", text).is_err(), "{text}");
    }
    for text in ["inf", "-inf", "NaN", "1e308"] {
        assert!(of("f64", text).is_ok(), "{text}");
    }
    for text in ["2016-12-31T23:59:60Z", "2016-12-31 23:59:60.5Z", "2016-12-31T23:59:60+00:00"] {
        let error = of("time", text).unwrap_err().to_string();
        assert!(error.contains("leap second"), "{text}: {error}");
    }
    assert!(of("time", "2016-12-31T23:60:00Z").is_err());
    for (text, said) in [("1e309", "too large"), ("-1e309", "too large"), ("1e-400", "too small")] {
        let error = of("f64", text).unwrap_err().to_string();
        assert!(error.contains(said) && !error.contains("is no number"), "{error}");
    }
}

#[test]
fn a_time_is_all_of_rfc_3339_and_nothing_else() {
    let at = |text: &str| text.parse::<Time>();
    let noon = at("2016-12-31T12:00:00Z").unwrap();
    for text in [
        "2016-12-31t12:00:00z",
        "2016-12-31 12:00:00.000000000Z",
        "2016-12-31T12:00:00-00:00",
        "2016-12-31T13:30:00.0+01:30",
        "2016-12-30T12:01:00-23:59",
    ] {
        assert_eq!(at(text), Ok(noon), "{text}");
    }
    let day = "2016-12-31";
    for rest in [
        "",
        "Z",
        "T12:00:00",
        "T12:00Z",
        "T12Z",
        "T12:00:00.Z",
        "T12:00:00,5Z",
        "T120000Z",
        "T12:00:00Z[UTC]",
        "T12:00:00+01:00[Europe/Rome]",
        "T12:00:00[Europe/Rome]",
        "T12:00:00+24:00",
        "T12:00:00-25:59",
        "T12:00:00+01:60",
        "T12:00:00+01",
        "T12:00:00+0100",
        "T12:00:00+01:00:00",
        "T12:00:00+00:00:00.4",
        "T12:00:00.1234567891Z",
        "_12:00:00Z",
        " T12:00:00Z",
        "T12:00:00 Z",
        "T12:00:00Z ",
        "T12:00:0\u{664}Z",
    ] {
        let error = at(&format!("{day}{rest}")).unwrap_err().to_string();
        assert!(error.contains("RFC 3339"), "{rest}: {error}");
    }
    for text in ["20161231T120000Z", "+002016-12-31T12:00:00Z", "2016-366T12:00:00Z", "é"] {
        assert!(at(text).unwrap_err().to_string().contains("RFC 3339"), "{text}");
    }
}

#[test]
fn the_digits_of_a_json_number_count_as_they_are_written() {
    let long = "123456789012345678901";
    for (of, json, text) in [
        ("text", long, long),
        ("text", "10.50", "10.50"),
        ("bytes", "1E+3", "1E+3"),
        ("hex", "0", ""),
        ("hex", "10", "10"),
        ("u64", "18446744073709551615", "18446744073709551615"),
        ("u64", "-0", "0"),
        ("i64", "-9223372036854775808", "-9223372036854775808"),
        ("f64", "0.1000000000000000055", "0.1"),
    ] {
        let of: Type = of.parse().unwrap();
        let whole = of.from_json(json).ok().map(|bytes| of.to_text(&bytes).unwrap());
        assert_eq!(whole.as_deref(), Some(text).filter(|text| !text.is_empty()), "{of} {json}");
        let tuple = Type::Tuple(vec![Type::Tuple(vec![of.clone()])]);
        let nested = tuple.from_json(&format!(" [ [{json} ] ]")).ok();
        assert_eq!(
            nested,
            of.from_json(json)
                .ok()
                .map(|_| { tuple.to_bytes(&format!("[[\"{text}\"]]")).unwrap() }),
            "{of} {json}"
        );
    }
    for (of, json) in [
        ("u64", "18446744073709551616"),
        ("u64", "5.0"),
        ("u64", "-1"),
        ("i64", "1e3"),
        ("i64", "9223372036854775808"),
        ("f64", "1e400"),
        ("text", "null"),
        ("text", "12x"),
        ("text", "[1]"),
        ("text", r#""\ud800""#),
        ("tuple(text)", r#"{"a":1}"#),
    ] {
        assert!(of.parse::<Type>().unwrap().from_json(json).is_err(), "{of} {json}");
    }
}

#[test]
fn a_time_in_a_format_is_taken_whole_or_refused() {
    for (format, text, time) in [
        ("%Y-%m-%d %H:%M:%S%.f", "2013-01-02 03:04:05.500", Some("2013-01-02T03:04:05.5Z")),
        ("%Y-%m-%d %H:%M:%S%.f", "2013-01-02 03:04:05", Some("2013-01-02T03:04:05Z")),
        ("%d.%m.%Y", "1.2.2013", Some("2013-02-01T00:00:00Z")),
        ("%Y-%m-%d %H:%M %z", "2013-07-01 10:00 +0200", Some("2013-07-01T08:00:00Z")),
        ("%d %b %Y", "02 jan 2013", Some("2013-01-02T00:00:00Z")),
        ("%s", "1357034400", Some("2013-01-01T10:00:00Z")),
        ("%Y-%m-%d %H:%M:%S", "2016-12-31 23:59:60", None),
        ("%Y-%m-%d %M:%S", "2013-01-01 45:10", None),
        ("%Y-%m-%d %H:%M %Q", "2013-07-01 10:00 Europe/Berlin", None),
        ("%Y-%m-%d %Y", "2013-01-01 2014", None),
        ("%Y-%m-%d", "9999-12-31", None),
        ("%H:%M", "10:00", None),
    ] {
        let read = Time::strptime(format, text).ok().map(|read| read.to_string());
        assert_eq!(read.as_deref(), time, "{format}: {text}");
    }
}
