//! Element types as arguments: what is reduced, and what it is accumulated in.

use std::fmt;

use warpwire_device::abi::ElementType;

use crate::error::{DataTypeError, Result};

/// An element type, or [`DataType::Auto`], the input's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DataType {
    /// The type of the input that the argument belongs to.
    #[default]
    Auto,
    /// This one.
    Is(ElementType),
}

impl DataType {
    /// The type that this stands for beside an input of type `input`.
    #[must_use]
    pub const fn resolve(self, input: ElementType) -> ElementType {
        match self {
            Self::Auto => input,
            Self::Is(element) => element,
        }
    }

    /// The accumulator that this asks for, for a reduction of `input`: by default the input's own type.
    ///
    /// # Errors
    ///
    /// [`DataTypeError::NoAccumulator`], which names both, for one that such a reduction does not have: see
    /// [`ElementType::accumulators`].
    pub fn accumulator(self, input: ElementType) -> Result<ElementType> {
        let accumulator = self.resolve(input);
        if input.accumulators().contains(&accumulator) {
            return Ok(accumulator);
        }
        Err(DataTypeError::NoAccumulator { element: input, accumulator }.into())
    }
}

impl From<ElementType> for DataType {
    fn from(element: ElementType) -> Self {
        Self::Is(element)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Is(element) => element.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind};

    #[test]
    fn auto_is_the_inputs_own_type() {
        for element in ElementType::ALL {
            assert_eq!(DataType::default().resolve(element), element);
            assert_eq!(DataType::Auto.accumulator(element).unwrap(), element);
        }
    }

    #[test]
    fn an_accumulator_is_no_narrower_than_its_input() {
        let allowed = |of: ElementType, wide: ElementType| DataType::from(wide).accumulator(of).is_ok();
        for of in ElementType::ALL {
            for wide in ElementType::ALL {
                let narrower = wide.bytes() < of.bytes();
                assert!(!(narrower && allowed(of, wide)), "{of} in {wide}");
            }
        }
        assert!(
            allowed(ElementType::E4m3B15, ElementType::F16) && allowed(ElementType::E5m2, ElementType::F32)
        );
    }

    #[test]
    fn a_wrong_pair_is_an_error_that_names_both() {
        for (of, wide, allowed) in [
            (ElementType::Bf16, ElementType::F16, "bf16 or f32"),
            (ElementType::F32, ElementType::F16, "f32"),
            (ElementType::U8, ElementType::F32, "u8"),
            (ElementType::E4m3, ElementType::E5m2, "fp8_e4m3 or f16 or f32"),
        ] {
            let error = DataType::from(wide).accumulator(of).unwrap_err();
            assert!(matches!(error, Error::DataType(DataTypeError::NoAccumulator { .. })));
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            let text = error.to_string();
            let expected = format!("elements of type {of} cannot be accumulated in {wide}: give {allowed}");
            assert_eq!(text, expected);
        }
    }
}
