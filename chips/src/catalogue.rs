//! All entries, embedded in the program.

use std::sync::LazyLock;

use crate::Device;

macro_rules! entries {
    ($($name:literal,)*) => {
        /// The text of each entry, by the names of the files in `devices/`.
        pub(crate) const ENTRIES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../devices/", $name, ".toml"))),)*];
    };
}

// Sorted and complete: a test compares it with the folder.
entries![
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

/// An entry that can't be read is left out; a test holds that there is none.
static DEVICES: LazyLock<Vec<Device>> =
    LazyLock::new(|| ENTRIES.iter().filter_map(|(_, text)| Device::from_toml(text).ok()).collect());

/// All devices, sorted by name.
#[must_use]
pub fn all() -> &'static [Device] {
    &DEVICES
}

/// The device of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Device> {
    let devices = all();
    let place = devices.binary_search_by(|device| device.name().cmp(name)).ok()?;
    devices.get(place)
}

/// Names of devices that are like `name`, the most alike first, at most three.
#[must_use]
pub fn near(name: &str) -> Vec<String> {
    spec::near(name, all().iter().map(Device::name))
}

#[cfg(test)]
mod tests {
    use super::ENTRIES;
    use crate::Device;

    #[test]
    fn the_list_of_entries_is_sorted_and_complete() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/devices");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let listed: Vec<String> = ENTRIES.iter().map(|(name, _)| format!("{name}.toml")).collect();
        assert_eq!(listed, files);
        assert!(ENTRIES.is_sorted_by(|left, right| left.0 < right.0));
    }

    #[test]
    fn every_entry_is_read_and_has_the_name_of_its_file() {
        for (name, text) in ENTRIES {
            let device = Device::from_toml(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(device.name(), *name);
        }
        assert_eq!(super::all().len(), ENTRIES.len());
    }
}
