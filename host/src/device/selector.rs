//! Which device a user asks for.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Which device to open. Parses from `auto`, `cpu`, `cuda` (GPU 0) and `cuda:N`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeviceSelector {
    /// GPU 0 where there is one, else the CPU device.
    #[default]
    Auto,
    /// A new CPU device.
    Cpu,
    /// The GPU of this number.
    Cuda(u32),
}

impl FromStr for DeviceSelector {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let selector = match text {
            "auto" => Some(Self::Auto),
            "cpu" => Some(Self::Cpu),
            "cuda" => Some(Self::Cuda(0)),
            // Digits alone: `parse` would take a sign as well.
            _ => text
                .strip_prefix("cuda:")
                .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|number| number.parse().ok())
                .map(Self::Cuda),
        };
        selector.ok_or_else(|| Error::InvalidSelector { text: text.to_owned() })
    }
}

impl fmt::Display for DeviceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_read_back_what_they_print() {
        for selector in
            [DeviceSelector::Auto, DeviceSelector::Cpu, DeviceSelector::Cuda(0), DeviceSelector::Cuda(7)]
        {
            assert_eq!(selector.to_string().parse::<DeviceSelector>().unwrap(), selector);
        }
        assert_eq!("cuda".parse::<DeviceSelector>().unwrap(), DeviceSelector::Cuda(0));
    }

    #[test]
    fn anything_else_is_an_error_that_repeats_it() {
        for bad in ["", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:+1", "cuda:4294967296", "cuda:0 "] {
            let error = bad.parse::<DeviceSelector>().unwrap_err().to_string();
            assert!(error.contains(&format!("{bad:?}")), "{error}");
        }
    }
}
