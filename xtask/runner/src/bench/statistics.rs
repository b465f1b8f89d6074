//! Medians and spreads.

/// The middle of some measurements, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The median: half of the measurements are no greater.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Summary {
    /// Of at least one measurement; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Self { median, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[3.0]), Some(Summary { median: 3.0, min: 3.0, max: 3.0 }));
        assert_eq!(Summary::of(&[9.0, 1.0, 4.0]), Some(Summary { median: 4.0, min: 1.0, max: 9.0 }));
        assert_eq!(Summary::of(&[4.0, 1.0, 9.0, 2.0]).map(|summary| summary.median), Some(3.0));
    }
}
