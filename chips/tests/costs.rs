//! The cost functions give the published figures; the numbers here were computed by hand.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use device::{Charge, Cost, DiskCosts, NandCosts, ProgramOrder};
use flashtree_chips::{CatalogueError, Device, DiskTiming, Overrides, find};

fn chip(name: &str) -> flashtree_chips::Chip {
    find(name).unwrap().nand(&Overrides::default()).unwrap()
}

fn nand(name: &str) -> NandCosts {
    chip(name).costs
}

fn disk(name: &str) -> DiskCosts {
    match find(name).unwrap().disk(&Overrides::default()).unwrap().timing {
        DiskTiming::Costs(costs) => costs,
        DiskTiming::SolidState(drive) => panic!("{name} is {drive:?}"),
    }
}

fn nanoseconds(cost: Cost, bytes: u64) -> u64 {
    cost.charge(bytes, 1).time_ns
}

#[test]
fn whole_page_costs_do_not_depend_on_the_bytes() {
    for bytes in [1, 512, 2048] {
        let costs = nand("samsung-k9wag08u1a");
        assert_eq!(nanoseconds(costs.read, bytes), 80_000);
        assert_eq!(nanoseconds(costs.program, bytes), 200_000);
        assert_eq!(nanoseconds(costs.erase, 0), 1_500_000);
        let costs = nand("samsung-k9gag08u0m");
        assert_eq!(nanoseconds(costs.read, bytes), 165_600);
        assert_eq!(nanoseconds(costs.program, bytes), 905_800);
        assert_eq!(nanoseconds(costs.erase, 0), 1_500_000);
    }
    let costs = nand("capsule");
    assert_eq!(costs.read.charge(512, 1), Charge { time_ns: 969_000, energy_pj: 57_830_000 });
    assert_eq!(costs.program.charge(512, 1), Charge { time_ns: 1_081_000, energy_pj: 73_790_000 });
    let costs = nand("samsung-k9k1g08r0b");
    assert_eq!(costs.read.charge(512, 1), Charge { time_ns: 15_000, energy_pj: 740_000 });
    assert_eq!(costs.program.charge(512, 1), Charge { time_ns: 200_000, energy_pj: 9_900_000 });
    assert_eq!(costs.erase.charge(0, 1), Charge { time_ns: 2_000_000, energy_pj: 99_000_000 });
}

#[test]
fn the_toshiba_chip_costs_a_fixed_part_and_a_part_for_each_byte() {
    let costs = nand("toshiba-tc58dvg02a1ft00");
    // 69 us + 512 x 1.7 us; 4 uJ + 512 x 0.1 uJ.
    assert_eq!(costs.read.charge(512, 1), Charge { time_ns: 939_400, energy_pj: 55_200_000 });
    // 274 us + 512 x 1.5 us; 24 uJ + 512 x 0.09 uJ.
    assert_eq!(costs.program.charge(512, 1), Charge { time_ns: 1_042_000, energy_pj: 70_080_000 });
    // An entry of 8 bytes alone: 274 us + 12 us; 24 uJ + 0.72 uJ.
    assert_eq!(costs.program.charge(8, 1), Charge { time_ns: 286_000, energy_pj: 24_720_000 });
    assert_eq!(costs.read.charge(8, 1), Charge { time_ns: 82_600, energy_pj: 4_800_000 });
    assert_eq!(nanoseconds(costs.erase, 0), 2_000_000);
    assert!(costs.energy_known());
    assert!(chip("toshiba-tc58dvg02a1ft00").geometry.programs_per_page() > 1);
}

#[test]
fn the_bus_cycle_is_charged_for_each_byte() {
    // 60 us + 2048 x 19.231 ns; 250 us + the same.
    let costs = nand("winbond-w25n01gv");
    assert_eq!(nanoseconds(costs.read, 2048), 60_000 + 39_385);
    assert_eq!(nanoseconds(costs.program, 2048), 250_000 + 39_385);
    assert_eq!(nanoseconds(costs.erase, 0), 2_000_000);
    assert!(!costs.energy_known());
    // 25 us + 2112 x 25 ns.
    assert_eq!(nanoseconds(nand("micron-mt29f4g08aaa").read, 2112), 25_000 + 52_800);
    // Its own cycle for each direction.
    let costs = nand("nandsim");
    assert_eq!(nanoseconds(costs.read, 512), 25_000 + 512 * 40);
    assert_eq!(nanoseconds(costs.program, 512), 200_000 + 512 * 50);
}

#[test]
fn typical_times_are_charged_where_they_are_known_else_the_most() {
    // 250 typical, 700 most; the read has only a most, with error correction on.
    let costs = nand("winbond-w25n512gv");
    assert_eq!(costs.program.time.fixed, 250_000);
    assert_eq!(costs.read.time.fixed, 60_000);
    // Least 56.5, typical 80, most 106.
    assert_eq!(nand("femu-tlc").read.time.fixed, 80_000);
    assert_eq!(nand("femu-tlc").program.time.fixed, 2_926_500);
}

