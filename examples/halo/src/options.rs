//! The command line.

use std::env;
use std::str::FromStr;

use warpwire::device::DeviceSelector;

/// What to run.
pub struct Options {
    /// Where.
    pub device: DeviceSelector,
    /// How many ranks.
    pub ranks: usize,
    /// Elements of a row.
    pub width: usize,
    /// Rows of a strip.
    pub rows: usize,
    /// Steps.
    pub steps: usize,
}

impl Options {
    /// Reads the program's arguments.
    pub fn from_args() -> Result<Self, String> {
        // Odd on purpose: rows that are no whole number of 16-byte words.
        let mut options = Self { device: DeviceSelector::Auto, ranks: 4, width: 1001, rows: 37, steps: 25 };
        let mut args = env::args().skip(1);
        while let Some(name) = args.next() {
            let value = args.next().ok_or_else(|| format!("{name} takes a value"))?;
            match name.as_str() {
                "--device" => options.device = parse(&name, &value)?,
                "--ranks" => options.ranks = positive(&name, &value)?,
                "--width" => options.width = positive(&name, &value)?,
                "--rows" => options.rows = positive(&name, &value)?,
                "--steps" => options.steps = positive(&name, &value)?,
                _ => return Err(format!("{name} is no option: --device, --ranks, --width, --rows, --steps")),
            }
        }
        Ok(options)
    }
}

fn parse<T: FromStr<Err: ToString>>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|error: T::Err| format!("{name}: {}", error.to_string()))
}

fn positive(name: &str, value: &str) -> Result<usize, String> {
    let number: usize = parse(name, value)?;
    if (1..=1 << 20).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{name}: {number} is not from 1 to 1048576"))
    }
}
