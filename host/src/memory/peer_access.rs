//! Which GPUs of this machine reach each other's memory.

use std::fmt;

use crate::device;
use crate::error::Result;

/// For each pair of GPUs, whether the first reaches the second's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAccess {
    names: Vec<String>,
    /// By rows; a GPU reaches itself.
    reaches: Vec<bool>,
}

impl PeerAccess {
    /// Asks the driver about every pair of the GPUs that this process sees.
    ///
    /// # Errors
    ///
    /// Where CUDA does not start: [`Error::Unavailable`](crate::Error::Unavailable) without a driver or a GPU,
    /// [`Error::CudaDisabled`](crate::Error::CudaDisabled) in a build without it, or the driver's own error. The text has the
    /// driver's words and a hint.
    pub fn check() -> Result<Self> {
        let (names, reaches) = device::cuda_peers()?;
        Ok(Self { names, reaches })
    }

    /// How many GPUs there are.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.names.len()
    }

    /// Whether GPU `from` reaches the memory of GPU `to`. False for numbers beyond the last.
    #[must_use]
    pub fn reaches(&self, from: usize, to: usize) -> bool {
        let devices = self.devices();
        from < devices && to < devices && self.reaches[from * devices + to]
    }

    /// Whether each reaches every other.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.reaches.iter().all(|&reaches| reaches)
    }
}

impl fmt::Display for PeerAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices = self.devices();
        write!(f, "from\\to")?;
        for to in 0..devices {
            write!(f, "{to:>5}")?;
        }
        for (from, name) in self.names.iter().enumerate() {
            write!(f, "\n{from:>7}")?;
            for to in 0..devices {
                write!(f, "{:>5}", if self.reaches(from, to) { "yes" } else { "NO" })?;
            }
            write!(f, "  {name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reaches: &[bool], devices: usize) -> PeerAccess {
        PeerAccess { names: (0..devices).map(|i| format!("GPU {i}")).collect(), reaches: reaches.to_vec() }
    }

    #[test]
    fn one_missing_pair_is_found_and_shown() {
        let all = of(&[true; 4], 2);
        assert!(all.is_complete() && all.reaches(1, 0) && !all.reaches(0, 2));
        let some = of(&[true, true, false, true], 2);
        assert!(!some.is_complete() && some.reaches(0, 1) && !some.reaches(1, 0));
        assert_eq!(
            some.to_string(),
            "from\\to    0    1\n      0  yes  yes  GPU 0\n      1   NO  yes  GPU 1"
        );
    }

    #[test]
    fn one_gpu_alone_reaches_all_peers() {
        assert!(of(&[true], 1).is_complete());
    }
}
