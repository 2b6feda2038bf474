//! What is made, opened, replaced and refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::Path;

use common::{Scratch, other_part, other_process};
use device::{Cause, Geometry, GeometryFault, Nand, NandCosts, Page, Request, Sector, Sectors};
use flashtree_file::{
    DiskOptions, EngineChoice, Error, Existing, FileDisk, IN_FLIGHT_MOST, NandFile, NandOptions,
    is_nand_file, is_page_file,
};
use store::{PageFile, PageFileOptions};

fn create(path: &Path, existing: Existing) -> Result<FileDisk, Error> {
    FileDisk::create(path, 1 << 20, &DiskOptions { existing, ..DiskOptions::default() })
}

fn create_nand(path: &Path, existing: Existing) -> Result<NandFile, Error> {
    let geometry = Geometry::new(512, 16, 8).unwrap();
    NandFile::create(path, geometry, &NandOptions { existing, ..NandOptions::default() })
}

fn open(path: &Path) -> Result<FileDisk, Error> {
    FileDisk::open(path, &DiskOptions::default())
}

fn open_nand(path: &Path) -> Result<NandFile, Error> {
    NandFile::open(path, &NandOptions::default())
}

const EVERY: [Existing; 3] = [Existing::Keep, Existing::ReplaceOurs, Existing::Overwrite];

#[test]
fn a_file_in_use_is_refused_to_every_other_handle() {
    let scratch = Scratch::new();
    let (disk, chip) = (scratch.path("disk"), scratch.path("chip"));
    let holders = (create(&disk, Existing::Keep).unwrap(), create_nand(&chip, Existing::Keep));
    for path in [&disk, &chip] {
        assert!(matches!(open(path), Err(Error::InUse { .. })));
        assert!(matches!(open_nand(path), Err(Error::InUse { .. })));
        assert!(matches!(create(path, Existing::Overwrite), Err(Error::InUse { .. })));
        assert!(matches!(create_nand(path, Existing::Overwrite), Err(Error::InUse { .. })));
    }
    assert!(open(&disk).unwrap_err().to_string().contains("disk: it is in use"));
    drop(holders);
    assert!(open(&disk).is_ok() && open_nand(&chip).is_ok());
}

