//! The cost model: a B+-tree of which only inner nodes are cached.
//!
//! A lookup reads a leaf and the log pages of its block that have deltas of it; an update does so,
//! too, and writes one log page. Each `log_pages` writes to a block end in a merge, which reads and
//! writes its nodes. Leaves are 69 % full.

use store::{PageLog, Width};

use super::block::BlockShape;
use super::ground::Forms;
use super::make::{chip_of, log_pages};
use crate::Result;
use crate::registry::{MediumShape, Options, Prediction, Profile};

/// What an entry of variable length is taken to have, in bytes, key and value each.
const VARIABLE_BYTES: usize = 16;

pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let chip = chip_of(medium)?;
    let forms = Forms::on(chip, options.shape)?;
    let shape = BlockShape::on(chip, log_pages(options))?;
    let bytes = |width| match width {
        Width::Fixed(bytes) => usize::from(bytes),
        Width::Variable => VARIABLE_BYTES,
    };
    let (key, value) = (bytes(options.shape.key), bytes(options.shape.value));
    let full = core::f64::consts::LN_2;
    let a_leaf = forms.leaf.capacity(key, value) as f64 * full;
    let children = forms.inner.capacity(key, 4) as f64 * full;
    let leaves = (profile.entries as f64 / a_leaf).max(1.0);
    let (mut height, mut nodes) = (1, leaves);
    while nodes > 1.0 {
        (height, nodes) = (height + 1, nodes / children);
    }
    let inner = leaves / (children - 1.0);
    let memory =
        options.memory_bytes.saturating_sub(PageLog::least_memory(chip, &options.page_log(false)));
    let frames = (memory / super::Ground::frame_bytes(&forms)) as f64;
    let missing = 1.0 - ((frames - inner) / leaves).clamp(0.0, 1.0);
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let writes = updates * missing;
    let logs = f64::from(shape.log_pages()) * if shape.is_whole() { 1.0 } else { 4.0 };
    // Half of a block's log pages are written on average, one in `node_pages` for a leaf.
    let merged = f64::from(shape.node_pages()) / logs;
    let chain = logs / f64::from(shape.node_pages()) / 2.0;
    Ok(Prediction {
        page_reads: (profile.lookups + updates) * missing * (1.0 + chain) + writes * merged,
        page_writes: writes * (1.0 + merged),
        height,
    })
}
