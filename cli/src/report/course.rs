//! Cost over the run: a line a tree.

use lab::Measured;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::{ChartBuilder, IntoLogRange, LineSeries, Ranged};
use plotters::style::Color;

use super::svg::{self, Anchor, Area, WIDTH};
use super::{Result, theme};
use crate::numbers::{short, thousands};
use crate::rows;

const HEIGHT: u32 = 400;
/// From this ratio of the dearest tree to the cheapest on, the axis is logarithmic.
const WIDE: f64 = 40.0;

/// A line: its place among the trees, its mean, and cost over operations.
struct Line {
    place: usize,
    mean: f64,
    points: Vec<(f64, f64)>,
}

/// The plot, and whether its scale is logarithmic; `None` where there is no line to draw.
pub(crate) fn plot(measured: &[Measured]) -> Result<Option<(String, bool)>> {
    let lines: Vec<Line> =
        measured.iter().enumerate().filter_map(|(place, measured)| line(place, measured)).collect();
    let costs = || lines.iter().flat_map(|line| &line.points).map(|(_, cost)| *cost);
    let most = costs().fold(0.0, f64::max);
    let end = lines.iter().flat_map(|line| &line.points).map(|(x, _)| *x).fold(0.0, f64::max);
    if most <= 0.0 || end <= 0.0 {
        return Ok(None);
    }
    let means = || lines.iter().map(|line| line.mean).filter(|mean| *mean > 0.0);
    let cheapest = means().fold(f64::INFINITY, f64::min);
    let logarithmic = means().fold(0.0, f64::max) > WIDE * cheapest;
    let label = format!("{} an operation over the run", rows::capital(rows::time_name(measured)));
    let drawing = svg::draw((WIDTH, HEIGHT), &label, |area| {
        if logarithmic {
            // A tree that starts in its cache costs next to nothing there: that is cut off.
            let least = cheapest / 10.0;
            chart(area, &lines, end, (least..most * 1.3).log_scale(), least)
        } else {
            chart(area, &lines, end, 0.0..most * 1.06, 0.0)
        }
    })?;
    Ok(Some((drawing, logarithmic)))
}

/// The line of a tree that was measured to the end: parts of a run stand at their ends.
fn line(place: usize, measured: &Measured) -> Option<Line> {
    let parts = measured.course_us_per_op.len();
    if parts == 0 || measured.row.error.is_some() {
        return None;
    }
    let operations = measured.row.operations as f64;
    let costs = measured.course_us_per_op.iter().enumerate();
    let points = costs
        .filter(|(_, cost)| cost.is_finite())
        .map(|(part, cost)| (operations * (part + 1) as f64 / parts as f64, *cost))
        .collect();
    Some(Line { place, mean: measured.row.device_us_per_op, points })
}

fn chart<Y>(area: &Area<'_>, lines: &[Line], end: f64, range: Y, floor: f64) -> Result<()>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .x_label_area_size(50)
        .y_label_area_size(74)
        .margin_top(12)
        .margin_right(28)
        .build_cartesian_2d(0.0..end, range)?;
    let label = svg::text(13.0, theme::MUTED, Anchor::Middle);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(7)
        .y_labels(7)
        .x_desc("operations")
        .y_desc("µs an operation")
        .x_label_formatter(&|operations| thousands(operations.round() as u64))
        .y_label_formatter(&|us| short(*us))
        .bold_line_style(theme::GRID.drawn())
        .light_line_style(theme::GRID.drawn().mix(0.0))
        .axis_style(theme::GRID.drawn())
        .label_style(label.clone())
        .axis_desc_style(label)
        .draw()?;
    for line in lines {
        let style = theme::tree(line.place).drawn().stroke_width(2);
        let points = line.points.iter().map(|(x, cost)| (*x, cost.max(floor)));
        chart.draw_series(LineSeries::new(points, style))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::plot;
    use crate::report::samples;

    #[test]
    fn costs_far_apart_are_drawn_on_a_logarithmic_scale() {
        let mut measured = samples::measured(2);
        assert!(!plot(&measured).unwrap().unwrap().1);
        measured[1].course_us_per_op = vec![0.0, 0.5, 1.0];
        measured[1].row.device_us_per_op = 0.5;
        let (svg, logarithmic) = plot(&measured).unwrap().unwrap();
        assert!(logarithmic && svg.matches("<polyline").count() >= 2);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn no_line_is_drawn_where_nothing_was_measured() {
        let mut measured = samples::measured(2);
        measured[0].course_us_per_op = vec![0.0; 10];
        measured[1].row.error = Some("the device is full".to_owned());
        assert!(plot(&measured).unwrap().is_none());
        measured[0].course_us_per_op = vec![f64::NAN];
        assert!(plot(&measured).unwrap().is_none());
        assert!(plot(&[]).unwrap().is_none());
    }
}
