//! How the builder says what it is doing.

/// Told of every step that may take long. A terminal shows them as a spinner; a build script stays silent.
pub trait Progress {
    /// A step begins; the one before it has ended.
    fn step(&self, what: &str);
    /// A line that should stay visible, such as which compiler was taken.
    fn note(&self, line: &str);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _what: &str) {}
    fn note(&self, _line: &str) {}
}
