//! Draws a chart, on whatever plotters can draw on.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

use super::axis::{Axis, Marked, Scale, size_ticks};
use super::chart::{Chart, Curve};
use crate::bench::case::{Better, Who};
use crate::size::Size;

/// The drawing's size, before scaling.
pub const WIDTH: u32 = 900;
/// See [`WIDTH`].
pub const HEIGHT: u32 = 560;
/// The font's name: in the SVG whatever the viewer has, in the PNG the one that is built in.
pub const FONT: &str = "sans-serif";

const INK: RGBColor = RGBColor(31, 35, 40);
const FAINT: RGBColor = RGBColor(218, 222, 227);
const QUIET: RGBColor = RGBColor(101, 109, 118);
/// For several things, a colour each; a single one takes a colour for each contender.
const COLOURS: [RGBColor; 5] = [
    RGBColor(9, 105, 218),
    RGBColor(188, 76, 0),
    RGBColor(26, 127, 55),
    RGBColor(130, 80, 223),
    RGBColor(207, 34, 46),
];

/// Draws `chart`, `scale` times as large, with a line that says where it was measured.
pub fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    chart: &Chart,
    measured: &str,
    scale: u32,
) -> anyhow::Result<()>
where
    B::ErrorType: 'static,
{
    let size = |pixels: u32| pixels * scale;
    let text = |pixels: u32, colour: &'static RGBColor| TextStyle::from((FONT, size(pixels))).color(colour);
    area.fill(&WHITE)?;
    let title = match chart.unit.better() {
        Better::Lower => format!("{}: {} by message size (less is better)", chart.row, chart.unit),
        Better::Higher => format!("{}: {} by message size (more is better)", chart.row, chart.unit),
    };
    let at = |x: u32, y: u32| (size(x) as i32, size(y) as i32);
    area.draw(&Text::new(title, at(24, 16), text(24, &INK)))?;
    area.draw(&Text::new(measured.to_owned(), at(24, 46), text(15, &QUIET)))?;

    let (least, most) = chart.extremes();
    let spread = most / least;
    let y = match chart.unit.better() {
        Better::Lower if spread > 8.0 => Axis::of(Scale::Logarithmic, least, most),
        _ => Axis::of(Scale::Linear, least, most),
    };
    let sizes = chart.sizes();
    let (first, last) = (place_of(sizes[0]), place_of(sizes[sizes.len() - 1]));
    let x = Marked { range: first - 0.25..last + 0.25, ticks: size_ticks(&sizes, 10) };
    let vertical = Marked { range: y.range.clone(), ticks: y.ticks.clone() };
    let mut context = ChartBuilder::on(area)
        .margin_top(size(76))
        .margin_left(size(12))
        .margin_right(size(28))
        .margin_bottom(size(12))
        .x_label_area_size(size(36))
        .y_label_area_size(size(62))
        .build_cartesian_2d(x, vertical)?;
    context
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT.stroke_width(scale))
        .axis_style(QUIET.stroke_width(scale))
        .x_labels(32)
        .y_labels(32)
        .x_label_style(text(15, &INK))
        .y_label_style(text(15, &INK))
        .x_label_formatter(&|exponent| Size(1 << exponent.round() as u32).to_string())
        .y_label_formatter(&|place| y.label(*place))
        .draw()?;

    let several = chart.has_several_names();
    for curve in &chart.curves {
        let colour = if several { COLOURS[curve.index % COLOURS.len()] } else { colour_of(curve.who) };
        let line = colour.stroke_width(size(2));
        let places: Vec<(f64, f64)> =
            curve.points.iter().map(|(bytes, value)| (place_of(*bytes), y.place(value.median))).collect();
        for (bytes, value) in &curve.points {
            let whisker = [value.min, value.max].map(|value| (place_of(*bytes), y.place(value)));
            context
                .draw_series([PathElement::new(whisker.to_vec(), colour.mix(0.45).stroke_width(size(1)))])?;
        }
        let label = label(curve, several);
        if curve.who == Who::Ours {
            let series = context.draw_series(LineSeries::new(places.clone(), line))?;
            series.label(label).legend(move |(x, y)| {
                PathElement::new([(x, y), (x + size(26) as i32, y)], colour.stroke_width(size(2)))
            });
        } else {
            let (dash, gap) = dashes(curve.who);
            let series =
                context.draw_series(DashedLineSeries::new(places.clone(), size(dash), size(gap), line))?;
            series.label(label).legend(move |(x, y)| {
                let end = x + size(26) as i32;
                DashedPathElement::new(
                    vec![(x, y), (end, y)],
                    size(dash),
                    size(gap),
                    colour.stroke_width(size(2)),
                )
            });
        }
        context.draw_series(places.into_iter().map(|place| Circle::new(place, size(3), colour.filled())))?;
    }
    context
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .legend_area_size(size(34))
        .margin(size(10))
        .label_font(text(15, &INK))
        .background_style(WHITE.mix(0.9))
        .border_style(FAINT)
        .draw()?;
    area.present()?;
    Ok(())
}

fn place_of(bytes: u64) -> f64 {
    (bytes as f64).log2()
}

fn label(curve: &Curve, several: bool) -> String {
    if several { format!("{}, {}", curve.who, curve.name) } else { curve.who.to_string() }
}

const fn colour_of(who: Who) -> RGBColor {
    match who {
        Who::Ours => COLOURS[0],
        Who::Baseline => COLOURS[1],
        Who::Peer => COLOURS[3],
        Who::Driver | Who::Nccl => COLOURS[2],
    }
}

/// Lengths of a dash and of the gap behind it.
const fn dashes(who: Who) -> (u32, u32) {
    match who {
        Who::Ours | Who::Baseline => (8, 5),
        Who::Peer => (3, 4),
        Who::Driver | Who::Nccl => (14, 5),
    }
}
