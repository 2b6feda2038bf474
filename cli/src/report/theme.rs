//! The colours of the report, each for light and for dark pages.
//!
//! Plots are drawn in the light colours. A style sheet made from the same list replaces them by
//! the dark ones where the reader prefers those; so every colour stands here only once, and no
//! two light colours may be equal.

use std::fmt::Write;

use plotters::style::RGBColor;

/// One colour in its two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour {
    light: u32,
    dark: u32,
}

const fn colour(light: u32, dark: u32) -> Colour {
    Colour { light, dark }
}

impl Colour {
    /// The colour in which a plot is drawn.
    pub(crate) const fn drawn(self) -> RGBColor {
        let [_, red, green, blue] = self.light.to_be_bytes();
        RGBColor(red, green, blue)
    }

    /// The colour in which it is drawn, as plots and style sheets write it.
    pub(crate) fn hex(self) -> String {
        format!("#{:06X}", self.light)
    }
}

/// Text and axes.
pub(crate) const INK: Colour = colour(0x1B_1F_24, 0xE6_E9_ED);
/// Text that steps back.
pub(crate) const MUTED: Colour = colour(0x5B_65_70, 0x9A_A4_AF);
/// Lines behind the data.
pub(crate) const GRID: Colour = colour(0xE3_E7_EB, 0x2B_32_3A);
/// Text on a strong colour.
pub(crate) const ON_STRONG: Colour = colour(0xFF_FF_FE, 0x10_14_18);
/// Text on a pale colour.
pub(crate) const ON_PALE: Colour = colour(0x16_19_1D, 0x10_14_19);

/// The causes in the order of their numbers; true where text on the colour must be light.
const CAUSES: [(&str, Colour, bool); 9] = [
    ("lookup", colour(0x3B_7D_D8, 0x6B_A4_F0), true),
    ("update", colour(0xED_8F_3D, 0xF2_A1_5E), false),
    ("flush", colour(0xF3_C1_4F, 0xF4_CE_74), false),
    ("merge", colour(0x8A_65_BF, 0xB0_95_DD), true),
    ("reclamation", colour(0xCC_45_58, 0xE7_75_84), true),
    ("journal", colour(0x94_6B_54, 0xBC_98_83), true),
    ("checkpoint", colour(0x1F_8F_82, 0x4F_C0_B2), true),
    ("recovery", colour(0x94_A0_AC, 0x9B_A8_B6), false),
    ("load", colour(0x7A_B8_5C, 0x8F_CB_74), false),
];

/// A colour for what is none of the known causes.
const OTHER: (Colour, bool) = (colour(0xB4_BC_C4, 0x6C_77_82), false);

/// The colour of a cause, and the colour of text on it.
pub(crate) fn cause(name: &str) -> (Colour, Colour) {
    let known = CAUSES.iter().find(|(known, ..)| *known == name);
    let (colour, strong) = known.map_or(OTHER, |(_, colour, strong)| (*colour, *strong));
    (colour, if strong { ON_STRONG } else { ON_PALE })
}

/// Lines of trees, told apart by colour; those beyond the tenth begin again.
const TREES: [Colour; 10] = [
    colour(0x1D_5F_B4, 0x7F_B2_F5),
    colour(0xD4_5D_11, 0xF5_9B_5B),
    colour(0x2E_8B_57, 0x6C_CF_95),
    colour(0xB8_2E_4F, 0xF0_7F_9A),
    colour(0x6F_4A_A8, 0xBB_9F_EE),
    colour(0x00_8C_A0, 0x4F_CB_DD),
    colour(0x8A_6D_00, 0xE0_C2_4C),
    colour(0xC2_4F_A3, 0xEE_8F_D2),
    colour(0x5A_67_74, 0xA9_B5_C2),
    colour(0x7A_4A_2B, 0xC9_9A_7C),
];

/// The colour of the tree at `place`.
pub(crate) fn tree(place: usize) -> Colour {
    TREES[place % TREES.len()]
}

/// Blocks that were never erased.
pub(crate) const NEVER: Colour = colour(0xEC_EF_F2, 0x23_2A_31);

/// Steps of erases, from few to many.
pub(crate) const HEAT: [Colour; 7] = [
    colour(0xFB_E0_BF, 0x3D_23_4C),
    colour(0xF8_BF_8C, 0x6A_2B_60),
    colour(0xF1_99_69, 0x9B_3B_62),
    colour(0xE1_6E_5B, 0xC9_53_5B),
    colour(0xC6_48_5D, 0xE8_7A_50),
    colour(0x9B_2E_61, 0xF7_A9_60),
    colour(0x68_1C_59, 0xFD_DB_92),
];

fn all() -> impl Iterator<Item = Colour> {
    [INK, MUTED, GRID, ON_STRONG, ON_PALE, OTHER.0, NEVER]
        .into_iter()
        .chain(CAUSES.iter().map(|(_, colour, _)| *colour))
        .chain(TREES)
        .chain(HEAT)
}

/// The rules that turn the drawn colours into the dark ones.
pub(crate) fn dark_rules() -> String {
    let mut rules = String::new();
    for colour in all() {
        let (light, dark) = (colour.hex(), colour.dark);
        for part in ["fill", "stroke"] {
            // Writing to a string can't fail.
            let _ = writeln!(rules, "svg [{part}=\"{light}\"]{{{part}:#{dark:06X}}}");
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::{CAUSES, all, cause};

    #[test]
    fn every_cause_has_a_colour_of_its_own() {
        let names: Vec<_> = CAUSES.iter().map(|(name, ..)| *name).collect();
        let causes: Vec<_> = device::Cause::ALL.iter().map(|cause| cause.name()).collect();
        assert_eq!(names, causes);
        assert_ne!(cause("lookup").0, cause("unheard-of").0);
    }

    #[test]
    fn no_two_drawn_colours_are_equal() {
        let mut drawn: Vec<_> = all().map(|colour| colour.light).collect();
        let count = drawn.len();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), count);
    }
}
