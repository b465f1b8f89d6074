//! Axes: which numbers stand at them, and where.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

/// How a number becomes a place on the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// In proportion, from 0.
    Linear,
    /// By the logarithm to the base 10.
    Logarithmic,
}

/// The vertical axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// How numbers are placed.
    pub scale: Scale,
    /// From the bottom to the top, as places.
    pub range: Range<f64>,
    /// Where numbers are written, as places.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// An axis for values between `least` and `most`, both above 0.
    pub fn of(scale: Scale, least: f64, most: f64) -> Self {
        match scale {
            Scale::Linear => {
                let step = nice_step(most / 6.0);
                let top = (most * 1.04 / step).ceil() * step;
                let ticks = (0..=(top / step).round() as u32).map(|i| f64::from(i) * step).collect();
                Self { scale, range: 0.0..top, ticks }
            }
            Scale::Logarithmic => {
                let (least, most) = ((least / 1.15).log10(), (most * 1.15).log10());
                let inside = |tick: &f64| (least..=most).contains(tick);
                let decades = least.floor() as i32..=most.ceil() as i32;
                let ticks = decades
                    .flat_map(|decade| [1.0f64, 2.0, 5.0].map(|digit| digit.log10() + f64::from(decade)));
                Self { scale, range: least..most, ticks: ticks.filter(inside).collect() }
            }
        }
    }

    /// Where `value` stands.
    pub fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.log10(),
        }
    }

    /// What is written at `place`.
    pub fn label(&self, place: f64) -> String {
        let value = match self.scale {
            Scale::Linear => place,
            Scale::Logarithmic => 10f64.powf(place),
        };
        // Enough digits for the ticks 1, 2 and 5 of any decade, and no trailing zeros.
        let digits = if value == 0.0 { 0 } else { (-value.log10().floor()).max(0.0) as usize };
        format!("{value:.digits$}")
    }
}

/// The least of 1, 2 and 5, times a power of ten, that is not below `step`.
fn nice_step(step: f64) -> f64 {
    let decade = 10f64.powf(step.log10().floor());
    let fits = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| digit * decade >= step * 0.999);
    fits.unwrap_or(10.0) * decade
}

/// A range of places and the marked ones among them, for plotters: its own ranges choose their marks themselves.
pub struct Marked {
    /// From one end to the other.
    pub range: Range<f64>,
    /// Where numbers are written.
    pub ticks: Vec<f64>,
}

impl Ranged for Marked {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (from, to): (i32, i32)) -> i32 {
        let part = (place - self.range.start) / (self.range.end - self.range.start);
        from + (part * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// The powers of two that are written at the horizontal axis: those of the sizes, thinned out to `most`.
pub fn size_ticks(sizes: &[u64], most: usize) -> Vec<f64> {
    let (Some(&first), Some(&last)) = (sizes.iter().min(), sizes.iter().max()) else { return Vec::new() };
    let (first, last) = (first.ilog2(), last.ilog2());
    let step = ((last - first) as usize).div_ceil(most.max(1)).max(1);
    (first..=last).step_by(step).map(f64::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_begin_at_zero_and_have_round_ticks() {
        let axis = Axis::of(Scale::Linear, 3.0, 4227.0);
        assert_eq!(axis.range, 0.0..5000.0);
        assert_eq!(
            axis.ticks.iter().map(|&tick| axis.label(tick)).collect::<Vec<_>>(),
            ["0", "1000", "2000", "3000", "4000", "5000"]
        );
        assert_eq!(Axis::of(Scale::Linear, 0.1, 0.9).ticks.len(), 6);
    }

    #[test]
    fn logarithmic_axes_have_1_2_and_5() {
        let axis = Axis::of(Scale::Logarithmic, 0.93, 24.1);
        let labels: Vec<_> = axis.ticks.iter().map(|&tick| axis.label(tick)).collect();
        assert_eq!(labels, ["1", "2", "5", "10", "20"]);
        assert!((axis.place(10.0) - 1.0).abs() < 1e-12);
        assert_eq!(axis.label((0.05f64).log10()), "0.05");
    }

    #[test]
    fn sizes_are_thinned_out() {
        assert_eq!(size_ticks(&[1 << 10, 1 << 14], 8), [10.0, 11.0, 12.0, 13.0, 14.0]);
        assert_eq!(
            size_ticks(&[1 << 30, 1 << 10], 10),
            (10..=30).step_by(2).map(f64::from).collect::<Vec<_>>()
        );
        assert!(size_ticks(&[], 8).is_empty());
    }
}
