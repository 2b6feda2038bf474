//! The transfers of one call, from the first start to the last return.

use std::array;
use std::fs::File;

use rustix::io::Errno;

use super::{Completion, Direction, Engine, Order, Piece, Way};
use crate::IN_FLIGHT_MOST;

/// Room for one transfer in flight.
#[derive(Default)]
struct Slot<'b> {
    bounce: &'b mut [u8],
    piece: Option<Piece<'b>>,
    /// Bytes of the piece that went over.
    done: usize,
}

/// Transfers in flight.
///
/// Invariant: `flying` slots were started and have not come back; while that is so for a slot,
/// its memory is not touched.
pub(super) struct Flight<'e, 'b> {
    engine: &'e mut Engine,
    slots: [Slot<'b>; IN_FLIGHT_MOST as usize],
    usable: usize,
    flying: usize,
    unit: usize,
    failure: Option<Errno>,
}

impl<'e, 'b> Flight<'e, 'b> {
    /// As many slots as there are bounce buffers.
    pub(super) fn new(
        engine: &'e mut Engine,
        bounces: impl Iterator<Item = &'b mut [u8]>,
        unit: usize,
    ) -> Self {
        let mut slots: [Slot<'b>; IN_FLIGHT_MOST as usize] = array::from_fn(|_| Slot::default());
        let mut usable = 0;
        for (slot, bounce) in slots.iter_mut().zip(bounces) {
            slot.bounce = bounce;
            usable += 1;
        }
        Flight { engine, slots, usable, flying: 0, unit, failure: None }
    }

    /// Moves all pieces; returns when none is in flight any more.
    pub(super) fn fly(mut self, mut pieces: impl Iterator<Item = Piece<'b>>) -> Result<(), Errno> {
        for slot in 0..self.usable {
            let Some(piece) = pieces.next() else { break };
            self.load(slot, piece);
        }
        while self.flying > 0 {
            let Completion { slot, outcome } = self.engine.finish();
            self.flying -= 1;
            let concluded = self.land(slot, outcome);
            if concluded
                && self.failure.is_none()
                && let Some(piece) = pieces.next()
            {
                self.load(slot, piece);
            }
        }
        self.failure.map_or(Ok(()), Err)
    }

    fn load(&mut self, slot: usize, piece: Piece<'b>) {
        let place = &mut self.slots[slot];
        piece.way.prepare(place.bounce);
        place.piece = Some(piece);
        place.done = 0;
        self.start(slot);
    }

    /// Starts what is left of the slot's piece.
    fn start(&mut self, slot: usize) {
        let Slot { bounce, piece: Some(piece), done } = &mut self.slots[slot] else {
            return;
        };
        let memory = match &mut piece.way {
            Way::Read(into) => into[*done..piece.length].as_mut_ptr(),
            // Never written to: the order says that it is a write.
            Way::Write(from) => from[*done..piece.length].as_ptr().cast_mut(),
            Way::ReadBounced { .. } | Way::WriteBounced(_) => {
                bounce[*done..piece.length].as_mut_ptr()
            }
        };
        let order = Order {
            slot,
            offset: piece.offset + *done as u64,
            memory,
            // Pieces are at most a mebibyte, or a bounce buffer.
            length: (piece.length - *done) as u32,
            direction: if piece.way.is_write() { Direction::Write } else { Direction::Read },
        };
        // SAFETY: the memory is borrowed by the slot for longer than `self` lives, and was indexed
        // to be as long as the order says. Nobody touches it until `finish` returns the slot:
        // `land` and `load` work only on slots that have come back, and `drop` waits for all.
        unsafe { self.engine.start(order) };
        self.flying += 1;
    }

    /// Takes in a transfer that came back; true if the slot is free again.
    fn land(&mut self, slot: usize, outcome: Result<usize, Errno>) -> bool {
        let place = &mut self.slots[slot];
        let Some(piece) = &mut place.piece else {
            return true;
        };
        match advance(place.done, piece.length, outcome, self.unit) {
            Ok(done) if done == piece.length => piece.way.conclude(place.bounce),
            Ok(done) => {
                place.done = done;
                self.start(slot);
                return false;
            }
            Err(errno) => self.failure = self.failure.or(Some(errno)),
        }
        place.piece = None;
        true
    }
}

impl Drop for Flight<'_, '_> {
    /// After a panic, waits until no memory of the caller is in use any more.
    fn drop(&mut self) {
        while self.flying > 0 {
            self.engine.finish();
            self.flying -= 1;
        }
    }
}

/// How far a piece has come: a transfer that was cut short goes on at the last whole unit.
fn advance(
    done: usize,
    length: usize,
    outcome: Result<usize, Errno>,
    unit: usize,
) -> Result<usize, Errno> {
    let now = match outcome {
        Err(Errno::INTR | Errno::AGAIN) => return Ok(done),
        other => done + other?,
    };
    if now >= length {
        return Ok(length);
    }
    let whole = now & !(unit - 1);
    // Nothing more comes: the file was cut off.
    if whole <= done { Err(Errno::IO) } else { Ok(whole) }
}

/// Moves a piece that is the only one, without the engine.
pub(super) fn alone(
    file: &File,
    mut piece: Piece<'_>,
    bounce: &mut [u8],
    unit: usize,
) -> Result<(), Errno> {
    piece.way.prepare(bounce);
    let mut done = 0;
    while done < piece.length {
        let part = done..piece.length;
        let offset = piece.offset + done as u64;
        let outcome = match &mut piece.way {
            Way::Read(into) => rustix::io::pread(file, &mut into[part], offset),
            Way::ReadBounced { .. } => rustix::io::pread(file, &mut bounce[part], offset),
            Way::Write(from) => rustix::io::pwrite(file, &from[part], offset),
            Way::WriteBounced(_) => rustix::io::pwrite(file, &bounce[part], offset),
        };
        done = advance(done, piece.length, outcome, unit)?;
    }
    piece.way.conclude(bounce);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::advance;
    use rustix::io::Errno;

    #[test]
    fn a_transfer_that_was_cut_short_goes_on_at_a_whole_unit() {
        assert_eq!(advance(0, 8192, Ok(8192), 512), Ok(8192));
        assert_eq!(advance(0, 8192, Ok(1000), 512), Ok(512));
        assert_eq!(advance(512, 8192, Ok(1000), 1), Ok(1512));
        assert_eq!(advance(512, 8192, Err(Errno::INTR), 512), Ok(512));
        assert_eq!(advance(512, 8192, Err(Errno::AGAIN), 512), Ok(512));
    }

    #[test]
    fn a_transfer_that_does_not_advance_has_failed() {
        assert_eq!(advance(512, 8192, Ok(0), 512), Err(Errno::IO));
        assert_eq!(advance(512, 8192, Ok(100), 512), Err(Errno::IO));
        assert_eq!(advance(0, 8192, Err(Errno::NOSPC), 512), Err(Errno::NOSPC));
    }
}
