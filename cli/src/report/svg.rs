//! What all plots share: a drawing area that ends up as SVG inside the page, and text on it.

use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, IntoDrawingArea, IntoFont, SVGBackend, TextStyle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontFamily, FontStyle};

use super::Result;
use super::theme::Colour;

/// The width of every plot, in the units of its own coordinates; the page scales it.
pub(crate) const WIDTH: u32 = 960;

/// An area to draw on.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws a plot of `height`, and returns it as an `<svg>` element described by `label`.
pub(crate) fn draw(
    size: (u32, u32),
    label: &str,
    plot: impl FnOnce(&Area<'_>) -> Result<()>,
) -> Result<String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        plot(&area)?;
        area.present()?;
    }
    // The opening tag is made anew: the page scales the plot, and knows the name space.
    let body = text.split_once("<svg").and_then(|(_, rest)| rest.split_once('>'));
    let body = body.map_or("", |(_, body)| body);
    let (width, height) = size;
    Ok(format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">{body}"))
}

/// How a text begins, ends or stands around its place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    /// It begins there.
    Begin,
    /// Its middle is there.
    Middle,
}

/// A style for text of `size` in `colour`, centred on its place from top to bottom.
pub(crate) fn text(size: f64, colour: Colour, anchor: Anchor) -> TextStyle<'static> {
    styled(size, colour, anchor, FontStyle::Normal)
}

/// The same in bold.
pub(crate) fn bold(size: f64, colour: Colour, anchor: Anchor) -> TextStyle<'static> {
    styled(size, colour, anchor, FontStyle::Bold)
}

fn styled(size: f64, colour: Colour, anchor: Anchor, style: FontStyle) -> TextStyle<'static> {
    let horizontal = match anchor {
        Anchor::Begin => HPos::Left,
        Anchor::Middle => HPos::Center,
    };
    // The backend writes a font of this size smaller, by just this factor.
    const SHRINK: f64 = 1.24;
    let text = TextStyle::from((FontFamily::SansSerif, size * SHRINK, style).into_font());
    TextStyle {
        color: colour.drawn().to_backend_color(),
        pos: Pos::new(horizontal, VPos::Center),
        ..text
    }
}

/// At most `most` characters of `text`; what is left out of its middle is told by an ellipsis.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let tail = most / 3;
    let head: String = text.chars().take(most.saturating_sub(tail + 1)).collect();
    let tail: String = text.chars().skip(count - tail).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("b-plus", 10), "b-plus");
        assert_eq!(shortened("0123456789abcdef", 10), "012345…def");
        assert_eq!(shortened("µµµµ", 3), "µ…µ");
    }
}
