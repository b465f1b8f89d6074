//! The environment variables, all read here.

use std::env;
use std::ops::RangeInclusive;

use crate::error::{Error, Result};

/// How many GPU threads the CPU devices of this process hold at once, all together.
const CPU_THREADS: &str = "WARPWIRE_CPU_THREADS";
/// CUDA's own: how many hardware queues its streams are spread over.
#[cfg(feature = "cuda")]
const CUDA_CONNECTIONS: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

/// `WARPWIRE_CPU_THREADS`, where it is set: 1,024 to `most`.
pub(crate) fn cpu_threads(most: u32) -> Result<Option<u32>> {
    number(CPU_THREADS, 1024..=most)
}

/// `CUDA_DEVICE_MAX_CONNECTIONS`, where it is set: 1 to 32. A program that puts more than 7 ranks on one GPU sets it to 32
/// before its first CUDA call.
#[cfg(feature = "cuda")]
pub(crate) fn cuda_connections() -> Result<Option<u32>> {
    number(CUDA_CONNECTIONS, 1..=32)
}

fn number(name: &'static str, range: RangeInclusive<u32>) -> Result<Option<u32>> {
    let Some(value) = env::var_os(name) else { return Ok(None) };
    parse(name, &value.to_string_lossy(), &range).map(Some)
}

fn parse(name: &'static str, value: &str, range: &RangeInclusive<u32>) -> Result<u32> {
    value.trim().parse().ok().filter(|number| range.contains(number)).ok_or_else(|| Error::InvalidVariable {
        name,
        value: value.to_owned(),
        expected: format!("a number from {} to {}", range.start(), range.end()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_checked() {
        assert_eq!(parse("N", " 2048 ", &(1024..=4096)).unwrap(), 2048);
        for bad in ["", "many", "1023", "4097", "-1", "99999999999"] {
            let error = parse("N", bad, &(1024..=4096)).unwrap_err().to_string();
            assert!(error.contains("from 1024 to 4096"), "{error}");
        }
    }
}
