//! What a row is made of: cases, each with the contenders that are measured side by side.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::setup::Bench;

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// warpwire.
    Ours,
    /// The hand-written C++ baseline.
    Baseline,
    /// Another library's device code.
    Peer,
    /// The driver's own copy.
    Driver,
}

impl Who {
    /// Every contender, in the order of the table's columns.
    pub const ALL: [Self; 4] = [Self::Ours, Self::Baseline, Self::Peer, Self::Driver];
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ours => "warpwire",
            Self::Baseline => "C++",
            Self::Peer => "peer",
            Self::Driver => "driver's copy",
        })
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// 10^9 bytes a second.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
    /// 10^6 triggers a second.
    #[serde(rename = "M/s")]
    MillionsPerSecond,
    /// 1,000 bytes.
    #[serde(rename = "KB")]
    Kilobytes,
}

/// Which way a number is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Times and sizes.
    Lower,
    /// Rates.
    Higher,
}

impl Unit {
    /// Which way it is better.
    pub const fn better(self) -> Better {
        match self {
            Self::GigabytesPerSecond | Self::MillionsPerSecond => Better::Higher,
            _ => Better::Lower,
        }
    }

    /// Ours over theirs as times (or sizes): at most 1 where ours is not behind.
    pub fn ratio(self, ours: f64, theirs: f64) -> f64 {
        match self.better() {
            Better::Lower => ours / theirs,
            Better::Higher => theirs / ours,
        }
    }

    /// Whether `value` is what `aim` asks for.
    pub fn reaches(self, value: f64, aim: f64) -> bool {
        self.ratio(value, aim) <= 1.0
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::GigabytesPerSecond => "GB/s",
            Self::MillionsPerSecond => "M/s",
            Self::Kilobytes => "KB",
        })
    }
}

/// Where a case stands in a plot: its curve's name and its message's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Cases of one name make a curve.
    pub curve: String,
    /// The horizontal coordinate.
    pub bytes: u64,
}

/// One line of the table.
pub struct Case<'b> {
    /// What is measured.
    pub name: String,
    /// With which sizes and shapes.
    pub configuration: String,
    /// What its numbers count.
    pub unit: Unit,
    /// What is aimed at on the device at hand, where something is.
    pub aim: Option<f64>,
    /// Its place in a plot, where it has one.
    pub point: Option<Point>,
    /// Sets the contenders up and checks what each computes.
    pub prepare: Prepare<'b>,
}

/// See [`Case::prepare`]: right before the case is measured, so that one case's memory is gone before the next one's.
pub type Prepare<'b> = Box<dyn FnOnce(&'b Bench) -> anyhow::Result<Vec<Contestant<'b>>> + 'b>;

impl<'b> Case<'b> {
    /// A case without an aim and without a place in a plot.
    pub fn new(
        name: impl Into<String>,
        configuration: impl Into<String>,
        unit: Unit,
        prepare: impl FnOnce(&'b Bench) -> anyhow::Result<Vec<Contestant<'b>>> + 'b,
    ) -> Self {
        let (name, configuration) = (name.into(), configuration.into());
        Self { name, configuration, unit, aim: None, point: None, prepare: Box::new(prepare) }
    }

    /// With what is aimed at.
    pub fn aim(mut self, aim: Option<f64>) -> Self {
        self.aim = aim;
        self
    }

    /// With a place in a plot.
    pub fn point(mut self, curve: &str, bytes: u64) -> Self {
        self.point = Some(Point { curve: curve.to_owned(), bytes });
        self
    }
}

/// A contender of a case, checked and ready to be measured.
pub struct Contestant<'b> {
    /// Who.
    pub who: Who,
    /// The shape that it takes, where contenders choose their own.
    pub shape: Option<String>,
    /// Measures one repetition, in the case's unit.
    pub measure: Box<dyn FnMut() -> anyhow::Result<f64> + 'b>,
}

impl<'b> Contestant<'b> {
    /// A contender with the case's own shape.
    pub fn new(who: Who, measure: impl FnMut() -> anyhow::Result<f64> + 'b) -> Self {
        Self { who, shape: None, measure: Box::new(measure) }
    }

    /// With a shape that it chose.
    pub fn shape(mut self, shape: impl Into<String>) -> Self {
        self.shape = Some(shape.into());
        self
    }
}

/// A row of the benchmark: one subject, in one file of `rows`.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it measures, in a sentence.
    pub about: &'static str,
    /// Its cases on the device at hand.
    pub cases: for<'b> fn(&'b Bench) -> anyhow::Result<Vec<Case<'b>>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_times() {
        assert_eq!(Unit::Nanoseconds.ratio(80.0, 100.0), 0.8);
        assert_eq!(Unit::GigabytesPerSecond.ratio(100.0, 80.0), 0.8);
        assert!(
            Unit::GigabytesPerSecond.reaches(4100.0, 4060.0)
                && !Unit::GigabytesPerSecond.reaches(4000.0, 4060.0)
        );
        assert!(Unit::Microseconds.reaches(0.9, 0.9) && !Unit::Microseconds.reaches(1.0, 0.9));
    }
}
