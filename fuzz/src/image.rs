//! Disks with an index that was really used: what damage starts from.

use contract::torture::truth::World;
use device::SectorGeometry;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::cell::{Cell, SECTOR_BYTES, cells};
use crate::history::{Session, sessions};
use crate::play::Player;
use crate::structure::{Kind, Plan};

/// A disk, and what the index on it may hold.
#[derive(Clone)]
pub struct Image {
    /// What was made on it.
    pub cell: Cell,
    /// Its shape.
    pub geometry: SectorGeometry,
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// What its bytes were a session earlier.
    pub older: Vec<u8>,
    /// What an opening may find: the states since the last checkpoint.
    pub worlds: Vec<World>,
    /// What it may find if the only superblock that tells of the last checkpoint is destroyed: a
    /// cut left its second copy as it was before.
    pub earlier: Vec<World>,
    /// Where everything stands.
    pub plan: Plan,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} with {} worlds", self.cell, self.worlds.len())
    }
}

/// Sessions of which the last leaves a disk worth damaging.
fn lives() -> impl Strategy<Value = Vec<Session>> {
    (sessions(0..4, 40), sessions(1..2, 60)).prop_map(|(mut before, last)| {
        before.extend(last);
        before
    })
}

/// Plays a life on a disk of this shape; none if it leaves no index.
fn live(cell: Cell, geometry: SectorGeometry, life: &[Session]) -> Option<Image> {
    let mut player = Player::on(cell, geometry);
    let mut older = player.disk.bytes().to_vec();
    for session in life {
        older = player.disk.bytes().to_vec();
        if player.session(session).is_none() {
            // Without durability, what was not closed is lost: its opening must say so.
            break;
        }
    }
    let bytes = player.disk.into_bytes();
    let plan = Plan::of(&bytes, SECTOR_BYTES as usize)?;
    let sector = SECTOR_BYTES as usize;
    let has_two_superblocks = bytes[..sector] == bytes[sector..2 * sector];
    let earlier = if has_two_superblocks { Vec::new() } else { player.earlier };
    Some(Image { cell, geometry, bytes, older, worlds: player.worlds, earlier, plan })
}

impl Image {
    /// True if a piece of one of these kinds stands on it.
    #[must_use]
    pub fn has(&self, kinds: &[Kind]) -> bool {
        self.plan.pieces(&self.bytes).iter().any(|piece| kinds.contains(&piece.kind))
    }
}

/// `count` disks with pieces of these kinds, from the random numbers of `runner`, as different as
/// can be: cell after cell.
pub fn images(runner: &mut TestRunner, count: usize, kinds: &[Kind]) -> Vec<Image> {
    let cells = cells();
    let mut images = Vec::with_capacity(count);
    let mut place = 0;
    while images.len() < count {
        // Coprime to the number of cells, so that few images are already of many kinds.
        place = (place + 17) % cells.len();
        let image = image(runner, cells[place], cells[place].disk());
        images.extend(image.filter(|image| image.has(kinds)));
    }
    images
}

/// A disk of this shape with an index that was used; none if that was cut while it was made.
pub fn image(runner: &mut TestRunner, cell: Cell, geometry: SectorGeometry) -> Option<Image> {
    let life = lives().new_tree(runner).expect("lives can be made").current();
    live(cell, geometry, &life)
}
