//! Tests that need what a machine may not have.

use std::io::Write;

/// Says why `test` does not run here, past the harness, which keeps what a passing test prints to itself.
pub fn skipped(test: &str, why: &str) {
    // Where nobody reads standard error, nobody misses the line.
    let _ = writeln!(std::io::stderr(), "{test}: skipped: {why}");
}

/// Whether the environment asks for `what` (a variable set to 1): its lack is then a failure.
#[must_use]
pub fn is_required(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}
