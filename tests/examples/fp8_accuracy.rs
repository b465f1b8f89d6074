//! Prints how far sums of random fp8 elements over 2 to 64 ranks are from the exact ones, by accumulator.
//!
//! `cargo run --release --example fp8_accuracy`

use warpwire_tests::accuracy::{ELEMENTS, table};

fn main() {
    println!("absolute errors of {ELEMENTS} sums over the ranks, against f64: mean / largest\n");
    println!("{:<22}{:>5}{:>24}{:>24}{:>24}", "type", "ranks", "accum native", "accum f16", "accum f32");
    let mut lines = table();
    lines.sort_by_key(|line| line.element);
    for line in lines {
        print!("{:<22}{:>5}", line.element, line.ranks);
        for errors in line.errors {
            print!("{:>24}", format!("{:.3e} / {:.3e}", errors.mean, errors.largest));
        }
        println!();
    }
}
