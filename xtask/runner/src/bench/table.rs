//! The table: a block of lines for each row.

use super::case::{Better, Row, Who};
use super::record::CaseRecord;
use super::statistics::Summary;

/// The lines of a row's cases: the columns of those who took part, the ratios to them, and the aims.
pub fn of(row: &Row, cases: &[CaseRecord]) -> String {
    let took_part = |who: &Who| cases.iter().any(|case| case.summary(*who).is_some());
    let who: Vec<Who> = Who::ALL.into_iter().filter(took_part).collect();
    let has_aims = cases.iter().any(|case| case.aim.is_some());

    let mut grid = vec![head(&who, has_aims)];
    grid.extend(cases.iter().filter(|case| case.failure.is_none()).map(|case| line(case, &who, has_aims)));
    let mut text = format!("{}: {}\n", row.name, row.about);
    if grid.len() > 1 {
        text += &aligned(&grid);
    }
    for case in cases {
        if let Some(failure) = &case.failure {
            text += &format!("  {}, {}: FAILED: {failure}\n", case.name, case.configuration);
        }
    }
    text
}

fn head(who: &[Who], has_aims: bool) -> Vec<String> {
    let mut cells = vec!["what".to_owned(), "configuration".to_owned(), "unit".to_owned()];
    cells.extend(who.iter().map(|who| format!("{who} [min, max]")));
    cells.extend(others(who).map(|who| format!("time / {who}")));
    if has_aims {
        cells.push("aim".to_owned());
    }
    cells
}

fn line(case: &CaseRecord, who: &[Who], has_aims: bool) -> Vec<String> {
    let mut cells = vec![case.name.clone(), case.configuration.clone(), case.unit.to_string()];
    cells.extend(who.iter().map(|&who| measured(case, who)));
    cells.extend(
        others(who).map(|who| case.ratio(who).map(|ratio| format!("{ratio:.3}")).unwrap_or_default()),
    );
    if has_aims {
        cells.push(aim(case));
    }
    cells
}

fn others(who: &[Who]) -> impl Iterator<Item = Who> {
    who.iter().copied().filter(|who| *who != Who::Ours)
}

fn measured(case: &CaseRecord, who: Who) -> String {
    let Some(Summary { median, min, max }) = case.summary(who) else { return String::new() };
    let shape = case.results.iter().find(|result| result.who == who).and_then(|result| result.shape.as_ref());
    let shape = shape.map(|shape| format!(" ({shape})")).unwrap_or_default();
    format!("{} [{}, {}]{shape}", number(median), number(min), number(max))
}

fn aim(case: &CaseRecord) -> String {
    let (Some(aim), Some(ours)) = (case.aim, case.summary(Who::Ours)) else { return String::new() };
    let sign = if case.unit.better() == Better::Higher { "≥" } else { "≤" };
    let verdict = if case.unit.reaches(ours.median, aim) { "reached" } else { "MISSED" };
    format!("{sign} {} {verdict}", number(aim))
}

/// Four significant digits or so.
pub fn number(value: f64) -> String {
    match value.abs() {
        magnitude if magnitude >= 1000.0 => format!("{value:.0}"),
        magnitude if magnitude >= 100.0 => format!("{value:.1}"),
        magnitude if magnitude >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Columns as wide as their widest cell.
pub fn aligned(grid: &[Vec<String>]) -> String {
    let columns = grid.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        grid.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in grid {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        text += &format!("  {}\n", cells.join("  ").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::case::Unit;
    use crate::bench::record::ResultRecord;

    fn case(values: [f64; 2]) -> CaseRecord {
        let [ours, baseline] = values;
        let result = |who, value| ResultRecord { who, shape: None, values: vec![value] };
        CaseRecord {
            row: "hop".into(),
            name: "semaphore".into(),
            configuration: "2 x 1 thread".into(),
            unit: Unit::Nanoseconds,
            aim: Some(800.0),
            point: None,
            results: vec![result(Who::Ours, ours), result(Who::Baseline, baseline)],
            failure: None,
        }
    }

    #[test]
    fn a_line_has_both_numbers_their_ratio_and_the_aim() {
        let row = Row { name: "hop", about: "hops", cases: |_| Ok(Vec::new()) };
        let text = of(&row, &[case([790.0, 800.0]), case([808.0, 800.0])]);
        assert!(
            text.contains("790.0 [790.0, 790.0]")
                && text.contains("0.988")
                && text.contains("≤ 800.0 reached"),
            "{text}"
        );
        assert!(text.contains("1.010") && text.contains("≤ 800.0 MISSED"), "{text}");
        assert!(!text.contains("driver"), "{text}");
        let failed = CaseRecord { failure: Some("no memory".into()), results: vec![], ..case([1.0, 1.0]) };
        assert!(of(&row, &[failed]).contains("FAILED: no memory"));
    }

    #[test]
    fn numbers_keep_four_digits() {
        assert_eq!([4063.2, 803.14, 35.678, 1.23456].map(number), ["4063", "803.1", "35.68", "1.235"]);
    }
}
