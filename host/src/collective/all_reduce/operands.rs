//! What one rank reduces.

use warpwire_device::abi::Global;

use crate::error::{Error, Result};

/// What one rank reduces.
#[derive(Clone, Copy, Debug)]
pub struct Operands {
    /// `count` elements.
    pub input: Global<f32>,
    /// Room for as many: `input` itself, or memory that does not overlap it.
    pub output: Global<f32>,
    /// Elements.
    pub count: usize,
}

/// Fails for operands that the kernel cannot take.
pub(super) fn check(input: Global<f32>, output: Global<f32>, count: usize) -> Result<()> {
    for (what, address) in [("input", input.address()), ("output", output.address())] {
        if !address.is_multiple_of(align_of::<f32>() as u64) {
            return Err(Error::Misaligned { what, address, alignment: align_of::<f32>() as u64 });
        }
    }
    let bytes = (count * size_of::<f32>()) as u64;
    let distance = input.address().abs_diff(output.address());
    if distance != 0 && distance < bytes {
        return Err(Error::Overlap { input: input.address(), output: output.address(), bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: u64) -> Global<f32> {
        // SAFETY: only the number is looked at.
        unsafe { Global::from_address(address) }
    }

    #[test]
    fn operands_are_checked() {
        assert!(check(at(4096), at(4096), 100).is_ok());
        assert!(check(at(4096), at(4096 + 400), 100).is_ok());
        assert!(matches!(check(at(4096), at(4096 + 396), 100), Err(Error::Overlap { .. })));
        assert!(matches!(check(at(4096 + 396), at(4096), 100), Err(Error::Overlap { .. })));
        assert!(matches!(check(at(4098), at(8192), 1), Err(Error::Misaligned { what: "input", .. })));
    }
}
