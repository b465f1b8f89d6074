//! Charts as data: a row's cases of one unit, a curve for each contender.

use std::collections::BTreeSet;

use crate::bench::case::{Better, Unit, Who};
use crate::bench::record::{CaseRecord, Record};
use crate::bench::statistics::Summary;

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The row.
    pub row: String,
    /// What the numbers count.
    pub unit: Unit,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// A contender's values by size.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What is measured.
    pub name: String,
    /// The number of that name among the chart's, from 0.
    pub index: usize,
    /// Whose it is.
    pub who: Who,
    /// Bytes and values, by bytes.
    pub points: Vec<(u64, Summary)>,
}

impl Chart {
    /// A chart for each row and unit that has curves of at least two points.
    pub fn all(record: &Record) -> Vec<Self> {
        let mut kinds: Vec<(&str, Unit)> = Vec::new();
        for case in record.cases.iter().filter(|case| case.point.is_some()) {
            if !kinds.contains(&(&case.row, case.unit)) {
                kinds.push((&case.row, case.unit));
            }
        }
        let charts = kinds.into_iter().map(|(row, unit)| Self::of(record, row, unit));
        charts.filter(|chart| !chart.curves.is_empty()).collect()
    }

    fn of(record: &Record, row: &str, unit: Unit) -> Self {
        let cases: Vec<&CaseRecord> =
            record.cases.iter().filter(|case| case.row == row && case.unit == unit).collect();
        let mut names: Vec<&str> = Vec::new();
        for case in &cases {
            if let Some(point) = &case.point
                && !names.contains(&point.curve.as_str())
            {
                names.push(&point.curve);
            }
        }
        let curves = names.iter().enumerate().flat_map(|(index, name)| {
            let cases = &cases;
            Who::ALL.into_iter().map(move |who| Curve {
                name: (*name).to_owned(),
                index,
                who,
                points: points(cases, name, who),
            })
        });
        Self { row: row.to_owned(), unit, curves: curves.filter(|curve| curve.points.len() > 1).collect() }
    }

    /// What it is called in a file's name.
    pub fn file_stem(&self) -> String {
        let kind = match self.unit.better() {
            Better::Lower => "latency",
            Better::Higher => "bandwidth",
        };
        format!("{}-{kind}", self.row)
    }

    /// Whether it shows several things, not only several contenders.
    pub fn has_several_names(&self) -> bool {
        self.curves.iter().any(|curve| curve.index > 0)
    }

    /// The sizes of all curves.
    pub fn sizes(&self) -> Vec<u64> {
        let sizes: BTreeSet<u64> =
            self.curves.iter().flat_map(|curve| curve.points.iter().map(|(bytes, _)| *bytes)).collect();
        sizes.into_iter().collect()
    }

    /// The least and the greatest value.
    pub fn extremes(&self) -> (f64, f64) {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let least = points().map(|(_, value)| value.min).fold(f64::INFINITY, f64::min);
        (least, points().map(|(_, value)| value.max).fold(0.0, f64::max))
    }
}

fn points(cases: &[&CaseRecord], name: &str, who: Who) -> Vec<(u64, Summary)> {
    let of_curve = |case: &&CaseRecord| {
        let point = case.point.as_ref().filter(|point| point.curve == name)?;
        Some((point.bytes, case.summary(who)?))
    };
    let mut points: Vec<_> = cases.iter().filter_map(of_curve).collect();
    points.sort_by_key(|(bytes, _)| *bytes);
    points
}
