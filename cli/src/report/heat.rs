//! Erases over the blocks: a map a tree, all in one scale of colours.

use lab::Measured;
use plotters::prelude::Rectangle;
use plotters::style::Color;

use super::svg;
use super::theme::{HEAT, NEVER};
use super::{Result, theme};
use crate::numbers::{thousands, three_digits};

/// Cells of a map; more blocks share cells.
const CELLS_MOST: usize = 2048;
/// The widest and narrowest map, in cells.
const COLUMNS: [usize; 2] = [16, 64];
const WIDTH: u32 = 640;

/// The maps of a comparison.
#[derive(Debug, Default)]
pub(crate) struct Maps {
    /// One for each tree whose erases can be seen.
    pub(crate) maps: Vec<Map>,
    /// What the colours mean, from few to many erases.
    pub(crate) legend: Vec<Step>,
    /// Trees whose erases can't be seen.
    pub(crate) unseen: Vec<String>,
}

/// The map of one tree.
#[derive(Debug)]
pub(crate) struct Map {
    /// The tree.
    pub(crate) tree: String,
    /// The plot.
    pub(crate) svg: String,
    /// What it shows, in words.
    pub(crate) caption: String,
}

/// A colour and the erases that it stands for.
#[derive(Debug)]
pub(crate) struct Step {
    /// The colour, as plots write it.
    pub(crate) colour: String,
    /// The erases.
    pub(crate) erases: String,
}

/// Draws the maps.
pub(crate) fn plot(measured: &[Measured]) -> Result<Maps> {
    let mut maps = Maps::default();
    let seen = |measured: &&Measured| !measured.erases_by_block.is_empty();
    let scale = Scale::over(measured.iter().filter(seen));
    for measured in measured {
        let tree = measured.row.tree.clone();
        if measured.erases_by_block.is_empty() {
            maps.unseen.push(tree);
            continue;
        }
        let (svg, caption) = map(&measured.erases_by_block, &scale)?;
        maps.maps.push(Map { tree, svg, caption });
    }
    if !maps.maps.is_empty() {
        maps.legend = scale.legend();
    }
    Ok(maps)
}

/// One map and its caption.
fn map(erases: &[u32], scale: &Scale) -> Result<(String, String)> {
    let share = erases.len().div_ceil(CELLS_MOST);
    let cells: Vec<f64> = erases.chunks(share).map(mean).collect();
    let columns = columns(cells.len());
    let rows = cells.len().div_ceil(columns);
    let side = WIDTH / u32::try_from(columns).unwrap_or(WIDTH);
    let size = (WIDTH, side * u32::try_from(rows).unwrap_or(1));
    let drawing = svg::draw(size, "Erases of each block", |area| {
        for (place, cell) in cells.iter().enumerate() {
            let side = side as i32;
            let (x, y) = ((place % columns) as i32 * side, (place / columns) as i32 * side);
            let corners = [(x, y), (x + side - 1, y + side - 1)];
            area.draw(&Rectangle::new(corners, scale.colour(*cell).drawn().filled()))?;
        }
        Ok(())
    })?;
    Ok((drawing, caption(erases, share)))
}

fn mean(erases: &[u32]) -> f64 {
    erases.iter().map(|erases| f64::from(*erases)).sum::<f64>() / erases.len().max(1) as f64
}

/// Maps are about five times as wide as high.
fn columns(cells: usize) -> usize {
    let [least, most] = COLUMNS;
    let mut columns = least;
    while columns < most && columns * columns < cells * 4 {
        columns *= 2;
    }
    columns
}

fn caption(erases: &[u32], share: usize) -> String {
    let most = erases.iter().copied().max().unwrap_or(0);
    let never = erases.iter().filter(|erases| **erases == 0).count();
    let cell = match share {
        1 => "a cell a block".to_owned(),
        share => format!("a cell is the mean of {share} blocks"),
    };
    format!(
        "{} blocks, {cell}. Most erases of a block {}, mean {}, never erased {}.",
        thousands(erases.len() as u64),
        thousands(u64::from(most)),
        three_digits(mean(erases)),
        thousands(never as u64),
    )
}

