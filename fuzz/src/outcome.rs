//! What comes of damage.

use std::cell::Cell;
use std::rc::Rc;

use contract::torture::truth::{Found, World};

/// What came of the cases.
#[derive(Default)]
pub struct Outcomes {
    right: Cell<u64>,
    earlier: Cell<u64>,
    refused: Cell<u64>,
    believed: Cell<u64>,
}

impl Outcomes {
    /// Counts what came of a case.
    pub fn book(&self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Right => &self.right,
            Outcome::Earlier => &self.earlier,
            Outcome::Error => &self.refused,
            Outcome::Believed => &self.believed,
        };
        counter.set(counter.get() + 1);
    }

    /// Prints what came of the cases; any other end of one would have stopped the test.
    pub fn print(&self, target: &str) {
        let all = [&self.right, &self.refused, &self.believed, &self.earlier];
        let [right, errors, vouched, older] = all.map(Cell::get);
        println!(
            "fuzz {target}: {right} right, {errors} typed errors, {vouched} vouched for, \
             {older} older, 0 else"
        );
    }
}

/// What came of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What was found is what was there.
    Right,
    /// What was found is what was there earlier: see the crate's documentation for when that may
    /// be.
    Earlier,
    /// Something was refused, with a typed error.
    Error,
    /// Checksums were repaired, and what was found is what they vouch for.
    Believed,
}

/// True if what was found is this world.
#[must_use]
pub fn is_world(found: &Found, world: &World) -> bool {
    let same = |((key, value), (wanted, bytes)): (&(Vec<u8>, Vec<u8>), (_, _))| {
        let (wanted, bytes): (&Rc<[u8]>, &Rc<[u8]>) = (wanted, bytes);
        **key == **wanted && **value == **bytes
    };
    found.entries.len() == world.entries.len()
        && found.entries.iter().zip(&world.entries).all(same)
        && found.names.iter().map(String::as_str).eq(world.kept.iter().map(|kept| &*kept.name))
}
