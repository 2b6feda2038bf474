//! A disk with an arm and platters.

use super::timing::Direction;

/// The figures of a hard disk.
///
/// # What a request takes
///
/// ```text
/// time = request + seek + rotation + bytes * transfer
/// ```
///
/// - **Seek**: nothing on the track where the head is. Else, for the part `x` (0 to 1) of the
///   drive's bytes between the head and the request, `track + b * sqrt(x) + c * x`, where
///   `b = 5 (average - track) - 5/3 (full - track)` and `c = full - track - b`: the curve through
///   the single-track and the full-stroke time whose mean over random pairs of places is the
///   average, as E. K. Lee and R. H. Katz fit it ("An analytic performance model of disk arrays",
///   SIGMETRICS 1993). A write after a seek takes `write_settle` more.
/// - **Rotation**: the byte at address `a` passes under the head when the time is
///   `a * transfer` modulo one rotation, for tracks are skewed so that a long run never waits. The
///   head waits until its first byte comes. So the wait follows from the device time that has
///   elapsed and from the address, and is the same in every run.
/// - A request that starts where the one before ended, of whichever kind, neither seeks nor waits:
///   the drive's buffer reads ahead and writes behind. It has no other effect.
///
/// Bytes lie in the order of their addresses, all at one density: the figures are those of the
/// outer zone, where a file smaller than the drive would lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardDisk {
    /// Bytes of the whole drive, over which the arm swings, in case only a part is used.
    pub drive_bytes: u64,
    /// Bytes of a track.
    pub track_bytes: u64,
    /// Time of one rotation, in nanoseconds.
    pub rotation_ns: u64,
    /// Time of each byte of a long run, changes of head and track included, in picoseconds.
    pub transfer_ps: u64,
    /// Seek to the next track, in nanoseconds.
    pub seek_track_ns: u64,
    /// Mean of all seeks, in nanoseconds.
    pub seek_average_ns: u64,
    /// Seek from the first track to the last, in nanoseconds.
    pub seek_full_ns: u64,
    /// What a write takes longer than a read after a seek, in nanoseconds.
    pub write_settle_ns: u64,
    /// What each request costs in itself, in nanoseconds.
    pub request_ns: u64,
}

impl HardDisk {
    /// A SATA disk of 7200 rotations a minute and 500 GB. The FD-tree paper used one of its kind
    /// (section 5.1), without saying which. From the data sheets of
    ///
    /// - the Hitachi Deskstar 7K500 of 2005: the capacity; the average seek of 8.5 ms; in zone 0
    ///   76.3 MB/s under the head, hence 635,904 bytes a track (1242 sectors of 512), and
    ///   64.8 MB/s sustained, hence 15,432 ps a byte;
    /// - the Seagate Barracuda ES.2 of 2008, another of the kind: 0.8 ms to the next track;
    /// - the Hitachi Deskstar 7K1000.C: writes seek in 9.5 ms where reads do in 8.5 ms.
    ///
    /// Assumed: a full stroke of 16 ms, about twice the average, as disks of the kind have it, and
    /// 0.05 ms for a SATA command and its answer.
    pub const SATA_7200: HardDisk = HardDisk {
        drive_bytes: 500_000_000_000,
        track_bytes: 635_904,
        rotation_ns: 8_333_333,
        transfer_ps: 15_432,
        seek_track_ns: 800_000,
        seek_average_ns: 8_500_000,
        seek_full_ns: 16_000_000,
        write_settle_ns: 1_000_000,
        request_ns: 50_000,
    };

    /// Time of a seek over `distance` bytes between two tracks, in nanoseconds; never less than
    /// to the next track and never more than over the full stroke.
    #[must_use]
    pub fn seek_ns(&self, distance: u64) -> u64 {
        const ONE: i128 = 1 << 32;
        let drive = u128::from(self.drive_bytes.max(1));
        let part = (u128::from(distance) << 32) / drive;
        let part = part.min(ONE as u128);
        let root = (part << 32).isqrt() as i128;
        let track = i128::from(self.seek_track_ns);
        let full = i128::from(self.seek_full_ns) - track;
        let average = i128::from(self.seek_average_ns) - track;
        let by_root = (15 * average - 5 * full) / 3;
        let by_part = full - by_root;
        let more = (by_root * root + by_part * part as i128) / ONE;
        (track + more.clamp(0, full.max(0))) as u64
    }
}

/// A hard disk at work.
#[derive(Clone, Debug)]
pub(crate) struct Mechanics {
    disk: HardDisk,
    /// The byte that would pass under the head next.
    head: u64,
}

impl Mechanics {
    pub(crate) const fn new(disk: HardDisk) -> Self {
        Mechanics { disk, head: 0 }
    }

