//! The field, and what it should become.

/// `rows` rows of `width` numbers between -1 and 1 without a pattern.
pub fn start(rows: usize, width: usize) -> Vec<f32> {
    let mut state = 0x2545_F491_u32;
    let mut next = || {
        // xorshift32 (Marsaglia, "Xorshift RNGs", 2003).
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..rows * width).map(|_| next()).collect()
}

/// The field after `steps` steps, in f64 and in one piece; the last row is above the first.
pub fn reference(start: &[f32], width: usize, steps: usize) -> Vec<f64> {
    let mut field: Vec<f64> = start.iter().map(|&element| f64::from(element)).collect();
    let len = field.len();
    for _ in 0..steps {
        let (above, below) = (|i: usize| (i + len - width) % len, |i: usize| (i + width) % len);
        field = (0..len).map(|i| (field[above(i)] + field[i] + field[below(i)]) / 3.0).collect();
    }
    field
}

/// The largest difference; infinite where anything is not a number.
pub fn largest_error(got: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(got.len(), expected.len());
    got.iter().zip(expected).fold(0.0, |largest, (&got, &expected)| {
        let error = (f64::from(got) - expected).abs();
        if error.is_nan() { f64::INFINITY } else { largest.max(error) }
    })
}
