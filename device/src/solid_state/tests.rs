use super::SolidState;
use crate::{Error, GeometryFault, SectorGeometry};

/// 2 channels of 2 chips with blocks of 4 pages of 2 KiB: stripes of 32 KiB, units of 16 KiB.
const DRIVE: SolidState = SolidState {
    drive_bytes: 1 << 20,
    flash_bytes: (1 << 20) + (160 << 10),
    channels: 2,
    chips_per_channel: 2,
    page_bytes: 2048,
    spare_bytes: 64,
    pages_per_block: 4,
    read_ns: 25_000,
    program_ns: 200_000,
    erase_ns: 1_500_000,
    bus_ps_per_byte: 25_000,
    mapping_unit_bytes: 16 << 10,
    write_cache_bytes: 64 << 10,
    command_ns: 20_000,
    link_ps_per_byte: 6667,
    queue_depth: 1,
};

fn sectors(bytes: u64) -> SectorGeometry {
    SectorGeometry::new(2048, bytes / 2048).unwrap()
}

#[test]
fn a_part_of_a_drive_has_all_of_its_spare_flash() {
    assert_eq!((DRIVE.chips(), DRIVE.stripe_bytes(), DRIVE.units_per_stripe()), (4, 32 << 10, 2));
    assert_eq!(DRIVE.stripes(&sectors(1 << 20)), (32, 5));
    assert_eq!(DRIVE.stripes(&sectors(40 << 10)), (2, 5));
}

#[test]
fn a_drive_that_cannot_exist_is_refused_with_what_does_not_fit() {
    assert_eq!(DRIVE.check(&sectors(1 << 20)), Ok(()));
    let refused = |drive: SolidState, bytes: u64| {
        matches!(drive.check(&sectors(bytes)), Err(Error::Geometry(GeometryFault::SolidState(_))))
    };
    assert!(refused(DRIVE, 2 << 20));
    for broken in [
        SolidState { channels: 0, ..DRIVE },
        SolidState { chips_per_channel: u32::MAX, ..DRIVE },
        SolidState { pages_per_block: 0, ..DRIVE },
        SolidState { queue_depth: 0, ..DRIVE },
        SolidState { page_bytes: 512, ..DRIVE },
        SolidState { page_bytes: 0, ..DRIVE },
        SolidState { mapping_unit_bytes: 0, ..DRIVE },
        SolidState { mapping_unit_bytes: 3000, ..DRIVE },
        SolidState { mapping_unit_bytes: 64 << 10, ..DRIVE },
        SolidState { write_cache_bytes: 16 << 10, ..DRIVE },
        SolidState { write_cache_bytes: u64::MAX, ..DRIVE },
        SolidState { flash_bytes: 1 << 20, ..DRIVE },
    ] {
        assert!(refused(broken, 1 << 20), "{broken:?}");
    }
}
