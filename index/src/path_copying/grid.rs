//! Classes of nodes by what they use: what shares of a leaf they have room in, or beside.

use super::layout::Share;
use super::policy::Policy;

/// The most classes of leaves, and of inner nodes.
const CLASSES_MOST: u32 = 128;

/// What classes mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    alpha: u32,
    beta: u32,
    /// What is between two classes.
    step: u32,
    pub(super) classes: u32,
    area: u32,
}

/// The classes of a policy's shares.
pub(super) fn grid(policy: &Policy) -> Grid {
    let bounds = policy.bounds();
    let (alpha, beta) = (u32::from(bounds.alpha.bits()), u32::from(bounds.beta.bits()));
    let delta = u32::from(bounds.delta.bits());
    let steps = (alpha - beta.min(alpha)).div_ceil(delta);
    let step = delta * (steps + 1).div_ceil(CLASSES_MOST - 2);
    // The last share is beta itself.
    let classes = (alpha - beta.min(alpha)).div_ceil(step) + 2;
    Grid { alpha, beta, step, classes, area: policy.pages().area() }
}

impl Grid {
    /// Bytes of the counts of all classes.
    pub(super) fn bytes(&self) -> u64 {
        2 * u64::from(self.classes) * size_of::<u32>() as u64
    }

    /// A share, by its number.
    pub(super) fn share(&self, number: u32) -> u32 {
        self.alpha.saturating_sub(number * self.step).max(self.beta)
    }

    /// The bytes of a leaf of this share.
    fn leaf_bytes(&self, number: u32) -> u32 {
        Share::from_bits(self.share(number) as u16).map_or(0, |share| share.of(self.area))
    }

    /// The class of a leaf that uses so many bytes.
    pub(super) fn leaf_class(&self, used: u32) -> usize {
        let last = self.classes - 1;
        if used > self.area {
            return 0;
        }
        // No area is above 32 KiB.
        let needed = (used << 16).div_ceil(self.area.max(1));
        if needed > self.alpha {
            return 0;
        }
        if needed <= self.beta {
            return last as usize;
        }
        ((self.alpha - needed) / self.step + 1).min(last) as usize
    }

    /// The class of an inner node that uses so many bytes, in a tree of this height.
    pub(super) fn inner_class(&self, used: u32, height: u8) -> usize {
        let last = self.classes - 1;
        let rest = self.area.saturating_sub(used.saturating_mul(u32::from(height.max(2)) - 1));
        if self.leaf_bytes(last - 1) > rest {
            return last as usize;
        }
        let needed = (rest << 16) / self.area.max(1);
        let mut class = self.alpha.saturating_sub(needed) / self.step;
        // Shares are rounded.
        while class < last && self.leaf_bytes(class) > rest {
            class += 1;
        }
        class.min(last - 1) as usize
    }

    /// The most bytes that an inner node of this class uses.
    pub(super) fn inner_bytes(&self, class: usize, height: u8) -> u32 {
        (self.area - self.leaf_bytes(class as u32)) / (u32::from(height.max(2)) - 1)
    }
}