/// Which erases have which colour.
///
/// Invariant: the bounds rise, there are at most as many as colours, and the last is the most.
#[derive(Debug)]
struct Scale {
    /// The most erases of each step.
    bounds: Vec<u64>,
}

impl Scale {
    /// A scale for all these trees: in equal steps, or in growing ones where few blocks were
    /// erased far more often than most.
    fn over<'m>(measured: impl Iterator<Item = &'m Measured>) -> Self {
        let erases: Vec<u32> =
            measured.flat_map(|measured| &measured.erases_by_block).copied().collect();
        let most = u64::from(erases.iter().copied().max().unwrap_or(0)).max(1);
        let skewed = most as f64 > 8.0 * mean(&erases).max(1.0);
        let steps = HEAT.len();
        let bound = |step: usize| {
            let part = (step + 1) as f64 / steps as f64;
            let bound = if skewed { (most as f64).powf(part) } else { most as f64 * part };
            (bound.round() as u64).clamp(1, most)
        };
        let mut bounds: Vec<u64> = (0..steps).map(bound).collect();
        bounds.dedup();
        Scale { bounds }
    }

    /// The colour of the step at `place`; fewer steps than colours spread over all colours.
    fn step(&self, place: usize) -> theme::Colour {
        let last = self.bounds.len() - 1;
        match last {
            0 => HEAT[HEAT.len() / 2],
            _ => HEAT[place.min(last) * (HEAT.len() - 1) / last],
        }
    }

    fn colour(&self, erases: f64) -> theme::Colour {
        if erases <= 0.0 {
            return NEVER;
        }
        let place = self.bounds.iter().position(|bound| erases <= *bound as f64);
        self.step(place.unwrap_or(self.bounds.len() - 1))
    }

    fn legend(&self) -> Vec<Step> {
        let mut legend = vec![Step { colour: NEVER.hex(), erases: "never".to_owned() }];
        let mut from = 1;
        for (place, to) in self.bounds.iter().enumerate() {
            let erases = match *to {
                to if to == from => thousands(to),
                to => format!("{}–{}", thousands(from), thousands(to)),
            };
            legend.push(Step { colour: self.step(place).hex(), erases });
            from = to + 1;
        }
        legend
    }
}

#[cfg(test)]
mod tests {
    use super::{NEVER, Scale, columns, plot};
    use crate::report::samples;

    fn scale(erases: &[u32]) -> Scale {
        let mut measured = samples::measured(1);
        measured[0].erases_by_block = erases.to_vec();
        Scale::over(measured.iter())
    }

    #[test]
    fn every_count_of_erases_has_one_step_in_the_legend() {
        for most in [0, 1, 2, 3, 6, 7, 8, 20, 1000, 100_000] {
            for rest in [0, 1, most] {
                let scale = scale(&[most, rest, rest, rest, rest, rest, rest, rest, rest, rest]);
                assert!(scale.bounds.is_sorted_by(|a, b| a < b), "{most} {rest} {scale:?}");
                assert_eq!(scale.bounds.last(), Some(&u64::from(most.max(1))));
                assert_eq!(scale.legend().len(), scale.bounds.len() + 1);
                assert_eq!(scale.colour(0.0), NEVER);
                assert_ne!(scale.colour(f64::from(most.max(1))), NEVER);
            }
        }
    }

    #[test]
    fn thousands_of_blocks_share_cells() {
        let mut measured = samples::measured(1);
        measured[0].erases_by_block = vec![1; 8192];
        let maps = plot(&measured).unwrap();
        assert_eq!(maps.maps[0].svg.matches("<rect").count(), 2048);
        assert!(maps.maps[0].caption.contains("mean of 4 blocks"));
    }

    #[test]
    fn a_device_without_blocks_is_told() {
        let mut measured = samples::measured(2);
        measured[1].erases_by_block.clear();
        let maps = plot(&measured).unwrap();
        assert_eq!(maps.maps.len(), 1);
        assert_eq!(maps.unseen, [measured[1].row.tree.clone()]);
    }

    #[test]
    fn maps_are_wider_than_high() {
        for (cells, width) in [(1, 16), (64, 16), (512, 64), (1024, 64), (2048, 64)] {
            assert_eq!(columns(cells), width, "{cells}");
        }
    }
}