#[test]
fn cards_cost_a_fixed_part_and_a_part_for_each_page_of_a_request() {
    let card = disk("sandisk-cf-512");
    for access in [card.read.random, card.read.sequential] {
        // 2884.53 + 92.41 N uJ; 18 ms for the first page.
        assert_eq!(access.charge(512, 1).energy_pj, 2_976_940_000);
        assert_eq!(access.charge(4096, 8).energy_pj, 3_623_810_000);
        assert_eq!(access.charge(512, 1).time_ns, 18_000_000);
        assert_eq!(access.charge(4096, 8).time_ns, 18_000_000 + 7 * 558_800);
    }
    assert_eq!(card.write.random.charge(512, 1).energy_pj, 6_266_500_000);
    assert_eq!(card.write.random.charge(512, 1).time_ns, 29_000_000);

    let card = disk("kingston-minisd-512");
    assert_eq!(card.read.random.charge(5120, 10).energy_pj, 306_590_000);
    assert_eq!(card.write.random.charge(5120, 10).energy_pj, 22_564_500_000);
    let (again, next) = (card.write.random.charge(512, 1), card.write.sequential.charge(512, 1));
    assert_eq!(again.time_ns, 193_000_000);
    assert_eq!(again.time_ns, 4 * next.time_ns);
    assert!(card.energy_known());
}

#[test]
fn four_numbers_tell_random_from_sequential_and_read_from_write() {
    let ssd = disk("mtron-msp-sata7525");
    assert_eq!(ssd.read.random.charge(512, 1).time_ns, 110_000);
    assert_eq!(ssd.read.sequential.charge(512, 1).time_ns, 280_000);
    assert_eq!(ssd.write.random.charge(512, 1).time_ns, 8_300_000);
    assert_eq!(ssd.write.sequential.charge(512, 1).time_ns, 70_000);
    // A random write of 8 pages: the first at random, seven in sequence.
    assert_eq!(ssd.write.random.charge(4096, 8).time_ns, 8_300_000 + 7 * 70_000);
    assert_eq!(ssd.write.sequential.charge(4096, 8).time_ns, 8 * 70_000);
    // A page after the first never costs more than the first.
    assert_eq!(ssd.read.random.charge(4096, 8).time_ns, 8 * 110_000);
    assert!(!ssd.energy_known());
    let geometry =
        find("mtron-msp-sata7525").unwrap().disk(&Overrides::default()).unwrap().geometry;
    assert_eq!((geometry.sector_bytes(), geometry.sectors()), (512, 31_250_000));
}

#[test]
fn a_chip_has_the_rules_of_its_entry() {
    let winbond = chip("winbond-w25n01gv");
    assert_eq!(winbond.geometry.blocks(), 1024);
    assert_eq!(winbond.geometry.programs_per_page(), 4);
    assert_eq!(winbond.geometry.spare_bytes(), 24, "64, of which the code takes the rest");
    assert_eq!(winbond.geometry.order(), ProgramOrder::Ascending);
    assert_eq!(winbond.bad_blocks_most, Some(20));
    assert_eq!(winbond.endurance, Some(100_000));
    assert_eq!(winbond.ecc_bits, Some(1));

    let nor = chip("winbond-w25q128jv");
    assert_eq!(nor.geometry.order(), ProgramOrder::Any);
    assert_eq!(nor.geometry.block_bytes(), 4096);
    assert_eq!(nor.geometry.spare_bytes(), 0);
    assert_eq!(nor.bad_blocks_most, None);

    let samsung = chip("samsung-k9gag08u0m");
    assert_eq!(samsung.geometry.blocks(), 4096);
    assert_eq!(samsung.geometry.programs_per_page(), 1);
    assert_eq!(samsung.endurance, None);
}

#[test]
fn overrides_replace_what_the_entry_says() {
    let device = find("winbond-w25n01gv").unwrap();
    let overrides = Overrides {
        blocks: Some(64),
        spare: Some(false),
        programs: Some(1),
        bad: Some(3),
        endurance: Some(10),
        ecc: Some(8),
        size_bytes: None,
    };
    let chip = device.nand(&overrides).unwrap();
    assert_eq!(chip.geometry.blocks(), 64);
    assert_eq!(chip.geometry.spare_bytes(), 0);
    assert_eq!(chip.geometry.programs_per_page(), 1);
    assert_eq!(chip.bad_blocks_most, Some(3));
    assert_eq!(chip.endurance, Some(10));
    assert_eq!(chip.ecc_bits, Some(8));
    assert_eq!(chip.costs, device.nand(&Overrides::default()).unwrap().costs);
}

