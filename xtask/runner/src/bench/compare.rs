//! A stored run beside a new one.

use super::case::Who;
use super::record::{CaseRecord, Record};
use super::table::{aligned, number};

/// Old and new medians of every case that both runs have, for each contender, and their ratio as times: below 1 is faster
/// than before. The contenders that did not change show what the machine itself makes of it.
pub fn of(old: &Record, new: &Record) -> String {
    let mut text = format!("compared with the run of {} on {}", old.machine.date, old.machine.device);
    if old.machine.device != new.machine.device {
        text += ": ANOTHER DEVICE, the ratios tell nothing of the code";
    }
    text += "\n";
    let who: Vec<Who> = Who::ALL
        .into_iter()
        .filter(|who| new.cases.iter().any(|case| case.summary(*who).is_some()))
        .collect();
    let mut head: Vec<String> = ["what", "configuration", "unit"].map(str::to_owned).into();
    head.extend(who.iter().flat_map(|who| [format!("{who}: old"), "new".to_owned(), "new / old".to_owned()]));
    let mut grid = vec![head];
    let mut unmatched = 0;
    for case in &new.cases {
        match old.cases.iter().find(|before| before.key() == case.key()) {
            Some(before) => grid.push(line(before, case, &who)),
            None => unmatched += 1,
        }
    }
    text += &aligned(&grid);
    if unmatched > 0 {
        text += &format!("  {unmatched} cases are not in the old run\n");
    }
    text
}

fn line(old: &CaseRecord, new: &CaseRecord, who: &[Who]) -> Vec<String> {
    let mut cells = vec![new.name.clone(), new.configuration.clone(), new.unit.to_string()];
    for &who in who {
        let medians = [old, new].map(|case| case.summary(who).map(|summary| summary.median));
        cells.extend(medians.map(|median| median.map(number).unwrap_or_default()));
        let ratio = match medians {
            [Some(old), Some(new_median)] => format!("{:.3}", new.unit.ratio(new_median, old)),
            _ => String::new(),
        };
        cells.push(ratio);
    }
    cells
}

#[cfg(test)]
mod tests {
    use warpwire::device::{Device, DeviceSelector};

    use super::*;
    use crate::bench::case::Unit;
    use crate::bench::record::ResultRecord;

    #[test]
    fn both_medians_and_their_ratio_stand_side_by_side() {
        let run = |name: &str, value: f64| {
            let mut record = Record::new(&Device::open(DeviceSelector::Cpu).unwrap(), 9);
            record.machine.device = "a device".into();
            record.cases.push(CaseRecord {
                row: "put".into(),
                name: name.into(),
                configuration: "1 MiB".into(),
                unit: Unit::GigabytesPerSecond,
                aim: None,
                point: None,
                results: vec![ResultRecord { who: Who::Ours, shape: None, values: vec![value] }],
                failure: None,
            });
            record
        };
        let text = of(&run("put", 100.0), &run("put", 125.0));
        assert!(text.contains("100.0") && text.contains("125.0") && text.contains("0.800"), "{text}");
        assert!(!text.contains("ANOTHER"), "{text}");
        assert!(of(&run("put", 100.0), &run("get", 125.0)).contains("1 cases are not in the old run"));
        let mut elsewhere = run("put", 100.0);
        elsewhere.machine.device = "another".into();
        assert!(of(&elsewhere, &run("put", 125.0)).contains("ANOTHER DEVICE"));
    }
}
