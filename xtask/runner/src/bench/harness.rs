//! Runs a case: its contenders by turns, in one process.

use super::case::{Case, Contestant};
use super::record::{CaseRecord, ResultRecord};
use super::setup::Bench;

/// Prepares and measures a case; what went wrong is part of the record, and the next case can run.
pub fn run<'b>(bench: &'b Bench, row: &str, case: Case<'b>, repetitions: u32) -> CaseRecord {
    let Case { name, configuration, unit, aim, point, prepare } = case;
    let measured = prepare(bench).and_then(|contestants| measure(contestants, repetitions));
    let (results, failure) = match measured {
        Ok(results) if results.is_empty() => {
            (results, Some("this device's architecture has no such kernel".to_owned()))
        }
        Ok(results) => (results, None),
        Err(error) => (Vec::new(), Some(format!("{error:#}"))),
    };
    CaseRecord { row: row.to_owned(), name, configuration, unit, aim, point, results, failure }
}

/// Once each to warm up, then `repetitions` times round, the order turned about each time: whatever drifts, a clock or a
/// temperature, drifts for all of them alike.
fn measure(mut contestants: Vec<Contestant<'_>>, repetitions: u32) -> anyhow::Result<Vec<ResultRecord>> {
    for contestant in &mut contestants {
        (contestant.measure)()?;
    }
    let mut values = vec![Vec::new(); contestants.len()];
    for repetition in 0..repetitions {
        let mut order: Vec<usize> = (0..contestants.len()).collect();
        if repetition % 2 == 1 {
            order.reverse();
        }
        for i in order {
            values[i].push((contestants[i].measure)()?);
        }
    }
    let result = |(contestant, values): (Contestant<'_>, _)| ResultRecord {
        who: contestant.who,
        shape: contestant.shape,
        values,
    };
    Ok(contestants.into_iter().zip(values).map(result).collect())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::bench::case::Who;

    #[test]
    fn contenders_take_turns() {
        let order = RefCell::new(String::new());
        let contestant = |who, letter| {
            let order = &order;
            Contestant::new(who, move || {
                order.borrow_mut().push(letter);
                Ok(order.borrow().len() as f64)
            })
        };
        let contestants = vec![contestant(Who::Ours, 'o'), contestant(Who::Baseline, 'b')];
        let results = measure(contestants, 3).unwrap();
        assert_eq!(*order.borrow(), "obobboob");
        assert_eq!(results[0].values, [3.0, 6.0, 7.0]);
        assert_eq!(results[1].values, [4.0, 5.0, 8.0]);
    }
}
