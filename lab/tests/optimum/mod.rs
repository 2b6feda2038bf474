//! What a buffer costs, and the least that a sequence of operations on it can cost.

use trees::la_tree::policy::Estimate;

/// U, in bytes, of a budget of 1 KiB; the most bytes of an update where U is never reached.
pub(crate) const FULL: u64 = 64;

/// An operation that meets one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// So many bytes are appended.
    Update(u64),
    Lookup,
}

/// What the lookup at which a buffer is emptied costs besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    /// Its scan. Buffers are emptied at lookups only, and U is never reached.
    Scans,
    /// Nothing: emptying reads the buffer anyway. Buffers may be emptied whenever it pays, and are
    /// at an update that makes them larger than U.
    Answers,
}

impl Model {
    /// U, in bytes.
    pub(crate) fn most(self) -> u64 {
        match self {
            Model::Scans => 1 << 20,
            Model::Answers => FULL,
        }
    }
}

/// What a buffer costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    pub(crate) model: Model,
    /// Scanning a byte: the paper's rho.
    pub(crate) scan: u64,
    /// Emptying: delta, and gamma a byte.
    pub(crate) fixed: u64,
    pub(crate) each: u64,
}

impl Costs {
    pub(crate) fn emptying(&self, bytes: u64) -> u64 {
        self.fixed + self.each * bytes
    }

    /// The scan that a lookup pays although the buffer is emptied at it.
    pub(crate) fn scan_besides(&self, bytes: u64) -> u64 {
        match self.model {
            Model::Scans => self.scan * bytes,
            Model::Answers => 0,
        }
    }

    pub(crate) fn estimate(&self, bytes: u64) -> Estimate {
        Estimate { scan: self.scan * bytes, emptying: self.emptying(bytes) }
    }
}

/// Prefix sums over operations, from which the cost between two emptyings follows at once.
pub(crate) struct Sums {
    /// Bytes appended before each operation.
    pub(crate) bytes: Vec<u64>,
    /// Lookups before each operation, and the sum of the bytes appended before each of them.
    pub(crate) lookups: Vec<u64>,
    pub(crate) met: Vec<u64>,
}

impl Sums {
    pub(crate) fn new(operations: &[Operation]) -> Self {
        let mut sums = Sums { bytes: vec![0], lookups: vec![0], met: vec![0] };
        for (place, operation) in operations.iter().enumerate() {
            let (bytes, lookups, met) = (sums.bytes[place], sums.lookups[place], sums.met[place]);
            let (more, looks) = match operation {
                Operation::Update(more) => (*more, 0),
                Operation::Lookup => (0, 1),
            };
            sums.bytes.push(bytes + more);
            sums.lookups.push(lookups + looks);
            sums.met.push(met + looks * bytes);
        }
        sums
    }

    /// Bytes of the lookups from operation `from` up to before `to`, if the buffer was empty at
    /// `from`.
    pub(crate) fn scanned(&self, from: usize, to: usize) -> u64 {
        let lookups = self.lookups[to] - self.lookups[from];
        self.met[to] - self.met[from] - lookups * self.bytes[from]
    }
}

/// What emptying a buffer, which has `bytes` bytes by then, costs at `operation`; `None` if it is
/// not emptied there.
pub(crate) fn emptying(operation: Operation, bytes: u64, costs: Costs) -> Option<u64> {
    match operation {
        Operation::Lookup => Some(costs.emptying(bytes) + costs.scan_besides(bytes)),
        Operation::Update(_) if costs.model == Model::Scans => None,
        Operation::Update(_) => Some(costs.emptying(bytes)),
    }
}

/// The best that can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Optimum {
    pub(crate) cost: u64,
    /// Bytes that are in the buffer at the end.
    pub(crate) left: u64,
}

/// The least that `operations` can cost, with a buffer of at most U bytes.
pub(crate) fn optimum(operations: &[Operation], costs: Costs) -> Optimum {
    let sums = Sums::new(operations);
    let (end, most) = (operations.len(), costs.model.most());
    // best[p]: the least cost of the first p operations if the buffer is empty after them.
    let mut best = vec![u64::MAX; end + 1];
    best[0] = 0;
    let mut least = Optimum { cost: u64::MAX, left: 0 };
    for from in 0..=end {
        if best[from] == u64::MAX {
            continue;
        }
        for to in from..end {
            if sums.bytes[to] - sums.bytes[from] > most {
                break;
            }
            let bytes = sums.bytes[to + 1] - sums.bytes[from];
            let Some(emptying) = emptying(operations[to], bytes, costs) else {
                continue;
            };
            let cost = best[from] + costs.scan * sums.scanned(from, to) + emptying;
            best[to + 1] = best[to + 1].min(cost);
        }
        let left = sums.bytes[end] - sums.bytes[from];
        let cost = best[from] + costs.scan * sums.scanned(from, end);
        if left <= most && cost < least.cost {
            least = Optimum { cost, left };
        }
    }
    least
}

/// The same by trying every set of operations to empty at.
pub(crate) fn optimum_by_trying(operations: &[Operation], costs: Costs) -> u64 {
    let sets = 1_u32 << operations.len();
    let mut least = u64::MAX;
    'sets: for set in 0..sets {
        let (mut bytes, mut cost) = (0, 0);
        for (place, operation) in operations.iter().enumerate() {
            if let Operation::Update(more) = operation {
                bytes += more;
            }
            if set >> place & 1 == 1 {
                let Some(emptying) = emptying(*operation, bytes, costs) else {
                    continue 'sets;
                };
                cost += emptying;
                bytes = 0;
            } else if bytes > costs.model.most() {
                continue 'sets;
            } else if *operation == Operation::Lookup {
                cost += costs.scan * bytes;
            }
        }
        least = least.min(cost);
    }
    least
}
