//! A build without InfiniBand: nothing can be opened, and the error says how to get it.

use std::convert::Infallible;

use crate::error::{Result, VerbsError};

/// An open RDMA adapter. This build has none.
#[derive(Clone, Debug)]
pub struct Adapter {
    never: Infallible,
}

impl Adapter {
    /// The names of this machine's adapters: none, in this build.
    ///
    /// # Errors
    ///
    /// None.
    pub fn names() -> Result<Vec<String>> {
        Ok(vec![])
    }

    /// The adapter for the `index`-th GPU.
    ///
    /// # Errors
    ///
    /// [`VerbsError::Disabled`].
    pub fn for_index(_index: usize) -> Result<Self> {
        Err(VerbsError::Disabled.into())
    }

    /// The adapter of that name.
    ///
    /// # Errors
    ///
    /// [`VerbsError::Disabled`].
    pub fn open(_name: &str) -> Result<Self> {
        Err(VerbsError::Disabled.into())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.never {}
    }

    /// Whether it does atomics.
    #[must_use]
    pub fn has_atomics(&self) -> bool {
        match self.never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_says_how_to_get_it() {
        assert!(Adapter::names().unwrap().is_empty());
        let error = Adapter::for_index(0).unwrap_err().to_string();
        assert!(error.contains("--features ib"), "{error}");
        assert_eq!(Adapter::open("mlx5_0").unwrap_err().to_string(), error);
    }
}
