//! What the catalogue holds.

use flashtree_chips::{FigureKind, Kind, Overrides, all, find, near};

/// Every device that the project names; one that is not simulated as it stands says so below.
const DEVICES: [&str; 31] = [
    "capsule",
    "femu-slc",
    "femu-tlc",
    "gigadevice-gd5f1gq4u",
    "intel-x25-m",
    "kingston-minisd-512",
    "kioxia-tc58bvg1s3h",
    "micron-mt29f1g01aaadd",
    "micron-mt29f2g01abagd",
    "micron-mt29f4g08aaa",
    "micron-mt29f4g08abada",
    "mqsim-mlc",
    "mtron-msd-sata3035",
    "mtron-msp-sata7525",
    "nandsim",
    "nvmevirt-970-pro",
    "samsung-k9gag08u0m",
    "samsung-k9k1g08r0b",
    "samsung-k9k1g08u0a",
    "samsung-k9wag08u1a",
    "samsung-mcboe32g8apr",
    "sandisk-cf-512",
    "simplessd-mlc",
    "st-nand01gw3a2b",
    "toshiba-tc58dvg02a1ft00",
    "toshiba-tc58nvg3s0f",
    "winbond-w25n01gv",
    "winbond-w25n02kv",
    "winbond-w25n04kv",
    "winbond-w25n512gv",
    "winbond-w25q128jv",
];

/// The devices that lack a figure which a simulation needs.
const INCOMPLETE: [(&str, &[&str]); 2] = [
    ("nvmevirt-970-pro", &["pages_per_block"]),
    ("samsung-k9k1g08u0a", &["read_typical or read_most"]),
];

#[test]
fn the_catalogue_holds_exactly_the_devices_named() {
    let names: Vec<&str> = all().iter().map(|device| device.name()).collect();
    assert_eq!(names, DEVICES);
    assert!(names.is_sorted());
}

#[test]
fn every_figure_has_a_source_and_an_assumed_one_a_reason() {
    let mut kinds = [0; FigureKind::ALL.len()];
    for device in all() {
        assert!(device.figures().len() >= 5, "{} has hardly a figure", device.name());
        for figure in device.figures() {
            let place = format!("{} {}", device.name(), figure.name);
            let least = if figure.kind == FigureKind::Assumed { 25 } else { 5 };
            assert!(figure.source.len() >= least, "{place}: {}", figure.source);
            let limit = figure.name.contains("_most");
            let against = if limit { "datasheet-typical" } else { "datasheet-max" };
            let rule = matches!(figure.name, "endurance_cycles" | "programs_per_page");
            assert!(rule || figure.kind.name() != against, "{place} is {against}");
            if let Some(kind) = FigureKind::ALL.iter().position(|kind| *kind == figure.kind) {
                kinds[kind] += 1;
            }
        }
    }
    assert!(kinds.iter().all(|count| *count > 0), "{kinds:?}");
}

#[test]
fn the_list_of_incomplete_devices_is_exact() {
    let incomplete: Vec<(&str, Vec<&str>)> = all()
        .iter()
        .map(|device| (device.name(), device.missing()))
        .filter(|(_, missing)| !missing.is_empty())
        .collect();
    let listed: Vec<(&str, Vec<&str>)> =
        INCOMPLETE.iter().map(|(name, missing)| (*name, missing.to_vec())).collect();
    assert_eq!(incomplete, listed);
}

#[test]
fn a_device_makes_a_simulation_exactly_if_nothing_is_missing() {
    for device in all() {
        let overrides = Overrides::default();
        let error = match device.kind() {
            Kind::Disk => device.disk(&overrides).err(),
            Kind::Nand | Kind::Nor => device.nand(&overrides).err(),
        };
        assert_eq!(error.is_none(), device.missing().is_empty(), "{}: {error:?}", device.name());
        if let Some(error) = error {
            let text = error.to_string();
            assert!(text.contains(device.name()), "{text}");
            assert!(device.missing().iter().all(|figure| text.contains(figure)), "{text}");
        }
    }
}

#[test]
fn the_geometry_holds_the_bytes_that_the_model_is_sold_with() {
    let mib = |name: &str| find(name).and_then(|device| device.capacity_bytes()).map(|b| b >> 20);
    assert_eq!(mib("winbond-w25n01gv"), Some(128));
    assert_eq!(mib("winbond-w25q128jv"), Some(16));
    assert_eq!(mib("toshiba-tc58dvg02a1ft00"), Some(128));
    assert_eq!(mib("toshiba-tc58nvg3s0f"), Some(1024));
    assert_eq!(mib("samsung-k9wag08u1a"), Some(2048));
    assert_eq!(mib("samsung-k9gag08u0m"), Some(2048));
    assert_eq!(mib("micron-mt29f4g08aaa"), Some(512));
    assert_eq!(mib("femu-slc"), Some(16_384));
    assert_eq!(mib("nvmevirt-970-pro"), None);
}

#[test]
fn a_name_is_found_and_a_similar_one_suggested() {
    assert_eq!(find("capsule").map(|device| device.maker()), Some("Toshiba"));
    assert!(find("capsul").is_none());
    assert!(find("").is_none());
    assert_eq!(near("winbond-w25n01gw").first().map(String::as_str), Some("winbond-w25n01gv"));
    assert_eq!(near("Winbond-W25N01GV").first().map(String::as_str), Some("winbond-w25n01gv"));
    assert_eq!(near("w25n01gv").first().map(String::as_str), Some("winbond-w25n01gv"));
    assert_eq!(near("toshiba").len(), 2);
    assert_eq!(near("mqsim").first().map(String::as_str), Some("mqsim-mlc"));
    assert!(near("winbond").len() <= 3);
    assert_eq!(near("a hard disk of the seventies"), Vec::<&str>::new());
    assert_eq!(near(""), Vec::<&str>::new());
    assert_eq!(near(&"x".repeat(1 << 20)), Vec::<&str>::new());
}

#[test]
fn an_entry_goes_out_as_json_with_every_figure() {
    let device = find("toshiba-tc58dvg02a1ft00").unwrap();
    let json = serde_json::to_value(device).unwrap();
    assert_eq!(json["name"], "toshiba-tc58dvg02a1ft00");
    assert_eq!(json["kind"], "nand");
    assert_eq!(json["missing"], serde_json::json!([]));
    let figures = json["figures"].as_array().unwrap();
    assert_eq!(figures.len(), device.figures().len());
    let per_byte = figures.iter().find(|figure| figure["name"] == "program_per_byte").unwrap();
    assert_eq!(
        *per_byte,
        serde_json::json!({
            "name": "program_per_byte",
            "value": 1.5,
            "unit": "us/B",
            "source": "LA-Tree (VLDB 2009), table 2",
            "kind": "paper",
        })
    );
}