    /// Moves the head over `bytes` bytes from `start` on, from time `now_ns` on; returns how long
    /// that takes.
    pub(crate) fn serve(
        &mut self,
        direction: Direction,
        start: u64,
        bytes: u64,
        now_ns: u64,
    ) -> u64 {
        let mut time_ns = self.disk.request_ns;
        if start != self.head {
            time_ns += self.seek(direction, start);
            time_ns += self.wait(start, now_ns + time_ns);
        }
        self.head = start + bytes;
        time_ns.saturating_add(self.transfer(bytes))
    }

    fn seek(&self, direction: Direction, start: u64) -> u64 {
        let track = self.disk.track_bytes.max(1);
        if start / track == self.head / track {
            return 0;
        }
        let settle = match direction {
            Direction::Read => 0,
            Direction::Write => self.disk.write_settle_ns,
        };
        self.disk.seek_ns(start.abs_diff(self.head)) + settle
    }

    /// How long after `now_ns` the byte at `start` comes under the head.
    fn wait(&self, start: u64, now_ns: u64) -> u64 {
        let rotation = self.disk.rotation_ns.max(1);
        let place = (self.passing(start) % u128::from(rotation)) as u64;
        (place + rotation - now_ns % rotation) % rotation
    }

    /// Time in which `bytes` bytes pass under the head.
    fn transfer(&self, bytes: u64) -> u64 {
        u64::try_from(self.passing(bytes)).unwrap_or(u64::MAX)
    }

    fn passing(&self, bytes: u64) -> u128 {
        u128::from(bytes) * u128::from(self.disk.transfer_ps) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::{HardDisk, Mechanics};
    use crate::disk::timing::Direction;

    const DISK: HardDisk = HardDisk::SATA_7200;

    #[test]
    fn seeks_go_through_their_three_figures() {
        assert_eq!(DISK.seek_ns(0), DISK.seek_track_ns);
        assert_eq!(DISK.seek_ns(DISK.drive_bytes), DISK.seek_full_ns);
        assert_eq!(DISK.seek_ns(u64::MAX), DISK.seek_full_ns);
        let steps = 1000;
        let step = DISK.drive_bytes / steps;
        let places = || 0..steps;
        let pairs = places().flat_map(|from| places().map(move |to| from.abs_diff(to) * step));
        let mean = pairs.map(|distance| DISK.seek_ns(distance)).sum::<u64>() / (steps * steps);
        let error = mean.abs_diff(DISK.seek_average_ns);
        assert!(error < 10_000, "the mean seek takes {mean} ns");
        let times: Vec<u64> = places().map(|place| DISK.seek_ns(place * step)).collect();
        assert!(times.is_sorted(), "a longer seek was faster");
    }

    #[test]
    fn strange_figures_make_no_strange_times() {
        for (track, average, full) in [(5, 0, 0), (0, 9, 1), (0, 0, u64::MAX / 4), (0, 0, 0)] {
            let disk = HardDisk {
                drive_bytes: 0,
                track_bytes: 0,
                rotation_ns: 0,
                seek_track_ns: track,
                seek_average_ns: average,
                seek_full_ns: full,
                ..DISK
            };
            for distance in [0, 1, u64::MAX] {
                assert!((track..=full.max(track)).contains(&disk.seek_ns(distance)));
            }
            assert!(Mechanics::new(disk).serve(Direction::Write, 77, 1, 12345) < u64::MAX / 2);
        }
    }

    #[test]
    fn a_request_behind_the_head_waits_for_almost_a_rotation() {
        let mut mechanics = Mechanics::new(DISK);
        let first = mechanics.serve(Direction::Read, 0, 4096, 0);
        assert_eq!(first, DISK.request_ns + 4096 * DISK.transfer_ps / 1000);
        // The disk turned on while the next request came: its byte has just passed.
        let again = mechanics.serve(Direction::Read, 0, 4096, first);
        assert_eq!(first + again, DISK.rotation_ns + 4096 * DISK.transfer_ps / 1000);
    }

    #[test]
    fn a_request_further_on_the_track_waits_and_does_not_seek() {
        let mut mechanics = Mechanics::new(DISK);
        let first = mechanics.serve(Direction::Write, 0, 4096, 0);
        let second = mechanics.serve(Direction::Write, 16_384, 4096, first);
        // The command came in time: the track passed under the head up to the end of the request.
        let passing = |bytes: u64| bytes * DISK.transfer_ps / 1000;
        assert_eq!(first + second, passing(16_384) + passing(4096));
        let next_track = mechanics.serve(Direction::Write, DISK.track_bytes, 4096, first + second);
        assert!(next_track >= DISK.seek_track_ns + DISK.write_settle_ns, "{next_track} ns");
    }
}
