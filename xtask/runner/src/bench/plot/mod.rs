//! Plots of a run: latency and bandwidth against size, as SVG and as PNG.
//!
//! `chart` takes the curves from the record, `axis` places numbers, `draw` draws. No font of the system is needed: the one in
//! the PNG is built in.

mod axis;
mod chart;
mod draw;

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use plotters::prelude::{BitMapBackend, FontStyle, IntoDrawingArea, SVGBackend};
use plotters::style::register_font;

use self::chart::Chart;
use self::draw::{FONT, HEIGHT, WIDTH};
use super::record::Record;

/// Pixels of the PNG for each of the drawing's.
const SHARPNESS: u32 = 2;

/// Draws what `record` has curves for into `folder`; the files that were written.
pub fn write(record: &Record, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT)
        .map_err(|_| anyhow!("the built-in font cannot be read"))?;
    let measured = measured(record);
    let mut written = Vec::new();
    for chart in Chart::all(record) {
        let stem = folder.join(chart.file_stem());
        let (svg, png) = (stem.with_extension("svg"), stem.with_extension("png"));
        write_svg(&chart, &measured, &svg).with_context(|| format!("cannot draw {}", svg.display()))?;
        write_png(&chart, &measured, &png).with_context(|| format!("cannot draw {}", png.display()))?;
        written.extend([svg, png]);
    }
    Ok(written)
}

/// Where and when, for the line below the title.
fn measured(record: &Record) -> String {
    let machine = &record.machine;
    let driver = machine.driver.as_ref().map(|version| format!(", driver {version}")).unwrap_or_default();
    let date = machine.date.split(' ').next().unwrap_or_default();
    format!("{}{driver}, {date}; medians of {} with their spread", machine.device, record.repetitions)
}

fn write_svg(chart: &Chart, measured: &str, path: &Path) -> anyhow::Result<()> {
    let area = SVGBackend::new(path, (WIDTH, HEIGHT)).into_drawing_area();
    draw::draw(&area, chart, measured, 1)
}

fn write_png(chart: &Chart, measured: &str, path: &Path) -> anyhow::Result<()> {
    let (width, height) = (WIDTH * SHARPNESS, HEIGHT * SHARPNESS);
    let mut pixels = vec![0; (width * height * 3) as usize];
    {
        let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        draw::draw(&area, chart, measured, SHARPNESS)?;
    }
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use warpwire::device::{Device, DeviceSelector};

    use super::*;
    use crate::bench::case::{Point, Unit, Who};
    use crate::bench::record::{CaseRecord, ResultRecord};

    /// A run with a bandwidth curve of two contenders and one latency, which is no curve.
    fn record() -> Record {
        let mut record = Record::new(&Device::open(DeviceSelector::Cpu).unwrap(), 9);
        let case = |unit, bytes: u64, ours: f64| CaseRecord {
            row: "put".into(),
            name: "put".into(),
            configuration: bytes.to_string(),
            unit,
            aim: None,
            point: Some(Point { curve: "put".into(), bytes }),
            results: vec![
                ResultRecord { who: Who::Ours, shape: None, values: vec![ours, ours * 1.1, ours * 0.9] },
                ResultRecord { who: Who::Baseline, shape: None, values: vec![ours * 0.8] },
            ],
            failure: None,
        };
        record.cases = (10..=20)
            .map(|shift| case(Unit::GigabytesPerSecond, 1 << shift, f64::from(1 << (shift - 10))))
            .collect();
        record.cases.push(case(Unit::Microseconds, 1024, 2.0));
        record
    }

    #[test]
    fn curves_come_from_the_cases() {
        let charts = Chart::all(&record());
        let curves: Vec<_> = charts[0].curves.iter().map(|curve| (curve.who, curve.points.len())).collect();
        assert_eq!((charts.len(), charts[0].file_stem().as_str()), (1, "put-bandwidth"));
        assert_eq!(curves, [(Who::Ours, 11), (Who::Baseline, 11)]);
        assert!(!charts[0].has_several_names());
    }

    #[test]
    fn both_files_are_written_whole() {
        let folder = std::env::temp_dir().join(format!("warpwire-plots-{}", std::process::id()));
        let written = write(&record(), &folder).unwrap();
        let svg = fs::read_to_string(&written[0]).unwrap();
        assert!(svg.trim_end().ends_with("</svg>") && svg.contains("warpwire") && svg.contains("16 KiB"));
        assert!(fs::read(&written[1]).unwrap().ends_with(b"IEND\xaeB`\x82"));
        fs::remove_dir_all(folder).unwrap();
    }
}
