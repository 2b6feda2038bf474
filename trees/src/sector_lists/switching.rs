//! SWITCHMODE: when a node changes between log and disk mode (FlashDB, section 5.2.1).
//!
//! A counter S of each node adds up what its operations cost more in its mode than they would in
//! the other. When that reaches what changing there and back costs, the node changes, and S is 0.
//!
//! As printed, S may run far below zero: a node that was written for long takes as long to become
//! one that is read, and no bound of what that costs holds. The proof needs S to stop at zero:
//! `S <- max(0, S + c1 - c2)`. Then what is served costs at most three times the least possible,
//! and a constant, if an operation is served in part where S reaches its limit in the midst of it.
//! An operation here is served as a whole: that is one operation more for each change of mode.

use device::DiskCosts;

use super::choices::Mode;

/// Sectors in a list, and entries logged by a change, that the paper takes for a node of which they
/// can't be known, as it is in disk mode (p and l).
const SECTORS_GUESSED: i32 = 3;
const ENTRIES_GUESSED: i32 = 2;

/// The larger of the costs of reading and writing a sector, in units of the counter.
const COST_MOST: u64 = 1 << 12;

/// Bytes of a counter of nodes with lists of at most so many sectors: two where that is enough for
/// what they change at.
pub(super) const fn counter_bytes(list: usize, is_printed: bool) -> usize {
    let guessed = SECTORS_GUESSED as u64;
    let sectors = if list as u64 > guessed { list as u64 } else { guessed };
    // A list is read and a page written; that is read, and its entries are logged.
    if !is_printed && (sectors + 3) * COST_MOST <= u16::MAX as u64 { 2 } else { 4 }
}

/// What a sector costs where the disk does not tell: the paper's default chip, 15 and 200 us.
const UNKNOWN: (u64, u64) = (15, 200);

/// What a node does to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// It is read. In log mode it has so many sectors.
    Read { sectors: u32 },
    /// It is changed. If it `is_first` since it was written, it has to be written again in disk
    /// mode.
    Write { is_first: bool },
    /// All of it is written: it was split or joined, or entries went over to a neighbour.
    Whole { is_first: bool },
}

/// What operations cost, in units of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Costs {
    /// Reading a sector, and writing it.
    pub(super) read: i32,
    pub(super) write: i32,
    /// An entry's part of writing a sector of the log, and a node's entries'.
    pub(super) entry: i32,
    pub(super) entries: i32,
}

impl Costs {
    /// Those of a disk for sectors of so many bytes and pages, with so many entries in a sector,
    /// and in a node on average.
    pub(super) fn new(
        costs: Option<DiskCosts>,
        (sector, pages): (u32, u32),
        (fit, in_node): (u32, u32),
    ) -> Self {
        let time = |cost: &device::Cost| cost.charge(sector.into(), pages.into()).time_ns;
        let known = costs.map(|it| (time(&it.read.random), time(&it.write.random)));
        let known = known.filter(|(read, write)| *read > 0 && *write > 0);
        let (read, write) = known.unwrap_or(UNKNOWN);
        let most = read.max(write);
        let scaled = |cost: u64| {
            let scaled = u128::from(cost) * u128::from(COST_MOST) / u128::from(most);
            (scaled as i32).max(1)
        };
        let (read, write) = (scaled(read), scaled(write));
        let entry = (write / fit.max(1) as i32).max(1);
        Costs { read, write, entry, entries: entry.saturating_mul(in_node as i32).min(write) }
    }

    /// What an operation costs in the mode of the node, and what in the other.
    pub(super) fn of(&self, operation: Operation, is_page: bool) -> (i32, i32) {
        let (log, disk) = match operation {
            Operation::Read { sectors } => {
                let sectors = if is_page { SECTORS_GUESSED } else { sectors as i32 };
                (self.read.saturating_mul(sectors), self.read)
            }
            Operation::Write { is_first } => {
                let entries = if is_page { ENTRIES_GUESSED } else { 1 };
                (self.entry * entries, if is_first { self.write } else { 0 })
            }
            Operation::Whole { is_first } => (self.entries, if is_first { self.write } else { 0 }),
        };
        if is_page { (disk, log) } else { (log, disk) }
    }

    /// What it costs to change mode and back: a list is read and a page written; that is read, and
    /// its entries logged.
    fn of_changing(&self, sectors: u32, is_page: bool) -> i32 {
        let sectors = if is_page { SECTORS_GUESSED } else { sectors as i32 };
        let to_disk = self.read.saturating_mul(sectors).saturating_add(self.write);
        to_disk.saturating_add(self.read).saturating_add(self.entries)
    }
}

/// The counter after an operation that cost `here`, and would have cost `there`.
pub(super) fn counted(counter: i32, (here, there): (i32, i32), mode: Mode) -> i32 {
    let counter = counter.saturating_add(here).saturating_sub(there);
    match mode {
        Mode::SelfTuning { is_printed: true, .. } => counter,
        _ => counter.max(0),
    }
}

/// A node: its counter, the sectors of its list, and whether it is in disk mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) counter: i32,
    pub(super) sectors: u32,
    pub(super) is_page: bool,
}

