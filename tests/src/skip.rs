//! Tests that need what a machine may not have.

use std::io::Write;

/// Says why `test` does not run here, past the harness, which keeps what a passing test prints to itself.
pub fn skipped(test: &str, why: &str) {
    // One write, so that the lines of tests that run together stay whole. Where nobody reads standard error, nobody misses it.
    let _ = std::io::stderr().write_all(format!("{test}: skipped: {why}\n").as_bytes());
}

/// Whether the environment asks for `what` (a variable set to 1): its lack is then a failure.
#[must_use]
pub fn is_required(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}
