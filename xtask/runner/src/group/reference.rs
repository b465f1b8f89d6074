//! What a sum over all ranks is compared with: the same sum in f64.

/// What a rank's buffers hold where no result may be.
pub const POISON: f32 = -12345.0;

/// What a check found.
pub struct Checked {
    /// The largest difference from the reference.
    pub largest_error: f64,
    /// Whether every element of every rank is right, and nothing else was touched.
    pub right: bool,
}

impl Checked {
    /// Nothing wrong so far.
    pub fn new() -> Self {
        Self { largest_error: 0.0, right: true }
    }

    /// Compares with the sum of all ranks' inputs in f64. Each of the `n - 1` additions in f32 rounds by at most half a unit
    /// in the last place of a partial sum, which the sum of the magnitudes bounds.
    pub fn compare(&mut self, ranks: usize, output: &[f32]) {
        let inputs: Vec<Vec<f32>> = (0..ranks).map(|rank| input(rank, output.len())).collect();
        for (i, &got) in output.iter().enumerate() {
            let terms = || inputs.iter().map(|input| f64::from(input[i]));
            let error = (f64::from(got) - terms().sum::<f64>()).abs();
            let bound = (inputs.len() - 1) as f64 * f64::from(f32::EPSILON) / 2.0
                * terms().map(f64::abs).sum::<f64>();
            // Not `error > bound`: a NaN is wrong too.
            self.right &= error <= bound;
            self.largest_error = self.largest_error.max(error);
        }
    }
}

/// A rank's input: numbers between -1 and 1 without a pattern, other ones for each rank and length.
pub fn input(rank: usize, count: usize) -> Vec<f32> {
    let seed = (rank as u64) << 40 | count as u64;
    (0..count as u64)
        .map(|i| {
            // splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
            let mut z = (seed ^ i << 20).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(i | 1);
            z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            (z >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

/// Whether two lists have the same bits.
pub fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_element_and_a_nan_are_found() {
        let (ranks, count) = (3, 101);
        let terms: Vec<Vec<f32>> = (0..ranks).map(|rank| input(rank, count)).collect();
        let sum: Vec<f32> = (0..count).map(|i| terms.iter().map(|term| term[i]).sum()).collect();
        let check = |output: &[f32]| {
            let mut checked = Checked::new();
            checked.compare(ranks, output);
            checked.right
        };
        assert!(check(&sum));
        for wrong in [f32::NAN, POISON, sum[100] + 1e-5] {
            let mut output = sum.clone();
            output[100] = wrong;
            assert!(!check(&output), "{wrong}");
        }
        assert!(!same_bits(&[0.0], &[-0.0]) && same_bits(&[f32::NAN], &[f32::NAN]));
    }
}
