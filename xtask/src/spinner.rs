//! Shows the builder's steps: a spinner on a terminal, a line for each step elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;
use warpwire_build::Progress;

/// A spinner that names the step under way.
pub struct Spinner {
    bar: Option<ProgressBar>,
}

impl Spinner {
    /// Nothing is shown before the first step.
    pub fn new() -> Spinner {
        Spinner { bar: std::io::stderr().is_terminal().then(spinning) }
    }

    /// Takes the spinner away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn spinning() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

impl Progress for Spinner {
    fn step(&self, what: &str) {
        match &self.bar {
            Some(bar) => {
                bar.reset_elapsed();
                bar.set_message(what.to_owned());
            }
            None => eprintln!("  {what} ..."),
        }
    }

    fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("  {line}")),
            None => eprintln!("  {line}"),
        }
    }
}
