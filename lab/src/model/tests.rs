//! Tests of devices and their specs.

use device::{Block, Medium};

use super::Model;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::tests::plan;

fn plan_on(device: &str) -> Plan {
    Plan { device: device.to_string(), ..plan("uniform", &[]) }
}

fn read(device: &str) -> Result<Model> {
    Model::read(&plan_on(device))
}

/// The error, and the names that may have been meant.
fn told(error: &Error) -> String {
    let meant = error.meant().map(|(near, known)| spec::suggestion(near, known));
    format!("{error}; {}", meant.unwrap_or_default())
}

fn error_of(device: &str) -> Error {
    read(device).expect_err(device)
}

fn bad_blocks(model: &Model) -> Vec<bool> {
    let Medium::Nand(mut chip) = model.stand_in().unwrap() else { panic!("no chip") };
    (0..chip.geometry().blocks()).map(|block| chip.is_bad(Block(block)).unwrap()).collect()
}

#[test]
fn a_chip_is_made_as_its_spec_says() {
    let model = read("winbond-w25n01gv:blocks=64,programs=2").unwrap();
    let Medium::Nand(chip) = model.stand_in().unwrap() else { panic!("no chip") };
    assert_eq!((chip.geometry().blocks(), chip.geometry().programs_per_page()), (64, 2));
    let small = Plan { size_bytes: Some(1 << 20), ..plan_on("winbond-w25n01gv") };
    assert_eq!(Model::read(&small).unwrap().bytes(), 1 << 20);
}

#[test]
fn bad_blocks_are_drawn_by_the_seed() {
    let bad = |seed| {
        let plan = Plan { seed, ..plan_on("winbond-w25n01gv:bad=7") };
        bad_blocks(&Model::read(&plan).unwrap())
    };
    assert_eq!(bad(1).iter().filter(|bad| **bad).count(), 7);
    assert_eq!(bad(1), bad(1));
    assert_ne!(bad(1), bad(2));
}

#[test]
fn a_chip_in_a_file_has_the_bad_blocks_of_the_simulated_one() {
    let folder = tempfile::tempdir().unwrap();
    let device = format!("nand-file:{}", folder.path().join("chip").display());
    let chip = Some("winbond-w25n01gv:blocks=64,bad=5".to_string());
    let model = Model::read(&Plan { chip, ..plan_on(&device) }).unwrap();
    assert!(!folder.path().join("chip").exists(), "reading a spec makes no file");
    let Medium::Nand(mut chip) = model.make().unwrap() else { panic!("no chip") };
    let bad: Vec<bool> = (0..64).map(|block| chip.is_bad(Block(block)).unwrap()).collect();
    assert_eq!(bad, bad_blocks(&model));
    assert_eq!(bad.iter().filter(|bad| **bad).count(), 5);
}

#[test]
fn wrong_devices_are_refused_in_one_line_that_helps() {
    for (spec, part) in [
        ("winbond-w25n01gw", "winbond-w25n01gv"),
        ("no-such-thing-at-all", "flashtree devices"),
        ("winbond-w25n01gv:block=64", "blocks"),
        ("winbond-w25n01gv:blocks=0", "blocks"),
        ("winbond-w25n01gv:blocks=many", "whole number"),
        ("winbond-w25n01gv:spare=maybe", "on or off"),
        ("winbond-w25n01gv:blocks=1,blocks=2", "twice"),
        ("mtron-msp-sata7525:blocks=4", "means nothing for a disk"),
        ("file:", "file:PATH"),
        ("file", "file:PATH"),
        ("nand-file:", "nand-file:PATH"),
        ("nand-file", "nand-file:PATH"),
        ("no/such/file.toml", "no/such/file.toml"),
        ("no/such:file.toml:blocks=4", "no/such:file.toml"),
        ("", "name is missing"),
    ] {
        let line = told(&error_of(spec));
        assert!(line.contains(part), "{spec}: {line}");
        assert!(!line.contains('\n'), "{spec}: {line}");
    }
    for device in ["winbond-w25n01gv", "mtron-msp-sata7525", "file:disk"] {
        let small = Plan { size_bytes: Some(100), ..plan_on(device) };
        let error = Model::read(&small).expect_err(device);
        assert!(error.is_usage() && error.to_string().contains("too small"), "{error}");
    }
}

#[test]
fn a_chip_to_imitate_is_for_chips_in_files() {
    let chip = |device: &str, chip: &str| {
        let plan = Plan { chip: Some(chip.to_string()), ..plan_on(device) };
        told(&Model::read(&plan).expect_err(chip))
    };
    for device in ["winbond-w25n01gv", "file:disk", "mtron-msp-sata7525"] {
        assert!(chip(device, "winbond-w25n01gv").contains("nand-file:"), "{device}");
    }
    assert!(chip("nand-file:chip", "mtron-msp-sata7525").contains("not a chip"));
    assert!(chip("nand-file:chip", "winbond-w25n01gw").contains("winbond-w25n01gv"));
    assert!(chip("nand-file:chip", "winbond-w25n01gv:endurance=5").contains("endurance="));
    assert!(chip("nand-file:chip", "winbond-w25n01gv:ecc=5").contains("ecc="));
}

#[test]
fn every_device_of_the_catalogue_is_made_or_tells_which_figures_it_lacks() {
    for device in chips::all() {
        // A small part of each: tables of a whole one take their time.
        let small = Plan { size_bytes: Some(16 << 20), ..plan_on(device.name()) };
        match Model::read(&small) {
            Ok(model) => {
                assert!(device.missing().is_empty(), "{}", device.name());
                assert_eq!(model.is_chip(), device.kind().is_chip(), "{}", device.name());
                assert!(model.bytes() <= 16 << 20, "{}", device.name());
            }
            Err(error) => {
                assert!(!device.missing().is_empty(), "{}: {error}", device.name());
                let lacks = error.to_string();
                assert!(lacks.contains(device.missing()[0]), "{}: {lacks}", device.name());
            }
        }
    }
}

#[test]
fn a_device_of_ones_own_is_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.toml");
    std::fs::write(&path, "name = ").unwrap();
    let spec = path.to_str().unwrap();
    assert!(matches!(error_of(spec), Error::DeviceFile { .. }));
    std::fs::write(&path, [b'a', b'\n', 0xff]).unwrap();
    assert!(error_of(spec).to_string().contains("line 2"));
}
