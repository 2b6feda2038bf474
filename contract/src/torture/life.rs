//! Random lives: many sessions on one device, each ended by a cut at a random operation, some of
//! them while the index is being opened; blocks go bad meanwhile.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use sim::Cut;

use super::actions::Actor;
use super::cell::Cell;
use super::device::{Fate, How};
use super::failure::Failure;
use super::found::read_all;
use super::run::Run;
use super::seeds::{chance, mix, random};
use super::session::{Ended, Part, Play, Stop, Storage};
use super::truth::Truth;

/// Sessions on one device.
pub(super) const SESSIONS_MOST: u32 = 40;

/// Actions of a session, unless a cut ends it.
const ACTIONS_MOST: u32 = 150;

/// In one session of so many the power goes when a file is made shorter: files seldom are.
const SHRINKING: u64 = 3;

/// The choice of how often devices fail.
const REFUSALS: u64 = u64::MAX - 2;

/// Numbers that decide how an index is made: those of no session.
const MAKING: u32 = u32::MAX;

/// Plays the life with this seed.
pub(super) fn play(cell: &Cell, seed: u64, run: &mut Run<'_>) -> Result<(), Failure> {
    run.at_session(seed, 0);
    let mut storage = begin(cell, seed)?;
    let outcome = sessions(&mut storage, seed, run);
    run.add(&mut storage);
    outcome
}

fn sessions(storage: &mut Storage<'_>, seed: u64, run: &mut Run<'_>) -> Result<(), Failure> {
    for number in 1..=SESSIONS_MOST {
        if run.is_over(storage) {
            break;
        }
        run.at_session(seed, number);
        let part = part(storage.cell, seed, number);
        // It need not be opened with the memory that it had before.
        storage.memory = [1, 2, 4, 16][(mix(seed, number.into()) % 4) as usize];
        if storage.session(&part)? == Ended::Worn {
            return Ok(());
        }
    }
    // What the last cut left is compared too.
    let last = Part { actions: 0, fate: Fate::default(), ..part(storage.cell, seed, 0) };
    storage.session(&last).map(|_| ())
}

/// Sessions of the life with this seed, one after the other, as the start of something else.
pub(super) fn begin_with(cell: &Cell, seed: u64, count: u32) -> Result<Storage<'_>, Failure> {
    let mut storage = begin(cell, seed)?;
    for number in 1..=count {
        let mut part = part(cell, seed, number);
        part.fate.refusals = 0.0;
        storage.session(&part)?;
    }
    Ok(storage)
}

fn part(cell: &Cell, seed: u64, number: u32) -> Part {
    // The actor takes its numbers from another row.
    let mut random = random(cell, !seed, number);
    let fate = fate(chance(cell, seed, REFUSALS), &mut random);
    Part { seed, number, actions: ACTIONS_MOST, play: Play::Random, fate }
}

fn fate(chance: u64, random: &mut ChaCha8Rng) -> Fate {
    let most = [3, 12, 60, 250][random.random_range(0..4)];
    let at = random.random_range(1..=most);
    let cut = match random.random_range(0..8) {
        0 => Cut::Operation(at * 2),
        _ => Cut::Change(at),
    };
    let refusals = [1e-3, 2e-4, 0.0, 0.0][(chance % 4) as usize];
    let seed: u64 = random.random();
    Fate { seed, cut: Some(cut), cut_shrinking: seed.is_multiple_of(SHRINKING), refusals }
}

/// A device with an index on it, which was made once or more often, with cuts on the way.
fn begin(cell: &Cell, seed: u64) -> Result<Storage<'_>, Failure> {
    let mut storage = Storage::new(cell, seed)?;
    let mut random = random(cell, seed, MAKING);
    if random.random_ratio(1, 4) {
        // What an earlier index left on the device must not come back.
        storage.device.start(&Fate::default());
        made(&mut storage, &mut random)?;
        storage.device.cut_power()?;
        storage.session(&Part { fate: Fate::default(), ..part(cell, seed, MAKING) })?;
    }
    if random.random_ratio(1, 3) {
        let cut = Some(Cut::Change(random.random_range(1..=120)));
        let fate = Fate { seed: random.random(), cut, ..Fate::default() };
        if make_and_cut(&mut storage, &fate, &mut random)? {
            return Ok(storage);
        }
    }
    storage.device.start(&Fate::default());
    made(&mut storage, &mut random)?;
    storage.device.cut_power()?;
    Ok(storage)
}

/// Makes an index where nothing goes wrong.
fn made(storage: &mut Storage<'_>, random: &mut ChaCha8Rng) -> Result<(), Failure> {
    match make(storage, random) {
        Ok(()) => Ok(()),
        Err(Stop::Failed(failure)) => Err(failure),
        Err(Stop::Cut) => Err(Failure::Make(device::Error::PowerCut.into())),
        Err(Stop::Worn | Stop::Refused) => Err(Failure::Full { bad: 0, blocks: 0 }),
    }
}

fn make(storage: &mut Storage<'_>, random: &mut ChaCha8Rng) -> Result<(), Stop> {
    let cell = storage.cell;
    let mut actor =
        Actor::new(cell, storage.keys, MAKING, super::seeds::random(cell, random.random(), MAKING));
    // Where there is hardly room it is not known how much of it a load finds.
    let is_loaded = random.random_ratio(2, 3) && !storage.is_tight();
    let sorted = if is_loaded { actor.sorted() } else { Vec::new() };
    storage.make(sorted)
}

/// Makes an index while the power may go; true if there is one then that can be used.
fn make_and_cut(
    storage: &mut Storage<'_>,
    fate: &Fate,
    random: &mut ChaCha8Rng,
) -> Result<bool, Failure> {
    storage.device.start(fate);
    match make(storage, random) {
        Ok(()) => {
            storage.device.cut_power()?;
            return Ok(true);
        }
        Err(Stop::Failed(Failure::Findings(_))) if storage.device.is_without_power() => {}
        Err(Stop::Cut) => {}
        Err(Stop::Worn | Stop::Refused) => return Ok(false),
        Err(Stop::Failed(failure)) => return Err(failure),
    }
    storage.witness.cuts += 1;
    storage.witness.cuts_while_making += 1;
    storage.device.start(&Fate::default());
    let (cell, memory, most) = (storage.cell, storage.memory, storage.most());
    let was_made = storage.truth.open_events() > 0 || !storage.truth.latest().entries.is_empty();
    let found = match storage.device.index(cell, How::Open, memory) {
        Ok(mut index) => read_all(&mut *index, most),
        // Before it was made there is nothing to open, or what stood there before.
        Err(_) if !was_made => return Ok(false),
        Err(error) => return Err(Failure::Open(error)),
    };
    storage.device.cut_power()?;
    match found {
        Ok(found) => {
            let learned = storage.truth.learn(&found);
            if learned.is_err() && !was_made {
                // The index that stood there before.
                storage.truth = Truth::default();
                return Ok(false);
            }
            learned.map(|_| true).map_err(Failure::Lost)
        }
        Err(Stop::Failed(_)) if !was_made => Ok(false),
        Err(Stop::Failed(failure)) => Err(failure),
        Err(Stop::Cut | Stop::Worn | Stop::Refused) => Ok(false),
    }
}