#[test]
fn a_file_in_use_is_refused_to_another_process() {
    if let Some(path) = other_part() {
        println!("{:?}", open(&path).map(|_| ()));
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.path("disk");
    let disk = create(&path, Existing::Keep).unwrap();
    let opened_elsewhere = || {
        let mut other = other_process("a_file_in_use_is_refused_to_another_process", &path);
        String::from_utf8(other.output().unwrap().stdout).unwrap()
    };
    let refused = opened_elsewhere();
    assert!(refused.contains("Err(InUse"), "{refused}");
    drop(disk);
    let opened = opened_elsewhere();
    assert!(opened.contains("Ok(())"), "{opened}");
}

/// Opens files until the process may open no more, and then makes room for one.
fn leave_room_for_one_file() -> Vec<fs::File> {
    let mut files: Vec<_> = std::iter::from_fn(|| fs::File::open("/dev/null").ok()).collect();
    files.pop();
    files
}

#[test]
fn where_the_kernel_gives_no_io_uring_threads_do_the_work() {
    if let Some(path) = other_part() {
        let _files = leave_room_for_one_file();
        let with = |engine| FileDisk::open(&path, &DiskOptions { engine, ..Default::default() });
        let refused = matches!(with(EngineChoice::IoUring), Err(Error::NoRing(_)));
        println!("refused {refused}, engine {:?}", with(EngineChoice::Any).unwrap().engine());
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.path("disk");
    drop(create(&path, Existing::Keep).unwrap());
    let test = other_process("where_the_kernel_gives_no_io_uring_threads_do_the_work", &path);
    // The queues of io_uring are one more open file, which is refused here.
    let mut few = std::process::Command::new("sh");
    few.args(["-c", "ulimit -n 40 && exec \"$0\" \"$@\""]);
    few.arg(test.get_program()).args(test.get_args());
    few.envs(test.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = String::from_utf8(few.output().unwrap().stdout).unwrap();
    assert!(output.contains("refused true, engine Threads"), "{output}");
}

#[test]
fn what_is_not_ours_is_not_written_unless_that_is_wanted() {
    let scratch = Scratch::new();
    for (name, content) in [
        ("text", b"dear diary".to_vec()),
        ("empty", Vec::new()),
        ("zeros", vec![0; 1 << 20]),
        ("near", b"flshtree\nflshtree\nflshnand".to_vec()),
    ] {
        let path = scratch.path(name);
        fs::write(&path, &content).unwrap();
        for existing in [Existing::Keep, Existing::ReplaceOurs] {
            assert!(create(&path, existing).is_err(), "{name}");
            assert!(create_nand(&path, existing).is_err(), "{name}");
        }
        assert!(matches!(create(&path, Existing::ReplaceOurs), Err(Error::NotOurs { .. })));
        assert!(matches!(create(&path, Existing::Keep), Err(Error::Exists { .. })));
        assert_eq!(fs::read(&path).unwrap(), content, "{name} was changed");
        drop(create(&path, Existing::Overwrite).unwrap());
        assert_eq!(fs::read(&path).unwrap(), vec![0; 1 << 20], "{name}");
    }
}

#[test]
fn the_two_kinds_of_files_do_not_replace_each_other() {
    let scratch = Scratch::new();
    let chip = scratch.path("chip");
    drop(create_nand(&chip, Existing::Keep).unwrap());
    assert!(is_nand_file(&fs::read(&chip).unwrap()));
    assert!(matches!(create(&chip, Existing::ReplaceOurs), Err(Error::NotOurs { .. })));
    drop(create_nand(&chip, Existing::ReplaceOurs).unwrap());
    drop(create(&chip, Existing::Overwrite).unwrap());
    assert!(matches!(create_nand(&chip, Existing::ReplaceOurs), Err(Error::NotOurs { .. })));
}

/// Makes an empty page file.
fn page_file(path: &Path, sector_bytes: u32) {
    let options = DiskOptions { sector_bytes, ..DiskOptions::default() };
    let disk = FileDisk::create(path, 256 * u64::from(sector_bytes), &options).unwrap();
    let options = PageFileOptions::new(sector_bytes.min(4096), 16 << 20);
    drop(PageFile::create(Box::new(disk), &options).unwrap());
}

#[test]
fn a_page_file_is_recognised_and_replaced_by_zeros() {
    for sector_bytes in [512, 4096, 1 << 20] {
        let scratch = Scratch::new();
        let path = scratch.path("index");
        page_file(&path, sector_bytes);
        assert!(is_page_file(&fs::read(&path).unwrap()), "sectors of {sector_bytes}");
        assert!(matches!(create(&path, Existing::Keep), Err(Error::Exists { .. })));
        let mut disk = create(&path, Existing::ReplaceOurs).unwrap();
        let mut content = vec![9; 1 << 20];
        let whole = Request { first: Sector(0), offset: 0, into: &mut content };
        disk.read(&mut [whole], Cause::Lookup).unwrap();
        assert!(content.iter().all(|byte| *byte == 0), "old bytes are left");
    }
}

#[test]
fn the_user_may_tell_what_is_ours() {
    let scratch = Scratch::new();
    let path = scratch.path("disk");
    fs::write(&path, b"mine").unwrap();
    let options = DiskOptions { recognises: |head| head == b"mine", ..DiskOptions::default() };
    drop(FileDisk::create(&path, 8192, &options).unwrap());
    let again = FileDisk::create(&path, 8192, &options);
    assert!(matches!(again, Err(Error::NotOurs { .. })), "{again:?}");
}

#[test]
fn what_is_no_file_is_never_opened() {
    let scratch = Scratch::new();
    for path in [scratch.folder(), Path::new("/dev/null"), Path::new("/dev/zero")] {
        for existing in EVERY {
            assert!(create(path, existing).is_err(), "{}", path.display());
            assert!(create_nand(path, existing).is_err(), "{}", path.display());
        }
        let overwritten = create(path, Existing::Overwrite);
        assert!(matches!(overwritten, Err(Error::NotAFile { .. })), "{overwritten:?}");
        assert!(matches!(open(path), Err(Error::NotAFile { .. })));
        assert!(matches!(open_nand(path), Err(Error::NotAFile { .. })));
    }
    let absent = scratch.path("absent");
    assert!(matches!(open(&absent), Err(Error::Missing { .. })));
    assert!(matches!(open_nand(&absent), Err(Error::Missing { .. })));
    let nowhere = scratch.path("no/folder/here");
    assert!(matches!(create(&nowhere, Existing::Keep), Err(Error::Missing { .. })));
}

#[test]
fn numbers_that_make_no_disk_are_refused_before_anything_is_touched() {
    let scratch = Scratch::new();
    let path = scratch.path("disk");
    let with = |bytes, change: fn(&mut DiskOptions)| {
        let mut options = DiskOptions { existing: Existing::Overwrite, ..DiskOptions::default() };
        change(&mut options);
        FileDisk::create(&path, bytes, &options).unwrap_err()
    };
    for bytes in [0, 1, 4095, 4097, u64::MAX] {
        assert!(matches!(with(bytes, |_| ()), Error::Length { unit: 4096, .. }), "{bytes}");
    }
    let beyond = with(1 << 63, |_| ());
    assert!(matches!(beyond, Error::Device(device::Error::Geometry(_))), "{beyond:?}");
    for sector_bytes in [0, 32, 1000, 1 << 21] {
        let mut options = DiskOptions { sector_bytes, ..DiskOptions::default() };
        options.existing = Existing::Overwrite;
        let refused = FileDisk::create(&path, 1 << 20, &options).unwrap_err();
        let fault = GeometryFault::SectorBytes(sector_bytes);
        assert!(matches!(refused, Error::Device(device::Error::Geometry(f)) if f == fault));
        assert!(FileDisk::open(&path, &options).is_err());
    }
    assert!(matches!(with(4096, |options| options.in_flight = 0), Error::InFlight { .. }));
    let many = with(4096, |options| options.in_flight = IN_FLIGHT_MOST + 1);
    assert!(matches!(many, Error::InFlight { asked: 65, most: 64 }), "{many:?}");
    assert!(!path.exists());
}

#[test]
fn a_file_for_which_there_is_no_room_is_not_left_behind() {
    let scratch = Scratch::new();
    let path = scratch.path("disk");
    let refused = FileDisk::create(&path, 1 << 62, &DiskOptions::default());
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    assert!(!path.exists());
}

#[test]
fn a_file_that_can_not_be_replaced_for_want_of_room_keeps_what_it_holds() {
    let scratch = Scratch::new();
    let path = scratch.path("disk");
    page_file(&path, 4096);
    let before = fs::read(&path).unwrap();
    for existing in [Existing::ReplaceOurs, Existing::Overwrite] {
        let options = DiskOptions { existing, ..DiskOptions::default() };
        let refused = FileDisk::create(&path, 1 << 62, &options);
        assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
        assert!(fs::read(&path).unwrap() == before, "the file was changed");
    }
}

#[test]
fn a_link_that_leads_nowhere_is_no_file() {
    let scratch = Scratch::new();
    let link = scratch.path("link");
    std::os::unix::fs::symlink(scratch.path("absent"), &link).unwrap();
    for existing in [Existing::ReplaceOurs, Existing::Overwrite] {
        assert!(matches!(create(&link, existing), Err(Error::NotAFile { .. })));
        assert!(matches!(create_nand(&link, existing), Err(Error::NotAFile { .. })));
    }
    assert!(!scratch.path("absent").exists());
}

#[test]
fn a_file_that_is_no_whole_number_of_sectors_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.path("disk");
    for bytes in [0, 1, 4095, 12_289] {
        fs::write(&path, vec![1; bytes]).unwrap();
        assert!(matches!(open(&path), Err(Error::Length { .. })), "{bytes}");
        assert_eq!(fs::read(&path).unwrap(), vec![1; bytes]);
    }
    fs::write(&path, vec![1; 12_288]).unwrap();
    assert_eq!(open(&path).unwrap().geometry().sectors(), 3);
}

#[test]
fn a_small_sector_goes_through_the_page_cache_if_the_file_system_has_larger_units() {
    let scratch = Scratch::new();
    let path = scratch.path("disk");
    let options = DiskOptions { sector_bytes: 64, ..DiskOptions::default() };
    let mut disk = FileDisk::create(&path, 6400, &options).unwrap();
    let transfer = disk.transfer().to_string();
    assert!(transfer.starts_with("through the page cache: "), "{transfer}");
    disk.write(Sector(99), &[5; 64], Cause::Update).unwrap();
    drop(disk);
    assert_eq!(fs::read(&path).unwrap()[6336..], [5; 64]);
}

/// `FLASHTREE_BLOCK_DEVICE=/dev/loop0 cargo test -p flashtree-file --test opening -- --ignored`
#[test]
#[ignore = "needs root and a block device of 1 MiB or more that may be overwritten"]
fn a_block_device_is_a_disk() {
    let path = std::env::var_os("FLASHTREE_BLOCK_DEVICE").unwrap();
    let path = Path::new(&path);
    fs::write(path, [7; 8192]).unwrap();
    assert!(matches!(create(path, Existing::ReplaceOurs), Err(Error::NotOurs { .. })));
    assert!(matches!(create_nand(path, Existing::Overwrite), Err(Error::NotRegular { .. })));
    let mut disk = create(path, Existing::Overwrite).unwrap();
    assert!(matches!(open(path), Err(Error::InUse { .. })));
    assert_eq!(disk.geometry().bytes(), 1 << 20);
    let mut content = vec![9; 1 << 20];
    let whole = Request { first: Sector(0), offset: 0, into: &mut content };
    disk.read(&mut [whole], Cause::Lookup).unwrap();
    assert!(content.iter().all(|byte| *byte == 0), "old bytes are left");
    disk.write(Sector(3), &[4; 4096], Cause::Update).unwrap();
    disk.trim(Sector(0), 2, Cause::Update).unwrap();
    disk.flush(Cause::Flush).unwrap();
    drop(disk);
    let mut disk = open(path).unwrap();
    println!("{disk:?}");
    let mut sector = [0; 4096];
    let request = Request { first: Sector(3), offset: 0, into: &mut sector };
    disk.read(&mut [request], Cause::Lookup).unwrap();
    assert_eq!(sector, [4; 4096]);
    let too_much = disk.geometry().bytes() + 4096;
    drop(disk);
    let options = DiskOptions { existing: Existing::Overwrite, ..DiskOptions::default() };
    let refused = FileDisk::create(path, too_much, &options);
    assert!(matches!(refused, Err(Error::TooSmall { .. })), "{refused:?}");
}

#[test]
fn costs_that_are_given_are_charged_and_time_is_measured_otherwise() {
    let scratch = Scratch::new();
    let time = |costs| {
        let options = NandOptions { costs, existing: Existing::Overwrite, ..Default::default() };
        let geometry = Geometry::new(512, 16, 8).unwrap();
        let mut chip = NandFile::create(&scratch.path("chip"), geometry, &options).unwrap();
        chip.program(Page(0), 0, &[1; 512], &[], Cause::Update).unwrap();
        chip.meter().unwrap().time_ns()
    };
    let mut costs = NandCosts::default();
    costs.program.time.fixed = 1_234_567_890_123;
    assert_eq!(time(Some(costs)), 1_234_567_890_123);
    assert!((1..1_000_000_000_000).contains(&time(None)));
}
