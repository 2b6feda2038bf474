//! The analysis of the mu*-Tree paper (4.1.2, 4.1.3): equations 3 to 10, the best layout and the
//! limits. Here, as there, a page holds `f` entries without a header, nodes are full, and levels
//! count from 1.

use crate::path_copying::layout::Division;
use index::random_keys::last_that_holds;

/// `f`, `e`, `O_u`, `c_r` and `c_w` of table 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// `f`: entries in a page.
    pub fanout: f64,
    /// `e`: pages that the tree may use.
    pub pages: f64,
    /// `O_u`: updates.
    pub updates: f64,
    /// `c_r`: reading a page, in microseconds.
    pub read_us: f64,
    /// `c_w`: writing a page, in microseconds.
    pub write_us: f64,
}

/// A layout, and what an update costs with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// `p1`.
    pub leaf: f64,
    /// `h`.
    pub height: u32,
    /// `Phi`, in microseconds.
    pub update_us: f64,
}

/// Equation 3: the share of each inner node with which a tree of `height` levels is largest.
pub fn inner_share(leaf: f64, height: u32) -> f64 {
    (1.0 - leaf) / f64::from(height - 1)
}

/// Equation 4: the records that a tree of `height` levels holds. A lone leaf has the whole page.
pub fn records(fanout: f64, leaf: f64, height: u32) -> f64 {
    match height {
        0 => 0.0,
        1 => fanout,
        _ => {
            let inner = fanout * inner_share(leaf, height);
            fanout * leaf * libm::pow(inner, f64::from(height - 1))
        }
    }
}

/// Equation 5: the least height that holds so many records, by trying equation 4; `None` if none
/// does. The printed form has `e f p1` where solving equation 4 gives `f (1 - p1)`, which a test
/// shows.
pub fn least_height(fanout: f64, leaf: f64, wanted: f64) -> Option<u32> {
    // With less than one entry in an inner node, or past the best height, more levels hold less.
    let most = libm::ceil(fanout * (1.0 - leaf)).max(1.0) as u32 + 1;
    (1..=most).find(|height| records(fanout, leaf, *height) >= wanted)
}

/// Mu-Tree's counterpart of equation 4: the records that a tree of `height` levels holds whose
/// nodes have the sizes of equation 1.
pub fn halved_records(fanout: f64, height: u32) -> f64 {
    (1..=height).map(|level| fanout * halved_share(level, height)).product()
}

/// Equation 1, as a share of the page.
fn halved_share(level: u32, height: u32) -> f64 {
    let halvings = match (level, height) {
        (_, 1) => 0,
        (level, height) if level == height => level - 1,
        (level, _) => level,
    };
    libm::pow(0.5, f64::from(halvings))
}

/// The most levels that pages of so many entries allow, with two entries in the smallest node, and
/// the most records of such a tree (4.1.3).
pub fn limit(division: Division, fanout: u32) -> (u32, f64) {
    match division {
        Division::Halves => {
            // The root and its children have `f / 2^(H - 1)` entries.
            let height = fanout.max(2).ilog2();
            (height, halved_records(f64::from(fanout), height))
        }
        // Whole nodes have no limit of their own; nobody asks for one.
        Division::Whole => (u32::MAX, f64::INFINITY),
        Division::Even => {
            let height = (fanout / 2).max(1);
            (height, libm::pow(f64::from(fanout) / f64::from(height), f64::from(height)))
        }
    }
}

impl Setting {
    /// Equation 6: `C_u`, and with it `C_gc`, the cost of moving a page.
    pub fn update_us(&self, height: u32) -> f64 {
        self.read_us * f64::from(height) + self.write_us
    }

    /// Equation 7: `N_r`, pages to be reclaimed.
    pub fn reclaimed(&self) -> f64 {
        (self.updates - self.pages).max(0.0)
    }

    /// Equation 8: `P_v`, the chance that a victim page holds a live leaf.
    pub fn live(&self, records: f64, leaf: f64) -> f64 {
        records / (self.pages * self.fanout * leaf)
    }

    /// Equation 9: `O_gc`, pages moved by collection.
    pub fn moved(&self, records: f64, leaf: f64) -> f64 {
        self.reclaimed() * self.live(records, leaf)
    }

    /// Equation 10: `Phi`, what an update costs on average; infinite if no height holds so many
    /// records.
    pub fn average_us(&self, records: f64, leaf: f64) -> f64 {
        match least_height(self.fanout, leaf, records) {
            Some(height) => self.average_at(records, leaf, height),
            None => f64::INFINITY,
        }
    }

    fn average_at(&self, records: f64, leaf: f64, height: u32) -> f64 {
        let operations = self.updates + self.moved(records, leaf);
        operations * self.update_us(height) / self.updates
    }

    /// The leaf share from `least` on, and the height, with which an update of a tree of so many
    /// records costs least.
    ///
    /// At one height `Phi` falls as the leaf grows, so the best leaf of each height is the largest
    /// one with which it still holds the records, and only these are compared.
    pub fn best(&self, wanted: f64, least: f64) -> Option<Best> {
        let mut best: Option<Best> = None;
        for height in 1..=self.fanout as u32 {
            let Some(leaf) = self.largest_leaf(wanted, least, height) else {
                continue;
            };
            let update_us = self.average_at(wanted, leaf, height);
            // More levels only cost more once they make the leaf no larger.
            if self.update_us(height) > best.map_or(f64::INFINITY, |best| best.update_us) {
                break;
            }
            if best.is_none_or(|best| update_us < best.update_us) {
                best = Some(Best { leaf, height, update_us });
            }
        }
        best
    }

    /// The largest leaf share from `least` on with which a tree of this height holds so many
    /// records. Above a share of `1 / height` equation 4 falls as the leaf grows.
    fn largest_leaf(&self, wanted: f64, least: f64, height: u32) -> Option<f64> {
        let holds = |leaf| records(self.fanout, leaf, height) >= wanted;
        if height == 1 {
            return holds(1.0).then_some(1.0);
        }
        let low = least.max(1.0 / f64::from(height));
        holds(low).then(|| last_that_holds(low, 1.0, holds))
    }

    /// The wandering B+-tree beside it: an update writes a page for every level (section 2.3), so
    /// `C_u = (c_r + c_w) h`, each update makes `h` pages obsolete, and a victim page lives with
    /// the chance that it is one of the tree's. Nodes are full pages.
    pub fn wandering_average_us(&self, wanted: f64) -> f64 {
        let height = wandering_height(self.fanout, wanted);
        let update = f64::from(height) * (self.read_us + self.write_us);
        let written = self.updates * f64::from(height);
        let live = wandering_pages(self.fanout, wanted) / self.pages;
        let moved = (written - self.pages).max(0.0) * live;
        (self.updates + moved) * update / self.updates
    }
}

/// Levels of a B+-tree of so many records, whose nodes are full pages.
pub fn wandering_height(fanout: f64, wanted: f64) -> u32 {
    let mut height = 1;
    let mut holds = fanout;
    while holds < wanted && height < 64 {
        holds *= fanout;
        height += 1;
    }
    height
}

/// Pages of a B+-tree of so many records, whose nodes are full pages.
fn wandering_pages(fanout: f64, wanted: f64) -> f64 {
    let mut pages = 0.0;
    let mut nodes = wanted;
    for _ in 0..wandering_height(fanout, wanted) {
        nodes = libm::ceil(nodes / fanout);
        pages += nodes;
    }
    pages
}

#[cfg(test)]
mod tests;
