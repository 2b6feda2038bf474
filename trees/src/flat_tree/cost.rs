//! The tree's cost model: what a workload of random keys costs.
//!
//! `N` entries stand in `P` partitions, `m` updates fill the memory. A flush writes each partition
//! a fragment of `m / P` entries: its pages, half a page that stays empty, and a root. After it
//! partitions are merged until no more than `T` entries are pending, those with most first: so each
//! is merged after `A = 2 T / m + 1` flushes, `P / A` of them after each, and a merge reads the
//! bottom with `A` fragments and writes a bottom. `T` follows from the space and from the share of
//! updates that hide an entry.
//!
//! A lookup reads the leaf in which its key stands, and a fragment's root, unless the cache has it,
//! which is taken to hold any leaf alike. What updates bring into the cache, or push out, is not in
//! the model; nor is that merges in little memory read the same inner nodes more than once.

use store::PageFile;

use super::SPACE;
use super::make::{Plan, page_bytes};
use super::policy::{GARBAGE_SHARE, PAGES_A_FLUSH, PAGES_PART, PARTS_A_FLUSH, PENDING_MOST};
use super::runs::Form;
use index::random_keys::{OCCUPANCY, average_bytes};
use index::{MediumShape, Options, Prediction, Profile, Result};

/// What a run takes beside the pages that its entries fill: half a page, and a root.
const RUN_PAGES: f64 = 1.5;

/// Partitions that there are for each that has as many entries as it should.
const PARTITIONS: f64 = 1.25;

pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let disk = match medium {
        MediumShape::Sectors(disk) => disk,
        MediumShape::Nand(chip) => return super::chip::predict(profile, options, chip),
    };
    let durability = options.durability.unwrap_or_default();
    let page_bytes = page_bytes(options, disk);
    let plan = Plan::new(options, disk, (page_bytes, options.shape, durability))?;
    let (key, value) = (average_bytes(options.shape.key), average_bytes(options.shape.value));
    let of = |form: Form, beside: usize| {
        let codec = plan.forms.of(form).leaf;
        codec.capacity(key.into(), usize::from(value) + beside).max(1) as f64
    };
    let (bottom, fragment) = (of(Form::Bottom, 0), of(Form::Fragment, 1));
    let entries = profile.entries.max(1) as f64;
    let memory = plan.memtable as f64;
    let waiting = (OCCUPANCY * memory / f64::from(key + value + 1)).clamp(1.0, entries);

    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let hiding = match updates > 0.0 {
        true => (profile.overwrites + profile.deletes) / updates,
        // What came before the lookups is taken to have hidden entries.
        false => 1.0,
    };
    let space = options.settings.ratio(SPACE.name).unwrap_or(1.25);
    let share = ((space - 1.0) * GARBAGE_SHARE / hiding.max(0.01)).min(PENDING_MOST);
    let pending = (share * entries).max(waiting);
    let flushes = 2.0 * pending / waiting + 1.0;

    let page = f64::from(page_bytes);
    let data = entries / bottom + pending / fragment;
    let part = (PAGES_A_FLUSH as f64 * page).min(memory / PARTS_A_FLUSH as f64);
    let most = disk.bytes() as f64 / page / PAGES_PART as f64;
    let wanted = (data * part / memory).min(most).max(1.0);
    let partitions = (PARTITIONS * entries / bottom / wanted).max(1.0);

    let flushed = waiting / fragment + RUN_PAGES * partitions;
    let written = (entries / bottom + RUN_PAGES * partitions) / flushes;
    let each = updates / waiting;
    let leaves = entries / bottom + (pending / fragment) + partitions * flushes / 2.0;
    let frames = f64::from(PageFile::frames(disk, &options.page_file(page_bytes, plan.file))?);
    let missing = (1.0 - (frames - partitions).max(0.0) / leaves).max(0.0);
    let found = 1.0 - waiting / 2.0 / entries;
    // Of a fragment the root is read as well.
    let found = found * (2.0 - libm::exp(-pending / entries));
    let pages = f64::from(page_bytes.div_ceil(disk.sector_bytes()));
    Ok(Prediction {
        page_reads: (profile.lookups * missing * found + each * (written + flushed) * missing)
            * pages,
        page_writes: each * (flushed + written) * pages,
        height: 2,
    })
}
