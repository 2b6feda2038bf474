//! Cost per operation by cause: a bar a tree, its parts stacked.

use lab::{Measured, Row};
use plotters::prelude::{ChartBuilder, Rectangle, Text};
use plotters::style::Color;

use super::svg::{self, Anchor, Area, WIDTH};
use super::{Result, theme};
use crate::numbers::{short, three_digits};
use crate::rows;

/// Room for each tree: a line with its name, and the bar.
const BAND: u32 = 58;
const BAR_TOP: f64 = 22.0;
const BAR_BOTTOM: f64 = 48.0;
const AXIS: u32 = 44;
/// Half a label of the axis may stand out at both sides.
const MARGIN: u32 = 24;
/// Room for the sum beside the longest bar.
const BESIDE: f64 = 1.12;
const LONGEST_NAME: usize = 110;

/// The plot, or `None` where nothing cost anything.
pub(crate) fn plot(measured: &[Measured], causes: &[String]) -> Result<Option<String>> {
    let trees: Vec<&Row> = measured.iter().map(|measured| &measured.row).collect();
    let most = trees.iter().map(|row| total(row)).fold(0.0, f64::max);
    if most <= 0.0 || !most.is_finite() {
        return Ok(None);
    }
    let height = u32::try_from(trees.len()).unwrap_or(1) * BAND;
    let time = rows::time_name(measured);
    let label = format!("{} an operation by cause, a bar a tree", rows::capital(time));
    let drawing = svg::draw((WIDTH, height + AXIS), &label, |area| {
        chart(area, &trees, causes, (f64::from(height), most), time)
    })?;
    Ok(Some(drawing))
}

fn total(row: &Row) -> f64 {
    if row.error.is_some() { 0.0 } else { row.by_cause.values().sum() }
}

fn chart(
    area: &Area<'_>,
    rows: &[&Row],
    causes: &[String],
    (height, most): (f64, f64),
    time: &str,
) -> Result<()> {
    let scale = Scale::to(most * BESIDE);
    let mut chart = ChartBuilder::on(area)
        .x_label_area_size(AXIS)
        .margin_left(MARGIN)
        .margin_right(MARGIN)
        .build_cartesian_2d(0.0..most * BESIDE, height..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .y_labels(0)
        .x_labels(8)
        .x_desc(format!("{time} an operation, in µs"))
        .x_label_formatter(&|us| short(*us))
        .bold_line_style(theme::GRID.drawn())
        .light_line_style(theme::GRID.drawn().mix(0.0))
        .axis_style(theme::GRID.drawn())
        .label_style(svg::text(13.0, theme::MUTED, Anchor::Middle))
        .axis_desc_style(svg::text(13.0, theme::MUTED, Anchor::Middle))
        .draw()?;
    let plane = chart.plotting_area();
    for (place, row) in rows.iter().enumerate() {
        let top = f64::from(BAND) * place as f64;
        let name = svg::shortened(&row.tree, LONGEST_NAME);
        plane.draw(&Text::new(name, (0.0, top + 10.0), svg::bold(14.0, theme::INK, BEGIN)))?;
        let end = bar(plane, row, causes, top, scale)?;
        let sum = match row.error {
            None => format!("{} µs", three_digits(total(row))),
            Some(_) => "failed".to_owned(),
        };
        let beside = (end + scale.of_pixels(8.0), top + (BAR_TOP + BAR_BOTTOM) / 2.0);
        plane.draw(&Text::new(sum, beside, svg::bold(14.0, theme::INK, BEGIN)))?;
    }
    Ok(())
}

const BEGIN: Anchor = Anchor::Begin;

/// How many microseconds a pixel stands for.
#[derive(Clone, Copy)]
struct Scale {
    us_per_pixel: f64,
}

impl Scale {
    fn to(most: f64) -> Self {
        Scale { us_per_pixel: most / f64::from(WIDTH - 2 * MARGIN) }
    }

    fn of_pixels(self, pixels: f64) -> f64 {
        self.us_per_pixel * pixels
    }
}

type Plane<'a> = plotters::drawing::DrawingArea<
    plotters::prelude::SVGBackend<'a>,
    plotters::coord::cartesian::Cartesian2d<
        plotters::coord::types::RangedCoordf64,
        plotters::coord::types::RangedCoordf64,
    >,
>;

/// Draws the parts of one bar, with their figures where they fit; returns where it ends.
fn bar(plane: &Plane<'_>, row: &Row, causes: &[String], top: f64, scale: Scale) -> Result<f64> {
    let mut begin = 0.0;
    if row.error.is_some() {
        return Ok(begin);
    }
    for name in causes {
        let us = row.by_cause.get(name).copied().unwrap_or(0.0);
        if us <= 0.0 {
            continue;
        }
        let (colour, on) = theme::cause(name);
        let corners = [(begin, top + BAR_TOP), (begin + us, top + BAR_BOTTOM)];
        plane.draw(&Rectangle::new(corners, colour.drawn().filled()))?;
        let figure = three_digits(us);
        if us > scale.of_pixels(14.0 + 8.0 * figure.len() as f64) {
            let middle = (begin + us / 2.0, top + (BAR_TOP + BAR_BOTTOM) / 2.0);
            plane.draw(&Text::new(figure, middle, svg::text(13.0, on, Anchor::Middle)))?;
        }
        begin += us;
    }
    Ok(begin)
}
