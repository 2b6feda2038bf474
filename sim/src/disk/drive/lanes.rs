//! The chips of a drive and the channels that they hang on: when each of them is free.

use device::SolidState;

/// When a chip or a channel is free.
///
/// Requests of the host are served in their order. What the drive does by itself comes behind
/// them, in whichever order keeps the lane at work as long as there is any; a request of the host
/// waits only until the page on which the drive is at work is done, and delays the rest.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    host_until: u64,
    own_until: u64,
}

impl Lane {
    /// Serves the host from `ready` on for `time`; the drive's own work is in steps of `step`.
    /// Returns the end.
    fn serve(&mut self, ready: u64, time: u64, step: u64) -> u64 {
        let mut start = ready.max(self.host_until);
        if self.own_until > start {
            start += (self.own_until - start) % step.max(1);
            self.own_until += time;
        }
        self.host_until = start + time;
        self.host_until
    }

    /// Adds work of the drive's own that was given at `at` and takes `time`; returns when all that
    /// was given is done.
    fn work(&mut self, at: u64, time: u64) -> u64 {
        self.own_until = at.max(self.own_until).max(self.host_until) + time;
        self.own_until
    }
}

/// Chips, channels, and the times of the chips.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    chips: Box<[Lane]>,
    channels: Box<[Lane]>,
    read_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    /// Time in which a page crosses a channel.
    page_ns: u64,
    page_bytes: u64,
}

impl Lanes {
    pub(super) fn new(drive: &SolidState) -> Self {
        let lanes = |count: u64| vec![Lane::default(); count as usize].into_boxed_slice();
        let crossing = u64::from(drive.page_bytes) + u64::from(drive.spare_bytes);
        Lanes {
            chips: lanes(drive.chips()),
            channels: lanes(u64::from(drive.channels)),
            read_ns: drive.read_ns,
            program_ns: drive.program_ns,
            erase_ns: drive.erase_ns,
            page_ns: crossing * drive.bus_ps_per_byte / 1000,
            page_bytes: u64::from(drive.page_bytes),
        }
    }

    const fn channel(&self, chip: usize) -> usize {
        chip % self.channels.len()
    }

    /// Reads `bytes` bytes of a page for the host, from `at` on; returns when they are there.
    pub(super) fn read_for_host(&mut self, chip: usize, at: u64, bytes: u64) -> u64 {
        let crossing = self.page_ns * bytes / self.page_bytes;
        let step = self.page_ns + self.program_ns;
        // A chip has one register: it is busy until the page has crossed the channel.
        let read = self.chips[chip].serve(at, self.read_ns + crossing, step) - crossing;
        let channel = self.channel(chip);
        let there = self.channels[channel].serve(read, crossing, self.page_ns);
        let lane = &mut self.chips[chip];
        lane.host_until = lane.host_until.max(there);
        there
    }

    /// Reads a page for the drive itself, in work that began at `at`; returns when it is there.
    pub(super) fn read(&mut self, chip: usize, at: u64) -> u64 {
        let read = self.chips[chip].work(at, self.read_ns + self.page_ns);
        read.max(self.cross(chip, at))
    }

    /// Programs a page, in work that began at `at`, whose bytes are there at `ready`; returns when
    /// it is done.
    pub(super) fn program(&mut self, chip: usize, at: u64, ready: u64) -> u64 {
        let programmed = self.chips[chip].work(at, self.page_ns + self.program_ns);
        let loaded = self.cross(chip, at).max(ready + self.page_ns);
        programmed.max(loaded + self.program_ns)
    }

    /// Erases a block of every chip, in work that began at `at`.
    pub(super) fn erase(&mut self, at: u64) {
        for chip in &mut self.chips {
            chip.work(at, self.erase_ns);
        }
    }

    /// Lets a page of the drive's own work cross the channel of a chip.
    fn cross(&mut self, chip: usize, at: u64) -> u64 {
        let channel = self.channel(chip);
        self.channels[channel].work(at, self.page_ns)
    }
}
