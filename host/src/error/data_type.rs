//! Pairs of element types that do not go together.

use warpwire_device::abi::ElementType;

use super::ErrorKind;

/// A choice of element types that nothing is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataTypeError {
    /// An accumulator that a reduction of this type does not have.
    #[error(
        "elements of type {element} cannot be accumulated in {accumulator}: give {allowed}",
        allowed = names(element.accumulators())
    )]
    NoAccumulator {
        /// What is reduced.
        element: ElementType,
        /// What was asked for.
        accumulator: ElementType,
    },

    /// A conversion that no kernel does.
    #[error("there is no conversion from {from} to {to}: {hint}")]
    NoConversion {
        /// What is read.
        from: ElementType,
        /// What is written.
        to: ElementType,
        /// What to do.
        hint: &'static str,
    },
}

impl DataTypeError {
    pub(super) const fn kind(&self) -> ErrorKind {
        match self {
            Self::NoAccumulator { .. } => ErrorKind::InvalidArgument,
            Self::NoConversion { .. } => ErrorKind::Unsupported,
        }
    }
}

/// "f16 or f32".
fn names(types: &[ElementType]) -> String {
    types.iter().map(|name| name.name()).collect::<Vec<_>>().join(" or ")
}