#[test]
fn a_size_bounds_the_blocks_and_the_sectors() {
    let device = find("winbond-w25n01gv").unwrap();
    let sized = |size| device.nand(&Overrides { size_bytes: Some(size), ..Overrides::default() });
    let chip = sized(10 << 20).unwrap();
    assert_eq!(chip.geometry.blocks(), 80);
    assert_eq!(chip.bad_blocks_most, Some(2), "20 of 1024, in proportion, rounded up");
    assert_eq!(sized((1 << 20) + 5).unwrap().geometry.blocks(), 8);
    assert_eq!(sized(128 << 20).unwrap().geometry.blocks(), 1024);
    let error = sized((128 << 20) + 1).unwrap_err();
    assert!(matches!(error, CatalogueError::SizeTooLarge { most_bytes: 134_217_728, .. }));
    let error = sized(131_071).unwrap_err();
    assert!(matches!(error, CatalogueError::SizeTooSmall { least_bytes: 131_072, .. }));

    let device = find("mtron-msp-sata7525").unwrap();
    let sized = |size| device.disk(&Overrides { size_bytes: Some(size), ..Overrides::default() });
    assert_eq!(sized(5000).unwrap().geometry.sectors(), 9);
    assert!(matches!(sized(511).unwrap_err(), CatalogueError::SizeTooSmall { .. }));
    assert!(matches!(sized(u64::MAX).unwrap_err(), CatalogueError::SizeTooLarge { .. }));
}

#[test]
fn overrides_out_of_their_bounds_are_errors_that_name_them() {
    let device = find("winbond-w25n01gv").unwrap();
    let none = Overrides::default();
    let cases = [
        ("blocks", Overrides { blocks: Some(0), ..none }),
        ("blocks", Overrides { blocks: Some(1 << 32), ..none }),
        ("programs", Overrides { programs: Some(0), ..none }),
        ("programs", Overrides { programs: Some(65_536), ..none }),
        ("bad", Overrides { bad: Some(1024), ..none }),
        ("bad", Overrides { bad: Some(u64::MAX), ..none }),
        ("endurance", Overrides { endurance: Some(0), ..none }),
        ("endurance", Overrides { endurance: Some(u64::MAX), ..none }),
        ("ecc", Overrides { ecc: Some(1 << 16), ..none }),
    ];
    for (wanted, overrides) in cases {
        match device.nand(&overrides) {
            Err(CatalogueError::Override { name, .. }) => assert_eq!(name, wanted),
            other => panic!("{wanted}: {other:?}"),
        }
    }
    let many = Overrides { blocks: Some(u64::from(u32::MAX)), ..none };
    assert!(matches!(device.nand(&many), Err(CatalogueError::Geometry { .. })));
    let spare = Overrides { spare: Some(true), ..none };
    assert!(device.nand(&spare).is_ok());
    let nor = find("winbond-w25q128jv").unwrap().nand(&spare);
    assert!(matches!(nor, Err(CatalogueError::NoSpare { .. })));
    for overrides in [spare, many, Overrides { ecc: Some(1), ..none }] {
        let disk = find("sandisk-cf-512").unwrap().disk(&overrides);
        assert!(matches!(disk, Err(CatalogueError::OverrideNotForDisk { .. })));
    }
}

#[test]
fn a_chip_is_no_disk_and_a_disk_no_chip() {
    let none = Overrides::default();
    let chip = find("winbond-w25n01gv").unwrap().disk(&none);
    assert!(matches!(chip, Err(CatalogueError::WrongKind { wanted: "a disk", .. })));
    let disk = find("intel-x25-m").unwrap().nand(&none);
    assert!(matches!(disk, Err(CatalogueError::WrongKind { wanted: "a chip", .. })));
}

#[test]
fn blocks_that_are_not_known_can_be_given() {
    let text = "name = 'mine'\nmaker = 'Me'\nmodel = 'One'\nkind = 'nand'\nabout = 'Mine.'\n\
        [figures]\n\
        page_bytes = { value = 2, unit = 'KiB', kind = 'assumed', source = 'mine' }\n\
        pages_per_block = { value = 64, kind = 'assumed', source = 'mine' }\n\
        read_most = { value = 25, unit = 'us', kind = 'assumed', source = 'mine' }\n\
        program_most = { value = 0.3, unit = 'ms', kind = 'assumed', source = 'mine' }\n\
        erase_most = { value = 2, unit = 'ms', kind = 'assumed', source = 'mine' }\n\
        read_energy = { value = 2, unit = 'nJ', kind = 'assumed', source = 'mine' }\n";
    let device = Device::from_toml(text).unwrap();
    assert_eq!(device.missing(), ["blocks"]);
    assert_eq!(
        device.nand(&Overrides::default()),
        Err(CatalogueError::Lacks { device: "mine".into(), figures: vec!["blocks"] })
    );
    let chip = device.nand(&Overrides { blocks: Some(16), ..Overrides::default() }).unwrap();
    assert_eq!(chip.geometry.bytes(), 2 << 20);
    assert_eq!(chip.costs.program.time.fixed, 300_000);
    assert_eq!(chip.costs.read.energy, None, "the energy of a program is not known");
}
