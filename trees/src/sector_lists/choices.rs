//! What a tree on this store chooses when it is made, and the root record keeps.

/// The most units that the buffer can be given, and the most sectors.
pub(crate) const UNITS_MOST: u16 = 4096;
pub(crate) const LOG_SECTORS_MOST: u8 = 64;

/// Bytes of the shortest unit in the buffer, about.
const UNIT_BYTES: u64 = 12;

/// When the buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// With so many units.
    Units(u16),
    /// When it fills so many sectors.
    Sectors(u8),
}

impl Waits {
    /// Units that there can be, in sectors of so many bytes.
    pub(super) fn units(self, sector: u32) -> u64 {
        match self {
            Waits::Units(units) => units.into(),
            Waits::Sectors(sectors) => u64::from(sectors) * u64::from(sector) / UNIT_BYTES,
        }
    }
}

/// The form in which nodes stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As what was logged of them, in lists of sectors.
    Log,
    /// Each as a page of its own, written as a whole.
    Disk,
    /// Each as it costs less, by SWITCHMODE.
    SelfTuning {
        /// The counter has its printed form.
        is_printed: bool,
        /// A node that is split off begins in the mode of the other half, else in log mode.
        splits_alike: bool,
    },
}

/// Set if the buffer is counted in sectors, and there are modes.
const HAS_MODES: u16 = 1 << 15;
const MODE_SHIFT: u32 = 8;

/// The modes that tune themselves, among others.
const TUNING: u16 = 2;
const TUNING_END: u16 = 6;

/// The choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choices {
    /// The most sectors of a list.
    pub(crate) list: usize,
    pub(crate) waits: Waits,
    pub(crate) mode: Mode,
}

impl Choices {
    /// What a root record has beside the most sectors of a list.
    pub(super) fn pack(&self) -> u16 {
        let mode = match self.mode {
            Mode::Log => 0,
            Mode::Disk => 1,
            Mode::SelfTuning { is_printed, splits_alike } => {
                TUNING + u16::from(is_printed) + 2 * u16::from(splits_alike)
            }
        };
        match self.waits {
            Waits::Units(units) => units,
            Waits::Sectors(sectors) => HAS_MODES | mode << MODE_SHIFT | u16::from(sectors),
        }
    }

    /// What [`Choices::pack`] gave; `None` if it makes no sense.
    pub(super) fn unpack(list: usize, packed: u16) -> Option<Self> {
        if packed & HAS_MODES == 0 {
            let waits = Waits::Units(packed);
            let is_sound = (1..=UNITS_MOST).contains(&packed);
            return is_sound.then_some(Choices { list, waits, mode: Mode::Log });
        }
        let sectors = (packed & 0xFF) as u8;
        let mode = match (packed & !HAS_MODES) >> MODE_SHIFT {
            0 => Mode::Log,
            1 => Mode::Disk,
            packed @ TUNING..TUNING_END => Mode::SelfTuning {
                is_printed: packed & 1 != 0,
                splits_alike: (packed - TUNING) >> 1 != 0,
            },
            _ => return None,
        };
        let is_sound = (1..=LOG_SECTORS_MOST).contains(&sectors);
        is_sound.then_some(Choices { list, waits: Waits::Sectors(sectors), mode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_come_back_from_what_they_are_packed_to() {
        let waits = [Waits::Sectors(1), Waits::Sectors(LOG_SECTORS_MOST)];
        let tuning = |is_printed, splits_alike| Mode::SelfTuning { is_printed, splits_alike };
        let tunings = [(false, false), (true, false), (false, true), (true, true)];
        let modes = tunings.map(|(printed, alike)| tuning(printed, alike));
        for waits in waits {
            for mode in [Mode::Log, Mode::Disk].into_iter().chain(modes) {
                let choices = Choices { list: 3, waits, mode };
                assert_eq!(Choices::unpack(3, choices.pack()), Some(choices));
            }
        }
        let reserved = Choices { list: 3, waits: Waits::Units(60), mode: Mode::Log };
        assert_eq!(Choices::unpack(3, 60), Some(reserved));
        for damaged in [0, UNITS_MOST + 1, HAS_MODES, HAS_MODES | 65, HAS_MODES | 6 << 8 | 1] {
            assert_eq!(Choices::unpack(3, damaged), None);
        }
    }
}