impl Node {
    /// Counts an operation; true if the node is to change its mode.
    pub(super) fn serve(&mut self, costs: &Costs, operation: Operation, mode: Mode) -> bool {
        let served = costs.of(operation, self.is_page);
        self.counter = counted(self.counter, served, mode);
        self.is_due(costs)
    }

    /// True if it is to change its mode.
    pub(super) fn is_due(&self, costs: &Costs) -> bool {
        self.counter >= costs.of_changing(self.sectors, self.is_page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const TUNING: Mode = Mode::SelfTuning { is_printed: false, splits_alike: false };
    const PRINTED: Mode = Mode::SelfTuning { is_printed: true, splits_alike: false };

    /// Units of the counter in a microsecond.
    const UNITS: f64 = 1000.0;

    /// What a request costs in log mode, and in disk mode.
    type Request = [f64; 2];

    /// What the best there is costs: both modes, request by request.
    fn optimum(requests: &[Request], [to_disk, to_log]: [f64; 2]) -> f64 {
        let (mut log, mut disk) = (0.0, to_disk);
        for [in_log, in_disk] in requests {
            (log, disk) = (log + in_log, disk + in_disk);
            (log, disk) = (f64::min(log, disk + to_log), f64::min(disk, log + to_disk));
        }
        f64::min(log, disk)
    }

    /// What SWITCHMODE costs, and how often it changes the mode. If it `is_fractional`, a request
    /// is served in part where the counter reaches its limit in the midst of it.
    fn switch_mode(
        requests: &[Request],
        changes: [f64; 2],
        (mode, is_fractional): (Mode, bool),
    ) -> (f64, u32) {
        let limit = changes[0] + changes[1];
        let (mut counter, mut at, mut cost, mut changed) = (0, 0, 0.0, 0);
        for request in requests {
            let (mut left, mut last) = (1.0, false);
            while !last {
                let difference = (request[at] - request[1 - at]) * left;
                let missing = limit - f64::from(counter) / UNITS;
                let reaches = difference >= missing;
                let part = match reaches && is_fractional {
                    true => missing / difference,
                    false => 1.0,
                };
                cost += request[at] * left * part;
                counter = counted(counter, ((difference * part * UNITS) as i32, 0), mode);
                left *= 1.0 - part;
                if reaches {
                    cost += changes[at];
                    (counter, at, changed) = (0, 1 - at, changed + 1);
                }
                last = !(reaches && is_fractional && left > 1e-12);
            }
        }
        (cost, changed)
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, most: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % most
        }
    }

    /// Reads of so many sectors and writes, on a chip, a card and a disk that reads as it writes.
    fn costs(random: &mut Random) -> ([Request; 2], [f64; 2]) {
        let (read, write) = [(15.0, 200.0), (1.1, 193.0), (18.0, 29.0)][random.below(3) as usize];
        let sectors = (1 + random.below(8)) as f64;
        let entry = write / (4 + random.below(60)) as f64;
        let changes = [sectors * read + write, read + 20.0 * entry];
        ([[sectors * read, read], [entry, write]], changes)
    }

    fn random_requests(random: &mut Random, kinds: [Request; 2]) -> Vec<Request> {
        let mut requests = Vec::new();
        for _ in 0..1 + random.below(40) {
            let share = random.below(101);
            for _ in 0..random.below(200) {
                requests.push(kinds[usize::from(random.below(100) < share)]);
            }
        }
        requests
    }

    /// What costs most in the mode that SWITCHMODE is in.
    fn adversary(kinds: [Request; 2], changes: [f64; 2]) -> Vec<Request> {
        let mut requests = Vec::new();
        let (mut counter, mut at) = (0.0, 0);
        for _ in 0..2000 {
            let worse = |one: &Request| one[at] - one[1 - at];
            let [read, write] = kinds;
            let request = if worse(&read) > worse(&write) { read } else { write };
            requests.push(request);
            counter = f64::max(counter + worse(&request), 0.0);
            if counter >= changes[0] + changes[1] {
                (counter, at) = (0.0, 1 - at);
            }
        }
        requests
    }

    #[test]
    fn it_costs_at_most_three_times_the_least_possible_and_a_constant() {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut all_changes = 0;
        for round in 0..2000 {
            let (kinds, changes) = costs(&mut random);
            let requests = match round % 4 {
                0 => adversary(kinds, changes),
                _ => random_requests(&mut random, kinds),
            };
            let least = optimum(&requests, changes);
            let constant = 3.0 * (changes[0] + changes[1]);
            let (fractional, changed) = switch_mode(&requests, changes, (TUNING, true));
            assert!(fractional <= 3.0 * least + constant + 1e-6, "{fractional} and {least}");
            // Served as a whole, a request that reaches the limit costs itself more.
            let (whole, changed_too) = switch_mode(&requests, changes, (TUNING, false));
            let longest = kinds.iter().flatten().copied().fold(0.0, f64::max);
            let beside = f64::from(changed_too) * longest;
            assert!(whole <= 3.0 * least + constant + beside + 1e-6, "{whole} and {least}");
            all_changes += changed.min(changed_too);
        }
        assert!(all_changes > 10_000, "{all_changes} changes of mode");
    }

    #[test]
    fn as_it_is_printed_it_has_no_such_bound() {
        let (kinds, changes) = ([[45.0, 15.0], [7.0, 200.0]], [245.0, 155.0]);
        let mut requests = alloc::vec![kinds[1]; 10_000];
        requests.extend(core::iter::repeat_n(kinds[0], 40_000));
        let least = optimum(&requests, changes);
        let (clamped, _) = switch_mode(&requests, changes, (TUNING, true));
        let (printed, changed) = switch_mode(&requests, changes, (PRINTED, true));
        assert!(clamped < 1.1 * least, "{clamped} and {least}");
        assert!(changed == 0 && printed > 2.7 * least, "{printed} and {least}, {changed} changes");
    }

    /// Requests to a node as the store counts them: reads of as many sectors as are guessed, and
    /// changes of as many entries. What they cost, how often the mode changed, and their least.
    fn served(costs: &Costs, requests: &[bool], mode: Mode) -> (f64, u32, f64) {
        let sectors = SECTORS_GUESSED as u32;
        let read = Operation::Read { sectors };
        let write = |is_first| Operation::Write { is_first };
        let changes = [costs.read * SECTORS_GUESSED + costs.write, costs.read + costs.entries];
        let mut node = Node { counter: 0, sectors, is_page: false };
        let (mut cost, mut changed) = (0, 0);
        for is_read in requests {
            // In log mode a change logs its entries; in disk mode the page is written once.
            let operations = match (is_read, node.is_page) {
                (true, _) => alloc::vec![read],
                (false, true) => alloc::vec![write(true)],
                (false, false) => (0..ENTRIES_GUESSED).map(|entry| write(entry == 0)).collect(),
            };
            let mut is_due = false;
            for operation in operations {
                cost += i64::from(costs.of(operation, node.is_page).0);
                is_due = node.serve(costs, operation, mode);
            }
            if is_due {
                cost += i64::from(changes[usize::from(node.is_page)]);
                node = Node { counter: 0, is_page: !node.is_page, ..node };
                changed += 1;
            }
        }
        let log = f64::from(costs.entry * ENTRIES_GUESSED);
        let (in_log, in_disk) = costs.of(read, false);
        let kinds = [[log, costs.write.into()], [in_log.into(), in_disk.into()]];
        let asked: Vec<_> = requests.iter().map(|is_read| kinds[usize::from(*is_read)]).collect();
        (cost as f64, changed, optimum(&asked, changes.map(f64::from)))
    }

    #[test]
    fn nodes_are_served_for_three_times_the_least_possible_and_a_constant() {
        let mut random = Random(0x2545_F491_4F6C_DD1D);
        let mut all_changes = 0;
        for _ in 0..500 {
            let fit = 4 + random.below(60) as u32;
            let costs = Costs::new(None, (512, 1), (fit, 1 + random.below(120) as u32));
            let mut requests = Vec::new();
            for _ in 0..1 + random.below(40) {
                let share = random.below(101);
                let more = random.below(400);
                requests.extend((0..more).map(|_| random.below(100) < share));
            }
            let (cost, changed, least) = served(&costs, &requests, TUNING);
            let constant = 3.0 * f64::from(costs.of_changing(3, false));
            let beside = f64::from(changed) * f64::from(costs.write.max(3 * costs.read));
            assert!(cost <= 3.0 * least + constant + beside, "{cost} and {least}, {changed}");
            all_changes += changed;
        }
        assert!(all_changes > 1000, "{all_changes} changes of mode");
    }

    #[test]
    fn with_the_printed_counter_a_node_that_was_written_for_long_stays_in_log_mode() {
        let costs = Costs::new(None, (512, 1), (25, 40));
        let mut requests = alloc::vec![false; 20_000];
        requests.extend(core::iter::repeat_n(true, 100_000));
        let (clamped, changed, least) = served(&costs, &requests, TUNING);
        assert!(changed == 1 && clamped < 1.1 * least, "{clamped} and {least}");
        let (printed, changed, least) = served(&costs, &requests, PRINTED);
        assert!(changed == 0 && printed > 1.7 * least, "{printed} and {least}");
    }

    #[test]
    fn a_node_that_is_read_goes_to_disk_mode_and_one_that_is_written_to_log_mode() {
        let costs = Costs::new(None, (512, 1), (25, 40));
        let mut node = Node { counter: 0, sectors: 3, is_page: false };
        let read = Operation::Read { sectors: 3 };
        let reads = (1..).find(|_| node.serve(&costs, read, TUNING)).unwrap_or(0);
        // 2 x 307 more each time, until that is 3 x 307 + 4096 and back 307 + 4096.
        assert_eq!(reads, 16);
        node = Node { counter: 0, sectors: 1, is_page: true };
        let write = Operation::Write { is_first: true };
        let writes = (1..).find(|_| node.serve(&costs, write, TUNING)).unwrap_or(0);
        assert_eq!(writes, 3);
    }
}
