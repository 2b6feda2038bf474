//! Chips out of the catalogue, for databases on an imitated one.

use chips::{Chip, Device, Overrides};
use lab::DEFAULT_CHIP;
use spec::{Spec, parse_count};

use crate::failure::FileFailure;

/// The chip `spec`, or the usual one, of which at most `size_bytes` are used.
///
/// # Errors
/// [`FileFailure::Chip`]: there is no such chip, or the spec makes none.
pub(super) fn find(spec: Option<&str>, size_bytes: Option<u64>) -> Result<Chip, FileFailure> {
    let text = spec.unwrap_or(DEFAULT_CHIP);
    let refused = |words: &dyn std::fmt::Display| FileFailure::Chip(words.to_string());
    let spec = Spec::parse(text).map_err(|error| refused(&error))?;
    let mut overrides = Overrides { size_bytes, ..Overrides::default() };
    for (name, value) in &spec.parameters {
        set(&mut overrides, name, value).map_err(FileFailure::Chip)?;
    }
    device(spec.name)?.nand(&overrides).map_err(|error| refused(&error))
}

fn device(name: &str) -> Result<&'static Device, FileFailure> {
    chips::find(name).ok_or_else(|| {
        let near = spec::suggestion(&chips::near(name), &[]);
        FileFailure::Chip(format!("no chip is called \"{name}\"; {near}"))
    })
}

fn set(overrides: &mut Overrides, name: &str, value: &str) -> Result<(), String> {
    if name == "spare" {
        overrides.spare = Some(match value {
            "on" => true,
            "off" => false,
            _ => return Err(format!("spare={value}: expected on or off")),
        });
        return Ok(());
    }
    let number =
        parse_count(value).ok_or_else(|| format!("{name}={value}: expected a whole number"))?;
    match name {
        "blocks" => overrides.blocks = Some(number),
        "programs" => overrides.programs = Some(number),
        "endurance" => overrides.endurance = Some(number),
        _ => {
            return Err(format!(
                "there is no parameter {name}; there are blocks, spare, programs, endurance"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn chips_come_from_the_catalogue_and_can_be_made_smaller() {
        let chip = find(Some("winbond-w25n01gv:blocks=64,endurance=100"), None).unwrap();
        assert_eq!((chip.geometry.blocks(), chip.endurance), (64, Some(100)));
        assert_eq!(find(None, Some(8 << 20)).unwrap().geometry.blocks(), 64);
        for wrong in ["winbond-w25n01gw", "winbond-w25n01gv:block=3", "nandsim:blocks=x", ":"] {
            assert!(find(Some(wrong), None).is_err(), "{wrong}");
        }
    }
}
